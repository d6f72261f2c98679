//! Arguments of calls, and whether long calls are those with large arguments.

use chase_recorder::layout::{
    ARGUMENT_BUCKETS, ARGUMENT_ITEMS, ARGUMENT_LEVEL, ARGUMENT_MS, ARGUMENT_S, ARGUMENT_US,
};
use chase_recorder::reader::Arguments;
use serde::Serialize;

/// The maximum number of calls that are kept with their durations, of one context or of several.
const MANY_PAIRS: usize = 1024;
/// With fewer calls, a correlation of argument and duration says nothing.
const LEAST_PAIRS: usize = 12;

/// What an argument means, and its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentUnit {
    /// Bytes to read, to allocate, to search.
    Bytes,
    /// A number of items.
    Items,
    /// The longest wait, in milliseconds.
    Ms,
    /// The longest wait, in microseconds.
    Us,
    /// The longest wait, in seconds.
    S,
    /// A level, such as of compression.
    Level,
}

impl ArgumentUnit {
    fn from_meaning(meaning: u16) -> Self {
        match meaning {
            ARGUMENT_ITEMS => Self::Items,
            ARGUMENT_MS => Self::Ms,
            ARGUMENT_US => Self::Us,
            ARGUMENT_S => Self::S,
            ARGUMENT_LEVEL => Self::Level,
            _ => Self::Bytes,
        }
    }
}

/// The values of an argument in the timed calls of a function. Calls that were not timed are counted by the samples
/// that stand for them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArgumentRow {
    /// The meaning and unit.
    pub unit: ArgumentUnit,
    /// Calls whose argument was recorded: those that were timed.
    pub timed: u64,
    /// Calls that they stand for.
    pub calls: u64,
    /// Those of them whose argument was negative (no limit, a default); they are in no other figure.
    pub negative: u64,
    /// Sum of the arguments.
    pub sum: u64,
    /// The mean; missing if all were negative.
    pub mean: Option<f64>,
    /// The largest.
    pub max: u64,
    /// Calls by the size of their argument: 0, or from one power of two to the next. Only sizes that occur.
    pub sizes: Vec<ArgumentSizes>,
    /// Spearman's rank correlation of argument and duration, over a selection of the timed calls: 1 if the longest
    /// calls are those with the largest arguments, 0 if there is no relation. Missing if all arguments were equal, or
    /// if too few calls were kept.
    pub correlation: Option<f64>,
    /// The number of calls that it is computed from.
    pub correlation_calls: usize,
}

/// Calls whose arguments have one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ArgumentSizes {
    /// The smallest argument of this size.
    pub from: u64,
    /// Calls.
    pub calls: u64,
}

/// A call: argument, duration in ns, and how many calls it stands for.
type Pair = (u64, f64, f64);

/// Sums over the arguments of calls.
#[derive(Clone, Debug)]
pub(crate) struct ArgumentSums {
    meaning: u16,
    /// Whether calls had arguments of different meanings, which can't be added up.
    is_mixed: bool,
    timed: u64,
    weight: u64,
    negative: u64,
    sum: u64,
    max: u64,
    buckets: [u64; ARGUMENT_BUCKETS],
    pairs: Vec<Pair>,
}

impl ArgumentSums {
    /// The arguments of one context of a thread.
    pub(crate) fn new(row: &Arguments, ns_per_tick: f64) -> Self {
        let each = row.weight.saturating_sub(row.negative) as f64 / row.pairs.len().max(1) as f64;
        let pairs =
            row.pairs.iter().map(|pair| (pair.value, pair.ticks as f64 * ns_per_tick, each));
        Self {
            meaning: row.meaning,
            is_mixed: false,
            timed: row.calls,
            weight: row.weight,
            negative: row.negative,
            sum: row.sum,
            max: row.max,
            buckets: row.buckets,
            pairs: pairs.collect(),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.is_mixed |= other.is_mixed || self.meaning != other.meaning;
        self.timed = self.timed.saturating_add(other.timed);
        self.weight = self.weight.saturating_add(other.weight);
        self.negative = self.negative.saturating_add(other.negative);
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
        for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *own = own.saturating_add(*more);
        }
        self.pairs.extend(&other.pairs);
        if self.pairs.len() > MANY_PAIRS {
            // Keep every second call, whatever its place in a row of 16; it also stands for its neighbour.
            let weight: f64 = self.pairs.iter().map(|pair| pair.2).sum();
            let mut number = 0;
            self.pairs.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            let left: f64 = self.pairs.iter().map(|pair| pair.2).sum();
            self.pairs.iter_mut().for_each(|pair| pair.2 *= weight / left);
        }
    }

    /// Returns the mean; `None` if it is meaningless.
    pub(crate) fn mean(&self) -> Option<f64> {
        let calls = self.weight.saturating_sub(self.negative);
        (!self.is_mixed && calls > 0).then(|| self.sum as f64 / calls as f64)
    }

    /// Returns the figures; `None` if the arguments have different meanings.
    pub(crate) fn row(&self) -> Option<ArgumentRow> {
        if self.is_mixed || self.weight == 0 {
            return None;
        }
        let sizes = self.buckets.iter().enumerate().filter(|&(_, &calls)| calls > 0);
        let from = |bucket: usize| if bucket == 0 { 0 } else { 1 << (bucket - 1) };
        Some(ArgumentRow {
            unit: ArgumentUnit::from_meaning(self.meaning),
            timed: self.timed,
            calls: self.weight,
            negative: self.negative,
            sum: self.sum,
            mean: self.mean(),
            max: self.max,
            sizes: sizes
                .map(|(bucket, &calls)| ArgumentSizes { from: from(bucket), calls })
                .collect(),
            correlation: rank_correlation(&self.pairs),
            correlation_calls: self.pairs.len(),
        })
    }
}

/// Spearman's rank correlation of weighted pairs: Pearson's correlation of their ranks. Equal values get the middle
/// of their ranks.
fn rank_correlation(pairs: &[Pair]) -> Option<f64> {
    if pairs.len() < LEAST_PAIRS {
        return None;
    }
    let by_value = ranks(pairs, |pair| pair.0 as f64);
    let by_duration = ranks(pairs, |pair| pair.1);
    let all: f64 = pairs.iter().map(|pair| pair.2).sum();
    let mean = |ranks: &[f64]| {
        ranks.iter().zip(pairs).map(|(rank, pair)| rank * pair.2).sum::<f64>() / all
    };
    let (mean_value, mean_duration) = (mean(&by_value), mean(&by_duration));
    let (mut both, mut value, mut duration) = (0.0, 0.0, 0.0);
    for ((a, b), pair) in by_value.iter().zip(&by_duration).zip(pairs) {
        let (a, b) = (a - mean_value, b - mean_duration);
        both += pair.2 * a * b;
        value += pair.2 * a * a;
        duration += pair.2 * b * b;
    }
    let correlation = both / (value * duration).sqrt();
    correlation.is_finite().then(|| correlation.clamp(-1.0, 1.0))
}

/// Returns the rank of each pair by the value that `of` returns.
fn ranks(pairs: &[Pair], of: impl Fn(&Pair) -> f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by(|&a, &b| of(&pairs[a]).total_cmp(&of(&pairs[b])));
    let mut ranks = vec![0.0; pairs.len()];
    let mut below = 0.0;
    for same in order.chunk_by(|&a, &b| of(&pairs[a]) == of(&pairs[b])) {
        let weight: f64 = same.iter().map(|&at| pairs[at].2).sum();
        same.iter().for_each(|&at| ranks[at] = below + weight / 2.0);
        below += weight;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(of: impl Fn(u64) -> u64) -> Vec<Pair> {
        (0..40).map(|at| (at / 2, of(at / 2) as f64, 1.0)).collect()
    }

    #[test]
    fn what_grows_together_is_correlated() {
        let correlation = |of: fn(u64) -> u64| rank_correlation(&pairs(of)).unwrap();
        assert!((correlation(|size| size * size) - 1.0).abs() < 1e-9);
        assert!((correlation(|size| 1000 - size) + 1.0).abs() < 1e-9);
        assert!(correlation(|size| size * 7 % 20).abs() < 0.4);
    }

    #[test]
    fn what_is_alike_has_no_correlation() {
        assert_eq!(rank_correlation(&pairs(|_| 5)), None);
        assert_eq!(rank_correlation(&pairs(|size| size)[..5]), None);
    }

    #[test]
    fn equal_values_share_a_rank() {
        let pairs = [(1, 0.0, 1.0), (1, 0.0, 1.0), (2, 0.0, 2.0)];
        assert_eq!(ranks(&pairs, |pair| pair.0 as f64), [1.0, 1.0, 3.0]);
    }
}
