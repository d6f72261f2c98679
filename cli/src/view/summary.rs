//! The first look at a run.

use chase_analyzer::{LibraryKind, LibraryRow, Ns};

use super::apis::Apis;
use super::libs::{self, Libs};
use super::not_seen::{NotSeen, section};
use super::sampled::{self, CALLBACKS, CALLBACKS_LEGEND, CPU, CPU_LEGEND, KERNEL};
use super::threads::Threads;
use super::{
    QUANTILES, SELF_SHARE, Show, blocked, calls, counted, estimates, findings, groups, legend,
    more, of_call, processes, self_share, share, syscalls, waiting, words, wrap,
};
use crate::args::{ApiFilter, GroupFilter, LibFilter, Runs, SortArg, ThreadFilter};
use crate::machine::Rows;
use crate::report::{Report, fraction};
use crate::sentences::view_command;
use crate::terminal::{Align, Cell, Look, Table, Terminal, clean, elapsed, percent, plural};

/// Rows of each table.
const TOP: usize = 10;
/// Rows of the table of processes.
const TOP_PROCESSES: usize = 20;
/// Applications with a smaller share than this are one row.
const SMALL_APPLICATION: f64 = 0.001;

pub(super) struct Summary;

impl Show for Summary {
    const NAME: &'static str = "summary";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let (top, top_processes) =
            if top == super::DEFAULT_TOP { (TOP, TOP_PROCESSES) } else { (top, top) };
        let mut terms = Vec::new();
        let not_seen = NotSeen::from_report(report);
        let mut out = match &*not_seen.incomplete {
            [] => String::new(),
            lines => section("Incomplete", lines, terminal) + "\n",
        };
        out += &match &*report.analysis.processes {
            [process] => processes::headline(&report.analysis, process, terminal),
            _ => {
                let table = processes::table(report, terminal, top_processes);
                // Narrow terminals may have no room for the column.
                let (heading, _) = processes::LIBRARY_SUM;
                terms.extend(table.contains(heading).then_some(processes::LIBRARY_SUM));
                terms.push(processes::ENDED);
                table
            }
        };
        terms.extend(sampled::is_sampled(report).then_some(CPU_LEGEND));
        terms.extend(sampled::is_sampled(report).then_some(CALLBACKS_LEGEND));
        terms.push(SELF_SHARE);
        terms.extend(waiting::legend(report).first());
        terms.push(QUANTILES);
        terms.extend(counted(report));
        terms.extend(estimates(report));
        terms.extend(libs::not_attributed(report));
        let findings = findings::text(report, terminal);
        if !findings.is_empty() {
            out.push('\n');
            out.push_str(&findings);
        }
        out.push('\n');
        out.push_str(&processor(report, terminal));
        out.push_str(&libraries(report, terminal, top));
        let blocked = blocked::text(report, terminal, top);
        terms.extend((!blocked.is_empty()).then_some(blocked::IDLE_LEGEND));
        out.push_str(&blocked);
        if !report.analysis.apis.is_empty() {
            out.push('\n');
            out.push_str(&functions(report, top).render(terminal));
            out.push_str(&more(report, report.analysis.apis.len(), top, "apis"));
        }
        out.push('\n');
        out.push_str(&groups::brief(report, top).render(terminal));
        out.push_str(&more(report, report.groups().rows.len(), top, "threads"));
        if report.groups().rows.iter().any(|row| row.threads > 1) {
            terms.push(groups::LB);
        }
        out.push_str(&syscalls::brief(report, terminal, top));
        out.push_str(&self::not_seen(not_seen, terminal));
        out.push_str(&legend(terminal, &terms));
        out.push_str(&next(report, terminal));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let (lib, api) = (LibFilter::default(), ApiFilter::default());
        let (thread, group) = (ThreadFilter::default(), GroupFilter::default());
        let sort = SortArg::default();
        let mut tables = Libs { lib: &lib, sort }.tables(report, top)?;
        tables.append(&mut Apis { lib: &lib, api: &api, sort }.tables(report, top)?);
        tables.append(&mut Threads { thread: &thread, group: &group, sort }.tables(report, top)?);
        tables.push(findings::rows(report)?);
        tables.extend(blocked::rows(report)?);
        tables.extend(syscalls::for_summary(report, top)?);
        Ok(tables)
    }
}

/// How long threads were on it, where samples tell; the rows below share that.
fn processor(report: &Report, terminal: Terminal) -> String {
    if !sampled::is_sampled(report) {
        return String::new();
    }
    let on_cpu = report.analysis.on_cpu.whole_ns();
    let of_one = percent(fraction(on_cpu, report.analysis.wall_ns.as_f64()));
    let heading = terminal.paint(Look::Strong, "Processor");
    let without = match sampled::unwatched(report) {
        0 => String::new(),
        some => format!(", without that of {}", plural(some as u64, "unwatched process")),
    };
    format!("{heading}  {}, {of_one} of one processor{without}\n", elapsed(on_cpu.0))
}

fn libraries(report: &Report, terminal: Terminal, top: usize) -> String {
    let mut table = Table::new([
        ("Library", Align::Name),
        (CPU, Align::Number),
        (KERNEL, Align::Number),
        ("self", Align::Number),
        (waiting::heading(report), Align::Number),
        ("calls", Align::Number),
        ("p50", Align::Number),
        ("p99.9", Align::Number),
    ])
    .only_if(sampled::is_sampled(report), CPU)
    .only_if(sampled::is_sampled(report), KERNEL)
    .may_drop([KERNEL]);
    let is_small = |row: &&LibraryRow| {
        row.kind == LibraryKind::Application
            && row.measures.share < SMALL_APPLICATION
            && row.on_cpu.is_none_or(|time| time.samples == 0)
    };
    let (mut small, mut rows): (Vec<_>, Vec<_>) =
        report.analysis.libraries.iter().partition(is_small);
    if let [_] = *small {
        // It takes no more room than the row that would stand for it.
        small.clear();
        rows = report.analysis.libraries.iter().collect();
    }
    for row in rows.iter().take(top) {
        let measures = &row.measures;
        table.row([
            libs::name(report, row),
            sampled::share(report, row.on_cpu).into(),
            sampled::kernel(report, row.on_cpu).into(),
            self_share(report, measures).into(),
            share(report, measures.wait_ns).into(),
            calls(measures).into(),
            of_call(measures.p50_ns).into(),
            of_call(measures.p999_ns).into(),
        ]);
    }
    if let Some(row) = sampled::not_sampled::<8>(report) {
        table.row(row);
    }
    if !small.is_empty() {
        let sum = small.iter().map(|row| row.measures.self_ns.0).fold(0, u64::saturating_add);
        let name = format!("{} more applications", small.len());
        table.row([
            Cell::new(name, Look::Strong),
            "".into(),
            "".into(),
            share(report, Ns(sum)).into(),
            "".into(),
            "".into(),
            "".into(),
            "".into(),
        ]);
    }
    table.render(terminal) + &more(report, rows.len(), top, "libs")
}

fn functions(report: &Report, top: usize) -> Table {
    let mut table = Table::new([
        ("Function", Align::Name),
        ("Library", Align::Name),
        (CPU, Align::Number),
        (CALLBACKS, Align::Number),
        ("self", Align::Number),
        ("calls", Align::Number),
        ("p50", Align::Number),
        ("p99.9", Align::Number),
    ])
    .only_if(sampled::is_sampled(report), CPU)
    .only_if(sampled::is_sampled(report), CALLBACKS)
    .may_drop([CALLBACKS, "p50"]);
    for (number, row) in report.analysis.apis.iter().enumerate().take(top) {
        let measures = &row.measures;
        table.row([
            report.names.short(number).into(),
            Cell::new(report.names.object(row.object), Look::Faint),
            sampled::share(report, row.on_cpu.map(|on_cpu| on_cpu.time)).into(),
            sampled::callbacks(row).into(),
            self_share(report, measures).into(),
            calls(measures).into(),
            of_call(measures.p50_ns).into(),
            of_call(measures.p999_ns).into(),
        ]);
    }
    table
}

fn not_seen(not_seen: NotSeen, terminal: Terminal) -> String {
    match not_seen.folded() {
        lines if lines.is_empty() => String::new(),
        lines => format!("\n{}", section("Not seen", &lines, terminal)),
    }
}

/// What to type next.
fn next(report: &Report, terminal: Terminal) -> String {
    let more = format!(
        "More: {}, and apis, threads, tail, waits, tree, syscalls; charts -o DIR draws them",
        view_command(report, "libs")
    );
    let width = terminal.width.unwrap_or(usize::MAX);
    let mut out = format!("\n{}\n", wrap(words(&more), 0, 2, width));
    let other_runs = report.loaded.other_runs;
    if let (Runs::Nth(number), 1..) = (report.runs, other_runs) {
        let runs = if other_runs == 1 { "run is" } else { "runs are" };
        out.push_str(&format!(
            "{other_runs} older {runs} in {}: --run {} shows the one before this\n",
            clean(&report.path.display().to_string()),
            number + 1
        ));
    }
    out
}
