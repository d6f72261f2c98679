//! All rows, to be searched, sorted and copied. The script lays them out, some at a time.

use maud::{Markup, PreEscaped, html};

use crate::figure::plural;
use crate::{Error, Report};

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    if report.tables.is_empty() {
        return Ok(None);
    }
    let mut data = Vec::new();
    for table in &report.tables {
        // In a script element only `<` can end the data.
        data.push(serde_json::to_string(table)?.replace('<', "\\u003c"));
    }
    Ok(Some(html! {
        div #raw hidden {
            div.tools {
                label { "Table " select #raw-table {
                    @for (at, table) in report.tables.iter().enumerate() {
                        option value=(at) { (table.name) " (" (table.all) ")" }
                    }
                } }
                label { "Search " input #raw-search type="search" autocomplete="off" spellcheck="false"; }
                details #raw-columns { summary { "Columns" } fieldset { legend.hidden { "Columns" } } }
                button #raw-copy type="button" { "Copy as CSV" }
            }
            p #raw-status role="status" {}
            div.scroll #raw-scroll role="region" aria-label="Rows" tabindex="0" { table #raw-rows {} }
            button #raw-more type="button" { "Show more" }
        }
        noscript { p {
            "These tables need the script of this page. " code { "chase-report export --format csv" }
            " writes them as files."
        } }
        @for (at, (table, json)) in report.tables.iter().zip(&data).enumerate() {
            script id={ "raw-" (at) } type="application/json" { (PreEscaped(json)) }
            @if table.rows.len() < table.all {
                p.note { (table.name) ": " (plural(table.rows.len(), "row")) " of " (table.all)
                    ", those with most time." }
            }
        }
    }))
}
