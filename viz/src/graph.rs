//! Graphs: boxes, ellipses, and arrows between them.

mod place;

use std::fmt::Write;

use crate::Error;
use crate::canvas::{Align, Type};
use crate::chart::{BODY, Chart, NOTE, Page, Sheet, tooltip};
use crate::font::Font;
use crate::label::visible;
use crate::palette::{HEAT, INK, MUTED, PAPER};

use place::{Placed, place};

const NODE: Type = Type { size: 14.0, ..BODY };
const LABEL: Type = Type { size: 13.0, ..NOTE };
/// Height of a line of text.
const LINE: f64 = 18.0;
/// Most room for a line of a node, pixels.
const LONGEST: f64 = 240.0;
/// Length and half the width of the head of an arrow, pixels.
const HEAD: (f64, f64) = (10.0, 4.0);
/// Corners of an ellipse.
const CORNERS: usize = 48;

/// A graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// What arrows are between.
    pub nodes: Vec<GraphNode>,
    /// The arrows.
    pub arrows: Vec<GraphArrow>,
}

/// A node of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphNode {
    /// What stands in it, line by line.
    pub lines: Vec<String>,
    /// Whether it is an ellipse; otherwise it is a box.
    pub is_round: bool,
    /// Whether it has a thick outline.
    pub is_marked: bool,
}

/// An arrow of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphArrow {
    /// Where it begins, by index.
    pub from: usize,
    /// Where it ends; both may be the same.
    pub to: usize,
    /// What stands beside it; may be empty.
    pub label: String,
    /// Whether it is dashed.
    pub is_dashed: bool,
}

impl Graph {
    /// The graph in the language of Graphviz, with `name`, a word.
    #[must_use]
    pub fn dot(&self, name: &str) -> String {
        let quoted = |text: &str| visible(text).replace('\\', "\\\\").replace('"', "\\\"");
        let mut out = format!("digraph {name} {{\n    rankdir=LR;\n");
        for (at, node) in self.nodes.iter().enumerate() {
            let lines: Vec<String> = node.lines.iter().map(|line| quoted(line)).collect();
            let shape = if node.is_round { "ellipse" } else { "box" };
            let mark = if node.is_marked { ", style=bold" } else { "" };
            let _ =
                writeln!(out, "    n{at} [shape={shape}, label=\"{}\"{mark}];", lines.join("\\n"));
        }
        for arrow in &self.arrows {
            let mut look = Vec::new();
            if !arrow.label.is_empty() {
                look.push(format!("label=\"{}\"", quoted(&arrow.label)));
            }
            if arrow.is_dashed {
                look.push("style=dashed".to_owned());
            }
            let _ = writeln!(out, "    n{} -> n{} [{}];", arrow.from, arrow.to, look.join(", "));
        }
        out.push_str("}\n");
        out
    }
}

/// `graph`, from left to right where the sheet is wide enough for that, otherwise downwards. The picture is as wide as the graph
/// needs, and may be wider than the sheet.
///
/// # Errors
///
/// [`Error::Draw`] if it has no nodes, or arrows to nodes that it doesn't have.
pub fn graph(sheet: &Sheet<'_>, graph: &Graph) -> Result<Chart, Error> {
    if graph.nodes.is_empty() {
        return Err(Error::Draw("there is nothing in the graph".to_owned()));
    }
    let is_end = |end: usize| end < graph.nodes.len();
    if let Some(arrow) = graph.arrows.iter().find(|a| !is_end(a.from) || !is_end(a.to)) {
        let (from, to, nodes) = (arrow.from, arrow.to, graph.nodes.len());
        return Err(Error::Draw(format!("an arrow from node {from} to {to}, of {nodes} nodes")));
    }
    let font = Font::new()?;
    let text: Vec<Vec<String>> = graph.nodes.iter().map(|node| lines(&font, node)).collect();
    let sizes: Vec<(f64, f64)> =
        graph.nodes.iter().zip(&text).map(|(node, lines)| size(&font, node, lines)).collect();
    let label = |arrow: &GraphArrow| {
        let width = font.width(&visible(&arrow.label), LABEL.size, LABEL.weight).ceil();
        if arrow.label.is_empty() { (0.0, 0.0) } else { (width + 8.0, LINE) }
    };
    let labels: Vec<(f64, f64)> = graph.arrows.iter().map(label).collect();
    let mut placed = place(graph, &sizes, &labels, true);
    if placed.size.0 > sheet.room() {
        let down = place(graph, &sizes, &labels, false);
        if down.size.0 < placed.size.0 {
            placed = down;
        }
    }
    let mut page = Page::new(&sheet.of_width(placed.size.0))?;
    draw(&mut page, graph, &placed, &text, &sizes);
    let height = page.top + placed.size.1 + 8.0;
    page.finish(height)
}

fn lines(font: &Font, node: &GraphNode) -> Vec<String> {
    let shortened = |line: &String| font.shorten(&visible(line), LONGEST, NODE.size, NODE.weight);
    node.lines.iter().map(shortened).collect()
}

/// Width and height of a node, pixels.
fn size(font: &Font, node: &GraphNode, lines: &[String]) -> (f64, f64) {
    let width = |line: &String| font.width(line, NODE.size, NODE.weight);
    let width = lines.iter().map(width).fold(0.0, f64::max).ceil();
    let height = LINE * lines.len().max(1) as f64;
    if node.is_round { (width * 1.2 + 24.0, height + 20.0) } else { (width + 20.0, height + 12.0) }
}

fn draw(
    page: &mut Page,
    graph: &Graph,
    placed: &Placed,
    text: &[Vec<String>],
    sizes: &[(f64, f64)],
) {
    let (left, top) = (page.margin, page.top);
    let shift = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        points.iter().map(|(x, y)| (x + left, y + top)).collect()
    };
    let name = |at: usize| graph.nodes[at].lines.join(" ");
    for (arrow, way) in graph.arrows.iter().zip(&placed.ways) {
        let colour = if arrow.is_dashed { MUTED } else { INK };
        let label = if arrow.label.is_empty() { "" } else { ": " };
        let words = format!("{} → {}{label}{}", name(arrow.from), name(arrow.to), arrow.label);
        let words = tooltip(&visible(&words));
        let way = shift(way);
        if let Some(head) = head(&way) {
            page.canvas.polygon(head, colour, None);
            page.canvas.tooltip(&words);
        }
        page.canvas.styled_line(way, 1.2, colour, arrow.is_dashed);
        page.canvas.tooltip(&words);
    }
    for (arrow, at) in graph.arrows.iter().zip(&placed.labels) {
        if arrow.label.is_empty() {
            continue;
        }
        let (x, y) = (at.0 + left, at.1 + top);
        let width = page.text_width(&visible(&arrow.label), LABEL) + 6.0;
        page.canvas.rectangle((x - width / 2.0, y - 8.0), (x + width / 2.0, y + 8.0), PAPER);
        page.label(&arrow.label, (x, y + 4.5), Align::Middle, width, LABEL);
    }
    for ((at, node), &(x, y)) in graph.nodes.iter().enumerate().zip(&placed.centres) {
        let (x, y) = (x + left, y + top);
        let outline = outline(node.is_round, (x, y), sizes[at]);
        page.canvas.polygon(outline.clone(), HEAT[0], Some(INK));
        page.canvas.tooltip(&tooltip(&visible(&name(at))));
        if node.is_marked {
            let closed = [&outline[..], &outline[..1]].concat();
            page.canvas.line(closed, 3.0, INK);
        }
        let first = y - LINE * (text[at].len() as f64 - 1.0) / 2.0 + 5.0;
        for (number, line) in text[at].iter().enumerate() {
            let baseline = first + LINE * number as f64;
            page.label(line, (x, baseline), Align::Middle, LONGEST, NODE);
        }
    }
}

fn outline(is_round: bool, (x, y): (f64, f64), (width, height): (f64, f64)) -> Vec<(f64, f64)> {
    let (across, down) = (width / 2.0, height / 2.0);
    if !is_round {
        let corners = [(-across, -down), (across, -down), (across, down), (-across, down)];
        return corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    }
    let corner = |at: usize| {
        let angle = at as f64 / CORNERS as f64 * std::f64::consts::TAU;
        (x + across * angle.cos(), y + down * angle.sin())
    };
    (0..CORNERS).map(corner).collect()
}

/// The head of an arrow that goes `way`; `None` if that has no direction.
fn head(way: &[(f64, f64)]) -> Option<Vec<(f64, f64)>> {
    let &end = way.last()?;
    let far = |point: &&(f64, f64)| (point.0 - end.0).hypot(point.1 - end.1) >= HEAD.0;
    let from = way.iter().rev().find(far).or(way.first())?;
    let (dx, dy) = (end.0 - from.0, end.1 - from.1);
    let length = dx.hypot(dy);
    if length <= 0.0 {
        return None;
    }
    let (dx, dy) = (dx / length, dy / length);
    let back = (end.0 - dx * HEAD.0, end.1 - dy * HEAD.0);
    let side = |sign: f64| (back.0 - dy * sign * HEAD.1, back.1 + dx * sign * HEAD.1);
    Some(vec![end, side(1.0), side(-1.0)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Heading;

    fn node(name: &str) -> GraphNode {
        GraphNode { lines: vec![name.to_owned()], ..GraphNode::default() }
    }

    fn arrow(from: usize, to: usize, label: &str) -> GraphArrow {
        GraphArrow { from, to, label: label.to_owned(), is_dashed: label.is_empty() }
    }

    fn sheet(width: f64) -> Sheet<'static> {
        Sheet::inside(Heading { title: "A graph", subtitle: "" }, width)
    }

    fn width(chart: &Chart) -> f64 {
        let document = roxmltree::Document::parse(chart.svg()).expect("XML");
        document.root_element().attribute("width").expect("a width").parse().expect("a number")
    }

    #[test]
    fn a_graph_has_its_names_in_it() {
        let round = GraphNode { is_round: true, ..node("/tmp/<a>") };
        let arrows =
            vec![arrow(0, 1, "3 kB"), arrow(1, 0, ""), arrow(1, 2, ""), arrow(0, 0, "7 ms")];
        let of = Graph { nodes: vec![node("cat <1>"), node("sort"), round], arrows };
        let chart = graph(&sheet(1000.0), &of).expect("a chart");
        let document = roxmltree::Document::parse(chart.svg()).expect("XML");
        let text: String = document.descendants().filter_map(|node| node.text()).collect();
        for name in
            ["cat <1>", "sort", "/tmp/<a>", "cat <1> → sort: 3 kB", "cat <1> → cat <1>: 7 ms"]
        {
            assert!(text.contains(name), "{name}: {text}");
        }
        assert!(chart.svg().contains("stroke-dasharray"));
        let dot = of.dot("g");
        assert!(dot.starts_with("digraph g {"), "{dot}");
        assert!(dot.contains("n2 [shape=ellipse, label=\"/tmp/<a>\"];"), "{dot}");
        assert!(dot.contains("n0 -> n1 [label=\"3 kB\"];"), "{dot}");
        assert!(dot.contains("n1 -> n0 [style=dashed];"), "{dot}");
    }

    #[test]
    fn a_graph_that_is_too_wide_goes_downwards() {
        let nodes: Vec<GraphNode> = (0..6).map(|at| node(&format!("program {at}"))).collect();
        let arrows = (0..5).map(|at| arrow(at, at + 1, "1 kB")).collect();
        let of = Graph { nodes, arrows };
        let (wide, narrow) = (graph(&sheet(3000.0), &of), graph(&sheet(360.0), &of));
        let (wide, narrow) = (width(&wide.expect("a chart")), width(&narrow.expect("a chart")));
        assert!(wide > 600.0 && narrow <= 360.0, "{wide} and {narrow}");
    }

    #[test]
    fn graphs_of_all_kinds_are_drawn_without_overlaps() {
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..60 {
            let nodes = 1 + random(24);
            let arrows = random(40);
            let of = Graph {
                nodes: (0..nodes)
                    .map(|at| GraphNode { is_round: random(3) == 0, ..node(&"n".repeat(at)) })
                    .collect(),
                arrows: (0..arrows)
                    .map(|_| {
                        arrow(random(nodes), random(nodes), ["", "5 ms", "3.00 kB"][random(3)])
                    })
                    .collect(),
            };
            for width in [360.0, 1180.0] {
                let chart = graph(&sheet(width), &of).expect("a chart");
                assert_apart(&chart, &of);
            }
        }
    }

    /// No node is over another one, nor beyond the edge.
    fn assert_apart(chart: &Chart, of: &Graph) {
        let document = roxmltree::Document::parse(chart.svg()).expect("XML");
        let number = |name: &str| -> f64 {
            document.root_element().attribute(name).expect("a size").parse().expect("a number")
        };
        let (width, height) = (number("width"), number("height"));
        // Nodes are the paths with an outline.
        let nodes = document
            .descendants()
            .filter(|one| one.has_tag_name("path") && one.has_attribute("stroke"));
        let boxes: Vec<[f64; 4]> =
            nodes.map(|node| extent(node.attribute("d").expect("a way"))).collect();
        assert_eq!(boxes.len(), of.nodes.len());
        for (number, [left, top, right, bottom]) in boxes.iter().enumerate() {
            assert!(*left >= 0.0 && *top >= 0.0 && *right <= width && *bottom <= height, "{of:?}");
            for other in &boxes[number + 1..] {
                let apart = *right <= other[0]
                    || other[2] <= *left
                    || *bottom <= other[1]
                    || other[3] <= *top;
                assert!(apart, "{:?} and {other:?} in {of:?}", boxes[number]);
            }
        }
    }

    /// The box around a way: left, top, right, bottom.
    fn extent(way: &str) -> [f64; 4] {
        let mut numbers: Vec<f64> = Vec::new();
        let mut text = String::new();
        for c in way.chars().chain([' ']) {
            if !c.is_ascii_digit() && !text.is_empty() && text != "-" {
                numbers.push(text.parse().expect("a number"));
                text.clear();
            }
            if c.is_ascii_digit() || c == '-' {
                text.push(c);
            }
        }
        let mut at = (0.0, 0.0);
        let mut found = [f64::MAX, f64::MAX, f64::MIN, f64::MIN];
        for step in numbers.chunks(2) {
            at = (at.0 + step[0] / 10.0, at.1 + step[1] / 10.0);
            found =
                [found[0].min(at.0), found[1].min(at.1), found[2].max(at.0), found[3].max(at.1)];
        }
        found
    }

    #[test]
    fn what_is_no_graph_is_an_error() {
        assert!(graph(&sheet(400.0), &Graph::default()).is_err());
        let of = Graph { nodes: vec![node("a")], arrows: vec![arrow(0, 1, "")] };
        assert!(graph(&sheet(400.0), &of).is_err());
    }
}
