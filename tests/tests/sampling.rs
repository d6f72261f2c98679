//! Calls of which only some are timed: counts stay exact, and estimates are near the truth.

use std::collections::HashMap;
use std::path::Path;

use chase_recorder::layout::longest_block;
use chase_tests::compile::Build;
use chase_tests::recorded::Recording;
use chase_tests::trial::Trial;
use chase_tests::{need, steal};

const TRAP: &str = "libtrap.so";
const MODES: [&str; 3] = ["adaptive", "all", "count"];

/// Runs `exact.c` in each mode and holds what it says of its calls against the recording.
fn exact(how: &str, check: impl Fn(&Recording, &HashMap<String, u64>)) {
    exact_of(&Build::program("exact.c").build(), how, check);
}

fn exact_of(program: &Path, how: &str, check: impl Fn(&Recording, &HashMap<String, u64>)) {
    for mode in MODES {
        let trial = Trial::new(program).args([how, "made"]).hooked_env("CHASE_TIMING", mode);
        let hooked = trial.compare();
        let told = trial.told("made");
        check(&hooked, &told);
    }
}

#[test]
fn threads_that_end_in_mid_block() {
    exact("threads", |recording, told| {
        let process = recording.only();
        process.expect(&[
            (TRAP, "trap_empty", told["trap_empty"]),
            (TRAP, "trap_add", told["trap_add"]),
        ]);
        process.expect_nothing_open(TRAP);
    });
}

/// The stubs rely on where thread-local storage is, as far as it is there.
#[test]
fn where_the_program_has_much_thread_local_storage() {
    let large = Build::program("exact.c").named("exact-large").flags("-DOWN_STORAGE=4096").build();
    exact_of(&large, "threads", |recording, told| {
        recording.only().expect(&[
            (TRAP, "trap_empty", told["trap_empty"]),
            (TRAP, "trap_add", told["trap_add"]),
        ]);
    });
    exact_of(&large, "children", |recording, told| {
        recording.only().expect(&[
            (TRAP, "trap_call", told["trap_call"]),
            (TRAP, "trap_add", told["trap_add"]),
        ]);
    });
}

#[test]
fn a_thread_that_is_cancelled_anywhere() {
    exact("cancelled", |recording, told| {
        let found = recording.only().calls(TRAP, "trap_add");
        // It may have been cancelled between a call and its own counting of it.
        assert!((told["trap_add"]..=told["trap_add"] + 1).contains(&found), "{found}: {told:?}");
    });
}

#[test]
fn a_fork_in_mid_block() {
    exact("forks", |recording, told| {
        let of = |forked| recording.processes.iter().find(|process| process.forked == forked);
        let parent = of(false).expect("a recording of the parent");
        parent.expect(&[(TRAP, "trap_empty", told["trap_empty"])]);
        let child = of(true).expect("a recording of the child");
        child.expect(&[(TRAP, "trap_empty", told["child"])]);
    });
}

#[test]
fn an_exec_in_mid_block_and_one_that_fails() {
    exact("becomes", |recording, told| {
        let mut calls: Vec<_> =
            recording.processes.iter().map(|process| process.calls(TRAP, "trap_empty")).collect();
        calls.sort_unstable();
        assert_eq!(calls, [told["trap_empty"], told["first"]]);
    });
}

#[test]
fn destructors_after_the_end() {
    exact("ends", |recording, told| {
        recording.only().expect(&[
            (TRAP, "trap_empty", told["trap_empty"]),
            (TRAP, "trap_halve", told["trap_halve"]),
        ]);
    });
}

#[test]
fn libraries_loaded_in_mid_block() {
    exact("loads", |recording, told| {
        recording.only().expect(&[(TRAP, "trap_empty", told["trap_empty"])]);
    });
}

#[test]
fn a_jump_out_of_what_was_an_even_leaf() {
    exact("jumps", |recording, told| {
        let process = recording.only();
        process.expect(&[
            (TRAP, "trap_call", told["trap_call"]),
            ("libc.so", "siglongjmp", told["jumped"]),
        ]);
        let unwound = process.unwound(TRAP, "trap_call");
        assert!(unwound <= told["jumped"], "{unwound} of {}", told["jumped"]);
    });
}

#[test]
fn coroutines_that_leave_an_even_leaf_on_another_thread() {
    exact("coroutines", |recording, told| {
        let process = recording.only();
        process.expect(&[
            (TRAP, "trap_call", told["trap_call"]),
            (TRAP, "trap_empty", told["trap_empty"]),
        ]);
    });
}

#[test]
fn a_leaf_that_is_none_any_more() {
    exact("children", |recording, told| {
        recording.only().expect(&[
            (TRAP, "trap_call", told["trap_call"]),
            (TRAP, "trap_add", told["trap_add"]),
        ]);
    });
}

/// Its calls get frames, lose them, and may get them again.
#[test]
fn a_leaf_only_most_of_the_time() {
    exact("turns", |recording, told| {
        recording.only().expect(&[
            (TRAP, "trap_call", told["trap_call"]),
            (TRAP, "trap_add", told["trap_add"]),
        ]);
    });
}

#[test]
fn handlers_that_jump_from_anywhere() {
    exact("handlers", |recording, told| {
        let found = recording.only().calls(TRAP, "trap_empty");
        let (announced, escapes) = (told["announced"], told["escapes"]);
        // Each may have prevented the call that the program had just announced.
        assert!((announced - escapes..=announced).contains(&found), "{found}: {told:?}");
    });
}

/// What timing may take of a thread's time is a part of the time that it runs: a server's thread mostly waits, so its calls are
/// far apart, and timing them all would take a large part of what it does.
#[test]
fn a_thread_that_mostly_waits() {
    let trial = Trial::new(Build::program("exact.c").build()).args(["waiting", "made"]);
    let recording = trial.compare();
    let (process, made) = (recording.only(), trial.told("made")["trap_add"]);
    process.expect(&[(TRAP, "trap_add", made)]);
    let timed = process.figures(TRAP, "trap_add").timed;
    assert!(timed < made / 4, "{timed} of {made} calls were timed");
}

const CALLS: u64 = 1_234_567;

/// What is missing of the calls of `killed.c`, which is killed by `how`.
fn missing_when(how: &str, timing: &str) -> u64 {
    let program = Build::program("killed.c").build();
    let trial = Trial::new(program).args([how, &CALLS.to_string(), "made"]);
    let trial = trial.hooked_env("CHASE_TIMING", timing);
    trial.compare_outcomes();
    let recording = Recording::load(&trial.output());
    let missing = CALLS.abs_diff(recording.only().calls(TRAP, "trap_empty"));
    assert!(missing <= recording.only().latest_calls, "{how}: the report says how many");
    missing
}

#[test]
fn less_than_a_block_is_missing_after_a_kill() {
    assert!(missing_when("kill", "adaptive") < longest_block(CALLS));
    assert!(missing_when("fault", "adaptive") < longest_block(CALLS));
    assert!(missing_when("kill", "count") < longest_block(CALLS));
    assert_eq!(missing_when("kill", "all"), 0);
    for end in ["exit", "_exit", "quick_exit", "abort"] {
        assert_eq!(missing_when(end, "adaptive"), 0, "{end}");
    }
}

/// A sample takes longer where caches have less of what it needs, so each is measured.
#[test]
fn what_samples_cost_is_measured() {
    const INTERRUPTED: f64 = 10_000.0;
    let trial = Trial::new(Build::program("killed.c").build()).args(["exit", "1234567", "made"]);
    let recording = trial.compare();
    let [thread] = &recording.only().threads[..] else { panic!("one thread") };
    let (cost, warm) = thread.sample_cost.expect("a cost");
    assert!(cost > warm / 2.0 && cost < INTERRUPTED, "{cost} ticks, {warm} at the start");
}

/// Most of the time of scripted calls that others may have had the processor.
const MOST_TAKEN: f64 = 0.02;

/// Total time of the scripted calls in a run with this timing, as a multiple of what the program
/// knows of it, without what others took of the processor meanwhile: that is in all calls that are timed, and
/// no estimate tells it. `None` if that was much, or the program was preempted.
fn of_the_truth(program: &std::path::Path, script: [&str; 3], timing: &str) -> Option<f64> {
    let [kind, threads, calls] = script;
    let arguments = [kind, threads, calls, "told"];
    let trial = Trial::new(program).args(arguments).hooked_env("CHASE_TIMING", timing);
    let recording = trial.compare();
    let process = recording.only();
    let number = |text: &str| text.parse::<u64>().expect("a number");
    process.expect(&[("libscript.so", "script_spin", number(threads) * number(calls))]);
    let told = trial.told("told");
    let found = process.self_ns("libscript.so", "script_spin");
    let (total, taken) = (told["total_ns"] as f64, told["taken_ns"] as f64);
    let of_others = if timing == "all" { taken } else { 0.0 };
    let is_alone = told["preempted"] == 0 && taken <= MOST_TAKEN * total;
    is_alone.then(|| (found - of_others) / (total - taken))
}

/// Counts are exact whatever the calls are like, and estimates have no bias: in the median of some
/// runs they are as near to what the program knows as when all calls are timed. (How far single runs
/// are off depends on what else the machine does: `cargo xtask bench --only accuracy` tells.)
///
/// The median of seven runs is near only if four are: where a biased estimate is near in one run of five, that is in 3.3 % of
/// medians, and in 9.7 % one of three is: a false pass. Where there is no bias and single runs are near with a probability of 60 %,
/// none of three medians is in 2.4 %, with 70 % in 0.2 %: a false alarm (binomial tails; what the host disturbs is tried again).
fn near_the_truth(kind: &str, threads: u64, calls: u64) {
    const PAIRS: usize = 7;
    const ROUNDS: usize = 3;
    let library = Build::library("libscript.c").flags("-O1").build();
    let program = Build::program("script.c").flags("-O1 -lm").with(&library).build();
    let (threads, calls) = (threads.to_string(), calls.to_string());
    let mut is_told = false;
    let failures = steal::attempts(ROUNDS, || {
        let mut found = [Vec::new(), Vec::new()];
        for _ in 0..PAIRS {
            for (timing, found) in ["adaptive", "all"].into_iter().zip(&mut found) {
                found.extend(of_the_truth(&program, [kind, &threads, &calls], timing));
            }
        }
        let [adaptive, all] = found.map(|mut ratios| {
            ratios.sort_by(f64::total_cmp);
            ratios.get(ratios.len() / 2).copied()
        });
        let Some((adaptive, all)) = adaptive.zip(all) else {
            return Err("preempted in every run".to_owned());
        };
        is_told = true;
        // Where another machine uses the processor's core, timed calls take longer than was measured at the start, which shows
        // where all are timed; what samples take is measured all the time.
        let [adaptive_off, all_off] = [adaptive, all].map(|ratio| (ratio - 1.0).abs());
        let is_nearer = adaptive_off <= 0.05 && adaptive_off < all_off;
        if (adaptive / all - 1.0).abs() <= 0.05 || is_nearer {
            return Ok(());
        }
        Err(format!("adaptive {adaptive:.3}, all {all:.3} times the truth"))
    });
    if !failures.is_empty() && !is_told {
        return need::skip(kind, "the program was preempted in every run");
    }
    assert!(failures.is_empty(), "{kind}: {failures:#?}");
}

#[test]
fn even_calls() {
    near_the_truth("even", 1, 400_000);
}

#[test]
fn calls_that_grow_longer() {
    near_the_truth("drift", 1, 300_000);
}

#[test]
fn calls_that_are_longer_in_bursts() {
    near_the_truth("bursts", 1, 400_000);
}

#[test]
fn calls_of_two_kinds() {
    near_the_truth("bimodal", 1, 400_000);
}

#[test]
fn calls_with_the_period_of_a_block() {
    // (A sample that seems interrupted counts little until others like it have come: of 400,000 calls, the estimate lacks 3 %.)
    near_the_truth("periodic", 1, 1_600_000);
}

#[test]
fn calls_with_a_heavy_tail() {
    // (Of few samples of a heavy tail, the median of estimates is below their mean: of 200,000 calls, by 2 to 3 %.)
    near_the_truth("heavy", 1, 400_000);
}

#[test]
fn calls_that_differ_between_threads() {
    near_the_truth("threads", 3, 200_000);
}
