use serde_json::Value;

use super::*;
use crate::trace::{TraceFunction, TraceProcess, TraceSample, TraceWait};

fn document() -> Value {
    let call = |function, start_ns, end_ns, depth| TraceCall {
        function,
        start_ns,
        end_ns,
        depth,
        is_open: false,
    };
    let thread = TraceThread {
        tid: 7,
        name: "app".into(),
        is_main: true,
        start_ns: 1_000_000,
        end_ns: 9_000_000,
        calls: vec![call(0, 2_000_000, 6_000_000, 0), call(1, 3_000_000, 4_000_000, 1)],
        waits: vec![TraceWait {
            what: "a lock".into(),
            start_ns: 6_500_000,
            woken_ns: 7_000_000,
            end_ns: 7_000_000,
            waker: None,
        }],
        syscalls: Vec::new(),
        samples: [2_500_000, 3_500_000, 8_000_000]
            .map(|at_ns| TraceSample { at_ns, stack: 0, stands_for: 1, is_in_kernel: false })
            .into(),
        marks: vec![(5_000_000, "half".into())],
    };
    let function =
        |name: &str, library: &str| TraceFunction { name: name.into(), library: library.into() };
    let trace = Trace {
        title: "app".into(),
        realtime_ns: 1_700_000_000_000_000_000,
        functions: vec![function("compress", "libz"), function("crc32", "libz")],
        stacks: vec![vec![0, 1]],
        sample_hz: 500,
        processes: vec![TraceProcess {
            pid: 7,
            name: "app".into(),
            start_ns: 1_000_000,
            end_ns: 9_000_000,
            threads: vec![thread],
            ..TraceProcess::default()
        }],
    };
    serde_json::from_str(&firefox(&trace).expect("JSON")).expect("JSON again")
}

#[test]
fn the_document_has_the_thread_with_its_calls_as_markers() {
    let document = document();
    assert_eq!(document["meta"]["product"], "app");
    let threads = document["threads"].as_array().expect("threads");
    assert_eq!((threads.len(), &threads[0]["name"]), (2, &Value::from("app")));
    let markers = &threads[0]["markers"];
    assert_eq!(markers["length"], 4);
    let start: Vec<f64> =
        markers["startTime"].as_array().unwrap().iter().map(|ms| ms.as_f64().unwrap()).collect();
    assert_eq!(start, [1.0, 2.0, 5.5, 4.0]);
}

/// Weights of samples are microseconds: they add up to the time of the calls.
#[test]
fn samples_add_up_to_the_time_in_calls() {
    let document = document();
    let samples = &document["threads"][0]["samples"];
    let weights = samples["weight"].as_array().expect("weights");
    let sum: i64 = weights.iter().map(|weight| weight.as_i64().unwrap()).sum();
    assert_eq!(sum, 4_000, "{samples}");
}

fn sum(thread: &Value, column: &str) -> i64 {
    let column = thread["samples"][column].as_array().expect("a column");
    column.iter().map(|value| value.as_i64().expect("a number")).sum()
}

/// What is not known to wait is busy, also where no call was open: a life of 8 ms with a wait of half a one.
#[test]
fn a_thread_is_busy_where_it_does_not_wait() {
    assert_eq!(sum(&document()["threads"][0], "threadCPUDelta"), 7_500);
}

/// Each of a thousand calls takes one and a half steps: rounded one by one they were a third too long.
#[test]
fn sums_of_short_calls_are_right() {
    let call = |number: u64| TraceCall {
        start_ns: number * 4_000,
        end_ns: number * 4_000 + 1_500,
        ..TraceCall::default()
    };
    let calls = (0..1_000).map(call).collect();
    let thread = TraceThread { end_ns: 4_000_000, calls, ..TraceThread::default() };
    let functions = vec![TraceFunction { name: "f".into(), library: "l".into() }];
    let processes = vec![TraceProcess { threads: vec![thread], ..TraceProcess::default() }];
    let trace = Trace { functions, processes, ..Trace::default() };
    let document: Value = serde_json::from_str(&firefox(&trace).expect("JSON")).expect("JSON");
    assert_eq!(sum(&document["threads"][0], "weight"), 1_500);
    assert_eq!(sum(&document["threads"][0], "threadCPUDelta"), 4_000);
}

/// Each stands for 2 ms, but for no more than has passed since the one before.
#[test]
fn samples_that_were_taken_are_a_thread_of_their_own() {
    let document = document();
    let own = &document["threads"][1];
    assert_eq!(own["name"], "app (samples)");
    assert_ne!(own["tid"], document["threads"][0]["tid"]);
    assert_eq!(own["samples"]["threadCPUDelta"], serde_json::json!([0, 1_000, 2_000]));
    assert_eq!(own["samples"]["weight"], serde_json::json!([2_000, 2_000, 2_000]));
    assert_eq!(own["stackTable"]["length"], 2);
}
