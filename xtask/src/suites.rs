//! `cargo xtask suites`: test suites of other projects, as Debian packages them, with and without chase.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages;
use crate::run::{Outcome, build, library, root, say};

/// Programs that are killed after this take too long without chase as well.
const SECONDS: &str = "900";

/// What a test says of itself: how it ended, and the lines that count.
#[derive(PartialEq)]
struct Verdict {
    status: Option<i32>,
    lines: Vec<String>,
}

/// Runs a third of CPython's suite (or the modules whose names have this in them) and all of GLib's, and compares.
pub(crate) fn suites(only: Option<&str>) -> Outcome {
    packages::install_suites()?;
    build()?;
    let modules = listed(Command::new("/usr/bin/python3").args(["-m", "test", "--list-tests"]))?;
    let third = modules.iter().enumerate().filter(|(number, _)| only.is_some() || number % 3 == 0);
    let tests = third.map(|(_, module)| {
        let arguments = ["-m", "test", "-v", module].map(str::to_owned).to_vec();
        (format!("python {module}"), PathBuf::from("/usr/bin/python3"), arguments)
    });
    let mut all: Vec<_> = tests.collect();
    let directory = Path::new("/usr/libexec/installed-tests/glib");
    let entries = std::fs::read_dir(directory).map_err(|error| format!("GLib's tests: {error}"))?;
    for entry in entries.flatten() {
        let is_program = entry.metadata().is_ok_and(|metadata| metadata.is_file())
            && entry.path().extension().is_none();
        if is_program {
            let name = format!("glib {}", entry.file_name().display());
            all.push((name, entry.path(), vec!["--tap".to_owned()]));
        }
    }
    all.retain(|(name, ..)| only.is_none_or(|only| name.contains(only)));
    all.sort();
    say(&format!("{} tests of CPython's and GLib's, each without and with chase", all.len()));
    let (mut same, mut unsteady, mut different) = (0, Vec::new(), Vec::new());
    for (name, program, arguments) in &all {
        let run = |is_hooked| verdict(program, arguments, is_hooked);
        let bare = run(false)?;
        if run(true)? == bare {
            same += 1;
        } else if run(false)? != bare || run(true)? == bare {
            unsteady.push(name.as_str());
        } else {
            println!("    differs: {name}");
            different.push(name.as_str());
        }
    }
    println!(
        "    {same} the same; not always the same without chase either, or once: {unsteady:?}"
    );
    if different.is_empty() { Ok(()) } else { Err(format!("{different:?} differ")) }
}

fn listed(command: &mut Command) -> Result<Vec<String>, String> {
    let output = command.output().map_err(|error| format!("python3: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

fn verdict(program: &Path, arguments: &[String], is_hooked: bool) -> Result<Verdict, String> {
    let scratch = root().join("target/suites");
    let _ = std::fs::remove_dir_all(&scratch);
    let failed = |error| format!("{}: {error}", scratch.display());
    std::fs::create_dir_all(scratch.join("work")).map_err(failed)?;
    let mut command = Command::new("timeout");
    command.args(["-k", "5", SECONDS, "env"]);
    if is_hooked {
        command.arg(format!("LD_PRELOAD={}", library().display()));
        command.arg(format!("CHASE_OUTPUT={}", scratch.join("data").display()));
    }
    command.arg(program).args(arguments).current_dir(scratch.join("work"));
    let output = command.output().map_err(|error| format!("timeout: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // How many ran, and which did not succeed: in the words of unittest, and of TAP.
    let counts = |line: &&str| {
        ["OK", "FAILED", "ok ", "not ok ", "1.."].iter().any(|word| line.starts_with(word))
    };
    let ran = |line: &str| line.strip_prefix("Ran ")?.split_once(" in ").map(|it| it.0.to_owned());
    let mut lines: Vec<String> = text.lines().filter(counts).map(str::to_owned).collect();
    lines.extend(text.lines().filter_map(ran));
    lines.sort();
    Ok(Verdict { status: output.status.code(), lines })
}
