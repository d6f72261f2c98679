//! Whether the figures of a report contradict each other.
//!
//! It reads what anybody gets, the JSON, and knows of no formula but those that `docs/json.md` states: parts are no more than
//! their whole, for each thread the time on the processor, waiting for one and blocked are its lifetime, and tables of the
//! same time add up to the same.

mod across;
mod views;

use serde_json::{Map, Value};

pub use views::{all_tables, of_views};

/// What is wrong, in words.
type Sentences = Vec<String>;

/// Rounding to whole nanoseconds, and sums of floating-point numbers.
const ROUNDING: f64 = 1e-6;
/// Times of the kernel and of the hook, which see a thread begin and end at different moments: a part of the lifetime,
/// and ns.
const CLOCKS: (f64, f64) = (0.01, 2e6);

/// All contradictions in a document of `chase-report`, or in the analysis behind one, as sentences. With `whole`, its
/// tables have all rows.
#[must_use]
pub fn contradictions(document: &Value, whole: bool) -> Vec<String> {
    let mut found = Sentences::new();
    rows(document, "", &mut found);
    if whole {
        across::differences(document, &mut found);
    }
    let list = |name: &str| list(document, name);
    let is_found = |thread: &Value| thread["origin"] == "found";
    // The first thread of a process that was attached to, and left again, was there before as well.
    let was_there = |first: &Value| {
        let process =
            first["process"].as_u64().and_then(|at| document["processes"].get(at as usize));
        let is_left = process.is_some_and(|process| process["ending"]["kind"] == "detached");
        let of_it = |thread: &&Value| thread["process"] == first["process"];
        is_left && first["origin"] == "main" && list("threads").iter().filter(of_it).any(is_found)
    };
    for thread in list("threads") {
        lifetime(thread, &mut found);
        on_and_off_cpu(thread, is_found(thread) || was_there(thread), &mut found);
    }
    on_cpu(document, &mut found);
    let mut add_up = |what: &str, parts: f64, all: &Value| {
        let Some(all) = all.as_f64() else { return };
        // Numbers of calls are exact.
        // A nanosecond for each row.
        let more = list("threads").len().saturating_sub(5_000) as f64;
        let is_time = what.contains("_ns") || what.contains("time");
        let slack = if is_time { slack(all) + more } else { 0.0 };
        if parts > all + slack || (whole && parts < all - slack) {
            found.push(format!("{what} add up to {parts}, not {all}"));
        }
    };
    let totals = &document["totals"];
    for (field, of_thread) in [
        ("lifetime_ns", "lifetime_ns"),
        ("application_ns", "application_ns"),
        ("library_ns", "self_ns"),
        ("wait_ns", "wait_ns"),
        ("preempted_ns", "preempted_ns"),
        ("application_wait_ns", "application_wait_ns"),
        ("own_cost_ns", "own_cost_ns"),
        ("overlap_ns", "overlap_ns"),
        ("calls", "calls"),
        ("blocked_ns", "blocked_ns"),
        ("runnable_ns", "runnable_ns"),
    ] {
        if !list("threads").is_empty() {
            add_up(&format!("threads' {field}"), sum(list("threads"), of_thread), &totals[field]);
        }
        // Of those that are selected; the others have no figures.
        let processes: Vec<Value> =
            list("processes").iter().filter(|row| !row[field].is_null()).cloned().collect();
        if !processes.is_empty() {
            add_up(&format!("processes' {field}"), sum(&processes, field), &totals[field]);
        }
    }
    let (applications, libraries): (Vec<Value>, Vec<Value>) =
        list("libraries").iter().cloned().partition(|row| row["kind"] != "library");
    // What threads did that are at home in a library is in its row, and in the application's time.
    let at_home = sum(&libraries, "own_code_ns");
    let tables =
        [("libraries", &*libraries), ("apis", list("apis")), ("contexts", list("contexts"))];
    for (name, table) in tables.into_iter().filter(|(_, table)| !table.is_empty()) {
        let at_home = if name == "libraries" { at_home } else { 0.0 };
        let own = sum(table, "self_ns") - at_home;
        add_up(&format!("self times of {name}"), own, &totals["library_ns"]);
        // (How much of it they waited is not told apart.)
        if at_home == 0.0 {
            add_up(&format!("wait times of {name}"), sum(table, "wait_ns"), &totals["wait_ns"]);
        }
        add_up(&format!("calls of {name}"), sum(table, "calls"), &totals["calls"]);
    }
    if !applications.is_empty() {
        let own = sum(&applications, "own_code_ns") + at_home;
        add_up("self times of applications", own, &totals["application_ns"]);
    }
    let syscalls = &document["syscalls"];
    for table in ["by_syscall", "by_category", "by_api", "by_library", "by_thread", "by_context"] {
        let rows = syscalls[table].as_array().map_or(&[][..], Vec::as_slice);
        for field in ["calls", "errors", "total_ns"].into_iter().filter(|_| !rows.is_empty()) {
            let what = format!("{field} of system calls {table}");
            add_up(&what, sum(rows, field), &syscalls["totals"][field]);
        }
    }
    found
}

/// Where times that were measured in two ways differ by more than these do.
#[must_use]
pub fn of_clocks(document: &Value) -> Vec<String> {
    let mut found = Sentences::new();
    across::of_clocks(document, &mut found);
    found
}

/// The rows of a table; none where there is no such table.
fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map_or(&[][..], Vec::as_slice)
}

/// A figure, if it is known.
fn number(row: &Value, field: &str) -> Option<f64> {
    row[field].as_f64()
}

fn slack(all: f64) -> f64 {
    // A nanosecond for each row of the largest tables.
    all * ROUNDING + 5_000.0
}

fn sum(rows: &[Value], field: &str) -> f64 {
    rows.iter().filter_map(|row| row[field].as_f64()).sum()
}

/// Looks at every row, wherever it is.
fn rows(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(row) => {
            row_of(row, place, found);
            row.iter().for_each(|(name, value)| rows(value, &format!("{place}.{name}"), found));
        }
        Value::Array(all) => {
            for (at, value) in all.iter().enumerate() {
                rows(value, &format!("{place}[{at}]"), found);
            }
        }
        _ => {}
    }
}

/// Parts, and the whole that they are of.
const PARTS: [(&[&str], &str); 10] = [
    (&["wait_ns", "preempted_ns"], "self_ns"),
    (&["application_wait_ns", "application_preempted_ns"], "application_ns"),
    (&["unattributed_wait_ns", "unattributed_preempted_ns"], "unattributed_ns"),
    (&["on_cpu_kernel_ns"], "on_cpu_ns"),
    (&["on_cpu_inside_ns", "on_cpu_application_ns", "on_cpu_elsewhere_ns"], "on_cpu_ns"),
    (&["off_cpu_ns", "cpu_ns"], "total_ns"),
    (&["untimed", "open"], "calls"),
    (&["errors"], "calls"),
    (&["not_sampled_ns", "watching_ns"], "on_cpu_ns"),
    (&["useful_ns", "wait_ns"], "lifetime_ns"),
];
/// Each is no more than the next.
const ASCENDING: [&str; 5] = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"];
/// Fractions of 1.
const FRACTIONS: [&str; 5] = ["share", "load_balance", "imbalance", "of_lifetime", "above_p99"];

fn row_of(row: &Map<String, Value>, place: &str, found: &mut Vec<String>) {
    let number = |field: &str| row.get(field).and_then(Value::as_f64);
    for (parts, whole) in PARTS {
        let Some(all) = number(whole) else { continue };
        // What contradictory data count twice is said.
        let overlap =
            if whole == "lifetime_ns" { number("overlap_ns").unwrap_or(0.0) } else { 0.0 };
        let all = all + overlap;
        let sum: f64 = parts.iter().filter_map(|part| number(part)).sum();
        // Those of each thread are rounded.
        let threads = number("threads").unwrap_or(1.0).max(1.0);
        if sum > all + all * ROUNDING + parts.len() as f64 * threads {
            found.push(format!("{place}: {} are {sum}, of {whole} {all}", parts.join(" + ")));
        }
    }
    let known: Vec<(&str, f64)> =
        ASCENDING.iter().filter_map(|field| Some((*field, number(field)?))).collect();
    for pair in known.windows(2).filter(|pair| pair[0].1 > pair[1].1) {
        found.push(format!("{place}: {:?} above {:?}", pair[0], pair[1]));
    }
    for field in FRACTIONS {
        if let Some(value) = number(field).filter(|value| !(-1e-9..=1.0 + 1e-6).contains(value)) {
            found.push(format!("{place}: {field} is {value}"));
        }
    }
}

/// A thread's time is that of its calls and of its own code.
fn lifetime(thread: &Value, found: &mut Vec<String>) {
    let number = |field: &str| thread[field].as_f64();
    let who = || format!("thread {} {}", thread["tid"], thread["name"]);
    let sum = |fields: &[&str]| fields.iter().map(|field| number(field)).sum::<Option<f64>>();
    let Some(lifetime) = number("lifetime_ns") else { return };
    if let Some(parts) = sum(&["application_ns", "self_ns", "own_cost_ns"]) {
        let parts = parts + number("unattributed_ns").unwrap_or(0.0);
        let all = lifetime + number("overlap_ns").unwrap_or(0.0);
        if (parts - all).abs() > 0.01 * all + 100.0 {
            found.push(format!("{}: calls and own code are {parts}, of {all}", who()));
        }
    }
}

/// How long a thread may have been stopped before `chase attach` sees it: on a busy machine, a few times as long as a process gets the
/// processor for.
const STOPPED_NS: f64 = 50e6;

/// A thread is on the processor, waits for one, or is blocked.
fn on_and_off_cpu(thread: &Value, is_attached: bool, found: &mut Sentences) {
    // Until when it lived is not known.
    if thread["end_is_estimate"] == Value::Bool(true) {
        return;
    }
    let Some(lifetime) = number(thread, "lifetime_ns") else { return };
    let who = || format!("thread {} {}", thread["tid"], thread["name"]);
    let sum =
        |fields: &[&str]| -> Option<f64> { fields.iter().map(|field| number(thread, field)).sum() };
    if let Some(parts) = sum(&["on_cpu_ns", "blocked_ns", "runnable_ns"]) {
        let slack = CLOCKS.0 * lifetime + CLOCKS.1;
        // A process is watched from its first instruction, and recorded from when the hook was loaded. One that is attached to
        // stands still for a while before that is seen, which is none of the three.
        let is_early = thread["origin"] != "created" && parts > lifetime;
        let is_stopped = is_attached && parts < lifetime && lifetime - parts < STOPPED_NS;
        if number(thread, "on_cpu_ns").is_some_and(|ns| ns > lifetime) {
            found.push(format!("{} ran for longer than {lifetime}", who()));
        }
        if (parts - lifetime).abs() > slack && !is_early && !is_stopped {
            let each = ["on_cpu_ns", "runnable_ns", "blocked_ns", "origin", "start_ns"]
                .map(|field| &thread[field]);
            found.push(format!("{}: {each:?} of a lifetime of {lifetime}", who()));
        }
    }
}

/// Tables of samples.
fn on_cpu(document: &Value, found: &mut Vec<String>) {
    let all = &document["on_cpu"];
    let Some(whole) = all["on_cpu_ns"].as_f64().filter(|_| all["samples"] != 0) else { return };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let objects = list(&all["objects"]);
    let outside = ["not_sampled_ns", "watching_ns"].map(|field| all[field].as_f64());
    let sampled = sum(&objects, "on_cpu_ns");
    let parts = sampled + outside.into_iter().flatten().sum::<f64>();
    if (parts - whole).abs() > slack(whole) {
        found.push(format!("objects on the processor add up to {parts}, not {whole}"));
    }
    if sum(&objects, "samples") != all["samples"].as_f64().unwrap_or(0.0) {
        found.push(format!("samples of objects are not {}", all["samples"]));
    }
    for table in ["libraries", "functions", "apis"] {
        let parts = sum(&list(&document[table]), "on_cpu_ns");
        if parts > sampled + slack(sampled) {
            found.push(format!("{table} on the processor add up to {parts} of {sampled}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::contradictions;

    fn sound() -> Value {
        json!({
            "totals": {"lifetime_ns": 100_000_000, "application_ns": 60_000_000, "library_ns": 40_000_000, "calls": 4},
            "threads": [{
                "tid": 7, "origin": "created", "lifetime_ns": 100_000_000, "application_ns": 60_000_000,
                "self_ns": 40_000_000, "wait_ns": 10_000_000, "own_cost_ns": 0, "calls": 4,
                "on_cpu_ns": 70_000_000, "blocked_ns": 20_000_000, "runnable_ns": 10_000_000,
            }],
            "apis": [{"self_ns": 40_000_000, "wait_ns": 10_000_000, "calls": 4, "p50_ns": 5, "max_ns": 9, "share": 0.4}],
            "on_cpu": {"samples": 70, "on_cpu_ns": 70_000_000, "not_sampled_ns": 0, "watching_ns": 0,
                "objects": [{"samples": 70, "on_cpu_ns": 70_000_000, "on_cpu_kernel_ns": 1}]},
        })
    }

    #[test]
    fn what_adds_up_is_no_contradiction() {
        assert_eq!(contradictions(&sound(), true), Vec::<String>::new());
    }

    /// One function that two threads of a group called, one of them in a call of another thread's group.
    fn tables() -> Value {
        let mut document = sound();
        let calls = |calls: u64| {
            let ns = calls * 10_000_000;
            json!({"api": 0, "calls": calls, "self_ns": ns, "wait_ns": ns / 4, "preempted_ns": 0})
        };
        document["wall_ns"] = json!(100_000_000);
        document["span_ns"] = json!(100_000_000);
        document["totals"]["threads"] = json!(1);
        document["totals"]["wait_ns"] = json!(10_000_000);
        document["apis"][0]["object"] = json!(0);
        document["threads"][0]["apis"] = json!([calls(3), calls(1)]);
        document["contexts"] = json!([calls(2), calls(2)]);
        document["libraries"] = json!([
            {"kind": "library", "object": 0, "calls": 4, "self_ns": 40_000_000, "own_code_ns": 0, "wait_ns": 10_000_000},
            {"kind": "application", "object": 1, "self_ns": 60_000_000, "own_code_ns": 60_000_000},
        ]);
        document["groups"] = json!([{
            "label": "app", "threads": 1, "calls": 4, "lifetime_ns": 100_000_000, "application_ns": 60_000_000,
            "library_ns": 40_000_000, "wait_ns": 10_000_000, "members": [0],
            "apis": [{"api": 0, "calls": 4, "wait_ns": 10_000_000}],
        }]);
        document["waits"] = json!([{"api": 0, "wait_ns": 10_000_000, "max": {"ns": 10_000_000}}]);
        document["blocked"] = json!([{"api": 0, "wait_ns": 4_000_000}]);
        document["idle"] = json!([{"api": 0, "wait_ns": 6_000_000}]);
        document["tails"] = json!([{"api": 0, "calls": 4, "max_ns": 9, "calls_above_p99": 1, "threads": [{"calls_above_p99": 1}]}]);
        document["functions"] = json!([{"object": 3, "samples": 70, "on_cpu_ns": 70_000_000}]);
        document["on_cpu"]["objects"][0]["object"] = json!(3);
        document["syscalls_by_api"] = json!([{"calls": 2, "errors": 1, "total_ns": 50, "max_ns": 40, "by_error": [{"count": 1}]}]);
        document["syscalls_by_category"] = json!([{"calls": 2, "errors": 1, "total_ns": 50}]);
        document["causes"] = json!([{"wait_ns": 9_000_000, "max_ns": 5, "ready_ns": 6, "wakers": [{"wait_ns": 9_000_000}]}]);
        document["parts"] = json!([{"ns": 99_000_000}, {"ns": 1_000_000}]);
        document
    }

    #[test]
    fn tables_of_the_same_agree() {
        assert_eq!(contradictions(&tables(), true), Vec::<String>::new());
    }

    #[test]
    fn each_table_is_held_against_the_others() {
        for place in [
            "/threads/0/apis/0/calls",
            "/threads/0/apis/1/self_ns",
            "/contexts/0/calls",
            "/contexts/1/wait_ns",
            "/libraries/0/calls",
            "/libraries/0/self_ns",
            "/groups/0/calls",
            "/groups/0/lifetime_ns",
            "/groups/0/wait_ns",
            "/groups/0/apis/0/calls",
            "/waits/0/wait_ns",
            "/waits/0/max/ns",
            "/blocked/0/wait_ns",
            "/idle/0/wait_ns",
            "/tails/0/calls",
            "/tails/0/max_ns",
            "/tails/0/threads/0/calls_above_p99",
            "/functions/0/samples",
            "/functions/0/on_cpu_ns",
            "/syscalls_by_api/0/calls",
            "/syscalls_by_api/0/by_error/0/count",
            "/syscalls_by_category/0/errors",
            "/causes/0/wakers/0/wait_ns",
            "/parts/0/ns",
        ] {
            let mut document = tables();
            let value = document.pointer_mut(place).expect(place);
            *value = json!(value.as_u64().expect("a number") * 3 / 2 + 1);
            assert!(!contradictions(&document, true).is_empty(), "{place}");
        }
    }

    #[test]
    fn every_rule_finds_what_breaks_it() {
        let broken = [
            ("/threads/0/wait_ns", json!(41_000_000)),
            ("/threads/0/blocked_ns", json!(60_000_000)),
            ("/threads/0/runnable_ns", json!(0)),
            ("/threads/0/application_ns", json!(50_000_000)),
            ("/totals/calls", json!(5)),
            ("/apis/0/self_ns", json!(30_000_000)),
            ("/apis/0/p50_ns", json!(10)),
            ("/apis/0/share", json!(1.2)),
            ("/on_cpu/objects/0/on_cpu_ns", json!(60_000_000)),
            ("/on_cpu/objects/0/samples", json!(71)),
            ("/on_cpu/objects/0/on_cpu_kernel_ns", json!(80_000_000)),
        ];
        for (place, value) in broken {
            let mut document = sound();
            *document.pointer_mut(place).expect(place) = value;
            assert!(!contradictions(&document, true).is_empty(), "{place}");
        }
        // Some rows are not all.
        let mut document = sound();
        document["apis"][0]["self_ns"] = json!(30_000_000);
        assert_eq!(contradictions(&document, false), Vec::<String>::new());
    }
}
