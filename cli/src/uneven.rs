//! Work that is divided unevenly over threads, in words.

use chase_analyzer::{Finding, FindingKind, UnevenWork};

use crate::event_loops;
use crate::report::Report;
use crate::terminal::{count, elapsed, percent};

/// The claim of a finding about such work, and what it rests on.
pub(crate) fn in_words(report: &Report, finding: &Finding, who: &str) -> (String, String) {
    let FindingKind::UnevenWork { batches, all_ns, alone_ns, parked, waiting, uneven, .. } =
        finding.kind
    else {
        return (String::new(), String::new());
    };
    let one = report.watched().uneven.get(uneven as usize);
    let doing = one.map_or_else(String::new, |one| doing(report, one));
    let wait = one
        .and_then(|one| one.wait.as_ref())
        .map_or_else(String::new, |wait| format!(", in {}", event_loops::waits_at(report, wait)));
    // Threads that are started for each round don't wait for more: they end.
    let have_ended = one.is_some_and(|one| one.wait.is_none());
    let group = &*report.groups().rows[finding.group as usize].label;
    let are_forks = group.starts_with("forks of ");
    let other = if are_forks { "process" } else { "thread" };
    let others = match (parked, have_ended) {
        (1, true) => format!("the other {other} has ended"),
        (_, true) => format!("the {} others have ended", count(parked as u64)),
        (1, false) => format!("the other {other} waits for more to do"),
        (_, false) => format!("the {} others wait for more to do", count(parked as u64)),
    };
    let about = if one.is_some_and(|one| one.batches_are_estimate) { "about " } else { "" };
    let often = match batches {
        1 => String::new(),
        _ => format!(" in {about}{} rounds of work", count(batches)),
    };
    let who = match *finding.threads {
        [_] => who.to_owned(),
        _ if are_forks => format!("One of the {group}"),
        _ => format!("One thread of {group}"),
    };
    let waiting = &report.groups().rows[waiting as usize].label;
    (
        format!("{who} still works while {others}{wait}"),
        format!(
            ": {} of the {}{often} that {waiting} waits for them{doing}",
            elapsed(alone_ns.0),
            elapsed(all_ns.0),
        ),
    )
}

/// What the thread does that works alone.
fn doing(report: &Report, one: &UnevenWork) -> String {
    let waits_ns: u64 = one.own_waits.iter().map(|row| row.ns.0).sum();
    let longest = one.own_waits.first().filter(|_| waits_ns > one.alone_ns.0 / 2);
    if let Some(row) = longest {
        let what = event_loops::waits_at(report, &row.wait);
        return format!(", {} of it in {what}", elapsed(row.ns.0));
    }
    let ran = event_loops::functions(report, one.process, &one.ran);
    ran.first().map_or_else(String::new, |ran| {
        let at = if ran.line.is_empty() { String::new() } else { format!(" at {}", ran.line) };
        let share = percent(ran.share);
        format!(", running {}{at} ({share} of what it runs more than they do)", ran.name)
    })
}
