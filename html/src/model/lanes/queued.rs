//! Times in which a thread had no processor. On a busy machine there are very many, each a few milliseconds: then they are put
//! together, so that sums stay right.

use chase_analyzer::PreemptedSpan;

/// From, to, in nanoseconds.
pub(super) type Interval = (f64, f64);

/// `spans` as they are.
pub(super) fn exact(spans: &[PreemptedSpan]) -> Vec<Interval> {
    let interval = |span: &PreemptedSpan| {
        let from = span.start_ns.as_f64();
        (from, from + span.ns.as_f64())
    };
    spans.iter().map(interval).collect()
}

/// Pieces of time of the same length, from the beginning of the run.
#[derive(Clone, Copy)]
pub(super) struct Pieces {
    /// How many are looked at.
    pub(super) number: usize,
    /// Length, nanoseconds.
    pub(super) ns: f64,
}

/// For each piece of time, what `queued` has in it as one interval, as early in it as the thread's `life` allows; not over any of
/// `waits`. Both are by time; what is queued twice at once counts once.
pub(super) fn together(
    queued: &[Interval],
    waits: &[Interval],
    life: Interval,
    pieces: Pieces,
) -> Vec<Interval> {
    let in_piece = |piece: usize| {
        let (from, to) = (piece as f64 * pieces.ns, (piece + 1) as f64 * pieces.ns);
        (from.max(life.0), to.min(life.1))
    };
    let mut together: Vec<Interval> = Vec::new();
    let mut put = |piece: usize, mut left: f64| {
        let (mut from, end) = in_piece(piece);
        let begun = waits.partition_point(|&(_, to)| to <= from);
        let own = waits[begun..].iter().take_while(|&&(start, _)| start < end);
        for &(start, to) in own.chain([&(end, end)]) {
            let taken = (start - from).clamp(0.0, left);
            if taken > 0.0 {
                together.push((from, from + taken));
                left -= taken;
            }
            from = from.max(to);
        }
    };
    let (mut at, mut sum) = (0, 0.0);
    let mut begin = life.0;
    let end = life.1.min(pieces.number as f64 * pieces.ns);
    for &(from, to) in queued {
        let (from, to) = (from.max(begin), to.min(end));
        if from >= to {
            continue;
        }
        begin = to;
        for piece in (from / pieces.ns) as usize..=(to / pieces.ns) as usize {
            if piece != at {
                put(at, sum);
                (at, sum) = (piece, 0.0);
            }
            let (start, end) = in_piece(piece);
            sum += (to.min(end) - from.max(start)).max(0.0);
        }
    }
    put(at, sum);
    together
}

#[cfg(test)]
mod tests {
    use super::{Interval, Pieces, together};

    const PIECES: Pieces = Pieces { number: 10, ns: 100.0 };
    const ALL: Interval = (0.0, 1000.0);

    #[test]
    fn each_piece_has_as_much_as_before_and_no_wait_is_covered() {
        let queued = [(10.0, 20.0), (30.0, 40.0), (95.0, 130.0), (350.0, 360.0)];
        let waits = [(15.0, 15.0), (40.0, 50.0), (102.0, 110.0), (300.0, 345.0)];
        let found = together(&queued, &waits, ALL, PIECES);
        assert_eq!(
            found,
            [(0.0, 15.0), (15.0, 25.0), (100.0, 102.0), (110.0, 138.0), (345.0, 355.0)]
        );
        assert_eq!(together(&[], &waits, ALL, PIECES), []);
    }

    #[test]
    fn nothing_is_put_outside_of_a_thread_s_life() {
        let found = together(&[(60.0, 80.0), (210.0, 220.0)], &[], (50.0, 215.0), PIECES);
        assert_eq!(found, [(50.0, 70.0), (200.0, 205.0)]);
    }

    #[test]
    fn absurd_times_have_no_more_pieces_than_there_are() {
        let absurd = [(0.0, 1.8e19), (1.0, 1.8e19)];
        let found = together(&absurd, &[], (0.0, 1.8e19), PIECES);
        let pieces: Vec<Interval> =
            (0..10).map(|at| (f64::from(at) * 100.0, f64::from(at + 1) * 100.0)).collect();
        assert_eq!(found, pieces);
    }
}
