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
