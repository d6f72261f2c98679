//! Slots whose calls were seen in windows alone.

use super::chunks::Chunk;
use super::{Problem, pod_at};
use crate::layout::{TWIN_USED, TwinRecord, UNIT};

/// All twins, by number of their slot.
#[derive(Debug, Default)]
pub(super) struct TwinIndex {
    twins: Vec<Twin>,
    /// Slots of which some calls are in no figure, by number.
    incomplete: Vec<u32>,
}

impl TwinIndex {
    /// `has_slot` says whether an object has a slot of some number: of a twin's none does, and of the
    /// slot that it is the twin of, one.
    pub(super) fn new<'c>(
        bytes: &[u8],
        chunks: impl Iterator<Item = &'c Chunk>,
        has_slot: impl Fn(u32) -> bool,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut twins = Vec::new();
        let mut count = 0;
        for chunk in chunks {
            for offset in (chunk.offset + UNIT..chunk.offset + chunk.len).step_by(UNIT) {
                let Some(record) = pod_at::<TwinRecord>(bytes, offset) else { break };
                if record.state != TWIN_USED {
                    continue;
                }
                if has_slot(record.slot) || !has_slot(record.of) {
                    count += 1;
                } else {
                    twins.push(Twin { record });
                }
            }
        }
        let all = twins.len();
        twins.sort_by_key(|twin: &Twin| twin.record.slot);
        twins.dedup_by_key(|twin| twin.record.slot);
        count += (all - twins.len()) as u32;
        if count > 0 {
            problems.push(Problem::Twins { count });
        }
        let mut incomplete: Vec<u32> = twins
            .iter()
            .filter(|twin| twin.is_incomplete())
            .flat_map(|twin| [twin.record.slot, twin.record.of])
            .collect();
        incomplete.sort_unstable();
        Self { twins, incomplete }
    }

    pub(super) fn is_incomplete(&self, slot: u32) -> bool {
        self.incomplete.binary_search(&slot).is_ok()
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Twin> {
        let at = self.twins.binary_search_by_key(&slot, |twin| twin.record.slot).ok()?;
        self.twins.get(at)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Twin> {
        self.twins.iter()
    }
}

/// A slot whose calls were seen in windows alone.
#[derive(Clone, Copy, Debug)]
pub struct Twin {
    record: TwinRecord,
}

impl Twin {
    /// The record as it stands in the file.
    #[must_use]
    pub fn record(&self) -> &TwinRecord {
        &self.record
    }

    /// Whether there were pauses that no window stands for.
    fn is_incomplete(&self) -> bool {
        let TwinRecord { unseen_ns, off_ns, windows, .. } = self.record;
        unseen_ns > 0 || off_ns > 0 && windows == 0
    }

    /// How many calls each one that was seen stands for: 1 + those between windows / those in windows, at
    /// least 1. Before version 5, and where no window had calls, it is told by the time: (on + off) / on.
    #[must_use]
    pub fn factor(&self) -> f64 {
        let TwinRecord { on_ns, off_ns, calls, calls_between, .. } = self.record;
        match (calls, on_ns) {
            (1.., _) if calls_between > 0 => 1.0 + calls_between as f64 / calls as f64,
            (_, 1..) => 1.0 + off_ns as f64 / on_ns as f64,
            _ => 1.0,
        }
    }

    /// Variance of the estimate of all calls, as a fraction of its square: that of the calls between
    /// windows ([`TwinRecord::add_window`]; n windows have n − 1 differences), and what is not known of the
    /// cost of calls in windows, which was subtracted from their time: a 95 % interval holds it to be wrong
    /// by up to 1.5 times as much (seen: 1.2 times). 1 where there were fewer than two windows, or no calls in any,
    /// and before version 5; 0 where nothing is estimated.
    #[must_use]
    pub fn relative_variance(&self) -> f64 {
        let TwinRecord { windows, on_ns, off_ns, calls, calls_between, .. } = self.record;
        if off_ns == 0 {
            return 0.0;
        }
        if windows < 2 || calls_between == 0 || on_ns == 0 {
            return 1.0;
        }
        let (windows, all) = (f64::from(windows), calls as f64 + calls_between as f64);
        let between = self.record.variance_between as f64 * windows / (windows - 1.0);
        let of_cost = 0.75 * self.record.cost_ns as f64 / on_ns as f64 * calls_between as f64;
        ((between + of_cost * of_cost) / (all * all)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Window;

    /// Windows of 1 ms with these calls, each after a pause three times as long.
    fn twin(calls: &[u64]) -> Twin {
        const OPEN: u64 = 1_000_000;
        let mut record =
            TwinRecord { off_ns: 3 * OPEN * calls.len() as u64, ..TwinRecord::default() };
        let mut before = None;
        for &calls in calls {
            let window = Window { open_ns: OPEN, calls };
            record.add_window(window, 3 * OPEN, before.replace(window));
        }
        Twin { record }
    }

    #[test]
    fn windows_that_are_alike_tell_all() {
        let alike = twin(&[500; 20]);
        assert!((alike.factor() - 4.0).abs() < 1e-9);
        assert!(alike.relative_variance() < 1e-12);
    }

    #[test]
    fn the_spread_between_windows_tells_the_error() {
        // σ/mean of a window is 0.5, and half of the differences are 0; 100 of them, of which three
        // quarters of the time are not seen.
        let uneven: Vec<u64> = (0..100).map(|at| if at % 4 < 2 { 250 } else { 750 }).collect();
        let expected = 0.75 * 0.25 / 100.0;
        let found = twin(&uneven).relative_variance();
        assert!((found / expected - 1.0).abs() < 0.02, "{found}, not {expected}");
        assert!((twin(&[7]).relative_variance() - 1.0).abs() < 1e-9, "one window tells nothing");
    }

    /// A time in which nothing is called, and no window is closed, says nothing of other times.
    #[test]
    fn windows_stand_for_the_pauses_beside_them() {
        let mut twin = twin(&[500; 20]);
        let window = Window { open_ns: 1_000_000_000, calls: 0 };
        twin.record.add_window(window, 0, None);
        assert!((twin.factor() - 4.0).abs() < 1e-9);
        twin.record.add_pause(Window { open_ns: 1_000, calls: 2 }, 5_000_000);
        assert!((twin.factor() - 5.0).abs() < 1e-9);
    }

    #[test]
    fn one_that_was_never_closed_is_exact() {
        let record = TwinRecord { windows: 1, on_ns: 5, calls: 3, ..TwinRecord::default() };
        let twin = Twin { record };
        assert!((twin.factor() - 1.0).abs() < 1e-9 && twin.relative_variance() == 0.0);
    }
}
