//! A table whose cells are shaded by how much there is in them.

use crate::canvas::{Align, Type};
use crate::chart::{BODY, Chart, NOTE, Page, Sheet};
use crate::data::total;
use crate::font::Weight;
use crate::palette::{Colour, HEAT, INK, RULE};
use crate::pie::outline;
use crate::{Error, label};

const ROW: f64 = 22.0;
/// Widest that a column becomes.
const COLUMN: f64 = 84.0;
/// Most height for the names of columns.
const HEAD: f64 = 150.0;
const SMALL: Type = Type { size: 12.0, weight: Weight::Regular, colour: INK };
const NAME: Type = Type { size: 13.0, ..BODY };
const STRONG: Type = Type { weight: Weight::Bold, ..NAME };

/// A cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// How dark it is: a fraction of the darkest shade; 0 is as light as nothing.
    pub part: f64,
    /// What is written in it where there is room.
    pub text: String,
    /// What the tooltip says beside the names of row and column.
    pub detail: String,
}

/// A row.
#[derive(Clone, Debug)]
pub struct HeatRow {
    /// Its name.
    pub label: String,
    /// Whether it must not be missed: its name is bold, and the row is framed.
    pub marked: bool,
    /// Its cells, in the order of the columns.
    pub cells: Vec<Cell>,
}

/// `rows` and `columns` in the order given; `scale` says what the lightest and the darkest shade
/// are.
///
/// # Errors
///
/// [`Error::Value`] for a part that is negative or not finite.
pub fn heat(
    sheet: &Sheet<'_>,
    columns: &[String],
    rows: &[HeatRow],
    scale: (&str, &str),
) -> Result<Chart, Error> {
    for row in rows {
        total(row.cells.iter().map(|cell| (&*row.label, cell.part)))?;
    }
    let mut page = Page::new(sheet)?;
    let widest = |page: &Page, texts: &mut dyn Iterator<Item = &str>, look| {
        texts.map(|text| page.text_width(text, look)).fold(0.0, f64::max)
    };
    let labels = widest(&page, &mut rows.iter().map(|row| &*row.label), STRONG) + 12.0;
    let labels = labels.min(page.room() * 0.34);
    let head = widest(&page, &mut columns.iter().map(|name| &**name), NAME).min(HEAD) + 8.0;
    let column = ((page.room() - labels) / columns.len().max(1) as f64).min(COLUMN);
    let (left, top) = (page.margin + labels, page.top + head);
    for (number, name) in columns.iter().enumerate() {
        let x = left + column * (number as f64 + 0.5) + 4.5;
        let whole = label::visible(name);
        let shown = page.font.shorten(&whole, head - 6.0, NAME.size, NAME.weight);
        page.canvas.text_upwards(shown, (x, top - 5.0), NAME);
        page.canvas.tooltip(&whole);
    }
    for (number, row) in rows.iter().enumerate() {
        let y = top + ROW * number as f64;
        let look = if row.marked { STRONG } else { NAME };
        page.label(&row.label, (page.margin, y + 15.5), Align::Left, labels - 10.0, look);
        for (number, (cell, name)) in row.cells.iter().zip(columns).enumerate() {
            let from = (left + column * number as f64, y);
            let colour = shade(cell.part);
            page.canvas.rectangle(
                (from.0 + 0.5, y + 0.5),
                (from.0 + column - 0.5, y + ROW - 0.5),
                colour,
            );
            page.describe(&format!("{}, {name}", row.label), &cell.detail);
            let look = Type { colour: colour.ink(), ..SMALL };
            let width = page.text_width(&cell.text, look);
            if width + 4.0 <= column {
                let at = (from.0 + column / 2.0, y + 15.5);
                page.label(&cell.text, at, Align::Middle, width, look);
            }
        }
        if row.marked {
            let right = left + column * columns.len() as f64;
            page.canvas.line(outline((left, y), (right, y + ROW)), 1.5, INK);
        }
    }
    let mut y = top + ROW * rows.len() as f64;
    if rows.is_empty() || columns.is_empty() {
        page.label("Nothing to show.", (page.margin, y + 16.0), Align::Left, page.room(), NOTE);
        y += ROW;
    }
    y = legend(&mut page, y + 12.0, scale);
    let height = y + page.margin / 2.0;
    page.finish(height)
}

fn shade(part: f64) -> Colour {
    if part <= 0.0 {
        return HEAT[0];
    }
    let step = (part * (HEAT.len() - 1) as f64).ceil() as usize;
    HEAT[step.clamp(1, HEAT.len() - 1)]
}

fn legend(page: &mut Page, y: f64, (low, high): (&str, &str)) -> f64 {
    let third = page.room() / 3.0;
    let width = page.label(low, (page.margin, y + 14.0), Align::Left, third, NOTE);
    let mut x = page.margin + width + 10.0;
    for colour in HEAT {
        let (from, to) = ((x, y + 2.0), (x + 18.0, y + 17.0));
        page.canvas.rectangle(from, to, colour);
        page.canvas.line(outline(from, to), 0.5, RULE);
        x = to.0;
    }
    let room = page.width - page.margin - x - 10.0;
    page.label(high, (x + 10.0, y + 14.0), Align::Left, room, NOTE);
    y + 24.0
}
