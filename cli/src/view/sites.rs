//! From where functions are called, by the samples of their calls that have their place.

use chase_analyzer::{ApiRow, CallPlace};
use serde_json::{Value, json};

use super::left_out;
use crate::causes;
use crate::report::Report;
use crate::terminal::{Align, Look, Table, Terminal, count, percent};

/// A place with a smaller share of a function's calls has no line.
const LEAST: f64 = 0.01;

/// The table of the places that functions, given with their numbers, are called from; empty if none is known.
pub(super) fn table(
    report: &Report,
    terminal: Terminal,
    rows: &[(usize, &ApiRow)],
    top: usize,
) -> String {
    let mut places: Vec<(usize, u64, &CallPlace)> = Vec::new();
    for (number, row) in rows.iter().take(top) {
        let samples = row.places.iter().map(|place| place.samples).sum();
        let large = row.places.iter().filter(|place| place.share >= LEAST);
        places.extend(large.map(|place| (*number, samples, place)));
    }
    if places.iter().all(|(_, _, place)| place.address.is_none()) {
        return String::new();
    }
    let mut table = Table::new([
        ("Function", Align::Name),
        ("%", Align::Number),
        ("of samples", Align::Number),
        ("Called at", Align::Text),
    ])
    .may_drop(["of samples"]);
    for &(number, samples, place) in places.iter().take(top) {
        table.row([
            report.names.short(number).into(),
            percent(place.share).into(),
            count(samples).into(),
            name(report, place).into(),
        ]);
    }
    let left_out = left_out(places.len(), top, "places");
    let heading =
        terminal.paint(Look::Strong, "Where calls that are short or seldom wait are made");
    format!("\n{heading}\n{}{left_out}", table.render(terminal))
}

/// `often two.c:7`.
pub(super) fn name(report: &Report, place: &CallPlace) -> String {
    match place.address {
        Some(_) => causes::site(report, place.process, place.address),
        None => "(elsewhere, or by jumps)".to_owned(),
    }
}

/// The same for JSON.
pub(super) fn json(report: &Report, places: &[CallPlace]) -> anyhow::Result<Value> {
    let one = |place: &CallPlace| -> anyhow::Result<Value> {
        let site = place.address.map(|site| causes::place(report, place.process, &site));
        let (samples, share) = (place.samples, place.share);
        Ok(json!({ "site": serde_json::to_value(site)?, "samples": samples, "share": share }))
    };
    places.iter().map(one).collect()
}
