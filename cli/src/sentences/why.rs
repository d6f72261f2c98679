//! Why a thread takes longer in a function than others.

use chase_analyzer::{Finding, Ns, Reason, Why};

use crate::report::Report;
use crate::terminal::{amount, count, elapsed};

/// ` (5283 calls against 1763)`, or what else makes most of the difference; nothing where that is not known.
pub(super) fn in_words(report: &Report, finding: &Finding, why: Option<Why>) -> String {
    let Some((why, reason)) = why.and_then(|why| Some((why, why.mainly?))) else {
        return String::new();
    };
    let api = finding.api.and_then(|api| report.analysis.apis.get(api as usize));
    let unit = api.and_then(|api| Some(api.argument.as_ref()?.unit));
    match (reason, unit, why.arguments) {
        (Reason::MoreCalls, ..) => {
            let usual = count(why.median_calls.round() as u64);
            format!(" ({} calls against {usual})", count(why.calls))
        }
        (Reason::LargerArguments, Some(unit), Some((mean, usual))) => format!(
            " (more to do in each call: {} against {}, {})",
            amount(unit, mean),
            amount(unit, usual),
            calls(&why)
        ),
        // One call each: it is as long as all are.
        _ if why.calls == 1 && why.median_calls.round() as u64 == 1 => {
            " (one call each)".to_owned()
        }
        _ => {
            let [each, usual] =
                [why.each_ns, why.median_each_ns].map(|ns| elapsed(ns.round() as u64));
            format!(" ({each} for each call against {usual}, {})", calls(&why))
        }
    }
}

/// What else a slow thread takes longer for, where that is more than a tenth of what it would save.
pub(super) fn elsewhere(finding: &Finding, useful_ns: Ns, median_ns: Ns) -> String {
    let here = useful_ns.0.saturating_sub(median_ns.0);
    let more = finding.saves_ns.0.saturating_sub(here);
    if more <= finding.saves_ns.0 / 10 {
        return String::new();
    }
    format!(", and {} more than that one in other functions", elapsed(more))
}

/// How many calls they are, where that is not what makes the difference.
fn calls(why: &Why) -> String {
    let (own, usual) = (why.calls, why.median_calls.round() as u64);
    if own == usual {
        format!("as many calls, {}", count(own))
    } else {
        format!("{} calls against {}", count(own), count(usual))
    }
}
