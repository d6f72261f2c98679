//! What calls were asked to do: exact where all calls are timed, and nobody is told more than numbers.

use chase_tests::compile::Build;
use chase_tests::report::document;
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
