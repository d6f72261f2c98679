//! What the time of each library is made of: running, waiting by cause, and what it calls.

use chase_viz::{Chart, Group, GroupKind, Heading, Sheet, StackRow, State, Unit, stacked};
use maud::{Markup, html};

use crate::Error;
use crate::colours::{cause_words, series, state};
use crate::figure::{WIDE, about, figure, time};
use crate::model::{Library, Report, WaitCause, WaitSource};

/// Libraries that get a bar.
const BARS: usize = 20;
/// Below this fraction of the longest there is nothing to be seen.
const VISIBLE: f64 = 0.001;
/// What stands for time that belongs to no library.
const NOT_ATTRIBUTED: &str = "[not attributed]";

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    if shown(report).next().is_none() {
        return Ok(None);
    }
    let heading = Heading { title: "What the time of each library is made of", subtitle: "" };
    let caption = html! {
        "Self time, running and waiting, then time in other libraries that it calls: a library’s "
        "whole bar is the time between entering and leaving it. "
        @match report.waits {
            WaitSource::Scheduler => {
                "Waits were measured by the scheduler, those for a processor too: a thread could have "
                "run, but another did."
            }
            WaitSource::Asked => {
                "Waits were measured by the threads themselves, in calls of 50 µs or more, those for a "
                "processor too: a thread could have run, but another did."
            }
            WaitSource::Mixed => {
                "Waits were measured by the scheduler, but for processes whose system calls were not "
                "recorded: there the threads have measured them, or they are told by the names of "
                "functions known to wait."
            }
            WaitSource::Name => {
                "Waits are told by the names of functions known to wait: a guess, not measured."
            }
        }
        @if shown(report).any(|library| library.name.as_str() == NOT_ATTRIBUTED) {
            " " (NOT_ATTRIBUTED) ", an estimate: how long others had the processor during calls that were not timed."
        }
    };
    let picture = figure(&heading, WIDE, &caption, |sheet| draw(report, sheet))?;
    Ok(Some(html! { (picture) (numbers(report)) }))
}

pub(crate) fn draw(report: &Report, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    let causes = causes(report);
    let mut parts = vec![series("running", State::Running)];
    parts.extend(
        causes
            .iter()
            .map(|&cause| series(&format!("waiting for {}", cause_words(cause)), state(cause))),
    );
    let has_preempted = has_preempted(report);
    if has_preempted {
        parts.push(series("waiting for a processor", State::Runnable));
    }
    parts.push(Group {
        name: "in libraries that it calls".to_owned(),
        kind: GroupKind::Rest,
        value: 0.0,
    });
    let row = |library: &Library| {
        let mut values = vec![running(library)];
        values.extend(causes.iter().map(|&cause| waiting(library, cause)));
        if has_preempted {
            values.push(library.preempted_ns.unwrap_or(0.0));
        }
        values.push(library.callees_ns);
        let kind = if library.is_application { " (application)" } else { "" };
        StackRow { label: format!("{}{kind}", library.name), values }
    };
    let rows: Vec<StackRow> = shown(report).map(row).collect();
    Ok(stacked(sheet, Unit::Nanoseconds, &parts, &rows)?)
}

/// Whether there is any preemption to be shown.
fn has_preempted(report: &Report) -> bool {
    report.libraries.iter().any(|library| library.preempted_ns.is_some_and(|ns| ns > 0.0))
}

fn shown(report: &Report) -> impl Iterator<Item = &Library> {
    let length = |library: &Library| library.self_ns + library.callees_ns;
    let longest = report.libraries.iter().map(length).fold(0.0, f64::max);
    let is_visible = move |library: &&Library| length(library) > longest * VISIBLE;
    report.libraries.iter().filter(is_visible).take(BARS)
}

/// All causes, in the order in which they are met.
fn causes(report: &Report) -> Vec<WaitCause> {
    let mut causes: Vec<WaitCause> = Vec::new();
    for waiting in report.libraries.iter().flat_map(|library| &library.waiting) {
        if !causes.contains(&waiting.cause) {
            causes.push(waiting.cause);
        }
    }
    causes
}

pub(super) fn waiting(library: &Library, cause: WaitCause) -> f64 {
    let of_cause = library.waiting.iter().filter(|waiting| waiting.cause == cause);
    of_cause.map(|waiting| waiting.ns).sum()
}

pub(super) fn running(library: &Library) -> f64 {
    let waiting: f64 = library.waiting.iter().map(|waiting| waiting.ns).sum();
    (library.self_ns - waiting - library.preempted_ns.unwrap_or(0.0)).max(0.0)
}

fn numbers(report: &Report) -> Markup {
    let causes = causes(report);
    let mut columns = vec![("library".to_owned(), false), ("running".to_owned(), true)];
    columns
        .extend(causes.iter().map(|cause| (format!("waiting for {}", cause_words(*cause)), true)));
    let has_preempted = has_preempted(report);
    if has_preempted {
        columns.push(("waiting for a processor".to_owned(), true));
    }
    columns.push(("calls to others".to_owned(), true));
    let columns: Vec<(&str, bool)> =
        columns.iter().map(|(name, number)| (&**name, *number)).collect();
    let row = |library: &Library| {
        let is_estimate = library.self_error_ns.is_some();
        let running = about(is_estimate, &time(running(library)));
        let mut row = vec![crate::figure::name(&library.name), running];
        row.extend(causes.iter().map(|&cause| match waiting(library, cause) {
            0.0 => html! {},
            ns => time(ns),
        }));
        if has_preempted {
            row.push(library.preempted_ns.filter(|&ns| ns > 0.0).map_or_else(|| html! {}, time));
        }
        row.push(time(library.callees_ns));
        row
    };
    let rows: Vec<_> = shown(report).map(row).collect();
    html! {
        details { summary { "As a table" }
            (crate::figure::table("Running and waiting by library", &columns, &rows))
        }
    }
}
