//! What `chase-report` says of a recording.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::check::contradictions;
use crate::trial::libchase;

/// What a thread runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Full name.
    pub name: String,
    /// By what means: `std::thread`, `Rust`, ...
    pub kind: String,
    /// Line in its source file, if that is known.
    pub line: Option<u64>,
    /// The function in which the program had the thread created.
    pub created_in: Option<String>,
}

/// What the threads in the recordings in `directory` run, in the order of their starts; without
/// those whose creation was not seen.
///
/// # Panics
///
/// If `chase-report` is not beside the hook, or fails.
#[must_use]
pub fn thread_functions(directory: &Path) -> Vec<Function> {
    let rows = document(directory, "threads");
    let mut rows: Vec<&Value> = rows["threads"].as_array().expect("a list").iter().collect();
    rows.sort_by_key(|row| (row["start_ns"].as_u64(), row["thread"].as_u64()));
    rows.into_iter().filter_map(function).collect()
}

/// Calls of a function, in all recordings of all runs in `directory`.
///
/// # Panics
///
/// If `chase-report` is not beside the hook, or fails.
#[must_use]
pub fn calls(directory: &Path, function: &str) -> u64 {
    let text = text(directory, &["apis", "--run", "all", "--csv"]);
    let mut lines = text.lines();
    let heading: Vec<&str> = lines.next().expect("a heading").split(',').collect();
    let column = |name: &str| heading.iter().position(|it| *it == name).expect("a column");
    let (name, calls) = (column("function"), column("calls"));
    let rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let own = rows.filter(|row| row[name] == function);
    own.map(|row| row[calls].parse::<u64>().expect("a number")).sum()
}

/// A view of the recordings in `directory`, as JSON.
///
/// # Panics
///
/// If `chase-report` is not beside the hook, or fails, or figures contradict each other.
#[must_use]
pub fn document(directory: &Path, view: &str) -> Value {
    json(directory, &[view])
}

/// The summary, as JSON.
///
/// # Panics
///
/// As [`document`].
#[must_use]
pub fn summary(directory: &Path) -> Value {
    json(directory, &[])
}

/// What `chase-report` says with these words of the recordings in `directory`, as JSON. Its figures must not contradict each
/// other.
///
/// # Panics
///
/// As [`document`].
#[must_use]
pub fn json(directory: &Path, view: &[&str]) -> Value {
    let program = libchase().with_file_name("chase-report");
    let output = Command::new(&program)
        .args(view)
        .arg("--json")
        .arg(directory)
        .env_remove("LD_PRELOAD")
        .output()
        .unwrap_or_else(|error| panic!("can't run {}: {error}", program.display()));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", program.display());
    let document = serde_json::from_slice(&output.stdout).expect("JSON of a report");
    // Filters leave rows out.
    let found = contradictions(&document, view.len() <= 1);
    assert!(found.is_empty(), "{view:?}: figures contradict each other: {found:#?}");
    document
}

/// What `chase-report` prints with these words, of the recordings in `directory`.
///
/// # Panics
///
/// If it is not beside the hook, or fails.
#[must_use]
pub fn text(directory: &Path, words: &[&str]) -> String {
    let program = libchase().with_file_name("chase-report");
    let output =
        Command::new(&program).args(words).arg(directory).env_remove("LD_PRELOAD").output();
    let output = output.unwrap_or_else(|error| panic!("can't run {}: {error}", program.display()));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", program.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn function(row: &Value) -> Option<Function> {
    let function = row["function"].as_object()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(Function {
        name: text(&function["name"])?,
        kind: text(&function["kind"])?,
        line: function["line"].as_u64(),
        created_in: text(&row["creation_site"]["function"]),
    })
}
