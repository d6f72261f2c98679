//! What is printed, word for word. `CHASE_BLESS=1 cargo test -p chase-cli` writes the goldens anew.

mod recordings;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use chase_tests::check::contradictions;
use tempfile::TempDir;

/// `chase-report` in `dir`, undisturbed by the environment that the tests run in.
fn report(dir: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chase-report"));
    command.current_dir(dir).args(arguments);
    for name in ["CHASE_OUTPUT", "COLUMNS", "NO_COLOR", "PAGER", "LESS"] {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied());
    command.output().expect("chase-report runs")
}

fn golden(name: &str, arguments: &[&str]) {
    let dir = TempDir::new().expect("a directory for the test");
    let data = dir.path().join("chase.data");
    std::fs::create_dir(&data).expect("directory made");
    if let Some((of, _)) = name.split_once('-').filter(|(of, _)| ["convoy", "loop"].contains(of)) {
        let (builder, seen) =
            if of == "loop" { recordings::event_loop() } else { recordings::convoy() };
        recordings::write(&data, "app-4711.chase", &builder);
        recordings::write_syscalls(&data, "app-4711.chase.syscalls", &seen);
    } else if name.contains("pool-") {
        recordings::write(&data, "pool-4711.chase", &recordings::pool());
    } else {
        recordings::write(&data, "compressor-4711.chase", &recordings::compressor());
    }
    if name.starts_with("run-") {
        recordings::write(&data, "helper-4712.chase", &recordings::child());
    }
    if name.contains("syscalls") {
        let seen = recordings::compressor_syscalls();
        recordings::write_syscalls(&data, "compressor-4711.chase.syscalls", &seen);
    }
    if name.starts_with("run-syscalls") {
        recordings::write_syscalls(
            &data,
            "busybox.4800.1.syscalls",
            &recordings::static_syscalls(),
        );
    }
    if name.contains("many") {
        for number in 1..=30 {
            let write = |next| {
                let builder = recordings::small_child(number, next);
                recordings::write(&data, &format!("{number}-{next}.chase"), &builder);
            };
            write(false);
            if number % 2 == 0 {
                write(true);
            }
        }
    }
    let columns = if name.starts_with("narrow-") { "80" } else { "" };
    accept(name, report(dir.path(), &[("COLUMNS", columns)], arguments));
}

/// Compares what was printed with the golden of this name.
fn accept(name: &str, output: Output) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    assert_eq!(errors, "", "{name}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(!text.contains('\x1b') || name.contains("colour"), "{name}: an escape got through");

    if name.ends_with(".json") {
        let document = serde_json::from_str(&text).expect("JSON");
        // Filters leave rows out.
        let found = contradictions(&document, name == "summary.json");
        assert!(found.is_empty(), "{name}: figures contradict each other: {found:#?}");
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
    if std::env::var_os("CHASE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("directory made");
        std::fs::write(&path, &text).expect("golden written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{name} differs from its golden (CHASE_BLESS=1 accepts it):\n{text}");
}

#[test]
fn summary() {
    golden("summary.txt", &[]);
    golden("run-summary.txt", &["chase.data", "--top", "3"]);
    golden("summary.json", &["--json"]);
}

/// The twenty that did most, and small applications in one row.
#[test]
fn summary_of_many_processes() {
    golden("many-summary.txt", &[]);
    golden("narrow-many-summary.txt", &[]);
}

#[test]
fn libs() {
    golden("libs.txt", &["libs"]);
    golden("libs-filtered.csv", &["libs", "--csv", "--lib", "libz*", "--lib", "*/libqueue*"]);
}

#[test]
fn apis() {
    golden("apis.txt", &["apis", "--top", "4"]);
    golden("apis-filtered.txt", &["apis", "--lib", "libc*", "--api", "pthread_*"]);
    golden("apis.csv", &["apis", "--csv"]);
    golden("apis.json", &["apis", "--json", "--api", "queue::*"]);
}

#[test]
fn threads() {
    golden("threads.txt", &["threads"]);
    golden("run-threads.csv", &["threads", "--csv", "--process", "4712"]);
    golden("threads.json", &["threads", "--json", "--thread", "worker*"]);
}

#[test]
fn tree() {
    golden("tree.txt", &["tree"]);
    golden("tree-thread.txt", &["tree", "--thread", "4712", "--thread", "compressor"]);
    golden("tree-filtered.txt", &["tree", "--api", "mem*"]);
    golden("tree-top.csv", &["tree", "--csv", "--top", "3"]);
}

/// A pool of threads with something to say of it.
#[test]
fn groups() {
    golden("pool-summary.txt", &[]);
    golden("pool-threads.txt", &["threads", "--top", "3"]);
    golden("pool-groups.csv", &["threads", "--groups", "--csv"]);
    golden("pool-tree.txt", &["tree", "--group", "pool+*"]);
    golden("pool-tree.json", &["tree", "--group", "pool+*", "--api", "memcpy", "--json"]);
}

#[test]
fn tails_and_waits() {
    golden("pool-tail.txt", &["tail"]);
    golden("pool-tail.csv", &["tail", "--csv", "--lib", "libstore*"]);
    golden("pool-tail.json", &["tail", "--json", "--api", "store_parse"]);
    golden("pool-waits.txt", &["waits"]);
    golden("pool-waits.csv", &["waits", "--csv", "--group", "pool+*"]);
    golden("narrow-pool-tail.txt", &["tail"]);
    golden("narrow-pool-waits.txt", &["waits"]);
}

/// Who waits for what, held by whom; what that costs the run, and what it would be without.
#[test]
fn waits_and_their_causes() {
    golden("convoy-waits.txt", &["waits"]);
    golden("convoy-path.txt", &["path"]);
    golden("convoy-path.json", &["path", "--json"]);
    golden("convoy-path-window.txt", &["path", "--from", "2ms", "--to", "12ms"]);
    golden("convoy-path-window.csv", &["path", "--from", "2ms", "--to", "12ms", "--csv"]);
    golden("convoy-graph.txt", &["graph"]);
    golden("convoy-graph.json", &["graph", "--json"]);
    golden("convoy-without-lock.txt", &["path", "--without", "lock:*"]);
    golden("convoy-without-lock.json", &["path", "--without", "lock:*", "--json"]);
    golden("convoy-without-join.txt", &["path", "--without", "fn:pthread_join"]);
    golden("convoy-findings.txt", &["findings"]);
    golden("loop-findings.txt", &["findings"]);
    golden("loop-waits.txt", &["waits"]);
    golden("loop-waits.json", &["waits", "--json"]);
}

/// Functions by samples: of the program and of a library, in the kernel too.
#[test]
fn what_ran() {
    golden("convoy-hot.txt", &["hot"]);
    golden("convoy-hot-filtered.txt", &["hot", "--lib", "libc*"]);
    golden("convoy-hot.csv", &["hot", "--csv"]);
    golden("convoy-hot.json", &["hot", "--json"]);
}

#[test]
fn system_calls() {
    golden("syscalls.txt", &["syscalls"]);
    golden("syscalls-filtered.txt", &["syscalls", "--api", "deflate"]);
    golden("syscalls-thread.txt", &["syscalls", "--thread", "worker 1"]);
    golden("syscalls-context.txt", &["syscalls", "--by", "context"]);
    golden("syscalls.json", &["syscalls", "--json", "--top", "2"]);
    golden("syscalls.csv", &["syscalls", "--csv"]);
    golden("syscalls-errors.csv", &["syscalls", "--csv", "--by", "error"]);
    golden("narrow-syscalls.txt", &["syscalls"]);
    golden("run-syscalls-thread.csv", &["syscalls", "--csv", "--by", "thread"]);
}

/// With a file of the scheduler's, waits are no longer told by name.
#[test]
fn waits_from_the_scheduler() {
    golden("syscalls-summary.txt", &[]);
    golden("run-syscalls-summary.txt", &[]);
    golden("syscalls-libs.txt", &["libs"]);
    golden("syscalls-apis.txt", &["apis"]);
    golden("syscalls-threads.txt", &["threads"]);
    golden("syscalls-tree.txt", &["tree"]);
}

/// A recording of an older version, which lacks calls between windows.
#[test]
fn calls_seen_in_windows() {
    let dir = TempDir::new().expect("a directory for the test");
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recorder/tests/fixtures/v5.chase");
    std::fs::copy(old, dir.path().join("app-1000.chase")).expect("recording copied");
    let golden = |name: &str, arguments: &[&str]| {
        accept(name, report(dir.path(), &[], &[arguments, &["app-1000.chase"]].concat()));
    };
    golden("windows-summary.txt", &[]);
    golden("windows-apis.txt", &["apis", "--api", "malloc"]);
}

/// Two recordings, and two functions of one.
#[test]
fn comparisons() {
    let dir = TempDir::new().expect("a directory for the test");
    let write = |side, run, factor| {
        recordings::write_measured(dir.path(), side, run, factor);
    };
    write("one", 0, 10);
    write("other", 0, 14);
    for run in 0..4 {
        write("before", run, 10);
        write("after", run, 14);
    }
    let golden = |name: &str, arguments: &[&str]| {
        let output = report(dir.path(), &[], &[&["compare"], arguments].concat());
        accept(name, output);
    };
    golden("compare.txt", &["one", "other"]);
    golden("compare.csv", &["one", "other", "--csv", "--top", "2"]);
    golden("compare-runs.txt", &["before", "after"]);
    golden(
        "compare-runs.json",
        &["--before", "before", "--after", "after", "--json", "--top", "1"],
    );
    golden("compare-api.txt", &["before", "after", "--api", "deflate"]);
    golden("compare-apis.txt", &["one", "--api", "fread", "--api", "read"]);
    golden("compare-renamed.txt", &["one", "other", "--api", "fread", "--api", "read"]);
}

#[test]
fn on_a_terminal_of_80_columns() {
    for (name, view) in
        [("libs", "libs"), ("apis", "apis"), ("threads", "threads"), ("tree", "tree")]
    {
        golden(&format!("narrow-{name}.txt"), &[view]);
    }
    golden("narrow-summary.txt", &[]);
}

#[test]
fn colours_when_asked_for() {
    golden("libs-colour.txt", &["libs", "--color", "always"]);
}
