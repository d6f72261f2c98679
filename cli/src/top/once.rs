//! One picture, as text and as JSON.

use chase_analyzer::WaitSource;
use serde_json::{Value, json};

use super::head;
use super::place::{Place, TABLES};
use super::tables::Figures;
use super::watch::Look;
use crate::args::TopTable;
use crate::machine::{self, Rows};
use crate::terminal::{self, Look as Style, Terminal};

/// Rows of each of several tables.
const TOP: usize = 10;
const TOP_OF_ONE: usize = 30;

/// For people: all tables, or one; of the last seconds, or, of a run that has ended, of all.
pub(super) fn text(
    look: &Look,
    only: Option<TopTable>,
    terminal: Terminal,
    top: Option<usize>,
) -> String {
    let figures = Figures::new(look, look.is_running);
    let mut out = terminal.paint(Style::Strong, &head::run(look)) + "\n";
    out.push_str(&head::sums(figures, look.processors));
    out.push('\n');
    let default = if only.is_some() { TOP_OF_ONE } else { TOP };
    let top = match top {
        Some(0) => usize::MAX,
        Some(top) => top,
        None => default,
    };
    for table in TABLES.into_iter().filter(|table| only.is_none_or(|only| only == *table)) {
        let place = Place::Table(table);
        let mut listing = figures.listing(&place);
        let is_alone = table == TopTable::Processes && listing.rows.len() == 1;
        if only.is_none() && (listing.rows.is_empty() || is_alone) {
            continue;
        }
        listing.sort(listing.first_number(&place), false);
        let all = listing.rows.len();
        listing.rows.truncate(top);
        out.push('\n');
        let lines = listing.lines(terminal, None);
        for (number, line) in lines.iter().enumerate() {
            let look = if number == 0 { Style::Strong } else { Style::Plain };
            out.push_str(&terminal.paint(look, line));
            out.push('\n');
        }
        if all > top {
            out.push_str(&format!(
                "… and {} more: --by {}\n",
                all - top,
                super::place::title(table)
            ));
        }
    }
    out + &crate::view::legend(terminal, &terms(figures))
}

/// What the columns mean.
fn terms(figures: Figures) -> Vec<(&'static str, &'static str)> {
    let is_recent = figures.seconds.is_some();
    let busy = match (is_recent, figures.report.analysis.wait_source()) {
        (true, WaitSource::Name) => {
            "time not waiting, without library calls made inside, as a part of one processor; at most, since waits are told by name alone, and waiting for a processor not at all"
        }
        (true, _) => {
            "time not waiting, without library calls made inside, as a part of one processor"
        }
        (false, WaitSource::Name) => {
            "time not waiting, without library calls made inside; at most, since waits are told by name alone, and waiting for a processor not at all"
        }
        (false, _) => "time not waiting, without library calls made inside",
    };
    let mut terms = vec![("busy", busy)];
    let is_sampled = figures.report.analysis.on_cpu.samples > 0;
    terms.extend(
        is_sampled.then_some(("cpu", "where the processor was, by samples, whoever called")),
    );
    terms.extend(is_recent.then_some(("waits", "threads that waited there, in the mean")));
    terms
}

/// For programs: the figures of all, as in other documents, and below `recent` those of the last seconds.
pub(super) fn json(look: &Look) -> anyhow::Result<String> {
    let mut document = machine::document(&look.all, "top", tables(Figures::new(look, false))?)?;
    document["is_running"] = look.is_running.into();
    document["recent"] = match &look.recent {
        None => Value::Null,
        Some(recent) => {
            let mut part = json!({
                "wall_ns": recent.analysis.wall_ns,
                "totals": recent.analysis.totals,
                "on_cpu": recent.analysis.on_cpu,
            });
            for table in tables(Figures::new(look, true))? {
                part[table.name] = table.rows.into_iter().map(Value::Object).collect();
            }
            part
        }
    };
    Ok(terminal::clean_json(serde_json::to_string_pretty(&document)? + "\n"))
}

fn tables(figures: Figures) -> anyhow::Result<Vec<Rows>> {
    let analysis = figures.analysis;
    fn rows<T: serde::Serialize>(name: &'static str, from: &[T]) -> anyhow::Result<Rows> {
        let rows = from.iter().map(|row| machine::row(row, [])).collect::<Result<_, _>>()?;
        Ok(Rows { name, columns: Vec::new(), rows })
    }
    let tid = |number: u32| analysis.threads[number as usize].tid;
    let mut groups = rows("groups", &figures.groups.rows)?;
    for (map, row) in groups.rows.iter_mut().zip(&figures.groups.rows) {
        // Which threads they are is told by their ids; what else is in the row is about numbers.
        map.retain(|name, _| GROUP.contains(&&**name));
        map.insert("members".to_owned(), row.members.iter().map(|&it| tid(it)).collect());
    }
    let found = chase_analyzer::blocked(analysis);
    let mut blocked = rows("blocked", &found.rows)?;
    for (map, row) in blocked.rows.iter_mut().zip(&found.rows) {
        map.insert("max".to_owned(), json!({"tid": tid(row.max.thread), "ns": row.max.ns}));
    }
    let mut idle = rows("idle", &found.idle)?;
    for (map, row) in idle.rows.iter_mut().zip(&found.idle) {
        map.insert("members".to_owned(), row.members.iter().map(|&it| tid(it)).collect());
    }
    Ok(vec![
        rows("libraries", &analysis.libraries)?,
        rows("apis", &analysis.apis)?,
        groups,
        blocked,
        idle,
        rows("syscalls", &analysis.syscalls.by_syscall)?,
    ])
}

/// What of a group is in the document.
const GROUP: [&str; 10] = [
    "label",
    "kind",
    "threads",
    "lifetime_ns",
    "application_ns",
    "library_ns",
    "wait_ns",
    "useful_ns",
    "calls",
    "load_balance",
];
