//! Findings about what is done again and again although once would do, in words.

use chase_analyzer::{Finding, FindingKind, Ns};

use super::number::is_plural;
use super::{api, at, calls_at, group, take, uses, who};
use crate::report::Report;
use crate::terminal::{count, elapsed, plural};

/// A smaller part of the time, or of the calls, is not told.
const PART: u64 = 20;

/// The claim of a finding about a file that is looked up again and again, and what it rests on.
pub(super) fn looked_up(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::LookedUpAgain {
        lookups,
        calls,
        opened,
        in_vain,
        others,
        is_local_time,
        all_ns,
        waiting_ns,
    } = finding.kind
    else {
        return (String::new(), String::new());
    };
    let file = uses::name(report, finding).unwrap_or_else(|| "a file".to_owned());
    let others = match others {
        0 => String::new(),
        1 => " and another file".to_owned(),
        _ => format!(" and {} other files", count(others as u64)),
    };
    let (does, instead) = if in_vain {
        ("looks in vain for", "What is not there need not be looked for each time")
    } else if opened > 0 {
        ("opens", "Kept open, or with what is in it kept, that would be done once")
    } else if is_local_time {
        ("asks about", "With TZ=:/etc/localtime in the environment, it would not be asked about")
    } else {
        ("asks about", "To ask once, or to be told of changes (inotify), would cost nothing")
    };
    let more = match lookups.saturating_sub(calls) {
        more if more < calls / PART => String::new(),
        more => format!(" and {} more look-ups of it", count(more)),
    };
    let rest = match (opened, &*others, in_vain) {
        (0, ..) | (_, _, true) => "",
        (_, "", _) => ", with closing it and what is read there,",
        _ => ", with closing them and what is read there,",
    };
    (
        format!("{} {does} {file}{others} again and again", group(report, finding).label),
        format!(
            ": {}{more}{rest} {}. {instead}",
            which(report, finding, calls),
            what_they_take(calls, all_ns, waiting_ns),
        ),
    )
}

/// `2000 calls of open (libc.so.6) at read_settings app.c:7`.
fn which(report: &Report, finding: &Finding, calls: u64) -> String {
    let calls = plural(calls, "call");
    format!("{calls} of {}{}", api(report, finding.api), calls_at(report, finding))
}

/// `take 40 ms, 3 ms of it off the processor`.
fn what_they_take(calls: u64, all_ns: Ns, waiting_ns: Ns) -> String {
    format!("{} {}{}", take(calls), elapsed(all_ns.0), waiting(all_ns, waiting_ns))
}

/// The claim of a finding about what is made anew for each item, and what it rests on.
pub(super) fn made(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::MadeAgain { calls, all_ns, waiting_ns, does, instead } = finding.kind else {
        return (String::new(), String::new());
    };
    (
        format!("{} {does} again and again", group(report, finding).label),
        format!(
            ": {} {}. {instead}",
            which(report, finding, calls),
            what_they_take(calls, all_ns, waiting_ns),
        ),
    )
}

/// The claim of a finding about threads that sleep for each thing that they are handed, and what it rests on.
pub(super) fn sleeping(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::SleepingStage {
        sleeps,
        mean_ns,
        slept_ns,
        waiting,
        all_wait_ns,
        sleeps_on_ns,
    } = finding.kind
    else {
        return (String::new(), String::new());
    };
    let group = group(report, finding);
    let is_part = finding.threads.len() < group.threads;
    let who = if is_part { who(report, finding, group).0 } else { group.label.clone() };
    let (it_sleeps, sleeps_for, it) = match is_part && finding.threads.len() > 1 {
        true => ("they sleep", "sleep for", "them"),
        false => ("it sleeps", "sleeps for", "it"),
    };
    let from = &report.groups().rows[waiting as usize].label;
    let meanwhile = match all_wait_ns {
        Ns(0) => format!(", and {it_sleeps} on for {} when no more come", elapsed(sleeps_on_ns.0)),
        Ns(ns) => format!(", while {from} waits for {it} {}", elapsed(ns)),
    };
    (
        format!("{who} {sleeps_for} each thing that {from} hands to {it}"),
        format!(
            ": {} times {} in {}{}, {} together{meanwhile}",
            count(sleeps),
            elapsed(mean_ns.round() as u64),
            api(report, finding.api),
            at(report, finding),
            elapsed(slept_ns.0),
        ),
    )
}

/// What part of the time is spent waiting, if it is worth a word.
fn waiting(all: Ns, waiting: Ns) -> String {
    if waiting.0 > all.0 / PART {
        format!(", {} of it off the processor", elapsed(waiting.0))
    } else {
        String::new()
    }
}

/// The claim of a finding about a timer that wakes threads for nothing, and what it rests on.
pub(super) fn idle_timer(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::IdleTimer { waits, per_second, mean_ns, runs_ns } = finding.kind else {
        return (String::new(), String::new());
    };
    let label = &group(report, finding).label;
    (
        format!("{label} is woken by a timer for next to nothing, {per_second:.0} times a second"),
        format!(
            ": {} of {} for {}, in {}{}, and after each {} for {} outside of the kernel. A longer period, or none while there is nothing to do, would cost less",
            plural(waits, "wait"),
            elapsed(mean_ns.round() as u64),
            uses::name(report, finding).unwrap_or_else(|| "a timer".to_owned()),
            api(report, finding.api),
            at(report, finding),
            if is_plural(label) { "they run" } else { "it runs" },
            elapsed(runs_ns.0),
        ),
    )
}
