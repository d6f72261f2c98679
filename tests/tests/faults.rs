//! Each system call that the hook makes fails once, or is the last one before a kill. The program must not notice, and what
//! was recorded must be readable.

use std::fs;
use std::path::{Path, PathBuf};

use chase_tests::compile::{Build, libtrap};
use chase_tests::recorded::Recording;
use chase_tests::trial::Trial;

/// Errors by turns.
const ERRORS: [i32; 6] =
    [libc::ENOMEM, libc::ENOSPC, libc::EMFILE, libc::EACCES, libc::EINTR, libc::EPERM];

/// System calls are looked at in steps of this; with `CHASE_FAULTS` set, each one is.
const STEP: usize = 7;

fn step() -> usize {
    if std::env::var_os("CHASE_FAULTS").is_some() { 1 } else { STEP }
}

/// `faulty.c`, in which the hook's system call of this number meets `what`.
fn trial(program: &Path, tracer: &Path, number: usize, what: &str) -> Trial {
    let plugin = Build::library("libplugin.c").named("libplugin1.so").flags("-DNUMBER=1");
    let plugin = plugin.with(&libtrap()).build();
    let tracer = tracer.to_str().expect("a path of text");
    Trial::new(program).arg(plugin).inside(&[tracer, &number.to_string(), what, "made"])
}

fn build() -> (PathBuf, PathBuf) {
    let tracer = Build::program("fault.c").without_libtrap().build();
    (Build::program("faulty.c").build(), tracer)
}

/// How many system calls the hook makes.
fn system_calls(program: &Path, tracer: &Path) -> usize {
    let trial = trial(program, tracer, 0, "0");
    let _ = trial.compare();
    let made = trial.told("made")["calls"] as usize;
    assert!(made > 100, "only {made} system calls of the hook were seen");
    made
}

#[test]
fn each_system_call_may_fail() {
    let (program, tracer) = build();
    let made = system_calls(&program, &tracer);
    for number in (1..=made).step_by(step()) {
        // What comes first decides whether there is a recording at all: most ways to fail are there.
        let errors = if std::env::var_os("CHASE_FAULTS").is_some() {
            &ERRORS[..]
        } else {
            &[ERRORS[number / STEP % ERRORS.len()]]
        };
        for error in errors {
            let trial = trial(&program, &tracer, number, &error.to_string());
            trial.compare_outcomes();
            // Each that is there can be read.
            let _ = Recording::load(&trial.output());
        }
    }
    eprintln!("{made} system calls of the hook, every {} failed", step());
}

#[test]
fn killed_at_each_system_call() {
    let (program, tracer) = build();
    let made = system_calls(&program, &tracer);
    for number in (1..=made).step_by(step()) {
        let trial = trial(&program, &tracer, number, "kill");
        let _ = trial.hooked();
        let is_begun = |path: &Path| {
            // One that has not begun yet is empty.
            path.extension().is_some_and(|it| it == "chase") && has_header(path)
        };
        let entries = fs::read_dir(trial.output()).expect("read the directory of recordings");
        for path in entries.map(|entry| entry.expect("an entry").path()).filter(|it| is_begun(it)) {
            let bytes = fs::read(&path).expect("read a recording");
            let recording = chase_recorder::reader::Recording::parse(bytes);
            let recording = recording.unwrap_or_else(|error| panic!("killed at {number}: {error}"));
            assert_eq!(recording.problems(), [], "killed at {number}");
        }
    }
}

/// Whether a recording has a header.
fn has_header(path: &Path) -> bool {
    let bytes = fs::read(path).expect("read a recording");
    bytes.iter().take(4096).any(|byte| *byte != 0)
}
