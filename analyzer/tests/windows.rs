//! Calls that were seen in windows alone: what is said of all of them.

mod process;

use chase_analyzer::Ns;
use chase_analyzer::recorder::layout::{TwinRecord, Window};
use process::{Process, api};

/// 500 calls of 40 ticks that were counted one by one, and 200 in windows that were open for a fifth of the
/// time. The hook adds 20 ticks to each, and the caller sees 30 more.
fn windowed(uneven: u64) -> Process {
    let mut process = Process::new();
    process.builder.header.cost_inside = 20 * 1024;
    process.builder.header.cost_outside = 30 * 1024;
    let (_, inner) = process.slots();
    // 20 windows of 10 µs, with 10 calls each, or as many more as fewer, in turns.
    let mut record = TwinRecord { off_ns: 800_000, unseen_ns: 5_000, ..TwinRecord::default() };
    let mut before = None;
    for at in 0..20 {
        let calls = if at % 2 == 0 { 10 - uneven } else { 10 + uneven };
        let window = Window { open_ns: 10_000, calls };
        record.add_window(window, 40_000, before.replace(window));
    }
    let twin = process.builder.twin(inner, record);
    let mut thread = process.builder.timeline(process.main);
    thread.work(100_000).calls(inner, 40, 500).calls(twin, 40, 200).work(500).end();
    process
}

#[test]
fn they_are_one_api_and_stand_for_those_between_windows() {
    let analysis = windowed(0).analysis();
    let measures = &api(&analysis, "inner").measures;
    assert_eq!((measures.calls, measures.calls_estimated), (500 + 5 * 200, true));
    assert_eq!((measures.calls_ci95, measures.ci95_ns), (0, Ns(0)), "all windows are alike");
    assert_eq!((measures.timed, measures.untimed, measures.open), (700, 0, 0));
    assert_eq!(measures.self_ns, Ns(1_500 * 40));
    assert_eq!((measures.mean_ns, measures.p50_ns.is_some()), (Some(Ns(40)), true));
    assert!(measures.estimated && analysis.totals.calls_estimated);
    // Calls between windows cost nothing.
    assert_eq!(analysis.totals.own_cost_ns, Ns(700 * (20 + 30)));
    let [missing] = &analysis.not_seen.not_observed[..] else { panic!("one function") };
    assert_eq!(
        (&*missing.symbol, &*missing.library, missing.cpu_ns),
        ("inner", "libb.so", Ns(5_000))
    );
}

#[test]
fn uneven_windows_leave_a_doubt() {
    let analysis = windowed(5).analysis();
    let measures = &api(&analysis, "inner").measures;
    // Each window differs from the one before it by its mean, which is √2 of what σ = 1 / √2 of the mean
    // makes, four fifths of the time were not seen, and there are 20.
    let expected = 1.96 * 1_000.0 * (0.8 * 0.5 / 20.0_f64).sqrt();
    let found = measures.calls_ci95 as f64;
    assert!((found / expected - 1.0).abs() < 0.02, "{found}, not {expected}");
    let of_time = measures.ci95_ns.as_f64() / 40.0;
    assert!((of_time / expected - 1.0).abs() < 0.02, "{of_time}, not {expected}");
}

#[test]
fn without_windows_all_is_exact() {
    let mut process = Process::new();
    let (_, inner) = process.slots();
    let twin = process.builder.twin(inner, TwinRecord::default());
    process.builder.timeline(process.main).calls(inner, 40, 5).calls(twin, 40, 3).end();
    let measures = api(&process.analysis(), "inner").measures.clone();
    assert_eq!((measures.calls, measures.calls_estimated, measures.estimated), (8, false, false));
}

/// As a damaged recording may say: more than a floating-point number holds to the last digit.
#[test]
fn no_number_of_calls_is_too_large() {
    let mut process = Process::new();
    let (_, inner) = process.slots();
    let twin = process.builder.twin(inner, TwinRecord { on_ns: 1, ..TwinRecord::default() });
    let calls = (1 << 53) + 1;
    process.builder.timeline(process.main).calls(twin, 0, calls).end();
    assert_eq!(api(&process.analysis(), "inner").measures.calls, calls);
}

/// It was unhooked, and the process ended before there was a window.
#[test]
fn what_nothing_stands_for_is_not_exact() {
    for (off_ns, unseen_ns) in [(5_000, 0), (0, 5_000)] {
        let mut process = Process::new();
        let (outer, inner) = process.slots();
        process.builder.twin(inner, TwinRecord { off_ns, unseen_ns, ..TwinRecord::default() });
        process.builder.timeline(process.main).calls(inner, 40, 5).calls(outer, 40, 3).end();
        let analysis = process.analysis();
        let of = |symbol| {
            (api(&analysis, symbol).measures.calls, api(&analysis, symbol).measures.calls_estimated)
        };
        assert_eq!((of("inner"), of("outer")), ((5, true), (3, false)));
        assert!(analysis.totals.calls_estimated);
    }
}
