//! All slices with their values, in two columns below the ring.

use super::slices::Slice;
use super::{LEGEND, outline};
use crate::canvas::Align;
use crate::chart::{BODY, MARGIN, NOTE, Page, WIDTH};

const ROW: f64 = 30.0;
/// Space between the two columns.
const GUTTER: f64 = 48.0;
const COLUMN: f64 = (WIDTH - 2.0 * MARGIN - GUTTER) / 2.0;
/// Between name, share and value.
const GAP: f64 = 14.0;
/// Side of a colour's square, and where the name begins.
const SQUARE: f64 = 16.0;
const NAME_X: f64 = SQUARE + 10.0;

/// Height of the legend of so many slices.
pub(super) fn height(slices: usize) -> f64 {
    ROW * slices.div_ceil(2) as f64
}

/// Draws it, down the left column first.
pub(super) fn draw(page: &mut Page, slices: &[Slice]) {
    let widest = |page: &Page, text: fn(&Slice) -> &str| {
        let width = |slice| page.font.width(text(slice), BODY.size, BODY.weight) + 1.0;
        slices.iter().map(width).fold(0.0, f64::max)
    };
    let share_room = widest(page, |slice| &slice.share);
    let value_room = widest(page, |slice| &slice.quantity);
    let rows = slices.len().div_ceil(2);
    for (i, slice) in slices.iter().enumerate() {
        let x = MARGIN + if i < rows { 0.0 } else { COLUMN + GUTTER };
        let y = LEGEND + ROW * (i % rows) as f64;
        let (from, to) = ((x, y + 5.0), (x + SQUARE, y + 5.0 + SQUARE));
        page.canvas.rectangle(from, to, slice.colour);
        page.canvas.line(outline(from, to), 1.0, slice.colour.darker());
        let baseline = y + 18.5;
        let value_x = x + COLUMN;
        let share_x = value_x - value_room - GAP;
        let room = share_x - share_room - GAP - x - NAME_X;
        page.label(&slice.name, (x + NAME_X, baseline), Align::Left, room, BODY);
        page.label(&slice.share, (share_x, baseline), Align::Right, share_room, NOTE);
        page.label(&slice.quantity, (value_x, baseline), Align::Right, value_room, BODY);
    }
}
