//! Labels around the ring: beside their slice, or not at all.

use std::f64::consts::PI;

use super::slices::Slice;
use super::{CENTRE, LABELS, OUTER, on_circle};
use crate::canvas::{Align, Type};
use crate::chart::{BODY, MARGIN, NOTE, Page, WIDTH};
use crate::font::Weight;
use crate::palette::MUTED;

/// Horizontal distance of the labels from the centre.
const LABEL_X: f64 = OUTER + 36.0;
/// Leaders turn towards their labels here, clear of the ring.
const TURN_X: f64 = OUTER + 18.0;
/// Each label is two lines high.
const LABEL_HEIGHT: f64 = 42.0;
/// Furthest that a label may be above or below where its slice is.
const NEAR: f64 = 48.0;

const SHARE: Type = Type { weight: Weight::Bold, ..BODY };

/// Labels the slices that are not small; the legend names all.
pub(super) fn draw(page: &mut Page, slices: &[Slice]) {
    for (right, align) in [(true, Align::Left), (false, Align::Right)] {
        let side = if right { 1.0 } else { -1.0 };
        let x = CENTRE.0 + side * LABEL_X;
        let room = if right { WIDTH - MARGIN - x } else { x - MARGIN };
        let on_side = |s: &&Slice| !s.is_small() && (s.middle() <= PI) == right;
        let mut shown: Vec<&Slice> = slices.iter().filter(on_side).collect();
        // From the top down on both sides, so that leaders don't cross.
        if !right {
            shown.reverse();
        }
        for (slice, y) in place(shown) {
            let start = on_circle(OUTER + 3.0, slice.middle());
            let out = on_circle(OUTER + 14.0, slice.middle());
            let turn = (CENTRE.0 + side * TURN_X, out.1);
            page.canvas.line(vec![start, out, turn, (x - side * 5.0, y)], 1.0, MUTED);
            page.label(&slice.share, (x, y - 1.0), align, room, SHARE);
            page.label(&slice.name, (x, y + 16.0), align, room, NOTE);
        }
    }
}

/// Where the labels of one side go, from the top down. Until each is near its slice, the one of
/// the smallest slice is given up.
fn place(mut slices: Vec<&Slice>) -> Vec<(&Slice, f64)> {
    loop {
        let wanted: Vec<f64> = slices.iter().map(|s| on_circle(OUTER, s.middle()).1).collect();
        let ys = spread(&wanted, LABEL_HEIGHT, LABELS);
        let is_near = |(y, wanted): (&f64, &f64)| (y - wanted).abs() <= NEAR;
        let smallest =
            (0..slices.len()).min_by(|&a, &b| slices[a].value.total_cmp(&slices[b].value));
        match smallest {
            Some(at) if !ys.iter().zip(&wanted).all(is_near) => slices.remove(at),
            _ => return slices.into_iter().zip(ys).collect(),
        };
    }
}

/// Moves ascending positions as little as possible (by squares) for `gap` between them, within
/// `bounds`.
///
/// With `i · gap` taken off position `i` this is isotonic regression, which pooling adjacent
/// violators solves: R. E. Barlow et al., "Statistical Inference under Order Restrictions" (1972).
fn spread(wanted: &[f64], gap: f64, bounds: (f64, f64)) -> Vec<f64> {
    // Sum and number of positions that share one place.
    let mut pools: Vec<(f64, usize)> = Vec::new();
    let mean = |(sum, count): (f64, usize)| sum / count as f64;
    for (i, y) in wanted.iter().enumerate() {
        let mut pool = (y - gap * i as f64, 1);
        while let Some(&above) = pools.last().filter(|&&above| mean(above) > mean(pool)) {
            pools.pop();
            pool = (pool.0 + above.0, pool.1 + above.1);
        }
        pools.push(pool);
    }
    let last = bounds.1 - gap * wanted.len().saturating_sub(1) as f64;
    let places = pools.into_iter().flat_map(|pool| std::iter::repeat_n(mean(pool), pool.1));
    places.enumerate().map(|(i, y)| y.min(last).max(bounds.0) + gap * i as f64).collect()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;
    use crate::palette::REST;

    #[test]
    fn spreading_keeps_the_gap_the_order_and_the_bounds() {
        let bounds = (0.0, 500.0);
        assert_eq!(spread(&[], 40.0, bounds), []);
        assert_eq!(spread(&[100.0, 200.0], 40.0, bounds), [100.0, 200.0]);
        assert_eq!(spread(&[100.0, 101.0, 102.0], 40.0, bounds), [61.0, 101.0, 141.0]);
        assert_eq!(spread(&[10.0, 20.0, 300.0], 40.0, bounds), [0.0, 40.0, 300.0]);
        assert_eq!(spread(&[490.0, 495.0, 499.0], 40.0, bounds), [420.0, 460.0, 500.0]);
    }

    #[test]
    fn labels_without_room_near_their_slice_are_given_up_smallest_first() {
        let mut to = 0.0;
        let mut slice = |share: f64| {
            let from = to;
            to += share * TAU;
            let text = String::new;
            let (name, quantity, shown) = (text(), text(), text());
            Slice { name, value: share, colour: REST, quantity, share: shown, from, to }
        };
        // The ten thin ones are all close to twelve o'clock.
        let shares =
            [0.45, 0.30, 0.15].into_iter().chain((1..=10).map(|i| 0.015 - 0.0005 * f64::from(i)));
        let slices: Vec<Slice> = shares.map(&mut slice).collect();
        let left: Vec<&Slice> = slices.iter().skip(1).rev().collect();
        let placed = place(left);
        let largest_kept = placed.iter().filter(|(slice, _)| slice.value > 0.1).count();
        assert_eq!(largest_kept, 2, "large slices keep their labels");
        assert!((3..11).contains(&placed.len()), "{}", placed.len());
        for (slice, y) in &placed {
            assert!((y - on_circle(OUTER, slice.middle()).1).abs() <= NEAR);
        }
        assert!(placed.windows(2).all(|pair| pair[1].1 - pair[0].1 >= LABEL_HEIGHT - 1e-9));
    }
}
