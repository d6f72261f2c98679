//! A process to be described by each test, and how its figures are read and checked.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use chase_analyzer::recorder::builder::{Builder, ObjectId, SlotId, ThreadId};
use chase_analyzer::recorder::reader::Recording;
use chase_analyzer::{Analysis, ApiRow, Groups, Image, Measures, Selection, Unnamed};

/// A process with an application, two libraries and a main thread.
pub struct Process {
    pub builder: Builder,
    pub app: ObjectId,
    pub liba: ObjectId,
    pub libb: ObjectId,
    pub main: ThreadId,
}

impl Process {
    pub fn new() -> Self {
        let mut builder = Builder::new();
        let app = builder.executable("/bin/app");
        let liba = builder.object("/lib/liba.so");
        let libb = builder.object("/lib/libb.so");
        let main = builder.thread("app");
        Self { builder, app, liba, libb, main }
    }

    pub fn slots(&mut self) -> (SlotId, SlotId) {
        let outer = self.builder.slot(self.app, Some(self.liba), "outer");
        let inner = self.builder.slot(self.liba, Some(self.libb), "inner");
        (outer, inner)
    }

    pub fn image(&self) -> Image {
        image(&self.builder)
    }

    pub fn analysis(&self) -> Analysis {
        analyse(&self.builder)
    }
}

pub fn image(builder: &Builder) -> Image {
    Image::of("app-1.chase".into(), Recording::parse(builder.build()).unwrap())
}

pub fn analyse(builder: &Builder) -> Analysis {
    let analysis = Analysis::new(&[image(builder)], Selection::All);
    assert_conserved(&analysis);
    analysis
}

/// The law that holds for all threads, whatever they did.
pub fn assert_conserved(analysis: &Analysis) {
    let of_libraries = analysis.libraries.iter().map(|row| &row.measures);
    let of_apis = analysis.apis.iter().map(|row| &row.measures);
    for measures in of_libraries.chain(of_apis) {
        let Measures { p50_ns, p90_ns, p99_ns, p999_ns, max_ns, .. } = measures;
        let quantiles: Vec<_> =
            [p50_ns, p90_ns, p99_ns, p999_ns, max_ns].into_iter().flatten().collect();
        assert!(quantiles.is_sorted(), "{measures:?}");
        let off_cpu = measures.wait_ns.0 + measures.preempted_ns.unwrap_or_default().0;
        assert!(off_cpu <= measures.self_ns.0 + 1, "{measures:?}");
    }
    let groups = Groups::new(analysis, &Unnamed);
    for row in chase_analyzer::waits(analysis, &groups) {
        assert!(row.max.ns <= row.wait_ns, "{row:?}");
    }
    for thread in &analysis.threads {
        let own_code = thread.application_ns.0 + thread.unattributed_ns.0;
        let parts = own_code + thread.measures.self_ns.0 + thread.own_cost_ns.0;
        let lifetime = thread.lifetime_ns.0 + thread.overlap_ns.0;
        assert!(parts.abs_diff(lifetime) <= 3, "{parts} of {lifetime} in {thread:?}");
        let apis: u64 = thread.apis.iter().map(|api| api.self_ns.0).sum();
        assert!(apis.abs_diff(thread.measures.self_ns.0) <= thread.apis.len() as u64);
    }
    let self_of = |measures: &Measures| measures.self_ns.0 as f64;
    let libraries: f64 = analysis.libraries.iter().map(|row| self_of(&row.measures)).sum();
    let totals = &analysis.totals;
    let expected = totals.whole_ns().as_f64();
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

pub fn api<'a>(analysis: &'a Analysis, symbol: &str) -> &'a ApiRow {
    let mut rows = analysis.apis.iter().filter(|row| row.symbol == symbol);
    let row = rows.next().unwrap_or_else(|| panic!("no row for {symbol}"));
    assert!(rows.next().is_none(), "{symbol} is there twice");
    row
}

/// Calls, total and self time of an API.
pub fn figures(analysis: &Analysis, symbol: &str) -> (u64, u64, u64) {
    let Measures { calls, total_ns, self_ns, .. } = api(analysis, symbol).measures;
    (calls, total_ns.0, self_ns.0)
}
