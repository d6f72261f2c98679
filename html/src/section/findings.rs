//! What stands out, each with the way to where it is shown.

use maud::{Markup, html};

use super::Window;
use crate::{Report, SectionId};

pub(super) fn render(report: &Report) -> Markup {
    html! {
        section id="findings" class="card findings" aria-labelledby="findings-title" {
            h2 #findings-title { "Findings" (Window::No.heading(report)) }
            @if report.findings.is_empty() {
                p { "Nothing stands out by the rules that chase looks for. What takes most is above." }
            } @else {
                ol { @for finding in &report.findings {
                    li {
                        (finding.text)
                        @if let Some(section) = finding.shown_in.filter(|&section| is_there(report, section)) {
                            " " a href={ "#" (section.anchor()) } { "Show: " (finding_target(section)) }
                        }
                    }
                } }
            }
        }
    }
}

/// Whether the page has what a link would lead to.
fn is_there(report: &Report, section: SectionId) -> bool {
    match section {
        SectionId::Processor => report.processor.is_some(),
        SectionId::Timeline => report.timeline.is_some(),
        SectionId::Threads => !report.groups.is_empty(),
        SectionId::Tail => !report.tails.is_empty(),
        SectionId::Syscalls => !report.syscalls.is_empty(),
        SectionId::Calls => !report.edges.is_empty(),
        SectionId::Flame => !report.flames.is_empty(),
        SectionId::Compare => report.comparison.is_some(),
        SectionId::Rows => !report.tables.is_empty(),
        SectionId::Blocked => !report.blocked.rows.is_empty(),
        SectionId::Findings | SectionId::Time | SectionId::Libraries => {
            report.header.whole_ns > 0.0
        }
    }
}

fn finding_target(section: SectionId) -> &'static str {
    let found = super::SECTIONS.iter().find(|known| known.id == section);
    found.map_or("the section", |section| section.title)
}
