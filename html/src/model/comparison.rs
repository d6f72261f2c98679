//! What changed, from the analyzer's comparison.

use chase_analyzer::{ApiChange, ApiName, Change as Figure, Comparison as Compared, Parts};

use super::{Change, Comparison, FunctionChange, SelfParts};
use crate::Label;

/// Functions shown.
const FUNCTIONS: usize = 100;

impl Comparison {
    /// What `compared` says of the sides that are called `before` and `now`; `function` gives the
    /// short name of one.
    #[must_use]
    pub fn new(
        compared: &Compared,
        [before, now]: [String; 2],
        notes: Vec<String>,
        function: &dyn Fn(&ApiName) -> String,
    ) -> Self {
        let totals = &compared.totals;
        let figures = [
            ("wall time", &totals.wall_ns, true),
            ("application time", &totals.application_ns, true),
            ("time in libraries", &totals.library_ns, true),
            ("of it waiting", &totals.wait_ns, true),
            ("library calls", &totals.calls, false),
            ("system calls", &totals.syscalls, false),
        ];
        let is_there = |figure: &Figure| figure.before.is_some() || figure.after.is_some();
        let totals = figures.into_iter().filter(|(_, figure, _)| is_there(figure));
        let functions = compared.apis.iter().take(FUNCTIONS);
        Self {
            before: before.into(),
            now: now.into(),
            notes: notes.into_iter().map(Label::from).collect(),
            totals: totals.map(|(measure, figure, time)| change(measure, figure, time)).collect(),
            functions: functions.map(|row| function_change(row, function)).collect(),
            more_functions: compared.apis.len().saturating_sub(FUNCTIONS),
        }
    }
}

fn change(measure: &str, figure: &Figure, is_time: bool) -> Change {
    let Figure { before, after, p, .. } = *figure;
    Change { measure: measure.into(), before, now: after, is_time, p }
}

fn function_change(row: &ApiChange, function: &dyn Fn(&ApiName) -> String) -> FunctionChange {
    let of = |name: &dyn Fn(&ApiName) -> String| {
        let [before, now] = [&row.before, &row.after].map(|side| side.as_ref().map(name));
        match (before, now) {
            (Some(before), Some(now)) if before != now => format!("{before} → {now}"),
            (before, now) => now.or(before).unwrap_or_default(),
        }
    };
    let metrics = &row.metrics;
    FunctionChange {
        function: of(function).into(),
        library: of(&|name| name.library.clone()).into(),
        verdict: row.verdict,
        figures: vec![
            change("per call", &metrics.time_per_call_ns, true),
            change("self", &metrics.self_ns, true),
            change("p50", &metrics.p50_ns, true),
            change("p99.9", &metrics.p999_ns, true),
            change("calls", &metrics.calls, false),
            change("system calls per call", &metrics.syscalls_per_call, false),
        ],
        parts: [
            self_parts(row.parts.0, metrics.self_ns.before),
            self_parts(row.parts.1, metrics.self_ns.after),
        ],
    }
}

/// The parts of a call's time that are its own, as parts of all self time.
fn self_parts(parts: Option<Parts>, self_ns: Option<f64>) -> Option<SelfParts> {
    let (Parts { code_ns, syscalls_ns, wait_ns, preempted_ns, .. }, self_ns) =
        parts.zip(self_ns)?;
    let of_call = code_ns + syscalls_ns + wait_ns + preempted_ns;
    if of_call <= 0.0 {
        return None;
    }
    let times = self_ns / of_call;
    Some(SelfParts {
        code_ns: code_ns * times,
        syscalls_ns: syscalls_ns * times,
        wait_ns: wait_ns * times,
        preempted_ns: preempted_ns * times,
    })
}
