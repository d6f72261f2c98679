//! The first look at a run.

use super::apis::Apis;
use super::libs::{self, Libs};
use super::threads::{self, Threads};
use super::{QUANTILES, SELF_SHARE, Show, WAIT, calls, legend, of_call, processes, share};
use crate::args::{ApiFilter, LibFilter, ThreadFilter};
use crate::machine::Rows;
use crate::report::Report;
use crate::terminal::{Align, Cell, Look, Table, Terminal, clean};

/// Rows of each table.
const TOP: usize = 10;

pub(super) struct Summary;

impl Show for Summary {
    const NAME: &'static str = "summary";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let top = if top == super::DEFAULT_TOP { TOP } else { top };
        let mut out = match &*report.analysis.processes {
            [process] => processes::headline(process, terminal),
            _ => processes::table(report, terminal, top),
        };
        out.push('\n');
        out.push_str(&libraries(report, top).render(terminal));
        out.push_str(&more(report.analysis.libraries.len(), top, "libs"));
        if !report.analysis.apis.is_empty() {
            out.push('\n');
            out.push_str(&functions(report, top).render(terminal));
            out.push_str(&more(report.analysis.apis.len(), top, "apis"));
        }
        out.push('\n');
        out.push_str(&threads::brief(report, top).render(terminal));
        out.push_str(&more(report.analysis.threads.len(), top, "threads"));
        out.push_str(&not_seen(report, terminal));
        out.push_str(&legend(terminal, &[SELF_SHARE, WAIT, QUANTILES]));
        out.push_str(&next(report));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let (lib, api, thread) =
            (LibFilter::default(), ApiFilter::default(), ThreadFilter::default());
        let mut tables = Libs { lib: &lib }.tables(report, top)?;
        tables.append(&mut Apis { lib: &lib, api: &api }.tables(report, top)?);
        tables.append(&mut Threads { thread: &thread }.tables(report, top)?);
        Ok(tables)
    }
}

fn libraries(report: &Report, top: usize) -> Table {
    let mut table = Table::new([
        ("Library", Align::Name),
        ("self", Align::Number),
        ("wait by name", Align::Number),
        ("calls", Align::Number),
        ("p50", Align::Number),
        ("p99.9", Align::Number),
    ]);
    for row in report.analysis.libraries.iter().take(top) {
        let measures = &row.measures;
        table.row([
            libs::name(report, row),
            share(report, measures.self_ns).into(),
            share(report, measures.wait_ns).into(),
            calls(measures).into(),
            of_call(measures.p50_ns).into(),
            of_call(measures.p999_ns).into(),
        ]);
    }
    table
}

fn functions(report: &Report, top: usize) -> Table {
    let mut table = Table::new([
        ("Function", Align::Name),
        ("Library", Align::Name),
        ("self", Align::Number),
        ("calls", Align::Number),
        ("p50", Align::Number),
        ("p99.9", Align::Number),
    ]);
    for (number, row) in report.analysis.apis.iter().enumerate().take(top) {
        let measures = &row.measures;
        table.row([
            report.names.short(number).into(),
            Cell::new(report.names.object(row.object), Look::Faint),
            share(report, measures.self_ns).into(),
            calls(measures).into(),
            of_call(measures.p50_ns).into(),
            of_call(measures.p999_ns).into(),
        ]);
    }
    table
}

fn not_seen(report: &Report, terminal: Terminal) -> String {
    let lines = processes::not_seen(report);
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.iter().map(|line| format!("  {}\n", clean(line)));
    format!("\n{}\n{}", terminal.paint(Look::Warning, "Not seen"), lines.collect::<String>())
}

fn more(all: usize, top: usize, view: &str) -> String {
    match all.saturating_sub(top) {
        0 => String::new(),
        more => format!("… and {more} more: chase-report {view}\n"),
    }
}

/// What to type next.
fn next(report: &Report) -> String {
    let mut out =
        "\nMore: chase-report libs, apis, threads, tree; charts -o DIR draws them\n".to_owned();
    if report.loaded.other_runs > 0 {
        let runs = if report.loaded.other_runs == 1 { "run is" } else { "runs are" };
        out.push_str(&format!(
            "{} older {runs} in {}: --run {} shows the one before this\n",
            report.loaded.other_runs,
            clean(&report.path.display().to_string()),
            report.run + 1
        ));
    }
    out
}
