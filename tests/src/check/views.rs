//! All tables of a run in one document: as the analyzer has them, or as the views of `chase-report` show them.

use std::path::Path;
use std::process::Command;

use chase_analyzer::{
    Analysis, Groups, HeldLocks, Image, Selection, Tails, Unnamed, Watched, blocked, findings,
    locks, waits,
};
use serde_json::{Value, json};

/// Of runs with more threads, tables by thread group are left out: they take longer than the run.
const MOST_THREADS: usize = 3_000;
/// The views whose documents have tables of the whole run.
const VIEWS: [&str; 12] = [
    "", "libs", "apis", "threads", "tail", "waits", "tree", "findings", "syscalls", "hot", "graph",
    "path",
];
/// Those that have nothing to show where no companion watched.
const WATCHED: [&str; 4] = ["syscalls", "hot", "graph", "path"];

/// The tables of the run that these images are of.
///
/// # Panics
///
/// If they can't be written as JSON.
#[must_use]
pub fn all_tables(images: &[Image]) -> Value {
    let analysis = Analysis::new(images, Selection::All);
    let mut document = json!(analysis);
    if analysis.threads.len() > MOST_THREADS {
        return document;
    }
    let groups = Groups::new(&analysis, &Unnamed);
    let tails = Tails::new(images, &analysis, &groups);
    let watched = Watched::new(images, &analysis, &groups, &Unnamed);
    let held = HeldLocks::default();
    let blocked = blocked(&analysis);
    for (name, table) in [
        ("groups", json!(groups.rows)),
        ("tails", json!(tails.rows)),
        ("waits", json!(waits(&analysis, &groups))),
        ("blocked", json!(blocked.rows)),
        ("idle", json!(blocked.idle)),
        ("causes", json!(watched.causes)),
        ("locks", json!(locks(&watched.causes, &analysis, &held))),
        ("findings", json!(findings(&analysis, &groups, &tails, &watched))),
    ] {
        document[name] = table;
    }
    document
}

/// What the views of `chase-report` show of the recordings in `directory`, in one document; and what two of them say
/// differently.
///
/// # Errors
///
/// If it can't be run, or fails.
pub fn of_views(report: &Path, directory: &Path) -> Result<(Value, Vec<String>), String> {
    let (mut all, mut found) = (json!({}), Vec::new());
    for view in VIEWS {
        let words: Vec<&str> = Some(view).filter(|view| !view.is_empty()).into_iter().collect();
        let text = match shown(report, directory, &[&words[..], &["--json"]].concat()) {
            Err(failed) if WATCHED.contains(&view) => {
                if failed.status != Some(1) || has_something(view, &all) {
                    found.push(failed.why);
                }
                continue;
            }
            text => text.map_err(|failed| failed.why)?,
        };
        let document = serde_json::from_str(&text).map_err(|why| format!("{view}: {why}"))?;
        let Value::Object(fields) = document else { return Err(format!("{view}: no document")) };
        for (name, value) in fields {
            let known = &all[&name];
            if known.is_null() {
                all[&name] = value;
            } else if name != "view" && *known != value {
                found.push(format!("{view}: {name} differs from what another view says"));
            }
        }
    }
    let folded = shown(report, directory, &["export", "--format", "folded"]);
    let folded = folded.map_err(|failed| failed.why)?;
    let values = folded.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    let sum: f64 = values.sum();
    let parts = ["application_ns", "library_ns"].map(|part| all["totals"][part].as_f64());
    let expected: f64 = parts.into_iter().flatten().sum();
    if (sum - expected).abs() > super::slack(expected) + folded.lines().count() as f64 {
        found.push(format!("folded stacks are {sum}, not {expected}"));
    }
    Ok((all, found))
}

/// Whether a view of what a companion watched has something to show, by what the first view says: samples of what ran, or a
/// process that was watched.
fn has_something(view: &str, document: &Value) -> bool {
    if view == "hot" {
        return document["on_cpu"]["samples"].as_u64().is_some_and(|samples| samples > 0);
    }
    super::list(document, "processes").iter().any(|process| process["syscalls"] != "none")
}

/// How `chase-report` ended, and what it said.
struct Failed {
    /// The exit status, unless it was killed.
    status: Option<i32>,
    why: String,
}

/// What `chase-report` prints.
fn shown(report: &Path, directory: &Path, words: &[&str]) -> Result<String, Failed> {
    let mut command = Command::new(report);
    command.args(words).arg(directory).env_remove("LD_PRELOAD");
    let output = command
        .output()
        .map_err(|why| Failed { status: None, why: format!("{}: {why}", report.display()) })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = format!("chase-report {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Err(Failed { status: output.status.code(), why })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What is said of a report that fails in `syscalls` with this status, of a process that was watched or not.
    fn said(syscalls: &str, status: i32) -> Vec<String> {
        let directory = tempfile::TempDir::new().expect("a directory");
        let report = directory.path().join("report");
        let script = format!(
            r#"#!/bin/sh
            case $1 in
            syscalls) echo broken >&2; exit {status} ;;
            export) ;;
            *) echo '{{"processes": [{{"syscalls": "{syscalls}"}}]}}' ;;
            esac"#
        );
        fs::write(&report, script).expect("written");
        fs::set_permissions(&report, Permissions::from_mode(0o755)).expect("changed");
        of_views(&report, directory.path()).expect("shown").1
    }

    #[test]
    fn a_view_that_fails_is_said_unless_nothing_was_watched() {
        assert_eq!(said("none", 1), [] as [&str; 0]);
        for (syscalls, status) in [("complete", 1), ("open", 1), ("none", 101), ("none", 2)] {
            let said = said(syscalls, status);
            assert!(matches!(&said[..], [why] if why.contains("broken")), "{said:?}");
        }
    }
}
