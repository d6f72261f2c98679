//! The result of a comparison.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::family::{Row, probabilities};
use super::figures::{Figures, Parts, Run, wait_source};
use super::matching::{ApiName, Pair};
use super::rank::p_value;
use crate::analysis::Analysis;
use crate::rows::WaitSource;
use crate::syscalls::syscall_name;

/// Differences that are less likely than this by chance count as changes.
const SIGNIFICANT: f64 = 0.05;

/// Two sides compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The numbers of runs on each side.
    pub runs: (usize, usize),
    /// What verdicts are based on.
    pub basis: Basis,
    /// How waits were measured on each side; if in different ways, they are not compared.
    pub wait_sources: (WaitSource, WaitSource),
    /// The runs as wholes.
    pub totals: Totals,
    /// The pairs, largest change of self time first.
    pub apis: Vec<ApiChange>,
}

/// What verdicts are based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A rank test over the runs.
    Ranks,
    /// Too few runs for a rank test.
    TooFewRuns,
    /// The distributions of single calls, with one run on a side.
    Distributions,
}

/// A figure of both sides: the median over the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// Before.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
    /// After minus before.
    pub difference: Option<f64>,
    /// The difference as a fraction of before.
    pub relative: Option<f64>,
    /// The probability of so large a difference by chance, if both sides have several runs.
    pub p: Option<f64>,
}

/// The figures of the runs as wholes. Times are in ns.
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// Wall time.
    pub wall_ns: Change,
    /// Application time of all threads.
    pub application_ns: Change,
    /// Time in library calls of all threads.
    pub library_ns: Change,
    /// The part of it spent waiting.
    pub wait_ns: Change,
    /// Library calls.
    pub calls: Change,
    /// System calls.
    pub syscalls: Change,
}

/// An API of both sides.
#[derive(Clone, Debug, Serialize)]
pub struct ApiChange {
    /// Before; `None` if it was not called.
    pub before: Option<ApiName>,
    /// After.
    pub after: Option<ApiName>,
    /// How its time per call has changed.
    pub verdict: Verdict,
    /// Its figures.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// System calls by number, including those made in library calls inside; most first.
    pub syscalls: Vec<SyscallChange>,
    /// What a call's time was spent on, before and after.
    pub parts: (Option<Parts>, Option<Parts>),
}

/// How the time per call has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is longer.
    Slower,
    /// It is shorter.
    Faster,
    /// It may be the same.
    NoClearChange,
    /// There are too few calls or runs to decide.
    TooFew,
    /// Only called before.
    OnlyBefore,
    /// Only called after.
    OnlyAfter,
}

/// The figures of an API. Times are in ns.
#[derive(Clone, Debug, Serialize)]
pub struct Metrics {
    /// Calls.
    pub calls: Change,
    /// Mean time of a call, including the library calls made inside.
    pub time_per_call_ns: Change,
    /// Mean self time of a call.
    pub self_per_call_ns: Change,
    /// Self time of all calls.
    pub self_ns: Change,
    /// Self time as a fraction of application time and all self times.
    pub share: Change,
    /// Median time of a call.
    pub p50_ns: Change,
    /// 99.9th percentile of a call's time.
    pub p999_ns: Change,
    /// Waits as a fraction of self time.
    pub wait_share: Change,
    /// System calls per call, including those made in library calls inside.
    pub syscalls_per_call: Change,
    /// System calls that failed, per call.
    pub syscall_errors_per_call: Change,
}

/// A system call of an API, per call of the API.
#[derive(Clone, Debug, Serialize)]
pub struct SyscallChange {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub syscall: String,
    /// Per call of the API.
    pub per_call: Change,
}

impl Change {
    fn from_values(before: &[f64], after: &[f64]) -> Self {
        let mut change = Self::between(median(before), median(after));
        if before.len() > 1 && after.len() > 1 {
            change.p = p_value(before, after);
        }
        change
    }

    fn between(before: Option<f64>, after: Option<f64>) -> Self {
        let difference = before.zip(after).map(|(before, after)| after - before);
        let relative = difference
            .zip(before)
            .and_then(|(difference, before)| (before != 0.0).then(|| difference / before));
        Self { before, after, difference, relative, p: None }
    }
}

pub(super) fn compare(before: &[Analysis], after: &[Analysis], pairs: &[Pair]) -> Comparison {
    let runs = (before.len(), after.len());
    let basis = basis(runs);
    let wait_sources = (wait_source(before), wait_source(after));
    let may_compare_waits = wait_sources.0 == wait_sources.1;
    let before_runs: Vec<Run<'_>> = before.iter().map(Run::new).collect();
    let after_runs: Vec<Run<'_>> = after.iter().map(Run::new).collect();
    let row = |pair: &Pair| api_change(&before_runs, &after_runs, pair, basis, may_compare_waits);
    let mut apis: Vec<ApiChange> = pairs.iter().map(row).collect();
    if basis == Basis::Ranks {
        without_chance(&mut apis, &before_runs, &after_runs);
    }
    let change = |row: &ApiChange| {
        let Change { before, after, .. } = row.metrics.self_ns;
        (after.unwrap_or(0.0) - before.unwrap_or(0.0)).abs()
    };
    apis.sort_by(|a, b| change(b).total_cmp(&change(a)));
    let total = |of: &dyn Fn(&Analysis) -> Option<f64>| {
        let values = |side: &[Analysis]| side.iter().filter_map(of).collect::<Vec<_>>();
        Change::from_values(&values(before), &values(after))
    };
    let totals = Totals {
        wall_ns: total(&|run| Some(run.wall_ns.as_f64())),
        application_ns: total(&|run| Some(run.totals.application_ns.as_f64())),
        library_ns: total(&|run| Some(run.totals.library_ns.as_f64())),
        wait_ns: total(&|run| may_compare_waits.then(|| run.totals.wait_ns.as_f64())),
        calls: total(&|run| Some(run.totals.calls as f64)),
        syscalls: total(&|run| {
            let calls = run.syscalls.totals.calls;
            (calls > 0).then_some(calls as f64)
        }),
    };
    Comparison { runs, basis, wait_sources, totals, apis }
}

/// Calls nothing a change that may be the one among many functions that differs by chance.
fn without_chance(apis: &mut [ApiChange], before: &[Run<'_>], after: &[Run<'_>]) {
    let times = |side: &[Run<'_>], name: &Option<ApiName>| -> Vec<Option<f64>> {
        let of_run = |run: &Run<'_>| Figures::of_api(run, name.as_ref()?)?.time_per_call_ns;
        side.iter().map(of_run).collect()
    };
    let rows: Vec<Row> = apis
        .iter()
        .map(|api| Row { before: times(before, &api.before), after: times(after, &api.after) })
        .collect();
    for (api, p) in apis.iter_mut().zip(probabilities(&rows)) {
        let is_change = matches!(api.verdict, Verdict::Slower | Verdict::Faster);
        if is_change && p.is_none_or(|p| p >= SIGNIFICANT) {
            api.verdict = Verdict::NoClearChange;
        }
    }
}

fn basis((before, after): (usize, usize)) -> Basis {
    if before <= 1 || after <= 1 {
        return Basis::Distributions;
    }
    // The most extreme ranks possible.
    let (low, high): (Vec<f64>, Vec<f64>) = (
        (0..before).map(|i| i as f64).collect(),
        (0..after).map(|i| (before + i) as f64).collect(),
    );
    match p_value(&low, &high) {
        Some(p) if p < SIGNIFICANT => Basis::Ranks,
        _ => Basis::TooFewRuns,
    }
}

fn api_change(
    before: &[Run<'_>],
    after: &[Run<'_>],
    pair: &Pair,
    basis: Basis,
    may_compare_waits: bool,
) -> ApiChange {
    let figures = |side: &[Run<'_>], name: &Option<ApiName>| -> Vec<Figures> {
        let Some(name) = name else { return Vec::new() };
        side.iter().filter_map(|run| Figures::of_api(run, name)).collect()
    };
    let (before, after) = (figures(before, &pair.before), figures(after, &pair.after));
    let change = |of: &dyn Fn(&Figures) -> Option<f64>| {
        let values = |side: &[Figures]| side.iter().filter_map(of).collect::<Vec<_>>();
        Change::from_values(&values(&before), &values(&after))
    };
    let time_per_call_ns = change(&|figures| figures.time_per_call_ns);
    let metrics = Metrics {
        calls: change(&|figures| Some(figures.calls)),
        time_per_call_ns,
        self_per_call_ns: change(&|figures| figures.self_per_call_ns),
        self_ns: change(&|figures| Some(figures.self_ns)),
        share: change(&|figures| Some(figures.share)),
        p50_ns: change(&|figures| figures.p50_ns),
        p999_ns: change(&|figures| figures.p999_ns),
        wait_share: change(&|figures| figures.wait_share.filter(|_| may_compare_waits)),
        syscalls_per_call: change(&|figures| {
            figures.syscalls.as_ref().map(|syscalls| syscalls.calls / figures.calls)
        }),
        syscall_errors_per_call: change(&|figures| {
            figures.syscalls.as_ref().map(|syscalls| syscalls.errors / figures.calls)
        }),
    };
    let numbers: BTreeSet<u32> = before
        .iter()
        .chain(&after)
        .flat_map(|figures| figures.syscalls.iter().flat_map(|s| s.by_number.keys().copied()))
        .collect();
    let mut syscalls: Vec<SyscallChange> = numbers
        .into_iter()
        .map(|number| SyscallChange {
            number,
            syscall: syscall_name(number).into_owned(),
            per_call: change(&|figures| {
                let syscalls = figures.syscalls.as_ref()?;
                Some(syscalls.by_number.get(&number).unwrap_or(&0.0) / figures.calls)
            }),
        })
        .collect();
    let most = |row: &SyscallChange| {
        row.per_call.before.unwrap_or(0.0).max(row.per_call.after.unwrap_or(0.0))
    };
    syscalls.sort_by(|a, b| most(b).total_cmp(&most(a)));
    ApiChange {
        before: pair.before.clone(),
        after: pair.after.clone(),
        verdict: verdict(&before, &after, basis, &time_per_call_ns),
        metrics,
        syscalls,
        parts: (parts(&before), parts(&after)),
    }
}

fn verdict(before: &[Figures], after: &[Figures], basis: Basis, time: &Change) -> Verdict {
    match (before, after) {
        ([], []) => return Verdict::TooFew,
        ([], _) => return Verdict::OnlyAfter,
        (_, []) => return Verdict::OnlyBefore,
        _ => {}
    }
    let direction = match time.difference {
        Some(difference) if difference > 0.0 => Verdict::Slower,
        Some(difference) if difference < 0.0 => Verdict::Faster,
        _ => Verdict::NoClearChange,
    };
    match basis {
        Basis::TooFewRuns => Verdict::TooFew,
        Basis::Ranks => match time.p {
            Some(p) if p < SIGNIFICANT => direction,
            Some(_) => Verdict::NoClearChange,
            None => Verdict::TooFew,
        },
        Basis::Distributions => {
            // Each run of one side must be disjoint from each of the other.
            let mut verdicts = before.iter().flat_map(|before| {
                after.iter().map(|after| match (before.middle_ns, after.middle_ns) {
                    (Some((_, end)), Some((start, _))) if end < start => Verdict::Slower,
                    (Some((start, _)), Some((_, end))) if end < start => Verdict::Faster,
                    (Some(_), Some(_)) => Verdict::NoClearChange,
                    _ => Verdict::TooFew,
                })
            });
            let first = verdicts.next().unwrap_or(Verdict::TooFew);
            if verdicts.all(|verdict| verdict == first) { first } else { Verdict::NoClearChange }
        }
    }
}

/// Returns means over the calls of all runs.
fn parts(side: &[Figures]) -> Option<Parts> {
    let timed: f64 = side.iter().map(|figures| figures.timed).sum();
    let mean = |of: fn(&Parts) -> f64| side.iter().map(|f| of(&f.parts_ns)).sum::<f64>() / timed;
    (timed > 0.0).then(|| Parts {
        code_ns: mean(|parts| parts.code_ns),
        syscalls_ns: mean(|parts| parts.syscalls_ns),
        wait_ns: mean(|parts| parts.wait_ns),
        preempted_ns: mean(|parts| parts.preempted_ns),
        nested_ns: mean(|parts| parts.nested_ns),
    })
}

fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        len if len % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}
