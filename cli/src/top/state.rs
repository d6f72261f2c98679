//! What is said of a process, and sums of its time.

use chase_analyzer::{Ending, Ns, ProcessRow, Totals};

/// How a process is, or how it ended.
pub(super) fn state(row: &ProcessRow) -> String {
    match row.ending {
        Ending::Running => "runs".to_owned(),
        Ending::Exit { status } | Ending::ImmediateExit { status } => format!("ended ({status})"),
        Ending::Exec => "exec".to_owned(),
        Ending::Abort => "aborted".to_owned(),
        Ending::Detached => "detached".to_owned(),
        Ending::Killed { .. } => "killed".to_owned(),
        Ending::Unknown => "ended".to_owned(),
    }
}

/// Time that threads did not wait.
pub(super) fn busy(totals: &Totals) -> Ns {
    let off = [
        Some(totals.wait_ns),
        totals.preempted_ns,
        totals.application_wait_ns,
        totals.application_preempted_ns,
        Some(totals.unattributed_wait_ns),
        Some(totals.unattributed_preempted_ns),
    ];
    let off = off.into_iter().flatten().fold(0_u64, |sum, part| sum.saturating_add(part.0));
    Ns(totals.whole_ns().0.saturating_sub(off))
}

/// Time that they waited.
pub(super) fn waits(totals: &Totals) -> Ns {
    let outside = totals.application_wait_ns.unwrap_or_default().0;
    let outside = outside.saturating_add(totals.unattributed_wait_ns.0);
    Ns(totals.wait_ns.0.saturating_add(outside))
}
