//! What the run would save at most without some of its waits and calls.

use std::collections::BTreeSet;

use chase_analyzer::{CauseRow, Pieces, WhatIf, Without, lock_key, what_if};
use serde_json::Value;

use super::path::{missing, parts_text, path_rows};
use super::{Show, legend};
use crate::args::{Piece, PieceKind};
use crate::causes;
use crate::machine::{self, Rows};
use crate::names::did_you_mean;
use crate::report::Report;
use crate::terminal::{Terminal, elapsed, percent, plural};

/// `path --without`.
pub(super) struct Shorter<'a> {
    pub(super) pieces: &'a [Piece],
}

/// What the pieces that were asked for are in this run.
fn taken(report: &Report, asked: &[Piece]) -> Pieces {
    let takes_api = |api: u32| {
        let mut asked = asked.iter();
        asked.any(|piece| names(report, api, piece.kind).iter().any(|name| piece.takes(name)))
    };
    let apis = (0..report.analysis.apis.len() as u32).map(takes_api).collect();
    let locks: Vec<_> = asked.iter().filter(|piece| piece.kind == PieceKind::Lock).collect();
    let takes_lock = |row: &&CauseRow| {
        let name = causes::bare_object(report, row.process, &row.object);
        locks.iter().any(|piece| piece.takes(&name))
    };
    let rows = report.causes().iter().filter(|row| row.purpose.is_lock()).filter(takes_lock);
    let locks = rows.filter_map(|row| lock_key(&row.object, row.process)).collect();
    Pieces { apis, locks }
}

impl Shorter<'_> {
    /// What is not there is a mistake, and no saving of 0.
    fn must_be_there(&self, report: &Report, piece: &Piece) -> anyhow::Result<()> {
        let mut all = BTreeSet::new();
        if piece.kind == PieceKind::Lock {
            let locks = report.causes().iter().filter(|row| row.purpose.is_lock());
            all.extend(locks.map(|row| causes::bare_object(report, row.process, &row.object)));
        } else {
            for api in 0..report.analysis.apis.len() as u32 {
                all.extend(names(report, api, piece.kind).into_iter().map(str::to_owned));
            }
        }
        if all.iter().any(|name| piece.takes(name)) {
            return Ok(());
        }
        let meant = did_you_mean(&piece.name, all.iter().map(|name| &**name));
        let (what, view) = match piece.kind {
            PieceKind::Lock => ("no thread waited for a lock of this name", "waits"),
            PieceKind::Function => ("no function of this name was called", "apis"),
            PieceKind::Library => ("no library of this name was called", "libs"),
        };
        anyhow::bail!("{piece}: {what}{meant} (chase-report {view} has the names)")
    }

    fn find(&self, report: &Report) -> anyhow::Result<Option<WhatIf>> {
        let images = &report.loaded.images;
        if images.iter().all(|image| image.syscalls.is_none()) {
            return Ok(None);
        }
        for piece in self.pieces {
            self.must_be_there(report, piece)?;
        }
        let taken = taken(report, self.pieces);
        let times = taken.times(&report.analysis, report.causes());
        let without = Without {
            wait: &|wait| taken.has(wait),
            time: &|thread| times[thread as usize],
            thread: &|_| false,
        };
        Ok(what_if(images, &report.analysis, report.groups(), &report.routines(), &without))
    }

    fn named(&self) -> String {
        self.pieces.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// What a function is called, or its library.
fn names(report: &Report, api: u32, kind: PieceKind) -> Vec<&str> {
    let (row, names) = (&report.analysis.apis[api as usize], &report.names);
    match kind {
        PieceKind::Lock => Vec::new(),
        PieceKind::Function => {
            vec![&row.symbol, names.short(api as usize), names.full(api as usize)]
        }
        PieceKind::Library => vec![&row.library, names.object(row.object)],
    }
}

impl Show for Shorter<'_> {
    const NAME: &'static str = "path";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let Some(found) = self.find(report)? else {
            return Ok("Nothing is known of what the run would save: no companion has seen a wait of a millisecond or more.\n".into());
        };
        let mut out = format!(
            "Without {} the run would take {} at least, of {}: it would save {} at most ({}).\n",
            self.named(),
            elapsed(found.at_least_ns.0),
            elapsed(found.wall_ns.0),
            elapsed(found.saves_at_most_ns.0),
            percent(found.share),
        );
        if found.waits > 0 {
            out.push_str(&format!(
                "{} of a millisecond or more would not be, {} together in all threads.\n",
                plural(found.waits, "wait"),
                elapsed(found.waits_ns.0)
            ));
        }
        if found.running_ns.0 > 0 {
            out.push_str(&format!(
                "{} of what is saved is running, or shorter waits; the path below still has that.\n",
                elapsed(found.running_ns.0)
            ));
        }
        out.push_str("\nThe longest path that remains:\n\n");
        out.push_str(&parts_text(report, &found.parts, terminal, top));
        out.push_str(&missing(found.lost, "more may be saved than this"));
        out.push_str(&legend(
            terminal,
            &[
                ("at most", "with processors enough, if nothing else gets slower: who waits for whom and how long all else takes stays as it was; times of calls that were not all timed are estimates"),
                ("of the run", "here of the path that remains"),
            ],
        ));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let found = self.find(report)?;
        let mut rows = Vec::new();
        if let Some(found) = &found {
            rows.push(machine::row(found, [("without", Value::from(self.named()))])?);
        }
        let columns = ["without", "wall_ns", "at_least_ns", "saves_at_most_ns", "share"];
        let columns = [&columns[..], &["waits", "waits_ns", "running_ns", "lost"]].concat();
        let mut tables = vec![Rows { name: "what_if", columns, rows }];
        if let Some(found) = found {
            tables.extend(path_rows(report, &found.parts, &found.steps, top)?);
        }
        Ok(tables)
    }
}
