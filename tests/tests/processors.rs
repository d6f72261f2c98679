//! How many processors programs may use: fewer than there are, or for a part of the time.

use std::num::NonZero;
use std::sync::Mutex;
use std::thread::available_parallelism;

use chase_tests::compile::Build;
use chase_tests::control_group::{Limit, NO_GROUPS};
use chase_tests::need;
use chase_tests::report::document;
use chase_tests::steal;
use chase_tests::tagged::{Tagged, companion};
use chase_tests::trial::Trial;
use serde_json::Value;

/// What others have of the processors is no fault of a program's own threads: the tests run one by one.
static PROCESSORS: Mutex<()> = Mutex::new(());

/// Returns the findings of a run that a companion watches.
fn found(trial: Trial) -> Vec<Value> {
    let trial = trial.hooked_env("CHASE_SYSCALLS", "require");
    let outcome = trial.hooked();
    assert!(outcome.status.success(), "{outcome:?}");
    let _ = Tagged::finished(&trial.output());
    document(&trial.output(), "findings")["findings"].as_array().expect("findings").clone()
}

fn of_kind<'a>(found: &'a [Value], kind: &str) -> &'a Value {
    let one = found.iter().find(|finding| finding["kind"] == kind);
    one.unwrap_or_else(|| panic!("no {kind}: {found:#?}"))
}

fn wanting() -> Trial {
    Trial::new(Build::program("wants_processors.c").flags("-pthread").build())
}

fn processors() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Half a processor.
const HALF: Limit<'_> = Limit {
    controller: "cpu",
    older: ("cpu.cfs_quota_us", "50000"),
    newer: ("cpu.max", "50000 100000"),
};

#[test]
fn a_control_group_that_has_used_up_its_time_is_the_cause() {
    let what = "a limit of a group's processor time";
    let Some(_) = companion(what) else { return };
    let _alone = PROCESSORS.lock();
    let trial = || wanting().args(["1", "800"]).inside_shell(&HALF.script());
    if trial().bare().status.code() == Some(NO_GROUPS) {
        return need::skip(what, "no groups of processes can be made here");
    }
    // The thread runs for half of the time, if processes beside the tests leave that to it.
    let failures = steal::attempts(3, || {
        let found = found(trial());
        let finding = of_kind(&found, "used-up-quota");
        let number = |field: &str| finding["evidence"][field].as_f64().expect("a number");
        assert!((number("processors") - 0.5).abs() < 1e-9, "{finding:#}");
        let group = finding["evidence"]["control_group"].as_str().expect("a name");
        assert!(group.contains("/chase-"), "{finding:#}");
        assert!(number("used_up_in") >= 0.5 * number("periods"), "{finding:#}");
        assert!(!found.iter().any(|finding| finding["kind"] == "too-many-threads"), "{found:#?}");
        let share = finding["share"].as_f64().expect("a share");
        if (0.3..0.7).contains(&share) { Ok(()) } else { Err(finding.clone()) }
    });
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn threads_on_a_single_processor_are_too_many_for_it() {
    let what = "threads on one of several processors";
    let Some(_) = companion(what) else { return };
    if processors() < 2 {
        return need::skip(what, "there is only one");
    }
    let how: [(&[&str], &[&str]); 2] =
        [(&["taskset", "-c", "0"], &["3", "100"]), (&[], &["3", "100", "0"])];
    let _alone = PROCESSORS.lock();
    for (inside, arguments) in how {
        // Processes beside the tests may have too much of the processor.
        let failures = steal::attempts(3, || {
            let found = found(wanting().args(arguments).inside(inside));
            if !found.iter().any(|finding| finding["kind"] == "too-many-threads") {
                return Err(found);
            }
            let finding = of_kind(&found, "too-many-threads");
            assert_eq!(finding["evidence"]["processors"], 1, "{finding:#}");
            assert_eq!(finding["evidence"]["of_machine"], processors(), "{finding:#}");
            let text = finding["text"].as_str().expect("a text");
            assert!(text.contains("that they may run on"), "{text}");
            Ok(())
        });
        assert!(failures.is_empty(), "{failures:#?}");
    }
}
