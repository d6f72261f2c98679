//! Threads: many, short ones, and all the ways in which they end.

use chase_recorder::layout::END_IMMEDIATE;
use chase_tests::compile::{Build, libtrap};
use chase_tests::release;
use chase_tests::report::document;
use chase_tests::trial::Trial;

const TRAP: &str = "libtrap.so";

#[test]
fn a_thousand_threads_at_once() {
    let (threads, calls) = (1_000, 1_000);
    let program = Build::program("threads.c").build();
    let arguments = [threads, 0, calls].map(|n: u64| n.to_string());
    let recording = Trial::new(program).args(arguments).compare();
    let process = recording.only();
    process.expect(&[
        (TRAP, "trap_add", threads * calls),
        ("libc.so", "pthread_create", threads),
        ("libc.so", "pthread_join", threads),
        ("libc.so", "pthread_barrier_wait", 2 * threads + 2),
    ]);
    assert_eq!(process.created_threads() as u64, threads);
    assert_eq!(process.unseen.threads, 0);
    let created = || process.threads.iter().filter(|thread| thread.created);
    assert!(created().all(|thread| thread.ended), "the end of a thread was not seen");
    assert!(created().all(|thread| thread.has_start_routine));
}

/// So does a program that is linked with its own `libstdc++` of that time.
#[test]
fn by_a_program_that_passes_on_what_creates_them() {
    let program = Build::program("threads.c").flags("-DPASSED_ON").build();
    let recording = Trial::new(program).args(["10", "20", "100"]).compare();
    let process = recording.only();
    process.expect(&[(TRAP, "trap_add", 1_000), ("libc.so", "pthread_create", 30)]);
    assert_eq!(process.created_threads(), 30);
}

#[test]
fn ten_thousand_short_threads() {
    let (threads, calls) = (10_000, 20);
    let program = Build::program("threads.c").build();
    let arguments = [0, threads, calls].map(|n: u64| n.to_string());
    let recording = Trial::new(program).args(arguments).compare();
    let process = recording.only();
    process.expect(&[
        (TRAP, "trap_leaf", threads * calls),
        ("libc.so", "pthread_create", threads),
        ("libc.so", "pthread_join", threads),
    ]);
    assert_eq!(process.created_threads() as u64, threads);
    assert!(recording.disk_bytes < 100 << 20, "{} bytes on disk", recording.disk_bytes);
}

#[test]
fn that_vanish() {
    let (threads, calls) = (10, 5_000);
    let program = Build::program("vanish.c").build();
    for how in ["function", "instruction"] {
        let arguments = [how.to_owned(), threads.to_string(), calls.to_string()];
        let recording = Trial::new(&program).args(arguments).compare();
        let process = recording.only();
        process.expect(&[(TRAP, "trap_add", threads * calls)]);
        assert_eq!(process.created_threads() as u64, threads);
        assert!(!process.figures(TRAP, "trap_add").estimated, "{how}");
        let ended = process.threads.iter().filter(|thread| thread.ended).count() as u64;
        assert_eq!(ended, if how == "function" { threads } else { 0 });
    }
    // Where another thread has the memory of one that has vanished, its latest calls are not known.
    for timing in ["adaptive", "all", "count"] {
        let trial = Trial::new(&program).args(["joined", &threads.to_string(), &calls.to_string()]);
        let recording = trial.hooked_env("CHASE_TIMING", timing).compare();
        let figures = recording.only().figures(TRAP, "trap_add");
        let wrong = figures.calls.abs_diff(threads * calls);
        assert!(wrong <= figures.ci95, "{timing}: {figures:?}");
        assert_eq!(figures.estimated, figures.ci95 > 0, "{timing}");
        // (Countdowns that are far from the thread are there still.)
        assert!(figures.ci95 <= 256 * threads, "{timing}");
    }
}

fn cancelled(flags: &str) {
    let rounds = 200;
    let program = Build::program("cancel.c").flags(flags).build();
    let recording = Trial::new(program).arg(rounds.to_string()).compare();
    let process = recording.only();
    process.expect(&[
        // deferred, tested, asynchronous, leaving and leaving_c11
        (TRAP, "trap_call", 5 * rounds),
        // deferred (twice), asynchronous, disabled, leaving
        (TRAP, "trap_empty", 5 * rounds),
        // the destructor of the key, in deferred and leaving
        (TRAP, "trap_add", 2 * rounds),
        (TRAP, "trap_forever", rounds),
        ("libc.so", "pthread_cancel", 5 * rounds),
        ("libc.so", "pthread_create", 6 * rounds),
        ("libc.so", "thrd_create", 2 * rounds),
        ("libc.so", "pthread_exit", rounds),
        ("libc.so", "thrd_exit", rounds),
    ]);
    process.expect_unwound(&[
        (TRAP, "trap_call", 5 * rounds),
        (TRAP, "trap_empty", 0),
        (TRAP, "trap_add", 0),
        (TRAP, "trap_forever", rounds),
    ]);
    process.expect_nothing_open(TRAP);
    let created = || process.threads.iter().filter(|thread| thread.created);
    assert_eq!(created().count() as u64, 8 * rounds);
    assert!(created().all(|thread| thread.ended), "the end of a thread was not seen");
}

#[test]
fn cancelled_with_cleanup_by_longjmp() {
    cancelled("-fno-exceptions");
}

#[test]
fn cancelled_with_cleanup_by_unwinding() {
    cancelled("-fexceptions");
}

#[test]
fn a_task_that_shares_its_creators_thread_data() {
    let program = Build::program("shared_clone.c").without_libtrap().build();
    drop(Trial::new(program).compare());
}

#[test]
fn tasks_with_thread_data_of_their_own() {
    for timing in ["adaptive", "all", "count"] {
        let program = Build::program("own_tls.c").without_libtrap().build();
        let recording = Trial::new(program).hooked_env("CHASE_TIMING", timing).compare();
        let process = recording.only();
        process.expect(&[("libc.so", "qsort", 200_000), ("libc.so", "waitpid", 18)]);
        process.expect_unwound(&[("libc.so", "syscall", 13)]);
        process.expect_nothing_open("libc.so");
    }
}

#[test]
fn tasks_made_through_pointers() {
    let calls = 30_000;
    let program = Build::program("clone_pointers.c").build();
    for way in ["copied", "waits", "shared", "silent", "borrowed"] {
        for timing in ["adaptive", "all", "count"] {
            let trial = Trial::new(&program).args([way, &calls.to_string()]);
            let recording = trial.hooked_env("CHASE_TIMING", timing).compare();
            let (children, parents): (Vec<_>, Vec<_>) =
                recording.processes.iter().partition(|process| process.forked);
            assert_eq!(parents.len(), 1, "{way}, {timing}");
            if ["shared", "silent"].contains(&way) {
                // Neither task is recorded from then on.
                assert!(parents[0].calls(TRAP, "trap_add") < calls, "{way}, {timing}");
                assert!(parents[0].unseen.threads > 0, "{way}, {timing}");
                continue;
            }
            // What borrows its parent's thread data while that waits is recorded with it.
            let borrows = u64::from(way == "borrowed");
            assert_eq!(children.len() as u64, 3 * (1 - borrows), "{way}, {timing}");
            parents[0].expect(&[(TRAP, "trap_add", (3 + 3 * borrows) * calls)]);
            for child in children {
                child.expect(&[(TRAP, "trap_add", calls)]);
                assert_eq!(child.end, (END_IMMEDIATE, 7), "{way}, {timing}");
            }
        }
    }
}

/// The constructor of a library that is being loaded makes a thread before its calls can be seen. What that thread runs, the C
/// library knows; its own code is the library's.
#[test]
fn that_nobody_saw_being_made_are_known_by_what_they_run() {
    let library = Build::library("libworker.c").with(&libtrap()).build();
    let program = Build::program("worker.c").flags("-ldl").build();
    let trial = Trial::new(program).arg(&library);
    let recording = trial.compare();
    recording.only().expect(&[(TRAP, "trap_empty", 10)]);
    let threads = document(&trial.output(), "threads");
    let rows = threads["threads"].as_array().expect("a list");
    let found = rows.iter().find(|row| row["origin"] == "found").expect("a thread in mid-life");
    let start = &found["start_routine"];
    if release::has_libpthread() {
        // It says where that is in its file's symbol table, which is not loaded. So nobody knows whose code the thread runs.
        assert!(start.is_null(), "{start}");
        return;
    }
    assert_eq!(start["function"], "work");
    assert!(
        start["object"].as_str().is_some_and(|path| path.ends_with("/libworker.so")),
        "{start}"
    );
    let libs = document(&trial.output(), "libs");
    let row = libs["libraries"].as_array().expect("a list").iter();
    let mut row = row.filter(|row| row["name"] == "libworker.so" && row["kind"] == "library");
    let own_ns = row.next().map_or(0, |row| row["own_code_ns"].as_u64().expect("a number"));
    assert!(own_ns > 1_000_000, "{own_ns} ns of {found}");
}
