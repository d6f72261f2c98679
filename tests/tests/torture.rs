//! Random programs, each the same for its seed, that do in all ways what makes hooking hard: what they print, how they end,
//! and how often each function was called are as without the hook. `cargo xtask torture` runs more of them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use chase_tests::compile::{Build, libtrap};
use chase_tests::recorded::Recording;
use chase_tests::trial::Trial;

/// Actions of a program; those in others, and in other processes, count as well.
const FUEL: u32 = 600;

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

    /// Runs the program of a seed, bare and with this timing.
    fn run(&self, seed: u64, timing: &str) {
        let trial = Trial::new(&self.program).args([&seed.to_string(), &FUEL.to_string()]);
        let trial = trial.args(["counts", "told"]).args(&self.plugins);
        let trial = trial.hooked_env("CHASE_TIMING", timing).limit(Duration::from_secs(240));
        let recording = trial.compare();
        let called = calls(&recording);
        let (mut missing, mut wrong) = (0, Vec::new());
        for (name, told) in trial.told("told") {
            let called = called(&name);
            if called != told {
                wrong.push(format!("{name}: {told} calls, {called} recorded"));
            }
            missing += told.saturating_sub(called);
            assert!(called <= told, "{wrong:?}");
        }
        // Signal handlers may run in a thread whose end has been recorded: such calls are counted.
        let lost: u64 = recording.processes.iter().map(|it| it.unseen.calls_without_thread).sum();
        assert!(missing <= lost, "{wrong:?}, {lost} said to be missing; {:?}", unseen(&recording));
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
fn told<T>(seed: u64, timing: &str, run: impl FnOnce() -> T) -> T {
    struct Told<'a>(u64, &'a str);
    impl Drop for Told<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("again: cargo xtask torture --seed {} --timing {}", self.0, self.1);
            }
        }
    }
    let _told = Told(seed, timing);
    run()
}

const TIMINGS: [&str; 3] = ["adaptive", "all", "count"];

#[test]
fn random_programs_are_the_same_and_their_calls_are_counted() {
    let programs = Programs::build();
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let timing = std::env::var("CHASE_TORTURE_TIMING").ok();
    let timings: Vec<&str> = timing.as_deref().map_or(TIMINGS.to_vec(), |timing| vec![timing]);
    let run = |seed: u64| {
        for timing in &timings {
            told(seed, timing, || programs.run(seed, timing));
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
