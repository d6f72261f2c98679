//! Charts as SVG text and PNG bytes, from labels and values.
//!
//! * [`pie()`]: how a total is shared by groups, such as libraries
//! * [`sunburst()`]: the same, and around each group how its part is shared by its own parts
//! * [`bars()`]: the largest single entries, such as APIs, coloured by their group
//! * [`stacked()`]: entries that are made of the same few parts
//! * [`heat()`]: a table whose cells are shaded
//! * [`graph()`]: who does what with whom, as boxes and arrows
//! * [`percentiles()`]: how slow the slowest are, on a logarithmic scale of 1/(1 − q)
//!
//! Charts made with the same groups in the same order give each group the same colour.
//!
//! Constraints:
//!
//! - The same input gives the same bytes, on any machine: text is measured, and drawn in PNGs,
//!   with a font that is part of this crate (DejaVu Sans, licence in `assets/`). Scripts that it
//!   lacks, such as Chinese, are boxes in the PNG.
//! - Labels are data. Whatever they contain ends up as visible text; no character of a label is
//!   ever markup, a control code or a change of the writing direction.
//! - Labels that don't fit are shortened in the middle and given in full as the SVG's tooltip.
//! - Colour is never the only carrier of a fact: each mark also has its name beside it.
//!
//! What it does not do: read or write files, know of recordings, pick what to show, print. The
//! PNG is rendered from the SVG, so the two can't differ.

mod bars;
mod canvas;
mod chart;
mod data;
mod error;
mod font;
mod graph;
mod heat;
mod label;
mod palette;
mod percentiles;
mod pie;
mod quantity;
mod stacked;
mod sunburst;

pub use bars::bars;
pub use chart::{Chart, Sheet};
pub use data::{Bar, Group, GroupKind, Heading, State, Unit};
pub use error::Error;
pub use graph::{Graph, GraphArrow, GraphNode, graph};
pub use heat::{Cell, HeatRow, heat};
pub use label::visible;
pub use palette::{colours, part_colour, state_colour};
pub use percentiles::{Curve, percentiles};
pub use pie::pie;
pub use quantity::{bytes, count, plural, quantity, rough_duration, share};
pub use stacked::{StackRow, stacked};
pub use sunburst::{Part, Segment, sunburst};
