//! Locks of which a process has one, in words.

use chase_analyzer::{Finding, FindingKind};

use super::{api, at, because, group, the_threads, too};
use crate::report::Report;
use crate::terminal::{elapsed, percent};

pub(super) fn interpreter(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::InterpreterLock { all_wait_ns, of_lifetime, others, .. } = &finding.kind
    else {
        return Default::default();
    };
    (
        format!(
            "{} wait for the Python interpreter, which one thread has at a time (GIL)",
            the_threads(&group(report, finding).label),
        ),
        format!(
            ": {} of their time, {} together{}{}",
            percent(*of_lifetime),
            elapsed(all_wait_ns.0),
            because(report, finding),
            too(report, others),
        ),
    )
}

pub(super) fn memory_map(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::MemoryMapLock { all_wait_ns, of_lifetime, others, .. } = &finding.kind else {
        return Default::default();
    };
    (
        format!(
            "{} wait for the memory map of their process, which one thread changes at a time",
            the_threads(&group(report, finding).label),
        ),
        format!(
            ": {} of their time, {} together, longest in {}{}{}{}",
            percent(*of_lifetime),
            elapsed(all_wait_ns.0),
            api(report, finding.api),
            at(report, finding),
            because(report, finding),
            too(report, others),
        ),
    )
}
