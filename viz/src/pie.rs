//! Shares of a total, as a donut with labels around it and a legend below.

mod labels;
mod legend;
mod slices;

use std::f64::consts::{PI, TAU};

use crate::canvas::{Align, Point, Type};
use crate::chart::{Chart, MARGIN, NOTE, Page, Sheet, TOP, WIDTH};
use crate::data::total;
use crate::font::Weight;
use crate::palette::{INK, PAPER, RULE};
use crate::quantity::quantity;
use crate::{Error, Group, Heading, Unit};

use slices::{Slice, slices};

pub(crate) use slices::rest_name;

const CENTRE: Point = (WIDTH / 2.0, TOP + 180.0);
const OUTER: f64 = 140.0;
const INNER: f64 = 84.0;
/// Where labels may be: highest and lowest.
const LABELS: (f64, f64) = (TOP + 20.0, CENTRE.1 + OUTER + 20.0);
/// Top of the legend.
const LEGEND: f64 = CENTRE.1 + OUTER + 56.0;
/// Narrower slices would be painted over by the gaps beside them, radians.
const GAP_FROM: f64 = 0.04;

const BIG: Type = Type { size: 21.0, weight: Weight::Bold, colour: INK };

/// How the total is shared by `groups`: largest first, clockwise from twelve o'clock.
///
/// Groups without a colour of their own (see [`Group`]) are one grey slice, drawn last; so are
/// those of less than 1 % where there are more than eight of them. What is less than 1 %, or finds
/// no room near its slice, is named in the legend only. Groups whose value is 0 are left out.
///
/// # Errors
///
/// [`Error::Value`] for a value that is negative or not finite.
pub fn pie(heading: &Heading<'_>, unit: Unit<'_>, groups: &[Group]) -> Result<Chart, Error> {
    let whole = total(groups.iter().map(|g| (g.name.as_str(), g.value)))?;
    let slices = slices(groups, unit, whole);
    let height = LEGEND + legend::height(slices.len()) + MARGIN;
    let mut page = Page::new(&Sheet::alone(*heading))?;
    ring(&mut page, &slices);
    centre(&mut page, unit, whole);
    labels::draw(&mut page, &slices);
    legend::draw(&mut page, &slices);
    page.finish(height)
}

fn ring(page: &mut Page, slices: &[Slice]) {
    if slices.is_empty() {
        page.canvas.line(arc(OUTER, 0.0, TAU), 1.5, RULE);
        page.canvas.line(arc(INNER, 0.0, TAU), 1.5, RULE);
    }
    for slice in slices {
        let mut outline = arc(OUTER, slice.from, slice.to);
        outline.extend(arc(INNER, slice.from, slice.to).into_iter().rev());
        page.canvas.polygon(outline, slice.colour, None);
        page.describe(&slice.name, &format!("{}, {}", slice.quantity, slice.share));
        // Only along the arcs: the sides have their gaps.
        page.canvas.line(arc(OUTER, slice.from, slice.to), 1.0, slice.colour.darker());
        page.canvas.line(arc(INNER, slice.from, slice.to), 1.0, slice.colour.darker());
    }
    for (i, slice) in slices.iter().enumerate() {
        let before = &slices[if i == 0 { slices.len() - 1 } else { i - 1 }];
        if slices.len() > 1 && slice.width().min(before.width()) > GAP_FROM {
            let ends = vec![on_circle(INNER - 1.0, slice.from), on_circle(OUTER + 1.0, slice.from)];
            page.canvas.line(ends, 2.0, PAPER);
        }
    }
}

fn centre(page: &mut Page, unit: Unit<'_>, whole: f64) {
    let noun = match unit {
        Unit::Nanoseconds => "in total",
        Unit::Count(noun) => noun,
    };
    let room = 2.0 * INNER - 24.0;
    let (x, y) = CENTRE;
    page.label(&quantity(whole, unit), (x, y + 2.0), Align::Middle, room, BIG);
    page.label(noun, (x, y + 24.0), Align::Middle, room, NOTE);
}

/// The four corners of a rectangle, as a closed line.
pub(crate) fn outline(from: Point, to: Point) -> Vec<Point> {
    vec![from, (to.0, from.1), to, (from.0, to.1), from]
}

fn on_circle(radius: f64, angle: f64) -> Point {
    (CENTRE.0 + radius * angle.sin(), CENTRE.1 - radius * angle.cos())
}

fn arc(radius: f64, from: f64, to: f64) -> Vec<Point> {
    // Two degrees: further from the true circle than a tenth of a pixel nowhere.
    let steps = ((to - from) / (PI / 90.0)).ceil().max(1.0) as usize;
    let at = |i| from + (to - from) * i as f64 / steps as f64;
    (0..=steps).map(|i| on_circle(radius, at(i))).collect()
}
