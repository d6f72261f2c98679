//! The slowest calls of each function, by thread group.

use std::collections::{HashMap, HashSet};

use chase_analyzer::{FindingKind, TailRow, TailSyscall};
use chase_viz::{Unit, quantity};
use serde::{Deserialize, Serialize};

use super::groups::thread_name;
use super::{Figures, Names, Report};
use crate::Label;

/// Functions whose tails are shown.
const TAILS: usize = 40;
/// Calls from which on a tail says something.
const TAIL_CALLS: u64 = 100;
/// System calls named in a row.
const SYSCALLS: usize = 3;

/// The tail of a function, as a thread group calls it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tail {
    /// The function.
    pub function: Label,
    /// Its library.
    pub library: Label,
    /// The group.
    pub group: Label,
    /// Calls that were completed.
    pub calls: u64,
    /// Whether only some of them were timed.
    pub sampled: bool,
    /// The longest that was timed, nanoseconds.
    pub longest_ns: f64,
    /// Its quantiles, as far as they are known.
    pub now: TailCurve,
    /// Those of the run that this one is compared with.
    pub before: Option<TailCurve>,
    /// p99.9 / p50, where the median is long enough to be known.
    pub ratio: Option<f64>,
    /// The share of its time above p99, where known.
    pub share_above_p99: Option<f64>,
    /// Who holds the tail, in words, where there is a choice.
    pub held_by: Option<Label>,
    /// System calls that a slow call may have been in, in words; empty where none are known.
    pub syscalls: Label,
}

/// Quantiles of durations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TailCurve {
    /// 1/(1 − q) and the duration there in nanoseconds, both ascending. The maximum of *n* calls is
    /// at *n*; where only some calls were timed, it is not known.
    pub points: Vec<(f64, f64)>,
}

/// Those with most time in the tail, and those that findings are about.
pub(super) fn longest(figures: Figures<'_>, names: &dyn Names) -> Vec<Tail> {
    let found: HashSet<(u32, Option<u32>)> = figures
        .findings
        .iter()
        .filter(|finding| {
            let kind = &finding.kind;
            matches!(kind, FindingKind::SlowFirstCall { .. } | FindingKind::RareSlowCalls { .. })
        })
        .map(|finding| (finding.group, finding.api))
        .collect();
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for row in &figures.tails.rows {
        if found.contains(&(row.group, Some(row.api))) {
            first.push(row);
        } else if row.calls >= TAIL_CALLS {
            others.push(row);
        }
    }
    first.extend(others);
    first.truncate(TAILS.max(found.len()));
    let tails = first.into_iter().map(|row| tail(figures, names, row));
    tails.filter(|tail| tail.now.points.len() > 1).collect()
}

impl Report {
    /// Puts the quantiles of another run beside those that are shown, by names of functions,
    /// libraries and groups.
    pub fn add_tails_before(&mut self, before: Figures<'_>, names: &dyn Names) {
        let all = before.tails.rows.iter().map(|row| tail(before, names, row));
        let key = |tail: &Tail| [tail.library.clone(), tail.function.clone(), tail.group.clone()];
        let known: HashMap<[Label; 3], TailCurve> = all
            .filter(|tail| tail.now.points.len() > 1)
            .map(|tail| (key(&tail), tail.now))
            .collect();
        for tail in &mut self.tails {
            tail.before = known.get(&key(tail)).cloned();
        }
    }
}

fn tail(figures: Figures<'_>, names: &dyn Names, row: &TailRow) -> Tail {
    let object = figures.analysis.apis[row.api as usize].object;
    let group = &figures.groups.rows[row.group as usize];
    Tail {
        function: names.function(row.api as usize).into(),
        library: names.object(object).into(),
        group: Label::from(&group.label),
        calls: row.calls,
        sampled: row.sampled,
        longest_ns: row.max_ns.as_f64(),
        now: curve(row),
        before: None,
        ratio: row.tail_ratio,
        share_above_p99: row.above_p99,
        syscalls: syscalls(row),
        held_by: (group.threads > 1).then(|| holder(figures, row)).flatten(),
    }
}

/// The longest system calls that the function makes, each with its longest time.
fn syscalls(row: &TailRow) -> Label {
    let longest = |call: &TailSyscall| {
        format!("{} {}", call.syscall, quantity(call.max_ns.as_f64(), Unit::Nanoseconds))
    };
    let calls: Vec<String> = row.syscalls.iter().take(SYSCALLS).map(longest).collect();
    Label::from(calls.join(", "))
}

fn curve(row: &TailRow) -> TailCurve {
    let quantiles = [
        (2.0, row.p50_ns),
        (10.0, row.p90_ns),
        (100.0, row.p99_ns),
        (1000.0, row.p999_ns),
        (10_000.0, row.p9999_ns),
    ];
    let mut points = Vec::new();
    let longest = (row.calls as f64, (!row.sampled).then_some(row.max_ns));
    for (inverse, ns) in quantiles.into_iter().chain([longest]) {
        let Some(ns) = ns else { continue };
        // With few calls the last quantiles are the maximum; durations of 0 have no place on
        // a logarithmic axis, and are below what the clock tells.
        if inverse <= row.calls as f64 && points.last().is_none_or(|&(last, _)| last < inverse) {
            let least = points.last().map_or(1.0, |&(_, ns): &(f64, f64)| ns);
            points.push((inverse, ns.as_f64().max(least)));
        }
    }
    TailCurve { points }
}

/// Whether one thread makes the slow calls, or many do.
fn holder(figures: Figures<'_>, row: &TailRow) -> Option<Label> {
    let most = row.threads.first()?;
    let name = thread_name(&figures.analysis.threads[most.thread as usize]);
    let others = match row.threads_above_p99 {
        1 => String::new(),
        threads => format!(", {threads} threads make any"),
    };
    Some(Label::from(format!(
        "{name}: {} of {}{others}",
        most.calls_above_p99, row.calls_above_p99
    )))
}
