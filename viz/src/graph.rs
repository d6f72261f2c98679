//! Who depends on whom: boxes on a circle, and arrows between them.

use crate::canvas::Align;
use crate::chart::{BODY, Chart, MARGIN, NOTE, Page, Sheet, TOP, WIDTH};
use crate::data::total;
use crate::palette::{HEAT, INK, MUTED, RULE};
use crate::quantity::quantity;
use crate::{Error, Heading, Unit};

/// Size of a box, and of its name.
const BOX: (f64, f64) = (190.0, 40.0);
const HEIGHT: f64 = 620.0;
/// Widths of the thinnest and of the widest arrow, and length of its head.
const THIN: f64 = 1.0;
const WIDE: f64 = 9.0;
const HEAD: f64 = 16.0;

/// A box.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub label: String,
    /// Whether it is the one to look at.
    pub is_marked: bool,
}

/// An arrow from one box to another.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Where it begins, by number of the box.
    pub from: usize,
    /// Where it leads.
    pub to: usize,
    /// How much it stands for.
    pub value: f64,
}

/// Draws `edges` between `nodes`; edges of a node to itself are written below its name.
///
/// # Errors
///
/// [`Error::Value`] for a value that is negative or not finite. Edges of boxes that are not there are left out.
pub fn graph(
    heading: &Heading<'_>,
    unit: Unit<'_>,
    nodes: &[Node],
    edges: &[Edge],
) -> Result<Chart, Error> {
    let name = |edge: &Edge| nodes.get(edge.from).map_or("", |node| node.label.as_str());
    total(edges.iter().map(|edge| (name(edge), edge.value)))?;
    let mut page = Page::new(&Sheet::alone(*heading))?;
    if nodes.is_empty() {
        let room = WIDTH - 2.0 * MARGIN;
        page.label("Nothing to show.", (MARGIN, TOP + 20.0), Align::Left, room, NOTE);
    }
    let places = places(nodes.len());
    let most = edges.iter().map(|edge| edge.value).fold(0.0, f64::max);
    for edge in edges.iter().filter(|edge| edge.from != edge.to) {
        let (Some(&from), Some(&to)) = (places.get(edge.from), places.get(edge.to)) else {
            continue;
        };
        arrow(&mut page, from, to, THIN + (WIDE - THIN) * (edge.value / most).sqrt());
        let at = (from.0 + 0.36 * (to.0 - from.0), from.1 + 0.36 * (to.1 - from.1) - 4.0);
        let text = quantity(edge.value, unit);
        page.label(&text, at, Align::Middle, BOX.0, NOTE);
    }
    for (number, (node, &(x, y))) in nodes.iter().zip(&places).enumerate() {
        let (from, to) = ((x - BOX.0 / 2.0, y - BOX.1 / 2.0), (x + BOX.0 / 2.0, y + BOX.1 / 2.0));
        page.canvas.rectangle(from, to, if node.is_marked { HEAT[3] } else { RULE });
        let inside = ((from.0 + 1.5, from.1 + 1.5), (to.0 - 1.5, to.1 - 1.5));
        page.canvas.rectangle(inside.0, inside.1, crate::palette::PAPER);
        let own = edges.iter().filter(|edge| edge.from == number && edge.to == number);
        let own: f64 = own.map(|edge| edge.value).sum();
        let mark = if node.is_marked { "▶ " } else { "" };
        let up = if own > 0.0 { 2.0 } else { -5.0 };
        let label = format!("{mark}{}", node.label);
        page.label(&label, (x, y - up), Align::Middle, BOX.0 - 12.0, BODY);
        if own > 0.0 {
            let text = format!("itself {}", quantity(own, unit));
            page.label(&text, (x, y + 15.0), Align::Middle, BOX.0 - 12.0, NOTE);
        }
    }
    page.finish(HEIGHT + TOP)
}

/// Evenly on an ellipse, the first at the top.
fn places(count: usize) -> Vec<(f64, f64)> {
    let centre = (WIDTH / 2.0, TOP + HEIGHT / 2.0 - 20.0);
    let radius = (WIDTH / 2.0 - MARGIN - BOX.0 / 2.0, HEIGHT / 2.0 - MARGIN - BOX.1);
    let place = |number: usize| {
        let angle = std::f64::consts::TAU * number as f64 / count as f64;
        (centre.0 + radius.0 * angle.sin(), centre.1 - radius.1 * angle.cos())
    };
    (0..count).map(place).collect()
}

/// From the middle of one box to the edge of the other, beside what comes the other way.
fn arrow(page: &mut Page, from: (f64, f64), to: (f64, f64), width: f64) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    if length < 1.0 {
        return;
    }
    let (ux, uy) = (dx / length, dy / length);
    let side = |point: (f64, f64), by: f64| (point.0 - uy * by, point.1 + ux * by);
    let edge = (BOX.0 / 2.0 / ux.abs().max(1e-9)).min(BOX.1 / 2.0 / uy.abs().max(1e-9)) + 2.0;
    let (from, tip) = (side(from, 7.0), (to.0 - ux * edge, to.1 - uy * edge));
    let tip = side(tip, 7.0);
    let neck = (tip.0 - ux * HEAD, tip.1 - uy * HEAD);
    page.canvas.line(vec![from, neck], width, MUTED);
    let half = (width / 2.0 + 4.0).max(5.0);
    page.canvas.polygon(vec![tip, side(neck, half), side(neck, -half)], INK);
}
