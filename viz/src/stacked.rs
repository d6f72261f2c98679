//! Entries that are made of the same few parts, as horizontal stacked bars.

use crate::canvas::Align;
use crate::chart::{BODY, Chart, NOTE, Page, Sheet};
use crate::data::total;
use crate::palette::{self, REST, RULE};
use crate::pie::outline;
use crate::quantity::quantity;
use crate::{Error, Group, Unit};

/// Height of a name and its bar, and the space to the next.
const ROW: f64 = 46.0;
/// Height of a line of the legend.
const LEGEND: f64 = 26.0;
/// Side of a colour's square in the legend.
const SQUARE: f64 = 14.0;
const GAP: f64 = 22.0;

/// An entry.
#[derive(Clone, Debug)]
pub struct StackRow {
    /// Its name.
    pub label: String,
    /// Its parts, in the order of the series; there may be fewer.
    pub values: Vec<f64>,
}

/// `rows` in the order given, each a bar of one part per series. The values of `series` are not
/// used; series in which no row has anything are left out of the legend.
///
/// # Errors
///
/// [`Error::Value`] for a value that is negative or not finite.
pub fn stacked(
    sheet: &Sheet<'_>,
    unit: Unit<'_>,
    series: &[Group],
    rows: &[StackRow],
) -> Result<Chart, Error> {
    let mut longest: f64 = 0.0;
    for row in rows {
        longest = longest.max(total(row.values.iter().map(|&value| (&*row.label, value)))?);
    }
    let colours: Vec<_> =
        palette::assign(series).into_iter().map(|colour| colour.unwrap_or(REST)).collect();
    let mut page = Page::new(sheet)?;
    let mut y = page.top;
    let mut x = page.margin;
    for (number, (series, &colour)) in series.iter().zip(&colours).enumerate() {
        if !rows.iter().any(|row| row.values.get(number).is_some_and(|&value| value > 0.0)) {
            continue;
        }
        let room = page.room() - SQUARE - 8.0;
        let width = SQUARE + 8.0 + page.text_width(&series.name, BODY).min(room);
        if x > page.margin && x + width > page.width - page.margin {
            (x, y) = (page.margin, y + LEGEND);
        }
        let (from, to) = ((x, y + 4.0), (x + SQUARE, y + 4.0 + SQUARE));
        page.canvas.rectangle(from, to, colour);
        page.canvas.line(outline(from, to), 1.0, colour.darker());
        page.label(&series.name, (to.0 + 8.0, y + 16.0), Align::Left, room, BODY);
        x += width + GAP;
    }
    y += LEGEND + 10.0;

    let value =
        |row: &StackRow| quantity(row.values.iter().fold(0.0, |sum, value| sum + value), unit);
    let value_room =
        rows.iter().map(|row| page.text_width(&value(row), NOTE) + 1.0).fold(0.0, f64::max);
    let scale = if longest > 0.0 { (page.room() - value_room - 10.0) / longest } else { 0.0 };
    for row in rows {
        page.label(&row.label, (page.margin, y + 15.0), Align::Left, page.room(), BODY);
        let mut x = page.margin;
        for ((part, series), &colour) in row.values.iter().zip(series).zip(&colours) {
            let (from, to) = ((x, y + 22.0), (x + part * scale, y + 37.0));
            if *part > 0.0 {
                page.canvas.rectangle(from, to, colour);
                let label = format!("{}: {}", row.label, series.name);
                page.describe(&label, &quantity(*part, unit));
            }
            x = to.0;
        }
        if x > page.margin {
            page.canvas.line(outline((page.margin, y + 22.0), (x, y + 37.0)), 0.5, RULE);
        } else {
            page.canvas.line(vec![(x, y + 22.0), (x, y + 37.0)], 1.0, RULE);
        }
        page.label(&value(row), (x + 8.0, y + 35.0), Align::Left, value_room, NOTE);
        y += ROW;
    }
    if rows.is_empty() {
        page.label("Nothing to show.", (page.margin, y + 16.0), Align::Left, page.room(), NOTE);
        y += ROW;
    }
    let height = y + page.margin / 2.0;
    page.finish(height)
}
