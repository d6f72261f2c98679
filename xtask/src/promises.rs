//! What SECURITY.md and docs/reliability.md promise is shown by tests, which are there.

use std::collections::BTreeSet;
use std::path::Path;

use crate::run::root;

const PAGES: [&str; 2] = ["SECURITY.md", "docs/reliability.md"];

/// Names that are no tests'.
const OTHER_NAMES: [&str; 4] = ["cap_bpf", "cap_perfmon", "chase_pads", "dl_iterate_phdr"];

/// The names of all tests, and the files of the repository.
struct Sources {
    tests: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl Sources {
    fn read() -> Self {
        let mut sources = Self { tests: BTreeSet::new(), files: BTreeSet::new() };
        sources.add(&root(), 0);
        sources
    }

    fn add(&mut self, directory: &Path, depth: u32) {
        const OTHERS: [&str; 4] = ["target", "node_modules", ".git", "corpus"];
        for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && depth < 6 && !OTHERS.contains(&&*name) {
                self.add(&path, depth + 1);
            } else if !is_directory {
                let from_root = path.strip_prefix(root()).expect("below it");
                self.files.insert(from_root.display().to_string());
                if name.ends_with(".rs") {
                    let text = std::fs::read_to_string(&path).expect("text");
                    self.tests.extend(tests_in(&text));
                }
            }
        }
    }

    fn has_test(&self, part: &str) -> bool {
        self.tests.iter().any(|test| test.contains(part))
    }

    fn has_file(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.ends_with(path))
    }
}

/// The names of the functions with `#[test]`; other attributes may follow it.
fn tests_in(text: &str) -> Vec<String> {
    let (mut is_test, mut names) = (false, Vec::new());
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[test]") {
            is_test = true;
        } else if is_test
            && !line.starts_with(['/', '#'])
            && let Some((_, rest)) = line.split_once("fn ")
        {
            names.extend(rest.split(['(', '<']).next().map(str::to_owned));
            is_test = false;
        }
    }
    names
}

/// Whether the usage has this task.
fn has_task(task: &str) -> bool {
    let tasks = crate::USAGE.lines().filter_map(|line| line.strip_prefix("cargo xtask "));
    tasks.filter_map(|line| line.split_whitespace().next()).any(|known| known == task)
}

/// What is wrong with what stands between backquotes; `None` if nothing is.
fn wrong(quoted: &str, sources: &Sources) -> Option<String> {
    let is_name =
        |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if let Some(command) = quoted.strip_prefix("cargo test ") {
        return wrong_command(command, sources);
    }
    if let Some(task) = quoted.strip_prefix("cargo xtask ") {
        let task = task.split_whitespace().next()?;
        return (!has_task(task)).then(|| format!("{quoted}: no such task"));
    }
    if quoted.ends_with(".rs") || quoted.ends_with(".c") {
        return (!sources.has_file(quoted)).then(|| format!("{quoted}: no such file"));
    }
    let is_test = is_name(quoted) && quoted.contains('_') && !OTHER_NAMES.contains(&quoted);
    let is_file = sources.has_file(&format!("/{quoted}.rs"));
    let is_missing = is_test && !sources.tests.contains(quoted) && !is_file;
    is_missing.then(|| format!("{quoted}: no such test"))
}

/// The same of a command: a package, the files of tests, and parts of their names.
fn wrong_command(command: &str, sources: &Sources) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let after = |option: &str| {
        let pairs = words.windows(2).filter(move |pair| pair[0] == option);
        pairs.map(|pair| pair[1]).collect::<Vec<_>>()
    };
    let (packages, files) = (after("-p"), after("--test"));
    let is_there = |file: &str| {
        let places = [format!("tests/{file}.rs"), format!("tests/{file}/main.rs")];
        places.iter().any(|place| sources.has_file(place))
    };
    let wrong_file = files.iter().find(|file| !is_there(file));
    let known =
        |word: &&&str| !word.starts_with('-') && !packages.contains(word) && !files.contains(word);
    let wrong_filter = words.iter().filter(known).find(|word| !sources.has_test(word));
    wrong_file.or(wrong_filter).map(|word| format!("cargo test {command}: there is no {word}"))
}

#[test]
fn tests_that_are_named_are_there() {
    let sources = Sources::read();
    let mut failures = Vec::new();
    for page in PAGES {
        let text = std::fs::read_to_string(root().join(page)).expect(page);
        let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
        assert!(quoted.len() > 20, "{page} names {} things", quoted.len());
        failures.extend(quoted.iter().filter_map(|quoted| wrong(quoted, &sources)));
    }
    assert!(failures.is_empty(), "{failures:#?}");
    for made_up in [
        "a_test_that_is_not_there",
        "a_full_disk_of_ext5",
        "tests_in",
        "tests/tests/nothing.rs",
        "cargo test -p chase-tests --test nothing",
        "cargo test -p chase-tests --test torture no_such_thing",
        "cargo xtask nothing",
        "cargo xtask tor",
    ] {
        assert!(wrong(made_up, &sources).is_some(), "{made_up}");
    }
}

/// The harness keeps what a test that passes writes by `eprintln`: a test that was skipped would seem to have tested.
#[test]
fn a_skipped_test_says_so_past_the_harness() {
    let mut failures = Vec::new();
    let sources = Sources::read();
    for file in
        sources.files.iter().filter(|file| file.ends_with(".rs") && !file.ends_with("promises.rs"))
    {
        let text = std::fs::read_to_string(root().join(file)).expect("text");
        let text: String = text.split_whitespace().collect();
        if text.contains("eprintln!(\"skipped") {
            failures.push(file);
        }
    }
    assert!(
        failures.is_empty(),
        "use chase_tests::need::skip, or write to stderr itself: {failures:?}"
    );
}

/// Each line of the table of SECURITY.md says what shows it.
#[test]
fn each_promise_is_shown() {
    let text = std::fs::read_to_string(root().join("SECURITY.md")).expect("text");
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.trim_matches('|').split('|').collect()).collect();
    assert!(rows.len() > 10);
    for row in &rows[1..] {
        let [what, _, shown] = row[..] else { panic!("{row:?} has not three columns") };
        assert!(shown.contains('`'), "nothing shows what prevents that {}", what.trim());
    }
}
