//! Each system call that the hook makes fails once, or is the last one before a kill. The program must not notice, and what
//! was recorded must be readable.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use chase_recorder::layout::STOP_NONE;
use chase_tests::attached::{Rounds, attach, entries};
use chase_tests::compile::{Build, libtrap};
use chase_tests::need;
use chase_tests::recorded::{Process, Recording};
use chase_tests::trial::Trial;
use tempfile::TempDir;

/// Errors by turns.
const ERRORS: [i32; 7] = [
    libc::ENOMEM,
    libc::ENOSPC,
    libc::EMFILE,
    libc::EACCES,
    libc::EINTR,
    libc::EPERM,
    libc::EDQUOT,
];

/// System calls are looked at in steps of this, by turns in each way of recording; with `CHASE_FAULTS` set, each one is in each.
const STEP: usize = 7;

/// The system calls by which the first thread and the first objects get their memory: each is tried in each run, since a whole
/// recording depends on them. (One could fail without a word of what was missing.)
const AT_START: RangeInclusive<usize> = 44..=64;

/// Ways of recording that call the system in other places: variables of the environment.
const WAYS: [&[(&str, &str)]; 3] = [
    &[],
    // Little room for events, so that threads take it from each other.
    &[("CHASE_EVENTS", "all,64KB"), ("CHASE_TIMING", "all")],
    &[("CHASE_TIMING", "count"), ("CHASE_EVENTS", "off"), ("CHASE_MAX_SIZE", "256KB")],
];

fn is_whole() -> bool {
    std::env::var_os("CHASE_FAULTS").is_some()
}

/// `faulty.c`, in which the hook's system call of this number meets `what`.
fn trial(build: &Programs, way: usize, number: usize, what: &str) -> Trial {
    let plugin = Build::library("libplugin.c").named("libplugin1.so").flags("-DNUMBER=1");
    let plugin = plugin.with(&libtrap()).build();
    let tracer = build.tracer.to_str().expect("a path of text");
    let trial = Trial::new(&build.program).arg(plugin);
    let trial = trial.inside(&[tracer, &number.to_string(), what, "made"]);
    WAYS[way].iter().fold(trial, |trial, (name, value)| trial.hooked_env(name, value))
}

struct Programs {
    program: PathBuf,
    tracer: PathBuf,
}

/// Calls of `libtrap.so`, by who made them: whether that was a fork's child, and how it ended.
type Made = BTreeMap<(bool, (u32, i32)), u64>;

fn who(process: &Process) -> (bool, (u32, i32)) {
    (process.forked, process.end)
}

fn calls(process: &Process) -> u64 {
    process.apis.iter().filter(|api| api.provider == "libtrap.so").map(|api| api.calls).sum()
}

impl Programs {
    fn build() -> Self {
        let tracer = Build::program("fault.c").without_libtrap().build();
        Self { program: Build::program("faulty.c").build(), tracer }
    }

    /// What is recorded where nothing fails: the program makes the same calls each time.
    fn made(&self) -> Made {
        let recording = trial(self, 0, 0, "0").compare();
        recording.processes.iter().map(|process| (who(process), calls(process))).collect()
    }

    /// Which way, and the number of which system call of the hook, is tried.
    fn cases(&self) -> Vec<(usize, usize)> {
        let (mut cases, mut all) = (Vec::new(), 0);
        for way in 0..WAYS.len() {
            let trial = trial(self, way, 0, "0");
            let _ = trial.compare();
            let made = trial.told("made")["calls"] as usize;
            assert!(made > 100, "only {made} system calls of the hook were seen");
            all += made;
            let is_tried = |number: &usize| {
                let is_in_turn = number % STEP == 1 && number / STEP % WAYS.len() == way;
                is_whole() || is_in_turn || way == 0 && AT_START.contains(number)
            };
            cases.extend((1..=made).filter(is_tried).map(|number| (way, number)));
        }
        eprintln!("{} of {all} system calls of the hook", cases.len());
        cases
    }
}

/// Calls that the recording says are missing.
fn unseen(process: &Process) -> u64 {
    let unseen = &process.unseen;
    unseen.calls_without_thread + unseen.calls_without_space + unseen.calls_too_deep
}

/// Whether the recording says that calls are missing, of which nobody knows how many: it was stopped, or those of whole threads or objects
/// are not seen.
fn lacks_more(process: &Process) -> bool {
    let unseen = &process.unseen;
    let of_objects = unseen.objects + unseen.slots_without_stub + unseen.late_loads;
    process.stop_reason != STOP_NONE || unseen.threads + of_objects > 0
}

#[test]
fn each_system_call_may_fail() {
    let programs = Programs::build();
    let made = programs.made();
    assert!(made.values().sum::<u64>() > 500, "{made:?}");
    let mut wrong = Vec::new();
    for (way, number) in programs.cases() {
        // What comes first decides whether there is a recording at all: most ways to fail are there.
        let one = [ERRORS[number / STEP / WAYS.len() % ERRORS.len()]];
        for error in if is_whole() { &ERRORS[..] } else { &one } {
            let trial = trial(&programs, way, number, &error.to_string());
            trial.compare_outcomes();
            // Each that is there can be read, and tells no more than was made, nor less without saying so.
            let processes = Recording::load(&trial.output()).processes;
            let (children, parents): (Vec<_>, Vec<_>) = processes.iter().partition(|it| it.forked);
            // The parent has an image before its `exec` and one after it.
            let is_said =
                parents.iter().any(|parent| parent.unseen.forks == 1 || lacks_more(parent));
            if parents.len() == 2 && children.is_empty() && !is_said {
                wrong
                    .push(format!("system call {number}, error {error}, {:?}: a child", WAYS[way]));
            }
            for process in &processes {
                let (calls, made) = (calls(process), made.get(&who(process)).copied());
                let is_right = match made {
                    Some(made) => {
                        calls <= made && (calls + unseen(process) >= made || lacks_more(process))
                    }
                    // How it ended could not be noted.
                    None => lacks_more(process),
                };
                if !is_right {
                    wrong.push(format!(
                        "system call {number}, error {error}, {:?}: {calls} of {made:?}, {:?}; {:?}",
                        WAYS[way],
                        who(process),
                        process.unseen
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} tell less than they say:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn killed_at_each_system_call() {
    let programs = Programs::build();
    for (way, number) in programs.cases() {
        let trial = trial(&programs, way, number, "kill");
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
            assert_eq!(recording.problems(), [], "killed at {number}, {:?}", WAYS[way]);
        }
    }
}

/// A program that runs already.
struct Running {
    program: PathBuf,
    tracer: PathBuf,
    scratch: TempDir,
}

/// What it said, and whether and why it could not be attached to.
struct Seen {
    lines: Vec<String>,
    refused: Option<String>,
}

impl Running {
    /// The program's own process, attached to and left so many times; this system call of the first time fails.
    fn run(&self, number: usize, error: i32, times: usize) -> Seen {
        let mut command = Command::new(&self.tracer);
        command.args([number.to_string(), error.to_string()]).arg(self.made());
        // What is called for the first time meanwhile would get its address from the loader.
        command.arg(&self.program).env("LD_BIND_NOW", "1");
        command.current_dir(self.scratch.path());
        let mut program = Rounds::start(command);
        let before = entries(program.pid());
        let mut seen = Seen { lines: vec![program.round()], refused: None };
        for time in 0..times {
            let directory = self.scratch.path().join("out");
            let mut chase = attach(program.pid(), &directory, &["--quiet", "--duration", "1ms"]);
            let output = chase.output().expect("chase starts");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.code() {
                Some(0) => {}
                Some(125) if time == 0 && !said.is_empty() => seen.refused = Some(said),
                other => panic!("{other:?} at time {time}, {number}, error {error}: {said}"),
            }
            assert!(entries(program.pid()) == before, "{number}, error {error}: entries differ");
            seen.lines.push(program.round());
            if output.status.success() {
                let recording = Recording::load(&directory);
                assert_eq!(recording.processes.len(), 1, "{number}, error {error}");
            }
            fs::remove_dir_all(directory).unwrap_or_default();
        }
        seen.lines.push(program.end());
        seen
    }

    /// Where the tracer says how many system calls there were.
    fn made(&self) -> PathBuf {
        self.scratch.path().join("made")
    }
}

/// Those that chase makes in a process that it attaches to, and leaves again. The process goes on; what can't be done is said;
/// and after that it can be attached to as ever.
#[test]
fn each_system_call_of_attaching_may_fail() {
    const STEP: usize = 11;
    const ERRORS: [i32; 5] = [libc::ENOMEM, libc::EACCES, libc::EMFILE, libc::EINTR, libc::EPERM];
    let running = Running {
        program: Build::program("faulty_attached.c").flags("-pthread").build(),
        tracer: Build::program("fault_attach.c").without_libtrap().build(),
        scratch: TempDir::new().expect("a directory"),
    };
    // The program is under a filter, which the kernel shows to root, but not to who has one.
    let own = fs::read_to_string("/proc/self/status").expect("this process");
    let is_root = need::root("faults while attaching");
    if is_root && !own.contains("Seccomp:\t0") {
        need::skip("faults while attaching", "this process has a filter of system calls itself");
    }
    if !is_root || !own.contains("Seccomp:\t0") {
        let refused =
            running.run(0, 0, 1).refused.expect("a filter that is not seen is not trusted");
        return assert!(refused.contains("seccomp"), "{refused}");
    }
    let once = running.run(0, 0, 1);
    let made = fs::read_to_string(running.made()).expect("how many were made");
    let made: usize = made.trim_start_matches("calls ").trim().parse().expect("a number");
    let expected = running.run(0, 0, 2);
    assert_eq!((once.refused, &expected.refused), (None, &None));
    assert!(made > 50, "only {made} system calls were seen");
    let (mut tried, mut refused) = (0, 0);
    for number in (1..=made).filter(|number| is_whole() || number % STEP == 1) {
        let one = [ERRORS[number / STEP % ERRORS.len()]];
        for &error in if is_whole() { &ERRORS[..] } else { &one } {
            let seen = running.run(number, error, 2);
            assert_eq!(seen.lines, expected.lines, "{number}, error {error}: {:?}", seen.refused);
            tried += 1;
            refused += usize::from(seen.refused.is_some());
        }
    }
    eprintln!("{tried} faults of {made} system calls: {refused} times chase could not attach");
}

/// Whether a recording has a header.
fn has_header(path: &Path) -> bool {
    let bytes = fs::read(path).expect("read a recording");
    bytes.iter().take(4096).any(|byte| *byte != 0)
}
