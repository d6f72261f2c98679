//! Comparisons: what differs is said, and what may be noise is not called a change.

mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::{
    Analysis, ApiChange, ApiName, Basis, Pair, Selection, Verdict, WaitSource, compare, match_apis,
};
use process::Process;

/// A run that calls `outer` 100 times, for `each` and a little more from call to call.
fn run(each: u64, spread: u64) -> Analysis {
    run_of("outer", "/lib/liba.so", each, spread)
}

fn run_of(symbol: &str, library: &str, each: u64, spread: u64) -> Analysis {
    let mut process = Process::new();
    let library = process.builder.object(library);
    let slot = process.builder.slot(process.app, Some(library), symbol);
    let inner = process.builder.slot(library, Some(process.libb), "inner");
    let mut thread = process.builder.timeline(process.main);
    for call in 0..100 {
        thread.work(1_000).enter(slot).work(each + spread * call / 100).call(inner, 50).leave();
    }
    thread.end();
    process.analysis()
}

fn change(before: &[Analysis], after: &[Analysis], symbol: &str) -> (Basis, ApiChange) {
    let comparison = compare(before, after, &match_apis(before, after));
    let is_it = |name: &Option<ApiName>| name.as_ref().is_some_and(|name| name.symbol == symbol);
    let row = comparison.apis.into_iter().find(|row| is_it(&row.before) || is_it(&row.after));
    (comparison.basis, row.expect("compared"))
}

fn verdict(before: &[Analysis], after: &[Analysis]) -> Verdict {
    change(before, after, "outer").1.verdict
}

#[test]
fn one_recording_each_tells_only_what_lies_apart() {
    assert_eq!(verdict(&[run(1_000, 0)], &[run(2_000, 0)]), Verdict::Slower);
    assert_eq!(verdict(&[run(2_000, 0)], &[run(1_000, 0)]), Verdict::Faster);
    // Twice as slow on average, but some calls take as long as before.
    assert_eq!(verdict(&[run(1_000, 2_000)], &[run(1_500, 5_000)]), Verdict::NoClearChange);
    // Closer than the histogram can tell.
    assert_eq!(verdict(&[run(1_000, 0)], &[run(1_080, 0)]), Verdict::NoClearChange);
    assert_eq!(verdict(&[run(1_000, 0)], &[run(1_000, 0)]), Verdict::NoClearChange);
    let (basis, row) = change(&[run(1_000, 0)], &[run(2_000, 0)], "outer");
    assert_eq!(basis, Basis::Distributions);
    let time = row.metrics.time_per_call_ns;
    assert_eq!((time.before, time.after, time.p), (Some(1_050.0), Some(2_050.0), None));
    assert_eq!(time.difference, Some(1_000.0));
    assert_eq!(row.metrics.self_per_call_ns.after, Some(2_000.0));
    assert_eq!(row.metrics.calls.relative, Some(0.0));
    let parts = row.parts.1.unwrap();
    assert_eq!((parts.code_ns, parts.nested_ns), (2_000.0, 50.0));
}

#[test]
fn several_recordings_are_ranked() {
    let side = |from: u64| (0..5).map(|i| run(from + i * 10, 3_000)).collect::<Vec<_>>();
    let (basis, row) = change(&side(1_000), &side(1_060), "outer");
    assert_eq!((basis, row.verdict), (Basis::Ranks, Verdict::Slower));
    assert!((row.metrics.time_per_call_ns.p.unwrap() - 2.0 / 252.0).abs() < 1e-9);
    let (_, row) = change(&side(1_000), &side(1_005), "outer");
    assert_eq!(row.verdict, Verdict::NoClearChange);
    assert!(row.metrics.time_per_call_ns.p.unwrap() > 0.5);
    // Three of each can never be told apart.
    let (basis, row) = change(&side(1_000)[..3], &side(9_000)[..3], "outer");
    assert_eq!((basis, row.verdict), (Basis::TooFewRuns, Verdict::TooFew));
}

/// Of many functions one is always apart from side to side by chance.
#[test]
fn identical_runs_have_not_changed_whatever_chance_makes_of_one_of_many_functions() {
    const FUNCTIONS: usize = 40;
    let run = |number: u64| {
        let mut process = Process::new();
        let (app, liba) = (process.app, process.liba);
        let slots: Vec<_> = (0..FUNCTIONS)
            .map(|at| process.builder.slot(app, Some(liba), &format!("function_{at}")))
            .collect();
        let mut state = number << 32;
        let mut thread = process.builder.timeline(process.main);
        for slot in slots {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            thread.calls(slot, 1_000 + (mixed >> 33) % 300, 50);
        }
        thread.end();
        process.analysis()
    };
    let runs: Vec<_> = (1..=80).map(run).collect();
    // Comparisons in which anything is said to have changed, and functions that have by themselves.
    let (mut alarms, mut by_rank) = (0, 0);
    for sides in runs.chunks(8) {
        let (before, after) = sides.split_at(4);
        let comparison = compare(before, after, &match_apis(before, after));
        let is_change = |row: &&ApiChange| matches!(row.verdict, Verdict::Slower | Verdict::Faster);
        alarms += usize::from(comparison.apis.iter().filter(is_change).count() > 0);
        let p = |row: &ApiChange| row.metrics.time_per_call_ns.p;
        by_rank += comparison.apis.iter().filter(|row| p(row).is_some_and(|p| p < 0.05)).count();
    }
    assert!(by_rank >= 5, "{by_rank} of 400");
    assert!(alarms <= 2, "{alarms} of 10 comparisons");
}

#[test]
fn apis_are_matched_by_soname_then_by_symbol() {
    let before = [run_of("malloc", "/usr/lib/libc.so.6", 100, 0)];
    let moved = [run_of("malloc", "/opt/lib/libc.so.6", 100, 0)];
    let (_, row) = change(&before, &moved, "malloc");
    assert_eq!(row.before, row.after);
    let other = [run_of("malloc", "/usr/lib/libjemalloc.so.2", 100, 0)];
    let (_, row) = change(&before, &other, "malloc");
    assert_eq!(row.before.unwrap().library, "libc.so.6");
    assert_eq!(row.after.unwrap().library, "libjemalloc.so.2");
    let renamed = [run_of("je_malloc", "/usr/lib/libjemalloc.so.2", 300, 0)];
    assert_eq!(change(&before, &renamed, "malloc").1.verdict, Verdict::OnlyBefore);
    assert_eq!(change(&before, &renamed, "je_malloc").1.verdict, Verdict::OnlyAfter);
    let name = |library: &str, symbol: &str| {
        Some(ApiName { library: library.into(), symbol: symbol.into() })
    };
    let pair =
        Pair { before: name("libc.so.6", "malloc"), after: name("libjemalloc.so.2", "je_malloc") };
    let comparison = compare(&before, &renamed, &[pair]);
    assert_eq!(comparison.apis[0].verdict, Verdict::Slower);
}

#[test]
fn few_calls_tell_nothing() {
    let few = |each: u64| {
        let mut process = Process::new();
        let (outer, _) = process.slots();
        process.builder.timeline(process.main).calls(outer, each, 19).end();
        [process.analysis()]
    };
    assert_eq!(verdict(&few(100), &few(10_000)), Verdict::TooFew);
}

#[test]
fn system_calls_are_compared_per_call() {
    let seen = |reads: u64, wait_ns: u64| {
        let mut process = Process::new();
        let (outer, inner) = process.slots();
        let mut thread = process.builder.timeline(process.main);
        for _ in 0..100 {
            thread.enter(outer).work(1_000).call(inner, 9_000).leave();
        }
        thread.end();
        let refs = process.builder.context_refs();
        let mut seen = SyscallsBuilder::new(1000);
        seen.syscall(refs[0][2], 1000, 0, reads, 500).errors = 50;
        seen.syscall(refs[0][1], 1000, 3, 100, 300);
        seen.wait(refs[0][1], 1000, 0, 1, wait_ns);
        let file = SyscallsFile::parse(seen.build()).unwrap();
        Analysis::new(&[process.image().with_syscalls(Some(file))], Selection::All)
    };
    let (before, after) = ([seen(400, 10_000)], [seen(100, 50_000)]);
    let comparison = compare(&before, &after, &match_apis(&before, &after));
    let row = comparison
        .apis
        .iter()
        .find(|row| row.before.as_ref().is_some_and(|name| name.symbol == "outer"))
        .unwrap();
    let total = row.metrics.syscalls_per_call;
    assert_eq!((total.before, total.after), (Some(5.0), Some(2.0)));
    assert_eq!(row.metrics.syscall_errors_per_call.before, Some(0.5));
    let mix: Vec<_> = row
        .syscalls
        .iter()
        .map(|row| (&*row.syscall, row.per_call.before.unwrap(), row.per_call.after.unwrap()))
        .collect();
    assert_eq!(mix, [("read", 4.0, 1.0), ("close", 1.0, 1.0)]);
    assert_eq!(row.metrics.wait_share.before, Some(0.1));
    assert_eq!(row.metrics.wait_share.after, Some(0.5));
    let parts = row.parts.0.unwrap();
    assert_eq!((parts.syscalls_ns, parts.wait_ns, parts.code_ns), (300.0, 100.0, 600.0));
    assert_eq!(comparison.totals.syscalls.difference, Some(-300.0));
    // Waits by name and waits from the scheduler are no figures of one kind.
    let mixed = compare(&before, &[run(1_000, 0)], &match_apis(&before, &[run(1_000, 0)]));
    assert_eq!(mixed.wait_sources, (WaitSource::Scheduler, WaitSource::Name));
    assert_eq!(mixed.totals.wait_ns.before, None);
    assert!(serde_json::to_value(&mixed).is_ok());
}
