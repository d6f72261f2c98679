//! `chase record` for a part of the run: from when, how long, and how much.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use chase_tests::attached::Rounds;
use chase_tests::compile::{Build, programs};
use chase_tests::launcher::record;
use chase_tests::report;
use chase_tests::steal::attempts;
use chase_tests::tagged::companion;
use tempfile::TempDir;

/// More than anything takes that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Calls of crc32 in a round of the program.
const CALLS: u64 = 64 * 500;

fn rounds() -> PathBuf {
    Build::program("rounds.cpp").without_libtrap().flags("-pthread -lz").build()
}

fn recordings(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|it| it == "chase")).collect()
}

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The program that `chase record` has started.
fn program_of(chase: u32) -> u32 {
    let children = format!("/proc/{chase}/task/{chase}/children");
    let text = fs::read_to_string(children).expect("its children");
    text.split_whitespace().find_map(|pid| pid.parse().ok()).expect("a child")
}

fn is_recorded(pid: u32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
    maps.lines().any(|line| line.ends_with(".chase"))
}

fn send(pid: u32, signal: i32) {
    // SAFETY: it is our child, which runs.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

/// The command, with what it says in a file.
fn command(scratch: &Path, options: &[&str], program: &Path) -> Command {
    let mut command = record(scratch, &["--syscalls", "off", "-o"]);
    command.arg(scratch.join("out")).args(options).arg("--").arg(program);
    let said = fs::File::create(scratch.join("said")).expect("a file");
    command.stderr(said);
    command
}

#[test]
fn signals_begin_and_end_it() {
    let scratch = TempDir::new().expect("a directory");
    let out = scratch.path().join("out");
    let mut program = Rounds::start(command(scratch.path(), &["--start-on", "USR1"], &rounds()));
    let (chase, pid) = (program.pid(), program_of(program.pid()));
    let first = program.round();
    assert_eq!(recordings(&out).len(), 0);
    send(chase, libc::SIGUSR1);
    // It is there while the program stands still, and then hooked.
    wait_until("it begins", || !recordings(&out).is_empty());
    let lines = [program.round(), program.round()];
    send(chase, libc::SIGUSR1);
    wait_until("it ends", || !is_recorded(pid));
    let last = program.round();
    assert_eq!(program.end(), "");
    assert_eq!(report::calls(&out, "crc32"), 2 * CALLS);
    let mut bare = Rounds::start(Command::new(rounds()));
    let expected: Vec<String> = (0..4).map(|_| bare.round()).collect();
    assert_eq!(bare.end(), "");
    assert_eq!([vec![first], lines.to_vec(), vec![last]].concat(), expected);
    let said = fs::read_to_string(scratch.path().join("said")).expect("its words");
    assert!(said.contains("Recorded in"), "{said}");
}

#[test]
fn it_begins_after_a_while() {
    let scratch = TempDir::new().expect("a directory");
    let out = scratch.path().join("out");
    let mut program = Rounds::start(command(scratch.path(), &["--delay", "50ms"], &rounds()));
    wait_until("it begins", || !recordings(&out).is_empty());
    program.round();
    assert_eq!(program.end(), "");
    assert_eq!(report::calls(&out, "crc32"), CALLS);
}

#[test]
fn it_ends_after_a_while_and_the_program_goes_on() {
    let scratch = TempDir::new().expect("a directory");
    // The kernel knows the directory by another path.
    fs::create_dir(scratch.path().join("there")).expect("a directory");
    std::os::unix::fs::symlink("there", scratch.path().join("link")).expect("a link");
    let place = scratch.path().join("link/../link");
    let out = place.join("out");
    let mut program = Rounds::start(command(&place, &["--duration", "2s"], &rounds()));
    let pid = program_of(program.pid());
    wait_until("it ends", || {
        program.round();
        !is_recorded(pid)
    });
    let then = report::calls(&out, "crc32");
    assert!(report::text(&out, &["--no-pager"]).contains("went on, without chase"));
    program.round();
    program.round();
    assert_eq!(program.end(), "");
    assert_eq!(report::calls(&out, "crc32"), then);
}

/// Starting one takes longer than what is missing here at most.
#[test]
fn the_time_of_a_companions_start_is_not_taken_off() {
    if companion("the start of a companion").is_none() {
        return;
    }
    let failures = attempts(3, || {
        // In a new directory, where no companion is at work yet.
        let scratch = TempDir::new().expect("a directory");
        let out = scratch.path().join("out");
        let mut command = record(scratch.path(), &["--duration", "1s", "-o"]);
        let output = command.arg(&out).args(["--", "sleep", "1.5"]).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let wall_ns = report::summary(&out)["wall_ns"].as_f64().expect("a time");
        if (0.92e9..1.5e9).contains(&wall_ns) { Ok(()) } else { Err(wall_ns) }
    });
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn what_the_program_has_started_is_recorded_too() {
    let scratch = TempDir::new().expect("a directory");
    let out = scratch.path().join("out");
    let script = scratch.path().join("script");
    fs::write(&script, format!("#!/bin/sh\n{}\nexit 7\n", rounds().display())).expect("written");
    let mut set = fs::metadata(&script).expect("there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut set, 0o755);
    fs::set_permissions(&script, set).expect("executable");
    let mut command = command(scratch.path(), &["--start-on", "USR2"], Path::new("sh"));
    command.arg("-c").arg(format!("{}; exit 0", script.display()));
    let mut program = Rounds::start(command);
    send(program.pid(), libc::SIGUSR2);
    wait_until("all are recorded", || {
        recordings(&out).iter().any(|path| path.to_string_lossy().contains("/rounds"))
    });
    program.round();
    assert_eq!(program.end(), "");
    assert_eq!(report::calls(&out, "crc32"), CALLS);
}

#[test]
fn a_program_that_ends_before_it_begins_is_told() {
    let scratch = TempDir::new().expect("a directory");
    for options in [["--delay", "1000s"], ["--start-on", "HUP"]] {
        let mut command = record(scratch.path(), &options);
        let output = command.args(["--", "sh", "-c", "exit 5"]).output().expect("runs");
        assert_eq!(output.status.code(), Some(5));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("ended before") && said.contains(options[0]), "{said}");
    }
}

#[test]
fn what_is_not_known_is_refused() {
    let scratch = TempDir::new().expect("a directory");
    let refused = |options: &[&str], variable: Option<(&str, &str)>, why: &str| {
        let mut command = record(scratch.path(), options);
        command.args(["--", "true"]).envs(variable);
        let output = command.output().expect("runs");
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(why), "{why}: {said}");
    };
    refused(&["--delay", "soon"], None, "30s");
    refused(&["--start-on", "KILL"], None, "USR1");
    refused(&["--max-size", "10"], None, "64MB");
    refused(&[], Some(("CHASE_DURATION", "long")), "CHASE_DURATION=long");
    refused(&["--events", "sloww"], None, "slow:TIME");
    refused(&[], Some(("CHASE_EVENTS", "slow,1ms")), "CHASE_EVENTS=slow,1ms");
    refused(&[], Some(("CHASE_MAX_SIZE", "12")), "CHASE_MAX_SIZE=12");
    refused(&["--delay", "1s", "--print-env"], None, "beside the program");
    fs::write(scratch.path().join("chase.toml"), "start-on = \"never\"\n").expect("written");
    refused(&[], None, "chase.toml: start-on: HUP");
}

/// A recording that may not grow says so, has what was before, and the program does not notice.
#[test]
fn a_recording_has_a_largest_size() {
    let scratch = TempDir::new().expect("a directory");
    let mut command = record(
        scratch.path(),
        &["--syscalls", "off", "-o", "out", "--max-size", "512KB", "--events", "off"],
    );
    command.arg("--").arg("/usr/bin/python3").arg(programs().join("many_threads.py"));
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "200 threads");
    let out = scratch.path().join("out");
    let of: Vec<_> = recordings(&out);
    assert_eq!(of.len(), 1);
    let len = fs::metadata(&of[0]).expect("there").len();
    assert!(len <= 512 << 10, "{len} bytes");
    let text = report::text(&out, &["not-seen"]);
    assert!(text.contains("size limit of a recording reached"), "{text}");
}
