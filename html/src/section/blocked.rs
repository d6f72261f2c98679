//! What the threads that have work are blocked by: rings of causes and functions.

use chase_viz::{Chart, Group, Heading, Part, Segment, Sheet, Unit, sunburst};
use maud::{Markup, html};

use crate::colours::{cause_colour, cause_words, series, state};
use crate::figure::{count, entry, figure, name, share, table, time};
use crate::model::{Blocked, BlockedIn, CauseOfWait, WaitCause, WaitSource};
use crate::{Error, Report};

/// Width of the rings beside their table, pixels.
const RINGS: f64 = 460.0;
/// Most rows of a table.
const ROWS: usize = 50;

/// Whether there is anything to be said.
pub(super) fn is_there(blocked: &Blocked) -> bool {
    let Blocked { rows, idle, idle_ns: _, runnable } = blocked;
    !rows.is_empty() || !idle.as_str().is_empty() || runnable.is_some()
}

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    let blocked = &report.blocked;
    if !is_there(blocked) {
        return Ok(None);
    }
    let heading = Heading { title: "Blocked by cause and function", subtitle: "" };
    let caption = html! {
        "Inside: what threads waited for. Outside: the functions in which they did. "
        @match report.waits {
            WaitSource::Scheduler => { "From the scheduler." }
            WaitSource::Asked => { "As the threads themselves asked, after calls of 50 µs or more." }
            WaitSource::Mixed => { "From the scheduler, or, where it was not asked, by the names of functions." }
            WaitSource::Name => { "Told by the names of functions known to wait: a guess, not measured." }
        }
    };
    let picture = match &*blocked.rows {
        [] => html! {},
        rows => {
            let rings = figure(&heading, RINGS, &caption, |sheet| draw(report, sheet))?;
            html! { div.beside { (rings) div { (functions(rows)) } } }
        }
    };
    Ok(Some(html! {
        @if !blocked.idle.as_str().is_empty() {
            p { (blocked.idle) ": 95 % or more of a life spent waiting to be told of work. Left out of the picture." }
        }
        (picture)
        @if !report.causes.is_empty() {
            p {
                "Who waits where, for what, and who holds it and ends that, as the kernel saw it"
                ", each until the thread was woken, as above"
                @if report.causes.iter().any(|cause| cause.is_idle) { "; idle threads last" }
                ":"
            }
            (causes_of_waits(&report.causes))
        }
        @if let Some(runnable) = &blocked.runnable {
            p { "Waiting for a processor: " (runnable) "." }
        }
    }))
}

pub(crate) fn draw(report: &Report, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    let segments: Vec<Segment> = causes(&report.blocked.rows).into_iter().map(segment).collect();
    Ok(sunburst(sheet, Unit::Nanoseconds, report.header.program.as_str(), &segments)?)
}

/// Rows by cause, the longest first.
pub(super) fn causes(rows: &[BlockedIn]) -> Vec<(WaitCause, Vec<&BlockedIn>)> {
    let mut causes: Vec<(WaitCause, Vec<&BlockedIn>)> = Vec::new();
    for row in rows {
        match causes.iter_mut().find(|(cause, _)| *cause == row.cause) {
            Some((_, of_cause)) => of_cause.push(row),
            None => causes.push((row.cause, vec![row])),
        }
    }
    causes.sort_by(|(_, a), (_, b)| sum(b).total_cmp(&sum(a)));
    causes
}

fn sum(rows: &[&BlockedIn]) -> f64 {
    rows.iter().map(|row| row.ns).sum()
}

fn segment((cause, rows): (WaitCause, Vec<&BlockedIn>)) -> Segment {
    let part = |row: &&BlockedIn| Part { label: row.function.to_string(), value: row.ns };
    Segment {
        group: Group { value: sum(&rows), ..series(cause_words(cause), state(cause)) },
        parts: rows.iter().map(part).collect(),
        key: None,
    }
}

fn causes_of_waits(rows: &[CauseOfWait]) -> Markup {
    let columns = [
        ("function", false),
        ("at", false),
        ("threads of", false),
        ("for", false),
        ("time", true),
        ("waits", true),
        ("held by", false),
        ("ended by", false),
    ];
    let row = |row: &CauseOfWait| {
        vec![
            name(&row.function),
            name(&row.site),
            name(&row.group),
            name(&row.object),
            time(row.ns),
            count(row.waits),
            name(&row.holder),
            name(&row.waker),
        ]
    };
    let rows: Vec<_> = rows.iter().take(ROWS).map(row).collect();
    table("Causes of waits", &columns, &rows)
}

fn functions(rows: &[BlockedIn]) -> Markup {
    let whole = rows.iter().map(|row| row.ns).sum();
    let columns =
        [("function", false), ("for", false), ("share", true), ("time", true), ("threads", true)];
    let row = |row: &BlockedIn| {
        vec![
            entry(&cause_colour(row.cause), &name(&row.function)),
            html! { span.words { (cause_words(row.cause)) } },
            share(row.ns, whole),
            time(row.ns),
            count(row.threads as u64),
        ]
    };
    let rows: Vec<_> = rows.iter().take(ROWS).map(row).collect();
    table("Blocked by function", &columns, &rows)
}
