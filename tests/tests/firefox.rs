//! What is exported for the Firefox Profiler, by the rules of its format and by its own reader.

use std::path::{Path, PathBuf};
use std::process::Command;

use chase_recorder::reader::{Recording, SyscallsFile};
use chase_recorder::syscalls::EXTENSION;
use chase_tests::tagged::pairs_with_all_events;
use chase_tests::trial::Trial;
use chase_tests::{need, report};
use serde_json::{Value, json};

const BROWSER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/browser");

fn check(profile: &Path) -> Value {
    let output = Command::new("node")
        .arg("firefox.mjs")
        .arg(profile)
        .current_dir(BROWSER)
        .output()
        .expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_profile_of_many_threads_is_what_the_profiler_reads() {
    let what = "profiles by the Firefox Profiler's rules";
    if Command::new("node").arg("--version").output().is_err() {
        return need::skip(what, "node is not installed");
    }
    let (trial, _) = pairs_with_all_events(what);
    let file = trial.work().join("profile.json");
    let path = file.to_str().expect("UTF-8");
    let _ = report::text(&trial.output(), &["export", "--format", "firefox", "-o", path]);
    let found = check(&file);
    assert_eq!(found["problems"], json!([]));
    let threads = found["threads"].as_array().expect("threads");
    let is_of_samples =
        |thread: &&Value| thread["name"].as_str().is_some_and(|name| name.ends_with(" (samples)"));
    assert_eq!(threads.iter().filter(|thread| !is_of_samples(thread)).count(), 65);
    let taken = report::document(&trial.output(), "libs")["on_cpu"]["samples"].as_u64();
    let exported: f64 = threads
        .iter()
        .filter(is_of_samples)
        .map(|thread| thread["in_calls_ns"].as_f64().expect("a time"))
        .sum();
    // As many as the report has, since so few have their times all; less those before and after their threads' recording. (Of these,
    // a program that starts on a busy machine has more than a few.)
    if let Some(taken) = taken.filter(|&taken| taken >= 16) {
        let hz = report::document(&trial.output(), "libs")["on_cpu"]["sample_hz"].as_f64();
        let exported = exported * hz.expect("a rate") / 1e9;
        assert!(
            exported <= taken as f64 * 1.01 && exported >= since_recorded(&trial) as f64 * 0.9,
            "{exported} of {taken}"
        );
    }
    read_by_the_profiler(threads, &found["reader"]);
    totals(&trial, &found["totals"]);
    let busy: f64 = threads.iter().map(|thread| thread["busy_ms"].as_f64().expect("a time")).sum();
    assert!(busy > 0.0, "no thread is shown as busy");

    let text = std::fs::read_to_string(&file).expect("UTF-8");
    let profile: Value = serde_json::from_str(&text).expect("JSON");
    damaged(&profile, &trial.work().join("damaged.json"));
}

/// How many samples were taken of processes since these were recorded.
fn since_recorded(trial: &Trial) -> u64 {
    let files = std::fs::read_dir(trial.output()).expect("a directory").flatten();
    let files = files.map(|entry| entry.path());
    let of_syscalls = files.filter(|path| path.extension().is_some_and(|it| it == EXTENSION));
    let of_one = |path: PathBuf| {
        let read = |path: &Path| std::fs::read(path).expect("readable");
        let file = SyscallsFile::parse(read(&path)).expect("parses");
        let recording = Recording::parse(read(&path.with_extension(""))).expect("parses");
        let start_ns = recording.header().clock_start.monotonic_ns;
        let samples = file.timed_samples().filter(move |row| row.at_ns >= start_ns);
        samples.map(|row| u64::from(row.stands_for.max(1))).sum::<u64>()
    };
    of_syscalls.map(of_one).sum()
}

/// Its own reader finds the same threads, and as much in each.
fn read_by_the_profiler(threads: &[Value], reader: &Value) {
    let Some(read) = reader.as_array() else {
        return need::skip("the profiler's own reader", "npm ci in cli/tests/browser installs it");
    };
    assert_eq!(read.len(), threads.len());
    for thread in threads {
        let is_it = |one: &&Value| ["pid", "tid"].iter().all(|key| one[*key] == thread[*key]);
        let own = read.iter().find(is_it).expect("the thread");
        assert_eq!((&own["name"], &own["markers"]), (&thread["name"], &thread["markers"]));
        let (cpu, busy) = (own["cpuMs"].as_f64(), thread["busy_ms"].as_f64());
        let (cpu, busy) = (cpu.expect("a time"), busy.expect("a time"));
        // The reader takes no use before the first sample, and no more of one than the time for it.
        assert!(cpu <= busy + 0.1 && cpu >= 0.9 * busy - 0.1, "{own} {thread}");
    }
}

/// Functions that take long have the times of the report within 1 %.
fn totals(trial: &Trial, totals: &Value) {
    let document = report::document(&trial.output(), "apis");
    let mut compared = 0.0;
    for row in document["apis"].as_array().expect("functions") {
        let text = |key: &str| row[key].as_str().expect("a text");
        let (calls, total) = (row["calls"].as_u64().expect("calls"), row["total_ns"].as_f64());
        let total = total.expect("a time");
        // What recording itself costs is not in the report, but in the events: of `pthread_create`, 2 µs of some 100.
        if calls == 0 || total / (calls as f64) < 500e3 {
            continue;
        }
        let own = &totals[format!("{}:{}", text("library"), text("symbol"))];
        assert_eq!(own[0].as_u64(), Some(calls), "{row}");
        let own = own[1].as_f64().expect("a time");
        assert!((own / total - 1.0).abs() < 0.01, "{}: {own} of {total}", text("symbol"));
        compared += total;
    }
    assert!(compared > 64.0 * 2e6, "{compared}");
}

/// A check that finds nothing in what is wrong is none.
fn damaged(profile: &Value, file: &Path) {
    let damages: [(&str, Value); 13] = [
        ("/meta/interval", json!(0)),
        ("/threads/1/frameTable/func/0", json!(9_999)),
        ("/threads/1/stackTable/frame/0", json!(-1)),
        ("/threads/1/stackTable/prefix/0", json!(0)),
        ("/threads/1/funcTable/name/0", json!(9_999)),
        ("/threads/1/funcTable/resource", json!([])),
        ("/threads/1/samples/weight/0", Value::Null),
        ("/threads/1/samples/timeDeltas/1", json!(-0.5)),
        ("/threads/1/samples/threadCPUDelta/0", json!(1e9)),
        ("/threads/1/markers/name/0", json!(9_999)),
        ("/threads/1/markers/data/0/type", json!("unknown")),
        ("/threads/1/markers/endTime/0", json!(-1.0)),
        ("/threads/1/tid", profile["threads"][0]["tid"].clone()),
    ];
    // The second thread that has markers: what was sampled has none.
    let threads = profile["threads"].as_array().expect("threads");
    let has_markers = |&at: &usize| threads[at]["markers"]["length"] != json!(0);
    let second = (1..threads.len()).find(has_markers).expect("a second thread");
    for (pointer, wrong) in damages {
        let pointer = &pointer.replace("/threads/1/", &format!("/threads/{second}/"));
        let mut profile = profile.clone();
        *profile.pointer_mut(pointer).expect(pointer) = wrong;
        std::fs::write(file, profile.to_string()).expect("write the damaged profile");
        assert_ne!(check(file)["problems"], json!([]), "{pointer}");
    }
}
