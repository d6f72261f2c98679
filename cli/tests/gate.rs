//! `--fail-if`: what fails, what does not, what can't be told, and what is wrong usage.

mod recordings;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use chase_recorder::builder::Builder;
use chase_recorder::layout::{END_EXIT, TIMING_COUNT};
use serde_json::Value;
use tempfile::TempDir;

const PASSED: i32 = 0;
const USAGE: i32 = 2;
const FAILED: i32 = 3;

/// Four runs each of a program before and after its deflate became slower by 40 %, and one of each alone.
fn data() -> TempDir {
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
    let pool = dir.path().join("pool");
    fs::create_dir_all(&pool).expect("directory made");
    recordings::write(&pool, "pool-4711.chase", &recordings::pool());
    dir
}

/// Status, and what standard error has.
fn run(dir: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chase-report"));
    command.current_dir(dir).args(arguments).stdin(Stdio::null()).env_remove("CHASE_OUTPUT");
    let output = command.output().expect("chase-report runs");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text)
}

fn check(dir: &Path, arguments: &[&str], status: i32, said: &str) {
    let (found, errors) = run(dir, arguments);
    assert_eq!(found, status, "{arguments:?}: {errors}");
    assert!(errors.contains(said), "{arguments:?}: {errors}");
}

#[test]
fn limits_of_a_run() {
    let dir = data();
    let dir = dir.path();
    // Six of seven threads wait 90 of about 400 µs for a lock.
    check(
        dir,
        &["pool", "--fail-if", "wait:mutex > 10%"],
        FAILED,
        "failed: wait:mutex > 10%: it is",
    );
    check(dir, &["pool", "--fail-if", "wait:mutex > 90%"], PASSED, "passed: wait:mutex > 90%");
    check(dir, &["pool", "--fail-if", "wait:lock < 10%"], PASSED, "passed");
    check(dir, &["pool", "libs", "--fail-if", "fn:store_put.calls > 5999"], FAILED, "it is 6000");
    check(dir, &["pool", "--fail-if", "fn:store_put.calls > 6000"], PASSED, "it is 6000");
    check(dir, &["pool", "--fail-if", "fn:store_parse.max > 10ms"], FAILED, "it is 20.0 ms");
    check(dir, &["pool", "--fail-if", "run:wall > 1h"], USAGE, "'h' is no unit");
    check(dir, &["pool", "--fail-if", "run:wall > 100s"], PASSED, "passed");
    check(dir, &["one", "--fail-if", "syscall:*.errors > 1000000"], PASSED, "passed");
    // One of several is enough.
    let several = ["--fail-if", "run:wall > 100s", "--fail-if", "wait:mutex > 10%"];
    check(dir, &[&["pool"][..], &several].concat(), FAILED, "failed");
    // A library that is loaded and did nothing.
    check(dir, &["pool", "--fail-if", "lib:libc.so.6.self > 99%"], PASSED, "passed");
}

/// Where calls were only counted, most times are not known: neither is kept nor broken what limits them.
#[test]
fn limits_of_what_was_not_timed_are_wrong() {
    let dir = TempDir::new().expect("a directory for the test");
    let dir = dir.path();
    let mut builder = recordings::pool();
    builder.header.timing = TIMING_COUNT;
    recordings::write(dir, "pool-4711.chase", &builder);
    for figure in
        ["lib:lib*.self", "lib:lib*.wait", "fn:store_put.self", "fn:store_put.p99", "wait:mutex"]
    {
        for limit in ["> 0%", "> 99%"].map(|limit| format!("{figure} {limit}")) {
            let limit = if figure.ends_with("p99") { limit.replace('%', "ms") } else { limit };
            check(dir, &[".", "--fail-if", &limit], USAGE, "calls were only counted");
        }
    }
    check(dir, &[".", "--fail-if", "fn:store_put.calls > 5999"], FAILED, "it is 6000");
    check(dir, &[".", "--fail-if", "run:wall > 100s"], PASSED, "passed");
}

#[test]
fn what_a_figure_lacks_is_told() {
    let dir = data();
    let dir = dir.path();
    for entry in fs::read_dir(dir.join("one")).expect("a recording").flatten() {
        fs::copy(entry.path(), dir.join("pool").join(entry.file_name())).expect("copied");
    }
    let all = |condition| ["pool", "--run", "all", "--fail-if", condition];
    let lacks = "(1 unwatched process is not in it)";
    check(dir, &all("syscall:*.calls > 1000000"), PASSED, lacks);
    for condition in ["run:wall > 100s", "fn:store_put.calls > 6000"] {
        let (status, errors) = run(dir, &all(condition));
        assert!(status == PASSED && !errors.contains("unwatched"), "{status} {errors}");
    }
    let (_, errors) = run(dir, &["one", "--fail-if", "syscall:*.calls > 1000000"]);
    assert!(errors.contains("passed") && !errors.contains("unwatched"), "{errors}");
}

#[test]
fn limits_of_a_change() {
    let dir = data();
    let dir = dir.path();
    let compare = |from: &str, to: &str, condition: &str, status: i32, said: &str| {
        check(dir, &["compare", from, to, "--fail-if", condition], status, said);
    };
    compare("before", "after", "fn:deflate.self > +5%", FAILED, "failed");
    compare("before", "after", "fn:deflate.self > +500%", PASSED, "passed");
    // The table has medians.
    compare("before", "after", "run:wall > +500%", PASSED, "(by the means of 4 and of 4 runs)");
    compare("before", "after", "fn:deflate.calls > +5%", PASSED, "no change");
    compare("before", "before", "lib:libz*.self > +0%", PASSED, "no change");
    compare("after", "before", "fn:deflate.self < -5%", FAILED, "failed");
    // An absolute limit is for the second side.
    compare("before", "after", "run:wall > 100s", PASSED, "passed");
    compare("one", "other", "fn:deflate.self > +5%", FAILED, "a single run on a side");
}

/// Calls of which one in a hundred was timed, and these took more or less.
fn sampled() -> Builder {
    let mut builder = Builder::new();
    let app = builder.executable("/opt/app/bin/app");
    let libc = builder.object("/lib/x86_64-linux-gnu/libc.so.6");
    let free = builder.slot(app, Some(libc), "free");
    let main = builder.thread("app");
    let mut timeline = builder.timeline(main);
    for block in 0..40 {
        timeline.block(free, 500 + block % 8 * 300, 100).work(10_000);
    }
    timeline.end();
    builder.end(END_EXIT, 0);
    builder
}

#[test]
fn what_rests_on_estimates_may_be_unclear() {
    let dir = TempDir::new().expect("a directory for the test");
    recordings::write(dir.path(), "sampled.chase", &sampled());
    let (_, text) = run(dir.path(), &[".", "--fail-if", "lib:*.self > 0%"]);
    assert!(text.contains("failed"), "{text}");
    let json = Command::new(env!("CARGO_BIN_EXE_chase-report"))
        .args(["apis", "--json", "--top", "0", "."])
        .current_dir(dir.path())
        .output()
        .expect("runs");
    let document: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let rows = document["apis"].as_array().expect("a list");
    let rough = rows.iter().find(|row| row["ci95_ns"].as_u64() > Some(1_000));
    let rough = rough.expect("an estimate");
    let (name, self_ns) = (rough["symbol"].as_str().expect("a name"), rough["self_ns"].as_u64());
    let condition = format!("fn:{name}.self > {}ns", self_ns.expect("a time") - 500);
    check(dir.path(), &[".", "--fail-if", &condition], PASSED, "can't tell");
    let or_unclear = [".", "--fail-if-unclear", "--fail-if", &condition];
    check(dir.path(), &or_unclear, FAILED, "can't tell");
}

#[test]
fn wrong_conditions() {
    let dir = data();
    let dir = dir.path();
    let check = |arguments: &[&str], said: &str| check(dir, arguments, USAGE, said);
    check(&["pool", "--fail-if", "wait:tea > 1%"], "'tea' is no cause of waits");
    check(&["pool", "--fail-if", "lib:libstor.so.self > 1%"], "did you mean libstore.so?");
    check(&["pool", "--fail-if", "fn:store_pot.calls > 1"], "did you mean store_put?");
    check(&["pool", "--fail-if", "fn:store_put.calls > +1"], "use it with compare");
    check(&["pool", "--fail-if", "lib:libstore.so.on_cpu > 1%"], "no samples were taken");
    check(&["pool", "--fail-if", "syscall:read.calls > 1"], "no system calls were recorded");
    check(&["pool", "--fail-if-unclear"], "--fail-if");
    check(&["fold", "pool", "--fail-if", "run:wall > 1s"], "of a run");
    let functions = ["compare", "one", "--api", "fread", "--api", "read"];
    check(&[&functions[..], &["--fail-if", "run:wall > +1s"]].concat(), "not of two functions");
}

#[test]
fn verdicts_are_written() {
    let dir = data();
    let dir = dir.path();
    let conditions = [
        "--fail-if",
        "fn:deflate.self > +5%",
        "--fail-if",
        "fn:deflate.calls > +5%",
        "--fail-if",
        "run:wall > 100s",
    ];
    let with = |file: &str| {
        let arguments = [&["compare", "before", "after", "--verdicts", file], &conditions[..]];
        let (status, errors) = run(dir, &arguments.concat());
        assert_eq!(status, FAILED, "{errors}");
        fs::read_to_string(dir.join(file)).expect("written")
    };
    let document: Value = serde_json::from_str(&with("verdicts.json")).expect("JSON");
    let outcomes: Vec<&str> = document["verdicts"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|row| row["outcome"].as_str())
        .collect();
    assert_eq!(outcomes, ["failed", "no-change", "passed"]);
    assert_eq!(document["verdicts"][0]["runs"], serde_json::json!([4, 4]));
    let xml = with("verdicts.xml");
    assert!(
        xml.contains(r#"<testsuite name="chase" tests="3" failures="1" skipped="0">"#),
        "{xml}"
    );
    assert!(xml.contains(r#"name="fn:deflate.self &gt; +5%""#), "{xml}");
    assert!(xml.contains("<failure message=\"it is +"), "{xml}");
    assert!(xml.contains("no change: it is"), "{xml}");
    let (status, errors) =
        run(dir, &["pool", "--fail-if", "run:wall > 100s", "--verdicts", "none/x.json"]);
    assert!(status == 1 && errors.contains("can't write"), "{status} {errors}");
}
