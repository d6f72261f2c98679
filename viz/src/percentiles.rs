//! How slow the slowest are: quantiles on a logarithmic scale of 1/(1 − q).
//!
//! The axis is that of HdrHistogram's plots: each step to the right has a tenth of the calls of
//! the one before, so that the tail gets as much room as the rest.

use crate::canvas::{Align, Point, Type};
use crate::chart::{Chart, NOTE, Page, Sheet};
use crate::font::Weight;
use crate::palette::{self, REST, RULE};
use crate::quantity::quantity;
use crate::{Error, Group, GroupKind, Unit};

const PLOT_HEIGHT: f64 = 300.0;
const AXIS: Type = Type { size: 13.0, weight: Weight::Regular, ..NOTE };
/// Space above and below the curves, decades.
const MARGIN: f64 = 0.12;
/// Most of the width that names of curves get, and the height of one.
const NAMES: f64 = 0.3;
const LINE: f64 = 17.0;
const DASH: f64 = 7.0;

/// The quantiles of something.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name.
    pub label: String,
    /// What it is coloured as.
    pub kind: GroupKind,
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
    // No more than what there is: a whole decade below or above would press the curves into an edge.
    let lowest = fold(f64::INFINITY, f64::min, |p| p.1).log10() - MARGIN;
    let highest = fold(0.0, f64::max, |p| p.1).log10().max(lowest + 0.5) + MARGIN;
    let last = fold(10.0, f64::max, |p| p.0).log10();
    let axis_room = 62.0;
    let names = curves.iter().map(|curve| page.text_width(&curve.label, AXIS)).fold(0.0, f64::max);
    let names = names.min(page.width * NAMES) + 14.0;
    let (left, right) = (page.margin + axis_room, page.width - page.margin - names);
    let (top, bottom) = (page.top + 12.0, page.top + 12.0 + PLOT_HEIGHT);
    let place = |(inverse, value): (f64, f64)| -> Point {
        let x = left + (right - left) * inverse.log10() / last;
        let y = bottom - (bottom - top) * (value.log10() - lowest) / (highest - lowest);
        (x, y)
    };
    for value in values(lowest, highest) {
        let y = place((1.0, value)).1;
        page.canvas.line(vec![(left, y), (right, y)], 1.0, RULE);
        let text = quantity(value, unit).replace(".00", "").replace(".0 ", " ");
        page.label(&text, (left - 8.0, y + 4.5), Align::Right, axis_room - 10.0, AXIS);
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
    // Each curve has its name at its end.
    let ends: Vec<(f64, usize)> = curves
        .iter()
        .enumerate()
        .filter_map(|(number, curve)| Some((place(*curve.points.last()?).1, number)))
        .collect();
    for (y, number) in spread(ends, (top, bottom)) {
        let (curve, colour) = (&curves[number], colours[number]);
        let Some(&end) = curve.points.last() else { continue };
        let (x, end_y) = place(end);
        let path = vec![(x + 3.0, end_y), (right, y), (right + 6.0, y)];
        page.canvas.line(path, 1.0, colour);
        page.label_from_its_start(&curve.label, (right + 9.0, y + 4.5), names - 12.0, AXIS);
    }
    let height = bottom + 40.0 + page.margin / 2.0;
    page.finish(height)
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
    // Where curves have their points; a line that has no room for its name is left out.
    let marks = [2.0].into_iter().chain((1..=last.floor() as i32).map(|n| 10_f64.powi(n)));
    for inverse in marks {
        let (x, text) = (x_of(inverse), name(inverse));
        let width = page.text_width(&text, AXIS);
        let middle = x.min(page.width - page.margin - width / 2.0);
        if middle - width / 2.0 >= free {
            page.canvas.line(vec![(x, top), (x, bottom)], 1.0, RULE);
            page.label(&text, (middle, bottom + 19.0), Align::Middle, width, AXIS);
            free = middle + width / 2.0 + 8.0;
        }
    }
}

/// Round values between two, as logarithms: decades, or more of them where there are few decades.
fn values(lowest: f64, highest: f64) -> Vec<f64> {
    let decades = highest - lowest;
    let (steps, every): (&[f64], i32) = match decades {
        d if d < 1.5 => (&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], 1),
        d if d < 3.0 => (&[1.0, 2.0, 5.0], 1),
        d if d < 9.0 => (&[1.0], 1),
        d => (&[1.0], (d / 8.0).ceil() as i32),
    };
    let decades = (lowest.floor() as i32..=highest.floor() as i32).step_by(every.max(1) as usize);
    let all = decades.flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
    all.filter(|value| (lowest..=highest).contains(&value.log10())).collect()
}

/// Heights of names, from the top down, moved as little as it takes for none to be on another.
fn spread(mut ends: Vec<(f64, usize)>, (top, bottom): (f64, f64)) -> Vec<(f64, usize)> {
    ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut free = top + 4.0;
    for (y, _) in &mut ends {
        *y = y.max(free);
        free = *y + LINE;
    }
    let mut free = (bottom + LINE * 1.5).max(free - LINE);
    for (y, _) in ends.iter_mut().rev() {
        *y = y.min(free);
        free = *y - LINE;
    }
    ends
}

fn colours(curves: &[Curve]) -> Vec<palette::Colour> {
    let group = |curve: &Curve| Group { name: String::new(), kind: curve.kind, value: 0.0 };
    let assigned = palette::assign(&curves.iter().map(group).collect::<Vec<_>>());
    assigned.into_iter().map(|colour| colour.unwrap_or(REST)).collect()
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
    fn axes_have_round_values_and_not_too_many() {
        assert_eq!(values(1.9, 3.1), [100.0, 150.0, 200.0, 300.0, 500.0, 700.0, 1000.0]);
        assert_eq!(values(0.5, 2.9).len(), 7);
        assert!(values(0.0, 15.0).len() <= 9);
    }

    #[test]
    fn names_of_curves_are_apart() {
        let ends = vec![(100.0, 0), (101.0, 1), (290.0, 2), (299.0, 3)];
        let placed = spread(ends, (12.0, 300.0));
        assert_eq!(placed.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(placed.windows(2).all(|pair| pair[1].0 - pair[0].0 >= LINE - 1e-9), "{placed:?}");
    }

    #[test]
    fn dashes_leave_out_every_second_piece() {
        let pieces = dashes(&[(0.0, 0.0), (28.0, 0.0)]);
        let starts: Vec<f64> = pieces.iter().map(|piece| piece[0].0).collect();
        assert_eq!(starts, [0.0, 14.0]);
        assert!(pieces.iter().all(|piece| (piece[1].0 - piece[0].0 - DASH).abs() < 1e-9));
    }
}
