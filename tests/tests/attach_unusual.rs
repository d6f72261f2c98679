//! `chase attach` where something is unusual: about the process, its user, or what is missing. It goes on in any case.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use chase_tests::attached::{Attached, Rounds, attach};
use chase_tests::compile::{Build, programs};
use chase_tests::launcher::chase;
use chase_tests::need;
use chase_tests::report;
use chase_tests::steal;
use chase_tests::tagged::{Tagged, companion};
use chase_tests::trial::libchase;
use tempfile::TempDir;

const NOBODY: u32 = 65534;

fn said(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().expect("chase starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn recordings(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|it| it == "chase")).count()
}

/// A directory that everybody may use, with these files beside each other.
fn installed(files: &[&Path]) -> TempDir {
    let scratch = TempDir::new().expect("a directory");
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777));
    open(scratch.path()).expect("opened");
    for file in files {
        let copy = scratch.path().join(file.file_name().expect("a name"));
        fs::copy(file, &copy).expect("copied");
        open(&copy).expect("opened");
    }
    scratch
}

/// Chase without a companion, of which one is required.
fn without_companion() -> (TempDir, PathBuf) {
    let report = libchase().with_file_name("chase-report");
    let scratch = installed(&[&chase(), &libchase(), &report]);
    let own = scratch.path().join("chase");
    (scratch, own)
}

fn rounds() -> PathBuf {
    Build::program("rounds.cpp").without_libtrap().flags("-pthread -lz").build()
}

#[test]
fn a_process_goes_on_where_system_calls_are_required_and_cannot_be_seen() {
    let (scratch, own) = without_companion();
    let directory = scratch.path().join("out");
    let errors = scratch.path().join("errors");
    let mut command = Command::new(rounds());
    command.stderr(File::create(&errors).expect("a file"));
    let bare = {
        let mut program = Rounds::start(Command::new(rounds()));
        [program.round(), program.round(), program.round()]
    };
    let mut program = Rounds::start(command);
    for expected in &bare[..2] {
        let mut command = Command::new(&own);
        command.args(["attach", "--syscalls", "require", "--duration", "10ms", "-o"]);
        command.arg(&directory).arg(program.pid().to_string()).env_remove("LD_PRELOAD");
        let (status, said) = said(command.env("XDG_CONFIG_HOME", scratch.path().join("config")));
        assert_eq!(status, Some(125), "{said}");
        assert!(said.contains("no system calls: there is no chase-companion"), "{said}");
        assert_eq!(recordings(&directory), 0);
        assert_eq!(program.round(), *expected);
    }
    // Nothing stays that keeps it from being recorded.
    let attached = Attached::begin(program.pid(), &directory);
    assert_eq!(program.round(), bare[2]);
    attached.end();
    assert_eq!(program.end(), "");
    assert_eq!(fs::read_to_string(&errors).expect("there"), "", "what it never said");
    assert_eq!(report::calls(&directory, "crc32"), 64 * 500);
}

/// A program that was to be recorded from a call on has run by then.
#[test]
fn nor_does_a_call_that_begins_the_recording_end_the_program() {
    let (scratch, own) = without_companion();
    let directory = scratch.path().join("out");
    let mut command = Command::new(own);
    command.args(["record", "--syscalls", "require", "--start-on", "call:crc32", "-o"]);
    command.arg(&directory).args(["--", "/usr/bin/python3", "-c"]);
    command.arg("import zlib; zlib.crc32(b'x'); print('end')").env_remove("LD_PRELOAD");
    let output =
        command.env("XDG_CONFIG_HOME", scratch.path().join("config")).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "end\n");
    assert!(said.contains("syscalls are not recorded: there is no chase-companion"), "{said}");
    assert_eq!(recordings(&directory), 0);
}

/// Root's companion would watch root's processes.
#[test]
fn system_calls_of_another_users_process_are_seen_by_root() {
    const WHAT: &str = "system calls of another user's process";
    let Some(_) = companion(WHAT) else { return };
    let scratch = installed(&[&programs().join("writes.py")]);
    let directory = scratch.path().join("out");
    let mut command = Command::new("/usr/bin/python3");
    command.arg(scratch.path().join("writes.py")).uid(NOBODY).gid(NOBODY);
    let mut program = Rounds::start(command);
    let attached = Attached::begin_watched(program.pid(), &directory);
    assert_eq!(program.round(), "done");
    attached.end();
    let pid = program.pid();
    assert_eq!(program.end(), "");
    let rows = Tagged::finished(&directory).rows;
    let of_threads = rows.iter().filter(|row| row.name == "write" && row.tid != pid);
    assert_eq!(of_threads.map(|row| row.calls).sum::<u64>(), 4 * 200, "{rows:?}");
    for file in fs::read_dir(&directory).expect("there").flatten() {
        let owner = file.metadata().expect("there").uid();
        assert_eq!(owner, NOBODY, "{}", file.path().display());
    }
}

#[test]
fn a_process_that_waits_for_a_child_with_its_memory_is_attached_to_after_that() {
    let scratch = TempDir::new().expect("a directory");
    let program = Build::program("vforks.c").without_libtrap().build();
    let mut program = Rounds::start(Command::new(program));
    let pid = program.pid();
    let (line, (status, said)) = std::thread::scope(|scope| {
        let round = scope.spawn(|| program.round());
        std::thread::sleep(Duration::from_millis(150));
        let attached = said(&mut attach(pid, scratch.path(), &["--duration", "10ms"]));
        (round.join().expect("a line"), attached)
    });
    assert_eq!((status, &*line), (Some(0), "7"), "{said}");
    assert_eq!(program.end(), "");
}

/// Whenever it ends, that is what is said, and no other reason; and its end is its own.
#[test]
fn a_process_that_ends_as_chase_comes_has_ended() {
    let scratch = TempDir::new().expect("a directory");
    for delay in (0..200).step_by(10) {
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", &format!("import os, time; time.sleep({delay} / 1000); os._exit(3)")]);
        let mut program = command.stdin(Stdio::null()).spawn().expect("starts");
        let (status, said) =
            said(&mut attach(program.id(), scratch.path(), &["--duration", "20ms"]));
        let is_told = status == Some(0)
            || ["has ended", "there is no process", "another program"]
                .iter()
                .any(|why| said.contains(why));
        assert!(is_told, "{delay} ms: {status:?} {said}");
        assert_eq!(program.wait().expect("it ends").code(), Some(3), "{delay} ms: {said}");
    }
}

/// What to do is said, where the process may not write, or can make no thread.
#[test]
fn what_is_refused_says_what_to_do() {
    if !need::root("processes of other users") {
        return;
    }
    let scratch = TempDir::new().expect("a directory");
    let mut command = Command::new("sh");
    command.args(["-c", "echo ready; read line; echo done"]).uid(NOBODY).gid(NOBODY);
    let mut program = Rounds::start(command);
    let (status, said) = said(&mut attach(program.pid(), scratch.path(), &["--duration", "10ms"]));
    assert_eq!(status, Some(125), "{said}");
    assert!(said.contains("-o names a directory where it may"), "{said}");
    assert_eq!(program.round(), "done");
}

/// Who does nothing has no row; how many there are is said.
#[test]
fn threads_that_make_no_call_are_counted() {
    let scratch = TempDir::new().expect("a directory");
    let mut program = Command::new("sleep").arg("100").spawn().expect("sleep starts");
    std::thread::sleep(Duration::from_millis(200));
    Attached::begin(program.id(), scratch.path()).end();
    let _ = program.kill();
    let _ = program.wait();
    let rows = report::document(scratch.path(), "not-seen");
    let said = rows["not_seen"][0]["text"].as_str().expect("a line");
    assert!(said.starts_with("at least 1 thread of 1 that process"), "{said}");
}

/// Neither does a stop end a system call with a part of what was asked for, nor with an error.
#[test]
fn system_calls_that_a_stop_ends_go_on() {
    let scratch = TempDir::new().expect("a directory");
    let program = Build::program("cut_short.c").without_libtrap().flags("-pthread").build();
    let expected = {
        let mut alone = Rounds::start(Command::new(&program));
        alone.round()
    };
    assert!(expected.contains("complete 1 1 1 1: 1048576 "), "{expected}");
    let mut program = Rounds::start(Command::new(&program));
    // Also where the library has come, and nothing is recorded.
    let (without, own) = without_companion();
    let mut command = Command::new(&own);
    command.args(["attach", "--syscalls", "require", "-o"]).arg(without.path().join("out"));
    let (status, refused) = said(command.arg(program.pid().to_string()).env_remove("LD_PRELOAD"));
    assert_eq!(status, Some(125), "{refused}");
    assert_eq!(program.round(), expected);
    assert_eq!(program.line(), "ready");
    for _ in 0..2 {
        // The second time, and at each end, threads are stopped in what they do of the rest.
        for _ in 0..2 {
            let (status, said) =
                said(&mut attach(program.pid(), scratch.path(), &["--duration", "10ms"]));
            assert_eq!(status, Some(0), "{said}");
        }
        assert_eq!(program.round(), expected);
        assert_eq!(program.line(), "ready");
    }
    assert_eq!(program.end(), "");
}

/// What a thread waited for when chase came is no time of it: it has what it ran, by its own clock, and what it waited since its first call.
#[test]
fn what_threads_waited_for_already_is_none_of_their_times() {
    let Some(_) = companion("times of threads that waited") else { return };
    // Some kernels don't show every switch of a thread to a processor: what it runs until it is seen again is waiting then.
    let failures = steal::attempts(3, times_of_threads_that_waited);
    assert!(failures.is_empty(), "{failures:#?}");
}

fn times_of_threads_that_waited() -> Result<(), String> {
    let scratch = TempDir::new().expect("a directory");
    let directory = scratch.path().join("out");
    let mut command = Command::new("/usr/bin/python3");
    command.arg(programs().join("late.py"));
    let mut program = Rounds::start(command);
    let attached = Attached::begin_watched(program.pid(), &directory);
    let said = program.round();
    attached.end();
    assert_eq!(program.end(), "");
    let threads = report::json(&directory, &["threads"]);
    let threads = threads["threads"].as_array().expect("threads");
    for (tid, ran_ns) in said.split(' ').filter_map(|thread| thread.split_once(':')) {
        let tid: u64 = tid.parse().expect("a thread id");
        let ran_ns: f64 = ran_ns.parse().expect("ns");
        let thread = threads.iter().find(|row| row["tid"] == tid).expect("its row");
        let ns = |field: &str| thread[field].as_f64().expect(field);
        let parts = ns("on_cpu_ns") + ns("blocked_ns") + ns("runnable_ns");
        // (A part of its waits for a processor is outside of calls.)
        let told = ns("wait_ns") + ns("application_wait_ns");
        if (parts - ns("lifetime_ns")).abs() >= 20e6
            || (ns("on_cpu_ns") - ran_ns).abs() >= 0.1 * ran_ns
            || (told - ns("blocked_ns")).abs() >= 20e6
        {
            return Err(format!("ran {ran_ns}, {parts}, waited {told}: {thread}"));
        }
    }
    Ok(())
}

/// `elsewhere.c`, at one of its places.
fn elsewhere(place: &str) -> Rounds {
    let program = Build::program("elsewhere.c").without_libtrap().flags("-pthread").build();
    let mut command = Command::new(program);
    command.arg(place);
    Rounds::start(command)
}

/// What `chase attach` says of it.
fn attached_to(scratch: &TempDir, program: &mut Rounds, pid: u32) -> String {
    let mut command = attach(pid, &scratch.path().join("out"), &["--duration", "300ms"]);
    let chase = command.stderr(Stdio::piped()).spawn().expect("chase starts");
    // (It may come during any of these.)
    for _ in 0..20 {
        assert_eq!(program.round(), "next");
        std::thread::sleep(Duration::from_millis(50));
    }
    let said = chase.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&said.stderr).into_owned()
}

/// A server that has become another user may not read all that is told of it in `/proc`.
#[test]
fn a_process_that_has_changed_its_user_is_recorded() {
    if !need::root("a process that changes its user") {
        return;
    }
    let scratch = installed(&[]);
    let mut program = elsewhere("user");
    let pid = program.pid();
    let said = attached_to(&scratch, &mut program, pid);
    assert!(report::calls(&scratch.path().join("out"), "fputs") > 0, "{said}");
    assert_eq!(program.end(), "");
}

/// Recordings are named by the number that the process has for itself.
#[test]
fn a_process_in_a_namespace_has_a_summary() {
    if !need::root("a namespace of process numbers") {
        return;
    }
    let scratch = installed(&[]);
    let mut program = elsewhere("namespace");
    let pid = program.line().parse().expect("a number");
    let said = attached_to(&scratch, &mut program, pid);
    assert!(said.contains("elsewhere  pid 1  ") && said.contains("elsewhere.1.chase"), "{said}");
    assert_eq!(program.end(), "");
}

#[test]
fn a_process_whose_first_thread_has_ended_is_refused() {
    let scratch = TempDir::new().expect("a directory");
    let mut program = elsewhere("thread");
    assert_eq!(program.round(), "next");
    let pid = program.pid();
    let said = attached_to(&scratch, &mut program, pid);
    assert!(said.contains("the first thread of process"), "{said}");
    assert_eq!(program.end(), "");
}

/// What a thread was given to run is found afterwards, where the runtime keeps it.
#[test]
fn threads_are_called_by_what_they_run() {
    let scratch = TempDir::new().expect("a directory");
    let mut program = Rounds::start(Command::new(rounds()));
    let attached = Attached::begin(program.pid(), scratch.path());
    let _ = program.round();
    attached.end();
    assert_eq!(program.end(), "");
    let threads = report::document(scratch.path(), "threads");
    let groups = threads["groups"].as_array().expect("groups");
    let work = groups.iter().find(|group| group["threads"] == 64).expect("all of them");
    assert!(work["label"].as_str().is_some_and(|label| label.ends_with("work")), "{work}");
}

/// Between two attachments nothing is recorded, and no time of the run is.
#[test]
fn pauses_between_attachments_are_no_time_of_the_run() {
    const PAUSE: Duration = Duration::from_millis(700);
    let scratch = TempDir::new().expect("a directory");
    let mut program = Rounds::start(Command::new(rounds()));
    for pause in [PAUSE, Duration::ZERO] {
        let attached = Attached::begin(program.pid(), scratch.path());
        let _ = program.round();
        attached.end();
        std::thread::sleep(pause);
    }
    assert_eq!(program.end(), "");
    let run = report::document(scratch.path(), "threads");
    let ns = |value: &serde_json::Value| value.as_f64().expect("ns");
    let paused = ns(&run["span_ns"]) - ns(&run["wall_ns"]);
    assert!(paused >= PAUSE.as_nanos() as f64, "{paused}");
    let lived: f64 =
        run["processes"].as_array().expect("two").iter().map(|row| ns(&row["wall_ns"])).sum();
    assert!((ns(&run["wall_ns"]) - lived).abs() < 1e6, "{lived}: {run}");
}
