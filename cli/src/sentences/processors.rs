//! Findings about processors: too many threads for them, or a limit of their use.

use chase_analyzer::{Finding, FindingKind};

use crate::terminal::{count, elapsed, percent};

/// The claim that more threads could run than there are processors, and what it rests on.
pub(super) fn too_many_threads(finding: &Finding) -> (String, String) {
    let FindingKind::TooManyThreads { runnable, processors, of_machine, waiting_ns, of_wanted } =
        &finding.kind
    else {
        return (String::new(), String::new());
    };
    let are_confined = processors < of_machine;
    let (claim, among) = match are_confined {
        true => (
            "More threads could run than there are processors that they may run on",
            format!("{processors} of the machine's {of_machine}"),
        ),
        false => ("More threads could run than there are processors", processors.to_string()),
    };
    let others = if are_confined { ", and sooner on the others" } else { "" };
    (
        claim.to_owned(),
        format!(
            ": {runnable:.1} on average, of {among}; they wait {} of the time that they want one, {} together. As many as processors would be done as soon{others}",
            percent(*of_wanted),
            elapsed(waiting_ns.0),
        ),
    )
}

/// The claim that a control group's limit makes threads wait, and what it rests on.
pub(super) fn used_up_quota(finding: &Finding) -> (String, String) {
    let FindingKind::UsedUpQuota {
        processors,
        control_group,
        periods,
        used_up_in,
        waiting_ns,
        of_wanted,
    } = &finding.kind
    else {
        return (String::new(), String::new());
    };
    let waits = match (*of_wanted, *waiting_ns) {
        (Some(of_wanted), Some(waiting_ns)) => format!(
            "; threads wait for a processor {} of the time that they want one, {} together",
            percent(of_wanted),
            elapsed(waiting_ns.0),
        ),
        _ => "; how long threads waited for a processor was not observed".to_owned(),
    };
    (
        format!(
            "The limit of the control group {control_group}, {processors} processors, is used up"
        ),
        format!(
            ": in {} of {} periods it has to wait for the next{waits}",
            count(*used_up_in),
            count(*periods),
        ),
    )
}
