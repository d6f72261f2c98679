//! How processes begin, multiply and end.

use std::os::unix::process::ExitStatusExt;

use chase_recorder::layout::{
    END_ABORT, END_EXEC, END_EXIT, END_IMMEDIATE, END_NONE, ORIGIN_EXEC, STOP_NONE, longest_block,
};
use chase_tests::compile::Build;
use chase_tests::need;
use chase_tests::recorded::Recording;
use chase_tests::release;
use chase_tests::report::document;
use chase_tests::trial::Trial;
use serde_json::Value;

const TRAP: &str = "libtrap.so";

#[test]
fn vfork_and_posix_spawn() {
    let rounds = 100;
    let program = Build::program("vfork.c").build();
    let recording = Trial::new(program).arg(rounds.to_string()).compare();
    let parents = recording.of("vfork");
    assert_eq!(parents.len(), 1, "a vfork's child has no recording of its own");
    parents[0].expect(&[
        ("libc.so", "vfork", 3 * rounds),
        ("libc.so", "waitpid", 4 * rounds),
        ("libc.so", "posix_spawn", rounds),
        (TRAP, "trap_leaf", rounds),
        (TRAP, "trap_call", rounds / 2),
        // By children, who run in their parent's memory.
        (TRAP, "trap_empty", 2 * rounds),
        (TRAP, "trap_add", rounds),
        ("libc.so", "execve", 2 * rounds),
        ("libc.so", "_exit", 2 * rounds),
    ]);
    parents[0].expect_nothing_open(TRAP);
    // Neither what a child calls last nor an exec that fails is anybody's caller.
    for api in ["trap_empty", "trap_add", "waitpid", "execve"] {
        let callers = parents[0].callers(api);
        let known = |(name, _): &(&str, u64)| ["", "trap_call"].contains(name);
        assert!(callers.iter().all(known), "{api}: {callers:?}");
    }
    assert_eq!(parents[0].end, (END_EXIT, 0), "a child's end is not its parent's");
    assert_eq!(recording.of("true").len() as u64, 2 * rounds);
}

#[test]
fn fork_tree() {
    let program = Build::program("fork_tree.c").build();
    let recording = Trial::new(program).arg("4").compare();
    assert_eq!(recording.processes.len(), 1 + 3 + 9 + 27 + 81);
    let mut per_level = [0; 5];
    for process in &recording.processes {
        let level = level_of(&recording, process.pid);
        per_level[level] += 1;
        process.expect(&[
            (TRAP, "trap_add", 100 + level as u64),
            ("libc.so", "fork", if level == 4 { 0 } else { 3 }),
            ("libc.so", "waitpid", if level == 4 { 0 } else { 3 }),
        ]);
        assert_eq!(process.forked, level > 0);
        assert_eq!(process.end.0, END_EXIT, "level {level}");
        assert_eq!(process.stop_reason, STOP_NONE);
        assert_eq!(process.threads.len(), 1, "level {level}");
    }
    assert_eq!(per_level, [1, 3, 9, 27, 81]);
}

#[test]
fn a_long_command_line_leaves_room_for_what_is_noted_after_it() {
    let program = Build::program("fork_tree.c").build();
    let trial = Trial::new(program).arg("x".repeat(9000)).arg("1");
    let _ = trial.compare();
    let run = chase_analyzer::load(&trial.output()).expect("recordings");
    assert_eq!(run.images.len(), 4);
    for image in &run.images {
        let value = |key| image.recording.meta_value(key).unwrap_or_default().into_owned();
        assert!(value("command").contains("xxxx"));
        assert!(
            !value("syscalls").is_empty() && !value("events").is_empty(),
            "{}",
            value("command")
        );
    }
}

#[test]
fn sandboxes() {
    let program = Build::program("sandbox.c").without_libtrap().build();
    let trial = Trial::new(program);
    if String::from_utf8_lossy(&trial.bare().stderr).contains("clone") {
        return need::skip("processes in user namespaces", "the kernel forbids them");
    }
    let recording = trial.compare();
    assert_eq!(recording.processes.len(), 1 + 2 * 3);
    let run = chase_analyzer::load(&trial.output()).expect("recordings");
    assert_eq!((run.images.len(), run.other_runs), (7, 0), "one run has them all");
}

/// How many forks a process is away from the first one.
fn level_of(recording: &Recording, pid: u32) -> usize {
    let process = recording.processes.iter().find(|process| process.pid == pid);
    process.map_or(
        0,
        |process| {
            if process.forked { 1 + level_of(recording, process.parent_pid) } else { 0 }
        },
    )
}

#[test]
fn forks_while_other_threads_call() {
    let forks = 100;
    let program = Build::program("fork_threads.c").build();
    let trial = Trial::new(program).args([&forks.to_string(), "counts"]);
    let recording = trial.compare();
    let (children, parents): (Vec<_>, Vec<_>) =
        recording.processes.iter().partition(|process| process.forked);
    assert_eq!((children.len(), parents.len()), (forks, 1));
    parents[0].expect(&[(TRAP, "trap_add", trial.told("counts")["calls"])]);
    for child in children {
        child.expect(&[(TRAP, "trap_leaf", 11), (TRAP, "trap_add", 0)]);
        assert_eq!(child.created_threads(), 1, "{:?}", child.threads);
        assert_eq!(child.end, (END_IMMEDIATE, 5));
    }
}

#[test]
fn fork_handlers_and_forks_without_them() {
    let forks = 20;
    let program = Build::program("atfork.c").build();
    let recording = Trial::new(program).arg(forks.to_string()).compare();
    let first = recording.processes.iter().find(|process| !process.forked);
    // What children call, and be they unnoticed, must not count for their parent.
    first.expect("a recording of the first process").expect(&[
        (TRAP, "trap_empty", forks),
        (TRAP, "trap_add", forks),
        (TRAP, "trap_leaf", 0),
        (TRAP, "trap_halve", forks),
        ("libc.so", "fork", forks),
        ("libc.so", "_Fork", if release::has_fork_without_handlers() { forks } else { 0 }),
        ("libc.so", "clone", forks),
    ]);
    // The child's handler runs in the child.
    assert_eq!(recording.calls(TRAP, "trap_leaf"), forks);
}

#[test]
fn forks_that_nobody_announces() {
    let calls = 30_000;
    let program = Build::program("unannounced.c").build();
    let ways = ["instruction", "_Fork", "syscall", "clone", "deep", "in_thread", "threads"];
    for way in
        ways.into_iter().filter(|way| *way != "_Fork" || release::has_fork_without_handlers())
    {
        for timing in ["adaptive", "all", "count"] {
            let trial = Trial::new(&program).args([way, &calls.to_string()]);
            let recording = trial.hooked_env("CHASE_TIMING", timing).compare();
            let (children, parents): (Vec<_>, Vec<_>) =
                recording.processes.iter().partition(|process| process.forked);
            assert_eq!((children.len(), parents.len()), (1, 1), "{way}, {timing}");
            let (child, parent) = (children[0], parents[0]);
            assert_eq!(child.parent_pid, parent.pid);
            let more = u64::from(way == "in_thread");
            let nests = if way == "deep" { 201 } else { 0 };
            parent.expect(&[
                (TRAP, "trap_add", (3 + more) * calls),
                (TRAP, "trap_call", u64::from(nests == 0)),
                (TRAP, "trap_nest", nests + 3 * (1 + more)),
                ("libc.so", "waitpid", 1),
            ]);
            parent.expect_nothing_open(TRAP);
            // (The child of clone returns, into the C library.)
            let returns = u64::from(way != "clone");
            child.expect(&[(TRAP, "trap_call", 0), (TRAP, "trap_nest", 3 * returns)]);
            let made = (2 + returns + u64::from(way == "threads")) * calls;
            let found = child.calls(TRAP, "trap_add");
            let most = if timing == "all" { 0 } else { child.unseen.calls_since_fork };
            let is_estimate = child.figures(TRAP, "trap_add").estimated;
            assert_eq!(is_estimate, most + child.latest_calls > 0, "{way}, {timing}");
            // Where the end was not seen, either.
            let latest = child.latest_calls;
            assert!(
                (made.saturating_sub(most + latest)..=made + latest).contains(&found),
                "{way}, {timing}: {found} of {made}, but for {most} and {latest}"
            );
            child.expect_nothing_open(TRAP);
        }
    }
}

/// Runs `killed.c` and holds the recording against what it had counted when it ended.
fn ends(how: &str, signal: Option<i32>, status: Option<i32>, end: (u32, i32)) {
    let program = Build::program("killed.c").build();
    // Of sampled calls, a few are missing after a kill: see `sampling.rs`.
    let trial = Trial::new(program).args([how, "123456", "made"]).hooked_env("CHASE_TIMING", "all");
    let hooked = trial.compare_outcomes();
    let recording = Recording::load(&trial.output());
    assert_eq!((hooked.status.signal(), hooked.status.code()), (signal, status), "{how}");

    let process = recording.only();
    process.expect(&[(TRAP, "trap_empty", 123_456), (TRAP, "trap_call", 1)]);
    assert_eq!(process.end, end, "{how}");
    assert_eq!(process.of(TRAP, "trap_call").map(|api| api.open).sum::<u64>(), 1, "{how}");
}

#[test]
fn ends_by_a_signal() {
    ends("kill", Some(libc::SIGKILL), None, (END_NONE, 0));
    ends("fault", Some(libc::SIGSEGV), None, (END_NONE, 0));
    ends("abort", Some(libc::SIGABRT), None, (END_ABORT, 0));
}

#[test]
fn ends_by_exit_in_a_callback() {
    ends("_exit", None, Some(43), (END_IMMEDIATE, 43));
    ends("quick_exit", None, Some(44), (END_IMMEDIATE, 44));
    ends("exit", None, Some(45), (END_EXIT, 45));
}

/// Ends that nobody announces, of a process that ends with 5.
#[test]
fn ends_by_system_calls() {
    let calls = 123_456;
    let program = Build::program("raw_exit.c").build();
    for how in ["exit_group", "exit", "clone", "instruction", "thread"] {
        for timing in ["adaptive", "all", "count"] {
            let trial = Trial::new(&program).args([how, &calls.to_string()]);
            let hooked = trial.hooked_env("CHASE_TIMING", timing);
            assert_eq!(hooked.compare_outcomes().status.code(), Some(5), "{how}, {timing}");
            let recording = Recording::load(&hooked.output());
            if how == "instruction" || how == "thread" {
                let process = recording.only();
                assert_eq!(process.end.0, END_NONE);
                let made = if how == "thread" { 2 * calls } else { calls };
                let figures = process.figures(TRAP, "trap_add");
                assert!(figures.calls.abs_diff(made) <= figures.ci95, "{timing}: {figures:?}");
                assert_eq!(figures.estimated, process.latest_calls > 0, "{timing}");
                assert!(figures.estimated || timing != "count");
                // Of that thread alone whose end was not seen.
                let most = longest_block(figures.calls);
                assert!(figures.ci95 < most, "{timing}: {figures:?}");
                assert!(figures.ci95 <= process.latest_calls, "{timing}");
                continue;
            }
            assert_eq!(recording.processes.len(), if how == "clone" { 2 } else { 1 }, "{how}");
            for process in &recording.processes {
                let is_first = how == "clone" && !process.forked;
                let end = if is_first { END_EXIT } else { END_IMMEDIATE };
                assert_eq!(process.end, (end, 5), "{how}, {timing}");
                process.expect(&[(TRAP, "trap_add", calls)]);
                process.expect_nothing_open("libc.so");
                assert!(!process.figures(TRAP, "trap_add").estimated, "{how}, {timing}");
            }
        }
    }
}

#[test]
fn killed_while_four_threads_call() {
    let program = Build::program("killed.c").build();
    for _ in 0..5 {
        let trial = Trial::new(&program).args(["killall", "1000", "made"]);
        let trial = trial.hooked_env("CHASE_TIMING", "all");
        let hooked = trial.hooked();
        assert_eq!(hooked.status.signal(), Some(libc::SIGKILL));
        let made = std::fs::read(trial.work().join("made")).expect("read the program's counts");
        let made: Vec<u64> = made
            .chunks_exact(8)
            .take(4)
            .map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
            .collect();
        let recording = Recording::load(&trial.output());
        let process = recording.only();
        process.expect(&[(TRAP, "trap_empty", 1000)]);
        // Each thread may have been killed between a call and its own counting of it.
        let (counted, recorded) = (made[1..].iter().sum(), process.calls(TRAP, "trap_leaf"));
        assert!((counted..=counted + 3).contains(&recorded), "{recorded} of {counted}");
        assert_eq!(process.threads.len(), 4);
    }
}

#[test]
fn exec_again_and_again() {
    let program = Build::program("exec_chain.c").build();
    let recording = Trial::new(program).arg("5").compare();
    assert_eq!(recording.processes.len(), 6);
    assert!(recording.processes.iter().all(|process| process.pid == recording.processes[0].pid));
    // The first is told the greatest number.
    for (n, process) in (0..).zip(recording.processes.iter().rev()) {
        assert_eq!(process.calls(TRAP, "trap_empty"), 10 + n);
        assert!(!process.forked, "origin is {ORIGIN_EXEC}");
        let last = n == 0;
        process.expect(&[
            (TRAP, "trap_leaf", u64::from(!last)),
            ("libc.so", "execl", if last { 0 } else { 2 }),
        ]);
        assert_eq!(process.end.0, if last { END_EXIT } else { END_EXEC });
    }
}

#[test]
fn calls_from_before_main_until_after_it() {
    let program = Build::program("life.cpp").build();
    let recording = Trial::new(program).compare();
    let process = recording.only();
    process.expect(&[
        (TRAP, "trap_add", 1),
        (TRAP, "trap_not", 1),
        (TRAP, "trap_halve", 10),
        (TRAP, "trap_empty", 1),
        (TRAP, "trap_negate", 1),
        (TRAP, "trap_leaf", 1),
        // The main thread's goes first of all.
        (TRAP, "trap_complement", 11),
    ]);
    assert_eq!(process.created_threads(), 10);
    assert_eq!(process.end, (END_EXIT, 0));
}

#[test]
fn calls_of_a_library_that_starts_early() {
    let trap = chase_tests::compile::libtrap();
    let early = Build::library("libearly.c").with(&trap).build();
    let program = Build::program("early.c").without_libtrap().with(&early).build();
    let recording = Trial::new(program).compare();
    let process = recording.only();
    process.expect(&[("libearly.so", "early_nothing", 1), (TRAP, "trap_small", 1)]);
    // The hook may be initialised after the library, which then is not hooked yet.
    assert!(process.calls(TRAP, "trap_errno") <= 1);
}

/// A fork has the hook's locks from before the C library takes its own. The thread takes one of them, and may be in the midst of a
/// change at the fork, so that the child can't be recorded, which is said.
#[test]
fn a_fork_waits_for_a_thread_that_calls_with_a_lock_of_the_c_librarys() {
    let program = Build::program("fork_in_flush.c").build();
    let recording = Trial::new(program).compare();
    let parent = recording.processes.iter().find(|process| !process.forked);
    let parent = parent.expect("a recording of the parent");
    parent.expect(&[(TRAP, "trap_nest", 3000), (TRAP, "trap_add", 1)]);
    let children = recording.processes.iter().filter(|process| process.forked);
    let recorded: u64 = children.map(|child| child.calls(TRAP, "trap_empty")).sum();
    assert_eq!(recorded + parent.unseen.forks, 1);
}

/// Servers write into the titles of their processes what these are for: memory that the kernel shows of each.
#[test]
fn processes_are_grouped_by_their_titles() {
    let program = Build::program("titles.c").without_libtrap().build();
    let trial = Trial::new(program).arg("room".repeat(64));
    assert_eq!(trial.compare().processes.len(), 5);
    let threads = document(&trial.output(), "threads");
    let groups = threads["groups"].as_array().expect("groups");
    let label = |group: &Value| group["label"].as_str().unwrap_or_default().to_owned();
    let mut found: Vec<_> =
        groups.iter().map(|group| (label(group), group["threads"].as_u64())).collect();
    found.sort();
    let expected =
        [("server: cleaner", 1), ("server: main process", 1), ("server: worker process", 3)];
    assert_eq!(found, expected.map(|(label, threads)| (label.to_owned(), Some(threads))));
}
