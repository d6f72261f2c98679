//! Slots whose calls were seen in windows alone.

use super::chunks::Chunk;
use super::{Problem, pod_at};
use crate::layout::{TWIN_USED, TwinRecord, UNIT};

/// All twins, by number of their slot.
#[derive(Debug, Default)]
pub(super) struct TwinIndex {
    twins: Vec<Twin>,
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
        Self { twins }
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

    /// How many calls each one that was seen stands for: (on + off) / on, at least 1.
    #[must_use]
    pub fn factor(&self) -> f64 {
        let TwinRecord { on_ns, off_ns, .. } = self.record;
        if on_ns == 0 { 1.0 } else { (on_ns as f64 + off_ns as f64) / on_ns as f64 }
    }

    /// Variance of the estimate of all calls, as a fraction of its square, from the spread between
    /// windows. With x_i the time of window i of n, y_i its calls, and r = Σy / Σx, the estimate is r times
    /// a known time, and its relative variance (1 − Σx / T) · n / (n − 1) · Σ (y_i − r·x_i)² / (Σy)², T the
    /// time that windows stand for (ratio estimator; Cochran, Sampling Techniques, 6.4). 1 where fewer than
    /// two windows had calls, 0 where nothing is estimated. What calls in windows cost was
    /// subtracted from their time; that this was all wrong, or only half of it, is taken for the ends of a
    /// 95 % interval.
    #[must_use]
    pub fn relative_variance(&self) -> f64 {
        let record = &self.record;
        if record.off_ns == 0 {
            return 0.0;
        }
        let (windows, calls) = (f64::from(record.windows), record.calls as f64);
        let open_us = record.on_ns as f64 / 1000.0;
        if record.windows < 2 || calls == 0.0 || open_us == 0.0 {
            return 1.0;
        }
        let rate = calls / open_us;
        let squares = record.calls_squared as f64 - 2.0 * rate * record.calls_open_us as f64
            + rate * rate * record.open_us_squared as f64;
        let closed_part = 1.0 - 1.0 / self.factor();
        let variance = closed_part * windows / (windows - 1.0) * squares.max(0.0) / (calls * calls);
        let of_cost = record.cost_ns as f64 / record.on_ns as f64 / 2.0;
        (variance + closed_part * of_cost * of_cost).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of 1 ms with these calls, each followed by a pause three times as long.
    fn twin(calls: &[u64]) -> Twin {
        let windows = calls.len() as u64;
        let record = TwinRecord {
            windows: windows as u32,
            on_ns: windows * 1_000_000,
            off_ns: windows * 3_000_000,
            calls: calls.iter().sum(),
            calls_squared: calls.iter().map(|calls| calls * calls).sum(),
            calls_open_us: calls.iter().map(|calls| calls * 1000).sum(),
            open_us_squared: windows * 1_000_000,
            ..TwinRecord::default()
        };
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
        // σ/mean of a window is 0.5; 100 of them, of which three quarters of the time are not seen.
        let uneven: Vec<u64> = (0..100).map(|at| if at % 2 == 0 { 250 } else { 750 }).collect();
        let expected = 0.75 * 0.25 / 100.0;
        let found = twin(&uneven).relative_variance();
        assert!((found / expected - 1.0).abs() < 0.02, "{found}, not {expected}");
        assert!((twin(&[7]).relative_variance() - 1.0).abs() < 1e-9, "one window tells nothing");
    }

    #[test]
    fn one_that_was_never_closed_is_exact() {
        let record = TwinRecord { windows: 1, on_ns: 5, calls: 3, ..TwinRecord::default() };
        let twin = Twin { record };
        assert!((twin.factor() - 1.0).abs() < 1e-9 && twin.relative_variance() == 0.0);
    }
}
