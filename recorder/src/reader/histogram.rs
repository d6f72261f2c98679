//! Durations as counts per bucket.

use crate::histogram::{BUCKETS, PAGE_BUCKETS, bucket_middle, bucket_of};

/// Durations in ticks: how many fell into which bucket, and the exact longest.
///
/// Sparse, as in the file: only pages with counts are held. Counts saturate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Page number and counts, by page number.
    pages: Vec<(u8, [u64; PAGE_BUCKETS])>,
    count: u64,
    max: u64,
}

impl Histogram {
    /// Counts `times` durations of `ticks`.
    pub fn record(&mut self, ticks: u64, times: u64) {
        if times == 0 {
            return;
        }
        let bucket = bucket_of(ticks);
        let cell = &mut self.page_mut((bucket / PAGE_BUCKETS) as u8)[bucket % PAGE_BUCKETS];
        *cell = cell.saturating_add(times);
        self.count = self.count.saturating_add(times);
        self.max = self.max.max(ticks);
    }

    /// Adds the counts of page `number` as they stand in a recording.
    pub(super) fn add_page(&mut self, number: u8, counts: &[u64; PAGE_BUCKETS]) {
        match self.pages.binary_search_by_key(&number, |page| page.0) {
            Ok(at) => add(&mut self.pages[at].1, counts),
            Err(at) => self.pages.insert(at, (number, *counts)),
        }
        let counts = counts.iter().filter(|&&count| count != 0);
        self.count = counts.fold(self.count, |sum, &count| sum.saturating_add(count));
    }

    /// Removes all durations; keeps the memory.
    pub fn clear(&mut self) {
        self.pages.clear();
        (self.count, self.max) = (0, 0);
    }

    /// Notes that the longest duration was at least `ticks`.
    pub fn raise_max(&mut self, ticks: u64) {
        self.max = self.max.max(ticks);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (number, counts) in &other.pages {
            match self.pages.binary_search_by_key(number, |page| page.0) {
                Ok(at) => add(&mut self.pages[at].1, counts),
                Err(at) => self.pages.insert(at, (*number, *counts)),
            }
        }
        self.count = self.count.saturating_add(other.count);
        self.max = self.max.max(other.max);
    }

    /// How many durations were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest duration, exact, in ticks; 0 if there is none.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The duration, in ticks, that a fraction `q` (0 to 1) of all does not exceed: the value of
    /// rank ⌈q · count⌉, within 6.25 %. `None` if there is none.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = (q.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0);
        let mut below = 0_u64;
        let reaches_rank = |(bucket, count)| {
            below = below.saturating_add(count);
            (below as f64 >= rank).then_some(bucket)
        };
        // A rank that rounding put above all counts is that of the longest.
        let bucket = self.buckets().find_map(reaches_rank).unwrap_or(BUCKETS - 1);
        // The last bucket has no end, and no middle is longer than the longest.
        Some(if bucket == BUCKETS - 1 { self.max } else { bucket_middle(bucket).min(self.max) })
    }

    /// The buckets that have counts, shortest first.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        self.pages
            .iter()
            .flat_map(|(number, counts)| {
                let first = usize::from(*number) * PAGE_BUCKETS;
                counts.iter().enumerate().map(move |(at, &count)| (first + at, count))
            })
            .filter(|&(_, count)| count > 0)
    }

    fn page_mut(&mut self, number: u8) -> &mut [u64; PAGE_BUCKETS] {
        let at = match self.pages.binary_search_by_key(&number, |page| page.0) {
            Ok(at) => at,
            Err(at) => {
                self.pages.insert(at, (number, [0; PAGE_BUCKETS]));
                at
            }
        };
        &mut self.pages[at].1
    }
}

/// Adds the counts of a page. Most are 0.
fn add(cells: &mut [u64; PAGE_BUCKETS], counts: &[u64; PAGE_BUCKETS]) {
    for (cell, &count) in cells.iter_mut().zip(counts) {
        if count != 0 {
            *cell = cell.saturating_add(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_the_promised_error() {
        let mut histogram = Histogram::default();
        for ticks in 1..=10_000 {
            histogram.record(ticks * 10, 1);
        }
        for (q, exact) in [(0.5, 50_000_u64), (0.9, 90_000), (0.99, 99_000), (0.999, 99_900)] {
            let found = histogram.quantile(q).expect("not empty");
            assert!(found.abs_diff(exact) * 10_000 <= exact * 625, "{q}: {found}, not {exact}");
        }
        assert_eq!(histogram.quantile(0.0), Some(10));
        assert_eq!((histogram.count(), histogram.max()), (10_000, 100_000));
    }

    #[test]
    fn merging_is_recording_in_one() {
        let (mut left, mut right, mut both) = <(Histogram, Histogram, Histogram)>::default();
        for ticks in [0, 3, 70, 5_000, 1 << 50] {
            left.record(ticks, 2);
            both.record(ticks, 2);
            right.record(ticks * 3, 5);
            both.record(ticks * 3, 5);
        }
        left.merge(&right);
        assert_eq!(left, both);
        assert_eq!(left.quantile(1.0), Some(3 << 50), "the last bucket stands for the maximum");
    }

    #[test]
    fn pages_add_up_and_a_cleared_one_is_empty() {
        let mut page = [0; PAGE_BUCKETS];
        (page[3], page[13]) = (2, u64::MAX - 1);
        let mut twice = Histogram::default();
        twice.add_page(1, &page);
        assert_eq!(twice.count(), u64::MAX);
        twice.add_page(1, &page);
        let counts: Vec<_> = twice.buckets().collect();
        assert_eq!(counts, [(PAGE_BUCKETS + 3, 4), (PAGE_BUCKETS + 13, u64::MAX)]);
        twice.raise_max(7);
        twice.clear();
        assert_eq!(twice, Histogram::default());
    }

    #[test]
    fn an_empty_one_has_no_quantile() {
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
