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

/// For each `piece_ns` of time, what `queued` has in it as one interval, at its beginning; not over any of `waits`. Both are by
/// time, and neither has any over another.
pub(super) fn together(queued: &[Interval], waits: &[Interval], piece_ns: f64) -> Vec<Interval> {
    let mut together: Vec<Interval> = Vec::new();
    let pieces = queued.iter().flat_map(|&(from, to)| {
        let (first, last) = ((from / piece_ns) as u64, (to / piece_ns) as u64);
        (first..=last).map(move |piece| (piece, from, to))
    });
    let (mut at, mut sum) = (0, 0.0);
    let mut put = |piece: u64, mut left: f64| {
        let (mut from, end) = (piece as f64 * piece_ns, (piece + 1) as f64 * piece_ns);
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
    for (piece, from, to) in pieces {
        if piece != at {
            put(at, sum);
            (at, sum) = (piece, 0.0);
        }
        let (start, end) = (piece as f64 * piece_ns, (piece + 1) as f64 * piece_ns);
        sum += (to.min(end) - from.max(start)).max(0.0);
    }
    put(at, sum);
    together
}

#[cfg(test)]
mod tests {
    use super::together;

    #[test]
    fn each_piece_has_as_much_as_before_and_no_wait_is_covered() {
        let queued = [(10.0, 20.0), (30.0, 40.0), (95.0, 130.0), (350.0, 360.0)];
        let waits = [(15.0, 15.0), (40.0, 50.0), (102.0, 110.0), (300.0, 345.0)];
        let found = together(&queued, &waits, 100.0);
        assert_eq!(
            found,
            [(0.0, 15.0), (15.0, 25.0), (100.0, 102.0), (110.0, 138.0), (345.0, 355.0)]
        );
        assert_eq!(together(&[], &waits, 100.0), []);
    }
}
