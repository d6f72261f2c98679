//! Shares of a total in two rings: groups, and around each group its parts.

use std::f64::consts::{PI, TAU};

use crate::canvas::{Align, Point, Type};
use crate::chart::{Chart, NOTE, Page, Sheet};
use crate::data::total;
use crate::font::Weight;
use crate::label::{shorter_and_shorter, visible};
use crate::palette::{self, Colour, INK, PAPER, REST, RULE, Shade};
use crate::quantity::{quantity, share};
use crate::{Error, Group, Unit};

/// Largest outer radius, pixels.
const RADIUS: f64 = 260.0;
/// The rings, as fractions of the radius.
const GROUPS: (f64, f64) = (0.36, 0.68);
const PARTS: (f64, f64) = (0.69, 1.0);
/// The only ring where no group has parts.
const ALONE: (f64, f64) = (0.44, 1.0);
/// Narrower than this, slices of one kind are added up, radians.
const THIN: f64 = 0.012;
/// The same for parts, of which there may be hundreds: at the edge some pixels.
const THIN_PART: f64 = 0.03;
const TEXT: Type = Type { size: 13.0, weight: Weight::Regular, colour: INK };
const BIG: Type = Type { size: 20.0, weight: Weight::Bold, colour: INK };
/// Widths that names are cut to, in thicknesses of their ring, and the fewest characters that are still a name.
const CUT_TO: [f64; 8] = [2.0, 1.6, 1.3, 1.1, 0.95, 0.8, 0.68, 0.56];
const SHORTEST: usize = 7;
/// Free space around a text in its slice.
const AIR: f64 = 3.0;

/// A part of a group's part, such as an API.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name.
    pub label: String,
    /// Its value, in the chart's unit.
    pub value: f64,
}

/// A group, what it is made of, and what a page knows it by.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The group.
    pub group: Group,
    /// Its parts; their sum is at most the group's value. May be empty.
    pub parts: Vec<Part>,
    /// Becomes the attribute `data-key` of all that is drawn of the group.
    pub key: Option<String>,
}

/// `segments` as an inner ring, their parts as an outer one, and `centre` in the middle of it, with
/// the total below.
///
/// Both rings go clockwise from twelve o'clock, in the order given. Names stand in slices that
/// have room for them, and are tooltips of all. What would be too thin to be seen is added up.
///
/// # Errors
///
/// [`Error::Value`] for a value that is negative or not finite.
pub fn sunburst(
    sheet: &Sheet<'_>,
    unit: Unit<'_>,
    centre: &str,
    segments: &[Segment],
) -> Result<Chart, Error> {
    let whole = total(segments.iter().map(|s| (s.group.name.as_str(), s.group.value)))?;
    for segment in segments {
        total(segment.parts.iter().map(|part| (part.label.as_str(), part.value)))?;
    }
    let mut page = Page::new(sheet)?;
    let radius = (page.room() / 2.0 - 2.0).min(RADIUS);
    let middle = (page.width / 2.0, page.top + radius + 2.0);
    let mut rings = Rings { page: &mut page, middle, radius, whole, unit };
    rings.draw(segments);
    rings.centre(
        centre,
        if segments.iter().all(|s| s.parts.is_empty()) { ALONE.0 } else { GROUPS.0 },
    );
    let height = middle.1 + radius + 2.0 + page.margin;
    page.finish(height)
}

struct Rings<'p, 'u> {
    page: &'p mut Page,
    middle: Point,
    radius: f64,
    whole: f64,
    unit: Unit<'u>,
}

/// A slice of a ring.
struct Slice<'s> {
    name: &'s str,
    /// What is written on it.
    label: &'s str,
    /// Added to its share, where there is room.
    note: &'s str,
    value: f64,
    colour: Colour,
    key: Option<&'s str>,
    /// Radians clockwise from twelve o'clock.
    from: f64,
    to: f64,
    /// Inner and outer radius, as fractions of the chart's.
    ring: (f64, f64),
}

impl Rings<'_, '_> {
    fn draw(&mut self, segments: &[Segment]) {
        let groups: Vec<Group> = segments.iter().map(|s| s.group.clone()).collect();
        let colours = palette::assign(&groups);
        let has_parts = segments.iter().any(|s| !s.parts.is_empty());
        let ring = if has_parts { GROUPS } else { ALONE };
        if self.whole <= 0.0 {
            for radius in [ring.0, ring.1] {
                let circle = self.arc(radius, 0.0, TAU);
                self.page.canvas.line(circle, 1.5, RULE);
            }
            return;
        }
        let (mut from, mut thin) = (0.0, (0, 0.0));
        for (segment, colour) in segments.iter().zip(colours) {
            let width = segment.group.value / self.whole * TAU;
            if width < THIN {
                thin = (thin.0 + usize::from(width > 0.0), thin.1 + segment.group.value);
                continue;
            }
            let (name, key) = (segment.group.shown(), segment.key.as_deref());
            let colour = colour.unwrap_or(REST);
            let to = from + width;
            self.slice(&Slice {
                name: &name,
                label: &segment.group.name,
                note: "",
                value: segment.group.value,
                colour,
                key,
                from,
                to,
                ring,
            });
            self.parts(segment, colour, from);
            from = to;
        }
        if thin.0 > 0 {
            let name = format!("{} smaller ones", thin.0);
            let label = format!("{} smaller", thin.0);
            let (value, to) = (thin.1, from + thin.1 / self.whole * TAU);
            self.slice(&Slice {
                name: &name,
                label: &label,
                note: "",
                value,
                colour: REST,
                key: None,
                from,
                to,
                ring,
            });
        }
    }

    fn parts(&mut self, segment: &Segment, colour: Colour, mut from: f64) {
        let (mut thin, mut largest) = ((0, 0.0), 0.0_f64);
        let mut shade = Shade::Odd;
        let key = segment.key.as_deref();
        for part in &segment.parts {
            let to = from + part.value / self.whole * TAU;
            if to - from < THIN_PART {
                thin = (thin.0 + usize::from(part.value > 0.0), thin.1 + part.value);
                largest = largest.max(part.value);
                continue;
            }
            let colour = colour.shade(shade);
            shade = if matches!(shade, Shade::Odd) { Shade::Even } else { Shade::Odd };
            let (name, value) = (part.label.as_str(), part.value);
            let (label, note, ring) = (name, "", PARTS);
            self.slice(&Slice { name, label, note, value, colour, key, from, to, ring });
            from = to;
        }
        if thin.1 > 0.0 {
            // Where hundreds have most of the time together, it is to be seen that none of them has much.
            let each = match thin.0 {
                1 => String::new(),
                _ => format!(", ≤ {} each", share(largest, self.whole)),
            };
            let name = format!("{} smaller ones of {}{each}", thin.0, segment.group.name);
            let (value, to) = (thin.1, from + thin.1 / self.whole * TAU);
            let label = format!("{} smaller", thin.0);
            let colour = colour.shade(Shade::Smaller);
            self.slice(&Slice {
                name: &name,
                label: &label,
                note: &each,
                value,
                colour,
                key,
                from,
                to,
                ring: PARTS,
            });
        }
    }

    fn slice(&mut self, slice: &Slice<'_>) {
        let mut outline = self.arc(slice.ring.1, slice.from, slice.to);
        outline.extend(self.arc(slice.ring.0, slice.from, slice.to).into_iter().rev());
        let value =
            format!("{}, {}", quantity(slice.value, self.unit), share(slice.value, self.whole));
        // The outline is in the colour of the paper: a gap between neighbours, whatever their colours.
        // The whole has no neighbour, and its two ends meet.
        let is_whole = slice.to - slice.from > TAU - 1e-9;
        self.page.canvas.polygon(outline, slice.colour, Some(PAPER).filter(|_| !is_whole));
        self.page.describe(slice.name, &value);
        if let Some(key) = slice.key {
            self.page.canvas.key(key);
        }
        self.name(slice, &share(slice.value, self.whole));
    }

    /// The name and the share in the slice, or the name, across or upwards, or the share alone, or nothing: whatever has room
    /// somewhere in it. Names are in their shorter forms where there is less room, and cut at their end where even these have
    /// none, so that no slice is without one where a smaller one is not.
    fn name(&mut self, slice: &Slice<'_>, share: &str) {
        let look = Type { colour: slice.colour.ink(), ..TEXT };
        let mut forms = shorter_and_shorter(&visible(slice.label));
        let shortest = forms.last().cloned().unwrap_or_default();
        let thickness = (slice.ring.1 - slice.ring.0) * self.radius;
        for part in CUT_TO {
            let cut = self.page.font.cut(&shortest, thickness * part, look.size, look.weight);
            if cut.chars().count() >= SHORTEST.min(shortest.chars().count()) {
                forms.push(cut);
            }
        }
        let places = self.places(slice);
        let noted = format!("{share}{}", slice.note);
        if !slice.note.is_empty() && self.name_and_share(&forms[0], &noted, slice, &places, look) {
            return;
        }
        let drawn = forms.iter().any(|form| self.name_as(form, share, slice, &places, look));
        if !drawn {
            self.name_as("", share, slice, &places, look);
        }
    }

    /// The name in this form, if there is room; whether there is.
    fn name_as(
        &mut self,
        name: &str,
        share: &str,
        slice: &Slice<'_>,
        places: &[Point],
        look: Type,
    ) -> bool {
        if !name.is_empty() && self.name_and_share(name, share, slice, places, look) {
            return true;
        }
        let line = look.size + 3.0;
        let baseline = look.size * 0.36;
        let share_width = self.page.text_width(share, look);
        let width = self.page.text_width(name, look);
        let place = |width, height| {
            places.iter().copied().find(|&at| self.has_room(slice, at, width, height))
        };
        let across = place(width, line);
        let upwards = place(line, width);
        let alone = place(share_width, line);
        // The whole name is in the tooltip of the slice.
        let mut draw = |text: &str, (x, y): Point, width| {
            self.page.label(text, (x, y), Align::Middle, width, look);
        };
        if name.is_empty() {
            if let Some((x, y)) = alone {
                draw(share, (x, y + baseline), share_width);
            }
            alone.is_some()
        } else if let Some((x, y)) = across {
            draw(name, (x, y + baseline), width);
            true
        } else if let Some((x, y)) = upwards {
            self.page.canvas.text_upwards(name.to_owned(), (x + baseline, y + width / 2.0), look);
            true
        } else {
            false
        }
    }

    /// The name and, below it, the share, if there is room for both; whether there is.
    fn name_and_share(
        &mut self,
        name: &str,
        share: &str,
        slice: &Slice<'_>,
        places: &[Point],
        look: Type,
    ) -> bool {
        let (line, baseline) = (look.size + 3.0, look.size * 0.36);
        let widths = [name, share].map(|text| self.page.text_width(text, look));
        let widest = widths[0].max(widths[1]);
        let mut places = places.iter().copied();
        let place = places.find(|&at| self.has_room(slice, at, widest, 2.0 * line));
        let Some((x, y)) = place else { return false };
        for (text, (width, down)) in
            [name, share].into_iter().zip(widths.into_iter().zip([-0.5, 0.5]))
        {
            let at = (x, y + baseline + down * line);
            self.page.label(text, at, Align::Middle, width, look);
        }
        true
    }

    /// Where a name may be in a slice: in the middle of its length, or as near to that as it has room; at the bottom
    /// and the top of the ring is more.
    fn places(&self, slice: &Slice<'_>) -> Vec<Point> {
        let (middle, length) = ((slice.from + slice.to) / 2.0, slice.to - slice.from);
        let steps = [0.0, 0.125, -0.125, 0.25, -0.25, 0.375, -0.375];
        let mut angles: Vec<f64> = steps.into_iter().map(|step| middle + step * length).collect();
        angles.extend([PI, 0.0].into_iter().filter(|&at| slice.from < at && at < slice.to));
        let radius = (slice.ring.0 + slice.ring.1) / 2.0 * self.radius;
        let at = |angle: f64| {
            (self.middle.0 + radius * angle.sin(), self.middle.1 - radius * angle.cos())
        };
        angles.into_iter().map(at).collect()
    }

    /// Whether a box around `at` lies within the slice.
    fn has_room(&self, slice: &Slice<'_>, at: Point, width: f64, height: f64) -> bool {
        let (half_width, half_height) = (width / 2.0 + AIR, height / 2.0 + AIR);
        let (x, y) = (at.0 - self.middle.0, at.1 - self.middle.1);
        // The point of the box nearest to the centre, and its corners.
        let nearest = (
            0.0_f64.clamp(x - half_width, x + half_width),
            0.0_f64.clamp(y - half_height, y + half_height),
        );
        if nearest.0.hypot(nearest.1) < slice.ring.0 * self.radius {
            return false;
        }
        let corners = [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)];
        let (middle, half) = ((slice.from + slice.to) / 2.0, (slice.to - slice.from) / 2.0);
        corners.into_iter().all(|(right, down)| {
            let (x, y) = (x + right * half_width, y + down * half_height);
            let mut apart = x.atan2(-y).rem_euclid(TAU) - middle;
            if apart > PI {
                apart -= TAU;
            } else if apart < -PI {
                apart += TAU;
            }
            x.hypot(y) <= slice.ring.1 * self.radius && apart.abs() <= half
        })
    }

    fn centre(&mut self, name: &str, inner: f64) {
        let room = 2.0 * inner * self.radius - 30.0;
        let (x, y) = self.middle;
        let whole = quantity(self.whole, self.unit);
        self.page.label(name, (x, y - 12.0), Align::Middle, room, NOTE);
        self.page.label(&whole, (x, y + 14.0), Align::Middle, room, BIG);
    }

    fn arc(&self, radius: f64, from: f64, to: f64) -> Vec<Point> {
        let radius = radius * self.radius;
        // Two degrees: hardly further from the true circle than a tenth of a pixel.
        let steps = ((to - from) / (PI / 90.0)).ceil().max(1.0) as usize;
        let at = |i: usize| {
            let angle = from + (to - from) * i as f64 / steps as f64;
            (self.middle.0 + radius * angle.sin(), self.middle.1 - radius * angle.cos())
        };
        (0..=steps).map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GroupKind, Heading};

    /// The texts in the slices of parts with these names, in a hundred.
    fn texts(parts: &[(String, f64)]) -> Vec<String> {
        let of = |(name, value): &(String, f64)| Part { label: name.clone(), value: *value };
        let group = Group { name: "all".to_owned(), kind: GroupKind::Library, value: 100.0 };
        let segment = Segment { group, parts: parts.iter().map(of).collect(), key: None };
        let sheet = Sheet::inside(Heading { title: "", subtitle: "" }, 460.0);
        let chart = sunburst(&sheet, Unit::Count("calls"), "app", &[segment]).expect("a chart");
        let document = roxmltree::Document::parse(chart.svg()).expect("XML");
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        texts.filter_map(|node| Some(node.text()?.to_owned())).collect()
    }

    #[test]
    fn names_are_shorter_where_there_is_less_room() {
        let alike = |number: usize| {
            let name = "std::list::remove(int)".to_owned();
            texts(&vec![(name, 100.0 / number as f64); number])
        };
        let has = |texts: &[String], form: &str| texts.iter().any(|text| text == form);
        let (few, many) = (alike(3), alike(24));
        assert!(has(&few, "std::list::remove(int)"), "{few:?}");
        assert!(!has(&many, "std::list::remove(int)") && has(&many, "remove"), "{many:?}");
    }

    /// 788 functions of a compiler had 73 % together, as one slice: none of them had more than 0.4 %.
    #[test]
    fn what_is_put_together_says_how_small_each_is() {
        let alike = |number: usize| {
            let part = |at: usize| (format!("function_{at}"), 100.0 / number as f64);
            texts(&(0..number).map(part).collect::<Vec<_>>())
        };
        let texts = alike(400);
        assert!(texts.contains(&"100 %, ≤ 0.2 % each".to_owned()), "{texts:?}");
    }

    /// A line ran from the middle to the top.
    #[test]
    fn the_whole_has_no_seam() {
        let outlined = |values: &[f64]| {
            let of = |&value: &f64| {
                let group = Group { name: "a".to_owned(), kind: GroupKind::Library, value };
                Segment { group, parts: Vec::new(), key: None }
            };
            let segments: Vec<Segment> = values.iter().map(of).collect();
            let sheet = Sheet::inside(Heading { title: "", subtitle: "" }, 460.0);
            let chart = sunburst(&sheet, Unit::Count("calls"), "app", &segments).expect("a chart");
            let document = roxmltree::Document::parse(chart.svg()).expect("XML");
            let paths = document.descendants().filter(|node| node.has_tag_name("path"));
            let slices = paths.filter(|node| node.attribute("fill").is_some_and(|of| of != "none"));
            slices.filter(|node| node.attribute("stroke").is_some()).count()
        };
        assert_eq!((outlined(&[5.0]), outlined(&[5.0, 0.0]), outlined(&[5.0, 5.0])), (0, 0, 2));
    }

    #[test]
    fn no_slice_is_without_a_name_where_a_smaller_one_is_not() {
        let values = [40.0, 20.0, 12.0, 9.0, 7.0, 5.0, 3.0, 2.0, 1.0, 0.6, 0.4];
        let parts: Vec<_> =
            ('a'..).zip(values).map(|(c, value)| (format!("{c}_hint"), value)).collect();
        let texts = texts(&parts);
        // Even where a name is cut it begins as it does.
        let has_name =
            |(name, _): &(String, f64)| texts.iter().any(|text| text.starts_with(&name[..3]));
        let named = parts.iter().take_while(|part| has_name(part)).count();
        assert!(named >= 5, "{texts:?}");
        assert!(!parts[named..].iter().any(has_name), "{texts:?}");
    }
}
