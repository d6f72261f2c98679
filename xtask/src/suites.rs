//! `cargo xtask suites`: test suites of other projects, as Debian packages them, with and without chase.

pub(crate) mod sources;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages;
use crate::run::{Outcome, build, library, root, say};

/// The suites.
const SUITES: [&str; 7] = ["python", "glib", "gcc", "uftrace", "lua", "redis", "sqlite"];

/// One test.
struct Case {
    name: String,
    /// The program and its arguments.
    command: Vec<String>,
    directory: Option<PathBuf>,
    /// Killed after this: it takes too long without chase as well.
    seconds: u32,
    /// Whether all that it prints is compared, instead of what counts in the words of unittest, of TAP, of Redis and of SQLite.
    is_plain: bool,
}

/// What a test says of itself: how it ended, and what it printed, or the lines of it that count.
#[derive(PartialEq)]
struct Verdict {
    status: Option<i32>,
    lines: Vec<String>,
}

/// Runs all suites, or one, or the tests whose names have this in them, and compares.
pub(crate) fn suites(only: Option<&str>) -> Outcome {
    build()?;
    let suite = only.map(|only| only.split(' ').next().unwrap_or(only));
    let suite = suite.filter(|suite| SUITES.contains(suite));
    let mut all = Vec::new();
    for name in SUITES.iter().filter(|name| suite.is_none_or(|suite| suite == **name)) {
        packages::install_suite(name)?;
        let cases = match *name {
            "python" => python(only)?,
            "glib" => glib()?,
            "gcc" => sources::gcc()?,
            "uftrace" => sources::uftrace()?,
            "redis" => sources::redis()?,
            "sqlite" => sources::sqlite()?,
            _ => sources::lua()?,
        };
        if cases.is_empty() && only.is_none_or(|only| only == *name) {
            return Err(format!("{name}: there are no tests"));
        }
        all.extend(cases);
    }
    all.retain(|case| only.is_none_or(|only| case.name.contains(only)));
    all.sort_by(|a, b| a.name.cmp(&b.name));
    if all.is_empty() {
        return Err(format!("no test has {:?} in its name", only.unwrap_or_default()));
    }
    say(&format!("{} tests of other projects, each without and with chase", all.len()));
    let (mut same, mut unsteady, mut different) = (0, Vec::new(), Vec::new());
    for case in &all {
        let run = |is_hooked| verdict(case, is_hooked);
        let bare = run(false)?;
        if run(true)? == bare {
            same += 1;
        } else if run(false)? != bare || run(true)? == bare {
            println!("    not always the same: {}", case.name);
            unsteady.push(case.name.as_str());
        } else {
            println!("    differs: {}", case.name);
            different.push(case.name.as_str());
        }
    }
    println!(
        "    {same} the same; not always the same without chase either, or once: {unsteady:?}"
    );
    if different.is_empty() { Ok(()) } else { Err(format!("{different:?} differ")) }
}

/// A third of CPython's modules, or those whose names have this in them.
fn python(only: Option<&str>) -> Result<Vec<Case>, String> {
    let modules = listed(Command::new("/usr/bin/python3").args(["-m", "test", "--list-tests"]))?;
    let is_named =
        |module: &str| only.is_some_and(|only| format!("python {module}").contains(only));
    let is_whole_suite = only.is_none_or(|only| only == "python");
    let wanted = modules
        .iter()
        .enumerate()
        .filter(|(number, module)| if is_whole_suite { number % 3 == 0 } else { is_named(module) });
    let case = |(_, module): (usize, &String)| Case {
        name: format!("python {module}"),
        command: ["/usr/bin/python3", "-m", "test", "-v", module].map(str::to_owned).to_vec(),
        directory: None,
        seconds: 300,
        is_plain: false,
    };
    Ok(wanted.map(case).collect())
}

/// All of GLib's.
fn glib() -> Result<Vec<Case>, String> {
    let directory = Path::new("/usr/libexec/installed-tests/glib");
    let entries = std::fs::read_dir(directory).map_err(|error| format!("GLib's tests: {error}"))?;
    let is_program = |entry: &std::fs::DirEntry| {
        entry.metadata().is_ok_and(|metadata| metadata.is_file())
            && entry.path().extension().is_none()
    };
    let case = |entry: std::fs::DirEntry| Case {
        name: format!("glib {}", entry.file_name().display()),
        command: vec![entry.path().display().to_string(), "--tap".to_owned()],
        directory: None,
        seconds: 120,
        is_plain: false,
    };
    Ok(entries.flatten().filter(is_program).map(case).collect())
}

fn listed(command: &mut Command) -> Result<Vec<String>, String> {
    let output = command.output().map_err(|error| format!("python3: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

fn verdict(case: &Case, is_hooked: bool) -> Result<Verdict, String> {
    let scratch = root().join("target/suites/run");
    let _ = std::fs::remove_dir_all(&scratch);
    let failed = |error| format!("{}: {error}", scratch.display());
    std::fs::create_dir_all(scratch.join("work")).map_err(failed)?;
    let mut command = Command::new("timeout");
    command.args(["-k", "5", &case.seconds.to_string(), "env"]);
    if is_hooked {
        command.arg(format!("LD_PRELOAD={}", library().display()));
        command.arg(format!("CHASE_OUTPUT={}", scratch.join("data").display()));
        command.arg("CHASE_SYSCALLS=off");
    }
    let work = scratch.join("work");
    command.args(&case.command).current_dir(case.directory.as_ref().unwrap_or(&work));
    command.stdin(std::process::Stdio::null()).env_remove("CHASE_LIB");
    let output = command.output().map_err(|error| format!("timeout: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    if case.is_plain {
        let lines = text.lines().map(str::to_owned).collect();
        return Ok(Verdict { status: output.status.code(), lines });
    }
    let mut lines: Vec<String> = text.lines().filter_map(what_counts).collect();
    lines.sort();
    Ok(Verdict { status: output.status.code(), lines })
}

/// How many ran, and which did not succeed, without how long that took: in the words of unittest, of TAP, of Redis and of SQLite.
fn what_counts(line: &str) -> Option<String> {
    if let Some(ran) = line.strip_prefix("Ran ") {
        return ran.split_once(" in ").map(|it| it.0.to_owned());
    }
    if ["[ok]: ", "[err]: ", "[ignore]: "].iter().any(|word| line.starts_with(word)) {
        let name = line.rsplit_once(" (").filter(|(_, took)| took.ends_with(" ms)"));
        return Some(name.map_or(line, |it| it.0).to_owned());
    }
    let begins =
        ["OK", "FAILED", "ok ", "not ok ", "1.."].iter().any(|word| line.starts_with(word));
    let is_sqlites = line.ends_with("... Ok") || line.contains(" errors out of ");
    (begins || is_sqlites).then(|| line.to_owned())
}

#[test]
fn how_long_a_test_took_does_not_count() {
    let counted = |line| what_counts(line).unwrap_or_default();
    assert_eq!(counted("Ran 17 tests in 0.3s"), "17 tests");
    assert_eq!(
        counted("[ok]: LPUSH (ziplist) and RPUSH (13 ms)"),
        "[ok]: LPUSH (ziplist) and RPUSH"
    );
    assert_eq!(counted("[err]: LPUSH (ziplist)"), "[err]: LPUSH (ziplist)");
    assert_eq!(counted("select1-1.2... Ok"), "select1-1.2... Ok");
    assert_eq!(counted("Time: select1.test 12 ms"), "");
}
