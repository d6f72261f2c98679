//! `cargo xtask fuzz`: the readers and the analyzer against nonsense.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{Outcome, cargo, root, run, say};

/// What is fuzzed: a file each in `fuzz/targets`, and in `fuzz/whole/targets` what needs whole programs.
const TARGETS: [(&str, &str); 8] = [
    (".", "reader"),
    (".", "analysis"),
    (".", "syscalls"),
    (".", "archive"),
    (".", "names"),
    (".", "symbols"),
    ("whole", "views"),
    ("whole", "jitdump"),
];
/// What of the first is fuzzed in the tests, and how far.
const TESTED: [(&str, &str); 4] = [
    ("reader", "-runs=100000"),
    ("analysis", "-runs=12000"),
    ("syscalls", "-runs=800"),
    ("names", "-runs=4000"),
];

/// How the targets are fuzzed.
#[derive(Clone, Copy)]
pub(crate) enum Fuzzing {
    /// As [`TESTED`] says, with the inputs that the same start gives: what tests prove must not differ from one run to the next.
    Same,
    /// With others each time, for so many seconds.
    New(u32),
}

/// Where the files of fuzz targets are, in memory; gone in the end.
struct Files(PathBuf);

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Fuzzes each target, or one, with coverage by flags that stable Rust takes. Each has a corpus of its own, which begins with
/// the seeds and, for other inputs each time, with what earlier runs found.
pub(crate) fn fuzz(how: Fuzzing, only: Option<&str>) -> Outcome {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module \
        -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";
    let place = match how {
        Fuzzing::Same => "target/corpus",
        Fuzzing::New(_) => "corpus",
    };
    let targets: Vec<(&str, &str, String)> = match how {
        Fuzzing::Same => TESTED.map(|(target, limit)| (".", target, limit.to_owned())).to_vec(),
        Fuzzing::New(seconds) => {
            let limit = format!("-max_total_time={seconds}");
            TARGETS.map(|(package, target)| (package, target, limit.clone())).to_vec()
        }
    };
    let wanted = |(_, target, _): &(&str, &str, String)| only.is_none_or(|only| only == *target);
    let targets: Vec<_> = targets.into_iter().filter(wanted).collect();
    if targets.is_empty() {
        return Err(format!("the targets are {:?}", TARGETS.map(|(_, target)| target)));
    }
    say("Fuzzing the readers and the analyzer");
    let fuzz = root().join("fuzz");
    for package in [".", "whole"] {
        let of_package = targets.iter().filter(|(of, ..)| *of == package);
        // The target is named so that build scripts are left without counters.
        let bins: Vec<&str> = of_package.flat_map(|(_, target, _)| ["--bin", target]).collect();
        if !bins.is_empty() {
            let mut build = cargo(["build", "--release", "--target", TARGET]);
            build.args(bins).current_dir(fuzz.join(package)).env("RUSTFLAGS", COVERAGE);
            // Otherwise as the manifests say, for runs of seconds.
            if matches!(how, Fuzzing::New(_)) {
                build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3");
            }
            run(&mut build)?;
        }
    }
    let _ = std::fs::create_dir_all(fuzz.join("artifacts"));
    for (package, name, limit) in targets {
        // Each has files of its own, so that several can run at once.
        let files = Files(format!("/dev/shm/chase-fuzz-{name}-{}", std::process::id()).into());
        std::fs::create_dir_all(&files.0).map_err(|error| format!("no room for files: {error}"))?;
        let corpus = format!("{place}/{name}");
        let seed = match how {
            Fuzzing::Same => {
                let _ = std::fs::remove_dir_all(fuzz.join(&corpus));
                "-seed=1"
            }
            Fuzzing::New(_) => "-seed=0",
        };
        let mut seeds = cargo(["run", "--package", "chase-recorder", "--example", "seeds"]);
        seeds.arg("--manifest-path").arg(root().join("Cargo.toml"));
        run(seeds.args(["--", name, &corpus]).current_dir(&fuzz))?;
        let target = fuzz.join(package).join("target").join(TARGET).join("release").join(name);
        run(Command::new(target)
            .arg(&corpus)
            .args([seed, &limit])
            .args([
                "-max_len=65536",
                // So long only where all else goes before it.
                "-timeout=120",
                "-rss_limit_mb=512",
                "-verbosity=0",
                "-print_final_stats=1",
            ])
            .arg("-artifact_prefix=artifacts/")
            .env("TMPDIR", &files.0)
            .current_dir(&fuzz))?;
    }
    Ok(())
}
