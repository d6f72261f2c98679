//! Locks of which a process has one, in words.

use chase_analyzer::{Finding, FindingKind, NamingPlaces as _, Ns, WaitObject};

use super::{api, at, because, group, the_threads, too};
use crate::report::Report;
use crate::terminal::{elapsed, percent};

/// Who waits for the lock, and how long (of all lifetimes, and together), where, because of whom, and who else.
pub(super) fn of_process(
    report: &Report,
    finding: &Finding,
    (of_lifetime, all_wait_ns): (f64, Ns),
    others: &[u32],
) -> (String, String) {
    let (lock, place) = if matches!(finding.kind, FindingKind::MemoryMapLock { .. }) {
        let place = format!(", longest in {}{}", api(report, finding.api), at(report, finding));
        ("memory map of their process, which one thread changes at a time", place)
    } else {
        (interpreter(report, finding), String::new())
    };
    (
        format!("{} wait for the {lock}", the_threads(&group(report, finding).label)),
        format!(
            ": {} of their time, {} together{place}{}{}",
            percent(of_lifetime),
            elapsed(all_wait_ns.0),
            because(report, finding),
            too(report, others),
        ),
    )
}

/// Whose lock it is, as its variable tells.
fn interpreter(report: &Report, finding: &Finding) -> &'static str {
    let blame = finding.blame.as_ref();
    let variable = blame.and_then(|blame| match &blame.object {
        Some(WaitObject::Memory(at)) => report.routines().variable(blame.process, at),
        _ => None,
    });
    if variable.is_some_and(|name| name.starts_with("caml_")) {
        "runtime of OCaml, which one thread has at a time (master lock)"
    } else {
        "Python interpreter, which one thread has at a time (GIL)"
    }
}
