//! Known answers: what threads did is described, and the figures must say just that.

mod process;

use chase_analyzer::recorder::builder::sample;
use chase_analyzer::recorder::layout::{CLOCK_TSC, END_EXIT, THREAD_CREATED};
use chase_analyzer::recorder::reader::Recording;
use chase_analyzer::{Analysis, CallPlace, Ending, Image, LibraryKind, Ns, Selection, WaitCause};
use process::{Process, analyse, api, assert_conserved, figures, image};

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
    let gone = process.builder.object("/lib/gone.so");
    for (object, bias, load, unload) in [
        (first, 0x5000_0000, 0, 1_000),
        (second, 0x5000_0000, 2_000, 0),
        (gone, 0x6000_0000, 0, 1_000),
    ] {
        let record = process.builder.object_mut(object);
        record.bias = bias;
        record.load_ticks = start + load;
        record.unload_ticks = if unload == 0 { 0 } else { start + unload };
    }
    for (name, start_ticks, avma) in
        [("a", 500, 0x5000_1234), ("b", 3_000, 0x5000_1234), ("c", 3_000, 0x6000_1234)]
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
    assert_eq!((c.object, c.svma, c.avma), (None, None, 0x6000_1234));
}

#[test]
fn what_was_not_seen_is_passed_on() {
    let bytes = sample().build();
    let cut = bytes[..bytes.len() - 3 * 4096].to_vec();
    let image = Image::of("cut.chase".into(), Recording::parse(cut).unwrap());
    let not_seen = Analysis::new(&[image], Selection::All).not_seen;
    assert_eq!((not_seen.calls_too_deep, not_seen.late_loads), (7, 1));
    assert_eq!(not_seen.processes_sliced, 1);
    assert_eq!(not_seen.skipped[0].reason, "used as a function pointer, or taken to be");
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
fn places_of_calls_are_added_up_by_what_their_samples_stand_for() {
    let mut process = Process::new();
    let (outer, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.enter(outer).call(inner, 300).leave();
    thread.call(inner, 50).end();
    process.builder.end(END_EXIT, 0);
    assert!(process.analysis().apis.iter().all(|row| row.places.is_empty()), "older recordings");

    let (app, liba) = (
        process.builder.code_address(process.app, 0),
        process.builder.code_address(process.liba, 0),
    );
    // Two rows of one place, as of two tables; and calls by jumps.
    process.builder.caller(process.main, 1, app + 0x10, (3, 30));
    process.builder.caller(process.main, 1, app + 0x20, (1, 60));
    process.builder.caller(process.main, 1, app + 0x10, (2, 20));
    process.builder.caller(process.main, 1, 0, (1, 10));
    process.builder.caller(process.main, 2, liba + 8, (4, 4));
    let analysis = process.analysis();
    let places = |symbol: &str| {
        let row = analysis.apis.iter().find(|row| row.symbol == symbol).expect("called");
        let svma = |place: &CallPlace| place.address.and_then(|address| address.svma);
        row.places.iter().map(|p| (svma(p), p.samples, p.share)).collect::<Vec<_>>()
    };
    let shares = [(Some(0x1020), 1, 0.5), (Some(0x1010), 5, 50.0 / 120.0), (None, 1, 10.0 / 120.0)];
    assert_eq!(places("outer"), shares);
    assert_eq!(places("inner"), [(Some(0x1008), 4, 1.0)]);
    // By context, too: the other one of `inner` has no samples.
    let by_context: Vec<_> = analysis.contexts.iter().map(|row| row.places.len()).collect();
    assert_eq!(by_context, [3, 1, 0]);
}
