//! Small programs, each with one thing wrong that it says in its head, or with nothing wrong; and what chase finds.
//!
//! The head of each file in `planted/` has the answer, a line each:
//!
//! ```text
//! // cause: serialising-lock          the kind of the first finding, or `none`
//! // also: polling                    a further one that is right too, if it is there
//! // group: worker                    part of the name of its group
//! // object: stats_mu                 part of what it names as object, place, holder, waker
//! // site: update_stats convoy.c
//! // holder: worker, in nanosleep
//! // waker: worker, in sem_post
//! // says: 1 byte                     part of the sentence
//! // size: told                       the file `truth` that the program leaves has `size_ns N`: within 10 % and 3 ms
//! // flags: -lm                       for the compiler
//! // library: libslow_start.c         of `programs/`; the program's argument is its path
//! // links: libslow_tables.cpp         of `programs/`; a library that the program is linked with
//! ```
//!
//! What the programs lose is certain, whatever the machine does meanwhile: they sleep with a lock held, wait until a
//! condition holds, do work that is counted. Each test needs root and BTF; it says so and passes where they are missing.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::compile::{Build, planted};
use crate::report::{document, text};
use crate::tagged::{Tagged, companion};
use crate::trial::{Trial, libchase};
use crate::{need, steal};

/// Others on the machine may do more to a program than is wrong with it. One of three must be good: where a run is with a probability
/// of 80 %, none is in 0.8 % (a false alarm); with 90 %, in 0.1 %. Where what is tested is wrong, and a run good by chance all the same
/// in 1 %, one of three is in 3.0 % (a false pass); with 5 %, in 14 %. (That is why each head has all that can be known: a run would
/// have to be right by chance in all of it.)
const ATTEMPTS: usize = 3;
/// How far a size may be off, and by how much at least.
const SIZE_BOUND: f64 = 0.1;
const SIZE_LEAST_NS: f64 = 3e6;

/// What the head of a file says.
pub struct Answer(Vec<(String, String)>);

impl Answer {
    /// What the head of this file in `planted/` says.
    ///
    /// # Panics
    ///
    /// If it can't be read.
    #[must_use]
    pub fn of(source: &str) -> Self {
        let text = fs::read_to_string(planted().join(source)).expect("the source");
        let line = |line: &str| {
            let line = line.strip_prefix("// ").or_else(|| line.strip_prefix("# "))?;
            let (key, value) = line.split_once(": ")?;
            let known = [
                "cause", "also", "group", "object", "site", "holder", "waker", "says", "size",
                "flags", "library", "links",
            ];
            known.contains(&key).then(|| (key.to_owned(), value.trim().to_owned()))
        };
        Self(text.lines().take(12).filter_map(line).collect())
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }

    fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == key).map(|(_, value)| &**value)
    }
}

/// Runs a trial with a companion, and returns the page of its recording.
pub fn page(trial: &Trial) -> String {
    assert!(trial.hooked().status.success());
    let _ = Tagged::finished(&trial.output());
    let page = trial.work().join("page.html");
    let _ = text(&trial.output(), &["html", "--force", "-o", page.to_str().expect("UTF-8")]);
    fs::read_to_string(&page).expect("the page")
}

/// How to run one of the programs, if what it needs is there.
#[must_use]
pub fn trial(source: &str, answer: &Answer) -> Option<Trial> {
    if source.ends_with(".py") || source.ends_with(".sh") {
        let interpreter = if source.ends_with(".py") { "python3" } else { "sh" };
        let interpreter = need::tool(source, interpreter)?;
        let trial = Trial::new(interpreter).arg(planted().join(source));
        return Some(trial.env("PYTHONDONTWRITEBYTECODE", "1"));
    }
    let flags = answer.get("flags").unwrap_or_default();
    let mut build = Build::planted(source).flags(flags);
    if let Some(library) = answer.get("links") {
        build = build.with(&Build::library(library).build());
    }
    let program = build.build();
    let trial = Trial::new(program);
    Some(match answer.get("library") {
        Some(library) => trial.arg(Build::library(library).build()),
        None => trial,
    })
}

/// Runs a program under the hook until chase says what is wrong with it, and nothing else.
///
/// # Panics
///
/// If it does not.
pub fn hold(source: &str) {
    let Some(_) = companion(source) else { return };
    let answer = Answer::of(source);
    let Some(trial) = trial(source, &answer) else { return };
    let trial = trial.hooked_env("CHASE_SYSCALLS", "require");
    let failures = steal::attempts(ATTEMPTS, || {
        let outcome = trial.hooked();
        assert!(outcome.status.success(), "{outcome:?}");
        let _ = Tagged::finished(&trial.output());
        let found = document(&trial.output(), "findings");
        let found = found["findings"].as_array().expect("findings");
        found.iter().for_each(paste);
        check(&answer, found, &trial.work())
    });
    assert!(failures.is_empty(), "{source}: {}", failures.join("\n"));
}

/// The command below a finding works as it is, where `chase-report` is found.
fn paste(finding: &Value) {
    let command = finding["command"].as_str().expect("a command");
    let programs = libchase().parent().expect("a directory").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path)));
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("PATH", path.expect("a path")).env_remove("LD_PRELOAD");
    let output = shell.current_dir("/").output().expect("start sh");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{command}: {said}");
    assert!(output.stdout.len() > 1, "{command} shows nothing");
}

fn check(answer: &Answer, found: &[Value], work: &Path) -> Result<(), String> {
    let fail = |what: String| Err(format!("{what}; found: {found:#?}"));
    let text =
        |finding: &Value, field: &str| finding[field].as_str().unwrap_or_default().to_owned();
    let cause = answer.get("cause").expect("a cause");
    let strange = |finding: &&Value| {
        let kind = text(finding, "kind");
        kind != cause && !answer.all("also").any(|also| also == kind)
    };
    if let Some(strange) = found.iter().find(strange) {
        return fail(format!("{} is not wrong", text(strange, "kind")));
    }
    if cause == "none" {
        return Ok(());
    }
    let Some(first) = found.first().filter(|first| text(first, "kind") == cause) else {
        return fail(format!("not {cause}"));
    };
    for (key, field) in [
        ("group", "group"),
        ("object", "object"),
        ("site", "site"),
        ("holder", "holder"),
        ("waker", "waker"),
        ("says", "text"),
    ] {
        for part in answer.all(key) {
            if !text(first, field).contains(part) {
                return fail(format!("{key} is {:?}, not {part:?}", text(first, field)));
            }
        }
    }
    if answer.get("size").is_some() {
        let truth = fs::read_to_string(work.join("truth")).expect("the program's truth");
        let told = truth.lines().find_map(|line| line.strip_prefix("size_ns "));
        let told: f64 = told.expect("a size").trim().parse().expect("a number");
        let saves = first["saves_ns"].as_f64().expect("a time");
        if (saves - told).abs() > (SIZE_BOUND * told).max(SIZE_LEAST_NS) {
            return fail(format!("saves {saves} ns, in truth {told}"));
        }
    }
    Ok(())
}

/// A test for each program, and `SOURCES`, which has their names.
#[macro_export]
macro_rules! planted {
    ($($name:ident: $source:literal,)*) => {
        $(#[test]
        fn $name() {
            $crate::planted::hold($source);
        })*

        const SOURCES: &[&str] = &[$($source),*];
    };
}
