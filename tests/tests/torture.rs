//! Random programs, each the same for its seed, that do in all ways what makes hooking hard: what they print, how they end,
//! and how often each function was called are as without the hook. `cargo xtask torture` runs more of them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chase_tests::attached::attach;
use chase_tests::compile::{Build, libtrap};
use chase_tests::recorded::Recording;
use chase_tests::trial::Trial;
use tempfile::TempDir;

/// Actions of a program; those in others, and in other processes, count as well.
const FUEL: u32 = 600;
/// Of one that is attached to while it runs.
const LONG_FUEL: u32 = 6_000;

struct Programs {
    program: PathBuf,
    plugins: Vec<PathBuf>,
}

impl Programs {
    fn build() -> Programs {
        let library = Build::library("torture/libtorture.c").named("libtorture.so");
        let library = library.flags("-fexceptions -Wno-psabi").with(&libtrap()).build();
        let plugin = |number: u32| {
            let plugin = Build::library("torture/plugin.c").named(&format!("plugin{number}.so"));
            let plugin = plugin.flags(&format!("-DPLUGIN={number}")).with(&libtrap());
            plugin.with(&library).build()
        };
        let program = Build::program("torture/torture.cpp").named("torture").with(&library).build();
        Programs { program, plugins: (1..=3).map(plugin).collect() }
    }

    /// Runs the program of a seed, bare and in this mode.
    fn run(&self, seed: u64, mode: &str) {
        if mode == "attach" {
            return self.run_attached(seed);
        }
        let trial = Trial::new(&self.program).args([&seed.to_string(), &FUEL.to_string()]);
        let trial = trial.args(["counts", "told"]).args(&self.plugins);
        let trial = match mode {
            "events" => trial.hooked_env("CHASE_EVENTS", "all"),
            timing => trial.hooked_env("CHASE_TIMING", timing),
        };
        let trial = trial.limit(Duration::from_secs(240));
        let recording = trial.compare();
        let called = calls(&recording);
        let (mut missing, mut wrong) = (0, Vec::new());
        let (begun, forked) = (trial.told("told.begun"), trial.told("told.forked"));
        // A fork's child is not recorded if a thread had to take a lock from the fork. What it called is in no recording.
        let forks: u64 = recording.processes.iter().map(|it| it.unseen.forks).sum();
        for (name, told) in trial.told("told") {
            let called = called(&name);
            // A handler that a cancellation ended may not have come to its call.
            let told =
                if called < told { called.max(told.saturating_sub(begun[&name])) } else { told };
            if called != told {
                wrong.push(format!("{name}: {told} calls, {called} recorded"));
            }
            let by_forks = if forks > 0 { forked[&name] } else { 0 };
            missing += told.saturating_sub(called + by_forks);
            assert!(called <= told, "{wrong:?}");
        }
        // Signal handlers may run in a thread whose end has been recorded: such calls are counted.
        let lost: u64 = recording.processes.iter().map(|it| it.unseen.calls_without_thread).sum();
        // Those that come in the midst of a change, which only synchronous signals may, are not among them.
        let threads = recording.processes.iter().flat_map(|process| &process.threads);
        let in_changes: u64 = threads.map(|thread| thread.lost_calls).sum();
        let unseen = || (in_changes, unseen(&recording));
        assert!(missing <= lost, "{wrong:?}, {lost} said to be missing; {:?}", unseen());
    }
}

impl Programs {
    /// Runs the program of a seed, bare, and attached to and left again and again.
    fn run_attached(&self, seed: u64) {
        let scratch = TempDir::new().expect("a directory");
        let start = |name: &str| {
            let work = scratch.path().join(name);
            fs::create_dir(&work).expect("a directory");
            let mut command = Command::new(&self.program);
            command.args([&seed.to_string(), &LONG_FUEL.to_string()]).args(["counts", "told"]);
            command.args(&self.plugins).current_dir(&work).env_remove("LD_PRELOAD");
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            (command.spawn().expect("starts"), work)
        };
        let bare = start("bare").0.wait_with_output().expect("ends");
        let (mut program, work) = start("attached");
        let recordings = scratch.path().join("recordings");
        let mut seen = 0;
        while program.try_wait().expect("a child").is_none() {
            let mut command = attach(program.id(), &recordings, &[]);
            let mut chase = command.stderr(Stdio::piped()).spawn().expect("chase starts");
            let mut said = BufReader::new(chase.stderr.take().expect("piped"));
            let mut first = String::new();
            said.read_line(&mut first).expect("text");
            // (It may have ended before, or be where nobody may attach.)
            if first.contains("recording process") {
                seen += 1;
                std::thread::sleep(Duration::from_millis(1 + seed.wrapping_mul(seen) % 30));
                // SAFETY: it is our child, which nobody has waited for.
                unsafe { libc::kill(chase.id() as i32, libc::SIGINT) };
            }
            let mut rest = String::new();
            std::io::Read::read_to_string(&mut said, &mut rest).expect("text");
            chase.wait().expect("it ends");
        }
        let output = program.wait_with_output().expect("ends");
        assert_eq!(output, bare, "attached {seen} times");
        if seen > 0 {
            let recording = Recording::load(&recordings);
            let called = calls(&recording);
            for line in fs::read_to_string(work.join("told")).expect("told").lines() {
                let (name, told) = line.split_once(' ').expect("a name and a number");
                assert!(called(name) <= told.parse().expect("a number"), "{name}: {told}");
            }
        }
        eprintln!("seed {seed}: attached {seen} times");
    }
}

/// How often the functions of a name were called, in all processes.
fn calls(recording: &Recording) -> impl Fn(&str) -> u64 {
    |name| {
        let apis = recording.processes.iter().flat_map(|process| &process.apis);
        apis.filter(|api| api.name == name).map(|api| api.calls).sum()
    }
}

/// What the processes' recordings say is missing.
fn unseen(recording: &Recording) -> Vec<(u32, u32, chase_tests::recorded::Unseen)> {
    recording.processes.iter().map(|it| (it.pid, it.stop_reason, it.unseen)).collect()
}

/// The seed is in the message of whatever fails.
fn told<T>(seed: u64, mode: &str, run: impl FnOnce() -> T) -> T {
    struct Told<'a>(u64, &'a str);
    impl Drop for Told<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("again: cargo xtask torture --seed {} --mode {}", self.0, self.1);
            }
        }
    }
    let _told = Told(seed, mode);
    run()
}

/// How programs are recorded: the timings, and with an event for each call. (`attach`, which takes long, is another; a program
/// that is attached to is recorded in parts.)
const MODES: [&str; 4] = ["adaptive", "all", "count", "events"];

#[test]
fn random_programs_are_the_same_and_their_calls_are_counted() {
    let programs = Programs::build();
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mode = std::env::var("CHASE_TORTURE_MODE").ok();
    let modes: Vec<&str> = mode.as_deref().map_or(MODES.to_vec(), |mode| vec![mode]);
    let run = |seed: u64| {
        for mode in &modes {
            told(seed, mode, || programs.run(seed, mode));
        }
    };
    if let Some(seconds) = number("CHASE_TORTURE_SECONDS") {
        let first = number("CHASE_TORTURE_SEED").unwrap_or(1);
        let (begin, mut seed) = (Instant::now(), first);
        while begin.elapsed() < Duration::from_secs(seconds) {
            run(seed);
            seed += 1;
        }
        eprintln!(
            "{} seeds, from {first} on, in {:.0?}: no difference",
            seed - first,
            begin.elapsed()
        );
    } else if let Some(seed) = number("CHASE_TORTURE_SEED") {
        run(seed);
    } else {
        (1..=3).for_each(run);
    }
}
