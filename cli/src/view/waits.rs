//! What threads wait for.

use std::collections::{HashMap, HashSet};

use chase_analyzer::{
    CauseRow, CodeAddress, EventLoop, HeldLocks, LockRow, Party, WaitRow, locks, syscall_name,
    waits,
};
use serde_json::Value;

use super::apis::{cause, is_wanted};
use super::groups::{chosen, name_threads, rows as group_rows};
use super::{Show, event_loops, left_out, legend, share, waiting};
use crate::args::{ApiFilter, GroupFilter, LibFilter};
use crate::causes::{self, Told};
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::terminal::{Align, Cell, Look, Table, Terminal, count, elapsed, percent};

const TAKEN: (&str, &str) = (
    "taken",
    "acquisitions that had to wait, exactly, of all, at most: all calls, by threads that waited for the lock, of the functions that they waited in, for whatever lock. Locks that nobody waited for are not told apart",
);
const UNTIL: (&str, &str) = (
    "wait",
    "of locks, and of what ended waits: until the threads ran again. Of functions, until they were woken",
);
const HELD: (&str, &str) = (
    "then held",
    "by those that had waited long for it, until they woke the next thread: the median. Who never waits for it, as who holds it long may, is not in it",
);
const HELD_BY: (&str, &str) = (
    "held by",
    "while others waited; of locks that don't tell their holder, only who ended the waits is known, who may have just waited, too",
);

pub(super) struct Waits<'a> {
    pub(super) lib: &'a LibFilter,
    pub(super) api: &'a ApiFilter,
    pub(super) group: &'a GroupFilter,
}

impl Waits<'_> {
    fn rows(&self, report: &Report) -> anyhow::Result<Vec<WaitRow>> {
        let chosen = chosen(report, self.group)?;
        let mut rows = waits(&report.analysis, report.groups());
        rows.retain(|row| chosen[row.group as usize] && self.takes(report, row.api));
        Ok(rows)
    }

    /// Who waits where for what, and who ends that.
    fn causes<'r>(&self, report: &'r Report) -> anyhow::Result<Vec<&'r CauseRow>> {
        let chosen = chosen(report, self.group)?;
        let wanted = |row: &&CauseRow| chosen[row.group as usize] && self.takes(report, row.api);
        Ok(report.causes().iter().filter(wanted).collect())
    }

    fn locks(&self, report: &Report) -> anyhow::Result<Vec<LockRow>> {
        let causes: Vec<CauseRow> = self.causes(report)?.into_iter().cloned().collect();
        let images = &report.loaded.images;
        let held = HeldLocks::new(images, &report.analysis, report.groups(), &report.routines());
        Ok(locks(&causes, &report.analysis, &held))
    }

    /// Loops of threads that wait for descriptors.
    fn event_loops<'r>(&self, report: &'r Report) -> anyhow::Result<Vec<&'r EventLoop>> {
        let chosen = chosen(report, self.group)?;
        let wanted = |one: &&EventLoop| chosen[one.group as usize] && self.takes(report, one.api);
        Ok(report.watched().event_loops.iter().filter(wanted).collect())
    }

    fn lock_rows(&self, report: &Report, top: usize) -> anyhow::Result<Rows> {
        let rows = self.locks(report)?;
        let row = |row: &LockRow| {
            let function = row.api.map(|api| report.names.full(api as usize));
            machine::row(
                row,
                [
                    ("name", causes::object(report, row.process, &row.object).into()),
                    ("function", function.into()),
                    ("site", site(report, row.process, row.site)?),
                    ("holders", parties(report, &row.holders)?),
                    ("wakers", parties(report, &row.wakers)?),
                ],
            )
        };
        let rows = rows.iter().take(top).map(row).collect::<anyhow::Result<_>>()?;
        let columns = [
            "name",
            "purpose",
            "waits",
            "contended",
            "wait_ns",
            "max_ns",
            "threads",
            "acquisitions_at_most",
            "held.sections",
            "held.median_ns",
            "held.max_ns",
            "function",
            "site.function",
            "site.line",
        ];
        Ok(Rows { name: "locks", columns: columns.into(), rows })
    }

    /// Whether the filters take waits in an API, or in own code.
    fn takes(&self, report: &Report, api: Option<u32>) -> bool {
        match api {
            None => self.lib.libs.is_empty() && self.api.apis.is_empty(),
            Some(api) => {
                is_wanted(&report.analysis, &report.names, api as usize, self.lib, self.api)
            }
        }
    }
}

/// Locks that were waited for.
fn locks_table(report: &Report, rows: &[LockRow], top: usize) -> Table {
    let mut table = Table::new([
        ("Lock", Align::Name),
        ("wait", Align::Number),
        ("waits", Align::Number),
        ("longest", Align::Number),
        ("threads", Align::Number),
        ("taken", Align::Number),
        (HELD.0, Align::Number),
        ("at", Align::Name),
        ("held by", Align::Name),
    ])
    .may_drop(["threads", "taken"])
    .only_if(rows.iter().any(|row| row.held.is_some()), HELD.0);
    for row in rows.iter().take(top) {
        let holder = row.holders.first().map(|party| causes::party(report, party));
        let waker = row.wakers.first().map(|party| causes::party(report, party));
        let ended =
            || waker.filter(|name| !name.is_empty()).map(|name| format!("(ended by {name})"));
        table.row([
            causes::object(report, row.process, &row.object).into(),
            elapsed(row.wait_ns.0).into(),
            count(row.waits).into(),
            elapsed(row.max_ns.0).into(),
            count(row.threads as u64).into(),
            taken(row).into(),
            row.held
                .map_or_else(String::new, |held| format!("~{}", elapsed(held.median_ns.0)))
                .into(),
            causes::site(report, row.process, row.site).into(),
            holder.or_else(ended).unwrap_or_default().into(),
        ]);
    }
    table
}

/// How often a lock was taken after waiting, and how often in all, at most; empty where no function is known that takes
/// it.
fn taken(row: &LockRow) -> String {
    match (row.contended, row.acquisitions_at_most) {
        (_, 0) => String::new(),
        (Some(contended), most) => format!("{} of ≤{}", count(contended), count(most)),
        (None, most) => format!("≤{}", count(most)),
    }
}

/// Who waits where, for what, held and ended by whom.
fn causes_table(rows: &[Told<'_>], top: usize) -> Table {
    let mut table = Table::new([
        ("Waits in", Align::Name),
        ("at", Align::Name),
        ("Group", Align::Name),
        ("for", Align::Name),
        ("wait", Align::Number),
        ("waits", Align::Number),
        ("held by", Align::Name),
        ("ended by", Align::Name),
    ])
    .may_drop(["waits", "Group"]);
    let shown = &rows[..top.min(rows.len())];
    let mut files: HashMap<&str, HashSet<&str>> = HashMap::new();
    for row in shown {
        files.entry(causes::brief(&row.words.object)).or_default().insert(&row.words.object);
    }
    for Told { words, wait_ns, waits, .. } in shown {
        // Files of one name in several directories are told apart by these.
        let brief = causes::brief(&words.object);
        let is_one = files.get(brief).is_none_or(|of_name| of_name.len() == 1);
        table.row([
            (&*words.function).into(),
            (&*words.site).into(),
            (&*words.group).into(),
            (if is_one { brief } else { &words.object }).into(),
            elapsed(*wait_ns).into(),
            count(*waits).into(),
            (&*words.holder).into(),
            (&*words.waker).into(),
        ]);
    }
    table
}

fn site(report: &Report, process: usize, site: Option<CodeAddress>) -> anyhow::Result<Value> {
    Ok(match site {
        Some(site) => serde_json::to_value(causes::place(report, process, &site))?,
        None => Value::Null,
    })
}

/// Holders or wakers as JSON has them.
fn parties(report: &Report, parties: &[Party]) -> anyhow::Result<Value> {
    let one = |party: &Party| -> anyhow::Result<Value> {
        let group = party.group.map(|group| &*report.groups().rows[group as usize].label);
        let function = party.api.map(|api| report.names.full(api as usize));
        let fields = [
            ("group", Value::from(group)),
            ("function", function.into()),
            ("site", site(report, party.process, party.site)?),
        ];
        Ok(Value::Object(machine::row(party, fields)?))
    };
    Ok(Value::Array(parties.iter().map(one).collect::<anyhow::Result<_>>()?))
}

/// A row as JSON and CSV have it.
fn cause_row(report: &Report, row: &CauseRow) -> anyhow::Result<serde_json::Map<String, Value>> {
    let function = row.api.map(|api| report.names.full(api as usize));
    let name = row.syscall.map(syscall_name);
    machine::row(
        row,
        [
            ("group", Value::from(&*report.groups().rows[row.group as usize].label)),
            ("function", function.into()),
            ("site", site(report, row.process, row.site)?),
            ("syscall", Value::from(name.map(String::from))),
            ("object_name", Value::from(causes::awaited(report, row))),
            ("holders", parties(report, &row.holders)?),
            ("wakers", parties(report, &row.wakers)?),
        ],
    )
}

impl Show for Waits<'_> {
    const NAME: &'static str = "waits";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let mut groups = Table::new([
            ("Group", Align::Name),
            ("threads", Align::Number),
            ("running", Align::Number),
            ("waiting", Align::Number),
            ("for", Align::Text),
        ]);
        let group_rows = group_rows(report, self.group)?;
        for (_, row) in group_rows.iter().take(top) {
            let causes = row
                .waits
                .iter()
                .map(|wait| format!("{} {}", cause(wait.cause), share(report, wait.wait_ns)));
            let causes: Vec<String> = causes.collect();
            groups.row([
                (&*row.label).into(),
                count(row.threads as u64).into(),
                share(report, row.useful_ns).into(),
                share(report, row.wait_ns).into(),
                causes.join(", ").into(),
            ]);
        }
        let rows = self.rows(report)?;
        let mut table = Table::new([
            ("Function", Align::Name),
            ("Library", Align::Name),
            ("Group", Align::Name),
            ("for", Align::Text),
            ("wait", Align::Number),
            ("of lifetime", Align::Number),
            ("calls", Align::Number),
            ("threads", Align::Number),
            ("most", Align::Number),
            ("by", Align::Number),
        ])
        .may_drop(["Library", "calls", "threads", "by", "most"]);
        for row in rows.iter().take(top) {
            let api = row.api.map(|api| &report.analysis.apis[api as usize]);
            let name = causes::function(report, row.api);
            let library = api.map_or("", |api| report.names.object(api.object));
            table.row([
                name.into(),
                Cell::new(library, Look::Faint),
                (&*report.groups().rows[row.group as usize].label).into(),
                cause(row.cause).into(),
                elapsed(row.wait_ns.0).into(),
                percent(row.of_lifetime).into(),
                count(row.calls).into(),
                count(row.threads as u64).into(),
                elapsed(row.max.ns.0).into(),
                report.analysis.threads[row.max.thread as usize].tid.to_string().into(),
            ]);
        }
        let mut out = groups.render(terminal);
        out.push_str(&left_out(group_rows.len(), top, "groups"));
        if !rows.is_empty() {
            out.push('\n');
            out.push_str(&table.render(terminal));
            out.push_str(&left_out(rows.len(), top, "functions"));
        }
        let locks = self.locks(report)?;
        if !locks.is_empty() {
            out.push('\n');
            out.push_str(&locks_table(report, &locks, top).render(terminal));
            out.push_str(&left_out(locks.len(), top, "locks"));
        }
        let causes = causes::told(report, &self.causes(report)?);
        if !causes.is_empty() {
            out.push('\n');
            out.push_str(&causes_table(&causes, top).render(terminal));
            out.push_str(&left_out(causes.len(), top, "causes"));
        }
        let loops = self.event_loops(report)?;
        let held_up: Vec<&EventLoop> =
            loops.into_iter().filter(|one| !one.held_up.is_empty()).collect();
        if !held_up.is_empty() {
            out.push('\n');
            out.push_str(&event_loops::table(report, &held_up, top).render(terminal));
            out.push_str(&left_out(held_up.len(), top, "event loops"));
        }
        out.push_str(&legend(
            terminal,
            &[
                (
                    "running",
                    "application and library time without waits, as a share of all threads' time",
                ),
                ("waiting", waiting::of_groups(report)),
                ("of lifetime", "as a share of the lifetimes of the group's threads"),
                ("most, by", "the longest wait of one thread, and its id"),
            ],
        ));
        if !locks.is_empty() {
            let is_held = locks.iter().any(|row| row.held.is_some());
            let all = [TAKEN, HELD, HELD_BY];
            let wanted = all.into_iter().filter(|line| is_held || *line != HELD);
            out.push_str(&legend(terminal, &wanted.collect::<Vec<_>>()));
        }
        if !locks.is_empty() || !causes.is_empty() {
            out.push_str(&legend(terminal, &[UNTIL]));
        }
        if !held_up.is_empty() {
            out.push_str(&legend(terminal, &[event_loops::HELD_UP]));
        }
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let mut rows = Vec::new();
        for row in self.rows(report)?.iter().take(top) {
            let api = row.api.map(|api| &report.analysis.apis[api as usize]);
            let function = row.api.map(|api| report.names.full(api as usize));
            let group = &report.groups().rows[row.group as usize];
            let mut map = machine::row(
                row,
                [
                    ("group", Value::from(&*group.label)),
                    ("library", api.map(|api| &*api.library).into()),
                    ("function", function.into()),
                    ("symbol", api.map(|api| &*api.symbol).into()),
                ],
            )?;
            map.values_mut().for_each(|value| name_threads(report, value));
            rows.push(map);
        }
        let columns = [
            "group",
            "cause",
            "library",
            "function",
            "symbol",
            "calls",
            "wait_ns",
            "of_lifetime",
            "threads",
            "max.tid",
            "max.ns",
        ];
        let waits = Rows { name: "waits", columns: columns.into(), rows };
        let causes = self.causes(report)?;
        let rows = causes.iter().take(top).map(|row| cause_row(report, row));
        let columns = [
            "group",
            "function",
            "site.function",
            "site.file",
            "site.line",
            "syscall",
            "object_name",
            "waits",
            "wait_ns",
            "max_ns",
            "ready_ns",
            "threads",
        ];
        let causes = Rows {
            name: "causes",
            columns: columns.into(),
            rows: rows.collect::<anyhow::Result<_>>()?,
        };
        let loops = event_loops::rows(report, &self.event_loops(report)?, top)?;
        Ok(vec![waits, causes, self.lock_rows(report, top)?, loops])
    }
}
