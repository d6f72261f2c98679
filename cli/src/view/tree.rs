//! The calling contexts: which library call was made inside which.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use chase_analyzer::{
    Analysis, CallPlace, CodeAddress, ContextRow, GroupContext, GroupRow, Ns, Selection, ThreadRow,
    group_tree,
};
use serde_json::{Value, json};

use super::apis::is_wanted;
use super::groups::{self, name_threads};
use super::waiting;
use super::{
    PERCENT, QUANTILES, SELF, Show, TOTAL, approximate, calls, counted, estimates, left_out,
    legend, marked, of_call, threads,
};
use crate::args::{ApiFilter, GroupFilter, LibFilter, ThreadFilter};
use crate::machine::{self, MEASURES, Rows};
use crate::names::Names;
use crate::places::{AddressKind, Files, Places};
use crate::report::{Report, fraction};
use crate::terminal::{Align, Cell, Look, Table, Terminal, clean, count, elapsed, percent};

pub(super) struct Tree<'a> {
    pub(super) lib: &'a LibFilter,
    pub(super) api: &'a ApiFilter,
    pub(super) thread: &'a ThreadFilter,
    pub(super) group: &'a GroupFilter,
}

/// The tree of one thread, or of all that were analysed.
struct Part<'r> {
    thread: Option<&'r ThreadRow>,
    analysis: &'r Analysis,
    names: &'r Names,
    places: &'r Places,
}

impl<'r> Part<'r> {
    fn all(report: &'r Report) -> Self {
        let (analysis, names, places) = (&report.analysis, &report.names, &report.places);
        Self { thread: None, analysis, names, places }
    }
}

/// What of a context decides whether it is shown.
struct Branch {
    parent: Option<usize>,
    api: usize,
    total_ns: Ns,
}

impl Tree<'_> {
    /// Calls `show` with the tree of all threads, or with that of each thread asked for.
    fn parts(
        &self,
        report: &Report,
        mut show: impl FnMut(&Part<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if self.thread.threads.is_empty() {
            return show(&Part::all(report));
        }
        for thread in threads::rows(report, self.thread) {
            let selection = Selection::Thread(thread.process, thread.thread);
            let analysis = &Analysis::new(&report.loaded.images, selection);
            let names = &Names::new(analysis);
            // Its objects have numbers of their own.
            let places = &report.places.again();
            show(&Part { thread: Some(thread), analysis, names, places })?;
        }
        Ok(())
    }

    fn rows(&self, part: &Part<'_>, top: usize) -> (Vec<usize>, usize) {
        let contexts = part.analysis.contexts.iter().map(|context| Branch {
            parent: context.parent.map(|parent| parent as usize),
            api: context.api as usize,
            total_ns: context.measures.total_ns,
        });
        self.choose(part.analysis, part.names, &contexts.collect::<Vec<_>>(), top)
    }

    /// Numbers of the contexts to show, in the order of the tree: those of functions asked for,
    /// what they were called in and what they call; of these the `top` costliest. And how many
    /// there would have been.
    fn choose(
        &self,
        analysis: &Analysis,
        names: &Names,
        contexts: &[Branch],
        top: usize,
    ) -> (Vec<usize>, usize) {
        let parent = |at: usize| contexts[at].parent;
        let mut wanted = vec![false; contexts.len()];
        for (at, context) in contexts.iter().enumerate() {
            wanted[at] = parent(at).is_some_and(|parent| wanted[parent])
                || is_wanted(analysis, names, context.api, self.lib, self.api);
        }
        for at in (0..contexts.len()).rev().filter(|&at| wanted[at]).collect::<Vec<_>>() {
            std::iter::successors(parent(at), |&at| parent(at)).for_each(|at| wanted[at] = true);
        }
        let all: Vec<usize> = (0..contexts.len()).filter(|&at| wanted[at]).collect();
        let mut costliest = all.clone();
        costliest.sort_by_key(|&at| (Reverse(contexts[at].total_ns), at));
        let mut shown: BTreeSet<usize> = costliest.into_iter().take(top).collect();
        // A folded context may have taken longer than the one it was called in.
        for at in shown.clone() {
            shown.extend(std::iter::successors(parent(at), |&at| parent(at)));
        }
        let shown = shown.into_iter().collect();
        (shown, all.len())
    }
}

/// One tree for the threads of each group asked for, with how they differ.
impl Tree<'_> {
    fn group_rows(
        &self,
        report: &Report,
        group: &GroupRow,
        top: usize,
    ) -> (Vec<GroupContext>, Vec<usize>, usize) {
        let tree = group_tree(&report.analysis, group);
        let branches = tree.iter().map(|row| Branch {
            parent: row.parent.map(|parent| parent as usize),
            api: row.api as usize,
            total_ns: row.total_ns,
        });
        let branches: Vec<Branch> = branches.collect();
        let (shown, all) = self.choose(&report.analysis, &report.names, &branches, top);
        (tree, shown, all)
    }

    fn group_text(
        &self,
        report: &Report,
        terminal: Terminal,
        top: usize,
    ) -> anyhow::Result<String> {
        let mut out = String::new();
        for (_, group) in groups::rows(report, self.group)? {
            let title = format!("{} ({} threads)", clean(&group.label), group.threads);
            out.push_str(if out.is_empty() { "" } else { "\n" });
            out.push_str(&terminal.paint(Look::Strong, &title));
            out.push('\n');
            let (tree, shown, all) = self.group_rows(report, group, top);
            out.push_str(&group_table(report, &tree, &shown).render(terminal));
            out.push_str(&left_out(all, shown.len(), "contexts"));
        }
        out.push_str(&legend(
            terminal,
            &[
                TOTAL,
                SELF,
                ("least … most", "total of one thread: the least, the median, the most, and whose"),
                ("×", "most / median"),
            ],
        ));
        Ok(out)
    }

    fn group_tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let mut rows = Vec::new();
        for (_, group) in groups::rows(report, self.group)? {
            let (tree, shown, _) = self.group_rows(report, group, top);
            for at in shown {
                let row = &tree[at];
                let context = report.analysis.contexts.get(row.context as usize);
                let api = &report.analysis.apis[row.api as usize];
                let mut map = machine::row(
                    row,
                    [
                        ("group", Value::from(&*group.label)),
                        ("context", at.into()),
                        ("library", Value::from(&*api.library)),
                        ("function", report.names.full(row.api as usize).into()),
                        ("symbol", Value::from(&*api.symbol)),
                        ("caller_name", report.names.object(row.caller).into()),
                        (
                            "site",
                            context.and_then(|of| site(report, &Part::all(report), of)).into(),
                        ),
                    ],
                )?;
                map.values_mut().for_each(|value| name_threads(report, value));
                rows.push(map);
            }
        }
        let columns = vec![
            "group",
            "context",
            "parent",
            "depth",
            "caller_name",
            "library",
            "function",
            "symbol",
            "calls",
            "total_ns",
            "self_ns",
            "wait_ns",
            "threads",
            "spread.min_ns",
            "spread.median_ns",
            "spread.max_ns",
            "spread.min_tid",
            "spread.max_tid",
        ];
        Ok(vec![Rows { name: "group_contexts", columns, rows }])
    }
}

impl Show for Tree<'_> {
    const NAME: &'static str = "tree";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        if !self.group.groups.is_empty() {
            return self.group_text(report, terminal, top);
        }
        let mut out = String::new();
        self.parts(report, |part| {
            if let Some(thread) = part.thread {
                let title = format!("{} (TID {})", clean(&thread.name), thread.tid);
                out.push_str(if out.is_empty() { "" } else { "\n" });
                out.push_str(&terminal.paint(Look::Strong, &title));
                out.push('\n');
            }
            let (rows, all) = self.rows(part, top);
            let table = table(report, part, &rows);
            out.push_str(&table.render(terminal));
            out.push_str(&left_out(all, rows.len(), "contexts"));
            Ok(())
        })?;
        let mut terms = vec![TOTAL, SELF, PERCENT];
        if waiting::is_measured(report) {
            terms.extend(waiting::legend(report).first());
        }
        terms.push(QUANTILES);
        terms.extend(counted(report));
        terms.extend(estimates(report));
        out.push_str(&legend(terminal, &terms));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        if !self.group.groups.is_empty() {
            return self.group_tables(report, top);
        }
        let mut rows = Vec::new();
        self.parts(report, |part| {
            let contexts = &part.analysis.contexts;
            for at in self.rows(part, top).0 {
                let context = &contexts[at];
                let api = &part.analysis.apis[context.api as usize];
                let thread = part.thread;
                let process =
                    thread.and_then(|thread| report.analysis.processes.get(thread.process));
                let mut row = machine::row(
                    context,
                    [
                        ("context", at.into()),
                        ("pid", process.map(|process| process.pid).into()),
                        ("tid", thread.map(|thread| thread.tid).into()),
                        ("library", Value::from(&*api.library)),
                        ("function", part.names.full(context.api as usize).into()),
                        ("symbol", Value::from(&*api.symbol)),
                        ("caller_name", part.names.object(context.caller).into()),
                        ("site", site(report, part, context).into()),
                    ],
                )?;
                if !context.places.is_empty() {
                    let places = sites(report, part, &context.places, "samples");
                    row.insert("places".to_owned(), places);
                }
                if !context.long_places.is_empty() {
                    let places = sites(report, part, &context.long_places, "calls");
                    row.insert("long_places".to_owned(), places);
                }
                rows.push(row);
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

fn table(report: &Report, part: &Part<'_>, rows: &[usize]) -> Table {
    let totals = &part.analysis.totals;
    let whole = totals.whole_ns().as_f64();
    let mut table = Table::new([
        ("total", Align::Number),
        ("%", Align::Number),
        ("self", Align::Number),
        ("%", Align::Number),
        ("wait", Align::Number),
        ("calls", Align::Number),
        ("p50", Align::Number),
        ("p99.9", Align::Number),
        ("Function", Align::Name),
        ("Library", Align::Name),
        ("called by", Align::Name),
    ])
    .only_if(waiting::is_measured(report), "wait")
    .may_drop(["called by", "p50", "p99.9", "Library"]);
    for context in rows.iter().filter_map(|&at| part.analysis.contexts.get(at)) {
        let measures = &context.measures;
        table.row([
            elapsed(measures.total_ns.0).into(),
            percent(fraction(measures.total_ns, whole)).into(),
            marked(measures, elapsed(measures.self_ns.0)).into(),
            marked(measures, percent(measures.share)).into(),
            elapsed(measures.wait_ns.0).into(),
            calls(measures).into(),
            of_call(measures.p50_ns).into(),
            of_call(measures.p999_ns).into(),
            indented(context.depth, &called(report, part, context)).into(),
            Cell::new(library(part, context), Look::Faint),
            Cell::new(part.names.object(context.caller), Look::Faint),
        ]);
    }
    table
}

fn group_table(report: &Report, tree: &[GroupContext], shown: &[usize]) -> Table {
    let mut table = Table::new([
        ("total", Align::Number),
        ("self", Align::Number),
        ("calls", Align::Number),
        ("threads", Align::Number),
        ("least", Align::Number),
        ("median", Align::Number),
        ("most", Align::Number),
        ("×", Align::Number),
        ("whose", Align::Number),
        ("Function", Align::Name),
        ("Library", Align::Name),
    ])
    .may_drop(["Library", "calls", "threads", "least"]);
    let part = Part::all(report);
    for row in shown.iter().filter_map(|&at| tree.get(at)) {
        let Some(context) = report.analysis.contexts.get(row.context as usize) else { continue };
        let api = report.analysis.apis.get(row.api as usize);
        let library = report.names.object(api.map_or(u32::MAX, |api| api.object));
        let spread = row.spread;
        let thread = report.analysis.threads.get(spread.max_thread as usize);
        let is_estimated = api.is_some_and(|api| api.measures.calls_estimated);
        let factor = fraction(spread.max_ns, spread.median_ns.as_f64());
        table.row([
            elapsed(row.total_ns.0).into(),
            elapsed(row.self_ns.0).into(),
            approximate(is_estimated, count(row.calls)).into(),
            count(row.threads as u64).into(),
            elapsed(spread.min_ns.0).into(),
            elapsed(spread.median_ns.0).into(),
            elapsed(spread.max_ns.0).into(),
            if factor > 0.0 { format!("{factor:.1}").into() } else { "".into() },
            thread.map_or_else(String::new, |row| row.tid.to_string()).into(),
            indented(row.depth, &called(report, &part, context)).into(),
            Cell::new(library, Look::Faint),
        ]);
    }
    table
}

/// The function's name, and the line that calls it: of all calls, where contexts are told apart by that; of most, with their
/// share, by samples, or by the time of those that took long.
fn called(report: &Report, part: &Part<'_>, context: &ContextRow) -> String {
    let name = part.names.short(context.api as usize);
    match site(report, part, context) {
        Some(site) => format!("{name} at {site}"),
        None => match context.places_by_time().first().filter(|place| place.share >= MOSTLY) {
            Some(place) => format!("{name}{}", sampled_site(report, part, place)),
            None => name.to_owned(),
        },
    }
}

/// A place that has fewer of the calls is not named.
const MOSTLY: f64 = 0.5;

/// Places for JSON.
fn sites(report: &Report, part: &Part<'_>, places: &[CallPlace], what: &str) -> Value {
    let places = places.iter().map(|place| {
        let site = place.address.map(|site| named(report, part, place.process, &site));
        json!({ "site": site, what: place.samples, "share": place.share })
    });
    places.collect()
}

/// ` at often two.c:7 (80 %)`; empty if the place is not known.
fn sampled_site(report: &Report, part: &Part<'_>, place: &CallPlace) -> String {
    let Some(site) = place.address else { return String::new() };
    let site = named(report, part, place.process, &site);
    if place.share > 0.995 {
        return format!(" at {site}");
    }
    format!(" at {site} ({})", percent(place.share))
}

/// The place of the calls: `update_stats convoy.c:14`.
fn site(report: &Report, part: &Part<'_>, context: &ContextRow) -> Option<String> {
    context.site.map(|site| named(report, part, context.process, &site))
}

fn named(report: &Report, part: &Part<'_>, process: usize, site: &CodeAddress) -> String {
    let (objects, threads) = (&part.analysis.objects, &part.analysis.threads);
    let files = Files { objects, images: &report.loaded.images, threads };
    let place = part.places.find(files, process, site, AddressKind::ReturnAddress);
    let object = site.object.map_or("", |object| part.names.object(object));
    place.short(object)
}

/// Indented by depth; beyond a screen's width of it, the depth is a number.
fn indented(depth: u32, name: &str) -> String {
    const MAX_INDENT: u32 = 24;
    match depth {
        depth if depth <= MAX_INDENT => format!("{}{name}", "  ".repeat(depth as usize)),
        depth => format!("{}[{depth}] {name}", "  ".repeat(MAX_INDENT as usize)),
    }
}

fn library<'r>(part: &Part<'r>, context: &ContextRow) -> &'r str {
    let api = part.analysis.apis.get(context.api as usize);
    part.names.object(api.map_or(u32::MAX, |api| api.object))
}
