//! How waits are headed and explained: measured, or guessed by name.

use chase_analyzer::{Measures, Ns, WaitSource};

use super::share;
use crate::report::Report;

/// Heading of the column of preemption, which no name tells.
pub(super) const PREEMPTED: &str = "preempted";

/// Heading of the column of waits.
pub(super) fn heading(report: &Report) -> &'static str {
    match report.analysis.wait_source() {
        WaitSource::Name => "wait by name",
        WaitSource::Scheduler | WaitSource::Asked | WaitSource::Mixed => "wait",
    }
}

/// Whether waits were measured in any process.
pub(super) fn is_measured(report: &Report) -> bool {
    report.analysis.wait_source() != WaitSource::Name
}

/// What the columns mean.
pub(super) fn legend(report: &Report) -> Vec<(&'static str, &'static str)> {
    let wait = match report.analysis.wait_source() {
        WaitSource::Name => {
            "the part of self in functions known to wait (lock, join, sleep, poll): a guess by name, not measured"
        }
        WaitSource::Scheduler => {
            "the part of self off the CPU, waiting, until it was woken: from the scheduler"
        }
        WaitSource::Asked => {
            "the part of self off the CPU, waiting, in calls of 50 µs or more: measured by the threads themselves"
        }
        WaitSource::Mixed => {
            "the part of self off the CPU, waiting: from the scheduler, but by the threads themselves, or by name, for processes whose system calls were not recorded"
        }
    };
    let mut entries = vec![(heading(report), wait)];
    if is_measured(report) {
        let preempted = match report.analysis.wait_source() {
            WaitSource::Asked => {
                "the part of self in which the thread could have run, but others did: measured by the threads themselves; divided by an estimate where a thread waited meanwhile, too"
            }
            _ => {
                "the part of self in which the thread could have run, also after it was woken, but others did: from the scheduler"
            }
        };
        entries.push((PREEMPTED, preempted));
    }
    entries
}

/// The same where waits stand beside the time in library calls.
pub(super) fn legend_of_library(report: &Report) -> Vec<(&'static str, &'static str)> {
    match report.analysis.wait_source() {
        WaitSource::Name => vec![(
            "wait by name",
            "the part of it in functions known to wait: a guess by name, not measured",
        )],
        WaitSource::Scheduler | WaitSource::Mixed => vec![
            (
                heading(report),
                "off the CPU, waiting, in library calls and in its own code: from the scheduler",
            ),
            (PREEMPTED, "could have run, but others did, likewise: from the scheduler"),
        ],
        WaitSource::Asked => legend(report),
    }
}

/// What the waits of thread groups are.
pub(super) fn of_groups(report: &Report) -> &'static str {
    match report.analysis.wait_source() {
        WaitSource::Name => "time in functions known to wait: a guess by name, not measured",
        WaitSource::Scheduler => "time off the CPU, waiting: from the scheduler",
        WaitSource::Asked => "time off the CPU, waiting: measured by the threads themselves",
        WaitSource::Mixed => {
            "time off the CPU, waiting: from the scheduler, but by the threads themselves, or by name, where it was not asked"
        }
    }
}

/// Time preempted as a share.
pub(super) fn preempted(report: &Report, measures: &Measures) -> String {
    share(report, measures.preempted_ns.unwrap_or(Ns(0)))
}
