//! Waits that are too short to be kept one by one: of these, it is known in which function they were and how long all of them
//! took, but not when.

use std::collections::HashMap;

use super::super::{Does, Label, Span};

/// A function, by its name and the row of its library.
pub(super) type Function = (Label, Option<usize>);

/// Such a part of a call that waits may as well be all of it.
const NEARLY_ALL: f64 = 0.98;

/// Calls of functions that wait, between the waits that are known one by one (`single`), seem to be nothing but waits. Where the
/// thread `waited` less in a function than that, ns, each of these begins with the same part of it as wait, and the rest is busy.
pub(super) fn within(
    calls: Vec<Span>,
    single: &[Span],
    waited: &HashMap<Function, f64>,
) -> Vec<Span> {
    let drawn_calls = drawn(&calls);
    let drawn_single = drawn(single);
    let part_of = |function: &Function| {
        let sum = |of: &HashMap<Function, f64>| of.get(function).copied().unwrap_or_default();
        let rest = (sum(waited) - sum(&drawn_single)).max(0.0);
        rest / sum(&drawn_calls).max(1.0)
    };
    let parts: HashMap<Function, f64> = drawn_calls
        .keys()
        .map(|function| (function.clone(), part_of(function)))
        .filter(|&(_, part)| part < NEARLY_ALL)
        .collect();
    let mut spans = Vec::with_capacity(calls.len());
    for span in calls {
        let part = parts.get(&(span.text.clone(), span.library));
        match part.filter(|_| matches!(span.does, Does::Wait(_))) {
            Some(part) => {
                let until = span.from_ns + (span.to_ns - span.from_ns) * part;
                let busy = Span { from_ns: until, does: Does::Run, ..span.clone() };
                spans.extend((until > span.from_ns).then_some(Span { to_ns: until, ..span }));
                spans.push(busy);
            }
            None => spans.push(span),
        }
    }
    spans
}

/// How long there are waits in each function, ns.
fn drawn(spans: &[Span]) -> HashMap<Function, f64> {
    let mut sums = HashMap::new();
    for span in spans.iter().filter(|span| matches!(span.does, Does::Wait(_))) {
        let function = (span.text.clone(), span.library);
        *sums.entry(function).or_default() += span.to_ns - span.from_ns;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::super::super::WaitCause;
    use super::*;

    fn span(from_ns: f64, to_ns: f64, does: Does, text: &str) -> Span {
        let text = Label::from(text);
        let (waker, waker_in) = (None, Label::default());
        Span { from_ns, to_ns, does, text, library: Some(0), waker, waker_in }
    }

    /// From when to when, and whether it is a wait.
    fn shape(spans: &[Span]) -> Vec<(f64, f64, bool)> {
        let is_wait = |span: &Span| matches!(span.does, Does::Wait(_));
        spans.iter().map(|span| (span.from_ns, span.to_ns, is_wait(span))).collect()
    }

    #[test]
    fn calls_have_as_much_of_waits_as_was_waited_in_them() {
        let io = Does::Wait(WaitCause::Io);
        let calls = vec![
            span(0.0, 100.0, io, "fsync"),
            span(100.0, 150.0, Does::Run, "fsync"),
            span(1000.0, 1300.0, io, "fsync"),
            span(2000.0, 2010.0, io, "read"),
            span(3000.0, 3010.0, io, "poll"),
        ];
        let single = [span(150.0, 1000.0, io, "fsync")];
        let function = |name: &str| (Label::from(name), Some(0));
        // In fsync 100 of 400, in read more than in these calls, in poll nothing.
        let waited = HashMap::from([(function("fsync"), 950.0), (function("read"), 30.0)]);
        let parts = within(calls, &single, &waited);
        let expected = [
            (0.0, 25.0, true),
            (25.0, 100.0, false),
            (100.0, 150.0, false),
            (1000.0, 1075.0, true),
            (1075.0, 1300.0, false),
            (2000.0, 2010.0, true),
            (3000.0, 3010.0, false),
        ];
        assert_eq!(shape(&parts), expected);
    }
}
