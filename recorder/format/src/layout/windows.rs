//! Calls that are seen in windows.

use bytemuck::{Pod, Zeroable};

/// [`TwinRecord::state`]: the record may be read.
pub const TWIN_USED: u32 = 1;

/// A slot whose calls are seen in windows alone. Times are times in which the process worked: of one thread,
/// its CPU time; of several, what passed while any of them ran.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct TwinRecord {
    /// [`TWIN_USED`] if it may be read.
    pub state: u32,
    /// Number of the slot; none of an object's.
    pub slot: u32,
    /// The import's own slot.
    pub of: u32,
    /// Windows that were closed.
    pub windows: u32,
    /// How long windows were open, less what the calls in them are taken to have cost: in that time the
    /// program did as much as in the same time between windows.
    pub on_ns: u64,
    /// The pauses that they stand for too.
    pub off_ns: u64,
    /// The other pauses: CPU time of the process, of all its threads together.
    pub unseen_ns: u64,
    /// The calls that were credited in windows, in all threads.
    pub calls: u64,
    /// Of version 4.
    pub unused: [u64; 3],
    /// What was subtracted from `on_ns`.
    pub cost_ns: u64,
    /// The calls in pauses, as the windows tell: [`TwinRecord::add_pause`].
    pub calls_between: u64,
    /// The variance of that: [`TwinRecord::add_window`].
    pub variance_between: u64,
    /// Room for what a later version knows.
    pub reserved: [u64; 4],
}

/// One time that an import was hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How long it was open, less what the calls in it are taken to have cost, ns.
    pub open_ns: u64,
    /// The calls that were credited in it.
    pub calls: u64,
}

impl Window {
    /// As many calls as it had, in another time.
    fn calls_in(self, ns: u64) -> u128 {
        u128::from(self.calls) * u128::from(ns) / u128::from(self.open_ns.max(1))
    }
}

impl TwinRecord {
    /// Adds a window. What was called in the `pause_ns` before it is taken to have been as much as in the window;
    /// and the doubt about that comes from the window `before` the pause. The variance of such
    /// an estimate is that of the rate of calls, half of the square of the difference of two (successive
    /// differences; Wolter, Introduction to Variance Estimation, 8.2), times 1 + window / pause, since
    /// the pause has chance calls as well.
    pub fn add_window(&mut self, window: Window, pause_ns: u64, before: Option<Window>) {
        self.windows += 1;
        self.on_ns += window.open_ns;
        self.calls = self.calls.saturating_add(window.calls);
        self.add_pause(window, pause_ns);
        if let (Some(before), 1..) = (before, pause_ns) {
            let difference = window.calls_in(pause_ns).abs_diff(before.calls_in(pause_ns));
            let both_ns = u128::from(window.open_ns) + u128::from(pause_ns);
            let variance =
                difference.saturating_pow(2).saturating_mul(both_ns) / u128::from(pause_ns) / 2;
            self.variance_between = self.variance_between.saturating_add(saturated(variance));
        }
    }

    /// Adds the calls of a pause, which are taken to be as many as in a window beside it.
    pub fn add_pause(&mut self, beside: Window, pause_ns: u64) {
        let calls = saturated(beside.calls_in(pause_ns));
        self.calls_between = self.calls_between.saturating_add(calls);
    }
}

fn saturated(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
