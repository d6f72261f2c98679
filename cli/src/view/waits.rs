//! What threads wait for.

use chase_analyzer::{WaitRow, waits};
use serde_json::Value;

use super::apis::{cause, is_wanted};
use super::groups::{chosen, name_threads, rows as group_rows};
use super::{Show, left_out, legend, share, waiting};
use crate::args::{ApiFilter, GroupFilter, LibFilter};
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::terminal::{Align, Cell, Look, Table, Terminal, count, elapsed, percent};

/// What stands for the code outside of library calls.
pub(super) const OWN_CODE: &str = "(own code)";

pub(super) struct Waits<'a> {
    pub(super) lib: &'a LibFilter,
    pub(super) api: &'a ApiFilter,
    pub(super) group: &'a GroupFilter,
}

impl Waits<'_> {
    fn rows(&self, report: &Report) -> anyhow::Result<Vec<WaitRow>> {
        let chosen = chosen(report, self.group)?;
        let mut rows = waits(&report.analysis, report.groups());
        rows.retain(|row| {
            chosen[row.group as usize]
                && match row.api {
                    None => self.lib.libs.is_empty() && self.api.apis.is_empty(),
                    Some(api) => {
                        let (analysis, names) = (&report.analysis, &report.names);
                        is_wanted(analysis, names, api as usize, self.lib, self.api)
                    }
                }
        });
        Ok(rows)
    }
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
            let name = row.api.map_or(OWN_CODE, |api| report.names.short(api as usize));
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
        Ok(vec![Rows { name: "waits", columns: columns.into(), rows }])
    }
}
