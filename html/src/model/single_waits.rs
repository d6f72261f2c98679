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

/// What a single wait is for: in a function, what the tables have its waits for; in own code, which waits for many things, what the
/// kernel knows of this one.
pub(super) fn of_wait(analysis: &Analysis, thread: usize, span: &BlockedSpan) -> WaitCause {
    // What most of the thread's waits there are for.
    let mostly = || analysis.waits_for(span.api, thread as u32);
    if span.api.is_some() && span.cause != SpanCause::Recording {
        return mostly();
    }
    match span.cause {
        // (As the tables have it, of threads of OpenMP.)
        SpanCause::Threads if mostly() == WaitCause::Barrier => WaitCause::Barrier,
        SpanCause::Threads => WaitCause::Lock,
        SpanCause::File | SpanCause::Connection => WaitCause::Io,
        SpanCause::Time => WaitCause::Sleep,
        SpanCause::Process => WaitCause::Join,
        SpanCause::Other => mostly(),
        SpanCause::Recording => WaitCause::Other,
    }
}
