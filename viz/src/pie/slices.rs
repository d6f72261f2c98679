//! Who gets a slice of a pie.

use std::f64::consts::{PI, TAU};

use crate::data::{Group, GroupKind, Unit};
use crate::palette::{self, Colour, REST};
use crate::quantity::{quantity, share};

/// Below this fraction of the whole a slice is small: too thin for a label.
pub(super) const SMALL: f64 = 0.01;
/// More small slices than these are added up.
const SMALL_SLICES: usize = 8;

/// A part of the ring.
pub(super) struct Slice {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) colour: Colour,
    /// The value with its unit.
    pub(super) quantity: String,
    /// Percentage of the whole.
    pub(super) share: String,
    /// Start and end, radians clockwise from twelve o'clock.
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Slice {
    /// Radians.
    pub(super) fn width(&self) -> f64 {
        self.to - self.from
    }

    /// Where its label points to. A slice that is nearly all there is (and so the first) has its
    /// label on the right.
    pub(super) fn middle(&self) -> f64 {
        if self.width() > 0.75 * TAU { PI / 2.0 } else { (self.from + self.to) / 2.0 }
    }

    pub(super) fn is_small(&self) -> bool {
        self.width() < SMALL * TAU
    }
}

/// The slices, largest first; what was added up is last.
pub(super) fn slices(groups: &[Group], unit: Unit<'_>, whole: f64) -> Vec<Slice> {
    let shown = || groups.iter().zip(palette::assign(groups)).filter(|(g, _)| g.value > 0.0);
    let is_small = |group: &Group| group.value < SMALL * whole;
    let crowded = shown().filter(|(group, _)| is_small(group)).count() > SMALL_SLICES;
    let mut own = Vec::new();
    let mut rest = Vec::new();
    for (group, colour) in shown() {
        match colour {
            Some(colour) if !(crowded && is_small(group)) => {
                own.push((group.shown(), group.value, colour));
            }
            _ => rest.push(group),
        }
    }
    own.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if let Some(mut name) = rest_name(&rest) {
        if crowded && rest.len() > 1 && rest.iter().all(|group| is_small(group)) {
            name = format!("{} smaller ones", rest.len());
        }
        own.push((name, rest.iter().map(|group| group.value).sum(), REST));
    }
    let mut to = 0.0;
    let slice = |(name, value, colour)| {
        let from = to;
        to += value / whole * TAU;
        let (quantity, share) = (quantity(value, unit), share(value, whole));
        Slice { name, value, colour, quantity, share, from, to }
    };
    own.into_iter().map(slice).collect()
}

/// What several groups without a colour are called together.
pub(crate) fn rest_name(rest: &[&Group]) -> Option<String> {
    let are_all = |kind| rest.iter().all(|group| group.kind == kind);
    match rest {
        [] => None,
        [only] => Some(only.shown()),
        many if many.iter().any(|group| group.kind == GroupKind::Rest) => {
            Some("all others".to_owned())
        }
        many if are_all(GroupKind::Application) => {
            Some(format!("{} other applications", many.len()))
        }
        many => Some(format!("{} others", many.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(kind: GroupKind, values: impl IntoIterator<Item = f64>) -> Vec<Group> {
        let group = |(i, value)| Group { name: format!("g{i}"), kind, value };
        values.into_iter().enumerate().map(group).collect()
    }

    fn named(groups: &[Group]) -> Vec<(String, f64)> {
        let whole = groups.iter().map(|group| group.value).sum();
        let slices = slices(groups, Unit::Nanoseconds, whole);
        assert!((slices.last().expect("a slice").to - TAU).abs() < 1e-9);
        slices.into_iter().map(|slice| (slice.name, slice.value)).collect()
    }

    #[test]
    fn groups_without_a_colour_are_one_slice_and_it_is_last() {
        let mut all = groups(GroupKind::Library, (0..12).map(|i| 1.0 + f64::from(i)));
        all[0].kind = GroupKind::Application;
        let slices = slices(&all, Unit::Nanoseconds, 78.0);
        assert_eq!(slices.len(), 9);
        let last = &slices[8];
        assert_eq!((last.name.as_str(), last.value, last.colour), ("4 others", 42.0, REST));
        assert!(slices[..8].windows(2).all(|w| w[0].value >= w[1].value));
    }

    #[test]
    fn many_small_ones_are_added_up_and_a_few_are_not() {
        let few = groups(GroupKind::Library, [900.0, 90.0, 3.0, 2.0, 1.0]);
        assert_eq!(named(&few).len(), 5);
        let many = groups(GroupKind::Library, [900.0, 90.0].into_iter().chain([1.0; 9]));
        let expected = [("g0", 900.0), ("g1", 90.0), ("9 smaller ones", 9.0)];
        assert_eq!(named(&many), expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn applications_are_marked_and_those_without_a_shade_are_one_slice() {
        let many = groups(GroupKind::Application, [50.0, 20.0, 15.0, 10.0, 5.0]);
        let names: Vec<String> = named(&many).into_iter().map(|(name, _)| name).collect();
        let marked = ["g0", "g1", "g2"].map(|name| format!("{name} (application)"));
        assert_eq!(names[..3], marked);
        assert_eq!(names[3..], ["2 other applications"]);
    }
}
