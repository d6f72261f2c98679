//! Other libraries that stand before the C library, as preloaded ones do: they find the function that they wrap by who calls
//! them (`RTLD_NEXT`), take stacks, or replace the allocator. In either order.

use std::path::{Path, PathBuf};

use chase_tests::compile::Build;
use chase_tests::need::package;
use chase_tests::recorded::Recording;
use chase_tests::run::Outcome;
use chase_tests::trial::Trial;

const TRAP: &str = "libtrap.so";
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";

fn library(of: &str, name: &str) -> PathBuf {
    package(of, &format!("{LIBRARIES}/{name}"))
}

/// Runs a program with the library before and after the hook.
fn in_either_order(trial: impl Fn() -> Trial, library: &Path, check: impl Fn(&Recording)) {
    check(&trial().preload_before(library).compare());
    check(&trial().preload_after(library).compare());
}

/// Threads, exceptions through library calls: as they are, with this library and these variables.
fn programs_run_with(library: &Path, variables: &[(&str, &str)]) {
    // What a profiler says of itself at the end.
    let is_programs = |line: &&str| !line.starts_with("PROFILE: ");
    let with = |trial: Trial| {
        let trial =
            trial.normalise(move |said| said.split_inclusive('\n').filter(is_programs).collect());
        variables.iter().fold(trial, |trial, (key, value)| trial.env(key, value))
    };
    let threads = Build::program("threads.c").build();
    let trial = || with(Trial::new(&threads).args(["40", "40", "100"]));
    in_either_order(trial, library, |recording| {
        recording.only().expect(&[(TRAP, "trap_add", 4_000), (TRAP, "trap_leaf", 4_000)]);
    });
    let exceptions = Build::program("exception.cpp").build();
    let trial = || with(Trial::new(&exceptions).args(["2", "200"]));
    in_either_order(trial, library, |recording| {
        recording.only().expect(&[(TRAP, "trap_call", 800), (TRAP, "trap_empty", 1_600)]);
    });
}

#[test]
fn mimalloc() {
    programs_run_with(&library("libmimalloc2.0", "libmimalloc.so.2"), &[]);
}

#[test]
fn tcmalloc() {
    programs_run_with(&library("libtcmalloc-minimal4", "libtcmalloc_minimal.so.4"), &[]);
}

/// With its profile of the heap, it takes the stack of an allocation now and then; here, of each.
#[test]
fn tcmalloc_with_its_heap_profile() {
    let tcmalloc = library("libgoogle-perftools4", "libtcmalloc.so.4");
    let heap = |flags: &str| {
        let program = Build::program("heap.c").flags(flags).without_libtrap().build();
        // How much is in use is rounded, and no part of what the program does.
        let is_its_own = |line: &&str| !line.starts_with("Dumping heap profile");
        let without =
            move |said: &str| said.lines().filter(is_its_own).collect::<Vec<_>>().join("\n");
        let trial = Trial::new(program).env("HEAPPROFILE", "heap").normalise(without);
        trial.env("TCMALLOC_SAMPLE_PARAMETER", "1")
    };
    for flags in ["-no-pie -fno-omit-frame-pointer", "-no-pie -fomit-frame-pointer"] {
        in_either_order(
            || heap(flags),
            &tcmalloc,
            |recording| {
                let processes = recording.processes.iter();
                let calls = processes.map(|it| it.calls_from("heap", "libtcmalloc", "malloc"));
                assert_eq!(calls.sum::<u64>(), 402, "{flags}");
            },
        );
    }
    // Where frame pointers are kept, the stacks are those of a run without chase, too.
    for preload in [Trial::preload_before, Trial::preload_after] {
        let trial = preload(heap("-no-pie -fno-omit-frame-pointer"), &tcmalloc);
        let stack = |outcome: Outcome| {
            assert!(outcome.status.success(), "{outcome:?}");
            own_frames(&trial.read("heap.0001.heap"))
        };
        let bare = stack(trial.bare());
        assert!(bare.len() > 1, "{bare:?}");
        assert_eq!(stack(trial.hooked()), bare);
    }
}

/// The return addresses in the program of the stack that has allocated three million bytes.
fn own_frames(profile: &str) -> Vec<u64> {
    //      1:  3000000 [     1:  3000000] @ 0x401234 0x401567 0x7f...
    let line = profile.lines().find(|line| line.contains(" 3000000 ["));
    let (_, stack) =
        line.and_then(|line| line.split_once('@')).unwrap_or_else(|| panic!("{profile}"));
    let addresses = stack.split_whitespace().filter_map(|it| it.strip_prefix("0x"));
    let addresses = addresses.map(|digits| u64::from_str_radix(digits, 16).expect("an address"));
    addresses.filter(|address| *address < 0x1000_0000).collect()
}

/// It takes a stack 4,000 times a second, in a signal handler.
#[test]
fn a_profiler_of_gperftools() {
    let profiler = library("libgoogle-perftools4", "libprofiler.so.0");
    programs_run_with(&profiler, &[("CPUPROFILE", "profile"), ("CPUPROFILE_FREQUENCY", "4000")]);
}

/// It takes the stack of each allocation.
#[test]
fn heaptrack() {
    let preload = package("libheaptrack", "/usr/lib/heaptrack/libheaptrack_preload.so");
    programs_run_with(&preload, &[("DUMP_HEAPTRACK_OUTPUT", "/dev/null")]);
}

#[test]
fn eatmydata() {
    let eatmydata = library("libeatmydata1", "libeatmydata.so");
    programs_run_with(&eatmydata, &[]);
    // `fdatasync` fails for a pipe; theirs does nothing.
    let trial = || Trial::new("/bin/sh").args(["-c", "echo | sync -d /dev/stdin; echo $?"]);
    assert!(!String::from_utf8_lossy(&trial().bare().stdout).ends_with("0\n"), "it would fail");
    in_either_order(trial, &eatmydata, |recording| assert!(!recording.of("sync").is_empty()));
    let hooked = trial().preload_after(&eatmydata).hooked();
    assert_eq!(String::from_utf8_lossy(&hooked.stdout), "0\n");
}

#[test]
fn faketime() {
    let faketime = library("libfaketime", "faketime/libfaketime.so.1");
    let trial = || {
        Trial::new("/bin/date")
            .arg("+%F %T")
            .env("FAKETIME", "2001-02-03 04:05:06")
            .env("TZ", "UTC")
    };
    in_either_order(trial, &faketime, |recording| assert_eq!(recording.processes.len(), 1));
    let hooked = trial().preload_after(&faketime).hooked();
    assert_eq!(String::from_utf8_lossy(&hooked.stdout), "2001-02-03 04:05:06\n");
}

/// Its library is preloaded by a script, before ours.
#[test]
fn fakeroot() {
    let fakeroot = package("fakeroot", "/usr/bin/fakeroot");
    let script = "touch file; chown 1:2 file; stat -c %u:%g file; id -u";
    let trial = Trial::new(fakeroot).args(["sh", "-c", script]);
    let recording = trial.compare();
    assert!(!recording.of("stat").is_empty());
    assert_eq!(String::from_utf8_lossy(&trial.hooked().stdout), "1:2\n0\n");
}
