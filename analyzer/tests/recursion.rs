//! Calls inside calls of the same function, recorded in full or folded.

mod process;

use chase_analyzer::Ns;
use process::{Process, figures};

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
