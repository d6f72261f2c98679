//! What chase says that it cost, where it costs most: programs that start programs.

use std::path::Path;
use std::process::{Command, Stdio};

use chase_tests::report::document;
use chase_tests::steal;
use chase_tests::trial::libchase;
use serde_json::Value;
use tempfile::TempDir;

/// A share of what was measured that what is stated may be off. (The benchmark has a narrower bar, and takes its time.)
const NEAR: f64 = 0.4;
/// Runs that must be good, of how many; `good_of` has the odds.
const GOOD: usize = 2;
const ATTEMPTS: usize = 8;
const SCRIPT: &str = "i=0; while [ $i -lt 60 ]; do /bin/true; i=$((i+1)); done";

/// Processor time of a shell that starts programs, and of those. (This process starts nothing else meanwhile.)
fn cpu_ns(output: Option<&Path>) -> f64 {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", SCRIPT]).stdin(Stdio::null());
    if let Some(output) = output {
        shell.env("LD_PRELOAD", libchase()).env("CHASE_OUTPUT", output);
        shell.env("CHASE_SYSCALLS", "off");
    }
    let before = of_children();
    assert!(shell.output().expect("a shell").status.success());
    of_children() - before
}

fn of_children() -> f64 {
    // SAFETY: all-zero is a valid `rusage`, which the kernel fills in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

fn number(value: &Value) -> f64 {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    number.unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn starting_programs_is_in_what_chase_says_it_cost() {
    let failures = steal::good_of(GOOD, ATTEMPTS, || {
        let output = TempDir::new().expect("a scratch directory");
        let (bare, chase) = (cpu_ns(None), cpu_ns(Some(output.path())));
        let measured = chase / bare - 1.0;
        let overhead = &document(output.path(), "libs")["overhead"];
        let part = |name: &str| number(&overhead[name]);
        let all = part("calls_ns") + part("beside_calls_ns") + part("watching_ns");
        assert_eq!(part("companion_ns"), 0.0, "{overhead}");
        let stated = all / part("without_ns");
        match (stated / measured - 1.0).abs() < NEAR {
            true => Ok(()),
            false => Err(format!("{stated} stated, {measured} measured: {overhead}")),
        }
    });
    assert!(failures.is_empty(), "{failures:#?}");
}
