//! Recordings that were folded tell what they told before.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, UNIX_EPOCH};

use chase_analyzer::recorder::builder::{Builder, SyscallsBuilder, sample};
use chase_analyzer::recorder::layout::END_EXIT;
use chase_analyzer::recorder::reader::Recording;
use chase_analyzer::recorder::syscalls::{STATE_COMPLETE, STATE_OPEN};
use chase_analyzer::{Analysis, Ns, Selection, fold, load, scan_since};

/// A process, child of number 1000 if it is another one.
fn process(pid: u32, calls: u64) -> Vec<u8> {
    let mut builder = Builder::new();
    builder.header.pid = pid;
    builder.header.parent_pid = if pid == 1000 { 1 } else { 1000 };
    builder.header.process_start += u64::from(pid);
    builder.header.clock_start.ticks += u64::from(pid);
    builder.header.clock_start.monotonic_ns += u64::from(pid);
    let app = builder.executable("/usr/bin/app");
    let libc = builder.object("/lib/libc.so.6");
    let slot = builder.slot(app, Some(libc), "read");
    let main = builder.thread("app");
    builder.timeline(main).work(500).calls(slot, 100, calls).work(1_000_000);
    builder.end(END_EXIT, 0);
    builder.build()
}

fn write(directory: &Path, processes: u32) {
    for pid in 1000..1000 + processes {
        let name = format!("app.{pid}.chase");
        fs::write(directory.join(name), process(pid, u64::from(pid))).unwrap();
    }
}

/// Calls of each process, by its number.
fn calls(directory: &Path) -> Vec<(u32, u64)> {
    let loaded = load(directory).unwrap();
    assert!(loaded.failures.is_empty(), "{:?}", loaded.failures);
    let analysis = Analysis::new(&loaded.images, Selection::All);
    let mut all: Vec<_> =
        analysis.processes.iter().map(|process| (process.pid, process.totals.calls)).collect();
    all.sort_unstable();
    all
}

fn archives(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        entries.filter(|path| path.to_string_lossy().ends_with(".chase.tar.zst")).collect();
    found.sort();
    found
}

#[test]
fn nothing_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 30);
    let before = calls(directory.path());
    assert_eq!(before.len(), 30);
    let folded = fold(directory.path()).unwrap();
    assert_eq!(
        (folded.recordings, archives(directory.path())),
        (30, Vec::from_iter(folded.archive))
    );
    assert!(folded.bytes * 5 < folded.bytes_before, "{} of {}", folded.bytes, folded.bytes_before);
    assert_eq!(calls(directory.path()), before);
    // What comes later is read beside it, and may be folded too.
    fs::write(directory.path().join("app.1031.chase"), process(1031, 7)).unwrap();
    let more: Vec<_> = before.iter().copied().chain([(1031, 7)]).collect();
    assert_eq!(calls(directory.path()), more);
    assert_eq!(fold(directory.path()).unwrap().recordings, 1);
    assert_eq!((calls(directory.path()), archives(directory.path()).len()), (more, 2));
    assert!(fold(directory.path()).unwrap().archive.is_none());
}

#[test]
fn an_archive_from_before_a_run_is_not_read_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [directory.path().to_owned()];
    let members = |since| {
        let catalog = scan_since(&paths, since).unwrap();
        assert!(catalog.failures.is_empty(), "{:?}", catalog.failures);
        catalog.runs.iter().map(|run| run.members.len()).sum::<usize>()
    };
    let now = || Ns(UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    let before = now();
    write(directory.path(), 3);
    fold(directory.path()).unwrap();
    sleep(Duration::from_millis(2));
    let after = now();
    assert_eq!((members(Ns(0)), members(before), members(after)), (3, 3, 0));
    fs::write(directory.path().join("app.1031.chase"), process(1031, 7)).unwrap();
    assert_eq!((members(before), members(after)), (4, 1));
    // Whoever gives an archive another name hides when it was made.
    let archive = archives(directory.path()).remove(0);
    fs::rename(&archive, archive.with_file_name("mine.chase.tar.zst")).unwrap();
    assert_eq!(members(after), 4);
}

/// As after a fold that was killed before it removed anything.
#[test]
fn what_is_there_twice_counts_once() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 3);
    let before = calls(directory.path());
    fold(directory.path()).unwrap();
    write(directory.path(), 2);
    assert_eq!(calls(directory.path()), before);
}

/// Of programs without the library.
#[test]
fn files_of_processes_without_a_recording_are_folded_too() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 3);
    let file = |pid: u32, state: u32| {
        let mut syscalls = SyscallsBuilder::new(pid);
        (syscalls.header.state, syscalls.header.parent_pid) = (state, 1000);
        syscalls.header.began_ns += u64::from(pid);
        syscalls.name("static").syscall(0, pid, 0, u64::from(pid), 100);
        syscalls.build()
    };
    let put = |name: &str, bytes: Vec<u8>| fs::write(directory.path().join(name), bytes).unwrap();
    for pid in 1010..1040 {
        put(&format!("static.{pid}.chase.syscalls"), file(pid, STATE_COMPLETE));
    }
    put("app.1001.chase.syscalls", file(1001, STATE_COMPLETE));
    put("static.1050.chase.syscalls", file(1050, STATE_OPEN));
    let syscalls = || {
        let loaded = load(directory.path()).unwrap();
        assert!(loaded.failures.is_empty(), "{:?}", loaded.failures);
        let recorded = loaded.images.iter().filter(|image| image.is_recorded).count();
        let analysis = Analysis::new(&loaded.images, Selection::All);
        (loaded.images.len(), recorded, analysis.syscalls.totals.calls)
    };
    let before = syscalls();
    assert_eq!((before.0, before.1), (34, 3));
    assert_eq!(fold(directory.path()).unwrap().recordings, 33);
    // Which is still being written stays beside the archive.
    assert_eq!((fs::read_dir(directory.path()).unwrap().count(), syscalls()), (2, before));
    // As after a fold that was ended between the two files of a process, and another one after it.
    put("app.1001.chase.syscalls", file(1001, STATE_COMPLETE));
    assert_eq!(syscalls(), before);
    fold(directory.path()).unwrap();
    assert_eq!((archives(directory.path()).len(), syscalls()), (2, before));
}

#[test]
fn what_may_still_be_written_stays() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 2);
    // A companion is not done with it, or has not begun.
    let mut syscalls = SyscallsBuilder::new(1000);
    syscalls.header.state = STATE_OPEN;
    fs::write(directory.path().join("app.1000.chase.syscalls"), syscalls.build()).unwrap();
    let mut watched = sample();
    watched.header.pid = 2000;
    watched.meta("syscalls", "on");
    fs::write(directory.path().join("watched.2000.chase"), watched.build()).unwrap();
    fs::write(directory.path().join("damaged.1.chase"), b"no recording").unwrap();
    assert_eq!(fold(directory.path()).unwrap().recordings, 1);
    let left = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 5, "an archive, two recordings, a file of system calls, and what is none");
}

#[test]
fn a_damaged_archive_gives_what_is_before_the_damage() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 400);
    let archive = fold(directory.path()).unwrap().archive.unwrap();
    let bytes = fs::read(&archive).unwrap();
    fs::write(&archive, &bytes[..bytes.len() / 2]).unwrap();
    // (What one block holds is lost with it, so there may be none.)
    match load(directory.path()) {
        Ok(loaded) => assert!(!loaded.failures.is_empty() && loaded.images.len() < 400),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    fs::write(&archive, &bytes).unwrap();
    assert_eq!(load(directory.path()).unwrap().images.len(), 400);
}

#[test]
fn a_folded_recording_is_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = sample().build();
    fs::write(directory.path().join("sample.1000.chase"), &bytes).unwrap();
    fold(directory.path()).unwrap();
    let loaded = load(directory.path()).unwrap();
    let whole = Recording::parse(&bytes).unwrap();
    assert_eq!(loaded.images[0].recording.context_count(), whole.context_count());
    assert_eq!(loaded.images[0].recording.header(), whole.header());
}

/// A few kilobytes that unpack to a name, or to a recording, that would fill the memory or the disk.
#[test]
fn an_archive_that_unpacks_to_far_more_than_recordings_need_is_refused() {
    const HUGE: u64 = 70 << 20;
    for kind in [tar::EntryType::GNULongName, tar::EntryType::Regular] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("folded-1-1.chase.tar.zst");
        let mut packed = zstd::Encoder::new(fs::File::create(&path).unwrap(), 1).unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_path("app.1.chase").unwrap();
        header.set_size(HUGE);
        header.set_entry_type(kind);
        header.set_cksum();
        packed.write_all(header.as_bytes()).unwrap();
        std::io::copy(&mut std::io::repeat(b'a').take(HUGE), &mut packed).unwrap();
        packed.finish().unwrap();
        assert!(fs::metadata(&path).unwrap().len() < 64 << 10, "{kind:?}");
        let text = load(directory.path()).unwrap_err().to_string();
        assert!(text.contains("folded-1-1.chase.tar.zst"), "{kind:?}: {text}");
        let why = ["more is packed in it", "too large"];
        assert!(why.iter().any(|why| text.contains(why)), "{kind:?}: {text}");
    }
}
