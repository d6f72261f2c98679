//! What lists of spans of time have in common with a span. The lists are sorted, and their spans don't overlap.

/// From when to when, in ns.
pub(crate) type Span = (u64, u64);

/// Returns the items that have time in common with a span, and that time. `span_of` tells when an item is.
pub(crate) fn parts_of<T>(
    items: &[T],
    span_of: impl Fn(&T) -> Span,
    (from, to): Span,
) -> impl Iterator<Item = (&T, Span)> {
    let first = items.partition_point(|item| span_of(item).1 <= from);
    let with_spans = items[first..].iter().map(move |item| (item, span_of(item)));
    let within = with_spans.take_while(move |&(_, (begin, _))| begin < to);
    within.map(move |(item, (begin, end))| (item, (begin.max(from), end.min(to))))
}

/// The same for spans alone: how long each has in common with another one, in ns.
pub(crate) fn parts_ns(spans: &[Span], within: Span) -> impl Iterator<Item = u64> {
    let parts = parts_of(spans, |&span| span, within);
    parts.map(|(_, (begin, end))| end.saturating_sub(begin))
}

/// Returns how long they have together in common with another one, in ns.
pub(crate) fn common_ns(spans: &[Span], within: Span) -> u64 {
    parts_ns(spans, within).fold(0, u64::saturating_add)
}
