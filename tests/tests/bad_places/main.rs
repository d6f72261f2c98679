//! Programs and surroundings that leave a tool nothing to stand on. Whatever happens to the
//! recording, the program must run as it does bare.

mod filters;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use chase_recorder::layout::{STOP_NO_MEMORY, STOP_NO_SPACE, STOP_NONE};
use chase_tests::compile::Build;
use chase_tests::control_group::{Limit, NO_GROUPS};
use chase_tests::need;
use chase_tests::recorded::{Process, Recording};
use chase_tests::trial::Trial;

const TRAP: &str = "libtrap.so";

/// `steady.c` calls `trap_nest` so often in each of its rounds of work.
const PER_ROUND: u64 = 100 * 101 / 2;
const ROUNDS: u64 = 52;
/// Where its recording has to grow.
const MANY_ROUNDS: u64 = 702;

fn steady() -> PathBuf {
    Build::program("steady.c").build()
}

fn parent(recording: &Recording) -> &Process {
    recording.processes.iter().find(|process| !process.forked).expect("a recording of the parent")
}

/// Every call of the parent was recorded.
fn check_all(recording: &Recording) {
    check_rounds(recording, ROUNDS);
}

fn check_rounds(recording: &Recording, rounds: u64) {
    let process = parent(recording);
    let calls = rounds * PER_ROUND;
    process.expect(&[(TRAP, "trap_nest", calls), (TRAP, "trap_empty", calls)]);
    assert_eq!(process.stop_reason, STOP_NONE);
}

/// What was recorded may be incomplete, but not wrong.
fn check_part(recording: &Recording) {
    for process in &recording.processes {
        assert!(process.calls(TRAP, "trap_nest") <= ROUNDS * PER_ROUND);
        assert!(process.calls(TRAP, "trap_empty") <= ROUNDS * PER_ROUND);
    }
}

#[test]
fn all_file_descriptors_closed() {
    let program = Build::program("descriptors.c").build();
    let trial = Trial::new(program).arg("list");
    let _ = trial.bare();
    let bare = trial.read("list");
    let recording = trial.compare();
    assert_eq!(trial.read("list"), bare, "file descriptors differ under the hook");
    let process = parent(&recording);
    process.expect(&[(TRAP, "trap_empty", 1000)]);
    let child = recording.processes.iter().find(|process| process.forked);
    child.expect("a recording of the child").expect(&[(TRAP, "trap_empty", 1000)]);
}

#[test]
fn nothing_happens_to_a_steady_program() {
    let recording = Trial::new(steady()).arg("nothing").compare();
    check_all(&recording);
    let child = recording.processes.iter().find(|process| process.forked).expect("a child");
    child.expect(&[(TRAP, "trap_nest", PER_ROUND), (TRAP, "trap_not", 1)]);
}

#[test]
fn privileges_dropped() {
    if need::root("dropping privileges") {
        for how in ["setuid", "daemon"] {
            check_rounds(&Trial::new(steady()).arg(how).compare(), MANY_ROUNDS);
        }
    }
}

#[test]
fn root_directory_changed() {
    if need::root("chroot") {
        check_rounds(&Trial::new(steady()).args(["chroot", "."]).compare(), MANY_ROUNDS);
    }
}

#[test]
fn working_directory_changed() {
    let recording =
        Trial::new(steady()).arg("cwd").hooked_env("CHASE_OUTPUT", "here").compare_at("here");
    check_all(&recording);
    assert_eq!(recording.processes.len(), 2, "the child's recording is beside its parent's");
}

#[test]
fn working_directory_removed() {
    let in_root = Path::new("/chase-of-nowhere");
    assert!(!in_root.exists());
    let trial = Trial::new(steady())
        .arg("nothing")
        .hooked_env("CHASE_OUTPUT", "chase-of-nowhere")
        .inside_shell("mkdir -p gone; cd gone; rmdir ../gone; exec \"$@\"");
    trial.compare_outcomes();
    let was_made = std::fs::remove_dir_all(in_root).is_ok();
    assert!(!was_made, "recorded in the root directory");
}

#[test]
fn recording_removed_while_running() {
    let trial = Trial::new(steady());
    let output = trial.output();
    trial.args(["remove".as_ref(), output.as_os_str()]).compare_outcomes();
}

#[test]
fn no_file_may_be_opened() {
    check_all(&Trial::new(steady()).arg("nofile").compare());
}

#[test]
fn few_files_may_be_opened() {
    let trial = Trial::new(steady()).arg("nothing").inside(&["prlimit", "--nofile=4:4"]);
    check_all(&trial.compare());
}

#[test]
fn no_file_may_grow() {
    // The program's own output is not what the limit is to hit.
    for (limit, what) in [("unlimited", "fsize"), ("16", "nothing"), ("0", "nothing")] {
        let script = format!("ulimit -f {limit}; exec \"$@\" >/dev/null");
        let trial = Trial::new(steady()).arg(what).inside_shell(&script);
        trial.compare_outcomes();
        check_part(&Recording::load(&trial.output()));
    }
}

/// Runs a program with little memory of a kind that `prlimit` limits.
fn with_little(kind: &str) {
    // The hook needs some for itself; a program with less than that to spare may run out of it,
    // but in its own way.
    // (Frames and their pads are 16 MB of it, of which few are touched.)
    let spare = 32;
    let limited = |megabytes: u64| {
        let limit = format!("--{kind}={}", megabytes << 20);
        Trial::new(steady()).arg("nothing").inside(&["prlimit", &limit])
    };
    for megabytes in [8, 10, 12, 16, 20, 24, 28, 32, 48, 64, 100, 200] {
        let trial = limited(megabytes);
        if limited(megabytes - spare.min(megabytes)).bare().status.success() {
            trial.compare_outcomes();
        } else {
            let outcome = trial.hooked();
            assert_eq!(outcome.status.signal(), None, "{megabytes} MB: {outcome:?}");
        }
        let recording = Recording::load(&trial.output());
        check_part(&recording);
        for process in &recording.processes {
            assert!([STOP_NONE, STOP_NO_MEMORY, STOP_NO_SPACE].contains(&process.stop_reason));
        }
    }
}

#[test]
fn little_address_space() {
    with_little("as");
}

#[test]
fn little_memory_of_its_own() {
    with_little("data");
}

/// What else can be limited, as far as the program itself runs with it.
#[test]
fn other_limits() {
    const LIMITS: [&str; 12] = [
        "--core=0",
        "--cpu=300",
        "--locks=0",
        "--memlock=0",
        "--msgqueue=0",
        "--nice=0",
        "--nproc=2",
        "--rss=0",
        "--rtprio=0",
        "--rttime=300000000",
        "--sigpending=0",
        "--stack=131072",
    ];
    for limit in LIMITS {
        let recording = Trial::new(steady()).arg("nothing").inside(&["prlimit", limit]).compare();
        check_all(&recording);
    }
}

#[test]
fn every_descriptor_overwritten() {
    let trial = Trial::new(steady()).arg("dup2").inside(&["prlimit", "--nofile=1024:1024"]);
    check_all(&trial.compare());
}

/// A link or a file that somebody has put where the recording is to be is left alone.
#[test]
fn a_link_where_the_recording_is_to_be() {
    for put in ["ln -s \"$PWD/victim\" $place", "cp victim $place"] {
        let trial = Trial::new(steady()).arg("nothing");
        let output = trial.output();
        let place = format!("{}/steady.$$.chase", output.display());
        let script = format!("place={place}; echo mine >victim; {put} 2>/dev/null; exec \"$@\"");
        let trial = trial.inside_shell(&script);
        trial.compare_outcomes();
        assert_eq!(trial.read("victim"), "mine\n");
        let theirs = theirs(&output);
        assert_eq!(theirs.len(), 1, "{put}: {theirs:?}");
        assert!(theirs[0].with_extension("1.chase").is_file(), "{put}: no other name was taken");
        std::fs::remove_file(&theirs[0]).expect("removed");
        check_all(&Recording::load(&output));
    }
}

/// What is not chase's in a directory of recordings, and what leads there.
fn theirs(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the directory of recordings");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| std::fs::read(path).is_ok_and(|bytes| bytes == b"mine\n")).collect()
}

/// A recording grows by its path. If that leads to another file by then, or by a link, even to the recording itself, it stops.
#[test]
fn a_recording_that_was_replaced_before_it_grows() {
    for (how, number) in [("file", 1), ("link", 2), ("own", 1)] {
        let trial = Trial::new(steady()).arg(how);
        let output = trial.output();
        let trial = trial.arg(&output);
        trial.compare_outcomes();
        let theirs = theirs(&output);
        assert_eq!(theirs.len(), number, "{how}: {theirs:?}");
        theirs.iter().for_each(|path| std::fs::remove_file(path).expect("removed"));
        let entries = std::fs::read_dir(&output).expect("the directory of recordings");
        for link in
            entries.map(|entry| entry.expect("an entry").path()).filter(|it| it.is_symlink())
        {
            std::fs::remove_file(link).expect("removed");
        }
        let recording = Recording::load(&output);
        let parent = parent(&recording);
        assert_eq!(parent.stop_reason, STOP_NO_SPACE, "{how}");
        assert!(parent.calls(TRAP, "trap_nest") > 2 * PER_ROUND, "{how}");
    }
}

/// A group of processes that may not have more than so many megabytes: `"$@"` in it, by a shell script.
fn in_group(megabytes: u64) -> String {
    let most = &format!("{megabytes}M");
    let (older, newer) = (("memory.limit_in_bytes", &**most), ("memory.max", &**most));
    Limit { controller: "memory", older, newer }.script()
}

#[test]
fn little_memory_for_all_processes_of_a_group() {
    let what = "a limit of a group's memory";
    if !need::root(what) {
        return;
    }
    let trial = |megabytes| Trial::new(steady()).arg("nothing").inside_shell(&in_group(megabytes));
    if trial(64).bare().status.code() == Some(NO_GROUPS) {
        return need::skip(what, "no groups of processes can be made here");
    }
    for megabytes in [64, 32] {
        check_all(&trial(megabytes).compare());
    }
    // With hardly any, the kernel kills who asks for more, bare or not; what was recorded until then can be read.
    for megabytes in [1, 2, 4, 8] {
        let trial = trial(megabytes);
        let outcome = trial.hooked();
        let is_killed =
            outcome.status.code() == Some(128 + 9) || outcome.status.signal() == Some(9);
        assert!(is_killed || outcome.status.success(), "{megabytes} MB: {outcome:?}");
        let load = if is_killed { Recording::load_of_killed } else { Recording::load };
        check_part(&load(&trial.output()));
    }
}

/// Compares the outcomes; what was recorded, and copied to `output`, may end where there was no more space.
fn check_where_it_was_full(trial: &Trial, output: &Path) {
    trial.compare_outcomes();
    let recording = Recording::load(output);
    check_part(&recording);
    let space = [STOP_NONE, STOP_NO_SPACE];
    assert!(recording.processes.iter().all(|process| space.contains(&process.stop_reason)));
}

#[test]
fn a_full_disk() {
    let what = "a full disk";
    if !need::root(what) || need::tool(what, "unshare").is_none() {
        return;
    }
    let program = steady();
    for size in ["4k", "16k", "64k", "128k", "256k", "1m", "2m"] {
        let trial = Trial::new(&program).arg("nothing");
        let output = trial.output();
        // The recording is copied to where it can be read before the mount goes.
        let script = format!(
            "mkdir small; mount -t tmpfs -o size={size} tmpfs small; \
             \"$@\"; s=$?; cp small/* {} 2>/dev/null; exit $s",
            output.display()
        );
        let trial = trial
            .inside(&["unshare", "-m", "sh", "-c", &script, "sh"])
            .hooked_env("CHASE_OUTPUT", "small");
        check_where_it_was_full(&trial, &output);
    }
}

/// A file system that allocates late, unlike the one in memory.
#[test]
fn a_full_disk_of_ext4() {
    let what = "a full disk with ext4";
    if !need::root(what) || need::tool(what, "mkfs.ext4").is_none() {
        return;
    }
    for kilobytes in [512, 1024, 2048] {
        let trial = Trial::new(steady()).arg("nothing");
        let output = trial.output();
        let script = format!(
            "mkdir small; truncate -s {kilobytes}k image; mkfs.ext4 -q -O ^has_journal image && \
             mount -o loop image small || exit 77; \
             \"$@\"; s=$?; cp small/*.chase {} 2>/dev/null; umount small; exit $s",
            output.display()
        );
        let trial = trial
            .inside(&["unshare", "-m", "sh", "-c", &script, "sh"])
            .hooked_env("CHASE_OUTPUT", "small");
        if trial.bare().status.code() == Some(NO_GROUPS) {
            return need::skip(what, "no image can be mounted here");
        }
        check_where_it_was_full(&trial, &output);
    }
}

/// A file system that writes elsewhere each time, if it is not asked to do otherwise. It is full before the program ends, and has written out
/// what was recorded until then.
#[test]
fn a_disk_of_btrfs_that_fills_up() {
    let what = "a disk with btrfs that fills up";
    if !need::root(what) || need::tool(what, "mkfs.btrfs").is_none() {
        return;
    }
    let trial = Trial::new(steady()).args(["fill", "small"]);
    let output = trial.output();
    let script = format!(
        "mkdir small; truncate -s 200M image; mkfs.btrfs -q image >&2 && mount -o loop image small && \
         modern=$(printf '%s\\n' 6.17 $(uname -r) | sort -V | head -1) && [ $modern = 6.17 ] || exit 77; \
         \"$@\"; s=$?; rm small/filling; cp small/*.chase {} 2>/dev/null; umount small; exit $s",
        output.display()
    );
    let trial = trial
        .inside(&["unshare", "-m", "sh", "-c", &script, "sh"])
        .hooked_env("CHASE_OUTPUT", "small");
    if trial.bare().status.code() == Some(NO_GROUPS) {
        return need::skip(what, "no image can be mounted here, or Linux is older than 6.17");
    }
    check_where_it_was_full(&trial, &output);
}

#[test]
fn nowhere_to_write() {
    for place in ["/proc/nowhere", "/dev/null", "/dev/null/below", "/sys", ""] {
        Trial::new(steady()).arg("nothing").hooked_env("CHASE_OUTPUT", place).compare_outcomes();
    }
    let what = "a read-only directory";
    if need::root(what) && need::tool(what, "unshare").is_some() {
        let script = "mkdir -p ro; mount -t tmpfs -o ro tmpfs ro; exec \"$@\"";
        Trial::new(steady())
            .arg("nothing")
            .inside(&["unshare", "-m", "sh", "-c", script, "sh"])
            .hooked_env("CHASE_OUTPUT", "ro")
            .compare_outcomes();
    }
}

#[test]
fn directories_are_made() {
    let trial = Trial::new(steady()).arg("nothing").hooked_env("CHASE_OUTPUT", "new/below/it");
    check_all(&trial.compare_at("new/below/it"));
}

#[test]
fn no_proc() {
    let what = "no /proc";
    if !need::root(what) || need::tool(what, "unshare").is_none() {
        return;
    }
    let script = "umount -l /proc; exec \"$@\"";
    let trial =
        Trial::new(steady()).arg("nothing").inside(&["unshare", "-m", "sh", "-c", script, "sh"]);
    check_all(&trial.compare());
}

#[test]
fn new_code_is_never_writable_and_may_be_forbidden() {
    let calls = 300_000;
    let check = |trial: Trial, is_allowed: bool| {
        let recording = trial.compare();
        recording.only().expect(&[(TRAP, "trap_add", calls)]);
        let told = trial.told("code");
        assert_eq!(told["writable_code"], 0);
        assert_eq!(told["new_code"] > 0, is_allowed, "{} bytes", told["new_code"]);
        // Code that was moved to its place while memory was short would be nowhere: the move would need as much once
        // more, after what was in that place is gone.
        assert_eq!(told["accounted_code"], 0, "bytes");
    };
    let trial =
        || Trial::new(Build::program("new_code.c").build()).args([&calls.to_string(), "code"]);
    check(trial(), true);
    let forbid = Build::program("no_new_code.c").without_libtrap().build();
    let forbid = forbid.to_str().expect("a path of text");
    let complaint = trial().inside(&[forbid]).bare().stderr;
    if String::from_utf8_lossy(&complaint).contains("PR_SET_MDWE") {
        return need::skip("a process that may not make code", "the kernel is older than 6.3");
    }
    check(trial().inside(&[forbid]), false);
}

#[test]
fn a_memory_limit_set_later_leaves_room() {
    let script = "ulimit -v 2000000; numbers=$(seq 1 20000); echo ${#numbers}";
    drop(Trial::new("/bin/bash").arg("-c").arg(script).compare());
}
