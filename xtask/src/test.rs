//! `cargo xtask test`, `foreign` and `bench`.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{Outcome, build, cargo, library, report, root, run, say};
use crate::{layers, packages};

/// All tests: what is cheap first, and beside the tests of programs, which mostly wait, what leaves them their processors.
pub(crate) fn test(filter: Option<&str>) -> Outcome {
    // Meanwhile, since nothing is installed that building needs: one waits for the network, the other for the processor.
    let installing = std::thread::spawn(|| {
        let installed = packages::install();
        packages::install_browser_tests();
        installed
    });
    build()?;
    if filter.is_none() {
        say("Checking format and layers");
        run(&mut cargo(["fmt", "--all", "--check"]))?;
        layers::check()?;
    }
    installing.join().map_err(|_| "the installation of packages stopped".to_owned())??;
    let beside = filter.is_none().then(|| std::thread::spawn(beside_programs));
    let tested = test_programs(filter);
    // Also where a test has failed: nothing goes on afterwards.
    if let Some(beside) = beside {
        say(
            "Lints, documentation, and fuzzing the readers and the analyzer, which were begun before",
        );
        println!("{}", beside.join().map_err(|_| "what ran beside the tests stopped".to_owned())??);
    }
    tested
}

fn test_programs(filter: Option<&str>) -> Outcome {
    say("Testing each crate, and programs under the hook (each compared with its bare run)");
    run(testing().args(filter).env("CHASE_LIB", library()))?;
    if filter.is_none() {
        under_miri()?;
        under_stress()?;
    }
    Ok(())
}

/// The hooks that sample whatever they can, each with its features and with what cargo builds it into.
const STRESS: [(&str, &str); 2] =
    [("stress,far", "target/stress-far"), ("stress", "target/stress")];

fn build_stress(features: &str, directory: &str) -> Command {
    let mut build = cargo(["build", "--release", "-p", "chase-hook", "--features", features]);
    build.args(["--target-dir", directory]);
    build
}

/// Lints and documentation.
fn checks() -> Vec<Command> {
    // The hook is `no_std` and has no test harness to be linked with.
    let hook = cargo(["clippy", "-p", "chase-hook", "--lib", "--", "-D", "warnings"]);
    let mut all = cargo(["clippy", "--workspace", "--exclude", "chase-hook", "--all-targets"]);
    all.args(["--", "-D", "warnings"]);
    // The library and the launcher are both called `chase`: at the same time, one would write where the other does.
    let others = ["--workspace", "--exclude", "chase-launcher"];
    let docs = [&others[..], &["-p", "chase-launcher"]].map(|packages| {
        let mut doc = cargo(["doc", "--no-deps", "--document-private-items"]);
        doc.args(packages).env("RUSTDOCFLAGS", "-D warnings");
        doc
    });
    [hook, all].into_iter().chain(docs).collect()
}

/// Does what needs no more than a processor while programs are tested, which mostly wait: at a low priority, so that they don't notice.
/// Returns what was printed.
fn beside_programs() -> Result<String, String> {
    let myself = std::env::current_exe().map_err(|error| format!("no path of xtask: {error}"))?;
    let mut fuzz = Command::new(myself);
    fuzz.args(["fuzz", "--tested"]);
    let builds = STRESS.map(|(features, directory)| build_stress(features, directory));
    let mut printed = String::new();
    // Checks come after these builds: by then, the tests are built, for which they would wait otherwise.
    for command in builds.into_iter().chain(checks()).chain([fuzz]) {
        let mut gently = Command::new("nice");
        gently.args(["-n", "15"]).arg(command.get_program()).args(command.get_args());
        gently.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = gently.current_dir(root()).output();
        let output = output.map_err(|error| format!("can't run nice: {error}"))?;
        for stream in [&output.stdout, &output.stderr] {
            printed += &String::from_utf8_lossy(stream);
        }
        if !output.status.success() {
            return Err(format!("{printed}\n{command:?} failed: {}", output.status));
        }
    }
    Ok(printed)
}

/// `cargo test` of all crates but the hook's. Of all even where the tests of one are meant: with other packages, dependencies
/// have other features, and much would be built again.
fn testing() -> Command {
    cargo(["test", "--workspace", "--exclude", "chase-hook", "--no-fail-fast"])
}

/// The tests of what needs no process, interpreted, where a nightly toolchain has Miri: reads that are out of bounds or
/// of nothing show there.
fn under_miri() -> Outcome {
    let miri = || {
        let mut command = Command::new("cargo");
        command.args(["+nightly", "miri"]).current_dir(root());
        // Addresses of the dynamic linker's are numbers, wherever they come from.
        command.env("MIRIFLAGS", "-Zmiri-permissive-provenance");
        command
    };
    if !miri().arg("--version").output().is_ok_and(|output| output.status.success()) {
        say(
            "Not interpreted by Miri, which is not installed: rustup toolchain install nightly --component miri,rust-src",
        );
        return Ok(());
    }
    say("Interpreting the tests of what needs no process (Miri)");
    run(miri().args(["test", "-p", "chase-logic", "-p", "chase-format"]))
}

/// The programs that are hard to hook, with a hook that samples all it can: what they do is far from hot, so that the
/// ordinary one would time it all. First by the call path of threads whose words are far, as few programs do.
fn under_stress() -> Outcome {
    let suites = ["control_flow", "loading", "process_life", "threads", "values", "collectors"];
    // Once by each of the two call paths: for words that are far, and for those that are not. Other languages' runtimes once,
    // since they take long.
    for ((features, directory), more) in STRESS.into_iter().zip([None, Some("foreign")]) {
        say(&format!("Testing programs under a hook that samples whatever it can ({features})"));
        run(&mut build_stress(features, directory))?;
        let built: PathBuf = root().join(directory).join("release");
        // Tests look for it beside the library.
        std::fs::copy(report(), built.join("chase-report"))
            .map_err(|error| format!("can't copy chase-report: {error}"))?;
        let mut programs = testing();
        let suites = suites.iter().copied().chain(more);
        programs.args(suites.flat_map(|suite| ["--test", suite]));
        run(programs.env("CHASE_LIB", built.join("libchase.so")))?;
    }
    Ok(())
}

/// Runtimes of other languages, with those that are too large to be installed for each run of the tests.
pub(crate) fn foreign() -> Outcome {
    packages::install_foreign()?;
    build()?;
    let suites = ["--test", "foreign", "--test", "foreign_large"];
    let mut programs = cargo(["test", "-p", "chase-tests", "--no-fail-fast"]);
    run(programs.args(suites).env("CHASE_LIB", library()))
}

/// What chase costs.
pub(crate) fn bench(options: &[&str]) -> Outcome {
    build()?;
    say("Measuring what chase costs, in turns with the bare run");
    let mut command = cargo(["run", "--release", "-p", "chase-benches", "--"]);
    run(command.arg("--lib").arg(library()).args(options))
}

/// Holds all tables of real programs' reports against each other: of one program, or of all.
pub(crate) fn sums(options: &[&str]) -> Outcome {
    build()?;
    say("Recording programs in each way, and holding all tables against each other");
    let mut command = cargo(["run", "-q", "-p", "chase-tests", "--bin", "sums", "--"]);
    run(command.args(options).env("CHASE_LIB", library()))
}

/// Attaches to servers under load: how often, and to which.
pub(crate) fn servers(options: &[&str]) -> Outcome {
    build()?;
    say("Attaching to servers under load, and leaving them");
    let mut command = cargo(["run", "-q", "-p", "chase-tests", "--bin", "servers", "--"]);
    run(command.args(options).env("CHASE_LIB", library()))
}
