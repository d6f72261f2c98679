//! Single waits: how long they last, and what they are for.

use chase_analyzer::{Analysis, BlockedSpan, SpanCause, WaitCause};

/// What threads wait for a processor after being woken, if it is at least so long, ns. Less is not seen in the picture, and counted as
/// waiting for what woke them.
pub(super) const SEEN: u64 = 100_000;

/// When the thread was woken, and when it ran again.
pub(super) fn ends(wait: &BlockedSpan) -> (u64, u64) {
    let runs = wait.start_ns.0 + wait.ns.0;
    let ready = if wait.ready_ns.0 < SEEN { 0 } else { wait.ready_ns.0 };
    (runs - ready.min(wait.ns.0), runs)
}

/// What a single wait is for: as the function's name tells, else what the kernel knows of it.
pub(super) fn of_wait(analysis: &Analysis, span: &BlockedSpan) -> WaitCause {
    let api = span.api.and_then(|api| analysis.apis.get(api as usize));
    api.and_then(|api| api.waits_for).unwrap_or(match span.cause {
        SpanCause::Threads => WaitCause::Lock,
        SpanCause::File | SpanCause::Connection => WaitCause::Io,
        SpanCause::Time => WaitCause::Sleep,
        SpanCause::Process => WaitCause::Join,
        SpanCause::Other => analysis.waits_for(span.api),
        SpanCause::Recording => WaitCause::Other,
    })
}
