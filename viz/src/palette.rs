//! Colours that hold for colour-blind people.
//!
//! The eight colours of M. Okabe and K. Ito, "Color Universal Design: how to make figures and
//! presentations that are friendly to colorblind people" (2008, <https://jfly.uni-koeln.de/color/>),
//! in an order in which neighbours differ most. Their black is the applications' (lightened, a
//! shade for each), the light grey is for what was put together.

use crate::{Group, GroupKind, State};

/// An sRGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour {
    /// Red, 0 to 255.
    pub(crate) red: u8,
    /// Green, 0 to 255.
    pub(crate) green: u8,
    /// Blue, 0 to 255.
    pub(crate) blue: u8,
}

const fn rgb(hex: u32) -> Colour {
    let [_, red, green, blue] = hex.to_be_bytes();
    Colour { red, green, blue }
}

/// Blue, orange, bluish green, vermilion, reddish purple, yellow, sky blue.
const LIBRARIES: [Colour; 7] = [
    rgb(0x0072b2),
    rgb(0xe69f00),
    rgb(0x009e73),
    rgb(0xd55e00),
    rgb(0xcc79a7),
    rgb(0xf0e442),
    rgb(0x56b4e9),
];
/// Further greys would be taken for [`REST`], or for reddish purple without red cones.
const APPLICATIONS: [Colour; 3] = [rgb(0x222222), rgb(0x474747), rgb(0x696969)];
/// Parts of applications, in the order of [`Shade`]: of slate, since lighter greys would be taken for another application or
/// for [`REST`], on light paper and on dark, where applications are lighter.
const OF_APPLICATIONS: [Colour; 3] = [rgb(0x7486ab), rgb(0x8c9dc0), rgb(0xa3b2d1)];
pub(crate) const REST: Colour = rgb(0xc9c9c9);
/// What the recorder itself does in a program.
const RECORDER: Colour = rgb(0x845484);
/// What threads do, in the order of [`State`]. Those of what mostly has nothing to do (conditions, joins, sleep) are pale, so
/// that a picture of many such threads is calm. None is a library's: they were searched for by the distances that the tests below
/// ask for.
const STATES: [Colour; 10] = [
    rgb(0x00315d),
    rgb(0xb90159),
    rgb(0x57018c),
    rgb(0xb790ff),
    rgb(0xa9652b),
    rgb(0x8fd3a0),
    rgb(0xdff2b8),
    rgb(0x912108),
    rgb(0xcca854),
    rgb(0xbfd6ea),
];

pub(crate) const PAPER: Colour = rgb(0xffffff);
pub(crate) const INK: Colour = rgb(0x1a1a1a);
/// For what is read second; 7:1 against the paper.
pub(crate) const MUTED: Colour = rgb(0x555555);
/// Text on marks. Not [`INK`] and [`PAPER`], so that a page may change those for a dark theme.
const ON_LIGHT: Colour = rgb(0x000000);
const ON_DARK: Colour = rgb(0xfefefe);
/// Steps of a scale from nothing to all: the lightness of P. Kovesi's linear blues ("Good Colour
/// Maps: How to Design Them", 2015), in classes that can be told apart.
pub(crate) const HEAT: [Colour; 7] = [
    rgb(0xf4f7fb),
    rgb(0xd6e4f2),
    rgb(0xabcbe6),
    rgb(0x74a9d4),
    rgb(0x3f83bd),
    rgb(0x1c5c99),
    rgb(0x0b3866),
];
/// For lines that guide the eye.
pub(crate) const RULE: Colour = rgb(0xcccccc);

/// Parts of what has a colour: neighbours differ, and none is taken for the whole.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shade {
    Odd,
    Even,
    /// Those too small for a mark of their own.
    Smaller,
}

impl Colour {
    /// A part of what has this colour.
    pub(crate) fn shade(self, shade: Shade) -> Self {
        match APPLICATIONS.contains(&self) {
            true => OF_APPLICATIONS[shade as usize],
            false => self.lighter([0.3, 0.5, 0.7][shade as usize]),
        }
    }

    /// `#RRGGBB`.
    pub(crate) fn hex(self) -> String {
        format!("#{:02X}{:02X}{:02X}", self.red, self.green, self.blue)
    }

    /// `part` of the way to white.
    fn lighter(self, part: f64) -> Self {
        let mix = |c: u8| (f64::from(c) + (255.0 - f64::from(c)) * part).round() as u8;
        Self { red: mix(self.red), green: mix(self.green), blue: mix(self.blue) }
    }

    /// The colour of text on it: black or nearly white, whichever has the higher contrast (WCAG
    /// 2.2, relative luminance).
    pub(crate) fn ink(self) -> Self {
        let part = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        let luminance =
            0.2126 * part(self.red) + 0.7152 * part(self.green) + 0.0722 * part(self.blue);
        if luminance > 0.179 { ON_LIGHT } else { ON_DARK }
    }

    /// For outlines: light fills alone do not stand out from the paper.
    pub(crate) fn darker(self) -> Self {
        let part = |c: u8| (u16::from(c) * 2 / 3) as u8;
        Self { red: part(self.red), green: part(self.green), blue: part(self.blue) }
    }
}

/// The colour of a state in all charts, as `#RRGGBB`.
#[must_use]
pub fn state_colour(state: State) -> String {
    STATES[state as usize].hex()
}

/// The colour of each of `groups` as charts draw them, as `#RRGGBB`.
#[must_use]
pub fn colours(groups: &[Group]) -> Vec<String> {
    assign(groups).into_iter().map(|colour| colour.unwrap_or(REST).hex()).collect()
}

/// A colour for parts of a group of this kind, on which black text can be read, as `#RRGGBB`.
#[must_use]
pub fn part_colour(kind: GroupKind) -> String {
    let group = Group { name: String::new(), kind, value: 0.0 };
    let own = assign(&[group]).pop().flatten();
    own.map_or(REST, |own| match APPLICATIONS.contains(&own) {
        true => own.shade(Shade::Even),
        false => own.lighter(0.4),
    })
    .hex()
}

/// The colour of each group; `None` where its kind has none left, and for [`GroupKind::Rest`].
pub(crate) fn assign(groups: &[Group]) -> Vec<Option<Colour>> {
    let (mut applications, mut libraries) = (APPLICATIONS.into_iter(), LIBRARIES.into_iter());
    groups
        .iter()
        .map(|group| match group.kind {
            GroupKind::Application => applications.next(),
            GroupKind::Library => libraries.next(),
            GroupKind::ApplicationNumber(number) => APPLICATIONS.get(number).copied(),
            GroupKind::LibraryNumber(number) => LIBRARIES.get(number).copied(),
            GroupKind::State(state) => Some(STATES[state as usize]),
            GroupKind::Shade(number) => HEAT[1..].iter().rev().nth(number).copied(),
            GroupKind::Recorder => Some(RECORDER),
            GroupKind::Rest => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Triple = [f64; 3];

    /// Full protanopia, deuteranopia and tritanopia on linear RGB: G. M. Machado, M. M. Oliveira,
    /// L. A. F. Fernandes, "A Physiologically-based Model for Simulation of Color Vision
    /// Deficiency" (2009), severity 1.0. The first is ordinary sight.
    const SIGHTS: [[Triple; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    fn times(m: &[Triple; 3], v: Triple) -> Triple {
        m.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
    }

    fn linear(c: Colour) -> Triple {
        [c.red, c.green, c.blue].map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// CIE L*a*b* under D65, from linear sRGB.
    fn lab(rgb: Triple) -> Triple {
        const XYZ: [Triple; 3] = [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ];
        let [x, y, z] = times(&XYZ, rgb.map(|c| c.clamp(0.0, 1.0)));
        let f = |t: f64| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let (x, y, z) = (f(x / 0.95047), f(y), f(z / 1.08883));
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// CIE76 difference as seen by each kind of sight; the least of them. 2.3 is just noticeable.
    fn difference(a: Colour, b: Colour) -> f64 {
        let differ = |sight: &[Triple; 3]| {
            let (a, b) = (lab(times(sight, linear(a))), lab(times(sight, linear(b))));
            (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt()
        };
        SIGHTS.iter().map(differ).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn neighbours_differ_for_every_kind_of_sight() {
        let order: Vec<_> = [APPLICATIONS[0]].into_iter().chain(LIBRARIES).chain([REST]).collect();
        for pair in order.windows(2) {
            let d = difference(pair[0], pair[1]);
            assert!(d >= 30.0, "{:?} and {:?} differ by {d:.1}", pair[0], pair[1]);
        }
    }

    #[test]
    fn no_two_colours_are_alike_for_any_kind_of_sight() {
        let own = [REST, RECORDER];
        let all: Vec<_> = own.into_iter().chain(APPLICATIONS).chain(LIBRARIES).collect();
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                let d = difference(*a, *b);
                assert!(d >= 14.0, "{a:?} and {b:?} differ by {d:.1}");
            }
        }
    }

    #[test]
    fn parts_of_applications_are_no_application_and_nothing_put_together() {
        // As `charts.css` has applications on dark paper.
        let dark = [rgb(0x686868), rgb(0x828282), rgb(0x9c9c9c)];
        let others: Vec<_> = [REST, RECORDER].into_iter().chain(APPLICATIONS).chain(dark).collect();
        for shade in [Shade::Odd, Shade::Even, Shade::Smaller] {
            let part = APPLICATIONS[0].shade(shade);
            for other in &others {
                let d = difference(part, *other);
                assert!(d >= 12.0, "{part:?} and {other:?} differ by {d:.1}");
            }
        }
    }

    #[test]
    fn states_are_told_from_each_other_and_from_libraries() {
        let own = [REST, RECORDER];
        let libraries: Vec<_> = own.into_iter().chain(APPLICATIONS).chain(LIBRARIES).collect();
        for (i, a) in STATES.iter().enumerate() {
            for b in STATES[i + 1..].iter().chain(&libraries) {
                let d = difference(*a, *b);
                assert!(d >= 11.0, "{a:?} and {b:?} differ by {d:.1}");
            }
        }
    }

    #[test]
    fn colours_follow_the_order_of_the_groups_and_run_out_into_none() {
        let group = |kind| Group { name: String::new(), kind, value: 1.0 };
        let mut groups = vec![group(GroupKind::Library), group(GroupKind::Application)];
        groups.extend((0..8).map(|_| group(GroupKind::Library)));
        let colours = assign(&groups);
        assert_eq!(colours[0], Some(LIBRARIES[0]));
        assert_eq!(colours[1], Some(APPLICATIONS[0]));
        assert_eq!(colours[2], Some(LIBRARIES[1]));
        assert_eq!(colours[7], Some(LIBRARIES[6]));
        assert_eq!(colours[8..], [None, None]);
        let colours = assign(&vec![group(GroupKind::Application); 4]);
        assert_eq!(colours[..3], APPLICATIONS.map(Some));
        assert_eq!(colours[3], None);
    }
}
