//! Samples that are so long that they may have been interrupted.

use chase_format::layout::INTERRUPTIONS_BELIEVED;

/// The kinds of such samples, by duration: below the first number of means, below the second, and above.
const KINDS: usize = 3;
const LONGER: [u64; KINDS - 1] = [128, 1024];
/// What is held back is stored in units of so many ticks.
const HELD_UNIT: u64 = 1024;

/// Samples so long that they may include an interruption of the whole machine, which can't be detected. Such a sample
/// only counts once, until there are more of its kind: then calls are really that long, and what was held back is
/// added. So an interruption is not multiplied by the block's length, but a heavy tail is. As long as it is unknown
/// which it was, blocks are shorter, and confidence intervals wider.
///
/// Kinds are separate, since calls that take 30 times the mean are no reason to expect one that takes 1000 times.
/// Samples are remembered for ever: otherwise, all samples of a tail would be held back if they are rare.
#[derive(Clone, Copy, Default)]
pub struct Suspects {
    /// The ticks that they would have added.
    held_back: [u32; KINDS],
    counts: [u8; KINDS],
}

impl Suspects {
    /// Adds a sample of `ticks`, given the mean, and the `excess` that it would add to the total beyond its own ticks.
    /// If the sample counts, returns the ticks that were held back of its kind, otherwise `None`.
    pub fn add(&mut self, ticks: u64, mean: u64, excess: u64) -> Option<u64> {
        let kind = LONGER.iter().filter(|&&means| ticks >= mean.saturating_mul(means)).count();
        self.counts[kind] = self.counts[kind].saturating_add(1);
        let alike = self.counts[kind..].iter().fold(0, |sum: u8, &count| sum.saturating_add(count));
        let before = u64::from(self.held_back[kind]) * HELD_UNIT;
        if alike >= INTERRUPTIONS_BELIEVED {
            self.held_back[kind] = 0;
            return Some(before);
        }
        let held_back = before.saturating_add(excess) / HELD_UNIT;
        self.held_back[kind] = u32::try_from(held_back).unwrap_or(u32::MAX);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: u64 = 1_000;

    #[test]
    fn a_lone_interruption_is_held_back() {
        let mut suspects = Suspects::default();
        assert_eq!(suspects.add(100 * MEAN, MEAN, 1 << 20), None);
        assert_eq!(suspects.add(100 * MEAN, MEAN, 1 << 20), None);
    }

    #[test]
    fn what_was_held_back_of_a_tail_is_added_once() {
        let mut suspects = Suspects::default();
        let excess = 5 * HELD_UNIT;
        for _ in 1..INTERRUPTIONS_BELIEVED {
            assert_eq!(suspects.add(100 * MEAN, MEAN, excess), None);
        }
        assert_eq!(
            suspects.add(100 * MEAN, MEAN, excess),
            Some(u64::from(INTERRUPTIONS_BELIEVED - 1) * excess)
        );
        assert_eq!(suspects.add(100 * MEAN, MEAN, excess), Some(0));
    }

    #[test]
    fn longer_ones_tell_of_shorter_ones_and_not_the_other_way_round() {
        let mut suspects = Suspects::default();
        for _ in 0..INTERRUPTIONS_BELIEVED {
            suspects.add(100 * MEAN, MEAN, HELD_UNIT);
        }
        assert_eq!(suspects.add(2_000 * MEAN, MEAN, HELD_UNIT), None);
        let mut suspects = Suspects::default();
        for _ in 0..INTERRUPTIONS_BELIEVED {
            suspects.add(2_000 * MEAN, MEAN, HELD_UNIT);
        }
        assert_eq!(suspects.add(100 * MEAN, MEAN, HELD_UNIT), Some(0));
    }

    #[test]
    fn no_number_is_too_large() {
        let mut suspects = Suspects::default();
        for _ in 0..1_000 {
            suspects.add(u64::MAX, u64::MAX, u64::MAX);
        }
        assert_eq!(suspects.add(u64::MAX, 1, u64::MAX), Some(0));
    }
}
