//! Single waits: how long they last.

use chase_analyzer::BlockedSpan;

/// What threads wait for a processor after being woken, if it is at least so long, ns. Less is not seen in the picture, and counted as
/// waiting for what woke them.
pub(super) const SEEN: u64 = 10_000;

/// When the thread was woken, and when it ran again.
pub(super) fn ends(wait: &BlockedSpan) -> (u64, u64) {
    let runs = wait.start_ns.0 + wait.ns.0;
    let ready = if wait.ready_ns.0 < SEEN { 0 } else { wait.ready_ns.0 };
    (runs - ready.min(wait.ns.0), runs)
}
