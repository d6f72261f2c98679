//! Shares of a total, as a donut with its labels around it and a legend beside it.

use std::f64::consts::{PI, TAU};

use crate::canvas::{Align, Point, Type};
use crate::chart::{BODY, Chart, MARGIN, NOTE, Page, TOP, WIDTH};
use crate::data::{GroupKind, total};
use crate::font::Weight;
use crate::palette::{self, Colour, INK, MUTED, PAPER, REST, RULE};
use crate::quantity::{quantity, share};
use crate::{Error, Group, Heading, Unit};

const HEIGHT: f64 = 520.0;
const CENTRE: Point = (322.0, 292.0);
const OUTER: f64 = 140.0;
const INNER: f64 = 84.0;
/// Horizontal distance of the labels from the centre.
const LABEL_X: f64 = OUTER + 36.0;
/// Leaders turn towards their labels here, clear of the ring.
const TURN_X: f64 = OUTER + 18.0;
/// Each label is two lines high.
const LABEL_HEIGHT: f64 = 42.0;
const LEGEND_X: f64 = 650.0;
const LEGEND_ROW: f64 = 30.0;
/// Narrower slices would be painted over by the gaps beside them, radians.
const GAP_FROM: f64 = 0.04;

const BIG: Type = Type { size: 21.0, weight: Weight::Bold, colour: INK };
const SHARE: Type = Type { weight: Weight::Bold, ..BODY };

struct Slice<'a> {
    name: String,
    value: f64,
    colour: Colour,
    unit: Unit<'a>,
    share: String,
    /// Start and end, radians clockwise from twelve o'clock.
    from: f64,
    to: f64,
}

/// How the total is shared by `groups`: largest first, clockwise from twelve o'clock.
///
/// Groups without a colour of their own (see [`Group`]) are one grey slice, drawn last. Groups
/// whose value is 0 are left out.
///
/// # Errors
///
/// [`Error::Value`] for a value that is negative or not finite.
pub fn pie(heading: &Heading<'_>, unit: Unit<'_>, groups: &[Group]) -> Result<Chart, Error> {
    let whole = total(groups.iter().map(|g| (g.name.as_str(), g.value)))?;
    let slices = slices(groups, unit, whole);
    let mut page = Page::new(heading, HEIGHT)?;
    ring(&mut page, &slices);
    centre(&mut page, unit, whole);
    labels(&mut page, &slices);
    legend(&mut page, &slices);
    page.finish(HEIGHT)
}

fn slices<'a>(groups: &[Group], unit: Unit<'a>, whole: f64) -> Vec<Slice<'a>> {
    let mut own = Vec::new();
    let mut rest = Vec::new();
    for (group, colour) in groups.iter().zip(palette::assign(groups)) {
        match colour {
            _ if group.value <= 0.0 => {}
            Some(colour) => own.push((group.name.clone(), group.value, colour)),
            None => rest.push(group),
        }
    }
    own.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if let Some(name) = rest_name(&rest) {
        own.push((name, rest.iter().map(|g| g.value).sum(), REST));
    }
    let mut to = 0.0;
    let slice = |(name, value, colour)| {
        let from = to;
        to += value / whole * TAU;
        Slice { name, value, colour, unit, share: share(value, whole), from, to }
    };
    own.into_iter().map(slice).collect()
}

/// What several groups without a colour are called together.
pub(crate) fn rest_name(rest: &[&Group]) -> Option<String> {
    match rest {
        [] => None,
        [only] => Some(only.name.clone()),
        many if many.iter().any(|g| g.kind == GroupKind::Rest) => Some("all others".to_owned()),
        many => Some(format!("{} others", many.len())),
    }
}

fn ring(page: &mut Page, slices: &[Slice<'_>]) {
    if slices.is_empty() {
        page.canvas.line(arc(OUTER, 0.0, TAU), 1.5, RULE);
        page.canvas.line(arc(INNER, 0.0, TAU), 1.5, RULE);
    }
    for slice in slices {
        let mut outline = arc(OUTER, slice.from, slice.to);
        outline.extend(arc(INNER, slice.from, slice.to).into_iter().rev());
        page.canvas.polygon(outline, slice.colour);
        page.describe(&slice.name, &slice.value_and_share());
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

fn labels(page: &mut Page, slices: &[Slice<'_>]) {
    for (right, align) in [(true, Align::Left), (false, Align::Right)] {
        let side = if right { 1.0 } else { -1.0 };
        let mut shown: Vec<&Slice<'_>> =
            slices.iter().filter(|s| (s.middle() <= PI) == right).collect();
        // From the top down on both sides, so that leaders don't cross.
        if !right {
            shown.reverse();
        }
        let wanted: Vec<f64> = shown.iter().map(|s| on_circle(OUTER, s.middle()).1).collect();
        let ys = spread(&wanted, LABEL_HEIGHT, (TOP + 20.0, HEIGHT - MARGIN - 20.0));
        let x = CENTRE.0 + side * LABEL_X;
        let room = if right { LEGEND_X - 16.0 - x } else { x - MARGIN };
        for (slice, y) in shown.into_iter().zip(ys) {
            let start = on_circle(OUTER + 3.0, slice.middle());
            let out = on_circle(OUTER + 14.0, slice.middle());
            let turn = (CENTRE.0 + side * TURN_X, out.1);
            page.canvas.line(vec![start, out, turn, (x - side * 5.0, y)], 1.0, MUTED);
            page.label(&slice.share, (x, y - 1.0), align, room, SHARE);
            page.label(&slice.name, (x, y + 16.0), align, room, NOTE);
        }
    }
}

fn legend(page: &mut Page, slices: &[Slice<'_>]) {
    let height = LEGEND_ROW * slices.len() as f64;
    for (i, slice) in slices.iter().enumerate() {
        let y = CENTRE.1 - height / 2.0 + LEGEND_ROW * i as f64;
        let (from, to) = ((LEGEND_X, y + 5.0), (LEGEND_X + 16.0, y + 21.0));
        page.canvas.rectangle(from, to, slice.colour);
        page.canvas.line(outline(from, to), 1.0, slice.colour.darker());
        let value = quantity(slice.value, slice.unit);
        let width = page.font.width(&value, BODY.size, BODY.weight);
        let right = WIDTH - MARGIN;
        let name_x = LEGEND_X + 26.0;
        let room = right - width - 14.0 - name_x;
        page.label(&slice.name, (name_x, y + 18.5), Align::Left, room, BODY);
        page.label(&value, (right, y + 18.5), Align::Right, width + 1.0, BODY);
    }
}

impl Slice<'_> {
    fn width(&self) -> f64 {
        self.to - self.from
    }

    /// Where its label points to; a slice that is all there is has its label on the right.
    fn middle(&self) -> f64 {
        if self.width() >= TAU - 1e-9 { PI / 2.0 } else { (self.from + self.to) / 2.0 }
    }

    fn value_and_share(&self) -> String {
        format!("{}, {}", quantity(self.value, self.unit), self.share)
    }
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

/// Moves ascending positions as little as needed for `gap` between them, within `bounds`.
fn spread(wanted: &[f64], gap: f64, bounds: (f64, f64)) -> Vec<f64> {
    let mut ys = wanted.to_vec();
    let mut least = bounds.0;
    for y in &mut ys {
        *y = y.max(least);
        least = *y + gap;
    }
    let mut most = bounds.1;
    for y in ys.iter_mut().rev() {
        *y = y.min(most);
        most = *y - gap;
    }
    ys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreading_keeps_the_gap_the_order_and_the_bounds() {
        assert_eq!(spread(&[100.0, 200.0], 40.0, (0.0, 500.0)), [100.0, 200.0]);
        assert_eq!(spread(&[100.0, 101.0, 102.0], 40.0, (0.0, 500.0)), [100.0, 140.0, 180.0]);
        assert_eq!(spread(&[490.0, 495.0, 499.0], 40.0, (0.0, 500.0)), [420.0, 460.0, 500.0]);
    }

    #[test]
    fn groups_without_a_colour_are_one_slice_and_it_is_last() {
        let kinds = |i| if i == 0 { GroupKind::Application } else { GroupKind::Library };
        let groups: Vec<Group> = (0..12)
            .map(|i| Group { name: format!("lib{i}"), kind: kinds(i), value: 1.0 + i as f64 })
            .collect();
        let slices = slices(&groups, Unit::Nanoseconds, 78.0);
        assert_eq!(slices.len(), 9);
        let last = &slices[8];
        assert_eq!((last.name.as_str(), last.value, last.colour), ("4 others", 42.0, REST));
        assert!((last.to - TAU).abs() < 1e-9);
        assert!(slices[..8].windows(2).all(|w| w[0].value >= w[1].value));
    }
}
