//! When a thread asks the kernel how long it was off the CPU, and to which calls that time is attributed.

use core::sync::atomic::Ordering;

use chase_format::layout::Node;

use crate::abi::LONG;
use crate::clock;
use crate::thread::{LEAST_COST, Thread, ask_limit, is_asking, set_ask_limit};
use chase_logic::off_cpu::Stretch;

/// Minimum duration of calls after which the thread asks.
const LIMIT_US: u64 = 50;
/// Asking was not disturbed if it took less than so many times the shortest.
const UNDISTURBED: u64 = 4;

impl Thread {
    /// Handles the end of a call of `node`, whose frame is released: if the call took long, records it as an event,
    /// and asks for its time off the CPU.
    #[inline]
    pub(crate) fn note_end(&self, node: *mut Node, start_ticks: u64, end_ticks: u64) {
        let ticks = end_ticks.saturating_sub(start_ticks);
        if ticks < LONG.load(Ordering::Relaxed) {
            return;
        }
        if ticks >= ask_limit() {
            self.ask(node, ticks, end_ticks);
        }
        self.note_event(node, start_ticks, ticks);
    }

    /// Records a call of `node` that has returned as an event, if it qualifies.
    pub(crate) fn note_event(&self, node: *mut Node, start_ticks: u64, ticks: u64) {
        // Making room may take long itself; that time must not be attributed to the next long call.
        if self.note_call(node, start_ticks, ticks) {
            self.ask_between();
        }
    }

    #[cold]
    #[inline(never)]
    fn ask(&self, node: *mut Node, ticks: u64, end_ticks: u64) {
        let record = self.own_record();
        // SAFETY: the record is this thread's.
        let was_asked = unsafe { (*record).asks > 0 };
        if !is_asking() || !was_asked || self.is_busy() {
            return;
        }
        let stretch = self.take_stretch(end_ticks);
        if stretch.off_ns > 0 {
            // SAFETY: the node is one of this thread's.
            let (others, total) = unsafe { ((*node).calls.saturating_sub(1), (*node).total_ticks) };
            let usual = total.saturating_sub(ticks).checked_div(others).unwrap_or(0);
            let in_call_ns = stretch.in_last_call_ns(ticks, usual);
            self.add_off_cpu(node, in_call_ns, &stretch);
            let rest_ns = stretch.off_ns - in_call_ns;
            self.add_earlier(rest_ns, end_ticks.saturating_sub(ticks), &stretch);
        }
        // SAFETY: as above.
        unsafe { (*record).asks += 1 };
        self.note_on_cpu(record);
        if let Some(rate) = clock::ticks_per_us()
            && is_asking()
        {
            set_ask_limit(rate.saturating_mul(LIMIT_US));
        }
        // This is in the time of the caller. Durations far above the shortest are no cost of asking: the thread did
        // not run.
        let cost_ticks = clock::now().saturating_sub(end_ticks);
        let least = LEAST_COST.fetch_min(cost_ticks, Ordering::Relaxed).min(cost_ticks);
        if let Some(row) = self.row(self.innermost_node()) {
            row.cost_ticks += cost_ticks.min(least.saturating_mul(UNDISTURBED));
        }
    }

    /// Attributes the time off the CPU up to `end_ticks`: to the calls that are open, the innermost first, as far as each has
    /// room for it, and the rest to where the thread was when the stretch began. (A wait goes on around the handler of a
    /// signal, whose own calls may be long.)
    fn add_earlier(&self, mut ns: u64, mut end_ticks: u64, stretch: &Stretch) {
        for (node, start_ticks) in self.timed_calls() {
            if ns == 0 || start_ticks <= stretch.began_ticks {
                break;
            }
            let ticks = end_ticks.saturating_sub(start_ticks);
            let part_ns = stretch.in_open_call_ns(ns, ticks, start_ticks - stretch.began_ticks);
            self.add_off_cpu(node, part_ns, stretch);
            ns -= part_ns;
            end_ticks = start_ticks;
        }
        self.add_off_cpu(self.node_at(stretch.began_ticks), ns, stretch);
    }

    /// Returns the node of the innermost call that was open at a time; that of the thread itself if there was none.
    fn node_at(&self, ticks: u64) -> *mut Node {
        let had_begun = |&(_, start_ticks): &(*mut Node, u64)| start_ticks <= ticks;
        self.timed_calls().find(had_begun).map_or(self.tree.root.get(), |(node, _)| node)
    }

    /// Attributes the time off the CPU since the thread last asked to where the thread has been since then. Called
    /// when no long call has just ended, but the thread or the process ends, or when the hook's own work took long.
    pub(crate) fn ask_between(&self) {
        let record = self.own_record();
        // SAFETY: the record is this thread's.
        if !is_asking() || record.is_null() || unsafe { (*record).asks } == 0 {
            return;
        }
        let stretch = self.take_stretch(clock::now());
        self.add_earlier(
            stretch.off_ns,
            stretch.began_ticks.saturating_add(stretch.ticks),
            &stretch,
        );
        self.note_on_cpu(record);
    }
}
