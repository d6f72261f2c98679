//! Calls of which only some were timed: what is said of all of them.

mod process;

use chase_analyzer::recorder::layout::{END_EXIT, THREAD_LIVE, TIMING_ADAPTIVE};
use chase_analyzer::{Analysis, Groups, LibraryKind, LibraryRow, Ns, Selection, Tails, Unnamed};
use process::{Process, api};

/// 50 blocks of 100 calls, and 60 calls after the last sample. Each call takes 40 ticks; the hook
/// adds 20 to a sample, and 3 to a call that it only counts.
fn sampled(ticks: impl Fn(u64) -> u64) -> (Process, u64) {
    let mut process = Process::new();
    process.builder.header.timing = TIMING_ADAPTIVE;
    process.builder.header.cost_inside = 20 * 1024;
    process.builder.header.cost_outside = 30 * 1024;
    process.builder.header.cost_counted = 3 * 1024;
    process.builder.header.cost_sampled = 200 * 1024;
    let (_, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.work(1_000).calls(inner, 40, 500);
    for block in 0..50 {
        thread.block(inner, ticks(block), 100);
    }
    thread.rest(inner, 40, 60).work(500).end();
    (process, 500 + 50 * 100 + 60)
}

#[test]
fn counts_are_exact_and_times_are_those_of_the_samples() {
    let (process, calls) = sampled(|_| 40);
    let analysis = process.analysis();
    let measures = &api(&analysis, "inner").measures;
    assert_eq!((measures.calls, measures.untimed, measures.open), (calls, 0, 0));
    assert_eq!(measures.timed, 500 + 50);
    assert_eq!(measures.self_ns, Ns(calls * 40));
    assert_eq!(measures.mean_ns, Some(Ns(40)));
    assert_eq!(analysis.totals.application_ns, Ns(1_500));
    let own_cost = 500 * (20 + 30) + 50 * (20 + 200) + (50 * 99 + 60) * 3;
    assert_eq!(analysis.totals.own_cost_ns, Ns(own_cost));
}

/// It differs from no other, which says nothing of how the calls differ that it stands for.
#[test]
fn one_sample_may_be_wrong_by_all_of_it() {
    let mut process = Process::new();
    process.builder.header.timing = TIMING_ADAPTIVE;
    let (_, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.work(1_000).calls(inner, 40, 500).block(inner, 40, 100).end();
    let measures = api(&process.analysis(), "inner").measures.clone();
    assert_eq!((measures.calls, measures.timed, measures.self_ns), (600, 501, Ns(600 * 40)));
    assert_eq!(measures.ci95_ns, Ns((1.96 * 100.0 * 40.0) as u64));
}

#[test]
fn what_a_sample_was_measured_to_cost_is_believed() {
    let (mut process, _) = sampled(|_| 40);
    let before = process.analysis();
    let record = process.builder.thread_mut(process.main);
    (record.samples, record.samples_ticks) = (40, 40 * 205 + 20);
    let after = process.analysis();
    let more = (5.5 * 50.0) as u64;
    assert_eq!(after.totals.own_cost_ns, Ns(before.totals.own_cost_ns.0 + more));
    assert_eq!(after.totals.application_ns, Ns(before.totals.application_ns.0 - more));
}

#[test]
fn what_is_taken_off_all_samples_may_be_wrong_by_the_same() {
    let (mut process, calls) = sampled(|_| 40);
    let interval = |process: &Process| api(&process.analysis(), "inner").measures.ci95_ns.as_f64();
    assert_eq!(interval(&process), 0.0, "samples are all alike");
    process.builder.header.cost_error = 512;
    let sampled_calls = (calls - 500) as f64;
    let expected = 1.96 * 0.5 * sampled_calls;
    let found = interval(&process);
    assert!((found / expected - 1.0).abs() < 0.01, "{found} instead of {expected}");
}

/// By half as much again as the reads take within a call, and by eight ticks for a sample and all calls that it stands for.
#[test]
fn reading_the_clock_takes_longer_here_than_there() {
    let (process, calls) = sampled(|_| 40);
    let analysis = process.analysis();
    let sampled_calls = (calls - 500) as f64;
    let expected = 1.96 * (1.5 * 20.0 * 500.0 + 8.0 * sampled_calls);
    let inner = &api(&analysis, "inner").measures;
    assert!((inner.clock_ci95_ns.as_f64() - expected).abs() <= 1.0, "{inner:?} and not {expected}");
    // What is too much there is missing in the caller, whose own time is known no better.
    let is_application = |row: &&LibraryRow| row.kind == LibraryKind::Application;
    let application = &analysis.libraries.iter().find(is_application).unwrap().measures;
    assert!(application.clock_ci95_ns <= inner.clock_ci95_ns && application.clock_ci95_ns > Ns(0));
    assert_eq!(application.self_error_ns().map(|error| error > application.self_ns), Some(true));
}

/// In all contexts, that is; and what is too much there is missing in the caller.
#[test]
fn what_is_wrong_by_the_same_adds_up() {
    let mut process = Process::new();
    process.builder.header.timing = TIMING_ADAPTIVE;
    process.builder.header.cost_error = 1024;
    let (outer, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.work(1_000).block(inner, 40, 50).block(inner, 40, 50).enter(outer).work(9_000);
    thread.block(inner, 40, 100).block(inner, 40, 100).leave().work(9_000).end();
    let analysis = process.analysis();
    let interval = |symbol| api(&analysis, symbol).measures.ci95_ns.0;
    assert_eq!((interval("inner"), interval("outer")), (588, 392));
    let is_application = |row: &&LibraryRow| row.kind == LibraryKind::Application;
    let application = analysis.libraries.iter().find(is_application).unwrap();
    assert_eq!(application.measures.ci95_ns, Ns(196), "{application:?}");
}

#[test]
fn after_a_kill_less_than_a_block_is_missing() {
    let (mut process, _) = sampled(|_| 40);
    assert_eq!(process.analysis().not_seen.latest_calls, 0, "the thread has ended");
    process.builder.thread_mut(process.main).state = THREAD_LIVE;
    let analysis = process.analysis();
    assert_eq!(analysis.not_seen.latest_calls, 255, "of 5,060 calls");
    let measures = &api(&analysis, "inner").measures;
    assert!(measures.calls_estimated && analysis.totals.calls_estimated);
    assert_eq!(measures.calls_ci95, 255);
    process.builder.end(END_EXIT, 0);
    let analysis = process.analysis();
    assert_eq!(analysis.not_seen.latest_calls, 0);
    assert!(!analysis.totals.calls_estimated);
}

#[test]
fn what_a_fork_called_before_it_was_noticed_is_missing() {
    let (mut process, calls) = sampled(|_| 40);
    process.builder.header.unseen.calls_since_fork = 70;
    let analysis = process.analysis();
    assert_eq!(analysis.not_seen.calls_since_fork, 70);
    let measures = &api(&analysis, "inner").measures;
    assert!(measures.calls_estimated);
    assert_eq!((measures.calls, measures.calls_ci95), (calls, 0));
}

/// The cost is one number, and what a tiny call adds to it may be less than none. That counts for all calls.
#[test]
fn a_cost_calibrated_too_high_contradicts_nothing() {
    let (mut process, _) = sampled(|_| 40);
    process.builder.header.cost_inside = 70 * 1024;
    let analysis = process.analysis();
    assert_eq!(api(&analysis, "inner").measures.self_ns, Ns(0));
    assert_eq!(analysis.totals.overlap_ns, Ns(0));
    // A call cost what was recorded of it, 60, and no more.
    let of_samples = 50 * (60 + 200) + (50 * 99 + 60) * 3;
    let calls = 500 * (60 + 30);
    assert_eq!(analysis.totals.own_cost_ns, Ns(of_samples + calls));
}

#[test]
fn even_samples_leave_no_doubt_and_uneven_ones_do() {
    let (process, _) = sampled(|_| 40);
    let even = api(&process.analysis(), "inner").measures.clone();
    assert!(even.estimated);
    // Squares are recorded in units of 256 ticks².
    assert!(even.ci95_ns.as_f64() < 0.005 * even.self_ns.as_f64(), "{even:?}");

    let (process, _) = sampled(|block| if block % 2 == 0 { 20 } else { 60 });
    let analysis = process.analysis();
    let uneven = &api(&analysis, "inner").measures;
    // Half of the samples are 20 ticks off: 1.96·√(50·100·99·20²).
    let expected = 1.96 * (50.0 * 100.0 * 99.0 * 400.0_f64).sqrt();
    let found = uneven.ci95_ns.as_f64();
    assert!((found / expected - 1.0).abs() < 0.02, "{found}, not {expected}");
    // What is not known of the calls is not known of the application's time either.
    assert!(analysis.libraries.iter().all(|row| row.measures.estimated));
}

/// The sums of which the error is made stay at their highest number, and tell nothing then.
#[test]
fn where_the_sums_of_squares_are_full_the_time_may_be_wrong_by_all_of_it() {
    let mut process = Process::new();
    process.builder.header.timing = TIMING_ADAPTIVE;
    let (_, inner) = process.slots();
    let (ticks, calls) = (1 << 20, 1 << 20);
    let mut thread = process.builder.timeline(process.main);
    thread.work(1_000).calls(inner, 40, 500).block(inner, ticks, calls);
    thread.block(inner, ticks, calls).end();
    let measures = api(&process.analysis(), "inner").measures.clone();
    assert_eq!((measures.calls, measures.timed), (500 + 2 * calls, 502));
    assert!(measures.ci95_ns.as_f64() > 0.99 * (2 * ticks * calls) as f64, "{measures:?}");
}

#[test]
fn quantiles_that_too_few_samples_tell_are_not_shown() {
    let (process, _) = sampled(|_| 40);
    let measures = api(&process.analysis(), "inner").measures.clone();
    assert!(measures.p50_ns.is_some());
    assert_eq!((measures.p99_ns, measures.p999_ns), (None, None));
}

#[test]
fn nor_are_they_in_tails() {
    let (process, _) = sampled(|block| if block == 7 { 90_000 } else { 40 });
    let images = [process.image()];
    let analysis = Analysis::new(&images, Selection::All);
    let groups = Groups::new(&analysis, &Unnamed);
    let tails = Tails::new(&images, &analysis, &groups);
    let [row] = &tails.rows[..] else { panic!("one function") };
    assert!(row.sampled && row.p50_ns.is_some());
    assert_eq!((row.p99_ns, row.p999_ns, row.p9999_ns), (None, None, None));
    assert_eq!((row.tail_ratio, row.above_p99, row.calls_above_p99), (None, None, 0));
    assert_eq!(
        (row.threads.len(), row.threads_above_p99),
        (0, 0),
        "nobody holds what is not known"
    );
    assert_eq!(row.max_ns, Ns(90_000));
    assert!(row.contexts.iter().all(|context| context.p99_ns.is_none()));
}

#[test]
fn calls_that_were_only_counted_take_no_time() {
    let mut process = Process::new();
    process.builder.header.cost_counted = 1024;
    let (_, inner) = process.slots();
    process.builder.timeline(process.main).work(100).rest(inner, 40, 1_000).end();
    let analysis = process.analysis();
    let measures = &api(&analysis, "inner").measures;
    assert_eq!((measures.calls, measures.untimed, measures.timed), (1_000, 1_000, 0));
    assert_eq!((measures.self_ns, measures.mean_ns, measures.estimated), (Ns(0), None, false));
    assert_eq!(analysis.totals.own_cost_ns, Ns(1_000));
}

/// Calls that get frames are counted where they are made. In a context of which no sample was taken
/// they take as long as elsewhere.
#[test]
fn framed_calls_are_in_their_contexts() {
    let mut process = Process::new();
    process.builder.header.cost_framed = 10 * 1024;
    process.builder.header.cost_sampled = 200 * 1024;
    let (outer, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.call(inner, 40);
    for _ in 0..100 {
        thread.framed(inner, 40, 8);
        for _ in 1..8 {
            thread.framed(inner, 40, 0);
        }
    }
    thread.work(1_000).enter(outer).work(500).call(inner, 40);
    for _ in 0..50 {
        thread.framed(inner, 40, 0);
    }
    thread.leave().end();
    let analysis = process.analysis();
    let measures = &api(&analysis, "inner").measures;
    assert_eq!((measures.calls, measures.timed, measures.untimed), (852, 102, 0));
    assert_eq!(measures.self_ns, Ns(852 * 40));
    assert_eq!(api(&analysis, "outer").measures.self_ns, Ns(500));
    assert_eq!(analysis.totals.application_ns, Ns(1_000));
    assert_eq!(analysis.totals.own_cost_ns, Ns(100 * 200 + 750 * 10));
}

/// In a context of which no sample was taken they can't take longer than the call that they are in, however long they
/// take elsewhere.
#[test]
fn framed_calls_take_no_longer_than_their_caller() {
    let mut process = Process::new();
    process.builder.header.cost_framed = 10 * 1024;
    process.builder.header.cost_sampled = 200 * 1024;
    let (outer, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.call(inner, 4_000);
    for _ in 0..100 {
        thread.framed(inner, 4_000, 1);
    }
    thread.work(1_000).enter(outer).work(10).call(inner, 4);
    for _ in 0..50 {
        thread.framed(inner, 4, 0);
    }
    thread.leave().end();
    let analysis = process.analysis();
    assert_eq!(analysis.totals.overlap_ns, Ns(0));
    let measures = &api(&analysis, "inner").measures;
    assert_eq!(measures.calls, 152);
    assert_eq!(measures.self_ns, Ns(101 * 4_000 + 51 * 4 + 10));
    assert_eq!(api(&analysis, "outer").measures.self_ns, Ns(0));
    assert_eq!(analysis.totals.application_ns, Ns(1_000));
    assert_eq!(analysis.totals.own_cost_ns, Ns(100 * 200 + 50 * 10));
}

/// Few of the calls take nearly all of the time, in calls inside that are all timed, and none of these few was timed itself.
#[test]
fn framed_calls_take_at_least_what_they_certainly_called() {
    let mut process = Process::new();
    process.builder.header.cost_framed = 10 * 1024;
    process.builder.header.cost_sampled = 200 * 1024;
    let (outer, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.work(1_000).call(outer, 40);
    for _ in 0..100 {
        thread.framed(outer, 40, 8);
        for _ in 1..8 {
            thread.framed(outer, 40, 0);
        }
    }
    thread.framed_around(outer, inner, 90_000).end();
    let analysis = process.analysis();
    assert_eq!(analysis.totals.overlap_ns, Ns(0));
    assert_eq!(api(&analysis, "inner").measures.self_ns, Ns(90_000));
    let outer = &api(&analysis, "outer").measures;
    assert!(outer.total_ns >= Ns(90_000), "{outer:?}");
    assert!(analysis.totals.application_ns <= Ns(1_000 + 802 * 40), "{:?}", analysis.totals);
}

/// Nor, where of that call nothing is known either, than what is around it.
#[test]
fn framed_calls_take_no_longer_than_there_was_time() {
    let mut process = Process::new();
    let (outer, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.call(inner, 4_000);
    for _ in 0..100 {
        thread.framed(inner, 4_000, 1);
    }
    thread.work(1_000).enter(outer).work(10).call(inner, 4);
    for _ in 0..50 {
        thread.framed(inner, 4, 0);
    }
    thread.leave().framed(outer, 40, 0).end();
    let analysis = process.analysis();
    assert_eq!(analysis.totals.overlap_ns, Ns(0));
    assert_eq!(api(&analysis, "outer").measures.calls, 2);
    let longest = 101 * 4_000 + 51 * 4 + 10 + 40 + 1_000;
    assert_eq!(api(&analysis, "inner").measures.self_ns, Ns(longest));
}
