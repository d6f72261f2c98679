//! Groups that others wait for, in words.

use chase_analyzer::{Finding, FindingKind};

use super::{api, cause, group};
use crate::report::Report;
use crate::terminal::{elapsed, percent};

/// Threads that wait for less than this part of their lives hardly wait.
const HARDLY: f64 = 0.01;

/// The claim of a finding about a group that limits others, and what it rests on.
pub(super) fn limiting(report: &Report, finding: &Finding) -> (String, String) {
    let FindingKind::LimitingStage {
        is_region, all_wait_ns, waiting, own_wait, own_wait_in, ..
    } = &finding.kind
    else {
        return (String::new(), String::new());
    };
    let name = &group(report, finding).label;
    let label = |&group: &u32| report.groups().rows[group as usize].label.clone();
    let waiting: Vec<String> = waiting.iter().map(label).collect();
    let waiting = waiting.join(" and ");
    let own = match own_wait_in {
        None if *own_wait < HARDLY => "it hardly waits itself".to_owned(),
        None => format!("it waits for {} of its own time", percent(*own_wait)),
        Some(_) => {
            let (part, api) = (percent(*own_wait), api(report, *own_wait_in));
            format!("it waits for {part} of its own time, longest in {api}")
        }
    };
    let (all, api) = (elapsed(all_wait_ns.0), api(report, finding.api));
    let cause = cause(report, finding, Some(*all_wait_ns));
    if *is_region {
        return (
            format!("{name} has a larger part of parallel regions than {waiting}"),
            format!(
                ", which has done its own and waits {all} for their ends, in {api}{cause}; {own}"
            ),
        );
    }
    (
        format!("{name} limits {waiting}"),
        format!(": they wait for it {all} together, {own}; longest in {api}{cause}"),
    )
}
