//! Groups waits with the same cause.

use std::collections::BTreeMap;

use super::Blame;
use crate::causes::{CauseRow, Party, PartyKind};
use crate::clock::Ns;
use crate::groups::ThreadSpan;

/// With less of the waits or of the calls than this, a place is not the only one.
pub(super) const ONE_PLACE: f64 = 0.9;
/// Who has what others wait for has it for at least this part of their waits.
pub(super) const HAS_IT: f64 = 0.5;

/// Rows of causes that belong together.
#[derive(Default)]
pub(super) struct Joint<'a> {
    pub(super) rows: Vec<&'a CauseRow>,
}

impl<'a> FromIterator<&'a CauseRow> for Joint<'a> {
    fn from_iter<I: IntoIterator<Item = &'a CauseRow>>(rows: I) -> Self {
        Self { rows: rows.into_iter().collect() }
    }
}

impl Joint<'_> {
    pub(super) fn wait_ns(&self) -> f64 {
        self.rows.iter().map(|row| row.wait_ns.as_f64()).sum()
    }

    pub(super) fn waits(&self) -> u64 {
        self.rows.iter().fold(0, |sum, row| sum.saturating_add(row.waits))
    }

    pub(super) fn max_ns(&self) -> f64 {
        self.rows.iter().map(|row| row.max_ns.as_f64()).fold(0.0, f64::max)
    }

    /// Returns how long each thread waited, longest first.
    pub(super) fn by_thread(&self) -> Vec<(f64, u32)> {
        self.by_thread_where(|_| 1.0)
    }

    /// The same, counting of each row what `part` returns.
    pub(super) fn by_thread_where(&self, part: impl Fn(&CauseRow) -> f64) -> Vec<(f64, u32)> {
        let mut sums = BTreeMap::<u32, f64>::new();
        for row in &self.rows {
            let part = part(row);
            for span in &row.by_thread {
                *sums.entry(span.thread).or_default() += part * span.ns.as_f64();
            }
        }
        let mut sums: Vec<_> = sums.into_iter().map(|(thread, ns)| (ns, thread)).collect();
        sums.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        sums
    }

    /// Returns the part of the time of waits that were ended by a waker for which `wanted` is true.
    pub(super) fn ended_by(&self, wanted: impl Fn(&Party) -> bool) -> f64 {
        let wakers = self.rows.iter().flat_map(|row| &row.wakers);
        let ended: f64 = wakers.filter(|waker| wanted(waker)).map(|w| w.wait_ns.as_f64()).sum();
        ended / self.wait_ns().max(1.0)
    }

    /// Returns the threads of the run that ended the waits, with that time, longest first.
    pub(super) fn waking_threads(&self) -> Vec<ThreadSpan> {
        let mut sums = BTreeMap::<u32, u64>::new();
        let wakers = self.rows.iter().flat_map(|row| &row.wakers);
        for waker in wakers.filter(|waker| waker.kind == PartyKind::Thread) {
            for span in &waker.by_thread {
                let sum = sums.entry(span.thread).or_default();
                *sum = sum.saturating_add(span.ns.0);
            }
        }
        let span = |(thread, ns)| ThreadSpan { thread, ns: Ns(ns) };
        let mut spans: Vec<ThreadSpan> = sums.into_iter().map(span).collect();
        spans.sort_by_key(|span| (std::cmp::Reverse(span.ns), span.thread));
        spans
    }

    /// Describes the longest of the waits: what they were for, where, and because of whom.
    pub(super) fn blame(&self) -> Option<Blame> {
        let mut rows = self.rows.clone();
        rows.sort_by_key(|row| std::cmp::Reverse(row.wait_ns));
        let first = rows.first()?;
        let ns_where = |wanted: &dyn Fn(&CauseRow) -> bool| {
            let wanted = rows.iter().filter(|row| wanted(row));
            wanted.map(|row| row.wait_ns.as_f64()).sum::<f64>()
        };
        let there_ns = ns_where(&|row| row.site == first.site);
        let known_ns = ns_where(&|row| row.site.is_some());
        // (Who waits for a condition may have had to wait for its mutex, too.)
        let for_lock_ns = ns_where(&|row| row.purpose.is_lock());
        let holders =
            || rows.iter().filter(|row| row.purpose.is_lock()).flat_map(|row| &row.holders);
        let has_ns = |one: &Party| {
            let all =
                holders().filter(|other| (other.group, &other.name) == (one.group, &one.name));
            all.map(|party| party.wait_ns.as_f64()).sum::<f64>()
        };
        Some(Blame {
            process: first.process,
            object: Some(first.object.clone()),
            file: None,
            api: first.api,
            site: first.site,
            elsewhere: there_ns < ONE_PLACE * known_ns,
            wait_ns: Ns::from_f64(self.wait_ns()),
            holder: most(holders()).filter(|one| has_ns(one) >= HAS_IT * for_lock_ns),
            waker: most(rows.iter().flat_map(|row| &row.wakers)),
        })
    }
}

/// Returns the party with most of the time, summed over rows.
fn most<'p>(parties: impl Iterator<Item = &'p Party>) -> Option<Party> {
    let mut sums: Vec<Party> = Vec::new();
    for party in parties {
        let same = |known: &&mut Party| {
            (known.kind, known.group, known.api, known.site, &known.name)
                == (party.kind, party.group, party.api, party.site, &party.name)
        };
        match sums.iter_mut().find(same) {
            Some(known) => known.wait_ns.0 = known.wait_ns.0.saturating_add(party.wait_ns.0),
            None => sums.push(party.clone()),
        }
    }
    // Of several with the same time, the first.
    sums.into_iter().rev().max_by_key(|party| party.wait_ns)
}
