//! Recordings of chosen threads (`--threads`), and those that a call begins (`--start-on call:...`).

use std::fs;
use std::time::{Duration, Instant};

use chase_tests::attached::Rounds;
use chase_tests::compile::Build;
use chase_tests::launcher::record;
use chase_tests::report;
use chase_tests::trial::Trial;
use tempfile::TempDir;

const TRAP: &str = "libtrap.so";
/// Enough for each countdown to begin several times.
const CALLS: u64 = 100_000;

fn chosen(threads: &str) -> Trial {
    let plugin = Build::library("libplugin.c").flags("-DNUMBER=1").named("libchosen.so").build();
    let program = Build::program("chosen.c").flags("-pthread -ldl").build();
    Trial::new(program)
        .args([CALLS.to_string().as_ref(), plugin.as_os_str()])
        .hooked_env("CHASE_THREADS", threads)
}

/// A list that matches nothing is said to.
#[test]
fn a_library_that_nobody_calls_is_told() {
    let scratch = TempDir::new().expect("a directory");
    let mut command = record(scratch.path(), &["--syscalls", "off", "--libs", "libnothing*"]);
    let output = command.args(["--", "/bin/ls", "/"]).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("all calls: --libs and --exclude leave none"), "{said}");
}

/// What the others do for the process is noticed all the same: libraries that they load are hooked, and their children recorded.
#[test]
fn only_threads_that_are_chosen_are_recorded() {
    for timing in ["adaptive", "all", "count"] {
        let recording = chosen("wanted*").hooked_env("CHASE_TIMING", timing).compare();
        let calls = |process: &chase_tests::recorded::Process| process.calls(TRAP, "trap_add");
        let mut by_process: Vec<_> = recording
            .processes
            .iter()
            .map(|process| (calls(process), process.threads.len(), process.unseen.threads_left_out))
            .collect();
        by_process.sort_unstable();
        // A child of a wanted thread, one of another thread, and the process itself.
        assert_eq!(by_process, [(7, 1, 0), (50, 1, 1), (2 * CALLS, 2, 2)], "{timing}");
        assert_eq!(recording.calls(TRAP, "trap_call"), 10, "{timing}: by the library");
    }
}

#[test]
fn the_first_thread_is_chosen_as_main() {
    let recording = chosen("main").compare();
    assert_eq!(recording.calls(TRAP, "trap_add"), 2 * CALLS);
    let process = recording.processes.iter().find(|process| !process.forked).expect("the process");
    assert_eq!((process.threads.len(), process.unseen.threads_left_out), (1, 3));
}

#[test]
fn threads_are_chosen_by_object() {
    let all = [(7, 0), (1_050, 0), (5 * CALLS, 0)];
    for (list, expected) in [("chosen*", &all[..]), ("libnone.so", &[(0, 1), (0, 2), (0, 4)])] {
        let recording = chosen(list).compare();
        let found = recording
            .processes
            .iter()
            .map(|process| (process.calls(TRAP, "trap_add"), process.unseen.threads_left_out));
        let mut found: Vec<_> = found.collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{list}");
    }
}

/// The start routine is the runtime's, for all threads.
#[test]
fn threads_of_runtimes_are_chosen_by_what_they_run() {
    let source = TempDir::new().expect("a directory");
    let out = |name: &str| source.path().join(name);
    let script = out("two.py");
    fs::write(
        &script,
        "import threading, zlib\n\
         def chosen():\n    for i in range(30): zlib.crc32(b'x' * 6000)\n\
         def other():\n    for i in range(70): zlib.crc32(b'x' * 6000)\n\
         for run in (chosen, other):\n    thread = threading.Thread(target=run); thread.start(); thread.join()\n",
    )
    .expect("written");
    let recorded = |directory: &str, threads: &str| {
        let mut command = record(source.path(), &["--syscalls", "off", "-q", "-o", directory]);
        command.args(["--threads", threads, "--", "/usr/bin/python3"]).arg(&script);
        assert!(command.status().expect("runs").success());
        report::calls(&out(directory), "crc32")
    };
    assert_eq!(recorded("all", "chosen,other"), 100);
    assert_eq!(recorded("one", "chosen"), 30);
    let text = report::text(&out("one"), &["not-seen"]);
    assert!(text.contains("2 threads left out, as --threads asks"), "{text}");
}

#[test]
fn a_call_begins_the_recording() {
    let program = Build::program("begun.c").flags("-pthread").build();
    for (timing, name) in [("adaptive", "trap_leaf"), ("all", "libtrap.so:trap_le*")] {
        let recording = Trial::new(&program)
            .hooked_env("CHASE_START_ON", format!("call:{name}"))
            .hooked_env("CHASE_TIMING", timing)
            .compare();
        let mut found: Vec<_> = recording
            .processes
            .iter()
            .map(|process| (process.calls(TRAP, "trap_leaf"), process.calls(TRAP, "trap_add")))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [(0, 20), (1, 40), (1, 800)], "{timing}");
    }
}

#[test]
fn a_call_begins_the_recording_by_the_command() {
    let scratch = TempDir::new().expect("a directory");
    let run = |directory: &str, call: &str| {
        let mut command = record(scratch.path(), &["--syscalls", "off", "-o", directory]);
        command.args(["--start-on", call, "--", "/usr/bin/python3", "-c"]);
        command.arg("import zlib; [zlib.adler32(b'x' * 6000) for i in range(5)]; zlib.crc32(b'x' * 6000); zlib.adler32(b'y' * 6000)");
        let output = command.output().expect("runs");
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = run("out", "call:libz.so*:crc32");
    assert!(said.contains("Recorded in"), "{said}");
    let calls = |function| report::calls(&scratch.path().join("out"), function);
    assert_eq!((calls("crc32"), calls("adler32")), (1, 1));
    let said = run("nothing", "call:nobody_has_this");
    assert!(said.contains("nobody_has_this was not called"), "{said}");
    for (call, why) in [("call:", "call:deflate"), ("deflate", "call:deflate")] {
        let mut command = record(scratch.path(), &["--start-on", call, "--", "true"]);
        let output = command.output().expect("runs");
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why), "{said}");
    }
}

/// Chase leaves the program so long after the call.
#[test]
fn a_recording_that_a_call_begins_may_end_before_the_program() {
    let scratch = TempDir::new().expect("a directory");
    let out = scratch.path().join("out");
    let rounds = Build::program("rounds.cpp").without_libtrap().flags("-pthread -lz").build();
    let options =
        ["--syscalls", "off", "-o", "out", "--start-on", "call:crc32", "--duration", "300ms", "--"];
    let mut command = record(scratch.path(), &options);
    command.arg(rounds).stderr(fs::File::create(scratch.path().join("said")).expect("a file"));
    let mut program = Rounds::start(command);
    let children = format!("/proc/{0}/task/{0}/children", program.pid());
    let children = fs::read_to_string(children).expect("its children");
    let pid: u32 = children.split_whitespace().find_map(|pid| pid.parse().ok()).expect("a child");
    let is_recorded = || {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
        maps.lines().any(|line| line.ends_with(".chase"))
    };
    assert!(!is_recorded(), "before the first call");
    program.round();
    let since = Instant::now();
    while is_recorded() {
        assert!(since.elapsed() < Duration::from_secs(60), "it does not end");
        program.round();
    }
    let then = report::calls(&out, "crc32");
    assert!(then > 0);
    program.round();
    assert_eq!(program.end(), "");
    assert_eq!(report::calls(&out, "crc32"), then);
    assert!(report::text(&out, &["--no-pager"]).contains("went on, without chase"));
}
