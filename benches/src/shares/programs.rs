//! Programs whose time is spent in very different places, two or three seconds of each.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::bench::installed;
use crate::programs::{compile, gcc, source};

/// A program and its work.
pub(super) struct Program {
    pub(super) what: &'static str,
    /// Where it works.
    pub(super) directory: PathBuf,
    /// Program and arguments, or why it can't be run here.
    pub(super) command: Result<Vec<String>>,
}

struct Plan {
    what: &'static str,
    command: &'static [&'static str],
    /// What must be done before.
    prepare: fn(&Path) -> Result<()>,
    /// Whether it is one of those by which the cost of samples is told.
    is_costed: bool,
}

const PLAN: Plan = Plan { what: "", command: &[], prepare: |_| Ok(()), is_costed: false };

const PLANS: [Plan; 17] = [
    Plan {
        what: "C, qsort that calls back",
        command: &["./order"],
        prepare: |directory| gcc(directory, &[&text("order.c"), "-o", "order"]),
        is_costed: true,
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
        ..PLAN
    },
    Plan {
        what: "python3, numpy on 4 threads",
        // The system's: that is what a package of numpy belongs to. Threads of OpenBLAS's own yield in a loop while they
        // have nothing to do, for a time that differs between runs by more than the bar.
        command: &["env", "OPENBLAS_NUM_THREADS=1", "/usr/bin/python3", "arrays.py"],
        prepare: |_| {
            let import = Command::new("/usr/bin/python3").args(["-c", "import numpy"]).output()?;
            if import.status.success() { Ok(()) } else { bail!("numpy is not installed") }
        },
        ..PLAN
    },
    Plan {
        what: "node, several kinds of work",
        command: &["node", "work.js"],
        is_costed: true,
        ..PLAN
    },
    Plan {
        what: "java, sort and zlib",
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
        is_costed: true,
    },
    Plan {
        what: "gcc -O2 and its children",
        command: &["gcc", "-O2", "-c", "work.c", "-o", "work.o"],
        ..PLAN
    },
    Plan {
        what: "xz -T2",
        command: &["xz", "-T2", "-3", "--block-size=1MiB", "--keep", "--stdout", "some-lines"],
        is_costed: true,
        ..PLAN
    },
    Plan { what: "gzip", command: &["gzip", "-c", "lines", "lines", "lines"], ..PLAN },
    Plan {
        what: "openssl speed",
        command: &["openssl", "speed", "-seconds", "1", "sha256", "rsa1024"],
        ..PLAN
    },
];

/// All of them, prepared in `directory`; or those by which the cost of samples is told.
pub(super) fn prepare(directory: &Path, only_costed: bool) -> Result<Vec<Program>> {
    inputs(directory)?;
    let program = |plan: &Plan| Program {
        what: plan.what,
        directory: directory.to_owned(),
        command: command(plan, directory),
    };
    Ok(PLANS.iter().filter(|plan| plan.is_costed || !only_costed).map(program).collect())
}

fn command(plan: &Plan, directory: &Path) -> Result<Vec<String>> {
    (plan.prepare)(directory)?;
    let program = plan.command.first().context("no program")?;
    if !program.contains('/') && installed(program).is_none() {
        bail!("{program} is not installed");
    }
    Ok(plan.command.iter().map(|&word| word.to_owned()).collect())
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
    for name in ["arrays.py", "work.js", "work.php", "work.pl", "work.rb", "rows.sql", "redis.sh"] {
        std::fs::copy(text(name), directory.join(name))
            .with_context(|| format!("copying {name}"))?;
    }
    write("work.c", &crate::workloads::functions(1500))
}
