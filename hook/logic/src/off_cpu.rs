//! How the time that a thread was off the CPU is attributed, where only the thread itself is asked.

/// Who is preempted has the processor again after about so long, where few others want it: each has some milliseconds.
const LONGEST_TURN_NS: u64 = 10_000_000;

/// The time since a thread last asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stretch {
    /// When it began.
    pub began_ticks: u64,
    /// Its length by the clock of calls, and in ns.
    pub ticks: u64,
    /// See `ticks`.
    pub ns: u64,
    /// The time off the CPU.
    pub off_ns: u64,
    /// How often the thread has given up the CPU voluntarily meanwhile, and how often it was preempted.
    pub switches: (u64, u64),
}

impl Stretch {
    /// Whether the thread has only waited, and was not preempted.
    fn is_blocked(&self) -> bool {
        self.switches.0 > 0 && self.switches.1 == 0
    }

    /// Returns the part of `ns` that it waited. If it was preempted, too, it is unknown how long each took: then, in proportion to how
    /// often, but no preemption takes longer than 10 ms, while a wait may take for ever.
    #[must_use]
    pub fn blocked_part(&self, ns: u64) -> u64 {
        let (voluntary, involuntary) = self.switches;
        if voluntary == 0 {
            return 0;
        }
        let part = u128::from(ns) * u128::from(involuntary);
        let part = part / (u128::from(voluntary) + u128::from(involuntary));
        let preempted = u64::try_from(part).unwrap_or(ns);
        ns - preempted.min(involuntary.saturating_mul(LONGEST_TURN_NS))
    }

    /// Converts ticks of this stretch to ns.
    fn ns_of(&self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * u128::from(self.ns) / u128::from(self.ticks.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Returns how much of the time off the CPU was in the call that ended with this stretch and took `ticks`, while others
    /// of its kind take `usual`: what it took longer than these, or all if the thread has only waited, which its own
    /// code hardly does; but at least what the rest of the stretch has no room for.
    #[must_use]
    pub fn in_last_call_ns(&self, ticks: u64, usual: u64) -> u64 {
        let gap_ns = self.ns_of(self.ticks.saturating_sub(ticks));
        let call_ns = self.ns_of(ticks.min(self.ticks));
        let usual_ns = if self.is_blocked() { 0 } else { self.ns_of(usual) };
        let least_ns = self.off_ns.saturating_sub(gap_ns).min(call_ns);
        self.off_ns.min(call_ns.saturating_sub(usual_ns)).max(least_ns)
    }

    /// Returns the part of `ns` that was in a call that is still open, whose own code ran for `ticks` of this stretch while
    /// others ran for `ticks_before`: all that it has room for if the thread has only waited, otherwise in proportion; but at
    /// least what the others have no room for.
    #[must_use]
    pub fn in_open_call_ns(&self, ns: u64, ticks: u64, ticks_before: u64) -> u64 {
        let [call_ns, before_ns] = [ticks, ticks_before].map(|ticks| self.ns_of(ticks));
        let of_both = u128::from(ns) * u128::from(ticks)
            / (u128::from(ticks) + u128::from(ticks_before)).max(1);
        let part = if self.is_blocked() { ns } else { u64::try_from(of_both).unwrap_or(ns) };
        part.min(call_ns).max(ns.saturating_sub(before_ns).min(call_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A millisecond of a counter of 3 GHz.
    const STRETCH: Stretch =
        Stretch { began_ticks: 0, ticks: 3_000_000, ns: 1_000_000, off_ns: 0, switches: (0, 0) };

    #[test]
    fn a_wait_is_the_calls() {
        let stretch = Stretch { off_ns: 400_000, switches: (3, 0), ..STRETCH };
        assert_eq!(stretch.in_last_call_ns(1_500_000, 600_000), 400_000);
        // Not more than the call took.
        assert_eq!(stretch.in_last_call_ns(900_000, 0), 300_000);
        assert_eq!(stretch.blocked_part(400_000), 400_000);
    }

    #[test]
    fn a_preemption_is_the_calls_as_far_as_that_took_longer_than_others() {
        let stretch = Stretch { off_ns: 400_000, switches: (0, 1), ..STRETCH };
        assert_eq!(stretch.in_last_call_ns(1_500_000, 600_000), 300_000);
        assert_eq!(stretch.in_last_call_ns(600_000, 600_000), 0);
        assert_eq!(stretch.blocked_part(400_000), 0);
        // The rest of the stretch is shorter than the time that is missing.
        assert_eq!(stretch.in_last_call_ns(2_700_000, 2_700_000), 300_000);
    }

    #[test]
    fn who_waits_and_is_preempted_is_both() {
        assert_eq!(Stretch { switches: (3, 1), ..STRETCH }.blocked_part(400), 300);
        assert_eq!(STRETCH.blocked_part(400), 0);
        let most = Stretch { switches: (u64::MAX, u64::MAX), ..STRETCH };
        assert_eq!(most.blocked_part(u64::MAX), u64::MAX - u64::MAX / 2);
        // A sleep of half a second, at the end of which somebody else had the processor.
        let slept = Stretch { switches: (1, 1), ..STRETCH };
        assert_eq!(slept.blocked_part(500_000_000), 490_000_000);
        assert_eq!(slept.blocked_part(4_000_000), 2_000_000);
    }

    #[test]
    fn a_wait_is_the_call_that_was_open() {
        let blocked = Stretch { switches: (2, 0), ..STRETCH };
        // Of 900 us, 600 us in the call, and 300 us before it.
        assert_eq!(blocked.in_open_call_ns(500_000, 1_800_000, 900_000), 500_000);
        assert_eq!(blocked.in_open_call_ns(700_000, 1_800_000, 900_000), 600_000);
        let preempted = Stretch { switches: (0, 2), ..STRETCH };
        assert_eq!(preempted.in_open_call_ns(300_000, 1_800_000, 900_000), 200_000);
        // What was before it has no room for more.
        assert_eq!(preempted.in_open_call_ns(900_000, 1_800_000, 900_000), 600_000);
        assert_eq!(preempted.in_open_call_ns(700_000, 2_700_000, 100), 699_974);
        assert_eq!(preempted.in_open_call_ns(100, 0, 0), 0);
    }

    #[test]
    fn nothing_is_divided_by_a_stretch_of_no_length() {
        assert_eq!(Stretch { off_ns: 5, ..Stretch::default() }.in_last_call_ns(7, 3), 0);
    }
}
