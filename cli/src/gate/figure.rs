//! The figure of a condition, in one run.

use std::collections::BTreeSet;

use chase_analyzer::{
    Analysis, Measures, Ns, SampledTime, WaitCause as Cause, WaitSource, blocked,
};

use crate::args::{Condition, Figure, Kind, Unit};
use crate::names::{Names, did_you_mean};
use crate::view;

/// Names that are shown of what there is.
const SHOWN: usize = 12;

/// An amount, and half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Value {
    pub(super) amount: f64,
    pub(super) ci95: f64,
}

impl Value {
    fn exact(amount: f64) -> Self {
        // (The sum of nothing is -0.)
        Self { amount: amount + 0.0, ci95: 0.0 }
    }

    /// Errors may have one cause: they add up.
    fn plus(self, other: Self) -> Self {
        Self { amount: self.amount + other.amount, ci95: self.ci95 + other.ci95 }
    }

    fn percent_of(self, whole: f64) -> Self {
        match whole > 0.0 {
            true => Self { amount: self.amount / whole * 100.0, ci95: self.ci95 / whole * 100.0 },
            false => Self::default(),
        }
    }
}

/// What a condition names in a run: `None` where it names nothing.
///
/// # Errors
/// If the figure was not measured.
pub(super) fn value(condition: &Condition, run: &Analysis) -> Result<Option<Value>, String> {
    let limit = condition.limit;
    let as_share = !limit.is_change && limit.unit == Unit::Percent;
    let Some((value, whole)) = value_and_whole(condition, run)? else { return Ok(None) };
    Ok(Some(if as_share { value.percent_of(whole) } else { value }))
}

/// How many processes of a run the figure lacks: what samples and system calls tell is of those that a companion has watched.
pub(super) fn unwatched(condition: &Condition, run: &Analysis) -> usize {
    let is_of_companion = condition.figure == Figure::OnCpu || condition.kind == Kind::Syscall;
    if is_of_companion { run.not_seen.syscalls.processes_without.len() } else { 0 }
}

fn value_and_whole(condition: &Condition, run: &Analysis) -> Result<Option<(Value, f64)>, String> {
    let whole = run.totals.whole_ns().as_f64();
    let named = |names: &[&str]| names.iter().any(|name| condition.glob.is_match(name));
    if condition.figure == Figure::OnCpu && run.on_cpu.samples == 0 {
        return Err("no samples were taken in that run: record with the companion (chase doctor), or ask for .self".to_owned());
    }
    if run.only_counts() && !is_known_by_counts(condition, run) {
        return Err(format!(
            "calls were only counted in that run (--timing count): ask for {}",
            if condition.kind == Kind::Wait { "sleep, io or page" } else { ".calls or .on_cpu" }
        ));
    }
    Ok(match condition.kind {
        Kind::Library => {
            let rows = run.libraries.iter().filter(|row| named(&[&row.name, &row.path]));
            let values = rows.map(|row| part(condition, run, &row.measures, row.on_cpu));
            // One that is loaded and not called has nothing.
            let is_loaded = run.objects.iter().any(|row| named(&[&row.name, &row.path]));
            is_loaded.then(|| values.fold(Value::default(), Value::plus))
        }
        Kind::Function => {
            let names = Names::new(run);
            let rows = run.apis.iter().enumerate().filter(|(number, row)| {
                named(&[&row.symbol, names.short(*number), names.full(*number)])
            });
            let values: Vec<Value> = rows
                .map(|(_, row)| {
                    part(condition, run, &row.measures, row.on_cpu.map(|on_cpu| on_cpu.time))
                })
                .collect();
            let is_sum = !matches!(
                condition.figure,
                Figure::P50 | Figure::P99 | Figure::P999 | Figure::Max
            );
            let largest = |a: Value, b: Value| if b.amount > a.amount { b } else { a };
            let fold = if is_sum { Value::plus } else { largest };
            (!values.is_empty()).then(|| values.into_iter().fold(Value::default(), fold))
        }
        Kind::Wait => {
            let found = blocked(run);
            let rows = found.rows.iter().filter(|row| named(&[&view::cause(row.cause)]));
            let amount: f64 = rows.map(|row| row.wait_ns.as_f64()).sum();
            let members = found.idle.iter().flat_map(|row| &row.members);
            let idle: f64 =
                members.map(|&it| run.threads[it as usize].lifetime_ns.as_f64()).sum();
            // Of threads that have work.
            return Ok(Some((Value::exact(amount), run.totals.lifetime_ns.as_f64() - idle)));
        }
        Kind::Syscall => {
            if run.syscalls.by_syscall.is_empty() {
                return Err("no system calls were recorded in that run: chase doctor says what the companion needs".to_owned());
            }
            let rows = run.syscalls.by_syscall.iter().filter(|row| named(&[&row.syscall]));
            let amounts: Vec<f64> = rows
                .map(|row| match condition.figure {
                    Figure::Errors => row.measures.errors as f64,
                    Figure::Time => row.measures.total_ns.as_f64(),
                    _ => row.measures.calls as f64,
                })
                .collect();
            (!amounts.is_empty()).then(|| Value::exact(amounts.iter().sum()))
        }
        Kind::Run => Some(match condition.figure {
            Figure::Wall => Value::exact(run.wall_ns.as_f64()),
            Figure::OnCpu => Value::exact(run.on_cpu.on_cpu_ns.as_f64()),
            _ => Value::exact(run.totals.calls as f64),
        }),
    }
    .map(|value| {
        let whole = match condition.figure {
            Figure::Calls if condition.kind == Kind::Syscall => run.syscalls.totals.calls as f64,
            Figure::Calls => run.totals.calls as f64,
            Figure::Errors => run.syscalls.totals.errors as f64,
            Figure::Time => run.syscalls.totals.total_ns.as_f64(),
            Figure::OnCpu => run.on_cpu.whole_ns().as_f64(),
            _ => whole,
        };
        (value, whole)
    }))
}

/// Whether a figure is known where calls were not timed. What a futex was waited for is not, nor, without a companion, any wait.
fn is_known_by_counts(condition: &Condition, run: &Analysis) -> bool {
    match condition.kind {
        Kind::Library | Kind::Function => {
            matches!(condition.figure, Figure::Calls | Figure::OnCpu)
        }
        Kind::Wait => {
            let by_futexes =
                [Cause::Lock, Cause::Condition, Cause::Barrier, Cause::Join, Cause::Other];
            run.wait_source() == WaitSource::Scheduler
                && !by_futexes.iter().any(|&cause| condition.glob.is_match(view::cause(cause)))
        }
        Kind::Syscall | Kind::Run => true,
    }
}

/// The figure of one row.
fn part(
    condition: &Condition,
    run: &Analysis,
    measures: &Measures,
    on_cpu: Option<SampledTime>,
) -> Value {
    let ns = |time: Option<Ns>| time.map_or(0.0, Ns::as_f64);
    match condition.figure {
        Figure::OnCpu => {
            let time = on_cpu.unwrap_or_default();
            Value { amount: time.on_cpu_ns.as_f64(), ci95: time.on_cpu_ci95_ns.as_f64() }
        }
        Figure::Own => Value { amount: measures.self_ns.as_f64(), ci95: measures.ci95_ns.as_f64() },
        Figure::Wait => {
            // Told by name, they are self time, and as rough.
            let is_own = run.wait_source() == WaitSource::Name;
            let ci95 = if is_own { measures.ci95_ns.as_f64() } else { 0.0 };
            Value { amount: measures.wait_ns.as_f64(), ci95 }
        }
        Figure::Calls => Value { amount: measures.calls as f64, ci95: measures.calls_ci95 as f64 },
        // Of a histogram.
        Figure::P50 => rough(ns(measures.p50_ns)),
        Figure::P99 => rough(ns(measures.p99_ns)),
        Figure::P999 => rough(ns(measures.p999_ns)),
        Figure::Max => Value::exact(ns(measures.max_ns)),
        Figure::Time | Figure::Errors | Figure::Wall => Value::default(),
    }
}

/// Quantiles are within 6.25 %.
fn rough(amount: f64) -> Value {
    Value { amount, ci95: amount / 16.0 }
}

/// What a condition may name: some of what is there, and what is most like it.
pub(super) fn what_there_is<'r>(
    condition: &Condition,
    runs: impl Iterator<Item = &'r Analysis>,
) -> String {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for run in runs {
        match condition.kind {
            Kind::Library => names.extend(run.objects.iter().map(|row| row.name.clone())),
            Kind::Function => {
                let known = Names::new(run);
                names.extend((0..run.apis.len()).map(|api| known.short(api).to_owned()));
            }
            Kind::Syscall => {
                names.extend(run.syscalls.by_syscall.iter().map(|row| row.syscall.to_string()));
            }
            Kind::Wait | Kind::Run => {}
        }
    }
    names.remove("");
    let mut shown: Vec<&str> = names.iter().take(SHOWN).map(|name| &**name).collect();
    if names.len() > SHOWN {
        shown.push("…");
    }
    let meant = did_you_mean(condition.glob.glob().glob(), names.iter().map(|name| &**name));
    format!("there are {}{meant}", shown.join(", "))
}
