//! Texts that long calls were passed: paths of files and names of hosts.

use std::collections::BTreeMap;

use chase_recorder::reader::Text;
use serde::Serialize;

use crate::clock::Ns;

/// The maximum number of texts that are kept of one context or of several.
const MANY: usize = 64;
/// The maximum number of texts in a row of a table.
const MOST: usize = 8;

/// The long calls (of 100,000 ticks of the clock or more) of a function that were passed one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextRow {
    /// The text; of a long one, `…` and its end. `None` for all texts that have no row.
    pub text: Option<String>,
    /// The number of calls.
    pub calls: u64,
    /// Their total time.
    pub total_ns: Ns,
    /// The time of the longest; missing if unknown.
    pub max_ns: Option<Ns>,
}

/// The calls with one text. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    calls: u64,
    total_ns: f64,
    max_ns: f64,
}

impl Calls {
    fn add(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    fn row(self, text: Option<String>) -> TextRow {
        let max_ns = text.is_some().then(|| Ns::from_f64(self.max_ns));
        TextRow { text, calls: self.calls, total_ns: Ns::from_f64(self.total_ns), max_ns }
    }
}

/// Sums over the texts of calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextSums {
    by_text: BTreeMap<String, Calls>,
    others: Calls,
}

impl TextSums {
    /// Adds what a recording has of one context and text.
    pub(crate) fn add_text(&mut self, text: &Text<'_>, ns_per_tick: f64) {
        let ns = |ticks: u64| ticks as f64 * ns_per_tick;
        let calls =
            Calls { calls: text.calls, total_ns: ns(text.ticks), max_ns: ns(text.max_ticks) };
        match &text.text {
            Some(text) => self.by_text.entry(text.clone().into_owned()).or_default().add(calls),
            None => self.others.add(calls),
        }
        self.limit();
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (text, &calls) in &other.by_text {
            self.by_text.entry(text.clone()).or_default().add(calls);
        }
        self.others.add(other.others);
        self.limit();
    }

    /// Takes out the texts with the shortest totals, once there are far too many.
    fn limit(&mut self) {
        if self.by_text.len() <= 2 * MANY {
            return;
        }
        let mut rows: Vec<_> = std::mem::take(&mut self.by_text).into_iter().collect();
        rows.sort_by(|a, b| b.1.total_ns.total_cmp(&a.1.total_ns).then(a.0.cmp(&b.0)));
        for (_, calls) in rows.drain(MANY..) {
            self.others.add(calls);
        }
        self.by_text = rows.into_iter().collect();
    }

    /// Returns the texts with the longest totals, longest first, and at last what all others have, if there are any.
    pub(crate) fn rows(&self) -> Vec<TextRow> {
        let mut rows: Vec<_> = self.by_text.iter().collect();
        rows.sort_by(|a, b| b.1.total_ns.total_cmp(&a.1.total_ns).then(a.0.cmp(b.0)));
        let mut others = self.others;
        rows.iter().skip(MOST).for_each(|(_, calls)| others.add(**calls));
        let texts = rows.into_iter().take(MOST);
        let mut rows: Vec<_> = texts.map(|(text, calls)| calls.row(Some(text.clone()))).collect();
        if others.calls > 0 {
            rows.push(others.row(None));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: Option<&str>, calls: u64, ticks: u64) -> Text<'_> {
        Text { node_ref: 1, text: text.map(Into::into), calls, ticks, max_ticks: ticks / calls }
    }

    #[test]
    fn texts_are_added_up_and_the_longest_come_first() {
        let mut sums = TextSums::default();
        for (name, calls, ticks) in [("a", 1, 50), ("b", 2, 80), ("a", 3, 60)] {
            sums.add_text(&text(Some(name), calls, ticks), 2.0);
        }
        let rows = sums.rows();
        let figures = |row: &TextRow| (row.text.clone(), row.calls, row.total_ns.0, row.max_ns);
        assert_eq!(figures(&rows[0]), (Some("a".into()), 4, 220, Some(Ns(100))));
        assert_eq!(figures(&rows[1]), (Some("b".into()), 2, 160, Some(Ns(80))));
        assert_eq!(rows.len(), 2);
    }

    /// However many there are, nothing is lost.
    #[test]
    fn what_has_no_row_is_summed() {
        let mut sums = TextSums::default();
        sums.add_text(&text(None, 5, 5), 1.0);
        for number in 0..1_000 {
            sums.add_text(&text(Some(&format!("{number:04}")), 1, 1_000 - number), 1.0);
        }
        let mut twice = sums.clone();
        twice.add(&sums);
        for (sums, times) in [(&sums, 1), (&twice, 2)] {
            let rows = sums.rows();
            assert_eq!((rows.len(), &rows[0].text), (MOST + 1, &Some("0000".into())));
            assert_eq!(rows.last().unwrap().text, None);
            assert_eq!(rows.iter().map(|row| row.calls).sum::<u64>(), times * 1_005);
        }
    }
}
