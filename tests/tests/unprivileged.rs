//! What an ordinary user's companion sees: samples of user space; and what threads ask about themselves.
//!
//! Each test needs root, to become an ordinary user, and `perf_event_open`; it says so and passes where they are missing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chase_tests::compile::Build;
use chase_tests::need;
use chase_tests::report::{document, summary};
use chase_tests::steal;
use chase_tests::trial::libchase;
use serde_json::Value;
use tempfile::TempDir;

const NOBODY: u32 = 65534;
/// Runs that must be good, of how many; `good_of` has the odds.
const GOOD: usize = 2;
const ATTEMPTS: usize = 8;

/// One test at a time: two would have half a processor each.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an ordinary user can be watched here; says so if not.
fn possible(what: &str) -> bool {
    if !need::root(what) {
        return false;
    }
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let possible =
        level.is_ok_and(|level| level.trim().parse::<i32>().is_ok_and(|level| level <= 2));
    if !possible {
        need::skip(what, "kernel.perf_event_paranoid is not 2 or less");
    }
    possible
}

/// A directory that everybody can use, with the library, the companion and a program.
struct Installed {
    scratch: TempDir,
    program: PathBuf,
}

impl Installed {
    fn new(program: &Path) -> Self {
        let scratch = TempDir::new().expect("a scratch directory");
        let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777));
        open(scratch.path()).expect("opened");
        for file in [&libchase(), &libchase().with_file_name("chase-companion"), program] {
            fs::copy(file, scratch.path().join(file.file_name().expect("a name"))).expect("copied");
        }
        let program = scratch.path().join(program.file_name().expect("a name"));
        Self { scratch, program }
    }

    fn output(&self) -> PathBuf {
        self.scratch.path().join("chase.data")
    }

    /// An ordinary user's command, without the hook.
    fn bare(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(self.scratch.path()).uid(NOBODY).gid(NOBODY);
        command
    }

    fn hooked(&self, arguments: &[&str]) -> Output {
        let _ = fs::remove_dir_all(self.output());
        let mut command = self.bare(arguments);
        command.env("LD_PRELOAD", self.scratch.path().join("libchase.so"));
        let output = command.env("CHASE_OUTPUT", self.output()).output().expect("runs");
        assert!(output.status.success(), "{output:?}");
        output
    }
}

/// Numbers that may not fit are strings.
fn number(value: &Value) -> f64 {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    number.unwrap_or_else(|| panic!("{value} is no number"))
}

fn near(what: &str, found: f64, expected: f64, share: f64) -> Result<(), String> {
    let is_near = (found - expected).abs() <= share * expected;
    if is_near { Ok(()) } else { Err(format!("{what}: {found} instead of {expected}")) }
}

fn succeeds(attempt: impl FnMut() -> Result<(), String>) {
    let failures = steal::good_of(GOOD, ATTEMPTS, attempt);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn callbacks_are_the_programs() {
    let _alone = alone();
    if !possible("callbacks_are_the_programs") {
        return;
    }
    let library = Build::library("libspin.c").build();
    let program = Build::program("on_cpu.c").without_libtrap().flags("-ldl").with(&library).build();
    let installed = Installed::new(&program);
    succeeds(|| {
        installed.hooked(&["sort", "-"]);
        let on_cpu = &document(&installed.output(), "libs")["on_cpu"];
        assert_eq!(on_cpu["user_only"], true);
        assert_eq!(number(&on_cpu["lost_samples"]), 0.0);
        let all = number(&on_cpu["on_cpu_ns"]);
        let objects = on_cpu["objects"].as_array().expect("objects");
        let times = objects.iter().map(|object| number(&object["on_cpu_ns"]));
        let sum = times.sum::<f64>() + number(&on_cpu["not_sampled_ns"]);
        assert!((sum / all - 1.0).abs() < 0.01, "{sum} of {all}");
        assert!(objects.iter().all(|object| object["on_cpu_kernel_ns"].is_null()), "{on_cpu}");
        let own = objects.iter().find(|object| object["name"] == "on_cpu");
        near("callbacks", own.map_or(0.0, |own| number(&own["on_cpu_ns"])), 0.97 * all, 0.05)
    });
}

#[test]
fn threads_have_the_time_that_they_ran_and_waited() {
    let _alone = alone();
    if !possible("threads_have_the_time_that_they_ran_and_waited") {
        return;
    }
    let program = Build::program("unprivileged.c").without_libtrap().flags("-pthread").build();
    let installed = Installed::new(&program);
    succeeds(|| {
        let output = installed.hooked(&["threads"]);
        let told = String::from_utf8(output.stdout).expect("text");
        let told: Vec<f64> = told.split_whitespace().map(|ns| ns.parse().expect("ns")).collect();
        let threads = document(&installed.output(), "threads");
        let threads = threads["threads"].as_array().expect("threads");
        for thread in threads {
            let part = |name: &str| number(&thread[name]);
            let off_cpu = part("wait_ns") + part("application_wait_ns");
            let preempted = part("preempted_ns") + part("application_preempted_ns");
            let parts = part("on_cpu_ns") + off_cpu + preempted;
            // What was below 50 µs at a time, and what asking took.
            near("a lifetime", parts, part("lifetime_ns"), 0.02)?;
        }
        for (routine, expected) in ["long_one", "short_one", "sleeper"].iter().zip(&told) {
            let is_it = |thread: &&Value| thread["function"]["name"] == **routine;
            let thread = threads.iter().find(is_it).expect("recorded");
            let found = number(&thread["on_cpu_ns"]);
            if *expected > 1e8 {
                near("a thread", found, *expected, 0.01)?;
            } else if number(&thread["wait_ns"]) < 0.3e9 {
                // It is longer where it does not get a processor at once.
                return Err(format!("slept 300 ms: {thread}"));
            }
        }
        let on_cpu = &document(&installed.output(), "libs")["on_cpu"];
        let own = on_cpu["objects"].as_array().expect("objects");
        let own = own.iter().find(|object| object["name"] == "unprivileged");
        near("own code", own.map_or(0.0, |own| number(&own["on_cpu_ns"])), 0.8e9, 0.05)
    });
}

/// A wait that a signal's handler interrupts is the call's that waits, though what the handler calls is asked about first.
#[test]
fn waits_around_handlers_belong_to_what_they_interrupt() {
    let _alone = alone();
    if !possible("waits_around_handlers_belong_to_what_they_interrupt") {
        return;
    }
    let program = Build::program("unprivileged.c").without_libtrap().flags("-pthread").build();
    let installed = Installed::new(&program);
    succeeds(|| {
        installed.hooked(&["interrupted"]);
        let apis = document(&installed.output(), "apis");
        let apis = apis["apis"].as_array().expect("functions");
        let waits = |name| {
            let api = apis.iter().find(|api| api["symbol"] == name);
            api.map_or(0.0, |api| number(&api["wait_ns"]))
        };
        near("poll", waits("poll"), 0.6e9, 0.03)?;
        let threads = document(&installed.output(), "threads");
        let own = number(&threads["threads"][0]["application_wait_ns"]);
        if own > 0.02e9 { Err(format!("own code waits for {own} ns")) } else { Ok(()) }
    });
}

#[test]
fn children_and_other_images_are_watched_too() {
    let _alone = alone();
    if !possible("children_and_other_images_are_watched_too") {
        return;
    }
    let program = Build::program("unprivileged.c").without_libtrap().flags("-pthread").build();
    let installed = Installed::new(&program);
    succeeds(|| {
        installed.hooked(&["tree"]);
        let processes = summary(&installed.output());
        let images = processes["processes"].as_array().map_or(0, Vec::len);
        let on_cpu = &document(&installed.output(), "libs")["on_cpu"];
        let own = on_cpu["objects"].as_array().expect("objects");
        let own = own.iter().find(|object| object["name"] == "unprivileged");
        let own = own.map_or(0.0, |own| number(&own["on_cpu_ns"]));
        near("both", own, 0.7e9, 0.06)?;
        assert!(images >= 3, "{processes}");
        Ok(())
    });
}

#[test]
fn a_busy_machine_makes_no_slow_calls() {
    let _alone = alone();
    if !possible("a_busy_machine_makes_no_slow_calls") {
        return;
    }
    let program = Build::program("unprivileged.c").without_libtrap().flags("-pthread").build();
    let installed = Installed::new(&program);
    succeeds(|| {
        installed.hooked(&["busy"]);
        let apis = document(&installed.output(), "apis");
        let apis = apis["apis"].as_array().expect("functions");
        let sort = apis.iter().find(|api| api["symbol"] == "qsort").expect("qsort");
        // Twelve threads on a few processors: most of the time others ran.
        let (own, preempted) = (number(&sort["self_ns"]), number(&sort["preempted_ns"]));
        // They wait a few times, in page faults, and then for a processor; nobody tells the two apart.
        assert!(number(&sort["wait_ns"]) < 0.1 * own, "{sort}");
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        if processors <= 4 && preempted < 0.4 * own {
            return Err(format!("{preempted} of {own} ns preempted"));
        }
        let findings = &summary(&installed.output())["findings"];
        let named = findings.to_string();
        if named.contains("qsort") { Err(named) } else { Ok(()) }
    });
}

/// What `chase record` starts is watched before it is the program, also where a companion stays from the run before.
#[test]
fn a_brief_program_is_sampled_from_its_start() {
    let _alone = alone();
    if !possible("a_brief_program_is_sampled_from_its_start") {
        return;
    }
    let program = Build::program("brief.c").without_libtrap().build();
    let installed = Installed::new(&program);
    for file in ["chase", "chase-report"] {
        let copy = installed.scratch.path().join(file);
        fs::copy(libchase().with_file_name(file), copy).expect("copied");
    }
    succeeds(|| {
        for _ in 0..2 {
            let mut record = Command::new(installed.scratch.path().join("chase"));
            record.args(["record", "--"]).arg(&installed.program).uid(NOBODY).gid(NOBODY);
            record.current_dir(installed.scratch.path()).env("HOME", installed.scratch.path());
            let output = record.output().expect("runs");
            assert!(output.status.success(), "{output:?}");
            let on_cpu = &document(&installed.output(), "libs")["on_cpu"];
            let [all, missing] = ["on_cpu_ns", "not_sampled_ns"].map(|ns| number(&on_cpu[ns]));
            if all < 30e6 || missing > 0.25 * all {
                return Err(format!("{missing} of {all} ns without samples"));
            }
        }
        Ok(())
    });
}

#[test]
fn the_program_sees_nothing_of_it() {
    let _alone = alone();
    if !possible("the_program_sees_nothing_of_it") {
        return;
    }
    let program = Build::program("unprivileged.c").without_libtrap().flags("-pthread").build();
    let installed = Installed::new(&program);
    let bare = installed.bare(&["seen"]).output().expect("runs");
    assert!(bare.status.success(), "{bare:?}");
    let hooked = installed.hooked(&["seen"]);
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text(&hooked), text(&bare));
    let on_cpu = &document(&installed.output(), "libs")["on_cpu"];
    assert!(number(&on_cpu["samples"]) > 20.0, "{on_cpu}");
}
