//! Who calls whom: a matrix of files.

use chase_viz::{Cell, Chart, Heading, HeatRow, Sheet, Unit, heat, quantity};
use maud::{Markup, html};

use crate::figure::{WIDE, about, count_about, figure, name, plural, share, table, time_about};
use crate::model::Edge;
use crate::{Error, Label, Report};

/// Most callers and most callees of the picture.
const SIDE: usize = 12;
/// Rows of the table.
const TABLE: usize = 60;
/// Decades of the shades.
const DECADES: f64 = 4.0;

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    if report.edges.is_empty() {
        return Ok(None);
    }
    let heading =
        Heading { title: "Caller and callee", subtitle: "self time of the functions called" };
    let caption = html! {
        "Rows call columns. Shade and number: self time of the functions called so, on a "
        "logarithmic scale (a shade is 4.6 times the one before); an empty cell is no call."
        @if callers(report).len() == SIDE || callees(report).len() == SIDE {
            " The files with most time; all are in the table."
        }
    };
    let picture = figure(&heading, WIDE, &caption, |sheet| draw(report, sheet))?;
    Ok(Some(html! { (picture) (numbers(report)) }))
}

pub(crate) fn draw(report: &Report, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    let (callers, callees) = (callers(report), callees(report));
    let most = report.edges.iter().map(|edge| edge.self_ns).fold(0.0, f64::max);
    let cell = |caller: &Label, callee: &Label| {
        let found = report.edges.iter().find(|e| e.caller == *caller && e.callee == *callee);
        let Some(edge) = found else {
            return Cell { detail: "no calls".to_owned(), ..Cell::default() };
        };
        let mark = |is_estimate: bool| if is_estimate { "~" } else { "" };
        let time = quantity(edge.self_ns, Unit::Nanoseconds);
        let time = format!("{}{time}", mark(edge.self_error_ns.is_some()));
        let part =
            if edge.self_ns > 0.0 { 1.0 + (edge.self_ns / most).log10() / DECADES } else { 0.0 };
        let calls = quantity(edge.calls as f64, Unit::Count("calls"));
        let calls = format!("{}{calls}", mark(edge.calls_error.is_some()));
        // Some shade tells a call from none, however short.
        Cell { part: part.clamp(0.01, 1.0), detail: format!("{time}, {calls} calls"), text: time }
    };
    let row = |caller: &&Label| HeatRow {
        label: caller.to_string(),
        marked: false,
        cells: callees.iter().map(|callee| cell(caller, callee)).collect(),
    };
    let rows: Vec<HeatRow> = callers.iter().map(row).collect();
    let columns: Vec<String> = callees.iter().map(ToString::to_string).collect();
    Ok(heat(sheet, &columns, &rows, ("none", &quantity(most, Unit::Nanoseconds)))?)
}

fn callers(report: &Report) -> Vec<&Label> {
    first(report.edges.iter().map(|edge| &edge.caller))
}

fn callees(report: &Report) -> Vec<&Label> {
    first(report.edges.iter().map(|edge| &edge.callee))
}

fn first<'a>(names: impl Iterator<Item = &'a Label>) -> Vec<&'a Label> {
    let mut found = Vec::new();
    for name in names {
        if found.len() < SIDE && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn numbers(report: &Report) -> Markup {
    let columns =
        [("caller", false), ("callee", false), ("calls", true), ("self", true), ("share", true)];
    let row = |edge: &Edge| {
        vec![
            name(&edge.caller),
            name(&edge.callee),
            count_about(edge.calls, edge.calls_error),
            time_about(edge.self_ns, edge.self_error_ns),
            about(edge.self_error_ns.is_some(), &share(edge.self_ns, report.header.whole_ns)),
        ]
    };
    let rows: Vec<_> = report.edges.iter().take(TABLE).map(row).collect();
    let more = report.edges.len().saturating_sub(TABLE);
    html! {
        details { summary { "As a table: " (plural(report.edges.len(), "pair")) }
            (table("Calls between libraries", &columns, &rows))
            @if more > 0 { p.note { "… and " (more) " more with less time." } }
        }
    }
}
