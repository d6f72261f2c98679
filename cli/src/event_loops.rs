//! Event loops that are held up, in words.

use std::collections::{BTreeMap, HashMap};

use chase_analyzer::{
    EventLoop, Finding, FindingKind, HeldUp, PathWait, Purpose, RanLate, WaitInTurns,
};

use crate::causes;
use crate::places::AddressKind;
use crate::report::{Report, file_name, fraction};
use crate::terminal::{count, elapsed, percent, plural};

/// What is no part worth a word.
const SMALL: f64 = 0.05;

/// A function that ran while a loop was held up.
pub(crate) struct RanFunction {
    /// Its name, with that of the file that it is in.
    pub(crate) name: String,
    /// The line in it that ran most often, or calls what was inlined there; empty if it is not known.
    pub(crate) line: String,
    /// Samples in it.
    pub(crate) samples: u64,
    /// The same as a share of all samples late in long turns.
    pub(crate) share: f64,
}

/// What ran late in long turns, most first.
pub(crate) fn ran(report: &Report, one: &EventLoop) -> Vec<RanFunction> {
    functions(report, one.process, &one.ran)
}

/// The functions that samples are in, most first.
pub(crate) fn functions(report: &Report, process: usize, ran: &[RanLate]) -> Vec<RanFunction> {
    let mut sums: HashMap<String, BTreeMap<String, u64>> = HashMap::new();
    let all: u64 = ran.iter().map(|row| row.samples).sum();
    for row in ran {
        let files = report.files();
        let place = report.places.find(files, process, &row.address, AddressKind::Function);
        // Of files that were mapped without the dynamic linker, only the kernel told.
        let recorded = row.address.object.map(|object| report.names.object(object));
        let object = recorded.or(place.object.as_deref()).map_or("", file_name);
        let function = place.function.as_deref().map(chase_symbols::shorten);
        let name = match (function, place.function_or_start(object)) {
            (Some(function), _) if object.is_empty() => function.into_owned(),
            (Some(function), _) => format!("{function} ({object})"),
            (None, Some(start)) => start,
            (None, None) if object.is_empty() => "generated code".to_owned(),
            (None, None) => object.to_owned(),
        };
        let line = match (&place.file, place.line) {
            (Some(file), Some(line)) => format!("{}:{line}", file_name(file)),
            _ => String::new(),
        };
        *sums.entry(name).or_default().entry(line).or_default() += row.samples;
    }
    let mut ran: Vec<RanFunction> = sums
        .into_iter()
        .map(|(name, lines)| {
            let samples = lines.values().sum();
            // Of some samples no line may be known.
            let known = lines.into_iter().filter(|(line, _)| !line.is_empty());
            let most = known.max_by_key(|&(_, samples)| samples);
            let line = most.map_or_else(String::new, |(line, _)| line);
            RanFunction { name, line, samples, share: samples as f64 / all.max(1) as f64 }
        })
        .collect();
    ran.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.name.cmp(&b.name)));
    ran
}

/// The wait in which most of the time passed that the loop did not run: `usleep at serve server.c:14`.
pub(crate) fn wait(report: &Report, row: &WaitInTurns) -> String {
    waits_at(report, &row.wait)
}

/// The same for any wait.
pub(crate) fn waits_at(report: &Report, wait: &PathWait) -> String {
    let mut words =
        wait.api.map_or("no library call", |api| report.names.short(api as usize)).to_owned();
    let object = causes::object(report, wait.process, &wait.object);
    // (That a sleep is in a library's function that sleeps tells nothing.)
    let is_said = causes::is_said(report, &object, wait.process, wait.site)
        || wait.purpose == Purpose::Sleep && causes::is_of_library(report, wait.process, wait.site);
    for (before, what) in [
        (" for ", causes::brief(&object).to_owned()),
        (" at ", causes::site(report, wait.process, wait.site)),
    ] {
        if !what.is_empty() && (before == " for " || !is_said) {
            words += &format!("{before}{what}");
        }
    }
    words
}

/// What held a loop up: `it runs for 98 % of that, most often luaV_execute (redis-server) (41 %)`.
fn doing(report: &Report, one: &EventLoop) -> String {
    let own_ns = one.held_up_ns(HeldUp::own_ns);
    let blocked = fraction(one.held_up_ns(|turn| turn.blocked_ns), own_ns.as_f64());
    let mut words = Vec::new();
    if blocked < 1.0 - SMALL {
        let what = ran(report, one);
        let what = what.first().map_or_else(String::new, |ran| {
            format!(", most often {} ({})", ran.name, percent(ran.share))
        });
        words.push(format!("it runs for {} of that{what}", percent(1.0 - blocked)));
    }
    if blocked > SMALL {
        let what = one.waits.first();
        let what = what.map_or_else(String::new, |row| {
            format!(", longest in {} ({})", wait(report, row), elapsed(row.ns.0))
        });
        words.push(format!("it waits for {} of that{what}", percent(blocked)));
    }
    let preempted_ns = one.held_up_ns(|turn| turn.preempted_ns);
    if fraction(preempted_ns, own_ns.as_f64()) > SMALL {
        words.push(format!("others have the processor for {} more", elapsed(preempted_ns.0)));
    }
    if let Some(client) = one.clients.first() {
        let label = &report.groups().rows[client.group as usize].label;
        let label = label.strip_prefix("threads of ").unwrap_or(label);
        let threads = plural(client.threads as u64, "thread");
        let wait = if client.threads == 1 { "waits" } else { "wait" };
        words.push(format!("{threads} of {label} {wait} for it, {}", elapsed(client.wait_ns.0)));
    }
    words.join(", and ")
}

/// The claim of a finding about a loop, and what it rests on.
pub(crate) fn in_words(report: &Report, finding: &Finding, who: &str) -> (String, String) {
    let FindingKind::EventLoopHeldUp {
        turns,
        held_up,
        usual_ns,
        longest_ns,
        longest_at_ns,
        all_ns,
        ready,
        event_loop,
        ..
    } = finding.kind
    else {
        return (String::new(), String::new());
    };
    let one = report.watched().event_loops.get(event_loop as usize);
    let doing = one.map_or_else(String::new, |one| format!("; {}", doing(report, one)));
    let api = finding.api.map_or("its calls", |api| report.names.short(api as usize));
    (
        format!("The event loop of {who} is held up at times"),
        format!(
            ": {} of {} between waits in {api} {}, half of all less than {}, while up to {} ready{doing}; the longest begins {} after the start",
            count(held_up),
            plural(turns, "turn"),
            match held_up {
                1 => format!("takes {}", elapsed(longest_ns.0)),
                _ =>
                    format!("take up to {}, {} together", elapsed(longest_ns.0), elapsed(all_ns.0)),
            },
            elapsed(usual_ns.0),
            match ready {
                1 => "1 event is".to_owned(),
                ready => format!("{} events are", count(u64::from(ready))),
            },
            elapsed(longest_at_ns.0),
        ),
    )
}
