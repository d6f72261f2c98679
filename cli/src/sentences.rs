//! Findings in words, and the commands that show more of them.

use chase_analyzer::{Finding, FindingKind, GroupRow, Ns, SubGroupSummary};

use crate::causes;
use crate::report::Report;
use crate::terminal::{count, elapsed, percent};

/// What was found, in a sentence.
pub(crate) fn sentence(report: &Report, finding: &Finding) -> String {
    let group = group(report, finding);
    let (who, verb) = who(report, finding, group);
    let api = api(report, finding.api);
    let own = finding.api.is_none();
    let place = if own { "in its own code".to_owned() } else { format!("in {api}") };
    let saves = saves(finding);
    match &finding.kind {
        FindingKind::SlowThreads { useful_ns, median_ns, as_rates, .. } => {
            let rate = if *as_rates { " (at the rate of its lifetime)" } else { "" };
            format!(
                "{who} {verb} slower than the others: {} {place}, the median thread {}{rate}; {saves}.",
                elapsed(useful_ns.0),
                elapsed(median_ns.0),
            )
        }
        FindingKind::SlowFirstCall { first_ns, median_ns, inside, .. } => {
            let inside = inside.map_or_else(String::new, |inside| {
                let often = if inside.calls == 1 {
                    "called once".to_owned()
                } else {
                    format!("called {} times", count(inside.calls))
                };
                let api = self::api(report, Some(inside.api));
                format!(", {} of it in {api}, {often}", elapsed(inside.total_ns.0))
            });
            format!(
                "The first call of {api} takes {} in {who}{inside}, later ones {}; {saves}.",
                elapsed(first_ns.0),
                elapsed(median_ns.0),
            )
        }
        FindingKind::RareSlowCalls { calls, slow_calls, slow_ns, median_ns, .. } => format!(
            "{} of {} calls of {api} in {} take {} together, the usual one {}; {saves}.",
            count(*slow_calls),
            count(*calls),
            group.label,
            elapsed(slow_ns.0),
            elapsed(median_ns.0),
        ),
        FindingKind::SerialisingLock { all_wait_ns, of_lifetime, inside, .. } => {
            let inside = inside.map_or_else(String::new, |inside| {
                format!(", called in {},", self::api(report, Some(inside)))
            });
            format!(
                "A lock serialises {}: {api}{inside} takes {} of the threads' time, {} together{}; {saves}.",
                group.label,
                percent(*of_lifetime),
                elapsed(all_wait_ns.0),
                cause(report, finding),
            )
        }
        FindingKind::BarrierStraggler { useful_ns, median_ns, all_wait_ns, .. } => format!(
            "{} wait at a barrier for {who}: {} {place}, the median thread {}; they wait {} together; {saves}.",
            the_threads(&group.label),
            elapsed(useful_ns.0),
            elapsed(median_ns.0),
            elapsed(all_wait_ns.0),
        ),
        FindingKind::StarvedConsumers { of_lifetime, producer, producer_busy, .. } => format!(
            "{} starves: {} of its threads' time in {api}{}, while {} is busy for {} of its own; {saves}.",
            group.label,
            percent(*of_lifetime),
            cause(report, finding),
            thread(report, *producer),
            percent(*producer_busy),
        ),
        FindingKind::ManyTinyCalls { calls, mean_ns, of_lifetime, .. } => format!(
            "{} calls of {api} of {} each are {} of the time of {}; {saves}.",
            count(*calls),
            elapsed(mean_ns.round() as u64),
            percent(*of_lifetime),
            group.label,
        ),
        FindingKind::SubGroups { parts, .. } => {
            let part = |part: &SubGroupSummary| {
                let place = part
                    .api
                    .map_or_else(|| "its own code".to_owned(), |at| self::api(report, Some(at)));
                format!("{} mostly in {place} ({})", part.threads, percent(part.share))
            };
            let parts: Vec<String> = parts.iter().map(part).collect();
            format!("{} do different things: {}.", the_threads(&group.label), parts.join(", "))
        }
    }
}

/// What the longest waits are for, where, and who holds it meanwhile or ends them, doing what.
fn cause(report: &Report, finding: &Finding) -> String {
    let Some(row) = causes::longest(report, finding.group, finding.api) else {
        return String::new();
    };
    let mut words = format!(", {} of it", elapsed(row.wait_ns.0));
    for (before, what) in [
        (" for ", causes::object(report, row)),
        (" at ", causes::site(report, row.process, row.site)),
    ] {
        if !what.is_empty() {
            words += &format!("{before}{what}");
        }
    }
    if let Some(holder) = row.holders.first() {
        words += &format!(", held by {}", causes::party(report, holder));
    } else if let Some(waker) = row.wakers.first() {
        words += &format!(", ended by {}", causes::party(report, waker));
    }
    words
}

/// The command that shows more.
pub(crate) fn command(report: &Report, finding: &Finding) -> String {
    let group = format!("--group {}", quoted(&globset::escape(&group(report, finding).label)));
    let api = finding.api.map(|api| &report.analysis.apis[api as usize].symbol);
    let api =
        api.map_or_else(String::new, |api| format!(" --api {}", quoted(&globset::escape(api))));
    match finding.kind {
        FindingKind::SlowThreads { .. } | FindingKind::BarrierStraggler { .. } => {
            format!("chase-report tree {group}")
        }
        FindingKind::SubGroups { .. } => format!("chase-report threads {group}"),
        FindingKind::SlowFirstCall { .. } | FindingKind::RareSlowCalls { .. } => {
            format!("chase-report tail {group}{api}")
        }
        FindingKind::SerialisingLock { .. } | FindingKind::StarvedConsumers { .. } => {
            format!("chase-report waits {group}")
        }
        FindingKind::ManyTinyCalls { .. } => format!("chase-report tree {group}{api}"),
    }
}

/// All threads of a group, at the start of a sentence. Some groups are called after being threads.
fn the_threads(label: &str) -> String {
    if label.starts_with("threads of ") {
        format!("The {label}")
    } else {
        format!("The threads of {label}")
    }
}

fn group<'r>(report: &'r Report, finding: &Finding) -> &'r GroupRow {
    &report.groups().rows[finding.group as usize]
}

fn api(report: &Report, api: Option<u32>) -> String {
    let Some(number) = api else { return String::new() };
    let row = &report.analysis.apis[number as usize];
    format!("{} ({})", report.names.short(number as usize), report.names.object(row.object))
}

/// A thread by its id, and its name if that says more than its group's.
pub(crate) fn thread(report: &Report, number: u32) -> String {
    let row = &report.analysis.threads[number as usize];
    match &*row.name {
        "" => format!("thread {}", row.tid),
        name => format!("thread {} ({name})", row.tid),
    }
}

/// Who is concerned, and what they are.
fn who(report: &Report, finding: &Finding, group: &GroupRow) -> (String, &'static str) {
    let label = &group.label;
    match *finding.threads {
        [] => (label.clone(), "is"),
        [_] if group.threads == 1 => (label.clone(), "is"),
        [one] => (format!("{label}: {}", thread(report, one)), "is"),
        _ => (format!("{label}: {} of {} threads", finding.threads.len(), group.threads), "are"),
    }
}

fn saves(finding: &Finding) -> String {
    let Ns(ns) = finding.saves_ns;
    format!("saves up to {} ({})", elapsed(ns), percent(finding.share))
}

/// For a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+.:/@,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::{quoted, the_threads};

    #[test]
    fn threads_are_not_threads_of_threads() {
        assert_eq!(the_threads("serve"), "The threads of serve");
        assert_eq!(the_threads("threads of app"), "The threads of app");
        let found = "threads of app not seen to start";
        assert_eq!(the_threads(found), "The threads of app not seen to start");
    }

    #[test]
    fn shells_take_it_as_it_is() {
        assert_eq!(quoted("app+0x1a40"), "app+0x1a40");
        assert_eq!(quoted("it's a $HOME"), r"'it'\''s a $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
