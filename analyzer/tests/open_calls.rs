//! Calls without an ordinary end, and processes without one.

mod process;

use chase_analyzer::recorder::layout::{END_EXEC, END_EXIT, OffCpuRow, SlotClass};
use chase_analyzer::recorder::reader::Recording;
use chase_analyzer::{Analysis, Ending, Image, Ns, Selection};
use process::{Process, api, assert_conserved, figures};

#[test]
fn open_calls_last_until_the_process_was_killed() {
    let mut process = Process::new();
    let (outer, inner) = process.slots();
    let worker = process.builder.thread("worker");
    process.builder.timeline(worker).work(5_000).end();
    let mut thread = process.builder.timeline(process.main);
    // Two calls that ended, and a chain of two that did not.
    thread.work(100).call(outer, 200).call(inner, 300);
    thread.enter(outer).work(400).enter(inner).work(4_000);

    let analysis = process.analysis();
    assert_eq!(analysis.processes[0].ending, Ending::Killed { signal: None });
    assert!(analysis.processes[0].end_is_estimate && analysis.threads[0].end_is_estimate);
    assert!(!analysis.threads[1].end_is_estimate, "the worker's end was seen");
    assert_eq!(figures(&analysis, "outer"), (2, 4_600, 600));
    assert_eq!(figures(&analysis, "inner"), (2, 4_300, 4_300));
    assert_eq!(api(&analysis, "outer").measures.open, 1);
    assert_eq!(api(&analysis, "inner").measures.open, 1);
    let inner = &api(&analysis, "inner").measures;
    assert_eq!(inner.mean_ns, Some(Ns(300)), "of calls that ended");
    // The open one took longer than the other, so that half of them took no longer than that.
    assert_eq!((inner.p50_ns, inner.p90_ns, inner.max_ns), (Some(Ns(300)), None, Some(Ns(4_000))));
    assert_eq!(analysis.threads[0].application_ns, Ns(100));
}

#[test]
fn a_call_that_others_followed_is_not_open() {
    // A stack that was left for good looks like a call that never returned: here, a call whose
    // end is taken out of its histogram.
    let mut process = Process::new();
    let (outer, inner) = process.slots();
    process.builder.timeline(process.main).call(outer, 10).work(50).call(inner, 20).work(900).end();
    let mut bytes = process.builder.build();
    let page_of = |bytes: &[u8]| {
        let recording = Recording::parse(bytes).unwrap();
        let context = recording.threads().next().unwrap().contexts().next().unwrap();
        context.node().page_refs.iter().find(|&&page| page != 0).map(|&page| page as usize * 128)
    };
    let page = page_of(&bytes).unwrap();
    bytes[page..page + 128].fill(0);
    let image = Image::of("app".into(), Recording::parse(bytes).unwrap());
    let analysis = Analysis::new(&[image], Selection::All);
    assert_eq!(figures(&analysis, "outer"), (1, 10, 10), "not up to the end of the thread");
    assert_eq!(api(&analysis, "outer").measures.open, 1);
}

#[test]
fn unwound_calls_have_time_and_no_quantiles() {
    let mut process = Process::new();
    let (outer, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.enter(outer).work(100).enter(inner).work(50).unwind().unwind().end();
    let analysis = process.analysis();
    let measures = &api(&analysis, "inner").measures;
    assert_eq!((measures.calls, measures.unwound, measures.open, measures.untimed), (1, 1, 0, 0));
    assert_eq!((measures.self_ns, measures.p50_ns, measures.max_ns), (Ns(50), None, Some(Ns(50))));
    assert_eq!(figures(&analysis, "outer"), (1, 150, 100));
}

#[test]
fn counted_calls_are_neither_timed_nor_open() {
    let mut process = Process::new();
    let slot = |process: &mut Process, name, class| {
        process.builder.slot_of(process.app, Some(process.liba), name, "V1", class)
    };
    let setjmp = slot(&mut process, "setjmp", SlotClass::Counted);
    let dlsym = slot(&mut process, "dlsym", SlotClass::Sometimes);
    let mut thread = process.builder.timeline(process.main);
    thread.count(setjmp).count(setjmp).call(dlsym, 40).count(dlsym).work(500).end();
    let analysis = process.analysis();
    let of = |symbol| {
        let measures = &api(&analysis, symbol).measures;
        (measures.calls, measures.untimed, measures.open, measures.self_ns.0)
    };
    assert_eq!(of("setjmp"), (2, 2, 0, 0));
    assert_eq!(of("dlsym"), (2, 1, 0, 40));
    assert_eq!(api(&analysis, "dlsym").version, "V1");
    assert_eq!(analysis.totals.application_ns, Ns(500));
}

#[test]
fn sometimes_timed_calls_are_open_if_something_inside_is() {
    let mut process = Process::new();
    let dlopen = process.builder.slot_of(
        process.app,
        Some(process.liba),
        "dlopen",
        "",
        SlotClass::Sometimes,
    );
    let init = process.builder.slot(process.libb, Some(process.liba), "init");
    process.builder.timeline(process.main).work(5).enter(dlopen).work(10).enter(init).work(85);
    let now = process.builder.now_ticks();
    process.builder.header.clock_latest.ticks = now;
    let analysis = process.analysis();
    assert_eq!(figures(&analysis, "dlopen"), (1, 95, 10));
    assert_eq!(figures(&analysis, "init"), (1, 85, 85));
}

#[test]
fn calls_inherited_by_fork_have_time_and_no_calls() {
    let play = |ends: bool| {
        let mut process = Process::new();
        process.builder.depth_limit = 0;
        let (outer, inner) = process.slots();
        let mut thread = process.builder.timeline(process.main);
        thread.inherit(outer).work(100).call(inner, 30);
        if ends {
            thread.leave().work(50).call(outer, 7);
        }
        thread.work(500).end();
        process.builder.end(END_EXIT, 0);
        process.analysis()
    };
    let ended = play(true);
    assert_eq!(figures(&ended, "outer"), (1, 137, 107));
    assert_eq!(api(&ended, "outer").measures.max_ns, Some(Ns(7)), "the other call was longer");
    assert_eq!(ended.totals.application_ns, Ns(550));
    let open = play(false);
    assert_eq!(figures(&open, "outer"), (0, 630, 600));
    assert_eq!(api(&open, "outer").measures.open, 0, "it is open in the parent");
    assert_eq!(open.totals.application_ns, Ns(0));
}

#[test]
fn an_exec_that_failed_is_no_end() {
    let mut process = Process::new();
    let (outer, _) = process.slots();
    process.builder.timeline(process.main).work(1_000);
    process.builder.end(END_EXEC, 0);
    assert_eq!(process.image().ending, Ending::Exec);
    process.builder.timeline(process.main).work(50_000_000).call(outer, 500);
    let image = process.image();
    assert_eq!(image.ending, Ending::Killed { signal: None });
    assert!(image.end_is_estimate);
    assert_conserved(&process.analysis());
}

/// A call that was the latest to begin, and has ended: nothing but what the thread waited in it says when.
#[test]
fn a_wait_is_no_longer_than_the_life_of_a_thread_that_was_killed() {
    let mut process = Process::new();
    let (outer, _) = process.slots();
    process.builder.timeline(process.main).work(1_000).call(outer, 5_000_000);
    let row = OffCpuRow { blocked_ns: 4_000_000, times: 1, ..OffCpuRow::default() };
    process.builder.off_cpu(process.main, 1, row);
    process.builder.header.clock_latest.ticks = process.builder.header.clock_start.ticks + 1_000;
    process.builder.header.clock_latest.monotonic_ns =
        process.builder.header.clock_start.monotonic_ns + 1_000;
    let analysis = process.analysis();
    let thread = &analysis.threads[0];
    assert_eq!(analysis.processes[0].ending, Ending::Killed { signal: None });
    let wait = thread.apis.iter().next().expect("a row").wait_ns;
    assert_eq!(wait, Ns(4_000_000));
    assert!(thread.end_ns.0 - thread.start_ns.0 >= wait.0, "{thread:?}");
}

/// The latest call began long before the process was killed, and had ended.
#[test]
fn a_killed_process_lived_as_long_as_its_calls_took() {
    // The clock was last read at the start.
    let lifetime = |mut process: Process| {
        process.builder.header.clock_latest = process.builder.header.clock_start;
        process.analysis().threads[0].lifetime_ns.0
    };
    let mut process = Process::new();
    let (outer, _) = process.slots();
    process.builder.timeline(process.main).work(1_000).call(outer, 5_000_000);
    assert_eq!(lifetime(process), 5_001_000);

    // Of several calls in a row, the latest one may have been any; but waits follow each other.
    let mut process = Process::new();
    let (outer, _) = process.slots();
    let join = process.builder.slot(process.app, Some(process.liba), "pthread_join");
    let mut thread = process.builder.timeline(process.main);
    thread.work(1_000).call(join, 2_000_000).call(join, 3_000_000).call(outer, 100).call(outer, 9);
    assert_eq!(lifetime(process), 5_001_100, "up to the beginning of the latest");
    let mut process = Process::new();
    let join = process.builder.slot(process.app, Some(process.liba), "pthread_join");
    process.builder.timeline(process.main).call(join, 2_000_000).call(join, 3_000_000);
    assert_eq!(lifetime(process), 5_000_000);
}

#[test]
fn an_end_before_the_start_is_no_time() {
    let mut process = Process::new();
    process.builder.end(END_EXIT, 0);
    process.builder.header.end_ticks -= 1;
    let analysis = process.analysis();
    assert_eq!((analysis.wall_ns, analysis.processes[0].wall_ns), (Ns(0), Ns(0)));
}
