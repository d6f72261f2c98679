//! What the last of several threads does, in words.

use chase_analyzer::{Finding, LateThread, ThreadOrigin, ThreadRow};

use crate::causes;
use crate::event_loops;
use crate::report::Report;
use crate::terminal::{elapsed, percent};

/// A thread; or, if it is the first one of a process that was forked, the process, with its role or its program.
pub(super) fn thread_or_process(report: &Report, number: u32) -> String {
    let row = &report.analysis.threads[number as usize];
    let process = report.analysis.processes.get(row.process).filter(|process| process.forked);
    let Some(process) = process.filter(|_| row.origin == ThreadOrigin::Main) else {
        return super::thread(report, number);
    };
    let name = process.role.as_deref().unwrap_or(&process.program);
    format!("process {} ({name})", process.pid)
}

/// Where it is waited for; by whom, where that is in a library that is compiled into the program, as Rust's `JoinHandle::join`.
pub(super) fn awaited(report: &Report, finding: &Finding) -> String {
    let blame = finding.blame.as_ref();
    if blame.is_some_and(|blame| causes::is_of_library(report, blame.process, blame.site)) {
        let threads = &report.analysis.threads;
        let last = finding.threads.first().and_then(|&last| threads.get(last as usize));
        let is_creator = |row: &ThreadRow, last: &ThreadRow| {
            row.process == last.process && last.creator == Some(row.thread)
        };
        let creator = last.and_then(|last| threads.iter().position(|row| is_creator(row, last)));
        let group = creator.and_then(|creator| report.groups().of_thread.get(creator));
        if let Some(&group) = group {
            return format!(" by {}", report.groups().rows[group as usize].label);
        }
    }
    super::at(report, finding)
}

/// Where the slowest of slow threads is waited for, if its creator waits for it.
pub(super) fn joined(report: &Report, finding: &Finding) -> String {
    let place = finding.blame.as_ref().map_or_else(String::new, |_| awaited(report, finding));
    match (&*place, &*finding.threads) {
        ("", _) => place,
        (_, [_]) => format!(", and is waited for{place}"),
        _ => format!("; the slowest is waited for{place}"),
    }
}

/// `, while it waits in usleep at load_shard (1.05 s)`, or runs in a function; nothing where that is not known.
pub(super) fn meanwhile(report: &Report, finding: &Finding) -> String {
    let late = report.watched().late.iter();
    let mut late = late.filter(|late| finding.threads.first() == Some(&late.thread));
    late.next().map_or_else(String::new, |late| doing(report, late))
}

fn doing(report: &Report, late: &LateThread) -> String {
    let waits_ns = late.waits.iter().fold(0_u64, |sum, row| sum.saturating_add(row.ns.0));
    if let Some(row) = late.waits.first().filter(|_| waits_ns > late.alone_ns.0 / 2) {
        let what = event_loops::waits_at(report, &row.wait);
        return format!(", while it waits in {what} ({})", elapsed(row.ns.0));
    }
    let ran = event_loops::functions(report, late.process, &late.ran);
    ran.first().map_or_else(String::new, |ran| {
        let at = if ran.line.is_empty() { String::new() } else { format!(" at {}", ran.line) };
        format!(", while it runs {}{at} ({} of its samples)", ran.name, percent(ran.share))
    })
}
