//! Who waits for whom, as a table, a picture, or a graph for other programs.

use std::path::Path;

use anyhow::{Context, bail};
use chase_analyzer::{PartyKind, WaitEdge, WaitGraph, blocked, critical_path, wait_graph};
use chase_html::{Diagram, GroupWaits, WaitsForWhom};
use chase_viz::{Graph, GraphArrow, GraphNode, Heading, Sheet};
use serde_json::Value;

use super::{Show, left_out, legend, words, wrap};
use crate::args::GraphFormat;
use crate::causes;
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::sentences::view_command;
use crate::terminal::{Align, Cell, Table, Terminal, clean, count, elapsed, percent};

/// Boxes of a picture.
const MOST: usize = 16;

/// Said where there are no edges.
const NOTHING: &str = "Nothing is known of who waits for whom: no companion has watched";

/// The table.
pub(super) struct Waits;

/// The graph, and the group that only seems to be the bottleneck, with its part of the critical path.
fn of_groups(report: &Report) -> (WaitGraph, Option<(u32, f64)>) {
    let groups = report.groups();
    let mut graph = wait_graph(report.causes(), &blocked(&report.analysis).idle_groups(groups));
    let off_path = graph.bottleneck.and_then(|_| {
        let (images, naming) = (&report.loaded.images, report.routines());
        let path = critical_path(images, &report.analysis, groups, &naming, None)?;
        graph.take_off_path(&path.parts)
    });
    (graph, off_path)
}

/// What a wait is for: a group, or what is no thread of the run.
fn target(report: &Report, edge: &WaitEdge) -> String {
    match (edge.kind, edge.of_group) {
        (PartyKind::Thread, Some(group)) => report.groups().rows[group as usize].label.clone(),
        (PartyKind::Thread, None) => "a thread".to_owned(),
        (PartyKind::Process, _) => "another process".to_owned(),
        (PartyKind::Kernel, _) => "the kernel".to_owned(),
        (PartyKind::Interrupt, _) => "an interrupt".to_owned(),
        (PartyKind::Time, _) => "time".to_owned(),
        (PartyKind::Unknown, _) => "(not known)".to_owned(),
    }
}

fn longest(report: &Report, edge: &WaitEdge) -> (String, String) {
    let Some(row) = report.causes().get(edge.longest) else { return Default::default() };
    let call = causes::function(report, row.api);
    let site = causes::site(report, row.process, row.site);
    let place = if site.is_empty() { call.to_owned() } else { format!("{call} at {site}") };
    (place, causes::awaited(report, row))
}

impl Show for Waits {
    const NAME: &'static str = "graph";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let (graph, off_path) = of_groups(report);
        if graph.edges.is_empty() {
            return Ok(format!("{NOTHING}.\n"));
        }
        let mut table = Table::new([
            ("Group", Align::Name),
            ("waits for", Align::Name),
            ("wait", Align::Number),
            ("waits", Align::Number),
            ("mostly in", Align::Name),
            ("for", Align::Name),
        ])
        .may_drop(["waits"]);
        for edge in graph.edges.iter().take(top) {
            let (place, object) = longest(report, edge);
            let row: [Cell; 6] = [
                (&*report.groups().rows[edge.group as usize].label).into(),
                target(report, edge).into(),
                elapsed(edge.wait_ns.0).into(),
                count(edge.waits).into(),
                place.into(),
                causes::brief(&object).into(),
            ];
            table.row(row);
        }
        let mut out = table.render(terminal);
        out.push_str(&left_out(graph.edges.len(), top, "waits"));
        if let Some(group) = graph.bottleneck {
            let label = &report.groups().rows[group as usize].label;
            out.push_str(&format!(
                "\nBottleneck: {}. Others wait for it, and it hardly waits for others.\n",
                clean(label)
            ));
        }
        if let Some((group, share)) = off_path {
            let label = clean(&report.groups().rows[group as usize].label);
            let gain = match share {
                0.0 => "it has no part in the critical path, and the run lasts as long without it"
                    .to_owned(),
                _ => format!(
                    "it has {} of the critical path, and the run gains no more than that by it",
                    percent(share)
                ),
            };
            let text = format!(
                "Others wait for {label}, and it hardly waits for others; but {gain}: {} has what makes it last.",
                view_command(report, "path"),
            );
            let width = terminal.width.unwrap_or(usize::MAX);
            out.push_str(&format!("\n{}\n", wrap(words(&text), 0, 0, width)));
        }
        out.push_str(&legend(
            terminal,
            &[("waits for", "for a lock, who has it; otherwise who ends the wait")],
        ));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let (graph, _) = of_groups(report);
        let label = |group: u32| Value::from(&*report.groups().rows[group as usize].label);
        let mut rows = Vec::new();
        for edge in graph.edges.iter().take(top) {
            let (place, object) = longest(report, edge);
            let is_bottleneck = edge.of_group.is_some() && edge.of_group == graph.bottleneck;
            rows.push(machine::row(
                edge,
                [
                    ("group", label(edge.group)),
                    ("waits_for", target(report, edge).into()),
                    ("of_group", edge.of_group.map_or(Value::Null, label)),
                    ("place", place.into()),
                    ("object", object.into()),
                    ("is_bottleneck", is_bottleneck.into()),
                ],
            )?);
        }
        let columns =
            ["group", "waits_for", "kind", "wait_ns", "waits", "place", "object", "is_bottleneck"];
        Ok(vec![Rows { name: "graph", columns: columns.into(), rows }])
    }
}

/// The graph in another format, into a file or to be printed.
pub(super) fn write(
    report: &Report,
    format: GraphFormat,
    output: Option<&Path>,
) -> anyhow::Result<String> {
    let (graph, _) = of_groups(report);
    if graph.edges.is_empty() {
        bail!(NOTHING);
    }
    let drawn = drawn(report, &graph);
    let text = match format {
        GraphFormat::Dot => drawn.dot("waits"),
        GraphFormat::Svg => {
            let subtitle = super::processes::subtitle(report);
            let heading = Heading { title: "Who waits for whom", subtitle: &subtitle };
            let chart = chase_viz::graph(&Sheet::alone(heading), &drawn);
            chart.context("cannot draw the graph")?.svg().to_owned()
        }
    };
    match output {
        Some(path) => super::files::save(path, text.as_bytes()).map(|()| String::new()),
        None => Ok(text),
    }
}

/// Boxes, and the arrows between them, longest first; as many boxes as there is room for.
fn drawn(report: &Report, graph: &WaitGraph) -> Graph {
    let bottleneck = graph.bottleneck.map(|group| &*report.groups().rows[group as usize].label);
    let mut nodes: Vec<String> = Vec::new();
    let mut drawn = Graph::default();
    for edge in &graph.edges {
        let mut find = |label: String, is_round: bool| {
            let known = nodes.iter().position(|node| *node == label);
            known.or_else(|| {
                let number = Some(nodes.len()).filter(|&number| number < MOST)?;
                let is_marked = bottleneck == Some(&*label);
                let mut lines = vec![label.clone()];
                if is_marked {
                    lines.insert(0, "bottleneck:".to_owned());
                }
                drawn.nodes.push(GraphNode { lines, is_round, is_marked });
                nodes.push(label);
                Some(number)
            })
        };
        let from = find(report.groups().rows[edge.group as usize].label.clone(), false);
        // Round is what is no thread of the run.
        let to = find(target(report, edge), edge.kind != PartyKind::Thread);
        if let (Some(from), Some(to)) = (from, to) {
            let label = elapsed(edge.wait_ns.0);
            drawn.arrows.push(GraphArrow { from, to, label, is_dashed: false });
        }
    }
    drawn
}

/// For the page; `None` where nothing is known.
pub(super) fn for_page(report: &Report) -> Option<WaitsForWhom> {
    let (graph, _) = of_groups(report);
    if graph.edges.is_empty() {
        return None;
    }
    let waits = |edge: &WaitEdge| {
        let (place, object) = longest(report, edge);
        GroupWaits {
            group: report.groups().rows[edge.group as usize].label.as_str().into(),
            target: target(report, edge).into(),
            ns: edge.wait_ns.as_f64(),
            waits: edge.waits,
            place: place.into(),
            object: object.into(),
        }
    };
    let bottleneck = graph.bottleneck.map(|group| &*report.groups().rows[group as usize].label);
    Some(WaitsForWhom {
        diagram: Diagram::from(&drawn(report, &graph)),
        bottleneck: bottleneck.unwrap_or_default().into(),
        waits: graph.edges.iter().map(waits).collect(),
    })
}
