//! Which threads wait for which: a graph and its table.

use chase_viz::{Chart, Heading, Sheet, graph};
use maud::{Markup, html};

use crate::figure::{count, name, plural, scrolling_figure, table, time};
use crate::model::{GroupWaits, WaitsForWhom};
use crate::{Error, Report};

/// Rows of the table.
const ROWS: usize = 50;

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    let Some(found) = report.waits_for_whom.as_ref().filter(|found| !found.waits.is_empty()) else {
        return Ok(None);
    };
    let heading = Heading { title: "Who waits for whom", subtitle: "" };
    let caption = html! {
        "An arrow leads from who waits to who is waited for: for a lock, who has it; otherwise who ends the wait. "
        "Beside it, the time of these waits, of all threads together, until they ran again."
    };
    let picture = scrolling_figure(&heading, &caption, |sheet| draw(found, sheet))?;
    let more = found.waits.len().saturating_sub(ROWS);
    Ok(Some(html! {
        @if !found.bottleneck.as_str().is_empty() {
            p { "Bottleneck: " b { (found.bottleneck) } ". Others wait for it, and it hardly waits for others." }
        }
        (picture)
        (rows(&found.waits))
        @if more > 0 { p.note { "… and " (plural(more, "shorter one")) "." } }
    }))
}

pub(crate) fn draw(found: &WaitsForWhom, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    Ok(graph(sheet, &found.diagram.graph())?)
}

fn rows(waits: &[GroupWaits]) -> Markup {
    let columns = [
        ("threads of", false),
        ("wait for", false),
        ("time", true),
        ("waits", true),
        ("mostly in", false),
        ("for", false),
    ];
    let row = |row: &GroupWaits| {
        vec![
            name(&row.group),
            name(&row.target),
            time(row.ns),
            count(row.waits),
            name(&row.place),
            name(&row.object),
        ]
    };
    let rows: Vec<_> = waits.iter().take(ROWS).map(row).collect();
    table("Who waits for whom", &columns, &rows)
}
