//! Programs whose time is spent in very different places, two or three seconds of each.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::bench::installed;
use crate::programs::{compile, gcc, source};

/// A program and its work.
pub(crate) struct Program {
    pub(crate) what: &'static str,
    /// Where it works.
    pub(crate) directory: PathBuf,
    /// Program and arguments, or why it can't be run here.
    pub(crate) command: Result<Vec<String>>,
    /// Whether several threads share its work.
    pub(crate) has_threads: bool,
    /// Whether its own runs differ by more than a comparison of two may.
    pub(crate) is_unsteady: bool,
}

struct Plan {
    what: &'static str,
    command: &'static [&'static str],
    /// What must be done before.
    prepare: fn(&Path) -> Result<()>,
    has_threads: bool,
    is_unsteady: bool,
}

const PLAN: Plan =
    Plan { what: "", command: &[], prepare: |_| Ok(()), has_threads: false, is_unsteady: false };

/// Stands for this program.
const ITSELF: &str = "chase-benches";

const PLANS: [Plan; 20] = [
    Plan {
        what: "C, qsort that calls back",
        command: &["./order"],
        prepare: |directory| gcc(directory, &[&text("order.c"), "-o", "order"]),
        ..PLAN
    },
    Plan {
        what: "C, GLib loop with idle callback",
        command: &["./idle"],
        prepare: |directory| {
            let flags =
                Command::new("pkg-config").args(["--cflags", "--libs", "glib-2.0"]).output();
            let flags = String::from_utf8(flags.context("starting pkg-config")?.stdout)?;
            let source = text("idle.c");
            let flags = flags.split_whitespace();
            gcc(
                directory,
                &[source.as_str(), "-o", "idle"].into_iter().chain(flags).collect::<Vec<_>>(),
            )
        },
        ..PLAN
    },
    Plan {
        what: "C++, virtual functions of a plug-in",
        command: &["./host", "./filter.so"],
        prepare: |directory| {
            let (host, filter) = (text("host.cpp"), text("filter.cpp"));
            compile("g++", directory, &["-O2", &host, "-o", "host", "-ldl"])?;
            compile("g++", directory, &["-O2", "-shared", "-fPIC", &filter, "-o", "filter.so"])
        },
        ..PLAN
    },
    Plan {
        what: "Rust, words on 4 threads",
        command: &["./words"],
        prepare: |directory| {
            let source = source("words.rs").display().to_string();
            compile("rustc", directory, &["--edition=2021", "-O", &source, "-o", "words"])
        },
        has_threads: true,
        ..PLAN
    },
    Plan {
        what: "Rust, rayon on 4 threads",
        command: &[ITSELF, "--rayon-work"],
        has_threads: true,
        ..PLAN
    },
    Plan {
        what: "convert -blur (OpenMP)",
        command: &[
            "convert-im6.q16",
            "-seed",
            "1",
            "-size",
            "1300x1300",
            "plasma:fractal",
            "-blur",
            "0x12",
            "png:-",
        ],
        has_threads: true,
        ..PLAN
    },
    Plan {
        what: "Qt, without a screen",
        command: &["/usr/bin/python3", "paint.py"],
        prepare: |_| can_import("PyQt5.QtGui"),
        ..PLAN
    },
    Plan {
        what: "python3, numpy on 4 threads",
        // The system's: that is what a package of numpy belongs to. Threads of OpenBLAS's own yield in a loop while they
        // have nothing to do, for a time that differs between runs by more than the bar.
        command: &["env", "OPENBLAS_NUM_THREADS=1", "/usr/bin/python3", "arrays.py"],
        prepare: |_| can_import("numpy"),
        has_threads: true,
        ..PLAN
    },
    Plan {
        what: "python3, numpy, OpenBLAS's own threads too",
        command: &["/usr/bin/python3", "arrays.py"],
        prepare: |_| can_import("numpy"),
        has_threads: true,
        is_unsteady: true,
    },
    Plan {
        what: "node, several kinds of work",
        command: &["node", "work.js"],
        has_threads: true,
        ..PLAN
    },
    Plan {
        what: "java, sort and zlib",
        has_threads: true,
        command: &["java", "-cp", ".", "Work"],
        prepare: |directory| compile("javac", directory, &["-d", ".", &text("Work.java")]),
        ..PLAN
    },
    Plan { what: "php, arrays, re and json", command: &["php", "work.php"], ..PLAN },
    Plan { what: "perl, words and hashes", command: &["perl", "work.pl"], ..PLAN },
    Plan { what: "ruby, re and sort", command: &["ruby", "work.rb"], ..PLAN },
    Plan {
        what: "sqlite3, index and group by",
        command: &["sqlite3", "-init", "rows.sql", ":memory:", ".exit"],
        ..PLAN
    },
    Plan {
        what: "redis-server and redis-benchmark",
        command: &["sh", "redis.sh", "100000"],
        prepare: |_| match installed("redis-server").and(installed("redis-benchmark")) {
            Some(_) => Ok(()),
            None => bail!("redis is not installed"),
        },
        has_threads: true,
        ..PLAN
    },
    Plan {
        what: "gcc -O2 and its children",
        command: &["gcc", "-O2", "-c", "work.c", "-o", "work.o"],
        ..PLAN
    },
    Plan {
        what: "xz -T2",
        command: &["xz", "-T2", "-3", "--block-size=1MiB", "--keep", "--stdout", "some-lines"],
        has_threads: true,
        ..PLAN
    },
    Plan { what: "gzip", command: &["gzip", "-c", "lines", "lines", "lines"], ..PLAN },
    Plan {
        what: "openssl speed",
        command: &["openssl", "speed", "-seconds", "1", "sha256", "rsa1024"],
        ..PLAN
    },
];

/// All of them, prepared in `directory`.
pub(crate) fn prepare(directory: &Path) -> Result<Vec<Program>> {
    inputs(directory)?;
    let program = |plan: &Plan| Program {
        what: plan.what,
        directory: directory.to_owned(),
        command: command(plan, directory),
        has_threads: plan.has_threads,
        is_unsteady: plan.is_unsteady,
    };
    Ok(PLANS.iter().map(program).collect())
}

fn command(plan: &Plan, directory: &Path) -> Result<Vec<String>> {
    (plan.prepare)(directory)?;
    let program = plan.command.first().context("no program")?;
    let mut command: Vec<String> = plan.command.iter().map(|&word| word.to_owned()).collect();
    if *program == ITSELF {
        // Where any user may run it.
        let copy = directory.join(ITSELF);
        std::fs::copy(std::env::current_exe()?, &copy).context("copying this program")?;
        command[0] = copy.display().to_string();
    } else if !program.contains('/') && installed(program).is_none() {
        bail!("{program} is not installed");
    }
    Ok(command)
}

/// Whether the system's Python has a module.
fn can_import(module: &str) -> Result<()> {
    let import = format!("import {module}");
    let output = Command::new("/usr/bin/python3").args(["-c", &import]).output()?;
    if output.status.success() { Ok(()) } else { bail!("{module} is not installed") }
}

/// The path of a source.
fn text(name: &str) -> String {
    source("where").join(name).display().to_string()
}

/// What the programs work on; the same each time.
fn inputs(directory: &Path) -> Result<()> {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    };
    let lines = crate::workloads::lines(2_000_000);
    write("lines", &lines)?;
    write("more-lines", &lines)?;
    write("some-lines", &lines[..crate::workloads::LINE * 700_000])?;
    const SOURCES: [&str; 8] = [
        "arrays.py",
        "paint.py",
        "work.js",
        "work.php",
        "work.pl",
        "work.rb",
        "rows.sql",
        "redis.sh",
    ];
    for name in SOURCES {
        std::fs::copy(text(name), directory.join(name))
            .with_context(|| format!("copying {name}"))?;
    }
    write("work.c", &crate::workloads::functions(1500))
}
