//! What calls were asked to do: exact where all calls are timed. Nothing is read but numbers, and the paths of long calls. And
//! which line it was that asked.

use std::collections::BTreeSet;

use chase_tests::compile::Build;
use chase_tests::report::{document, json, text};
use chase_tests::trial::Trial;
use serde_json::Value;

fn program() -> Trial {
    Trial::new(Build::program("asked.c").flags("-O1 -fno-builtin").build())
        .hooked_env("CHASE_SYSCALLS", "off")
}

/// What is said of the argument of a function that the program calls.
fn argument(trial: &Trial, function: &str) -> Value {
    let document = document(&trial.output(), "apis");
    let rows = document["apis"].as_array().expect("a list");
    let row = rows.iter().find(|row| row["symbol"] == function);
    row.unwrap_or_else(|| panic!("{function} was not called"))["argument"].clone()
}

#[test]
fn sums_are_exact_where_all_calls_are_timed() {
    let trial = program().hooked_env("CHASE_TIMING", "all");
    let recording = trial.compare();
    assert_eq!(recording.only().unseen.contexts_without_arguments, 0);
    // (The stream allocates its buffer inside the C library, whose calls of itself are not seen.)
    let large = 1_u64 << 20;
    for (function, calls, sum, max, negative) in [
        ("malloc", 1001, 2 * large + 499_500, 2 * large, 0),
        ("calloc", 3, 21_021, 7_014, 0),
        ("memset", 1, 2 * large, 2 * large, 0),
        ("memcpy", 200, 99_500_000, 995_000, 0),
        ("read", 51, 5 * 45_000, 9_000, 1),
        ("poll", 30, 300, 29, 10),
    ] {
        let found = argument(&trial, function);
        assert_eq!(found["calls"], calls, "{function}: {found}");
        assert_eq!(found["timed"], calls, "{function}: {found}");
        assert_eq!(found["sum"], sum, "{function}: {found}");
        assert_eq!(found["max"], max, "{function}: {found}");
        assert_eq!(found["negative"], negative, "{function}: {found}");
        let sizes = found["sizes"].as_array().expect("a list");
        let in_sizes: u64 = sizes.iter().filter_map(|size| size["calls"].as_u64()).sum();
        assert_eq!(in_sizes, calls - negative, "{function}: {found}");
    }
    assert_eq!(argument(&trial, "malloc")["unit"], "bytes");
    assert_eq!(argument(&trial, "poll")["unit"], "ms");
    // Too few calls to say so.
    assert_eq!(argument(&trial, "calloc")["correlation"], Value::Null);
}

/// The texts that long calls of a function were passed.
fn texts(trial: &Trial, function: &str) -> Vec<Value> {
    let apis = document(&trial.output(), "apis");
    let mut rows = apis["apis"].as_array().expect("a list").iter();
    let row = rows.find(|row| row["symbol"] == function).expect("it was called");
    row.get("texts").map_or_else(Vec::new, |texts| texts.as_array().expect("a list").clone())
}

#[test]
fn long_calls_have_their_paths() {
    let program = Build::program("texts.c").flags("-O1 -fno-builtin").build();
    for events in ["off", "slow", "all"] {
        let trial = Trial::new(&program).hooked_env("CHASE_SYSCALLS", "off");
        let trial = trial.hooked_env("CHASE_EVENTS", events);
        let _ = trial.compare();
        let texts = texts(&trial, "open");
        assert_eq!(texts.len(), 3, "{texts:#?}");
        for (name, calls) in [("first", 3), ("second", 5), ("./././third", 1)] {
            let has_name = |row: &&Value| row["text"].as_str().is_some_and(|it| it.ends_with(name));
            let row = texts.iter().find(has_name).expect(name);
            assert_eq!(row["text"].as_str().expect("a text").starts_with('…'), calls == 1);
            let (total, max) = (row["total_ns"].as_u64(), row["max_ns"].as_u64());
            assert_eq!(row["calls"], calls, "{row}");
            // Each call sleeps for two milliseconds, after it is known to be asleep.
            assert!(total >= Some(calls * 2_000_000) && max >= Some(2_000_000), "{row}");
        }
        assert_eq!(self::texts(&trial, "read"), Vec::<Value>::new());
    }
    let trial = Trial::new(&program).hooked_env("CHASE_ARGUMENTS", "off");
    let _ = trial.compare();
    assert_eq!(texts(&trial, "open"), Vec::<Value>::new());
}

/// A context has eight texts. Which ones depends on how long the calls took.
#[test]
fn of_many_paths_some_are_kept_and_all_are_counted() {
    let program = Build::program("texts.c").flags("-O1 -fno-builtin").build();
    let trial = Trial::new(program).arg("7").hooked_env("CHASE_SYSCALLS", "off");
    let _ = trial.compare();
    let texts = texts(&trial, "open");
    assert_eq!(texts.len(), 9, "{texts:#?}");
    let others = texts.last().expect("a row");
    assert_eq!((&others["text"], &others["max_ns"]), (&Value::Null, &Value::Null));
    let calls = texts.iter().map(|row| row["calls"].as_u64().expect("a number"));
    assert_eq!(calls.sum::<u64>(), 3 + 5 + 1 + 7, "{texts:#?}");
}

/// Those that were not timed are counted by those that stand for them.
#[test]
fn samples_stand_for_the_others() {
    let trial = program();
    let recording = trial.compare();
    assert_eq!(recording.only().unseen.contexts_without_arguments, 0);
    let found = argument(&trial, "malloc");
    let (timed, calls) = (found["timed"].as_u64().unwrap(), found["calls"].as_u64().unwrap());
    assert!((1..=1001).contains(&timed) && timed <= calls && calls <= 2 * 1001, "{found}");
}

#[test]
fn nothing_is_noted_where_that_is_off() {
    let trial = program().hooked_env("CHASE_TIMING", "all").hooked_env("CHASE_ARGUMENTS", "off");
    let recording = trial.compare();
    assert_eq!(recording.only().unseen.contexts_without_arguments, 0);
    assert_eq!(argument(&trial, "malloc"), Value::Null);
    let trial = program().hooked_env("CHASE_TIMING", "count");
    let recording = trial.compare();
    assert_eq!(recording.only().unseen.contexts_without_arguments, 0);
    assert_eq!(argument(&trial, "malloc"), Value::Null);
}

/// Calls of `getppid` by the function and line that makes them; and the line that makes the call in which they are made.
fn callers(trial: &Trial) -> Vec<(String, String, u64)> {
    let tree = document(&trial.output(), "tree");
    let contexts = tree["contexts"].as_array().expect("a list");
    let site = |row: &Value| row["site"].as_str().unwrap_or_default().to_owned();
    let around = |row: &Value| {
        let number = row["parent"].as_u64();
        let around = contexts.iter().find(|other| other["context"].as_u64() == number);
        around.filter(|_| number.is_some()).map(site).unwrap_or_default()
    };
    let rows = contexts.iter().filter(|row| row["symbol"] == "getppid");
    let mut calls: Vec<_> =
        rows.map(|row| (site(row), around(row), row["calls"].as_u64().expect("calls"))).collect();
    calls.sort();
    calls
}

#[test]
fn contexts_are_told_apart_by_lines_if_that_is_asked_for() {
    let program = Build::program("sites.c").build();
    let trial = Trial::new(&program).hooked_env("CHASE_SYSCALLS", "off");
    assert!(trial.hooked().status.success());
    let calls: Vec<u64> = callers(&trial).iter().map(|(_, _, calls)| *calls).collect();
    assert_eq!(calls, [2, 102]);

    let trial = trial.hooked_env("CHASE_SITES", "1");
    assert!(trial.hooked().status.success());
    let callers = callers(&trial);
    let of = |function: &str| -> Vec<&(String, String, u64)> {
        callers.iter().filter(|(site, ..)| site.starts_with(function)).collect()
    };
    let calls = |function: &str| of(function).iter().map(|(.., calls)| *calls).collect::<Vec<_>>();
    // The fork's child makes as many as its parent does twice.
    assert_eq!(calls("first sites.c:"), [90], "{callers:#?}");
    assert_eq!(calls("second sites.c:"), [7, 5], "{callers:#?}");
    // One line, called back by two.
    assert_eq!(calls("compare sites.c:"), [1, 1], "{callers:#?}");
    let (one, other) = (&of("compare")[0].1, &of("compare")[1].1);
    assert!(one.starts_with("main sites.c:") && other.starts_with("main sites.c:") && one != other);
    assert_eq!(callers.len(), 5, "{callers:#?}");

    // The trees of groups, here of parent and child, have them too.
    let words = ["tree", "--group", "*"];
    let document = json(&trial.output(), &words);
    let rows = document["group_contexts"].as_array().expect("a list").iter();
    let rows = rows.filter(|row| row["symbol"] == "getppid");
    let grouped: BTreeSet<&str> = rows.map(|row| row["site"].as_str().expect("a place")).collect();
    assert_eq!(grouped, callers.iter().map(|(site, ..)| &**site).collect());
    let text = text(&trial.output(), &words);
    assert!(grouped.iter().all(|site| text.contains(&format!("getppid at {site}"))), "{text}");
}

#[test]
fn places_of_calls_that_do_not_wait_are_known_by_samples() {
    let trial = Trial::new(Build::program("two_writers.c").flags("-O1 -g").build())
        .hooked_env("CHASE_SYSCALLS", "off");
    assert!(trial.hooked().status.success());
    let apis = document(&trial.output(), "apis");
    let rows = apis["apis"].as_array().expect("a list");
    let row = rows.iter().find(|row| row["symbol"] == "write").expect("it is called");
    let places = row["places"].as_array().expect("a list");
    let share = |function: &str| {
        let place = places.iter().find(|place| place["site"]["function"] == function);
        place.map_or(0.0, |place| place["share"].as_f64().expect("a share"))
    };
    // Of some dozens of samples; five standard deviations.
    let samples: u64 = places.iter().map(|place| place["samples"].as_u64().expect("samples")).sum();
    assert!(samples >= 20, "{places:#?}");
    let off = 5.0 * (0.8 * 0.2 / samples as f64).sqrt();
    assert!((share("often") - 0.8).abs() < off, "{places:#?}");
    assert!((share("seldom") - 0.2).abs() < off, "{places:#?}");
    let text = text(&trial.output(), &["tree"]);
    assert!(text.contains("write at often two_writers.c:9 ("), "{text}");
}
