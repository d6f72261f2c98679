//! The page's timeline and the tables beside it say the same of one recording: how long each thread ran and waited, and what for.
//!
//! Each test needs root and BTF; it says so and passes where they are missing.

use std::collections::{BTreeMap, BTreeSet};

use chase_tests::planted::{Answer, page, trial};
use chase_tests::report::document;
use chase_tests::steal::attempts;
use chase_tests::tagged::{alone, companion};
use serde_json::Value;

/// So much may be missing in the picture: waits of less than a millisecond are seen as calls, from begin to end; what a thread waits for
/// a processor after being woken is only told apart if it is long enough to be seen.
const LEAST_NS: f64 = 5e6;
const PART: f64 = 0.03;
const ATTEMPTS: usize = 3;

/// What the page calls the causes of the tables.
const WORDS: [(&str, &str); 8] = [
    ("lock", "waiting for a lock"),
    ("condition", "waiting for a condition"),
    ("barrier", "waiting for a barrier"),
    ("join", "waiting for a thread or process to end"),
    ("sleep", "waiting for time or a signal"),
    ("io", "waiting for input or output"),
    ("page", "waiting for a page of memory"),
    ("other", "waiting for other things"),
];

/// How long a thread was in each state, by the state's name, ns.
type Sums = BTreeMap<String, f64>;

/// A row of the timeline: a thread's number in the system, its group, and its sums.
struct Lane {
    tid: u64,
    group: String,
    sums: Sums,
    /// In which functions it waits, or in its own code, which has no name; and in which state it is then.
    waits: BTreeSet<(String, String)>,
}

/// The rows of a page's timeline, from the data that its script draws them from: pairs of a length and a kind, or -1 for none.
fn lanes(page: &str) -> Vec<Lane> {
    let (_, data) = page.split_once("id=\"timeline-data\"").expect("a timeline");
    let (_, data) = data.split_once('>').expect("its data");
    let (data, _) = data.split_once("</script>").expect("its end");
    let data: Value = serde_json::from_str(data).expect("JSON");
    let state = |kind: usize| {
        let state = data["kinds"][kind][0].as_u64().expect("a state") as usize;
        data["states"][state].as_str().expect("its name").to_owned()
    };
    let lane = |lane: &Value| {
        let (mut sums, mut waits) = (Sums::new(), BTreeSet::new());
        for span in lane["spans"].as_array().expect("spans").chunks_exact(2) {
            if let Ok(kind) = usize::try_from(span[1].as_i64().expect("a kind")) {
                *sums.entry(state(kind)).or_default() += span[0].as_f64().expect("a length");
                let text = data["kinds"][kind][1].as_u64().expect("a text") as usize;
                let function = data["texts"][text].as_str().expect("its name");
                waits.insert((function.to_owned(), state(kind)));
            }
        }
        let name = lane["name"].as_str().expect("a name");
        let tid = name.rsplit(' ').next().and_then(|tid| tid.parse().ok()).expect("a number");
        Lane { tid, group: lane["group"].as_str().expect("a group").to_owned(), sums, waits }
    };
    data["lanes"].as_array().expect("lanes").iter().map(lane).collect()
}

fn agree(what: &str, drawn: f64, told: f64) -> Result<(), String> {
    match (drawn - told).abs() <= LEAST_NS.max(PART * told) {
        true => Ok(()),
        false => Err(format!("{what}: {drawn} ns in the timeline, {told} ns in the table")),
    }
}

/// Each thread's times, what each group waits for (a folded row adds up its threads), and what each wait is for.
fn compare(source: &str) {
    let _alone = alone();
    let Some(_) = companion(source) else { return };
    let Some(trial) = trial(source, &Answer::of(source)) else { return };
    let trial = trial.hooked_env("CHASE_SYSCALLS", "require");
    let failures = attempts(ATTEMPTS, || {
        let lanes = lanes(&page(&trial));
        let found = document(&trial.output(), "threads");
        let threads = found["threads"].as_array().expect("threads");
        if threads.len() != lanes.len() {
            return Err(format!("{} threads, {} rows", threads.len(), lanes.len()));
        }
        // A thread that goes on as another program has a row for each.
        let tids: BTreeSet<u64> = lanes.iter().map(|lane| lane.tid).collect();
        for tid in tids {
            let drawn = |wanted: &dyn Fn(&str) -> bool| -> f64 {
                let sums = lanes.iter().filter(|lane| lane.tid == tid).flat_map(|lane| &lane.sums);
                sums.filter(|(state, _)| wanted(state)).map(|(_, ns)| ns).sum()
            };
            let told = |field: &str| -> f64 {
                let rows = threads.iter().filter(|row| row["tid"] == tid);
                rows.map(|row| row[field].as_f64().expect("a time")).sum()
            };
            let is_queue = |state: &str| state == "waiting for a processor";
            let is_ready = |state: &str| state == "busy" || is_queue(state);
            agree(&format!("{tid} in all"), drawn(&|_| true), told("lifetime_ns"))?;
            agree(&format!("{tid} waits"), drawn(&|state| !is_ready(state)), told("blocked_ns"))?;
            let ready = told("on_cpu_ns") + told("runnable_ns");
            agree(&format!("{tid} runs or could"), drawn(&is_ready), ready)?;
            // Others may have the processor so shortly that the thread seems to run.
            let queued = drawn(&is_queue).min(told("runnable_ns"));
            agree(&format!("{tid} waits for a processor"), drawn(&is_queue), queued)?;
        }
        let found = document(&trial.output(), "waits");
        let rows = found["waits"].as_array().expect("waits");
        let groups: Vec<&str> = lanes.iter().map(|lane| &*lane.group).collect();
        for group in groups {
            for (cause, words) in WORDS {
                let drawn = lanes.iter().filter(|lane| lane.group == group);
                let drawn = drawn.filter_map(|lane| lane.sums.get(words)).sum();
                let told = rows.iter().filter(|row| row["group"] == group && row["cause"] == cause);
                let told = told.map(|row| row["wait_ns"].as_f64().expect("a time")).sum();
                agree(&format!("{group}, {words}"), drawn, told)?;
            }
        }
        // Each wait is for what the table has for it.
        for lane in &lanes {
            for (function, state) in &lane.waits {
                let Some((cause, _)) = WORDS.iter().find(|(_, words)| words == state) else {
                    continue;
                };
                let is_told = |row: &Value| {
                    row["group"] == *lane.group
                        && row["cause"] == *cause
                        && row["function"].as_str().unwrap_or_default() == function
                };
                if !rows.iter().any(is_told) {
                    return Err(format!("{} in {function:?}: {state}; {rows:#?}", lane.group));
                }
            }
        }
        Ok(())
    });
    assert!(failures.is_empty(), "{source}: {}", failures.join("\n"));
}

#[test]
fn of_locks_sleeps_and_joins() {
    compare("convoy.c");
}

#[test]
fn of_a_barrier() {
    compare("barrier_work.c");
}

/// In own code, and in calls of its runtime.
#[test]
fn of_a_team_of_openmp() {
    compare("barrier_openmp.c");
}

#[test]
fn of_conditions() {
    compare("slow_consumer.c");
}

#[test]
fn of_semaphores_that_are_waited_for_shortly() {
    compare("short_hand_overs.c");
}

#[test]
fn of_pipes_between_programs() {
    compare("slow_filter.sh");
}
