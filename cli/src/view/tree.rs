//! The calling contexts: which library call was made inside which.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use chase_analyzer::{Analysis, ContextRow, Selection, ThreadRow};
use serde_json::Value;

use super::apis::is_wanted;
use super::{PERCENT, QUANTILES, SELF, Show, TOTAL, calls, left_out, legend, of_call, threads};
use crate::args::{ApiFilter, LibFilter, ThreadFilter};
use crate::machine::{self, MEASURES, Rows};
use crate::names::Names;
use crate::report::{Report, fraction};
use crate::terminal::{Align, Cell, Look, Table, Terminal, clean, elapsed, percent};

pub(super) struct Tree<'a> {
    pub(super) lib: &'a LibFilter,
    pub(super) api: &'a ApiFilter,
    pub(super) thread: &'a ThreadFilter,
}

/// The tree of one thread, or of all that were analysed.
struct Part<'r> {
    thread: Option<&'r ThreadRow>,
    analysis: &'r Analysis,
    names: &'r Names,
}

impl Tree<'_> {
    /// Calls `show` with the tree of all threads, or with that of each thread asked for.
    fn parts(
        &self,
        report: &Report,
        mut show: impl FnMut(&Part<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if self.thread.threads.is_empty() {
            let (analysis, names) = (&report.analysis, &report.names);
            return show(&Part { thread: None, analysis, names });
        }
        for thread in threads::rows(report, self.thread) {
            let selection = Selection::Thread(thread.process, thread.thread);
            let analysis = &Analysis::new(&report.loaded.images, selection);
            let names = &Names::new(analysis);
            show(&Part { thread: Some(thread), analysis, names })?;
        }
        Ok(())
    }

    /// Numbers of the contexts to show, in the order of the tree: those of functions asked for,
    /// what they were called in and what they call; of these the `top` costliest. And how many
    /// there would have been.
    fn rows(&self, part: &Part<'_>, top: usize) -> (Vec<usize>, usize) {
        let contexts = &part.analysis.contexts;
        let parent = |at: usize| contexts[at].parent.map(|parent| parent as usize);
        let mut wanted = vec![false; contexts.len()];
        for (at, context) in contexts.iter().enumerate() {
            wanted[at] = parent(at).is_some_and(|parent| wanted[parent])
                || is_wanted(part.analysis, part.names, context.api as usize, self.lib, self.api);
        }
        for at in (0..contexts.len()).rev().filter(|&at| wanted[at]).collect::<Vec<_>>() {
            std::iter::successors(parent(at), |&at| parent(at)).for_each(|at| wanted[at] = true);
        }
        let all: Vec<usize> = (0..contexts.len()).filter(|&at| wanted[at]).collect();
        let mut costliest = all.clone();
        costliest.sort_by_key(|&at| (Reverse(contexts[at].measures.total_ns), at));
        let mut shown: BTreeSet<usize> = costliest.into_iter().take(top).collect();
        // A folded context may have taken longer than the one it was called in.
        for at in shown.clone() {
            shown.extend(std::iter::successors(parent(at), |&at| parent(at)));
        }
        let shown = shown.into_iter().collect();
        (shown, all.len())
    }
}

impl Show for Tree<'_> {
    const NAME: &'static str = "tree";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let mut out = String::new();
        self.parts(report, |part| {
            if let Some(thread) = part.thread {
                let title = format!("{} (TID {})", clean(&thread.name), thread.tid);
                out.push_str(if out.is_empty() { "" } else { "\n" });
                out.push_str(&terminal.paint(Look::Strong, &title));
                out.push('\n');
            }
            let (rows, all) = self.rows(part, top);
            out.push_str(&table(part, &rows).render(terminal));
            out.push_str(&left_out(all, rows.len(), "contexts"));
            Ok(())
        })?;
        out.push_str(&legend(terminal, &[TOTAL, SELF, PERCENT, QUANTILES]));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let mut rows = Vec::new();
        self.parts(report, |part| {
            let contexts = &part.analysis.contexts;
            for at in self.rows(part, top).0 {
                let context = &contexts[at];
                let api = &part.analysis.apis[context.api as usize];
                let thread = part.thread;
                let process =
                    thread.and_then(|thread| report.analysis.processes.get(thread.process));
                rows.push(machine::row(
                    context,
                    [
                        ("context", at.into()),
                        ("pid", process.map(|process| process.pid).into()),
                        ("tid", thread.map(|thread| thread.tid).into()),
                        ("library", Value::from(&*api.library)),
                        ("function", part.names.full(context.api as usize).into()),
                        ("symbol", Value::from(&*api.symbol)),
                        ("caller_name", part.names.object(context.caller).into()),
                    ],
                )?);
            }
            Ok(())
        })?;
        let columns = [
            "pid",
            "tid",
            "context",
            "parent",
            "depth",
            "caller_name",
            "library",
            "function",
            "symbol",
        ];
        let columns = [&columns[..], &MEASURES].concat();
        Ok(vec![Rows { name: "contexts", columns, rows }])
    }
}

fn table(part: &Part<'_>, rows: &[usize]) -> Table {
    let totals = &part.analysis.totals;
    let whole = totals.application_ns.as_f64() + totals.library_ns.as_f64();
    let mut table = Table::new([
        ("total", Align::Number),
        ("%", Align::Number),
        ("self", Align::Number),
        ("%", Align::Number),
        ("calls", Align::Number),
        ("p50", Align::Number),
        ("p99.9", Align::Number),
        ("Function", Align::Name),
        ("Library", Align::Name),
        ("called by", Align::Name),
    ])
    .may_drop(["called by", "p50", "p99.9", "Library"]);
    for context in rows.iter().filter_map(|&at| part.analysis.contexts.get(at)) {
        let measures = &context.measures;
        table.row([
            elapsed(measures.total_ns.0).into(),
            percent(fraction(measures.total_ns, whole)).into(),
            elapsed(measures.self_ns.0).into(),
            percent(measures.share).into(),
            calls(measures).into(),
            of_call(measures.p50_ns).into(),
            of_call(measures.p999_ns).into(),
            function(part, context).into(),
            Cell::new(library(part, context), Look::Faint),
            Cell::new(part.names.object(context.caller), Look::Faint),
        ]);
    }
    table
}

/// Indented by depth; beyond a screen's width of it, the depth is a number.
fn function(part: &Part<'_>, context: &ContextRow) -> String {
    const MAX_INDENT: u32 = 24;
    let name = part.names.short(context.api as usize);
    match context.depth {
        depth if depth <= MAX_INDENT => format!("{}{name}", "  ".repeat(depth as usize)),
        depth => format!("{}[{depth}] {name}", "  ".repeat(MAX_INDENT as usize)),
    }
}

fn library<'r>(part: &Part<'r>, context: &ContextRow) -> &'r str {
    let api = part.analysis.apis.get(context.api as usize);
    part.names.object(api.map_or(u32::MAX, |api| api.object))
}
