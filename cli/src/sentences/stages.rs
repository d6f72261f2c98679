//! Groups that others wait for, in words.

use chase_analyzer::{Finding, FindingKind, GroupApi};

use super::{api, cause, group};
use crate::report::Report;
use crate::terminal::{elapsed, percent};

/// Threads that wait for less than this part of their lives hardly wait.
const HARDLY: f64 = 0.01;

/// What a stage runs for most of the time that it works is named from this share of it.
const MOSTLY: f64 = 0.5;

/// `, and mostly runs deflate (libz.so.1) (93.0 %)`; nothing where no function has most of its work.
fn mostly_runs(report: &Report, finding: &Finding) -> String {
    let group = group(report, finding);
    let longest = group.apis.iter().max_by_key(|row| row.useful_ns);
    let share = |row: &GroupApi| row.useful_ns.as_f64() / group.useful_ns.as_f64().max(1.0);
    let Some(row) = longest.filter(|row| share(row) >= MOSTLY) else { return String::new() };
    let name = row.api.map_or_else(|| "its own code".to_owned(), |_| api(report, row.api));
    format!(", and mostly runs {name} ({})", percent(share(row).min(1.0)))
}

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
    let runs = match own_wait_in {
        None => mostly_runs(report, finding),
        Some(_) => String::new(),
    };
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
        format!(": they wait for it {all} together, {own}{runs}; longest in {api}{cause}"),
    )
}
