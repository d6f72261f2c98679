//! The run in a few lines, at the end of `chase record`.

use chase_analyzer::LibraryRow;

use super::not_seen::NotSeen;
use super::sampled::{self, CPU};
use super::{calls, libs, processes, self_share, share, waiting};
use crate::report::Report;
use crate::sentences::sentence;
use crate::terminal::{Align, Look, Table, Terminal, clean, count};

/// Rows of libraries.
const TOP: usize = 4;
/// Where the terminal does not say how wide it is.
const WIDTH: usize = 100;

/// At most eight lines on a terminal that is wide enough for the first.
pub(super) fn text(report: &Report, terminal: Terminal) -> anyhow::Result<String> {
    let mut out = match &*report.analysis.processes {
        [process] => processes::headline(&report.analysis, process, terminal),
        _ => processes::run_headline(report, terminal),
    };
    out.push_str(&libraries(report).render(terminal));
    if let Some(finding) = report.findings().first() {
        out.push_str(&line(&sentence(report, finding).to_string(), terminal));
    }
    let not_seen = NotSeen::from_report(report);
    let first = not_seen.incomplete.first().or(not_seen.gaps.first()).cloned();
    let all = not_seen.incomplete.len() + not_seen.gaps.len();
    let text = match (first, all) {
        (None, _) => "nothing that matters".to_owned(),
        (Some(first), 1) => first,
        (Some(first), all) => {
            format!("{} things (chase-report not-seen): {first}", count(all as u64))
        }
    };
    out.push_str(&line(&format!("Not seen: {text}"), terminal));
    Ok(out)
}

/// Where the processor was, or, where that is not known, where the time of the calls went.
fn libraries(report: &Report) -> Table {
    let sampled = sampled::is_sampled(report);
    let mut table = Table::new([
        ("Library", Align::Name),
        (CPU, Align::Number),
        ("self", Align::Number),
        (waiting::heading(report), Align::Number),
        ("calls", Align::Number),
    ])
    .only_if(sampled, CPU);
    let mut rows: Vec<&LibraryRow> = report.analysis.libraries.iter().collect();
    if sampled {
        rows.sort_by_key(|row| std::cmp::Reverse(row.on_cpu.unwrap_or_default().on_cpu_ns.0));
    }
    for row in rows.into_iter().take(TOP) {
        let measures = &row.measures;
        table.row([
            libs::name(report, row),
            sampled::share(report, row.on_cpu).into(),
            self_share(report, measures).into(),
            share(report, measures.wait_ns).into(),
            calls(measures).into(),
        ]);
    }
    if let Some(row) = sampled::not_sampled::<5>(report) {
        table.row(row);
    }
    table
}

/// One line, cut where the terminal ends.
fn line(text: &str, terminal: Terminal) -> String {
    let width = terminal.width.unwrap_or(WIDTH);
    let text = clean(text);
    let mut shown: String = text.chars().take(width).collect();
    if shown.len() < text.len() {
        shown.pop();
        shown.push('…');
    }
    terminal.paint(Look::Faint, &shown) + "\n"
}
