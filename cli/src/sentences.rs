//! Findings in words, and the commands that show more of them.

mod again;
mod called_back;
mod command;
mod ends;
mod exceptions;
mod locks;
mod number;
mod processors;
mod stages;
mod starts;
mod uses;
mod why;

use std::fmt;

use chase_analyzer::{
    Blame, Finding, FindingKind, GroupRow, Ns, PartyKind, SubGroupSummary, ThreadOrigin,
};

use crate::causes;
use crate::event_loops;
use crate::report::Report;
use crate::terminal::{count, elapsed, percent, plural};
use crate::uneven;
pub(crate) use called_back::function as called_back;
pub(crate) use command::{command, view_command};
use number::{agreeing, is_plural};
pub(crate) use starts::started_at;

/// What stands for code outside of library calls.
fn own_code(report: &Report) -> &'static str {
    match report.analysis.only_counts() {
        true => "code outside of timed calls",
        false => "its own code",
    }
}

/// A finding in words. The sentence is its parts one after the other.
pub(crate) struct Sentence {
    /// What is the matter.
    pub(crate) claim: String,
    /// What that rests on, with the punctuation before it.
    pub(crate) evidence: String,
    /// What would be saved without it, where that is known.
    pub(crate) gain: Option<String>,
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claim, evidence, gain } = self;
        match gain {
            Some(gain) => write!(f, "{claim}{evidence}; {gain}."),
            None => write!(f, "{claim}{evidence}."),
        }
    }
}

/// What was found, in a sentence.
pub(crate) fn sentence(report: &Report, finding: &Finding) -> Sentence {
    let (claim, evidence) = claim_and_evidence(report, finding);
    let gain = match finding.kind {
        FindingKind::TooManyThreads { .. }
        | FindingKind::Polling { .. }
        | FindingKind::IdleTimer { .. }
        | FindingKind::Spinning { .. }
        | FindingKind::EventLoopHeldUp { .. }
        | FindingKind::SubGroups { .. } => None,
        _ => Some(saves(finding, &evidence)),
    };
    let claim = agreeing(claim, &group(report, finding).label);
    Sentence { claim, evidence, gain }
}

fn claim_and_evidence(report: &Report, finding: &Finding) -> (String, String) {
    let group = group(report, finding);
    let (who, verb) = who(report, finding, group);
    let api = api(report, finding.api);
    let own = finding.api.is_none();
    let calls_back = called_back::function(report, finding);
    let place = match &calls_back {
        Some(function) => format!("in {function}, which {api} calls back"),
        None if own => format!("in {}", own_code(report)),
        None => format!("in {api}"),
    };
    let runs = calls_back.map_or_else(String::new, |function| {
        format!(", most of it to run {function}, called back")
    });
    match &finding.kind {
        FindingKind::SlowThreads { useful_ns, median_ns, as_rates, why, .. } => {
            let rate = if *as_rates { " (at the rate of its lifetime)" } else { "" };
            (
                format!("{who} {verb} slower than the others"),
                format!(
                    ": {} {place}, the median thread {}{rate}{}{}{}",
                    elapsed(useful_ns.0),
                    elapsed(median_ns.0),
                    why::in_words(report, finding, *why),
                    why::elsewhere(finding, *useful_ns, *median_ns),
                    ends::joined(report, finding),
                ),
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
            (
                format!(
                    "The first call of {api}{} takes {} in {who}",
                    at(report, finding),
                    elapsed(first_ns.0),
                ),
                format!(
                    "{inside}{runs}, later ones {}{}",
                    elapsed(median_ns.0),
                    mostly(report, finding),
                ),
            )
        }
        FindingKind::RareSlowCalls { calls, slow_calls, slow_ns, median_ns, .. } => (
            format!(
                "{} of {} calls of {api} in {} {} {}{}{}",
                count(*slow_calls),
                count(*calls),
                group.label,
                take(*slow_calls),
                elapsed(slow_ns.0),
                if *slow_calls == 1 { "" } else { " together" },
                mostly_at(report, finding),
            ),
            format!("{runs}, the usual one {}{}", elapsed(median_ns.0), mostly(report, finding)),
        ),
        FindingKind::SerialisingLock { all_wait_ns, of_lifetime, inside, others, .. } => {
            let inside = inside.map_or_else(String::new, |inside| {
                format!(", called in {},", self::api(report, Some(inside)))
            });
            (
                format!("A lock serialises {}", group.label),
                format!(
                    ": {api}{inside} takes {} of the threads' time, {} together{}{}",
                    percent(*of_lifetime),
                    elapsed(all_wait_ns.0),
                    cause(report, finding, Some(*all_wait_ns)),
                    too(report, others),
                ),
            )
        }
        FindingKind::BarrierStraggler { useful_ns, median_ns, all_wait_ns, why, .. } => (
            format!("{} wait at a barrier for {who}", the_threads(&group.label)),
            format!(
                ": {} {place}, the median thread {}{}{}; they wait {} together{}",
                elapsed(useful_ns.0),
                elapsed(median_ns.0),
                why::in_words(report, finding, *why),
                why::elsewhere(finding, *useful_ns, *median_ns),
                elapsed(all_wait_ns.0),
                finding.blame.as_ref().map_or_else(String::new, |blame| for_what(report, blame)),
            ),
        ),
        FindingKind::StarvedConsumers { of_lifetime, producer, producer_busy, .. } => (
            format!("{} is kept waiting", group.label),
            format!(
                ": {} of its threads' time in {api}{}, while {} of {} is busy for {} of its own",
                percent(*of_lifetime),
                cause(report, finding, None),
                thread(report, *producer),
                label_of(report, *producer),
                percent(*producer_busy),
            ),
        ),
        FindingKind::ManyTinyCalls { .. } => uses::tiny_calls(report, finding),
        FindingKind::StarvedWriter { all_wait_ns, of_lifetime, .. } => (
            format!("{} starves", group.label),
            format!(
                ": readers leave it no room for {} of its time, {} together{}",
                percent(*of_lifetime),
                elapsed(all_wait_ns.0),
                cause(report, finding, Some(*all_wait_ns)),
            ),
        ),
        FindingKind::AllocatorContention { all_wait_ns, of_lifetime, .. } => (
            format!("{} wait for memory", the_threads(&group.label)),
            format!(
                ": a lock inside {api} takes {} of their time, {} together{}",
                percent(*of_lifetime),
                elapsed(all_wait_ns.0),
                cause(report, finding, Some(*all_wait_ns)),
            ),
        ),
        FindingKind::InterpreterLock { all_wait_ns, of_lifetime, others, .. }
        | FindingKind::MemoryMapLock { all_wait_ns, of_lifetime, others, .. } => {
            locks::of_process(report, finding, (*of_lifetime, *all_wait_ns), others)
        }
        FindingKind::LimitingStage { .. } => stages::limiting(report, finding),
        FindingKind::SleepingStage { .. } => again::sleeping(report, finding),
        FindingKind::MutualWaits { all_wait_ns, of_lifetime, of_threads, .. } => (
            format!(
                "{} of {} wait for each other",
                plural(*of_threads as u64, "thread"),
                group.label,
            ),
            format!(
                " for {} of the time, {} together, longest in {api}{}",
                percent(*of_lifetime),
                elapsed(all_wait_ns.0),
                cause(report, finding, Some(*all_wait_ns)),
            ),
        ),
        FindingKind::LateAtBarrier { all_wait_ns, .. } => (
            format!(
                "{} wait at a barrier for {who}, which is the last one there",
                the_threads(&group.label),
            ),
            format!(
                ": {} together{}",
                elapsed(all_wait_ns.0),
                cause(report, finding, Some(*all_wait_ns))
            ),
        ),
        FindingKind::LastToEnd { lifetime_ns, median_ns, .. } => (
            format!("{who} ends last"),
            format!(
                ": it lives {}, the median of the others {}, and is waited for{}{}",
                elapsed(lifetime_ns.0),
                elapsed(median_ns.0),
                ends::awaited(report, finding),
                ends::meanwhile(report, finding),
            ),
        ),
        FindingKind::TooManyThreads { .. } => processors::too_many_threads(finding),
        FindingKind::UsedUpQuota { .. } => processors::used_up_quota(finding),
        FindingKind::SmallTransfers { .. } => uses::small_transfers(report, finding),
        FindingKind::LookedUpAgain { .. } => again::looked_up(report, finding),
        FindingKind::MadeAgain { .. } => again::made(report, finding),
        FindingKind::Syncing { .. } => uses::syncing(report, finding),
        FindingKind::NameResolution { calls, all_ns } => (
            format!("{} looks up names of hosts", group.label),
            format!(
                ": {} of {api}{} {} {}{}",
                plural(*calls, "call"),
                calls_at(report, finding),
                take(*calls),
                elapsed(all_ns.0),
                mostly(report, finding),
            ),
        ),
        FindingKind::SlowPeer { waits, of_lifetime, .. } => (
            format!("{} waits for the other end of a connection", group.label),
            format!(
                " for {} of its time, {}{}",
                percent(*of_lifetime),
                plural(*waits, "wait"),
                cause(report, finding, None),
            ),
        ),
        FindingKind::DelayedAcknowledgements { waits, median_ns, all_ns, sends } => (
            format!("{} waits for acknowledgements that the other end delays", group.label),
            format!(
                ": {} of about {}, {} together{}. {} {} pieces, by {api}; one that follows another is held back until that is acknowledged (Nagle's algorithm). To send them in one call, or to set TCP_NODELAY, avoids that",
                plural(*waits, "wait"),
                elapsed(median_ns.0),
                elapsed(all_ns.0),
                finding.blame.as_ref().map_or_else(String::new, |blame| for_what(report, blame)),
                if is_plural(&group.label) { "They send" } else { "It sends" },
                count(*sends),
            ),
        ),
        FindingKind::Polling { waits, mean_ns, per_second } => (
            format!("{} polls", group.label),
            format!(
                ": {} for {} at a time, {per_second:.0} times a second ({} in all), in {api}{}. To be told would cost nothing",
                if is_plural(&group.label) { "they wait" } else { "it waits" },
                elapsed(mean_ns.round() as u64),
                count(*waits),
                at(report, finding),
            ),
        ),
        FindingKind::IdleTimer { .. } => again::idle_timer(report, finding),
        FindingKind::Spinning { .. } => uses::spinning(report, finding),
        FindingKind::Exceptions { .. } => exceptions::in_words(report, finding),
        FindingKind::EventLoopHeldUp { .. } => event_loops::in_words(report, finding, &who),
        FindingKind::UnevenWork { .. } => uneven::in_words(report, finding, &who),
        FindingKind::MappingChurn { .. } => uses::mapping_churn(report, finding),
        FindingKind::ShortProcesses { .. } => uses::short_processes(report, finding),
        FindingKind::SlowStart { .. } => starts::slow_library(report, finding),
        FindingKind::ShortThreads { .. } => starts::short_threads(report, finding),
        FindingKind::SlowLoading { calls, all_ns, library } => {
            let library = library.map_or_else(String::new, |object| {
                format!(", most of it to start {}", report.names.object(object))
            });
            (
                format!("{} loads libraries", group.label),
                format!(
                    ": {} of {api}{} {} {}{}{library}",
                    plural(*calls, "call"),
                    calls_at(report, finding),
                    take(*calls),
                    elapsed(all_ns.0),
                    mostly(report, finding),
                ),
            )
        }
        FindingKind::SubGroups { parts, .. } => {
            let part = |part: &SubGroupSummary| {
                let place = part
                    .api
                    .map_or_else(|| own_code(report).to_owned(), |at| self::api(report, Some(at)));
                format!("{} mostly in {place} ({})", part.threads, percent(part.share))
            };
            let parts: Vec<String> = parts.iter().map(part).collect();
            (
                format!("{} do different things", the_threads(&group.label)),
                format!(": {}", parts.join(", ")),
            )
        }
    }
}

/// What most of the time of the function's long calls went to: `, mostly for db.example.com`.
fn mostly(report: &Report, finding: &Finding) -> String {
    let api = finding.api.and_then(|api| report.analysis.apis.get(api as usize));
    let text = api.and_then(|api| api.main_text());
    text.map_or_else(String::new, |text| format!(", mostly for {text}"))
}

/// How long all wait, for what, where, and who holds it meanwhile or ends the waits, doing what. A time that was `said` already is not
/// said again.
fn cause(report: &Report, finding: &Finding, said: Option<Ns>) -> String {
    let Some(blame) = &finding.blame else { return String::new() };
    match &*for_what(report, blame) {
        "" => because_of(report, blame),
        what => {
            let time = elapsed(blame.wait_ns.0);
            let all = said.is_some_and(|said| said <= blame.wait_ns || elapsed(said.0) == time);
            let part = if all { "all".to_owned() } else { time };
            format!(", {part} of it{what}{}", because_of(report, blame))
        }
    }
}

/// For what, and where.
fn for_what(report: &Report, blame: &Blame) -> String {
    let mut words = String::new();
    let object = causes::blamed_object(report, blame);
    let site = causes::site(report, blame.process, blame.site);
    let is_said = causes::is_said(report, &object, blame.process, blame.site);
    for (before, what) in [(" for ", object), (" at ", site)] {
        if !what.is_empty() && (before == " for " || !is_said) {
            words += &format!("{before}{what}");
        }
    }
    words
}

/// Because of whom, where that is known.
fn because(report: &Report, finding: &Finding) -> String {
    finding.blame.as_ref().map_or_else(String::new, |blame| because_of(report, blame))
}

fn because_of(report: &Report, blame: &Blame) -> String {
    if let Some(holder) = &blame.holder {
        format!(", held by {}", causes::party(report, holder))
    } else if let Some(waker) = blame.waker.as_ref().filter(|waker| waker.kind != PartyKind::Time) {
        format!(", ended by {}", causes::party(report, waker))
    } else {
        String::new()
    }
}

/// ` at update_stats convoy.c:14`, where that is known.
fn at(report: &Report, finding: &Finding) -> String {
    let blame = finding.blame.as_ref();
    let site = blame.map(|blame| causes::site(report, blame.process, blame.site));
    let site = site.filter(|site| !site.is_empty());
    site.map_or_else(String::new, |site| format!(" at {site}"))
}

/// The same where some of the calls may be made elsewhere.
fn mostly_at(report: &Report, finding: &Finding) -> String {
    match at(report, finding) {
        nowhere if nowhere.is_empty() => nowhere,
        place => format!(" (mostly{place})"),
    }
}

/// The place of the calls, which some of them may not be made at.
fn calls_at(report: &Report, finding: &Finding) -> String {
    let is_most = finding.blame.as_ref().is_some_and(|blame| blame.elsewhere);
    if is_most { mostly_at(report, finding) } else { at(report, finding) }
}

/// What calls do that take time.
fn take(calls: u64) -> &'static str {
    if calls == 1 { "takes" } else { "take" }
}

/// All threads of a group, at the start of a sentence. Some groups are called after being threads.
fn the_threads(label: &str) -> String {
    if label.starts_with("threads of ") {
        format!("The {label}")
    } else {
        format!("The threads of {label}")
    }
}

/// Other groups that wait for the same lock.
fn too(report: &Report, others: &[u32]) -> String {
    let label = |&group: &u32| report.groups().rows[group as usize].label.clone();
    match others {
        [] => String::new(),
        [one] => format!("; {}, too", agreeing(label(one) + " waits for it", &label(one))),
        _ => {
            let labels: Vec<String> = others.iter().map(label).collect();
            format!("; {} wait for it, too", labels.join(" and "))
        }
    }
}

fn group<'r>(report: &'r Report, finding: &Finding) -> &'r GroupRow {
    &report.groups().rows[finding.group as usize]
}

fn api(report: &Report, api: Option<u32>) -> String {
    let Some(number) = api else { return own_code(report).to_owned() };
    let row = &report.analysis.apis[number as usize];
    format!("{} ({})", report.names.short(number as usize), report.names.object(row.object))
}

/// A thread by its id, and its name; the main thread of a process that has told its role, by that.
fn label_of(report: &Report, thread: u32) -> &str {
    let groups = report.groups();
    let group = groups.of_thread.get(thread as usize).and_then(|&at| groups.rows.get(at as usize));
    group.map_or("", |group| &group.label)
}

pub(crate) fn thread(report: &Report, number: u32) -> String {
    let row = &report.analysis.threads[number as usize];
    let process = report.analysis.processes.get(row.process);
    let role = process.filter(|_| row.origin == ThreadOrigin::Main);
    let role = role.and_then(|process| process.role.as_deref());
    match role.unwrap_or(&row.name) {
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
        [one] => (format!("{label}: {}", ends::thread_or_process(report, one)), "is"),
        _ => (format!("{label}: {} of {} threads", finding.threads.len(), group.threads), "are"),
    }
}

/// What it would save; a time with which the evidence ends is not said again.
fn saves(finding: &Finding, evidence: &str) -> String {
    let Ns(ns) = finding.saves_ns;
    let share = percent(finding.share);
    let saves = match evidence.ends_with(&format!(" {}", elapsed(ns))) {
        true => format!("saves up to that ({share})"),
        false => format!("saves up to {} ({share})", elapsed(ns)),
    };
    match finding.run_saves_ns {
        // (A run that is ended from outside lasts until then.)
        Some(Ns(0)) => format!("{saves} for the thread that gains most; the run lasts as long"),
        // What differs by less is not told apart.
        Some(Ns(of_run)) if of_run < ns - ns / 10 => {
            format!(
                "{saves} for the thread that gains most, and up to {} for the run",
                elapsed(of_run)
            )
        }
        _ => saves,
    }
}

#[cfg(test)]
mod tests {
    use super::the_threads;

    #[test]
    fn threads_are_not_threads_of_threads() {
        assert_eq!(the_threads("serve"), "The threads of serve");
        assert_eq!(the_threads("threads of app"), "The threads of app");
        let found = "threads of app not seen to start";
        assert_eq!(the_threads(found), "The threads of app not seen to start");
    }
}
