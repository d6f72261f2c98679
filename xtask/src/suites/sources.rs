//! Tests in source packages: programs that are compiled one by one, and scripts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Case;
use crate::run::{root, run};

const MIRROR: &str = "http://deb.debian.org/debian";
/// The release whose sources are taken.
const RELEASE: &str = "bookworm";
/// A program of a test takes no time to speak of.
const SECONDS: u32 = 20;

/// GCC's tests of exceptions in C++.
pub(super) fn gcc() -> Result<Vec<Case>, String> {
    // The package has the sources packed.
    let place = root().join("target/suites/gcc");
    if !place.join("g++.dg").exists() {
        std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        run(Command::new("tar")
            .args(["-xf", "/usr/src/gcc-12/gcc-12.2.0-dfsg.tar.xz", "--strip-components=3"])
            .args(["--wildcards", "*/gcc/testsuite/g++.dg/eh", "*/gcc/testsuite/g++.dg/torture"])
            .current_dir(&place))?;
    }
    let tests = place.join("g++.dg");
    let flags = ["-std=gnu++14", "-O1"];
    let mut all = compiled("gcc eh", &tests.join("eh"), ".C", "g++", &flags)?;
    all.extend(compiled("gcc torture", &tests.join("torture"), ".C", "g++", &flags)?);
    Ok(all)
}

/// The programs that uftrace is tested with, which call themselves, libraries, and each other in all ways.
pub(super) fn uftrace() -> Result<Vec<Case>, String> {
    let tests = source("uftrace")?.join("tests");
    let mut all =
        compiled("uftrace", &tests, ".c", "gcc", &["-pg", "-pthread", "-ldl", "-lrt", "-lm"])?;
    all.extend(compiled("uftrace", &tests, ".cpp", "g++", &["-pg", "-pthread"])?);
    Ok(all)
}

/// The programs that Lua is tested with. (Later versions have their tests elsewhere.)
pub(super) fn lua() -> Result<Vec<Case>, String> {
    let source = source("lua5.1")?;
    let mut scripts = Vec::new();
    find(&source, ".lua", &mut scripts);
    let case = |path: &PathBuf| Case {
        name: format!("lua {}", path.file_name().unwrap_or_default().display()),
        command: vec!["/usr/bin/lua5.1".to_owned(), path.display().to_string()],
        directory: path.parent().map(Path::to_owned),
        seconds: 60,
        is_plain: true,
    };
    Ok(scripts.iter().map(case).collect())
}

/// The units of Redis' tests, each of which starts the system's server and asks it.
pub(super) fn redis() -> Result<Vec<Case>, String> {
    let source = source("redis")?;
    for program in ["redis-server", "redis-cli", "redis-benchmark"] {
        // Where the tests look for what they believe was made there.
        let link = source.join("src").join(program);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(program), &link)
            .map_err(|error| format!("{}: {error}", link.display()))?;
    }
    let helper = source.join("tests/test_helper.tcl");
    let text = std::fs::read_to_string(&helper).map_err(|error| error.to_string())?;
    let all = text.split_once("set ::all_tests {").and_then(|(_, rest)| rest.split_once('}'));
    let (all, _) = all.ok_or("redis: the list of tests is not where it was")?;
    let case = |unit: &str| {
        let command = ["env", "TERM=dumb", "tclsh", "tests/test_helper.tcl", "--clients", "1"];
        Case {
            name: format!("redis {unit}"),
            command: command.into_iter().chain(["--single", unit]).map(str::to_owned).collect(),
            directory: Some(source.clone()),
            seconds: 300,
            is_plain: false,
        }
    };
    Ok(all.split_whitespace().filter(|unit| unit.starts_with("unit/")).map(case).collect())
}

/// One in ten of SQLite's files of tests, by the program that its sources make for them.
pub(super) fn sqlite() -> Result<Vec<Case>, String> {
    const STEP: usize = 10;
    let source = source("sqlite3")?;
    let program = source.join("testfixture");
    if !program.exists() {
        let quiet = |command: &mut Command| run(command.current_dir(&source).stdout(Stdio::null()));
        quiet(Command::new("./configure").args(["--disable-readline", "CFLAGS=-O1 -g1"]))?;
        quiet(Command::new("make").args(["-j2", "testfixture"]))?;
    }
    let mut files = Vec::new();
    find(&source.join("test"), ".test", &mut files);
    files.sort();
    let case = |file: &PathBuf| Case {
        name: format!("sqlite {}", file.file_name().unwrap_or_default().display()),
        command: [&program, file].map(|path| path.display().to_string()).to_vec(),
        directory: None,
        seconds: 120,
        is_plain: false,
    };
    Ok(files.iter().step_by(STEP).map(case).collect())
}

/// Unpacks a source package, unless something is in its place already (a checkout of it will do); gives where. (With `dpkg-dev`.)
pub(crate) fn source(package: &str) -> Result<PathBuf, String> {
    let place = root().join("target/suites").join(package);
    let unpacked = || {
        let entries = std::fs::read_dir(&place).ok()?;
        let paths = entries.flatten().map(|entry| entry.path());
        paths.into_iter().find(|path| path.is_dir() && !path.ends_with("lists"))
    };
    if let Some(found) = unpacked() {
        return Ok(found);
    }
    let failed = |error: std::io::Error| format!("{}: {error}", place.display());
    std::fs::create_dir_all(place.join("lists/partial")).map_err(failed)?;
    let list = place.join("sources.list");
    std::fs::write(&list, format!("deb-src {MIRROR} {RELEASE} main\n")).map_err(failed)?;
    let lists = format!("Dir::State::lists={}", place.join("lists").display());
    let list = format!("Dir::Etc::sourcelist={}", list.display());
    let apt = || {
        let mut command = Command::new("apt-get");
        command.args(["-q", "-o", &list, "-o", "Dir::Etc::sourceparts=-", "-o", &lists]);
        command.current_dir(&place).stdout(Stdio::null());
        command
    };
    run(apt().arg("update"))?;
    run(apt().args(["source", package]))?;
    let _ = std::fs::remove_dir_all(place.join("lists"));
    unpacked().ok_or_else(|| format!("{}: nothing was unpacked", place.display()))
}

/// The files of a directory with this end of their names, compiled to a program each. Those that are none are left out, but not
/// all.
fn compiled(
    suite: &str,
    directory: &Path,
    end: &str,
    compiler: &str,
    flags: &[&str],
) -> Result<Vec<Case>, String> {
    let place = root().join("target/suites/built").join(suite);
    std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    let mut sources = Vec::new();
    find(directory, end, &mut sources);
    let (number, mut all) = (sources.len(), Vec::new());
    for source in sources {
        let name = program_name(directory, &source);
        let program = place.join(&name);
        let mut command = Command::new(compiler);
        command.arg("-w").arg("-o").arg(&program).arg(&source).args(flags);
        command.current_dir(directory).stdout(Stdio::null()).stderr(Stdio::null());
        if program.exists() || command.status().is_ok_and(|status| status.success()) {
            all.push(Case {
                name: format!("{suite} {name}"),
                command: vec![program.display().to_string()],
                directory: None,
                seconds: SECONDS,
                is_plain: true,
            });
        }
    }
    if all.is_empty() {
        return Err(format!("{suite}: none of {number} sources compiles to a program"));
    }
    println!("    {suite}: {} of {number} sources are no programs", number - all.len());
    Ok(all)
}

/// A name that no other source has: its path in the directory, with the extension.
fn program_name(directory: &Path, source: &Path) -> String {
    source.strip_prefix(directory).unwrap_or(source).display().to_string().replace(['/', '.'], "-")
}

/// Files with this end of their names, in a directory and below.
fn find(directory: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, end, found);
        } else if entry.file_name().to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_one_stem_are_different_programs() {
        let directory = Path::new("tests");
        let name = |source: &str| program_name(directory, &directory.join(source));
        let names = ["a.c", "a.cpp", "inner/a.c"].map(name);
        assert_eq!(names, ["a-c", "a-cpp", "inner-a-c"]);
    }

    #[test]
    fn a_suite_of_which_nothing_compiles_is_an_error() {
        let nowhere = Path::new("/proc/nowhere");
        assert!(compiled("none", nowhere, ".c", "false", &[]).is_err());
    }
}
