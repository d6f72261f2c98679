//! Sanitizers keep most of the address space for themselves, stand before the C library, and tell of
//! errors with the functions that their callers are in.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use chase_recorder::layout::SkipReason;
use chase_tests::compile::{Build, target};
use chase_tests::need;
use chase_tests::recorded::Recording;
use chase_tests::run::Outcome;
use chase_tests::trial::Trial;

const FLAGS: &str = "-fno-omit-frame-pointer -fsanitize=";

/// A program with a sanitizer in it, and what is skipped if the compiler has none such.
fn sanitized(compiler: &str, flags: &str) -> Option<Trial> {
    let what = format!("{compiler} {FLAGS}{flags}");
    need::tool(&what, compiler)?;
    if !can_link(compiler, flags) {
        need::skip(&what, "it can't be linked");
        return None;
    }
    let flags = format!("{FLAGS}{flags}");
    let program = Build::program("sanitized.c").tool(compiler).flags(&flags).without_libtrap();
    // The hook is loaded before the sanitizer's library.
    Some(Trial::new(program.build()).env("ASAN_OPTIONS", "verify_asan_link_order=0"))
}

fn can_link(compiler: &str, flags: &str) -> bool {
    let directory = target().join("trap-programs");
    fs::create_dir_all(&directory).expect("create a directory");
    let source: PathBuf = directory.join("empty.c");
    fs::write(&source, "int main(void) { return 0; }\n").expect("write a source file");
    let output = directory.join(format!("empty-{compiler}-{}", flags.replace([' ', '='], "-")));
    let mut command = Command::new(compiler);
    command.args(format!("{FLAGS}{flags}").split_whitespace()).arg(&source).arg("-o").arg(output);
    command.output().is_ok_and(|output| output.status.success())
}

/// The functions of the stacks in a report, in order.
fn stacks(outcome: &Outcome) -> Vec<String> {
    let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
    // #1 0x7f1fe904814a in main /some/where.c:35
    let frames = text.lines().map(str::trim).filter(|line| line.starts_with('#'));
    frames.filter_map(|line| line.split_whitespace().nth(3)).map(str::to_owned).collect()
}

fn compare_stacks(compiler: &str, flags: &str, error: &str) {
    let Some(trial) = sanitized(compiler, flags) else { return };
    let trial = trial.arg(error).env("UBSAN_OPTIONS", "print_stacktrace=1");
    let (bare, hooked) = (trial.bare(), trial.hooked());
    assert!(stacks(&bare).iter().any(|function| function == "main"), "{bare:?}");
    let mut stacks_hooked = stacks(&hooked);
    if error == "undefined" {
        // It is in a library call's callback: where that call will return to is on the stack.
        stacks_hooked.retain(|function| function != "chase_pads");
    }
    assert_eq!(stacks(&bare), stacks_hooked, "{compiler} {flags} {error}");
    assert_eq!(bare.status, hooked.status);
}

fn left_alone(recording: &Recording) -> u32 {
    let objects = recording.processes.iter().flat_map(|process| &process.skipped);
    objects.map(|(_, counts)| counts[SkipReason::Sanitizer as usize]).sum()
}

fn compare_fine(compiler: &str, flags: &str) {
    let Some(trial) = sanitized(compiler, flags) else { return };
    let recording = trial.compare();
    assert_eq!(recording.processes.len(), 2, "{compiler} {flags}");
    // (That of undefined behaviour does no more than to report it.)
    if compiler == "gcc" && !flags.contains("-static") && flags != "undefined" {
        // Calls to the sanitizer's library are not seen, and that is said.
        assert!(left_alone(&recording) > 0, "{compiler} {flags}");
    }
}

#[test]
fn thread_sanitizer_runs() {
    compare_fine("gcc", "thread");
    compare_fine("clang", "thread");
}

#[test]
fn thread_sanitizer_in_the_executable_runs() {
    compare_fine("gcc", "thread -static-libtsan");
    compare_fine("clang", "thread -static-libsan");
}

#[test]
fn memory_sanitizer_runs() {
    compare_fine("clang", "memory");
}

/// It goes on after what it has reported, which is the same, in library calls' callbacks, too.
#[test]
fn undefined_behaviour_sanitizer_runs_and_names_the_caller() {
    for compiler in ["gcc", "clang"] {
        compare_fine(compiler, "undefined");
        for flags in ["undefined", "undefined -fno-sanitize-recover=undefined"] {
            let Some(trial) = sanitized(compiler, flags) else { continue };
            let outcome = trial.arg("undefined").compare_outcomes();
            let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
            assert!(said.contains("runtime error: signed integer overflow"), "{said}");
        }
        compare_stacks(compiler, "undefined", "undefined");
    }
}

#[test]
fn address_sanitizer_runs() {
    compare_fine("gcc", "address");
    compare_fine("gcc", "address -static-libasan");
    compare_fine("clang", "address");
}

#[test]
fn address_sanitizer_names_the_caller() {
    for error in ["overflow", "leak"] {
        compare_stacks("gcc", "address", error);
        compare_stacks("clang", "address", error);
    }
}

#[test]
fn leak_sanitizer_names_the_caller() {
    compare_stacks("gcc", "leak", "leak");
    compare_stacks("clang", "leak", "leak");
}
