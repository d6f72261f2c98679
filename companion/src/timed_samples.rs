//! When samples were taken, to be written into the file of their process.
//!
//! The times of a process's first 32,768 samples are all recorded, then those of half of the samples, then of a quarter, and so on.
//! They are chosen at random, since the timers of several CPUs fire by turns: every second sample might always be of one thread.

use chase_format::syscalls::TimedSampleRow;

/// After this many recorded times (512 kB of the file), times are recorded half as often.
const AT_ONCE: u32 = 1 << 15;
/// The maximum number of samples that one recorded time may stand for.
const MOST: u16 = 1 << 15;
/// Nothing is written before there are this many samples, so that the files of short processes stay small.
const FEWEST: usize = 16;

/// Times of samples of one process that are not written yet. `K` says what a sample found.
#[derive(Debug)]
pub struct TimedSamples<K> {
    waiting: Vec<(K, TimedSampleRow)>,
    is_begun: bool,
    /// How many more times are recorded until they are recorded half as often.
    left: u32,
    stands_for: u16,
    random: u64,
}

impl<K> Default for TimedSamples<K> {
    fn default() -> Self {
        Self { waiting: Vec::new(), is_begun: false, left: AT_ONCE, stands_for: 1, random: 1 }
    }
}

impl<K> TimedSamples<K> {
    /// Notes a sample, or not.
    pub fn add(&mut self, key: K, at_ns: u64, in_kernel: bool) {
        // `stands_for` is a power of two.
        if self.draw() & u64::from(self.stands_for - 1) != 0 {
            return;
        }
        let row = TimedSampleRow {
            at_ns,
            row: 0,
            stands_for: self.stands_for,
            in_kernel: in_kernel.into(),
        };
        self.waiting.push((key, row));
        self.left -= 1;
        if self.left == 0 {
            self.left = AT_ONCE;
            self.stands_for = self.stands_for.saturating_mul(2).min(MOST);
        }
    }

    /// Returns the next number of Vigna's SplitMix64.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns what is to be written now: `row_of` is the index of the row that counts samples with that key.
    pub fn take(&mut self, row_of: impl Fn(&K) -> Option<u32>) -> Vec<TimedSampleRow> {
        self.is_begun |= self.waiting.len() >= FEWEST;
        if !self.is_begun {
            return Vec::new();
        }
        let ready =
            |(key, row): (K, TimedSampleRow)| Some(TimedSampleRow { row: row_of(&key)?, ..row });
        self.waiting.drain(..).filter_map(ready).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_thinned_out_and_stand_for_all() {
        let mut samples = TimedSamples::default();
        let all = 1 << 20;
        for at in 0..all {
            samples.add(at % 2, u64::from(at), false);
        }
        let rows = samples.take(|&key| Some(key));
        // Five times as many as at once, and a part of the sixth: 1 + 2 + 4 + 8 + 16 times 2^15 samples are 31 of 32.
        assert!((5 * AT_ONCE as usize..6 * AT_ONCE as usize).contains(&rows.len()));
        assert_eq!((rows[0].stands_for, rows[AT_ONCE as usize].stands_for), (1, 2));
        let weight = |of: &dyn Fn(&&TimedSampleRow) -> bool| {
            rows.iter().filter(of).map(|row| f64::from(row.stands_for)).sum::<f64>()
        };
        // The standard deviation of both is below 0.3 %.
        for (weight, expected) in [
            (weight(&|_| true), f64::from(all)),
            (weight(&|row| row.row == 0), f64::from(all) / 2.0),
        ] {
            assert!((weight / expected - 1.0).abs() < 0.015, "{weight} of {expected}");
        }
        assert!(rows.is_sorted_by_key(|row| row.at_ns));
    }

    #[test]
    fn few_are_not_written() {
        let mut samples = TimedSamples::default();
        for at in 0..FEWEST as u64 {
            assert!(samples.take(|()| Some(0)).is_empty());
            samples.add((), at, true);
        }
        assert_eq!(samples.take(|()| Some(7)).len(), FEWEST);
        samples.add((), 99, true);
        let expected = TimedSampleRow { at_ns: 99, row: 3, stands_for: 1, in_kernel: 1 };
        assert_eq!(samples.take(|()| Some(3)), [expected]);
    }
}
