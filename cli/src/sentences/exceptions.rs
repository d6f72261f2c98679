//! Findings about exceptions, in words.

use chase_analyzer::{Finding, FindingKind};

use super::{api, calls_at, group};
use crate::report::Report;
use crate::terminal::{count, elapsed, percent};

/// The claim of a finding about exceptions that are thrown again and again, and what it rests on.
pub(super) fn in_words(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::Exceptions { thrown, cpu_ns, of_cpu } = finding.kind else {
        return (String::new(), String::new());
    };
    let by = finding.api.map_or_else(String::new, |number| {
        format!(", by {}{}", api(report, Some(number)), calls_at(report, finding))
    });
    (
        format!("{} throws {} exceptions{by}", group(report, finding).label, count(thrown)),
        format!(
            ": to throw and to catch them takes at least {} of the processor time, {}. What fails as a rule is told faster by what a function returns",
            percent(of_cpu),
            elapsed(cpu_ns.0),
        ),
    )
}
