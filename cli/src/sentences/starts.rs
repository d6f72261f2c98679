//! Threads that are started for very little work, and libraries that take long to start, in words.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chase_analyzer::{Finding, FindingKind, ThreadRow};

use crate::causes;
use crate::event_loops;
use crate::report::Report;
use crate::terminal::{elapsed, plural};

/// The claim of a finding about such threads, and what it rests on.
pub(super) fn short_threads(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::ShortThreads { threads, lifetime_ns, useful_ns, made_ns, awaited_ns } =
        finding.kind
    else {
        return (String::new(), String::new());
    };
    let label = &super::group(report, finding).label;
    let place =
        started_at(report, finding).map_or_else(String::new, |place| format!(" at {place}"));
    let awaited = match awaited_ns.0 {
        0 => String::new(),
        ns => format!(", and it is waited for {} longer than it lives", elapsed(ns)),
    };
    (
        format!(
            "{} of {label} are started{place} for {} of work each",
            plural(threads as u64, "thread"),
            elapsed(useful_ns.0),
        ),
        format!(
            " (median; they live for {}): to start one takes {} in {}{awaited}. A few threads that stay could do it all",
            elapsed(lifetime_ns.0),
            elapsed(made_ns.0),
            super::api(report, finding.api),
        ),
    )
}

/// The claim of a finding about a library that takes long to start, and what it rests on.
pub(super) fn slow_library(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::SlowStart { library, own_ns, calls_ns, slow_start } = finding.kind else {
        return (String::new(), String::new());
    };
    let one = report.watched().slow_starts.get(slow_start as usize);
    let label = &super::group(report, finding).label;
    let mut parts = Vec::new();
    if own_ns.0 > calls_ns.0 / 20 {
        let ran = one.map(|one| event_loops::functions(report, one.process, &one.ran));
        let ran = ran.unwrap_or_default();
        let most = ran.first().map_or_else(String::new, |ran| {
            let line =
                if ran.line.is_empty() { String::new() } else { format!(" at {}", ran.line) };
            format!(", mostly in {}{line}", ran.name)
        });
        parts.push(format!("{} on the processor in its own code{most}", elapsed(own_ns.0)));
    }
    if calls_ns.0 > own_ns.0 / 20 {
        let longest = one.and_then(|one| one.longest).map_or_else(String::new, |(api, _)| {
            let place = super::at(report, finding);
            format!(", mostly of {}{place}", super::api(report, Some(api)))
        });
        parts.push(format!("{} in library calls{longest}", elapsed(calls_ns.0)));
    }
    (
        format!(
            "{} takes {} to start, before {label} does anything of its own",
            report.names.object(library),
            elapsed(own_ns.0.saturating_add(calls_ns.0)),
        ),
        format!(" (constructors): {}", parts.join("; ")),
    )
}

/// Where most of the threads of such a finding are started, as far as that is a place of the program's.
pub(crate) fn started_at(report: &Report, finding: &Finding) -> Option<String> {
    if !matches!(finding.kind, FindingKind::ShortThreads { .. }) {
        return None;
    }
    let members = super::group(report, finding).members.iter();
    let rows = members.map(|&member| &report.analysis.threads[member as usize]);
    // (What a call that is only counted is around is not known: so they are told apart by all that is.)
    let mut places: BTreeMap<Vec<u64>, (usize, &ThreadRow)> = BTreeMap::new();
    for row in rows {
        let stack = row.creation.stack.iter().map(|site| site.avma).collect();
        places.entry(stack).or_insert((0, row)).0 += 1;
    }
    let mut places: Vec<(usize, &ThreadRow)> = places.into_values().collect();
    places.sort_by_key(|&(count, _)| Reverse(count));
    places.into_iter().find_map(|(_, row)| place_of_program(report, row))
}

/// Where the program has a thread started, if that is known.
fn place_of_program(report: &Report, row: &ThreadRow) -> Option<String> {
    // (An interpreter starts all of them at one place.)
    if row.creation.python_function.is_some() {
        return None;
    }
    let site = report.places.creation_site(report.files(), row)?;
    let is_of_runtime = |object| {
        let name = report.names.object(object);
        ["libstdc++.so", "libc++.so"].iter().any(|runtime| name.starts_with(runtime))
    };
    let is_of_library = causes::place(report, row.process, &site).is_of_library()
        || site.object.is_some_and(is_of_runtime);
    (!is_of_library).then(|| causes::site(report, row.process, Some(site)))
}
