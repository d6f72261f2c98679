//! Samples that are so long that they may have been interrupted.

/// How many of a kind, or of a longer one, are no interruptions.
const BELIEVED: u8 = 3;
/// Kinds of them: below so many means, from there to the next, and above.
const KINDS: usize = 3;
const LONGER: [u64; KINDS - 1] = [128, 1024];
/// What is held back is kept in this many ticks.
const HELD_UNIT: u64 = 1024;

/// Samples that took so long that an interruption of the whole machine may be in them, which nobody
/// tells. Such a one counts once, until there are more of its kind: then it was the call's own doing,
/// and what was held back is added. So one interruption is not multiplied, and a tail is. As long as it
/// is not known which it was, it makes blocks shorter, and the interval wider.
///
/// Of each kind: that some calls take 30 times as long as the mean tells nothing of one that took 1000
/// times as long. However long ago they were: of a tail of which a sample is rare, all would be held back.
#[derive(Clone, Copy, Default)]
pub(crate) struct Suspects {
    /// What they would have added.
    held_back: [u32; KINDS],
    counts: [u8; KINDS],
}

impl Suspects {
    /// Adds one of `ticks`, where the mean is `mean`, and the ticks that it would add to the total beyond what it took
    /// itself. If it is believed: the ticks that were held back of its kind.
    pub(crate) fn add(&mut self, ticks: u64, mean: u64, excess: u64) -> Option<u64> {
        let kind = LONGER.iter().filter(|&&means| ticks >= mean.saturating_mul(means)).count();
        self.counts[kind] = self.counts[kind].saturating_add(1);
        let alike = self.counts[kind..].iter().fold(0, |sum: u8, &count| sum.saturating_add(count));
        let before = u64::from(self.held_back[kind]) * HELD_UNIT;
        if alike >= BELIEVED {
            self.held_back[kind] = 0;
            return Some(before);
        }
        let held_back = before.saturating_add(excess) / HELD_UNIT;
        self.held_back[kind] = u32::try_from(held_back).unwrap_or(u32::MAX);
        None
    }
}
