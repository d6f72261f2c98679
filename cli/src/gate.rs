//! Limits for figures (`--fail-if`): whether a run, or what changed between two, is as it should be.

mod figure;
mod output;

use anyhow::Context;
use chase_analyzer::{Analysis, student_95};

use self::figure::{Value, value};
use crate::args::{Cli, CompareArgs, Condition, GateArgs, Limit, Unit, Usage, View};

/// Exit status where a condition is met.
pub(crate) const FAILED: u8 = 3;

/// What came of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is met: the run is not as it should be.
    Failed,
    /// It is not.
    Passed,
    /// It seems met, but not beyond doubt: the figure is an estimate, or differs from run to run.
    Unclear,
    /// The two sides differ by no more than runs of one side do, or not at all.
    NoChange,
}

/// A condition with its figures.
pub(crate) struct Verdict<'a> {
    pub(crate) condition: &'a Condition,
    pub(crate) outcome: Outcome,
    /// Means of both sides; before is missing of one run.
    pub(crate) before: Option<f64>,
    pub(crate) after: f64,
    /// What of the figure is compared with the limit, in its unit, and by how much that may be off.
    pub(crate) value: f64,
    pub(crate) ci95: f64,
    /// How many runs each side has.
    pub(crate) runs: (usize, usize),
    /// Processes of these runs that the figure lacks, as no companion has watched them.
    pub(crate) unwatched: usize,
}

/// Conditions are of a run, or of two.
///
/// # Errors
/// If there is neither.
pub(crate) fn may_be_asked(cli: &Cli) -> anyhow::Result<()> {
    let of_two_functions = |arguments: &CompareArgs| arguments.api.apis.len() == 2;
    let what = match &cli.view {
        Some(View::Compare(arguments)) if of_two_functions(arguments) => "two functions",
        Some(View::Top(_)) => "a live view",
        Some(View::Fold { .. } | View::Generate { .. }) => "no figures",
        _ => return Ok(()),
    };
    Err(Usage(format!("--fail-if is of a run, or of what changed between two: not of {what}"))
        .into())
}

/// Looks at all conditions, tells standard error and the file; whether one fails.
///
/// # Errors
/// If a condition names nothing, asks for what was not measured, or for a change where there is one side.
pub(crate) fn is_failed(
    arguments: &GateArgs,
    before: Option<&[Analysis]>,
    after: &[Analysis],
) -> anyhow::Result<bool> {
    let verdicts = arguments.fail_if.iter().map(|condition| check(condition, before, after));
    let verdicts = verdicts.collect::<anyhow::Result<Vec<_>>>()?;
    output::print(&verdicts);
    if let Some(path) = &arguments.verdicts {
        let text = match path.extension().is_some_and(|it| it == "xml") {
            true => output::junit(&verdicts, arguments.fail_if_unclear)?,
            false => output::json(&verdicts),
        };
        std::fs::write(path, text).with_context(|| format!("can't write {}", path.display()))?;
    }
    let fails = |verdict: &Verdict| verdict.fails(arguments.fail_if_unclear);
    Ok(verdicts.iter().any(fails))
}

impl Verdict<'_> {
    pub(crate) fn fails(&self, if_unclear: bool) -> bool {
        self.outcome == Outcome::Failed || (if_unclear && self.outcome == Outcome::Unclear)
    }
}

fn check<'a>(
    condition: &'a Condition,
    before: Option<&[Analysis]>,
    after: &[Analysis],
) -> anyhow::Result<Verdict<'a>> {
    let wrong = |what: &str| anyhow::Error::new(Usage(format!("--fail-if '{condition}': {what}")));
    let values = |runs: &[Analysis]| {
        let values = runs.iter().map(|run| value(condition, run));
        values.collect::<Result<Vec<_>, String>>().map_err(|error| wrong(&error))
    };
    let earlier = before.map(values).transpose()?.unwrap_or_default();
    let later = values(after)?;
    if earlier.iter().chain(&later).all(Option::is_none) {
        let runs = before.unwrap_or_default().iter().chain(after);
        return Err(wrong(&format!(
            "nothing is called so; {}",
            figure::what_there_is(condition, runs)
        )));
    }
    // What one run lacks, it did nothing with.
    let known = |values: Vec<Option<Value>>| values.into_iter().map(Option::unwrap_or_default);
    let later: Vec<Value> = known(later).collect();
    let runs = (earlier.len(), later.len());
    let unwatched = before.unwrap_or_default().iter().chain(after);
    let unwatched = unwatched.map(|run| figure::unwatched(condition, run)).sum();
    let Limit { unit, is_change, .. } = condition.limit;
    if !is_change {
        let Value { amount: value, ci95 } = mean(&later);
        let outcome = match condition.is_met(value) {
            false => Outcome::Passed,
            true if condition.is_met_surely(value, ci95) => Outcome::Failed,
            true => Outcome::Unclear,
        };
        let (before, after) = (None, value);
        return Ok(Verdict { condition, outcome, before, after, value, ci95, runs, unwatched });
    }
    if before.is_none() {
        return Err(wrong("it is of a change: use it with compare, or without the sign"));
    }
    let earlier: Vec<Value> = known(earlier).collect();
    let (was, is) = (mean(&earlier), mean(&later));
    let (difference, error) = (is.amount - was.amount, was.ci95.hypot(is.ci95));
    let (value, ci95) = match unit {
        Unit::Percent if difference == 0.0 => (0.0, 0.0),
        Unit::Percent if was.amount == 0.0 => (f64::INFINITY, 0.0),
        Unit::Percent => (difference / was.amount * 100.0, error / was.amount * 100.0),
        Unit::Ns | Unit::Count => (difference, error),
    };
    let outcome = match condition.is_met(value) {
        _ if difference.abs() <= error => Outcome::NoChange,
        false => Outcome::Passed,
        true if condition.is_met_surely(value, ci95) => Outcome::Failed,
        true => Outcome::Unclear,
    };
    let (before, after) = (Some(was.amount), is.amount);
    Ok(Verdict { condition, outcome, before, after, value, ci95, runs, unwatched })
}

/// The mean of some runs. How far it may be off is what each may be, or what they differ by, whichever is more.
fn mean(values: &[Value]) -> Value {
    let count = values.len().max(1) as f64;
    let amount = values.iter().map(|value| value.amount).sum::<f64>() / count;
    let of_each = values.iter().map(|value| value.ci95).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value.amount - amount).powi(2)).sum();
    let of_all = match values.len() {
        0 | 1 => 0.0,
        runs => student_95(runs - 1) * (squares / (count - 1.0) / count).sqrt(),
    };
    Value { amount, ci95: of_each.max(of_all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_differ_make_a_mean_rough() {
        let runs = |amounts: &[f64]| {
            let values: Vec<Value> =
                amounts.iter().map(|&amount| Value { amount, ci95: 1.0 }).collect();
            mean(&values)
        };
        assert_eq!(runs(&[5.0]), Value { amount: 5.0, ci95: 1.0 });
        assert_eq!(runs(&[5.0, 5.0, 5.0]), Value { amount: 5.0, ci95: 1.0 });
        let Value { amount, ci95 } = runs(&[1.0, 9.0, 5.0, 5.0]);
        // 3.18 times the standard error, which is 3.266 / 2.
        assert!(amount == 5.0 && (ci95 - 5.19).abs() < 0.01, "{ci95}");
    }
}
