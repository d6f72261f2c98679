//! What stands out, each with the way to where it is shown.

use maud::{Markup, html};

use super::Window;
use crate::figure::broken;
use crate::model::Finding;
use crate::{Report, SectionId};

/// Findings that are seen at once: the rest of the first screen needs room too.
const SHOWN: usize = 4;

pub(super) fn render(report: &Report) -> Markup {
    html! {
        section id="findings" class="card findings" aria-labelledby="findings-title" {
            h2 #findings-title { "Findings" (Window::No.heading(report)) }
            @if report.findings.is_empty() {
                p { "Nothing stands out by the rules that chase looks for. What takes most is above." }
            } @else {
                (list(report, 0, &report.findings[..report.findings.len().min(SHOWN)]))
                @if report.findings.len() > SHOWN {
                    details {
                        summary { (report.findings.len() - SHOWN) " more" }
                        (list(report, SHOWN, &report.findings[SHOWN..]))
                    }
                }
            }
        }
    }
}

/// Findings, numbered behind so many others.
fn list(report: &Report, before: usize, findings: &[Finding]) -> Markup {
    html! {
        ol start=(before + 1) { @for finding in findings {
            li {
                (emphasised(finding))
                @if let Some(section) = finding.shown_in.filter(|&section| is_there(report, section)) {
                    " " a href={ "#" (section.anchor()) } { "Show: " (finding_target(section)) }
                }
            }
        } }
    }
}

/// A sentence whose claim and whose gain are seen at a glance.
fn emphasised(finding: &Finding) -> Markup {
    let Finding { claim, evidence, gain, .. } = finding;
    let [claim, evidence, gain] = [claim, evidence, gain].map(|text| unbroken(text.as_str()));
    html! {
        b { (broken(&claim)) } (broken(&evidence)) @if !gain.is_empty() { "; " b { (gain) } } "."
    }
}

/// Numbers and their signs and units stay together where lines are broken.
fn unbroken(text: &str) -> String {
    let units = ["%", "ns", "µs", "ms", "s"];
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(' ') {
        let unit = word.trim_end_matches([' ', ',', ';', ':', '.', ')']);
        let is_behind_number =
            out.ends_with(' ') && out.trim_end().ends_with(|c: char| c.is_ascii_digit());
        if is_behind_number && units.contains(&unit) {
            out.pop();
            out.push('\u{a0}');
        }
        out.push_str(word);
    }
    out
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
        SectionId::WaitGraph => report.waits_for_whom.is_some(),
        SectionId::Components => report.parts.is_some(),
        SectionId::Rows => !report.tables.is_empty(),
        SectionId::Blocked => super::blocked::is_there(&report.blocked),
        SectionId::Findings | SectionId::Time | SectionId::Libraries => {
            report.header.whole_ns > 0.0
        }
    }
}

fn finding_target(section: SectionId) -> &'static str {
    let found = super::SECTIONS.iter().find(|known| known.id == section);
    found.map_or("the section", |section| section.title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_with_their_units() {
        for (text, expected) in [
            ("saves up to 1.45 s (29.5 %).", "saves up to 1.45\u{a0}s (29.5\u{a0}%)."),
            ("takes 5 ms; of 3 threads", "takes 5\u{a0}ms; of 3 threads"),
            ("90 % of it, s and ms", "90\u{a0}% of it, s and ms"),
            ("", ""),
        ] {
            assert_eq!(unbroken(text), expected);
        }
    }
}
