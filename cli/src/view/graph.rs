//! Who waits for whom, as a table, a picture, or a graph for other programs.

use std::fs;
use std::path::Path;

use anyhow::Context;
use chase_analyzer::{PartyKind, WaitEdge, WaitGraph, wait_graph};
use chase_viz::{Edge, Heading, Node, Unit};
use serde_json::Value;

use super::{Show, charts, left_out, legend};
use crate::args::GraphFormat;
use crate::causes;
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::terminal::{Align, Cell, Table, Terminal, clean, count, elapsed};

/// Boxes of a picture.
const MOST: usize = 16;

/// The table.
pub(super) struct Graph;

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
    let call = row.api.map_or(super::waits::OWN_CODE, |api| report.names.short(api as usize));
    let site = causes::site(report, row.process, row.site);
    let place = if site.is_empty() { call.to_owned() } else { format!("{call} at {site}") };
    (place, causes::object(report, row.process, &row.object))
}

impl Show for Graph {
    const NAME: &'static str = "graph";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let graph = wait_graph(report.causes(), report.groups());
        if graph.edges.is_empty() {
            return Ok("Nothing is known of who waits for whom: no companion has watched.\n".into());
        }
        let mut table = Table::new([
            ("Group", Align::Name),
            ("waits for", Align::Name),
            ("wait", Align::Number),
            ("waits", Align::Number),
            ("mostly in", Align::Name),
            ("for", Align::Name),
        ]);
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
            out.push_str(&clean(&format!(
                "\nBottleneck: {label}. Others wait for it, and it hardly waits for others.\n"
            )));
        }
        out.push_str(&legend(
            terminal,
            &[("waits for", "for a lock, who has it; otherwise who ends the wait")],
        ));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let graph = wait_graph(report.causes(), report.groups());
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
    let graph = wait_graph(report.causes(), report.groups());
    let text = match format {
        GraphFormat::Dot => dot(report, &graph),
        GraphFormat::Svg => svg(report, &graph)?,
    };
    match output {
        Some(path) => {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(String::new())
        }
        None => Ok(text),
    }
}

/// Names of boxes, and the arrows between them, longest first; as many boxes as there is room for.
fn boxes(report: &Report, graph: &WaitGraph) -> (Vec<Node>, Vec<Edge>) {
    let (mut nodes, mut edges) = (Vec::<Node>::new(), Vec::new());
    let marked = graph.bottleneck.map(|group| &*report.groups().rows[group as usize].label);
    for edge in &graph.edges {
        let mut find = |label: String| {
            let known = nodes.iter().position(|node| node.label == label);
            known.or_else(|| {
                let is_marked = marked == Some(&*label);
                (nodes.len() < MOST).then(|| nodes.push(Node { label, is_marked }))?;
                Some(nodes.len() - 1)
            })
        };
        let from = find(report.groups().rows[edge.group as usize].label.clone());
        let to = find(target(report, edge));
        if let (Some(from), Some(to)) = (from, to) {
            edges.push(Edge { from, to, value: edge.wait_ns.as_f64() });
        }
    }
    (nodes, edges)
}

fn svg(report: &Report, graph: &WaitGraph) -> anyhow::Result<String> {
    let (nodes, edges) = boxes(report, graph);
    let subtitle = charts::subtitle(report);
    let heading = Heading { title: "Who waits for whom", subtitle: &subtitle };
    let chart = chase_viz::graph(&heading, Unit::Nanoseconds, &nodes, &edges);
    Ok(chart.context("cannot draw the graph")?.svg().to_owned())
}

/// For Graphviz.
fn dot(report: &Report, graph: &WaitGraph) -> String {
    let (nodes, edges) = boxes(report, graph);
    let quoted = |text: &str| {
        let text = chase_viz::visible(text);
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    };
    let mut out = String::from("digraph waits {\n  node [shape=box];\n");
    for (number, node) in nodes.iter().enumerate() {
        let marked = if node.is_marked { ", penwidth=3" } else { "" };
        out += &format!("  n{number} [label={}{marked}];\n", quoted(&node.label));
    }
    for edge in &edges {
        let label = quoted(&elapsed(edge.value as u64));
        out += &format!("  n{} -> n{} [label={label}];\n", edge.from, edge.to);
    }
    out + "}\n"
}
