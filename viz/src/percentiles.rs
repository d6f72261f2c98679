//! How slow the slowest are: quantiles on a logarithmic scale of 1/(1 − q).
//!
//! The axis is that of HdrHistogram's plots: each step to the right has a tenth of the calls of
//! the one before, so that the tail gets as much room as the rest.

use crate::canvas::{Align, Point, Type};
use crate::chart::{BODY, Chart, NOTE, Page, Sheet};
use crate::font::Weight;
use crate::palette::{self, REST, RULE};
use crate::quantity::quantity;
use crate::{Error, Group, GroupKind, Unit};

const PLOT_HEIGHT: f64 = 300.0;
const AXIS: Type = Type { size: 13.0, weight: Weight::Regular, ..NOTE };
const LEGEND: f64 = 24.0;
/// Length of a line's sample in the legend.
const SAMPLE: f64 = 26.0;
const DASH: f64 = 7.0;

/// The quantiles of something.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name.
    pub label: String,
    /// Curves with the same number have the same colour.
    pub colour: usize,
    /// For what others are compared with.
    pub dashed: bool,
    /// 1/(1 − q), at least 1 (the maximum of *n* values is at *n*), and the value there, more than
    /// 0; both ascending.
    pub points: Vec<(f64, f64)>,
}

/// `curves` over one another; both axes are logarithmic.
///
/// # Errors
///
/// [`Error::Value`] for a point that has no place on the axes.
pub fn percentiles(sheet: &Sheet<'_>, unit: Unit<'_>, curves: &[Curve]) -> Result<Chart, Error> {
    for curve in curves {
        for &(inverse, value) in &curve.points {
            for value in [inverse, value] {
                if !value.is_finite() || value <= 0.0 || inverse < 1.0 {
                    return Err(Error::Value { label: curve.label.clone(), value });
                }
            }
        }
    }
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let mut page = Page::new(sheet)?;
    if all().next().is_none() {
        let at = (page.margin, page.top + 16.0);
        page.label("Nothing to show.", at, Align::Left, page.room(), NOTE);
        let height = page.top + 40.0 + page.margin;
        return page.finish(height);
    }
    let fold = |start: f64, of: fn(f64, f64) -> f64, value: fn(&(f64, f64)) -> f64| {
        all().map(value).fold(start, of)
    };
    let lowest = fold(f64::INFINITY, f64::min, |p| p.1).log10().floor();
    let highest = fold(0.0, f64::max, |p| p.1).log10().ceil().max(lowest + 1.0);
    let last = fold(10.0, f64::max, |p| p.0).log10();
    let axis_room = 62.0;
    let (left, right) = (page.margin + axis_room, page.width - page.margin - 12.0);
    let (top, bottom) = (page.top + 12.0, page.top + 12.0 + PLOT_HEIGHT);
    let place = |(inverse, value): (f64, f64)| -> Point {
        let x = left + (right - left) * inverse.log10() / last;
        let y = bottom - (bottom - top) * (value.log10() - lowest) / (highest - lowest);
        (x, y)
    };
    // Decades, as many as have room for their names.
    let step = ((highest - lowest) / 8.0).ceil().max(1.0);
    let mut decade = lowest;
    while decade <= highest {
        let y = place((1.0, 10.0_f64.powf(decade))).1;
        page.canvas.line(vec![(left, y), (right, y)], 1.0, RULE);
        let text = quantity(10.0_f64.powf(decade), unit).replace(".00", "").replace(".0 ", " ");
        page.label(&text, (left - 8.0, y + 4.5), Align::Right, axis_room - 10.0, AXIS);
        decade += step;
    }
    ticks(&mut page, last, (top, bottom), &|inverse| place((inverse, 1.0)).0);
    let colours = colours(curves);
    for (curve, &colour) in curves.iter().zip(&colours) {
        let points: Vec<Point> = curve.points.iter().map(|&point| place(point)).collect();
        for line in if curve.dashed { dashes(&points) } else { vec![points.clone()] } {
            page.canvas.line(line, 2.0, colour);
        }
        for (&(x, y), &(inverse, value)) in points.iter().zip(&curve.points) {
            page.canvas.rectangle((x - 2.5, y - 2.5), (x + 2.5, y + 2.5), colour);
            page.describe(&format!("{}, {}", curve.label, name(inverse)), &quantity(value, unit));
        }
    }
    let height = legend(&mut page, bottom + 40.0, curves, &colours);
    let margin = page.margin;
    page.finish(height + margin / 2.0)
}

/// `p99.9` for 1000.
fn name(inverse: f64) -> String {
    let percent = 100.0 - 100.0 / inverse;
    let digits = (inverse.log10() - 2.0).ceil().clamp(0.0, 6.0) as usize;
    let text = format!("{percent:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("p{text}")
}

fn ticks(page: &mut Page, last: f64, (top, bottom): (f64, f64), x_of: &dyn Fn(f64) -> f64) {
    let mut free = 0.0;
    let marks = [2.0, 4.0].into_iter().chain((1..=last.floor() as i32).map(|n| 10_f64.powi(n)));
    for inverse in marks {
        let (x, text) = (x_of(inverse), name(inverse));
        page.canvas.line(vec![(x, top), (x, bottom)], 1.0, RULE);
        let width = page.text_width(&text, AXIS);
        let middle = x.min(page.width - page.margin - width / 2.0);
        if middle - width / 2.0 >= free {
            page.label(&text, (middle, bottom + 19.0), Align::Middle, width, AXIS);
            free = middle + width / 2.0 + 8.0;
        }
    }
}

fn colours(curves: &[Curve]) -> Vec<palette::Colour> {
    let numbers = curves.iter().map(|curve| curve.colour + 1).max().unwrap_or(0);
    let group = |_| Group { name: String::new(), kind: GroupKind::Library, value: 0.0 };
    let groups: Vec<Group> = (0..numbers).map(group).collect();
    let assigned = palette::assign(&groups);
    curves.iter().map(|curve| assigned[curve.colour].unwrap_or(REST)).collect()
}

fn legend(page: &mut Page, mut y: f64, curves: &[Curve], colours: &[palette::Colour]) -> f64 {
    let mut x = page.margin;
    for (curve, &colour) in curves.iter().zip(colours) {
        let room = page.room() - SAMPLE - 8.0;
        let width = SAMPLE + 8.0 + page.text_width(&curve.label, BODY).min(room);
        if x > page.margin && x + width > page.width - page.margin {
            (x, y) = (page.margin, y + LEGEND);
        }
        let points = vec![(x, y + 11.0), (x + SAMPLE, y + 11.0)];
        for line in if curve.dashed { dashes(&points) } else { vec![points] } {
            page.canvas.line(line, 3.0, colour);
        }
        page.label(&curve.label, (x + SAMPLE + 8.0, y + 16.0), Align::Left, room, BODY);
        x += width + 20.0;
    }
    y + LEGEND
}

/// A line in pieces with gaps as long as they are.
fn dashes(points: &[Point]) -> Vec<Vec<Point>> {
    let mut pieces = Vec::new();
    let (mut left, mut draws) = (DASH, true);
    for pair in points.windows(2) {
        let (mut at, to) = (pair[0], pair[1]);
        loop {
            let length = (to.0 - at.0).hypot(to.1 - at.1);
            let step = length.min(left);
            if length <= 0.0 {
                break;
            }
            let part = step / length;
            let next = (at.0 + (to.0 - at.0) * part, at.1 + (to.1 - at.1) * part);
            if draws {
                pieces.push(vec![at, next]);
            }
            (at, left) = (next, left - step);
            if left <= 1e-9 {
                (left, draws) = (DASH, !draws);
            }
            if step >= length {
                break;
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_named_as_people_do() {
        let names = [(2.0, "p50"), (4.0, "p75"), (10.0, "p90"), (100.0, "p99"), (1e3, "p99.9")];
        for (inverse, text) in names {
            assert_eq!(name(inverse), text);
        }
        assert_eq!(name(1e5), "p99.999");
    }

    #[test]
    fn dashes_leave_out_every_second_piece() {
        let pieces = dashes(&[(0.0, 0.0), (28.0, 0.0)]);
        let starts: Vec<f64> = pieces.iter().map(|piece| piece[0].0).collect();
        assert_eq!(starts, [0.0, 14.0]);
        assert!(pieces.iter().all(|piece| (piece[1].0 - piece[0].0 - DASH).abs() < 1e-9));
    }
}
