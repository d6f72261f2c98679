//! `cargo xtask torture`: random programs under the hook.

use std::process::Command;

use crate::run::{Outcome, build, cargo, library, report, root, run, say};

/// What was asked for.
#[derive(Default)]
pub(crate) struct Options<'a> {
    minutes: Option<u64>,
    seed: Option<&'a str>,
    mode: Option<&'a str>,
}

impl<'a> Options<'a> {
    /// `None` if they are not understood.
    pub(crate) fn parse(mut arguments: &[&'a str]) -> Option<Self> {
        let mut options = Self::default();
        while let [name, value, rest @ ..] = arguments {
            match *name {
                "--minutes" => options.minutes = Some(value.parse().ok()?),
                "--seed" => options.seed = Some(value.parse::<u64>().ok().map(|_| *value)?),
                "--mode" => options.mode = Some(value),
                _ => return None,
            }
            arguments = rest;
        }
        arguments.is_empty().then_some(options)
    }
}

/// Runs random programs for a while, or that of one seed, half of the time with a hook that samples whatever it can.
pub(crate) fn torture(options: &Options<'_>) -> Outcome {
    build()?;
    let seconds = match (options.minutes, options.seed) {
        (Some(minutes), _) => Some(minutes * 60),
        (None, Some(_)) => None,
        (None, None) => Some(60),
    };
    // Others each time, but for the seed that was asked for.
    let now = std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs() * 1000);
    let seed = options.seed.map_or(now.to_string(), str::to_owned);
    let with = |library: &std::path::Path, seconds: Option<u64>| {
        let test = ["test", "-q", "-p", "chase-tests", "--test", "torture", "--", "--nocapture"];
        let mut command = cargo(test);
        command.env("CHASE_LIB", library).env("CHASE_TORTURE_SEED", &seed);
        if let Some(mode) = options.mode {
            command.env("CHASE_TORTURE_MODE", mode);
        }
        if let Some(seconds) = seconds {
            command.env("CHASE_TORTURE_SECONDS", seconds.to_string());
        }
        run(&mut command)
    };
    say(&format!("Random programs, from seed {seed} on"));
    with(&library(), seconds.map(|seconds| seconds.div_ceil(2)))?;
    say("The same with a hook that samples whatever it can");
    let directory = root().join("target/stress");
    let mut stress = cargo(["build", "--release", "-p", "chase-hook", "--features", "stress"]);
    run(stress.arg("--target-dir").arg(&directory))?;
    std::fs::copy(report(), directory.join("release/chase-report"))
        .map_err(|error| format!("can't copy chase-report: {error}"))?;
    with(&directory.join("release/libchase.so"), seconds.map(|seconds| seconds / 2))
}

/// Each system call of the hook fails once with each error, and is once the last before a kill.
pub(crate) fn faults() -> Outcome {
    build()?;
    let mut test =
        cargo(["test", "-q", "-p", "chase-tests", "--test", "faults", "--", "--nocapture"]);
    run(test.env("CHASE_LIB", library()).env("CHASE_FAULTS", "all"))
}

/// A program is killed so many times at random moments.
pub(crate) fn kills(number: &str) -> Outcome {
    build()?;
    let name = "a_program_that_is_killed_leaves_its_latest_events";
    let mut test = cargo(["test", "-q", "-p", "chase-tests", "--test", "events", "--", name]);
    run(test.env("CHASE_LIB", library()).env("CHASE_KILLS", number))
}

/// Traces of a program of 64 threads are read by the definitions that PyPI has of Perfetto.
pub(crate) fn perfetto() -> Outcome {
    build()?;
    let packages = root().join("target/perfetto");
    if !packages.join("perfetto").exists() {
        let mut install = Command::new("/usr/bin/python3");
        // Under another name until it is whole.
        let unfinished = packages.with_extension("unfinished");
        let arguments = ["-m", "pip", "install", "-q", "--upgrade", "perfetto", "--target"];
        run(install.args(arguments).arg(&unfinished))?;
        std::fs::rename(&unfinished, &packages).map_err(|error| error.to_string())?;
    }
    let name = "a_trace_of_many_threads_is_what_perfetto_reads";
    let mut test = cargo(["test", "-q", "-p", "chase-tests", "--test", "events", "--", name]);
    run(test.env("CHASE_LIB", library()).env("CHASE_PERFETTO", packages))
}

/// More than anybody has, which takes minutes.
pub(crate) fn limits() -> Outcome {
    build()?;
    let test = ["test", "-q", "-p", "chase-tests", "--test", "limits_large", "--"];
    let mut tests = cargo(test);
    run(tests.args(["--nocapture", "--test-threads=1"]).env("CHASE_LIB", library()))
}
