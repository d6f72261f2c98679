//! The environment variables.

use chase_tests::compile::Build;
use chase_tests::recorded::{Process, Recording};
use chase_tests::trial::Trial;

const TRAP: &str = "libtrap.so";

fn values() -> Trial {
    Trial::new(Build::program("values.c").build()).arg("10")
}

fn recorded(process: &Process, provider: &str) -> usize {
    process.apis.iter().filter(|api| api.provider.starts_with(provider)).count()
}

#[test]
fn chase_libs_names_what_is_recorded() {
    let recording = values().hooked_env("CHASE_LIBS", "libtrap.*").compare();
    let process = recording.only();
    process.expect(&[(TRAP, "trap_swap", 10), (TRAP, "trap_call", 5)]);
    assert_eq!(process.apis.len(), recorded(process, TRAP), "{:?}", process.apis);

    let recording = values().hooked_env("CHASE_LIBS", "libtrap.*:trap_s*,:puts").compare();
    let process = recording.only();
    process.expect(&[
        (TRAP, "trap_swap", 10),
        (TRAP, "trap_small", 10),
        (TRAP, "trap_call", 0),
        ("libc.so", "puts", 1),
        ("libc.so", "snprintf", 0),
    ]);
}

#[test]
fn chase_exclude_names_what_is_not() {
    let recording = values().hooked_env("CHASE_EXCLUDE", "libc.so*,*:trap_mul*").compare();
    let process = recording.only();
    process.expect(&[(TRAP, "trap_swap", 10), (TRAP, "trap_mul128", 0), (TRAP, "trap_mulc", 0)]);
    assert_eq!(recorded(process, "libc.so"), 0, "{:?}", process.apis);
}

#[test]
fn threads_are_recorded_though_what_makes_them_is_not() {
    let program = Build::program("steady.c").build();
    let trial = Trial::new(program).arg("nothing").hooked_env("CHASE_LIBS", "libtrap.*:trap_not");
    let recording = trial.compare();
    let parent = recording.processes.iter().find(|process| !process.forked).expect("a parent");
    assert_eq!((parent.threads.len(), parent.created_threads()), (51, 50));
    assert!(parent.apis.is_empty(), "{:?}", parent.apis);
}

#[test]
fn chase_internal_names_libraries_that_call_themselves() {
    let odd = Build::library("libodd.c").build();
    let even = Build::library("libeven.c").with(&odd).build();
    let program = Build::program("recursion.c").flags("-rdynamic").with(&even).with(&odd).build();
    let recording = Trial::new(program).hooked_env("CHASE_INTERNAL", "libeven.so").compare();
    recording.only().expect(&[
        ("libeven.so", "trap_ping", 501),
        ("libeven.so", "trap_pong", 500),
        ("libeven.so", "trap_even", 501),
        ("libodd.so", "trap_odd", 500),
    ]);
}

#[test]
fn recordings_are_in_chase_data_by_default() {
    let recording = values().hooked_env("CHASE_OUTPUT", "").compare_at("chase.data");
    recording.only().expect(&[(TRAP, "trap_swap", 10)]);
}

#[test]
fn chase_verbose_says_where_the_recording_is() {
    let trial = values().hooked_env("CHASE_VERBOSE", "1");
    let outcome = trial.hooked();
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(said.contains(&trial.output().display().to_string()), "said: {said:?}");
    Recording::load(&trial.output()).only().expect(&[(TRAP, "trap_swap", 10)]);
}

/// The run is not what was asked for: that is said, whoever listens.
#[test]
fn chase_timing_that_is_not_known_is_told() {
    let trial = values().hooked_env("CHASE_TIMING", "al");
    let said = |trial: &Trial| String::from_utf8_lossy(&trial.hooked().stderr).into_owned();
    assert!(said(&trial).contains("CHASE_TIMING must be"), "{}", said(&trial));
    assert!(!said(&values().hooked_env("CHASE_TIMING", "")).contains("CHASE_TIMING"));
    let trial = values().hooked_env("CHASE_SAMPLE", "zzz").hooked_env("CHASE_LIBS", ",,");
    let text = said(&trial);
    assert!(text.contains("CHASE_SAMPLE must be") && text.contains("CHASE_LIBS"), "{text}");
    Recording::load(&trial.output()).only().expect(&[(TRAP, "trap_swap", 10)]);
}
