//! What the run would save at most without some of its waits and calls.

use std::collections::{BTreeSet, HashMap, HashSet};

use chase_analyzer::{
    CauseRow, LockKey, Ns, PathWait, Purpose, WaitObject, WhatIf, Without, lock_key, what_if,
};
use serde_json::Value;

use super::path::{missing, parts_text, path_rows};
use super::{Show, legend};
use crate::args::{Piece, PieceKind};
use crate::causes;
use crate::machine::{self, Rows};
use crate::names::nearest;
use crate::report::Report;
use crate::terminal::{Terminal, elapsed, percent, plural};

/// `path --without`.
pub(super) struct Shorter<'a> {
    pub(super) pieces: &'a [Piece],
}

/// What the pieces are in a run.
struct Taken {
    /// Whether each function is one.
    apis: Vec<bool>,
    locks: HashSet<LockKey>,
}

impl Taken {
    fn new(report: &Report, pieces: &[Piece]) -> Self {
        let takes_api = |api: u32| {
            let mut pieces = pieces.iter();
            pieces.any(|piece| names(report, api, piece.kind).iter().any(|name| piece.takes(name)))
        };
        let apis = (0..report.analysis.apis.len() as u32).map(takes_api).collect();
        let locks: Vec<_> = pieces.iter().filter(|piece| piece.kind == PieceKind::Lock).collect();
        let takes_lock = |row: &&CauseRow| {
            let name = causes::object(report, row.process, &row.object);
            locks.iter().any(|piece| piece.takes(&name))
        };
        let rows = report.causes().iter().filter(|row| row.purpose.is_lock()).filter(takes_lock);
        let locks = rows.filter_map(|row| lock_key(&row.object, row.process)).collect();
        Self { apis, locks }
    }

    fn has_api(&self, api: Option<u32>) -> bool {
        api.is_some_and(|api| self.apis[api as usize])
    }

    /// Whether a wait is for one of the locks. (That something is a lock may only show in all waits for it.)
    fn has_lock(&self, object: &WaitObject, process: usize, purpose: Purpose) -> bool {
        (purpose.is_lock() || purpose == Purpose::Handover)
            && lock_key(object, process).is_some_and(|key| self.locks.contains(&key))
    }

    /// How much time of each thread is taken out.
    fn times(&self, report: &Report) -> HashMap<u32, u64> {
        let mut times: HashMap<u32, u64> = HashMap::new();
        let mut add = |thread: u32, ns: Ns| {
            let sum = times.entry(thread).or_default();
            *sum = sum.saturating_add(ns.0);
        };
        for (number, thread) in (0..).zip(&report.analysis.threads) {
            let calls = thread.apis.iter().filter(|row| self.apis[row.api as usize]);
            calls.for_each(|row| add(number, row.self_ns));
        }
        for row in report.causes() {
            // (In calls that are taken out whole, it is there already.)
            if !self.has_api(row.api) && self.has_lock(&row.object, row.process, row.purpose) {
                row.by_thread.iter().for_each(|span| add(span.thread, span.ns));
            }
        }
        times
    }
}

impl Shorter<'_> {
    /// What is not there is a mistake, and no saving of 0.
    fn must_be_there(&self, report: &Report, piece: &Piece) -> anyhow::Result<()> {
        let mut all = BTreeSet::new();
        if piece.kind == PieceKind::Lock {
            let locks = report.causes().iter().filter(|row| row.purpose.is_lock());
            all.extend(locks.map(|row| causes::object(report, row.process, &row.object)));
        } else {
            for api in 0..report.analysis.apis.len() as u32 {
                all.extend(names(report, api, piece.kind).into_iter().map(str::to_owned));
            }
        }
        if all.iter().any(|name| piece.takes(name)) {
            return Ok(());
        }
        let meant = nearest(&piece.name, all.iter().map(|name| &**name));
        let meant = meant.map_or_else(String::new, |it| format!("; did you mean {it}?"));
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
        let taken = Taken::new(report, self.pieces);
        let times = taken.times(report);
        let wait = |wait: &PathWait| {
            taken.has_api(wait.api) || taken.has_lock(&wait.object, wait.process, wait.purpose)
        };
        let time = |thread: u32| Ns(times.get(&thread).copied().unwrap_or(0));
        let without = Without { wait: &wait, time: &time };
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
