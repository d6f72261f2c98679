//! What is exported for the Firefox Profiler, by the rules of its format and by its own reader.

use std::path::Path;
use std::process::Command;

use chase_tests::compile::Build;
use chase_tests::tagged::{Tagged, companion, pairs_with_all_events};
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
    assert_eq!(threads.iter().filter(|thread| !is_of_samples(thread)).count(), 65);
    let on_cpu = &report::document(&trial.output(), "libs")["on_cpu"];
    if let (Some(taken), Some(hz)) = (on_cpu["samples"].as_f64(), on_cpu["sample_hz"].as_f64()) {
        let exported = threads.iter().filter(is_of_samples);
        let exported: f64 =
            exported.map(|thread| thread["in_calls_ns"].as_f64().expect("a time")).sum();
        assert!(exported * hz / 1e9 <= taken * 1.01, "{exported} ns of {taken} samples");
    }
    read_by_the_profiler(threads, &found["reader"]);
    totals(&trial, &found["totals"]);
    let busy: f64 = threads.iter().map(|thread| thread["busy_ms"].as_f64().expect("a time")).sum();
    assert!(busy > 0.0, "no thread is shown as busy");

    let text = std::fs::read_to_string(&file).expect("UTF-8");
    let profile: Value = serde_json::from_str(&text).expect("JSON");
    damaged(&profile, &trial.work().join("damaged.json"));
}

/// Whether a thread of the profile is of the samples that were taken.
fn is_of_samples(thread: &&Value) -> bool {
    thread["name"].as_str().is_some_and(|name| name.ends_with(" (samples)"))
}

/// A thread that runs for a second has nearly all its samples while it is recorded: few are of its start and end in the kernel.
#[test]
fn samples_are_exported_with_the_times_of_the_report() {
    let what = "samples in profiles";
    if companion(what).is_none() {
        return;
    }
    let library = Build::library("libspin.c").build();
    let program = Build::program("on_cpu.c").without_libtrap().flags("-ldl").with(&library).build();
    let trial = Trial::new(program).args(["sort", "none"]).hooked_env("CHASE_SYSCALLS", "require");
    assert!(trial.hooked().status.success());
    Tagged::finished(&trial.output()).assert_nothing_lost();
    let on_cpu = &report::document(&trial.output(), "libs")["on_cpu"];
    if on_cpu["sample_hz"] == json!(0) {
        return need::skip(what, "no samples can be taken");
    }
    let file = trial.work().join("profile.json");
    let path = file.to_str().expect("UTF-8");
    let _ = report::text(&trial.output(), &["export", "--format", "firefox", "-o", path]);
    let profile: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("UTF-8")).expect("JSON");
    let threads = profile["threads"].as_array().expect("threads").iter().filter(is_of_samples);
    let weights =
        threads.flat_map(|thread| thread["samples"]["weight"].as_array().expect("weights"));
    let exported_us: f64 = weights.map(|weight| weight.as_f64().expect("a weight")).sum();
    let exported = exported_us * on_cpu["sample_hz"].as_f64().expect("a rate") / 1e6;
    let taken = on_cpu["samples"].as_f64().expect("samples");
    assert!(taken > 100.0, "{taken} samples");
    assert!(exported <= taken * 1.01 && exported >= taken * 0.9, "{exported} of {taken}");
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
