//! Where the processor was, by samples, in programs that know it.
//!
//! Each test needs root, BTF and the clock of the CPU; it says so and passes where they are missing.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chase_tests::compile::Build;
use chase_tests::foreign::made;
use chase_tests::need;
use chase_tests::report::{document, json};
use chase_tests::steal;
use chase_tests::tagged::{Tagged, companion};
use chase_tests::trial::Trial;
use serde_json::Value;

/// Points that a share may be off.
const NEAR: f64 = 5.0;
/// Runs that must be good, of how many; `good_of` has the odds.
const GOOD: usize = 2;
const ATTEMPTS: usize = 8;

/// One test at a time: two would have half a processor each.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one part of `on_cpu.c`, and compares the shares of objects, in percent.
fn expect(what: &str, shares: &[(&str, f64)]) {
    let _alone = alone();
    if companion(what).is_none() {
        return;
    }
    let library = Build::library("libspin.c").build();
    let plugin = Build::library("libspin.c").named("libplugged.so").build();
    let program = Build::program("on_cpu.c").without_libtrap().flags("-ldl").with(&library).build();
    let trial = Trial::new(program).arg(what).arg(&plugin).hooked_env("CHASE_SYSCALLS", "require");
    trial.compare_outcomes();
    // That was to see that nothing is changed. Of others, each of these may be disturbed.
    let failures = steal::good_of(GOOD, ATTEMPTS, || {
        let outcome = trial.hooked();
        assert!(outcome.status.success(), "{outcome:?}");
        let _ = Tagged::finished(&trial.output());
        let taken = trial.told("taken")["ns"] as f64;
        check(what, &trial.output(), taken, shares)
    });
    assert!(failures.is_empty(), "{failures:#?}");
}

/// What is wrong with the report of a run whose process took so much time.
fn check(what: &str, output: &Path, taken_ns: f64, shares: &[(&str, f64)]) -> Result<(), String> {
    let on_cpu = &document(output, "libs")["on_cpu"];
    if number(&on_cpu["sample_hz"]) == 0.0 {
        need::skip(what, "no samples can be taken");
        return Ok(());
    }
    let all = number(&on_cpu["on_cpu_ns"]);
    let objects = on_cpu["objects"].as_array().expect("objects");
    let mut sum = number(&on_cpu["not_sampled_ns"]) + number(&on_cpu["watching_ns"]);
    for object in objects {
        let (time, kernel) = (number(&object["on_cpu_ns"]), number(&object["on_cpu_kernel_ns"]));
        assert!(kernel <= time, "{object}");
        sum += time;
    }
    assert!((sum / all - 1.0).abs() < 0.01, "{sum} of {all}: {on_cpu}");
    assert_eq!(number(&on_cpu["lost_samples"]), 0.0);
    if all > taken_ns * 1.02 || all < taken_ns * 0.9 {
        return Err(format!("{all} ns on the CPU, and the process took {taken_ns}"));
    }
    for &(name, share) in shares {
        let object = objects.iter().find(|object| object["name"] == name);
        let found = object.map_or(0.0, |object| 100.0 * number(&object["on_cpu_ns"]) / all);
        if (found - share).abs() > NEAR {
            return Err(format!("{name}: {found:.1} % instead of {share} %"));
        }
    }
    Ok(())
}

/// What ran in a part of the run is told by the samples of that part, and not by those of the whole.
#[test]
fn a_window_has_what_ran_in_it() {
    let what = "samples by time";
    let _alone = alone();
    if companion(what).is_none() {
        return;
    }
    let library = Build::library("libspin.c").build();
    let program = Build::program("on_cpu.c").without_libtrap().flags("-ldl").with(&library).build();
    let arguments = ["phases", "none"];
    let trial = arguments.iter().fold(Trial::new(program), |trial, argument| trial.arg(argument));
    let trial = trial.hooked_env("CHASE_SYSCALLS", "require");
    trial.compare_outcomes();
    assert!(trial.hooked().status.success());
    let _ = Tagged::finished(&trial.output());
    if number(&document(&trial.output(), "libs")["on_cpu"]["sample_hz"]) == 0.0 {
        return need::skip(what, "no samples can be taken");
    }
    let path = document(&trial.output(), "path");
    let steps = path["steps"].as_array().expect("steps");
    let sleep = steps.iter().find(|step| step["function"] == "usleep").expect("a wait");
    // (Backwards from the end.) The beginning and the end of a process are not of these phases.
    let begins = number(&sleep["begin_ns"]) / 1e9;
    let ends = number(&sleep["end_ns"]) / 1e9;
    let end = number(&path["wall_ns"]) / 1e9;
    for (from, to, runs) in [
        (begins - 0.28, begins - 0.01, "on_cpu"),
        (ends + 0.01, end.min(ends + 0.29), "libspin.so"),
    ] {
        let window = [format!("{from:.6}s"), format!("{to:.6}s")];
        let part = json(&trial.output(), &["path", "--from", &window[0], "--to", &window[1]]);
        let parts = part["parts"].as_array().expect("parts");
        let found: f64 = parts
            .iter()
            .filter(|part| part["library"] == runs)
            .map(|part| number(&part["share"]))
            .sum();
        assert!(found > 0.9, "{window:?}, {runs}: {found} of {parts:#?}");
    }
}

/// Numbers that may not fit are strings.
fn number(value: &Value) -> f64 {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    number.unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn what_qsort_calls_back_is_the_programs() {
    expect("sort", &[("on_cpu", 98.0), ("libc.so.6", 2.0)]);
}

#[test]
fn sources_of_a_loop_are_the_programs_and_the_loop_is_the_librarys() {
    expect("loop", &[("on_cpu", 75.0), ("libspin.so", 25.0)]);
}

#[test]
fn what_is_called_by_a_pointer_into_a_plug_in_is_the_plug_ins() {
    expect("plugin", &[("on_cpu", 40.0), ("libplugged.so", 60.0), ("libspin.so", 0.0)]);
}

#[test]
fn generated_code_has_the_names_that_its_compiler_lists() {
    named_by_node(&["--perf-basic-prof"]);
}

#[test]
fn generated_code_has_the_names_that_its_compiler_dumps() {
    // (Into the working directory.)
    named_by_node(&["--perf-prof"]);
}

/// Runs a function of JavaScript that is most of what runs; node writes its name as it is told to.
fn named_by_node(flags: &[&str]) {
    const SCRIPT: &str = "let x = 0; function spinning(n) { for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003 } \
                          for (let k = 0; k < 60; k++) spinning(5e6); console.log(x)";
    let what = "generated code";
    let _alone = alone();
    let (Some(node), Some(_)) = (need::tool(what, "node"), companion(what)) else { return };
    let mut trial = Trial::new(node).hooked_env("CHASE_SYSCALLS", "require");
    for flag in flags {
        trial = trial.arg(flag);
    }
    let trial = trial.arg("-e").arg(SCRIPT);
    trial.compare_outcomes();
    let _ = Tagged::finished(&trial.output());
    let report = document(&trial.output(), "hot");
    if number(&report["on_cpu"]["sample_hz"]) == 0.0 {
        return need::skip(what, "no samples can be taken");
    }
    let first = &report["functions"][0];
    assert!(first["function"].as_str().is_some_and(|name| name.contains("spinning")), "{first}");
    assert_eq!(first["library"], "[generated code]");
}

/// Go's runtime has a table of its functions, in programs without symbols, too. Such a program ends by a system call of its
/// own, so that only the companion sees when.
#[test]
fn functions_and_threads_of_go_have_names_in_programs_without_symbols() {
    let what = "Go";
    let _alone = alone();
    if companion(what).is_none() {
        return;
    }
    need::package("golang-go", "/usr/bin/go");
    let made = made(
        "cp $from/spinning.go . && GO111MODULE=off GOFLAGS= GOCACHE=$PWD/cache CGO_ENABLED=1 \
         go build -ldflags '-s -w' -o spinning spinning.go",
    );
    let program = made.path().join("spinning");
    let trial = Trial::new(program).hooked_env("CHASE_SYSCALLS", "require");
    trial.compare_outcomes();
    let _ = Tagged::finished(&trial.output());
    let report = document(&trial.output(), "hot");
    if number(&report["on_cpu"]["sample_hz"]) == 0.0 {
        return need::skip(what, "no samples can be taken");
    }
    let first = &report["functions"][0];
    assert_eq!(
        (&first["function"], &first["library"]),
        (&"main.spinning".into(), &"spinning".into())
    );
    let process = &report["processes"][0];
    assert_eq!(process["end_is_estimate"], false);
    let (wall, on_cpu) = (number(&report["wall_ns"]), number(&report["on_cpu"]["on_cpu_ns"]));
    let processors = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    assert!(on_cpu <= wall * processors * 1.02, "{on_cpu} ns in {wall}");
    let threads = document(&trial.output(), "threads");
    let groups = threads["groups"].as_array().expect("groups");
    assert!(groups.iter().any(|group| group["label"] == "goroutines"), "{groups:?}");
}

/// Most time of a call of a few nanoseconds is that of its two clock reads, and so is most of what others have of the processor
/// meanwhile. By the clock, what is waited for in the second one is the caller's: it has to be so by the context as well.
/// (Otherwise, some 2.4 times as much would be waited for in the function as it took.)
#[test]
fn waits_for_a_processor_within_a_clock_read_belong_to_whom_its_time_does() {
    let what = "a shared processor";
    let _alone = alone();
    if companion(what).is_none() {
        return;
    }
    let program = Build::program("shared_processor.c").flags("-fno-builtin").build();
    let trial = Trial::new(program)
        .hooked_env("CHASE_SYSCALLS", "require")
        .hooked_env("CHASE_TIMING", "all");
    trial.compare_outcomes();
    let failures = steal::good_of(GOOD, ATTEMPTS, || {
        assert!(trial.hooked().status.success());
        let _ = Tagged::finished(&trial.output());
        let libraries = document(&trial.output(), "libs")["libraries"].clone();
        let libraries = libraries.as_array().expect("libraries");
        let row = libraries.iter().find(|row| row["name"] == "libc.so.6").expect("the C library");
        let (own, waited) = (number(&row["self_ns"]), number(&row["runnable_ns"]));
        match waited / own {
            0.6..1.4 => Ok(()),
            _ => Err(format!("{waited} ns were waited for a processor in {own} ns")),
        }
    });
    assert!(failures.is_empty(), "{failures:#?}");
}
