//! A display list, drawn as SVG by plotters.
//!
//! plotters draws on whole units, so a unit here is a tenth of a pixel and the SVG's `viewBox`
//! scales it back. plotters knows no tooltips: they are put around its elements afterwards.

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, ShapeStyle, TextStyle,
};

use crate::Error;
use crate::font::{FAMILY, Weight};
use crate::label::escape_xml;
use crate::palette::Colour;

/// A point in pixels, from the upper left.
pub(crate) type Point = (f64, f64);

/// Units of the drawing per pixel.
const SCALE: f64 = 10.0;
/// plotters divides font sizes by this on the way to the SVG.
const PLOTTERS_FONT_SCALE: f64 = 1.24;
/// plotters' distance from the top of text to its baseline, in em.
const ASCENT_EM: f64 = 0.76;

/// Which end of a text its position is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Align {
    Left,
    Middle,
    Right,
}

/// How text looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type {
    /// Pixels per em.
    pub(crate) size: f64,
    pub(crate) weight: Weight,
    pub(crate) colour: Colour,
}

enum Mark {
    Rectangle {
        from: Point,
        to: Point,
        colour: Colour,
    },
    /// Perhaps with an outline of 1 px.
    Polygon {
        points: Vec<Point>,
        colour: Colour,
        outline: Option<Colour>,
    },
    Line {
        points: Vec<Point>,
        width: f64,
        colour: Colour,
        is_dashed: bool,
    },
    Text {
        text: String,
        at: Point,
        align: Align,
        look: Type,
        upwards: bool,
    },
}

/// A mark, and what is known of it beside how it looks.
struct Drawn {
    mark: Mark,
    tooltip: Option<String>,
    key: Option<String>,
}

/// A picture being drawn.
pub(crate) struct Canvas {
    width: f64,
    marks: Vec<Drawn>,
}

impl Canvas {
    /// An empty picture `width` pixels wide; its height is known at the end.
    pub(crate) fn new(width: f64) -> Self {
        Self { width, marks: Vec::new() }
    }

    pub(crate) fn rectangle(&mut self, from: Point, to: Point, colour: Colour) {
        self.push(Mark::Rectangle { from, to, colour });
    }

    pub(crate) fn polygon(&mut self, points: Vec<Point>, colour: Colour, outline: Option<Colour>) {
        self.push(Mark::Polygon { points, colour, outline });
    }

    pub(crate) fn line(&mut self, points: Vec<Point>, width: f64, colour: Colour) {
        self.styled_line(points, width, colour, false);
    }

    pub(crate) fn styled_line(
        &mut self,
        points: Vec<Point>,
        width: f64,
        colour: Colour,
        is_dashed: bool,
    ) {
        self.push(Mark::Line { points, width, colour, is_dashed });
    }

    /// One line of text with its baseline at `at`. It must be visible text (`label::visible`).
    pub(crate) fn text(&mut self, text: String, at: Point, align: Align, look: Type) {
        self.push(Mark::Text { text, at, align, look, upwards: false });
    }

    /// As [`text`](Self::text), from `at` up, with the baseline on the right.
    pub(crate) fn text_upwards(&mut self, text: String, at: Point, look: Type) {
        self.push(Mark::Text { text, at, align: Align::Left, look, upwards: true });
    }

    /// Gives the latest mark a tooltip.
    pub(crate) fn tooltip(&mut self, text: &str) {
        if let Some(drawn) = self.marks.last_mut() {
            drawn.tooltip = Some(text.to_owned());
        }
    }

    /// Gives the latest mark, which has a tooltip, a key by which a page may find it.
    pub(crate) fn key(&mut self, key: &str) {
        if let Some(drawn) = self.marks.last_mut() {
            drawn.key = Some(key.to_owned());
        }
    }

    fn push(&mut self, mark: Mark) {
        self.marks.push(Drawn { mark, tooltip: None, key: None });
    }

    /// The picture on `paper` as SVG, `height` pixels high; `name` is what a screen reader says.
    pub(crate) fn into_svg(
        mut self,
        height: f64,
        paper: Colour,
        name: &str,
    ) -> Result<String, Error> {
        let mark = Mark::Rectangle { from: (0.0, 0.0), to: (self.width, height), colour: paper };
        self.marks.insert(0, Drawn { mark, tooltip: None, key: None });
        let mut drawn = String::new();
        let size = (unit(self.width) as u32, unit(height) as u32);
        let mut backend = SVGBackend::with_string(&mut drawn, size);
        for drawn in &self.marks {
            draw(&mut backend, &drawn.mark)?;
        }
        backend.present().map_err(|e| Error::Draw(e.to_string()))?;
        drop(backend);

        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
             viewBox=\"0 0 {} {}\" font-family=\"{FAMILY}\" role=\"img\" aria-label=\"{}\">\n",
            self.width,
            height,
            size.0,
            size.1,
            escape_xml(name)
        );
        let mut marks = self.marks.iter();
        for element in elements(&drawn) {
            let mark = marks.next();
            let element = compact(element, mark.map(|drawn| &drawn.mark));
            match mark.and_then(|mark| mark.tooltip.as_deref()) {
                Some(tooltip) => {
                    let key = mark.and_then(|mark| mark.key.as_deref());
                    let key = key.map(|key| format!(" data-key=\"{}\"", escape_xml(key)));
                    let (key, tooltip) = (key.unwrap_or_default(), escape_xml(tooltip));
                    svg.push_str(&format!("<g{key}><title>{tooltip}</title>\n{element}</g>\n"));
                }
                None => svg.push_str(&element),
            }
        }
        svg.push_str("</svg>\n");
        Ok(svg)
    }
}

/// The elements inside the `svg` element, as plotters writes them: each starts on a line of its
/// own, and only text has lines that do not start with a tag (its `<` are escaped).
fn elements(svg: &str) -> impl Iterator<Item = &str> {
    let inside = svg.split_once('\n').map_or("", |(_, rest)| rest);
    let mut rest = inside.strip_suffix("</svg>\n").unwrap_or(inside);
    std::iter::from_fn(move || {
        let end = if rest.starts_with("<text") { "</text>\n" } else { "\n" };
        let len = rest.find(end).map(|at| at + end.len())?;
        let (element, after) = rest.split_at(len);
        rest = after;
        Some(element)
    })
}

/// An element in fewer bytes, since a page has thousands: without what is the default or is said once for the picture, and a
/// polygon by the way from each corner to the next, in a tenth of a pixel.
fn compact(element: &str, mark: Option<&Mark>) -> String {
    if let Some(Mark::Polygon { points, colour, outline }) = mark {
        let (way, fill) = (way(points), colour.hex());
        let stroke = outline
            .map(|colour| format!(" stroke=\"{}\" stroke-width=\"{}\"", colour.hex(), unit(1.0)));
        return format!("<path d=\"{way}\" fill=\"{fill}\"{}/>\n", stroke.unwrap_or_default());
    }
    let (tag, rest) = element.split_at(element.find('>').unwrap_or(0));
    let dashes = match mark {
        Some(Mark::Line { is_dashed: true, .. }) => {
            format!("<polyline stroke-dasharray=\"{} {}\" ", unit(5.0), unit(4.0))
        }
        _ => "<polyline ".to_owned(),
    };
    let tag = tag
        .replace("<polyline ", &dashes)
        .replace(" opacity=\"1\"", "")
        .replace(" stroke=\"none\"", "")
        .replace(" text-anchor=\"start\"", "")
        .replace(&format!(" font-family=\"{FAMILY}\""), "");
    // plotters puts a text on a line of its own.
    let text = rest.strip_prefix(">\n").and_then(|rest| rest.strip_suffix("\n</text>\n"));
    match text {
        Some(text) => format!("{tag}>{text}</text>\n"),
        None => tag + rest,
    }
}

/// The way around a polygon, as `path` elements have it. Of a polygon without extent it is its place: an `l` with no
/// numbers behind it would be no path.
fn way(points: &[Point]) -> String {
    let mut corners = points.iter().map(|point| place(*point));
    let Some(first) = corners.next() else { return String::new() };
    let mut way = format!("M{} {}", first.0, first.1);
    let (mut from, mut mark) = (first, 'l');
    for (x, y) in corners {
        let step = (x - from.0, y - from.1);
        if step != (0, 0) {
            way.push_str(&format!("{mark}{} {}", step.0, step.1));
            mark = ' ';
        }
        from = (x, y);
    }
    // A minus sign is enough between two numbers.
    way.replace(" -", "-") + "z"
}

fn draw(backend: &mut SVGBackend<'_>, mark: &Mark) -> Result<(), Error> {
    let drawn = match mark {
        Mark::Rectangle { from, to, colour } => {
            backend.draw_rect(place(*from), place(*to), &rgb(*colour), true)
        }
        Mark::Polygon { points, colour, .. } => {
            backend.fill_polygon(points.iter().map(|p| place(*p)), &rgb(*colour))
        }
        Mark::Line { points, width, colour, is_dashed: _ } => {
            let style = ShapeStyle::from(rgb(*colour)).stroke_width(unit(*width) as u32);
            backend.draw_path(points.iter().map(|p| place(*p)), &style)
        }
        Mark::Text { text, at, align, look, upwards } => {
            let weight = match look.weight {
                Weight::Regular => FontStyle::Normal,
                Weight::Bold => FontStyle::Bold,
            };
            let size = look.size * SCALE;
            let mut font =
                FontDesc::new(FontFamily::Name(FAMILY), size * PLOTTERS_FONT_SCALE, weight);
            let mut start = (at.0, at.1 - ASCENT_EM * look.size);
            if *upwards {
                font = font.transform(FontTransform::Rotate270);
                start = (at.0 - ASCENT_EM * look.size, at.1);
            }
            let side = match align {
                Align::Left => HPos::Left,
                Align::Middle => HPos::Center,
                Align::Right => HPos::Right,
            };
            let colour = rgb(look.colour);
            let style = TextStyle::from(font).color(&colour).pos(Pos::new(side, VPos::Top));
            backend.draw_text(text, &style, place(start))
        }
    };
    drawn.map_err(|e| Error::Draw(e.to_string()))
}

fn rgb(colour: Colour) -> RGBColor {
    RGBColor(colour.red, colour.green, colour.blue)
}

fn place(point: Point) -> (i32, i32) {
    (unit(point.0), unit(point.1))
}

fn unit(pixels: f64) -> i32 {
    (pixels * SCALE).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polygons_are_valid_paths_whatever_they_have_of_corners() {
        let cases: [(&[Point], &str); 5] = [
            (&[], ""),
            (&[(1.0, 2.0)], "M10 20z"),
            (&[(1.0, 2.0), (1.0, 2.01)], "M10 20z"),
            (&[(1.0, 2.0), (1.0, 2.0), (0.0, 3.0)], "M10 20l-10 10z"),
            (&[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 0.5)], "M0 0l10 0 0 10-10-5z"),
        ];
        for (points, expected) in cases {
            assert_eq!(way(points), expected);
        }
    }

    #[test]
    fn what_a_picture_says_once_is_not_in_its_texts() {
        let mut canvas = Canvas::new(10.0);
        let ink = Colour { red: 0, green: 0, blue: 0 };
        let look = Type { size: 1.0, weight: Weight::Regular, colour: ink };
        canvas.text("a b".to_owned(), (1.0, 2.0), Align::Left, look);
        let svg = canvas.into_svg(10.0, ink, "name").expect("a picture");
        assert_eq!(svg.matches("font-family").count(), 1, "{svg}");
        assert!(svg.contains(">a b</text>") && !svg.contains("text-anchor"), "{svg}");
    }
}
