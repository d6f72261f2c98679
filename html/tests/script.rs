//! The modules of the page's script, by node's own test runner, and values that script and pictures must write alike.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use chase_viz::{Unit, quantity, share};
use serde_json::Value;

/// A list of cases of `quantities.json`, which the script's tests read too.
fn cases(name: &str) -> Vec<Vec<Value>> {
    let cases: Value = serde_json::from_str(include_str!("quantities.json")).expect("JSON");
    let cases = cases[name].as_array().expect("cases").iter();
    cases.map(|case| case.as_array().expect("a case").clone()).collect()
}

#[test]
fn values_are_written_as_by_the_script() {
    let number = |value: &Value| value.as_f64().expect("a number");
    for (name, unit) in [("times", Unit::Nanoseconds), ("counts", Unit::Count(""))] {
        for case in cases(name) {
            assert_eq!(quantity(number(&case[0]), unit), case[1], "{case:?}");
        }
    }
    for case in cases("shares") {
        assert_eq!(share(number(&case[0]), number(&case[1])), case[2], "{case:?}");
    }
}

/// ESLint's recommended rules and some more, for the page's script and for what tests it.
#[test]
fn the_script_has_no_lint() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let eslint = root.join("cli/tests/browser/node_modules/eslint/bin/eslint.js");
    if !eslint.exists() || Command::new("node").arg("--version").output().is_err() {
        // Not by `eprintln`, which is heard only where a test fails.
        let why = "skipped: lint of the script: no node, or no npm ci in cli/tests/browser";
        let _ = writeln!(std::io::stderr(), "{why}");
        return;
    }
    let mut command = Command::new("node");
    command.arg(eslint).args(["--max-warnings=0", "-c", "cli/tests/browser/eslint.config.mjs"]);
    // (Not what npm has put there, which ESLint leaves out by itself.)
    let linted = ["html/assets/script", "html/tests/script", "cli/tests/browser"];
    let output = command.args(linted).current_dir(&root).output().expect("node runs");
    let [text, errors] = [&output.stdout, &output.stderr].map(|o| String::from_utf8_lossy(o));
    assert!(output.status.success(), "{text}\n{errors}");
}

#[test]
fn the_script_s_own_tests_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = |directory: &str, ending: &str| {
        let directory = root.join(directory);
        let files = std::fs::read_dir(&directory).expect("the directory is there");
        let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        files.retain(|file| file.to_string_lossy().ends_with(ending));
        files.sort();
        files
    };
    let (tests, modules) = (files("tests/script", ".test.mjs"), files("assets/script", ".mjs"));
    assert!(tests.len() >= 4 && modules.len() >= 10, "{tests:?} {modules:?}");
    let Ok(version) = Command::new("node").arg("--version").output() else {
        // Not by `eprintln`, which is heard only where a test fails.
        let _ = writeln!(std::io::stderr(), "skipped: tests of the script: node is not installed");
        return;
    };
    assert!(version.status.success());
    let run = |arguments: &mut Command| {
        let output = arguments.output().expect("node runs");
        let [text, errors] = [&output.stdout, &output.stderr].map(|o| String::from_utf8_lossy(o));
        assert!(output.status.success(), "{text}\n{errors}");
        text.into_owned()
    };
    for module in &modules {
        run(Command::new("node").arg("--check").arg(module));
    }
    let text = run(Command::new("node").args(["--test", "--test-reporter=tap"]).args(&tests));
    let passed = text.lines().filter_map(|line| line.strip_prefix("# pass ")).next();
    let passed: usize = passed.and_then(|number| number.parse().ok()).unwrap_or_default();
    assert!(passed >= 10, "{text}");
}
