//! Real programs and their ordinary work, each some tenths of a second of it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::bench::installed;
use crate::programs::{compile, source};

/// A program and its work.
pub(crate) struct Workload {
    pub(crate) what: &'static str,
    /// Where it works.
    pub(crate) directory: PathBuf,
    /// Program and arguments, or why it can't be run here.
    pub(crate) command: Result<Vec<String>>,
    /// What it writes besides its standard output.
    pub(crate) writes: Option<&'static str>,
    /// Whether it is one of those whose mean is taken.
    pub(crate) in_mean: bool,
}

/// What a workload is to become.
struct Plan {
    what: &'static str,
    command: &'static [&'static str],
    in_mean: bool,
    writes: Option<&'static str>,
    /// What must be done before; may name another program than the command's.
    prepare: fn(&Path) -> Result<Option<String>>,
}

const PLAN: Plan =
    Plan { what: "", command: &[], in_mean: false, writes: None, prepare: |_| Ok(None) };

const PLANS: [Plan; 12] = [
    Plan { what: "sort, 1M lines", command: &["sort", "lines"], in_mean: true, ..PLAN },
    Plan {
        what: "sqlite3, 250k rows, group by",
        command: &["sqlite3", "-init", "rows.sql", ":memory:", ".exit"],
        in_mean: true,
        ..PLAN
    },
    Plan {
        what: "python3, json, re and sort",
        // -S: what a machine's packages import at each start is not this work.
        command: &["python3", "-S", "work.py"],
        in_mean: true,
        prepare: |_| python().map(Some),
        ..PLAN
    },
    Plan { what: "perl, words and hashes", command: &["perl", "work.pl"], in_mean: true, ..PLAN },
    Plan {
        what: "xz -1",
        command: &["xz", "-1", "--keep", "--stdout", "some-lines"],
        in_mean: true,
        ..PLAN
    },
    Plan {
        what: "pigz -p 4",
        command: &["pigz", "-p", "4", "--keep", "--stdout", "lines"],
        in_mean: true,
        ..PLAN
    },
    Plan {
        what: "gcc -O2 and its children",
        command: &["gcc", "-O2", "-c", "work.c", "-o", "work.o"],
        in_mean: true,
        writes: Some("work.o"),
        ..PLAN
    },
    Plan {
        what: "git log -p",
        command: &["git", "-C", "repository", "log", "-p"],
        in_mean: true,
        prepare: |directory| repository(directory).map(|()| None),
        ..PLAN
    },
    Plan {
        what: "C++, 66k exceptions",
        command: &["g++"],
        prepare: |directory| {
            let program = directory.join("exceptions").display().to_string();
            let source = source("exceptions.cpp").display().to_string();
            compile("g++", directory, &["-O2", &source, "-o", &program])?;
            Ok(Some(program))
        },
        ..PLAN
    },
    Plan {
        what: "Rust, words on 4 threads",
        command: &["rustc"],
        prepare: |directory| {
            let program = directory.join("words").display().to_string();
            let source = source("words.rs").display().to_string();
            compile("rustc", directory, &["--edition=2021", "-O", &source, "-o", &program])?;
            Ok(Some(program))
        },
        ..PLAN
    },
    Plan { what: "node, json, re and sort", command: &["node", "work.js"], ..PLAN },
    Plan {
        what: "java, re, sort and maps",
        command: &["java", "-cp", ".", "Work"],
        prepare: |directory| {
            let source = source("Work.java").display().to_string();
            compile("javac", directory, &["-d", ".", &source])?;
            Ok(None)
        },
        ..PLAN
    },
];

/// All of them, prepared in `directory`.
pub(crate) fn prepare(directory: &Path) -> Result<Vec<Workload>> {
    inputs(directory)?;
    let workload = |plan: &Plan| Workload {
        what: plan.what,
        directory: directory.to_owned(),
        command: command(plan, directory),
        writes: plan.writes,
        in_mean: plan.in_mean,
    };
    Ok(PLANS.iter().map(workload).collect())
}

fn command(plan: &Plan, directory: &Path) -> Result<Vec<String>> {
    let mut command: Vec<String> = plan.command.iter().map(|&word| word.to_owned()).collect();
    let program = command.first_mut().context("no program")?;
    if installed(program).is_none() {
        bail!("{program} is not installed");
    }
    if let Some(other) = (plan.prepare)(directory)? {
        *program = other;
    }
    Ok(command)
}

/// What the programs work on; the same each time.
fn inputs(directory: &Path) -> Result<()> {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    };
    let lines = lines(1_000_000);
    write("lines", &lines)?;
    write("some-lines", &lines[..LINE * 117_647])?;
    write("more-lines", &lines[..LINE * 350_000])?;
    for name in ["rows.sql", "work.py", "work.pl", "work.js"] {
        std::fs::copy(source(name), directory.join(name))
            .with_context(|| format!("copying {name}"))?;
    }
    write("work.c", &functions(150))
}

/// So many functions in C, for a compiler to work on.
pub(crate) fn functions(number: usize) -> String {
    let mut functions = String::from("#include <stdio.h>\n#include <string.h>\n");
    for i in 0..number {
        // Writing to a String can't fail.
        let _ = writeln!(
            functions,
            "int f{i}(const char *s, int n) {{ int x = {i}; char b[64];
 for (int i = 0; i < n; i++) {{ x = x * 31 + s[i]; if (x % 7 == {}) x ^= (int)strlen(s); }}
 snprintf(b, sizeof b, \"%d %s\", x, s); return b[0] + x; }}",
            i % 7
        );
    }
    functions
}

/// Bytes of one of [`lines`].
pub(crate) const LINE: usize = 17;

/// Lines of 16 hexadecimal digits in no order.
pub(crate) fn lines(count: usize) -> String {
    let mut text = String::with_capacity(LINE * count);
    let mut state: u64 = 1;
    for _ in 0..count {
        // Knuth's MMIX generator.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let _ = writeln!(text, "{state:016x}");
    }
    text
}

/// What `python3` stands for: a wrapper script would be measured instead of it.
fn python() -> Result<String> {
    let python = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .context("starting python3")?;
    let path = String::from_utf8(python.stdout).context("reading where python3 is")?;
    match path.trim() {
        "" => bail!("python3 does not say where it is"),
        path => Ok(path.to_owned()),
    }
}

/// A repository with a history of small changes.
fn repository(directory: &Path) -> Result<()> {
    let path = directory.join("repository");
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        git
    };
    let path = path.display().to_string();
    if !git(&["init", "--quiet", "--bare", "--initial-branch=main", &path]).status()?.success() {
        bail!("git init failed");
    }
    let mut import = git(&["-C", &path, "fast-import", "--quiet"]).stdin(Stdio::piped()).spawn()?;
    let mut history = String::new();
    for commit in 0..12_000 {
        let mut file = lines(60);
        let _ = writeln!(file, "changed in {commit}");
        let _ = write!(
            history,
            "commit refs/heads/main\ncommitter A <a@example.org> {} +0000\ndata 6\nchange\n\
             M 644 inline file{}\ndata {}\n{file}\n",
            1_700_000_000 + commit * 60,
            commit % 20,
            file.len()
        );
    }
    let mut stdin = import.stdin.take().context("git fast-import has no input")?;
    stdin.write_all(history.as_bytes()).context("writing a history to git fast-import")?;
    drop(stdin);
    if !import.wait()?.success() {
        bail!("git fast-import failed");
    }
    Ok(())
}
