//! A finished chart.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg;

use crate::canvas::{Align, Canvas, Type};
use crate::font::{self, Font, Weight};
use crate::label::visible;
use crate::palette::{INK, MUTED, PAPER};
use crate::{Error, Heading};

/// Width of all charts, pixels. Text of 15 pixels on this is readable at 640.
pub(crate) const WIDTH: f64 = 960.0;
/// Free space at the edges.
pub(crate) const MARGIN: f64 = 24.0;
/// Where the chart proper may begin, below the heading.
pub(crate) const TOP: f64 = 88.0;
/// The same two where there is no heading.
const INSIDE: (f64, f64) = (2.0, 4.0);

/// Ordinary text.
pub(crate) const BODY: Type = Type { size: 15.0, weight: Weight::Regular, colour: INK };
/// What is read second.
pub(crate) const NOTE: Type = Type { colour: MUTED, ..BODY };
const TITLE: Type = Type { size: 22.0, weight: Weight::Bold, colour: INK };

/// Longest tooltip, characters: names can be megabytes long.
const TOOLTIP_CHARS: usize = 2000;
/// Most pixels of one side of a PNG.
const PNG_SIDE: u32 = 16_384;

/// A chart, as SVG, and as PNG on demand.
#[derive(Clone, Debug)]
pub struct Chart {
    svg: String,
    width: f64,
    height: f64,
}

impl Chart {
    /// A picture made elsewhere, so that it too can become a PNG.
    ///
    /// # Errors
    ///
    /// [`Error::Svg`] for what is no SVG.
    pub fn of_svg(svg: String) -> Result<Self, Error> {
        let size = usvg::Tree::from_str(&svg, &usvg::Options::default())?.size();
        Ok(Self { svg, width: size.width().into(), height: size.height().into() })
    }

    /// The chart as a complete SVG document.
    ///
    /// Natural size in pixels is in its `width` and `height`; it scales to any other.
    #[must_use]
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// The chart as a PNG, `width` pixels wide and as high as its shape demands.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] when `width` is 0, or when a side would exceed 16,384 pixels.
    pub fn png(&self, width: u32) -> Result<Vec<u8>, Error> {
        let max = (f64::from(PNG_SIDE) * (self.width / self.height).min(1.0)) as u32;
        if width == 0 || width > max {
            return Err(Error::Size { width, max });
        }
        let mut fonts = usvg::fontdb::Database::new();
        for face in font::data() {
            fonts.load_font_data(face.to_vec());
        }
        let options = usvg::Options { fontdb: Arc::new(fonts), ..usvg::Options::default() };
        let tree = usvg::Tree::from_str(&self.svg, &options)?;
        let scale = f64::from(width) / self.width;
        let height = (self.height * scale).round().max(1.0) as u32;
        let mut pixels = Pixmap::new(width, height).ok_or(Error::Size { width, max })?;
        resvg::render(
            &tree,
            Transform::from_scale(scale as f32, scale as f32),
            &mut pixels.as_mut(),
        );
        pixels.encode_png().map_err(|e| Error::Png(e.to_string()))
    }
}

/// What a chart is drawn on.
#[derive(Clone, Copy, Debug)]
pub struct Sheet<'a> {
    heading: Heading<'a>,
    width: f64,
    shows_heading: bool,
}

impl<'a> Sheet<'a> {
    /// A picture that stands by itself: as wide as [`pie`](crate::pie()), with its heading.
    #[must_use]
    pub fn alone(heading: Heading<'a>) -> Self {
        Self { heading, width: WIDTH, shows_heading: true }
    }

    /// A picture in a page that has the heading already, `width` pixels wide (at least 320). The
    /// heading is what a screen reader says.
    #[must_use]
    pub fn inside(heading: Heading<'a>, width: f64) -> Self {
        Self { heading, width: width.max(320.0), shows_heading: false }
    }

    /// Width between the margins, pixels.
    pub(crate) fn room(&self) -> f64 {
        self.width - 2.0 * if self.shows_heading { MARGIN } else { INSIDE.0 }
    }

    /// The same for what is `width` pixels wide between the margins; with a heading no less wide than it is.
    pub(crate) fn of_width(self, width: f64) -> Self {
        let least = if self.shows_heading { self.width } else { 0.0 };
        let margin = if self.shows_heading { MARGIN } else { INSIDE.0 };
        Self { width: (width + 2.0 * margin).max(least), ..self }
    }
}

/// What charts have in common: a page with a heading, and labels that keep to their room.
pub(crate) struct Page {
    pub(crate) canvas: Canvas,
    pub(crate) font: Font,
    /// Pixels.
    pub(crate) width: f64,
    /// Free space at the left and at the right.
    pub(crate) margin: f64,
    /// Where the chart proper may begin.
    pub(crate) top: f64,
    name: String,
}

impl Page {
    pub(crate) fn new(sheet: &Sheet<'_>) -> Result<Self, Error> {
        let heading = &sheet.heading;
        let (margin, top) = if sheet.shows_heading { (MARGIN, TOP) } else { INSIDE };
        let mut page = Self {
            canvas: Canvas::new(sheet.width),
            font: Font::new()?,
            width: sheet.width,
            margin,
            top,
            name: tooltip(&visible(&format!("{}. {}", heading.title, heading.subtitle))),
        };
        if sheet.shows_heading {
            let room = sheet.width - 2.0 * MARGIN;
            page.label(heading.title, (MARGIN, 40.0), Align::Left, room, TITLE);
            page.label(heading.subtitle, (MARGIN, 64.0), Align::Left, room, NOTE);
        }
        Ok(page)
    }

    /// Draws `label` in at most `room` pixels, with the whole of it as tooltip if it is longer;
    /// returns its width.
    pub(crate) fn label(
        &mut self,
        label: &str,
        at: (f64, f64),
        align: Align,
        room: f64,
        look: Type,
    ) -> f64 {
        let whole = visible(label);
        if whole.is_empty() {
            return 0.0;
        }
        let shown = self.font.shorten(&whole, room, look.size, look.weight);
        let shortened = shown != whole;
        let width = self.font.width(&shown, look.size, look.weight);
        self.canvas.text(shown, at, align, look);
        if shortened {
            self.canvas.tooltip(&tooltip(&whole));
        }
        width
    }

    /// Draws `label` from `at` on, cut at its end where it has no room: where labels are alike but for their beginnings.
    pub(crate) fn label_from_its_start(
        &mut self,
        label: &str,
        at: (f64, f64),
        room: f64,
        look: Type,
    ) {
        let whole = visible(label);
        let shown = self.font.cut(&whole, room, look.size, look.weight);
        let is_cut = shown != whole;
        self.canvas.text(shown, at, Align::Left, look);
        if is_cut {
            self.canvas.tooltip(&tooltip(&whole));
        }
    }

    /// Room between the left and the right margin.
    pub(crate) fn room(&self) -> f64 {
        self.width - 2.0 * self.margin
    }

    /// Width of `text` in `look`, rounded up.
    pub(crate) fn text_width(&self, text: &str, look: Type) -> f64 {
        self.font.width(text, look.size, look.weight).ceil()
    }

    /// Gives the latest mark a tooltip: `label`, then `value`.
    pub(crate) fn describe(&mut self, label: &str, value: &str) {
        let label = tooltip(&visible(label));
        self.canvas.tooltip(&format!("{label}: {value}"));
    }

    pub(crate) fn finish(self, height: f64) -> Result<Chart, Error> {
        let width = self.width;
        Ok(Chart { svg: self.canvas.into_svg(height, PAPER, &self.name)?, width, height })
    }
}

/// `text`, shortened in the middle if it is beyond what a tooltip can show.
pub(crate) fn tooltip(text: &str) -> String {
    if text.chars().nth(TOOLTIP_CHARS).is_none() {
        return text.to_owned();
    }
    let half = TOOLTIP_CHARS / 2;
    let head: String = text.chars().take(half).collect();
    let tail: Vec<char> = text.chars().rev().take(half).collect();
    head + "…" + &tail.into_iter().rev().collect::<String>()
}
