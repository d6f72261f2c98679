//! `CHASE_BUDGET`: what costs too much is seen in windows, and estimated; all else stays exact.

use std::collections::HashMap;
use std::path::Path;

use chase_tests::compile::Build;
use chase_tests::recorded::{Process, Recording};
use chase_tests::steal;
use chase_tests::trial::Trial;

const TRAP: &str = "libtrap.so";
/// Far below what counting each call of the hot function costs.
const BUDGET: &str = "0.3%";
/// Where others take the processors, calls seem to cost little, or windows are late.
const ATTEMPTS: usize = 5;

fn program(flags: &str) -> std::path::PathBuf {
    Build::program("budget.c").flags(flags).build()
}

fn trial(program: &Path, how: &str) -> Trial {
    Trial::new(program).args([how, "made"]).hooked_env("CHASE_BUDGET", BUDGET)
}

/// Holds that all functions but the hot one are counted exactly; gives why the hot one's calls are not
/// estimated near what the program has told, if they are not.
fn check(process: &Process, told: &HashMap<String, u64>, who: &str) -> Result<(), String> {
    let of = |name: &str| told[&format!("{who}{name}")];
    // Plugins call the former too, before anybody can know of them.
    let others = if process.calls("libc.so", "dlopen") > 0 { 1 } else { 0 };
    for name in &["trap_add", "trap_empty"][others..] {
        let figures = process.figures(TRAP, name);
        assert_eq!((figures.calls, figures.estimated), (of(name), false), "{name}: {figures:?}");
    }
    is_near(process, of("trap_spin"))
}

fn is_near(process: &Process, made: u64) -> Result<(), String> {
    let hot = process.figures(TRAP, "trap_spin");
    // What could not be observed, because the machine was busy with others, is told.
    let observed = made as f64 * (1.0 - process.not_observed_share);
    let error = (hot.calls as f64 - observed).abs() / made as f64;
    if hot.estimated && error < 0.1 && hot.ci95 > 0 && (hot.ci95 as f64) < 0.5 * made as f64 {
        return Ok(());
    }
    Err(format!("{hot:?} of {made}, {observed} observed"))
}

fn hold(attempt: impl FnMut() -> Result<(), String>) {
    let failures = steal::attempts(ATTEMPTS, attempt);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn compare(trial: &Trial) {
    hold(|| check(trial.compare().only(), &trial.told("made"), ""));
}

#[test]
fn what_is_called_very_often_is_estimated() {
    for flags in ["-Wl,-z,lazy", "-Wl,-z,now", "-Wl,-z,now -fno-plt"] {
        compare(&trial(&program(flags), "plain"));
    }
}

/// More of its calls are made in half of a millisecond than a countdown can count.
#[test]
fn what_takes_next_to_no_time_is_estimated_too() {
    // Below what counting each call costs, and above what as many calls as fit into countdowns would.
    let program = program("");
    let trial = Trial::new(&program).args(["tiny", "made"]).hooked_env("CHASE_BUDGET", "10%");
    hold(|| {
        let recording = trial.compare();
        let (process, told) = (recording.only(), trial.told("made"));
        let (hot, made) = (process.figures(TRAP, "trap_add"), told["trap_add"]);
        let beside = process.figures(TRAP, "trap_empty");
        assert_eq!((beside.calls, beside.estimated), (told["trap_empty"], false), "{beside:?}");
        let off = hot.calls.abs_diff(made) as f64;
        let unseen = made as f64 * process.not_observed_share;
        if hot.estimated && off <= hot.ci95 as f64 + unseen {
            return Ok(());
        }
        Err(format!("{hot:?} of {made}, {unseen} not observed"))
    });
}

#[test]
fn by_several_threads_too() {
    for flags in ["", "-Wl,-z,now"] {
        compare(&trial(&program(flags), "threads"));
    }
}

#[test]
fn where_calls_are_only_counted() {
    compare(&trial(&program(""), "plain").hooked_env("CHASE_TIMING", "count"));
}

#[test]
fn a_fork_begins_anew() {
    let program = program("");
    let trial = trial(&program, "forks");
    hold(|| {
        let recording = trial.compare();
        assert_eq!(recording.processes.len(), 2);
        let told = trial.told("made");
        let who = |forked| if forked { "child_" } else { "" };
        recording.processes.iter().try_for_each(|it| check(it, &told, who(it.forked)))
    });
}

#[test]
fn while_libraries_come_and_go() {
    let plugin = Build::library("libplugin.c").flags("-DNUMBER=1").build();
    let program = program("");
    let trial = trial(&program, "loads").arg(&plugin);
    hold(|| {
        let recording = trial.compare();
        assert_eq!(recording.only().calls("libc.so", "dlclose"), 4);
        check(recording.only(), &trial.told("made"), "")
    });
}

#[test]
fn of_a_process_that_is_killed() {
    let program = program("");
    let trial = trial(&program, "killed");
    hold(|| {
        trial.compare_outcomes();
        let recording = Recording::load(&trial.output());
        is_near(recording.only(), trial.told("made")["trap_spin"])
    });
}

#[test]
fn one_that_nothing_is_called_beside_is_counted() {
    let program = program("");
    let trial = trial(&program, "alone");
    let recording = trial.compare();
    let hot = recording.only().figures(TRAP, "trap_spin");
    assert_eq!((hot.calls, hot.estimated), (trial.told("made")["trap_spin"], false));
}

#[test]
fn without_a_budget_nothing_is_estimated() {
    let program = program("");
    let trial = Trial::new(&program).args(["plain", "made"]);
    let recording = trial.compare();
    let (process, told) = (recording.only(), trial.told("made"));
    for (name, &made) in &told {
        let figures = process.figures(TRAP, name);
        assert_eq!((figures.calls, figures.estimated), (made, false), "{name}");
    }
}

#[test]
fn a_budget_that_makes_no_sense_is_none() {
    let values = Build::program("values.c").build();
    let sentence = "CHASE_BUDGET must be a share like 2% or 0.5%, up to 100%";
    for budget in ["0", "0%", "101%", "-1", "2.", ".5", "1.23456", "2 %", "%", "all", "1e1"] {
        let trial = Trial::new(&values).arg("10").hooked_env("CHASE_BUDGET", budget);
        trial.compare_outcomes();
        let outcome = trial.hooked_env("CHASE_VERBOSE", "1").hooked();
        let said = String::from_utf8_lossy(&outcome.stderr);
        assert!(said.contains(sentence), "{budget}: {said:?}");
    }
    for (budget, timing, said) in [
        ("2%", "all", "CHASE_BUDGET has no effect with CHASE_TIMING=all"),
        ("0.0001", "adaptive", ""),
        ("100", "count", ""),
        ("", "all", ""),
    ] {
        let trial = Trial::new(&values).arg("10").hooked_env("CHASE_VERBOSE", "1");
        let outcome =
            trial.hooked_env("CHASE_BUDGET", budget).hooked_env("CHASE_TIMING", timing).hooked();
        let found = String::from_utf8_lossy(&outcome.stderr);
        assert!(found.contains(said), "{budget}: {found:?}");
        assert_eq!(found.contains("no budget"), !said.is_empty(), "{budget}: {found:?}");
    }
}
