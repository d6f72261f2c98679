//! Known answers: what threads did is described, and the figures must say just that.

use chase_analyzer::recorder::builder::{Builder, ObjectId, SlotId, ThreadId, sample};
use chase_analyzer::recorder::layout::{CLOCK_TSC, END_EXEC, END_EXIT, SlotClass, THREAD_CREATED};
use chase_analyzer::recorder::reader::Recording;
use chase_analyzer::{
    Analysis, ApiRow, Ending, Image, LibraryKind, Measures, Ns, Selection, WaitCause,
};

/// A process with an application, two libraries and a main thread.
struct Process {
    builder: Builder,
    app: ObjectId,
    liba: ObjectId,
    libb: ObjectId,
    main: ThreadId,
}

impl Process {
    fn new() -> Self {
        let mut builder = Builder::new();
        let app = builder.executable("/bin/app");
        let liba = builder.object("/lib/liba.so");
        let libb = builder.object("/lib/libb.so");
        let main = builder.thread("app");
        Self { builder, app, liba, libb, main }
    }

    fn slots(&mut self) -> (SlotId, SlotId) {
        let outer = self.builder.slot(self.app, Some(self.liba), "outer");
        let inner = self.builder.slot(self.liba, Some(self.libb), "inner");
        (outer, inner)
    }

    fn image(&self) -> Image {
        image(&self.builder)
    }

    fn analysis(&self) -> Analysis {
        analyse(&self.builder)
    }
}

fn image(builder: &Builder) -> Image {
    Image::of("app-1.chase".into(), Recording::parse(builder.build()).unwrap())
}

fn analyse(builder: &Builder) -> Analysis {
    let analysis = Analysis::new(&[image(builder)], Selection::All);
    assert_conserved(&analysis);
    analysis
}

/// The law that holds for all threads, whatever they did.
fn assert_conserved(analysis: &Analysis) {
    for thread in &analysis.threads {
        let parts = thread.application_ns.0 + thread.measures.self_ns.0 + thread.own_cost_ns.0;
        let lifetime = thread.lifetime_ns.0 + thread.overlap_ns.0;
        assert!(parts.abs_diff(lifetime) <= 3, "{parts} of {lifetime} in {thread:?}");
        let apis: u64 = thread.apis.iter().map(|api| api.self_ns.0).sum();
        assert!(apis.abs_diff(thread.measures.self_ns.0) <= thread.apis.len() as u64);
    }
    let self_of = |measures: &Measures| measures.self_ns.0 as f64;
    let libraries: f64 = analysis.libraries.iter().map(|row| self_of(&row.measures)).sum();
    let totals = &analysis.totals;
    let expected = totals.application_ns.as_f64() + totals.library_ns.as_f64();
    assert!((libraries - expected).abs() <= 2.0 + analysis.libraries.len() as f64);
    for table in [
        analysis.apis.iter().map(|row| self_of(&row.measures)).sum::<f64>(),
        analysis.callers.iter().map(|row| self_of(&row.measures)).sum(),
        analysis.contexts.iter().map(|row| self_of(&row.measures)).sum(),
    ] {
        let rows = analysis.contexts.len() + analysis.apis.len() + analysis.callers.len();
        assert!((table - totals.library_ns.as_f64()).abs() <= 1.0 + rows as f64);
    }
    let shares: f64 = analysis.libraries.iter().map(|row| row.measures.share).sum();
    assert!((shares - 1.0).abs() < 1e-9 || expected == 0.0, "{shares}");
}

fn api<'a>(analysis: &'a Analysis, symbol: &str) -> &'a ApiRow {
    let mut rows = analysis.apis.iter().filter(|row| row.symbol == symbol);
    let row = rows.next().unwrap_or_else(|| panic!("no row for {symbol}"));
    assert!(rows.next().is_none(), "{symbol} is there twice");
    row
}

/// Calls, total and self time of an API.
fn figures(analysis: &Analysis, symbol: &str) -> (u64, u64, u64) {
    let Measures { calls, total_ns, self_ns, .. } = api(analysis, symbol).measures;
    (calls, total_ns.0, self_ns.0)
}

#[test]
fn self_times_leave_out_nested_calls() {
    let mut process = Process::new();
    let (outer, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.work(1_000);
    thread.enter(outer).work(200).call(inner, 300).work(100).leave();
    thread.call(inner, 50).work(350).end();
    process.builder.end(END_EXIT, 3);

    let analysis = process.analysis();
    assert_eq!(figures(&analysis, "outer"), (1, 600, 300));
    assert_eq!(figures(&analysis, "inner"), (2, 350, 350));
    assert_eq!(analysis.wall_ns, Ns(2_000));
    assert_eq!(analysis.totals.application_ns, Ns(1_350));
    assert_eq!(analysis.processes[0].ending, Ending::Exit { status: 3 });
    assert!(!analysis.processes[0].end_is_estimate);

    let rows: Vec<_> = analysis
        .libraries
        .iter()
        .map(|row| (row.kind, row.name.as_str(), row.measures.self_ns.0, row.measures.calls))
        .collect();
    let expected = [
        (LibraryKind::Application, "app", 1_350, 0),
        (LibraryKind::Library, "libb.so", 350, 2),
        (LibraryKind::Library, "liba.so", 300, 1),
    ];
    assert_eq!(rows, expected);
    assert_eq!(analysis.libraries[0].measures.share, 0.675);

    let tree: Vec<_> = analysis
        .contexts
        .iter()
        .map(|row| {
            let symbol = analysis.apis[row.api as usize].symbol.as_str();
            (row.depth, row.parent, symbol, row.measures.total_ns.0)
        })
        .collect();
    assert_eq!(tree, [(0, None, "outer", 600), (1, Some(0), "inner", 300), (0, None, "inner", 50)]);
    let callers: Vec<_> = analysis
        .callers
        .iter()
        .map(|row| (row.caller_name.as_str(), row.symbol.as_str(), row.measures.calls))
        .collect();
    // `inner` is an import of liba alone here, wherever it is called from.
    assert_eq!(callers, [("liba.so", "inner", 2), ("app", "outer", 1)]);
}

#[test]
fn the_hooks_own_cost_is_in_no_figure() {
    let play = |inside: u64, outside: u64| {
        let mut process = Process::new();
        let (outer, inner) = process.slots();
        process.builder.header.cost_inside = inside;
        process.builder.header.cost_outside = outside;
        let mut thread = process.builder.timeline(process.main);
        thread.work(1_000);
        for _ in 0..10 {
            thread.enter(outer).work(200).calls(inner, 300, 7).work(100).leave();
        }
        thread.work(500).end();
        process.builder.end(END_EXIT, 0);
        process.analysis()
    };
    let (free, costly) = (play(0, 0), play(20 * 1024 + 512, 31 * 1024));
    for symbol in ["outer", "inner"] {
        assert_eq!(figures(&free, symbol), figures(&costly, symbol));
        let (free, costly) = (&api(&free, symbol).measures, &api(&costly, symbol).measures);
        assert_eq!(free.mean_ns, costly.mean_ns);
        let (free, costly) = (free.p50_ns.unwrap().as_f64(), costly.p50_ns.unwrap().as_f64());
        assert!((free / costly - 1.0).abs() < 0.13, "{free} and {costly}");
    }
    assert_eq!(api(&costly, "inner").measures.max_ns, Some(Ns(300)), "exact but for rounding");
    assert_eq!(free.totals.application_ns, costly.totals.application_ns);
    assert_eq!(costly.totals.own_cost_ns, Ns((80.0 * 51.5) as u64));
    assert_eq!(costly.totals.overlap_ns, Ns(0));
}

#[test]
fn a_cost_calibrated_too_high_makes_nothing_negative() {
    let mut process = Process::new();
    let (outer, _) = process.slots();
    process.builder.timeline(process.main).calls(outer, 10, 100).work(1_000).end();
    // The hook cost nothing, and says that it cost 15 a call.
    process.builder.header.cost_inside = 15 * 1024;
    let analysis = process.analysis();
    assert_eq!(figures(&analysis, "outer"), (100, 0, 0));
    assert_eq!(analysis.totals.application_ns, Ns(1_000));
    assert_eq!(analysis.totals.own_cost_ns, Ns(1_000), "all of the time there was, and no more");
    assert_eq!(analysis.totals.overlap_ns, Ns(0));
}

#[test]
fn parts_that_exceed_the_lifetime_are_shown_as_overlap() {
    let mut process = Process::new();
    let (outer, _) = process.slots();
    process.builder.timeline(process.main).call(outer, 1_000).end();
    let end = &mut process.builder.thread_mut(process.main).end_ticks;
    *end -= 400;
    let analysis = process.analysis();
    assert_eq!(analysis.totals.overlap_ns, Ns(400));
    assert_eq!(analysis.totals.application_ns, Ns(0));
    assert!(analysis.threads[0].conservation_error() > 0.6);
}

#[test]
fn recursion_is_counted_once_in_totals() {
    let mut process = Process::new();
    let eval = process.builder.slot(process.liba, Some(process.libb), "eval");
    let sort = process.builder.slot(process.libb, Some(process.liba), "sort");
    let mut thread = process.builder.timeline(process.main);
    for _ in 0..5 {
        thread.enter(eval).work(10).enter(sort).work(1);
    }
    for _ in 0..5 {
        thread.leave().leave();
    }
    thread.end();
    let analysis = process.analysis();
    assert_eq!(figures(&analysis, "eval"), (5, 55, 50));
    assert_eq!(figures(&analysis, "sort"), (5, 45, 5));
    assert_eq!(analysis.contexts.len(), 10);
    let eval = analysis.apis.iter().position(|row| row.symbol == "eval").unwrap() as u32;
    let of_thread = analysis.threads[0].apis.iter().find(|api| api.api == eval).unwrap();
    assert_eq!((of_thread.total_ns, of_thread.self_ns, of_thread.calls), (Ns(55), Ns(50), 5));
}

#[test]
fn libraries_count_their_outermost_calls() {
    let mut process = Process::new();
    let open = process.builder.slot(process.app, Some(process.liba), "open");
    let helper = process.builder.slot(process.libb, Some(process.liba), "helper");
    process.builder.timeline(process.main).enter(open).work(70).call(helper, 30).leave().end();
    let analysis = process.analysis();
    let liba = analysis.libraries.iter().find(|row| row.name == "liba.so").unwrap();
    assert_eq!((liba.measures.total_ns, liba.measures.self_ns), (Ns(100), Ns(100)));
}

#[test]
fn folded_recursion_keeps_self_times_exact() {
    let play = |depth_limit| {
        let mut process = Process::new();
        process.builder.depth_limit = depth_limit;
        process.builder.header.cost_inside = 4 * 1024;
        process.builder.header.cost_outside = 3 * 1024;
        let (outer, inner) = process.slots();
        let leaf = process.builder.slot(process.libb, Some(process.liba), "leaf");
        let mut thread = process.builder.timeline(process.main);
        thread.work(40);
        for level in 0..20 {
            thread.enter(outer).work(10 + level).enter(inner).work(5).calls(leaf, 3, 4);
        }
        for _ in 0..20 {
            thread.leave().work(2).leave();
        }
        thread.work(40).end();
        process.analysis()
    };
    let (whole, folded) = (play(usize::MAX), play(6));
    assert!(folded.contexts.len() < whole.contexts.len() / 2);
    for symbol in ["outer", "inner", "leaf"] {
        let (whole, folded) = (figures(&whole, symbol), figures(&folded, symbol));
        assert_eq!(folded, whole, "{symbol}: calls, total, self");
    }
    assert_eq!(folded.totals.application_ns, whole.totals.application_ns);
    assert_eq!(folded.totals.overlap_ns, Ns(0));
}

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
    assert_eq!(analysis.processes[0].ending, Ending::Killed);
    assert!(analysis.processes[0].end_is_estimate && analysis.threads[0].end_is_estimate);
    assert!(!analysis.threads[1].end_is_estimate, "the worker's end was seen");
    assert_eq!(figures(&analysis, "outer"), (2, 4_600, 600));
    assert_eq!(figures(&analysis, "inner"), (2, 4_300, 4_300));
    assert_eq!(api(&analysis, "outer").measures.open, 1);
    assert_eq!(api(&analysis, "inner").measures.open, 1);
    assert_eq!(api(&analysis, "inner").measures.mean_ns, Some(Ns(300)), "of calls that ended");
    assert_eq!(analysis.threads[0].application_ns, Ns(100));
}

#[test]
fn open_folded_calls_are_counted_once() {
    let mut process = Process::new();
    process.builder.depth_limit = 2;
    let (outer, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.work(10);
    for _ in 0..4 {
        thread.enter(outer).work(100).enter(inner).work(100);
    }
    let analysis = process.analysis();
    let [outer, inner] = ["outer", "inner"].map(|symbol| figures(&analysis, symbol));
    assert_eq!((outer.0, inner.0), (4, 4));
    assert_eq!(outer.2 + inner.2, 800, "all time since the first call, once");
    assert_eq!(analysis.totals.overlap_ns, Ns(0));
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
fn quantiles_are_those_of_single_calls() {
    let mut process = Process::new();
    let (outer, _) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.calls(outer, 1_000, 950).calls(outer, 50_000, 45).calls(outer, 7_000_000, 5).end();
    let measures = process.analysis().apis.remove(0).measures;
    let near =
        |found: Option<Ns>, exact: f64| (found.unwrap().as_f64() / exact - 1.0).abs() < 0.0626;
    assert!(near(measures.p50_ns, 1e3), "{measures:?}");
    assert!(near(measures.p90_ns, 1e3), "{measures:?}");
    assert!(near(measures.p99_ns, 50e3), "{measures:?}");
    assert!(near(measures.p999_ns, 7e6), "{measures:?}");
    assert_eq!(measures.max_ns, Some(Ns(7_000_000)));
    assert_eq!(measures.mean_ns, Some(Ns(38_200)));
}

#[test]
fn ticks_become_nanoseconds() {
    let mut process = Process::new();
    let (outer, inner) = process.slots();
    process.builder.header.clock_kind = CLOCK_TSC;
    process.builder.ticks_per_ns = 2.5;
    let mut thread = process.builder.timeline(process.main);
    thread.work(10_000_000).enter(outer).work(2_500_000).call(inner, 5_000_000).leave().end();
    let analysis = process.analysis();
    assert!(analysis.processes[0].clock_is_calibrated);
    assert_eq!(figures(&analysis, "outer"), (1, 3_000_000, 1_000_000));
    assert_eq!(analysis.totals.application_ns, Ns(4_000_000));
    assert_eq!(analysis.totals.lifetime_ns, Ns(7_000_000));
    assert_eq!(api(&analysis, "inner").measures.max_ns, Some(Ns(2_000_000)));
}

#[test]
fn waits_are_those_of_functions_known_to_wait() {
    let mut process = Process::new();
    let join = process.builder.slot(process.app, Some(process.liba), "pthread_join");
    let (outer, _) = process.slots();
    process.builder.timeline(process.main).call(join, 700).call(outer, 100).end();
    let analysis = process.analysis();
    assert_eq!(api(&analysis, "pthread_join").waits_for, Some(WaitCause::Join));
    assert_eq!(analysis.totals.wait_ns, Ns(700));
    let liba = analysis.libraries.iter().find(|row| row.name == "liba.so").unwrap();
    assert_eq!((liba.measures.wait_ns, liba.measures.self_ns), (Ns(700), Ns(800)));
    assert_eq!(analysis.threads[0].measures.wait_ns, Ns(700));
}

#[test]
fn threads_and_processes_can_be_selected() {
    let mut process = Process::new();
    let (outer, inner) = process.slots();
    process.builder.timeline(process.main).call(outer, 100).work(900).end();
    let worker = process.builder.thread("worker");
    process.builder.thread_mut(worker).start_ticks += 200;
    process.builder.timeline(worker).call(inner, 50).call(outer, 30).end();
    let mut child = process.builder.clone();
    child.header.pid = 2_000;
    let images = [process.image(), image(&child)];

    let all = Analysis::new(&images, Selection::All);
    assert_conserved(&all);
    assert_eq!(figures(&all, "outer"), (4, 260, 260));
    assert_eq!((all.threads.len(), all.totals.threads, all.processes.len()), (4, 4, 2));
    assert_eq!(all.contexts.len(), 2, "trees of threads and processes are merged");

    let second = Analysis::new(&images, Selection::Process(1));
    assert_conserved(&second);
    assert_eq!(figures(&second, "outer"), (2, 130, 130));
    assert_eq!(second.processes[0].totals.calls, 0);
    assert_eq!(second.processes[1].totals.calls, 3);

    let worker = Analysis::new(&images, Selection::Thread(1, 1));
    assert_conserved(&worker);
    assert_eq!(figures(&worker, "outer"), (1, 30, 30));
    assert_eq!(worker.threads[0].start_ns, Ns(200));
    assert_eq!(worker.wall_ns, Ns(80));
    assert!(Analysis::new(&images, Selection::Thread(7, 1)).threads.is_empty());
}

#[test]
fn code_addresses_follow_what_was_loaded_when() {
    let mut process = Process::new();
    let first = process.builder.object("/lib/first.so");
    let second = process.builder.object("/lib/second.so");
    let start = process.builder.header.clock_start.ticks;
    for (object, load, unload) in [(first, 0, 1_000), (second, 2_000, 0)] {
        let record = process.builder.object_mut(object);
        record.bias = 0x5000_0000;
        record.load_ticks = start + load;
        record.unload_ticks = if unload == 0 { 0 } else { start + unload };
    }
    for (name, start_ticks, avma) in
        [("a", 500, 0x5000_1234), ("b", 3_000, 0x5000_1234), ("c", 3_000, 0x99)]
    {
        let thread = process.builder.thread(name);
        let record = process.builder.thread_mut(thread);
        record.origin = THREAD_CREATED;
        record.start_ticks = start + start_ticks;
        record.start_routine_avma = avma;
        process.builder.timeline(thread).work(10).end();
    }
    let analysis = process.analysis();
    assert_eq!(analysis.threads[0].start_routine, None);
    let [a, b, c] = [1, 2, 3].map(|at| analysis.threads[at].start_routine.unwrap());
    let path = |object: Option<u32>| analysis.objects[object.unwrap() as usize].path.as_str();
    assert_eq!((path(a.object), a.svma), ("/lib/first.so", Some(0x1234)));
    assert_eq!((path(b.object), b.svma), ("/lib/second.so", Some(0x1234)));
    assert_eq!((c.object, c.svma, c.avma), (None, None, 0x99));
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
    assert_eq!(image.ending, Ending::Killed);
    assert!(image.end_is_estimate);
    assert_conserved(&process.analysis());
}

#[test]
fn an_end_before_the_start_is_no_time() {
    let mut process = Process::new();
    process.builder.end(END_EXIT, 0);
    process.builder.header.end_ticks -= 1;
    let analysis = process.analysis();
    assert_eq!((analysis.wall_ns, analysis.processes[0].wall_ns), (Ns(0), Ns(0)));
}

#[test]
fn what_was_not_seen_is_passed_on() {
    let bytes = sample().build();
    let cut = bytes[..bytes.len() - 3 * 4096].to_vec();
    let image = Image::of("cut.chase".into(), Recording::parse(cut).unwrap());
    let not_seen = Analysis::new(&[image], Selection::All).not_seen;
    assert_eq!((not_seen.calls_too_deep, not_seen.late_loads), (7, 1));
    assert_eq!(not_seen.skipped[0].reason, "used as a function pointer");
    assert_eq!(not_seen.skipped[0].imports, 3);
    assert_eq!(not_seen.unreadable.len(), 1);
    assert!(not_seen.unreadable[0].problem.contains("cut off at byte"));
}

#[test]
fn a_recording_of_everything_is_conserved_and_serializes() {
    let analysis = analyse(&sample());
    let json = serde_json::to_value(&analysis).unwrap();
    assert_eq!(json["processes"][0]["ending"]["kind"], "exit");
    let application =
        analysis.libraries.iter().position(|row| row.kind == LibraryKind::Application).unwrap();
    assert_eq!(json["libraries"][application]["kind"], "application");
    let wait = analysis.apis.iter().position(|row| row.waits_for.is_some()).unwrap();
    assert_eq!(json["apis"][wait]["waits_for"], "condition");
    assert_eq!(json["apis"][wait]["self_ns"], analysis.apis[wait].measures.self_ns.0);
}

#[test]
fn depth_costs_neither_stack_nor_time() {
    let mut process = Process::new();
    process.builder.depth_limit = usize::MAX;
    let (outer, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    for _ in 0..100_000 {
        thread.enter(outer).work(1).enter(inner).work(1);
    }
    for _ in 0..100_000 {
        thread.leave().leave();
    }
    thread.end();
    let analysis = process.analysis();
    assert_eq!(figures(&analysis, "outer"), (100_000, 200_000, 100_000));
    assert_eq!(analysis.contexts.last().unwrap().depth, 199_999);
}

#[test]
fn mutual_recursion_folded_at_once_counts_nothing_twice() {
    let mut process = Process::new();
    process.builder.depth_limit = 0;
    let (outer, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.enter(outer).work(10).enter(inner).work(10);
    thread.enter(outer).work(20).call(inner, 50).leave();
    thread.leave().work(10).leave().end();
    let analysis = process.analysis();
    assert_eq!(figures(&analysis, "outer"), (2, 100, 40));
    // Its self time alone would be 60.
    assert_eq!(figures(&analysis, "inner"), (2, 80, 60));
    assert_eq!(analysis.contexts.len(), 2);
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
