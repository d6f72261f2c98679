//! Programs with one thing wrong, or nothing, and all that `chase-report` may say of them.
//!
//! The programs are in `programs/known/`, each with its answer in its first comment. They tell the
//! truth about themselves in a file: how much would be saved, and which threads are concerned.
//! The report must say that within 5 %, name those threads and the function, and say nothing else.
//! Half of the programs are built without symbols.

use std::collections::BTreeSet;
use std::path::PathBuf;

use chase_tests::compile::{Build, programs};
use chase_tests::report::summary;
use chase_tests::trial::Trial;
use chase_tests::{need, steal};
use serde_json::Value;

/// Others on the machine may make a balanced program unbalanced; no more than this.
/// Runs that must be good, of how many; `good_of` has the odds.
const GOOD: usize = 2;
const ATTEMPTS: usize = 8;

/// What is expected of a finding.
struct Expected {
    kind: &'static str,
    api: Option<&'static str>,
    /// Threads of the group, and how its name begins.
    group: (u64, &'static str),
}

fn expected(
    kind: &'static str,
    api: &'static str,
    threads: u64,
    group: &'static str,
) -> Vec<Expected> {
    let api = (!api.is_empty()).then_some(api);
    vec![Expected { kind, api, group: (threads, group) }]
}

fn libknown() -> PathBuf {
    Build::library("known/libknown.c").named("libknown.so").flags("-O2").build()
}

/// A program of `programs/known/`, under another name.
fn known(source: &str, name: &str, flags: &str) -> PathBuf {
    let program = Build::program(&format!("known/{source}")).without_libtrap().named(name);
    program.flags(flags).with(&libknown()).build()
}

/// The same without symbols.
fn stripped(source: &str, name: &str, flags: &str) -> PathBuf {
    let strip = if source.ends_with(".rs") { "-Cstrip=symbols" } else { "-s" };
    known(source, name, &format!("{flags} {strip}"))
}

fn python(script: &str) -> Option<Trial> {
    let python = need::tool(script, "python3")?;
    let shim = Build::library("known/libshim.c").named("libshim.so").with(&libknown()).build();
    let trial = Trial::new(python)
        .args([programs().join("known").join(script)])
        .env("SHIM", &shim)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    Some(trial)
}

/// Runs a program under the hook until the report says what is expected; shows what it said else.
fn hold(trial: &Trial, expected: &[Expected]) {
    let failures = steal::good_of(GOOD, ATTEMPTS, || {
        let outcome = trial.hooked();
        assert!(outcome.status.success(), "{outcome:?}");
        let report = summary(&trial.output());
        let truth = std::fs::read_to_string(trial.work().join("truth")).unwrap_or_default();
        check(&report, &truth, expected)
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn check(report: &Value, truth: &str, expected: &[Expected]) -> Result<(), String> {
    let found = report["findings"].as_array().expect("findings");
    let texts: Vec<_> = found.iter().map(|finding| finding["text"].to_string()).collect();
    let fail = |what: String| Err(format!("{what}; said: {texts:#?}; truth:\n{truth}"));
    if found.len() != expected.len() {
        return fail(format!("{} findings, not {}", found.len(), expected.len()));
    }
    let told = |what: &str| -> Vec<u64> {
        let lines = truth.lines().filter_map(|line| line.split_once(' '));
        lines.filter(|(name, _)| *name == what).map(|(_, n)| n.parse().expect("a number")).collect()
    };
    for (finding, expected) in found.iter().zip(expected) {
        if finding["kind"] != expected.kind || finding["symbol"].as_str() != expected.api {
            return fail(format!("not {} in {:?}", expected.kind, expected.api));
        }
        let label = finding["group"].as_str().unwrap_or_default();
        let groups = report["groups"].as_array().expect("groups");
        let group = groups.iter().find(|group| group["label"] == label).expect("its group");
        if group["threads"] != expected.group.0 || !label.starts_with(expected.group.1) {
            return fail(format!("group {label} of {}", group["threads"]));
        }
        let tids = finding["threads"].as_array().expect("threads").iter();
        let tids: BTreeSet<u64> = tids.filter_map(|thread| thread["tid"].as_u64()).collect();
        let concerned: BTreeSet<u64> = told("thread").into_iter().collect();
        if expected.kind == "sub-groups" {
            continue;
        }
        if !concerned.is_empty() && tids != concerned {
            return fail(format!("threads {tids:?}, not {concerned:?}"));
        }
        let (saves, truth) = (finding["saves_ns"].as_f64().expect("a time"), told("saves_ns")[0]);
        if (saves / truth as f64 - 1.0).abs() > 0.05 {
            return fail(format!("saves {saves} ns, in truth {truth}"));
        }
        let said = finding["text"].as_str().unwrap_or_default();
        if !said.contains(expected.api.unwrap_or("own code")) {
            return fail(format!("no function is named in: {said}"));
        }
    }
    Ok(())
}

#[test]
fn one_slow_thread_of_8() {
    let program = known("slow_thread.c", "slow_8", "");
    hold(&Trial::new(program), &expected("slow-threads", "known_parse", 8, "worker"));
}

#[test]
fn one_slow_thread_of_8_without_symbols() {
    let program = stripped("slow_thread.c", "slow_8s", "");
    hold(&Trial::new(program), &expected("slow-threads", "known_parse", 8, "slow_8s+0x"));
}

#[test]
fn one_slow_thread_of_64() {
    let program = stripped("slow_thread.c", "slow_64", "-DTHREADS=64");
    hold(&Trial::new(program), &expected("slow-threads", "known_parse", 64, "slow_64+0x"));
}

#[test]
fn one_slow_thread_of_1000() {
    let program = known("slow_thread.c", "slow_1000", "-DTHREADS=1000");
    hold(&Trial::new(program), &expected("slow-threads", "known_parse", 1000, "worker"));
}

#[test]
fn one_slow_thread_of_8_that_wait_in_between() {
    let program = known("slow_thread.c", "slow_waits", "-DWAITS");
    hold(&Trial::new(program), &expected("slow-threads", "known_parse", 8, "worker"));
}

#[test]
fn one_slow_thread_of_64_that_wait_in_between() {
    let program = stripped("slow_thread.c", "slow_64_waits", "-DWAITS -DTHREADS=64");
    hold(&Trial::new(program), &expected("slow-threads", "known_parse", 64, "slow_64_waits+0x"));
}

#[test]
fn a_thread_that_is_slow_in_its_own_code() {
    let program = known("slow_own.c", "slow_own", "");
    hold(&Trial::new(program), &expected("slow-threads", "", 6, "worker"));
}

#[test]
fn a_slow_thread_in_cpp() {
    let program = known("slow_thread.cpp", "slow_cpp", "");
    hold(&Trial::new(program), &expected("slow-threads", "known_pack", 8, ""));
}

#[test]
fn a_slow_thread_in_rust() {
    if !need::rust("a_slow_thread_in_rust") {
        return;
    }
    let program = stripped("slow_thread.rs", "slow_rs", "");
    hold(&Trial::new(program), &expected("slow-threads", "known_parse", 12, ""));
}

#[test]
fn a_slow_thread_in_python() {
    let Some(trial) = python("slow_thread.py") else { return };
    hold(&trial, &expected("slow-threads", "known_parse", 6, ""));
}

#[test]
fn a_slow_first_call() {
    let program = stripped("slow_first.c", "slow_first", "");
    hold(
        &Trial::new(program),
        &expected("slow-first-call", "known_parse", 1, "main of slow_first"),
    );
}

#[test]
fn a_slow_first_call_in_one_thread() {
    let program = known("slow_first_thread.cpp", "slow_first_thread", "");
    hold(&Trial::new(program), &expected("slow-first-call", "known_pack", 5, ""));
}

#[test]
fn a_slow_first_call_in_python() {
    let Some(trial) = python("slow_first.py") else { return };
    hold(&trial, &expected("slow-first-call", "known_parse", 1, "main of slow_first.py"));
}

#[test]
fn one_call_in_a_thousand() {
    let program = stripped("rare.c", "rare", "");
    hold(&Trial::new(program), &expected("rare-slow-calls", "known_pack", 2, "rare+0x"));
}

#[test]
fn rare_slow_calls_in_rust() {
    if !need::rust("rare_slow_calls_in_rust") {
        return;
    }
    let program = known("rare.rs", "rare_rs", "");
    hold(&Trial::new(program), &expected("rare-slow-calls", "known_parse", 1, "main of rare_rs"));
}

#[test]
fn a_lock_that_serialises() {
    let program = known("lock.c", "lock", "");
    hold(&Trial::new(program), &expected("serialising-lock", "pthread_mutex_lock", 4, "worker"));
}

#[test]
fn a_lock_inside_a_library() {
    let store = Build::library("known/libstore.c").named("libstore.so").with(&libknown()).build();
    let program = Build::program("known/lock_inside.cpp").without_libtrap().named("lock_inside");
    let program = program.flags("-s").with(&libknown()).with(&store).build();
    let trial = Trial::new(program);
    hold(&trial, &expected("serialising-lock", "pthread_mutex_lock", 5, ""));
    let report = summary(&trial.output());
    let text = report["findings"][0]["text"].as_str().expect("a sentence");
    assert!(text.contains("called in store_put (libstore.so)"), "{text}");
}

#[test]
fn a_barrier_with_a_straggler() {
    let program = stripped("barrier.c", "barrier", "");
    hold(&Trial::new(program), &expected("barrier-straggler", "known_parse", 5, "barrier+0x"));
}

#[test]
fn consumers_that_starve() {
    let program = known("starve.c", "starve", "");
    hold(&Trial::new(program), &expected("starved-consumers", "pthread_cond_wait", 3, "consume"));
}

#[test]
fn consumers_that_starve_in_cpp() {
    let program = stripped("starve.cpp", "starve_cpp", "");
    hold(&Trial::new(program), &expected("starved-consumers", "pthread_cond_wait", 2, ""));
}

#[test]
fn many_tiny_calls() {
    let program = stripped("tiny.c", "tiny", "");
    // Exact times: how near estimates are, `sampling.rs` asks.
    let trial = Trial::new(program).hooked_env("CHASE_TIMING", "all");
    hold(&trial, &expected("many-tiny-calls", "known_tiny", 1, "main of tiny"));
}

#[test]
fn short_lived_threads_with_an_extreme() {
    let program = stripped("short_lived.c", "short_lived", "");
    let trial = Trial::new(program);
    hold(&trial, &expected("slow-threads", "known_parse", 1000, "short_lived+0x"));
    let report = summary(&trial.output());
    let group = &report["groups"].as_array().expect("groups")[0];
    assert_eq!(group["threads"], 1000);
    assert!(group["concurrency"].as_u64().expect("a number") <= 21, "{}", group["concurrency"]);
    assert!(group["lifetime"]["max_ns"].as_u64() > Some(150_000_000));
    assert!(group["lifetime"]["min_ns"].as_u64() < Some(50_000_000));
}

#[test]
fn two_behaviours_behind_one_start_routine() {
    let program = known("two_kinds.c", "two_kinds", "");
    hold(&Trial::new(program), &expected("sub-groups", "", 10, "worker"));
}

#[test]
fn two_behaviours_and_a_slow_thread_in_rust() {
    if !need::rust("two_behaviours_and_a_slow_thread_in_rust") {
        return;
    }
    let program = stripped("two_kinds.rs", "two_kinds_rs", "");
    let mut both = expected("slow-threads", "known_pack", 12, "");
    both.extend(expected("sub-groups", "", 12, ""));
    hold(&Trial::new(program), &both);
}

#[test]
fn balanced_threads_in_c() {
    hold(&Trial::new(known("balanced.c", "balanced", "")), &[]);
}

#[test]
fn balanced_threads_in_cpp() {
    hold(&Trial::new(stripped("balanced.cpp", "balanced_cpp", "")), &[]);
}

#[test]
fn balanced_threads_in_rust() {
    if !need::rust("balanced_threads_in_rust") {
        return;
    }
    hold(&Trial::new(known("balanced.rs", "balanced_rs", "")), &[]);
}

#[test]
fn balanced_threads_in_python() {
    let Some(trial) = python("balanced.py") else { return };
    hold(&trial, &[]);
}

#[test]
fn a_pool_that_grows() {
    hold(&Trial::new(stripped("growing.c", "growing", "")), &[]);
}
