//! Of what run this is, and what was not seen of it.

use maud::{Markup, html};

use crate::Report;
use crate::figure::{about, count, plural, table, time};

pub(crate) fn render(report: &Report) -> Markup {
    let header = &report.header;
    let unseen = header.not_seen.len();
    html! {
        header.top {
            h1 { (header.program) }
            @if !header.command.as_str().is_empty() { p.command title=(header.command) { code { (header.command) } } }
            ul.lead { @for (value, of) in &header.lead { li { b { (value) } " " (of) } } }
            @if !header.incomplete.is_empty() {
                div.incomplete {
                    b { "This is not the whole run." }
                    ul { @for line in &header.incomplete { li { (line) } } }
                }
            }
            div.abouts {
            details.about.folded {
                summary { "About this run" @if header.gaps > 0 { ", and " (plural(header.gaps, "gap")) " in what was seen" } }
                dl.facts {
                    @for (term, text) in &header.facts { div { dt { (term) } dd { (text) } } }
                }
                @if unseen == 0 {
                    p { "Nothing that was looked for went unseen." }
                } @else {
                    p { "Not seen:" }
                    ul { @for line in &header.not_seen { li { (line) } } }
                }
            }
            @if header.processes.len() > 1 {
                details.about {
                    summary { "Processes, a row for each program: " (header.processes.len() + header.more_processes) }
                    (processes(report))
                    @if header.more_processes > 0 {
                        p.note { "… and " (header.more_processes) " more that did less." }
                    }
                }
            }
            }
        }
    }
}

fn processes(report: &Report) -> Markup {
    let columns = [
        ("PID", true),
        ("program", false),
        ("wall", true),
        ("threads", true),
        ("calls", true),
        ("ended", false),
    ];
    let row = |process: &crate::Process| {
        vec![
            html! { (process.pid) },
            html! { (process.program) },
            time(process.wall_ns),
            html! { (process.threads) },
            about(process.calls_estimated, &count(process.calls)),
            html! { (process.ended) },
        ]
    };
    let rows: Vec<_> = report.header.processes.iter().map(row).collect();
    table("Processes", &columns, &rows)
}
