//! Widths of text in the embedded font.
//!
//! DejaVu Sans is among the widest of the common sans-serif fonts, so that what fits here also
//! fits where a viewer of the SVG has to take another one.

use ttf_parser::Face;

use crate::Error;

/// `font-family` of the SVGs: the font measured with first, then one as wide.
pub(crate) const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

/// Stands for what was left out of a shortened text.
const ELLIPSIS: &str = "…";

/// How heavy text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Regular,
    Bold,
}

/// The bytes of all faces.
pub(crate) fn data() -> [&'static [u8]; 2] {
    [dejavu::sans::regular(), dejavu::sans::bold()]
}

/// Measures text.
pub(crate) struct Font {
    regular: Face<'static>,
    bold: Face<'static>,
}

impl Font {
    pub(crate) fn new() -> Result<Self, Error> {
        let [regular, bold] = data();
        Ok(Self { regular: Face::parse(regular, 0)?, bold: Face::parse(bold, 0)? })
    }

    /// Width of `text` at `size` pixels per em; kerning, which only narrows, is not counted.
    pub(crate) fn width(&self, text: &str, size: f64, weight: Weight) -> f64 {
        text.chars().map(|c| self.advance(c, size, weight)).sum()
    }

    /// `text`, or as much of its start and end as fits into `room` pixels.
    pub(crate) fn shorten(&self, text: &str, room: f64, size: f64, weight: Weight) -> String {
        // Names can be megabytes long; measuring stops as soon as the room is used up.
        let mut left = room;
        let fits = text.chars().all(|c| {
            left -= self.advance(c, size, weight);
            left >= 0.0
        });
        if fits {
            return text.to_owned();
        }
        let mut left = room - self.width(ELLIPSIS, size, weight);
        let mut tail = text.chars().rev();
        let (mut start, mut end) = (String::new(), Vec::new());
        // In turns, so that both ends get their half of the room.
        for c in text.chars() {
            left -= self.advance(c, size, weight);
            if left < 0.0 {
                break;
            }
            start.push(c);
            let Some(c) = tail.next() else { break };
            left -= self.advance(c, size, weight);
            if left < 0.0 {
                break;
            }
            end.push(c);
        }
        start.push_str(ELLIPSIS);
        start.extend(end.iter().rev());
        start
    }

    /// `text`, or as much of its start as fits into `room` pixels.
    pub(crate) fn cut(&self, text: &str, room: f64, size: f64, weight: Weight) -> String {
        let mut left = room;
        let mut fits = |c: char| {
            left -= self.advance(c, size, weight);
            left >= 0.0
        };
        if text.chars().all(&mut fits) {
            return text.to_owned();
        }
        left = room - self.width(ELLIPSIS, size, weight);
        let mut fits = |c: &char| {
            left -= self.advance(*c, size, weight);
            left >= 0.0
        };
        let start: String = text.chars().take_while(&mut fits).collect();
        start + ELLIPSIS
    }

    fn advance(&self, c: char, size: f64, weight: Weight) -> f64 {
        let face = match weight {
            Weight::Regular => &self.regular,
            Weight::Bold => &self.bold,
        };
        let units = face.glyph_index(c).and_then(|glyph| face.glyph_hor_advance(glyph));
        // Scripts that DejaVu lacks come from another font, mostly with characters one em wide.
        units.map_or(1.2, |units| f64::from(units) / f64::from(face.units_per_em())) * size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_is_the_sum_of_the_advances_in_the_font() {
        let font = Font::new().unwrap();
        // DejaVu Sans: 2048 units per em; "0" is 1303 wide, "i" 569.
        let width = font.width("00i", 20.48, Weight::Regular);
        assert!((width - (2.0 * 13.03 + 5.69)).abs() < 1e-9, "{width}");
        assert!(font.width("00i", 20.48, Weight::Bold) > width);
    }

    #[test]
    fn shortening_keeps_both_ends_and_the_room() {
        let font = Font::new().unwrap();
        let name = format!("std::vector<{}>::push_back", "std::pair<int, long>, ".repeat(40));
        for room in [60.0, 100.0, 333.0, 900.0] {
            let short = font.shorten(&name, room, 14.0, Weight::Regular);
            assert!(font.width(&short, 14.0, Weight::Regular) <= room, "{short}");
            assert!(font.width(&short, 14.0, Weight::Regular) > room - 30.0, "{short}");
            assert!(short.starts_with("std") && short.ends_with("ck"), "{short}");
        }
        assert_eq!(font.shorten("malloc", 333.0, 14.0, Weight::Regular), "malloc");
    }

    #[test]
    fn cutting_keeps_the_start_and_the_room() {
        let font = Font::new().unwrap();
        let name = "__memmove_avx_unaligned_erms";
        for room in [60.0, 100.0, 150.0] {
            let cut = font.cut(name, room, 14.0, Weight::Regular);
            assert!(font.width(&cut, 14.0, Weight::Regular) <= room, "{cut}");
            assert!(cut.ends_with('…') && name.starts_with(cut.trim_end_matches('…')), "{cut}");
        }
        assert_eq!(font.cut("malloc", 333.0, 14.0, Weight::Regular), "malloc");
    }

    #[test]
    fn shortening_cuts_between_characters_of_several_bytes() {
        let font = Font::new().unwrap();
        let short = font.shorten(&"µé漢字".repeat(50), 80.0, 14.0, Weight::Regular);
        assert!(short.starts_with('µ') && short.ends_with('字') && short.contains('…'), "{short}");
    }
}
