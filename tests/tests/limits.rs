//! More of everything than anybody has: bounded, and what is lost is counted.

use chase_tests::compile::Build;
use chase_tests::trial::Trial;

const TRAP: &str = "libtrap.so";

#[test]
fn thousands_of_threads_at_once() {
    let (threads, calls) = (2_000, 3);
    let program = Build::program("many.c").build();
    let arguments = ["threads", &threads.to_string(), &calls.to_string()];
    let recording = Trial::new(program).args(arguments).compare();
    let process = recording.only();
    process.expect(&[(TRAP, "trap_add", threads * calls)]);
    assert_eq!(process.unseen.threads, 0);
    assert_eq!(process.threads.len() as u64, threads + 1);
    // Of each thread some pages.
    assert!(recording.disk_bytes < threads * 32 * 1024, "{} bytes", recording.disk_bytes);
}

/// More contexts than a thread may have. Those beyond are put under its root, and counted; no call is lost.
#[test]
fn contexts_beyond_the_limit_are_counted() {
    let library = Build::library("libcontexts.c").build();
    let program = Build::program("contexts.c").without_libtrap().with(&library).build();
    let trial = Trial::new(program);
    let recording = trial.compare();
    let process = recording.only();
    // Each order of one to eight of eight functions.
    let calls = (0..8_u64).scan(1, |orders, used| {
        *orders *= 8 - used;
        Some(*orders)
    });
    let calls: u64 = calls.sum();
    for number in 0..8 {
        process.expect(&[("libcontexts.so", &format!("back_{number}"), calls / 8)]);
    }
    let unseen = &process.unseen;
    assert_eq!((unseen.calls_without_space, unseen.calls_too_deep), (0, 0));
    assert!(unseen.contexts_under_root > 0, "{unseen:?}");
    let run = chase_analyzer::load(&trial.output()).expect("a recording");
    let contexts = run.images[0].recording.context_count();
    assert!((10_000..20_000).contains(&contexts), "{contexts} contexts");
    assert!(recording.disk_bytes < 32 << 20, "{} bytes", recording.disk_bytes);
}

#[test]
fn hundreds_of_forks() {
    let (forks, calls) = (300, 3);
    let program = Build::program("many.c").build();
    let arguments = ["forks", &forks.to_string(), &calls.to_string()];
    let recording = Trial::new(program).args(arguments).compare();
    assert_eq!(recording.processes.len() as u64, forks + 1);
    let made: u64 = recording.processes.iter().map(|it| it.calls(TRAP, "trap_add")).sum();
    assert_eq!(made, forks * calls);
}
