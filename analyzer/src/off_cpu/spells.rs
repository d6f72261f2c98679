//! Single times off the CPU, and which of them an estimate from samples does not contain.
//!
//! The scheduler's times are those of all calls of a context, but the estimated time of these calls is that of the
//! samples, scaled up. What happens to a sample by chance must not be scaled up, so the hook leaves it out: a sample
//! that was preempted for long, or waited far longer than the samples before it, only counts for itself. So of such
//! times off the CPU, of which samples saw the part *p* = samples / calls, an estimate has only that part. Let *d* be
//! their durations: what is missing is (1 − *p*) · Σ *d*, with the variance *p* · (1 − *p*) · Σ *d*², since each of
//! them fell into a sample with probability *p*.

use chase_recorder::layout::{INTERRUPTION_MEANS, INTERRUPTION_NS, INTERRUPTIONS_BELIEVED};
use chase_recorder::syscalls::{WAIT_PREEMPTED, WAIT_VOLUNTARY, WaitRow, bucket_end_ns};

/// The times off the CPU of the calls of one context, by duration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spells {
    waits: Vec<Spell>,
    preemptions: Vec<Spell>,
}

/// Times off the CPU that took about as long as each other.
#[derive(Clone, Copy, Debug)]
struct Spell {
    times: f64,
    each_ns: f64,
}

/// How the calls of a context were sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    /// Their mean duration, by the samples.
    pub(crate) mean_ns: f64,
    /// The number of samples as a fraction of the calls.
    pub(crate) part: f64,
}

/// What an estimate doesn't contain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Missing {
    pub(crate) ns: f64,
    /// In ns².
    pub(crate) variance: f64,
}

impl Spells {
    /// Adds a row of the companion's.
    pub(crate) fn add(&mut self, row: &WaitRow) {
        match row.kind {
            WAIT_VOLUNTARY => self.waits.extend(spells(row)),
            WAIT_PREEMPTED => self.preemptions.extend(spells(row)),
            _ => {}
        }
    }

    /// Returns what an estimate by `sampling` doesn't contain.
    pub(crate) fn missing(&self, sampling: Sampling) -> Missing {
        let part = sampling.part.clamp(0.0, 1.0);
        let least_ns = (sampling.mean_ns * INTERRUPTION_MEANS as f64).max(INTERRUPTION_NS as f64);
        let long = |spells: &[Spell]| -> (f64, f64, f64) {
            let long = spells.iter().filter(|spell| spell.each_ns >= least_ns);
            long.fold((0.0, 0.0, 0.0), |(times, ns, squares), spell| {
                let of_these = spell.times * spell.each_ns;
                (times + spell.times, ns + of_these, squares + of_these * spell.each_ns)
            })
        };
        let (_, mut ns, mut squares) = long(&self.preemptions);
        let (waits, waited_ns, waited_squares) = long(&self.waits);
        if waits * part < f64::from(INTERRUPTIONS_BELIEVED) {
            (ns, squares) = (ns + waited_ns, squares + waited_squares);
        }
        Missing { ns: ns * (1.0 - part), variance: squares * part * (1.0 - part) }
    }
}

/// Returns one entry for each bucket of a row, so that their sum is the row's.
fn spells(row: &WaitRow) -> impl Iterator<Item = Spell> {
    let longest = row.max_ns as f64;
    let middle = move |bucket: usize| match bucket_end_ns(bucket) {
        Some(end) => (0.75 * end as f64).min(longest),
        None => longest,
    };
    let filled = move |&(_, times): &(usize, u64)| times > 0;
    let buckets: Vec<_> = row.histogram.into_iter().enumerate().filter(filled).collect();
    let sum: f64 = buckets.iter().map(|&(bucket, times)| times as f64 * middle(bucket)).sum();
    let scale = if sum > 0.0 { row.total_ns as f64 / sum } else { 0.0 };
    buckets
        .into_iter()
        .map(move |(bucket, times)| Spell { times: times as f64, each_ns: middle(bucket) * scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spells_of(kind: u32, durations: &[u64]) -> Spells {
        let mut row: WaitRow = bytemuck::Zeroable::zeroed();
        row.kind = kind;
        for &ns in durations {
            row.waits += 1;
            row.total_ns += ns;
            row.max_ns = row.max_ns.max(ns);
            let bucket = (0..).position(|b| bucket_end_ns(b).is_none_or(|end| ns < end));
            row.histogram[bucket.expect("the last one has no end")] += 1;
        }
        let mut spells = Spells::default();
        spells.add(&row);
        spells
    }

    const SAMPLING: Sampling = Sampling { mean_ns: 500.0, part: 0.01 };

    #[test]
    fn of_long_preemptions_an_estimate_has_the_part_that_samples_saw() {
        let spells = spells_of(WAIT_PREEMPTED, &[3_000_000; 50]);
        let missing = spells.missing(SAMPLING);
        assert!((missing.ns / (150e6 * 0.99) - 1.0).abs() < 1e-9, "{missing:?}");
        assert!((missing.variance / (50.0 * 9e12 * 0.0099) - 1.0).abs() < 1e-9, "{missing:?}");
        assert_eq!(spells.missing(Sampling { part: 1.0, ..SAMPLING }).ns, 0.0);
    }

    #[test]
    fn short_ones_are_like_the_calls() {
        assert_eq!(spells_of(WAIT_PREEMPTED, &[5_000; 50]).missing(SAMPLING).ns, 0.0);
        let long_calls = Sampling { mean_ns: 100_000.0, part: 0.1 };
        assert_eq!(spells_of(WAIT_PREEMPTED, &[3_000_000; 50]).missing(long_calls).ns, 0.0);
        // Some of both.
        let mut durations = vec![5_000; 50];
        durations.extend([3_000_000; 2]);
        let missing = spells_of(WAIT_PREEMPTED, &durations).missing(SAMPLING);
        assert!((missing.ns / (6e6 * 0.99) - 1.0).abs() < 0.1, "{missing:?}");
    }

    #[test]
    fn waits_are_missing_as_long_as_they_are_rare() {
        let missing = spells_of(WAIT_VOLUNTARY, &[10_000_000; 4]).missing(SAMPLING);
        assert!((missing.ns / (40e6 * 0.99) - 1.0).abs() < 1e-9, "{missing:?}");
        assert_eq!(spells_of(WAIT_VOLUNTARY, &[10_000_000; 400]).missing(SAMPLING).ns, 0.0);
    }
}
