//! What is done again and again although once would do: files that are looked up, and what is made anew for each item.

mod pool;
mod process;
mod seen;

use chase_analyzer::recorder::syscalls::{FILE_NAME, FileRow};
use chase_analyzer::{Finding, FindingKind, Ns};
use pool::{MS, Outcome, US};
use seen::Seen;

const READ: u32 = 0;
const WRITE: u32 = 1;
const CLOSE: u32 = 3;
const RENAME: u32 = 82;
const CLOCK: u32 = 228;
const OPENAT: u32 = 257;
const STAT: u32 = 262;
const REGULAR: u32 = 0o100_644;

/// How often each file is opened, or asked about.
const ITEMS: u64 = 10_000;

fn looked_up(outcome: &Outcome) -> Option<&Finding> {
    let mut found = outcome.findings.iter();
    found.find(|finding| matches!(finding.kind, FindingKind::LookedUpAgain { .. }))
}

fn file_of(finding: &Finding) -> &str {
    finding.blame.as_ref().and_then(|blame| blame.file.as_deref()).expect("a file")
}

/// A thread that opens files: each 20 µs, to be read and closed in 4 µs; the long calls were passed these paths.
fn opening(function: &str, paths: &[(&str, u64)]) -> (Seen, u32) {
    let mut seen = Seen::new();
    let open = seen.function(function);
    let tid = seen.thread(0x100, open, (OPENAT, ITEMS, 20 * US));
    seen.file.syscall(1, tid, READ, ITEMS, 3 * US);
    seen.file.syscall(1, tid, CLOSE, ITEMS, US);
    for &(path, calls) in paths {
        seen.pool.process.builder.text(seen.threads[0], 1, path, (calls, calls * 60 * US));
    }
    (seen, tid)
}

fn sampled(seen: &mut Seen, tid: u32, (name, inode): (&str, u64), samples: u64) {
    let mut file = [0; FILE_NAME];
    file[..name.len()].copy_from_slice(name.as_bytes());
    let row =
        FileRow { context_ref: 1, tid, number: READ, mode: REGULAR, inode, samples, name: file };
    seen.file.file(row);
}

#[test]
fn a_file_is_opened_again() {
    let (mut seen, tid) = opening("open", &[("/etc/app/limits.conf", 1)]);
    sampled(&mut seen, tid, ("limits.conf", 7), 100);
    let outcome = seen.finish();
    let found = looked_up(&outcome).unwrap_or_else(|| panic!("{:#?}", outcome.findings));
    let FindingKind::LookedUpAgain { lookups, calls, opened, in_vain, all_ns, .. } = found.kind
    else {
        panic!("{found:#?}")
    };
    assert_eq!((lookups, calls, opened, in_vain), (ITEMS, ITEMS, ITEMS, false));
    assert_eq!((all_ns, found.saves_ns), (Ns(240 * MS), Ns(240 * MS)));
    assert_eq!((file_of(found), outcome.api(found.api)), ("/etc/app/limits.conf", Some("open")));
}

/// A line is to be written in any case: only to open and to close the file each time is too much.
#[test]
fn a_log_is_opened_for_each_line() {
    let (mut seen, tid) = opening("fopen", &[]);
    seen.file.syscalls.retain(|row| row.number != READ);
    seen.file.syscall(1, tid, WRITE, ITEMS, 3 * US);
    sampled(&mut seen, tid, ("app.log", 7), 100);
    seen.file.files.last_mut().expect("a row").number = WRITE;
    let outcome = seen.finish();
    let found = looked_up(&outcome).unwrap_or_else(|| panic!("{:#?}", outcome.findings));
    assert_eq!((found.saves_ns, file_of(found)), (Ns(210 * MS), "app.log"));
}

#[test]
fn files_of_one_name_are_different_ones() {
    let (mut seen, tid) = opening("open", &[]);
    for inode in 0..50 {
        sampled(&mut seen, tid, ("index", inode), 2);
    }
    assert!(looked_up(&seen.finish()).is_none());
    // One large file is read most of the time, but others are opened: of ten reads, one is of another one.
    let (mut seen, tid) = opening("open", &[]);
    seen.file.syscall(1, tid, READ, 9 * ITEMS, 3 * US);
    sampled(&mut seen, tid, ("large.bin", 7), 90);
    sampled(&mut seen, tid, ("small", 8), 10);
    assert!(looked_up(&seen.finish()).is_none());
}

#[test]
fn long_calls_tell_which_file_it_is() {
    let file = |function: &str, paths: &[(&str, u64)]| {
        let outcome = opening(function, paths).0.finish();
        looked_up(&outcome).map(|found| file_of(found).to_owned())
    };
    let same = file("open", &[("/etc/app/limits.conf", 30)]);
    assert_eq!(same.as_deref(), Some("/etc/app/limits.conf"));
    // Two in turns.
    let two = file("open", &[("/srv/a/x", 30), ("/srv/b/x", 40)]);
    assert_eq!(two.as_deref(), Some("/srv/b/x"));
    // Each is another one, or most are not told. (The builder has a long call of which that is not known.)
    let six = ["/srv/1", "/srv/2", "/srv/3", "/srv/4", "/srv/5", "/srv/6"];
    assert_eq!(file("open", &six.map(|path| (path, 2))), None);
    assert_eq!(file("open", &[("/srv/1", 1)]), None);
    assert_eq!(file("open", &[]), None);
    // The same name in different directories.
    assert!(file("open", &[("index", 20)]).is_some());
    assert_eq!(file("openat", &[("index", 20)]), None);
    // A few calls that take most of the time: the others may be of any file.
    assert_eq!(file("open", &[("/mnt/slow", 2_000)]), None);
    // Unless it is what is read; and not where others are read.
    let read = |path: &str, name: &str, calls: u64| {
        let (mut seen, tid) = opening("open", &[(path, calls)]);
        // (Too few to stand for all that is opened.)
        seen.file.syscall(1, tid, READ, 9 * ITEMS, 3 * US);
        sampled(&mut seen, tid, (name, 7), 20);
        looked_up(&seen.finish()).is_some()
    };
    assert!(read("/mnt/slow", "slow", 2_000) && read("/mnt/slow", "slow", 30));
    assert!(!read("/mnt/slow", "another", 30));
}

#[test]
fn what_is_written_anew_is_no_longer_the_same() {
    let (mut seen, tid) = opening("open", &[("/srv/state.tmp", 20)]);
    seen.file.syscall(1, tid, RENAME, ITEMS, US);
    assert!(looked_up(&seen.finish()).is_none());
}

/// A thread that asks about a file so often, which takes 20 µs each.
fn asking(function: &str, calls: u64, is_there: bool) -> Outcome {
    let mut seen = Seen::new();
    let stat = seen.function(function);
    seen.thread(0x100, stat, (STAT, calls, 20 * US));
    if !is_there {
        seen.file.syscalls.last_mut().expect("a row").errors = calls;
    }
    seen.pool.process.builder.text(seen.threads[0], 1, "/etc/app/more", (20, 1_200 * US));
    seen.finish()
}

#[test]
fn a_file_is_asked_about_again() {
    for (function, is_there) in [("stat", true), ("stat", false), ("localtime", true)] {
        let outcome = asking(function, ITEMS, is_there);
        let found = looked_up(&outcome).unwrap_or_else(|| panic!("{:#?}", outcome.findings));
        let FindingKind::LookedUpAgain { opened, in_vain, is_local_time, all_ns, .. } = found.kind
        else {
            panic!("{found:#?}")
        };
        let is_local = function == "localtime";
        assert_eq!((opened, in_vain, is_local_time), (0, !is_there, is_local));
        // (Of one of 21 long calls, the path is not known.)
        assert_eq!(all_ns.0 / MS, if is_local { 200 } else { 190 });
        assert_eq!(file_of(found), if is_local { "/etc/localtime" } else { "/etc/app/more" });
    }
    // 2 ms of a second, and 50 calls.
    assert!(looked_up(&asking("stat", 100, true)).is_none());
    let mut seen = Seen::new();
    let stat = seen.function("localtime");
    seen.thread(0x100, stat, (STAT, 50, 2 * MS));
    assert!(looked_up(&seen.finish()).is_none());
}

fn made(outcome: &Outcome) -> Vec<&Finding> {
    let found = outcome.findings.iter();
    found.filter(|finding| matches!(finding.kind, FindingKind::MadeAgain { .. })).collect()
}

/// A thread that calls a function so often, 200 ms in all, and looks at the clock there.
fn making(function: &str, times: u64) -> Outcome {
    let mut seen = Seen::new();
    let function = seen.function(function);
    seen.thread(0x100, function, (CLOCK, times, 200 * MS / times));
    seen.finish()
}

#[test]
fn a_pattern_is_compiled_again() {
    let outcome = making("regcomp", 1_000);
    let [found] = *made(&outcome) else { panic!("{:#?}", outcome.findings) };
    let FindingKind::MadeAgain { calls, all_ns, does, .. } = found.kind else {
        panic!("{found:#?}")
    };
    assert_eq!((calls, all_ns, does), (1_000, Ns(200 * MS), "makes a pattern"));
    assert_eq!((found.saves_ns, outcome.api(found.api)), (Ns(200 * MS), Some("regcomp")));
    // A program that prepares itself, and a function that is to be called for each item.
    assert!(made(&making("regcomp", 10)).is_empty());
    assert!(made(&making("fopen", 1_000)).is_empty());
    assert!(!made(&making("__newlocale", 1_000)).is_empty());
}

#[test]
fn what_is_made_inside_is_said_once() {
    let mut seen = Seen::new();
    let (outer, inner) = (seen.function("g_regex_new"), seen.function("pcre2_compile_8"));
    let thread = seen.pool.thread("worker", 0x100);
    let builder = &mut seen.pool.process.builder;
    for _ in 0..100 {
        builder.timeline(thread).enter(outer).work(100 * US).call(inner, 400 * US).leave();
    }
    builder.timeline(thread).work(100 * MS).end();
    seen.threads.push(thread);
    let outcome = seen.finish();
    let [found] = *made(&outcome) else { panic!("{:#?}", outcome.findings) };
    assert_eq!((found.saves_ns, outcome.api(found.api)), (Ns(50 * MS), Some("g_regex_new")));
}
