//! One file per view. Each can show itself to people and to programs.

mod affected;
mod apis;
mod blocked;
mod brief;
mod charts;
pub(crate) mod compare;
mod components;
mod event_loops;
mod export;
mod files;
mod filters;
mod findings;
mod graph;
mod groups;
mod hot;
mod html;
mod libs;
mod narrate;
mod not_seen;
mod path;
mod processes;
mod sampled;
mod sites;
mod sorting;
mod summary;
mod syscalls;
mod tail;
mod threads;
mod tree;
mod waiting;
mod waits;
mod what_if;

pub(crate) use apis::cause;

use chase_analyzer::{Measures, Ns};
use unicode_width::UnicodeWidthStr;

use crate::args::{Cli, View};
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::sentences::view_command;
use crate::terminal::{self, Terminal};

/// Rows shown to people who don't say how many they want.
const DEFAULT_TOP: usize = 30;

/// What a view is made of.
trait Show {
    /// Its name on the command line and in JSON.
    const NAME: &'static str;

    /// For people, at most `top` rows of a table.
    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String>;

    /// For programs, at most `top` rows of a table. CSV gets the first.
    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>>;
}

/// Everything that the command line asks for, as text.
pub(crate) fn show(cli: &Cli, report: &Report, terminal: Terminal) -> anyhow::Result<String> {
    filters::check(cli, report)?;
    match &cli.view {
        None => render(&summary::Summary, cli, report, terminal),
        Some(View::Libs { lib, sort, .. }) => {
            render(&libs::Libs { lib, sort: *sort }, cli, report, terminal)
        }
        Some(View::Apis { lib, api, sort, .. }) => {
            render(&apis::Apis { lib, api, sort: *sort }, cli, report, terminal)
        }
        Some(View::Hot { lib, .. }) => render(&hot::Hot { lib }, cli, report, terminal),
        Some(View::Threads { group, only_groups: true, .. }) => {
            render(&groups::OnlyGroups { group }, cli, report, terminal)
        }
        Some(View::Threads { thread, group, sort, .. }) => {
            render(&threads::Threads { thread, group, sort: *sort }, cli, report, terminal)
        }
        Some(View::Tail { lib, api, group, .. }) => {
            render(&tail::Tail { lib, api, group }, cli, report, terminal)
        }
        Some(View::Waits { lib, api, group, .. }) => {
            render(&waits::Waits { lib, api, group }, cli, report, terminal)
        }
        Some(View::Findings { .. }) => render(&findings::Findings, cli, report, terminal),
        Some(View::Graph { format: Some(format), output, .. }) => {
            graph::write(report, *format, output.as_deref())
        }
        Some(View::Graph { .. }) => render(&graph::Waits, cli, report, terminal),
        Some(View::Path { without, span, .. }) if without.without.is_empty() => {
            render(&path::Path { span: *span }, cli, report, terminal)
        }
        Some(View::Path { without, .. }) => {
            render(&what_if::Shorter { pieces: &without.without }, cli, report, terminal)
        }
        Some(View::Tree { lib, api, thread, group, .. }) => {
            render(&tree::Tree { lib, api, thread, group }, cli, report, terminal)
        }
        Some(View::Syscalls { lib, api, thread, by, .. }) => {
            render(&syscalls::Syscalls::new(report, lib, api, thread, *by)?, cli, report, terminal)
        }
        Some(View::Narrate { thread, span, .. }) => {
            let all = cli.output.top.is_none().then_some(usize::MAX);
            let view = narrate::Narrate { thread, span: *span };
            match all.filter(|_| !cli.output.json && !cli.output.csv) {
                Some(all) => view.text(report, terminal, all),
                None => render(&view, cli, report, terminal),
            }
        }
        Some(View::Components { graph: Some(format), output, .. }) => {
            components::Parts::from_report(report)?.graph(report, *format, output.as_deref())
        }
        Some(View::Components { .. }) => {
            render(&components::Parts::from_report(report)?, cli, report, terminal)
        }
        Some(View::NotSeen { .. }) => render(&not_seen::Full, cli, report, terminal),
        Some(View::Brief { .. }) => brief::text(report, terminal),
        // These have recordings of their own, or none.
        Some(View::Generate { .. } | View::Fold { .. } | View::Top(_) | View::Compare(_)) => {
            anyhow::bail!("that shows no single run")
        }
        Some(View::Html { recordings, output, force }) => {
            html::may_write(output, *force)?;
            render(&html::write(cli, report, recordings, output)?, cli, report, terminal)
        }
        Some(View::Export { format, output, .. }) => {
            export::write(report, *format, output.as_deref())
        }
        Some(View::Charts { output, .. }) => {
            render(&charts::draw(report, output, cli.output.top)?, cli, report, terminal)
        }
    }
}

fn render<S: Show>(
    view: &S,
    cli: &Cli,
    report: &Report,
    terminal: Terminal,
) -> anyhow::Result<String> {
    let top = |default| match cli.output.top {
        Some(0) => usize::MAX,
        Some(top) => top,
        None => default,
    };
    if cli.output.json {
        let tables = view.tables(report, top(usize::MAX))?;
        return Ok(terminal::clean_json(machine::json(report, S::NAME, tables)?));
    }
    if cli.output.csv {
        let tables = view.tables(report, top(usize::MAX))?;
        return tables.first().map_or_else(|| Ok(String::new()), machine::csv);
    }
    view.text(report, terminal, top(DEFAULT_TOP))
}

/// A duration of a single call; empty where none was timed.
fn of_call(time: Option<Ns>) -> String {
    time.map_or_else(String::new, |time| terminal::duration(time.0))
}

/// The longest call, if any was timed.
fn longest_of(measures: &Measures) -> String {
    measures.max_ns.map_or_else(String::new, |timed| longest(timed, measures.samples_only()))
}

/// The longest call; of calls that were not all timed, one at least as long as any that was.
fn longest(timed: Ns, sampled: bool) -> String {
    let mark = if sampled { "≥" } else { "" };
    format!("{mark}{}", terminal::duration(timed.0))
}

/// A figure that rests on estimates is marked.
fn marked(measures: &Measures, figure: String) -> String {
    if measures.estimated && !figure.is_empty() { format!("~{figure}") } else { figure }
}

/// Self time, and how far off an estimate of it may be.
fn self_time(measures: &Measures) -> String {
    if measures.is_untimed() {
        return String::new();
    }
    let figure = with_error(measures, measures.self_ns);
    let (found, error) = (measures.self_ns.0, error_of(measures));
    match error as f64 / found.max(1) as f64 {
        share if share >= 0.0005 && error < found => {
            format!("{figure} ±{}", terminal::percent(share))
        }
        _ => figure,
    }
}

/// Total time. It is as far off as the self time is that it contains.
fn total_time(measures: &Measures) -> String {
    if measures.is_untimed() {
        return String::new();
    }
    with_error(measures, measures.total_ns)
}

fn error_of(measures: &Measures) -> u64 {
    measures.self_error_ns().unwrap_or_default().0
}

/// A time that is as far off as the self time; where that is as much as itself, only how much it may be at most.
fn with_error(measures: &Measures, found: Ns) -> String {
    let error = error_of(measures);
    if error > 0 && error >= found.0 {
        return format!("≤{}", terminal::elapsed(found.0.saturating_add(error)));
    }
    marked(measures, terminal::elapsed(found.0))
}

/// Self time as a share of all, with what it may be off by in points, if that is worth a word; where that is as much as
/// itself, how much it may be at most.
fn self_share(report: &Report, measures: &Measures) -> String {
    const WORTH: f64 = 0.05;
    let (found, error) = (measures.self_ns, Ns(error_of(measures)));
    if measures.is_untimed() {
        return String::new();
    }
    let points = report.share(error);
    if points < WORTH {
        return at_least(report, measures, marked(measures, share(report, found)));
    }
    let most = Ns(found.0.saturating_add(error.0));
    if error >= found {
        return format!("≤{}", terminal::percent(report.share(most).min(1.0)));
    }
    format!("{} ±{:.0}", marked(measures, share(report, found)), points * 100.0)
}

/// The figure of a library of whose calls some were only counted.
fn at_least(report: &Report, measures: &Measures, figure: String) -> String {
    let is_part = report.analysis.only_counts() && measures.untimed > 0 && !figure.is_empty();
    if is_part { format!("≥{figure}") } else { figure }
}

/// Explanation of what times are of where calls were only counted.
fn counted(report: &Report) -> Option<(&'static str, &'static str)> {
    report.analysis.only_counts().then_some(COUNTED)
}

/// Explanation of the marks of estimates and of possible errors, if there are any.
fn estimates(report: &Report) -> Option<(&'static str, &'static str)> {
    let any =
        |is: fn(&Measures) -> bool| report.analysis.libraries.iter().any(|row| is(&row.measures));
    match report.analysis.totals.calls_estimated {
        true => Some(ESTIMATE_OF_CALLS),
        false if any(|measures| measures.estimated) => Some(ESTIMATE),
        false => any(|measures| measures.self_error_ns().is_some()).then_some(CLOCK),
    }
}

/// A share of the time; empty where there is none to speak of.
fn share(report: &Report, time: Ns) -> String {
    if time.0 == 0 { String::new() } else { terminal::percent(report.share(time)) }
}

/// Number of calls; empty for what is not called.
fn calls(measures: &Measures) -> String {
    match measures.calls {
        0 => String::new(),
        calls => approximate(measures.calls_estimated, terminal::count(calls)),
    }
}

/// A number of calls that is an estimate is marked.
fn approximate(estimated: bool, calls: String) -> String {
    if estimated { format!("~{calls}") } else { calls }
}

/// Says how many rows were left out, if any.
fn left_out(all: usize, top: usize, what: &str) -> String {
    match all.saturating_sub(top) {
        0 => String::new(),
        more => format!("… and {more} more {what}: --top 0 shows all\n"),
    }
}

/// Names the view that shows all rows, if some were left out.
fn more(report: &Report, all: usize, top: usize, view: &str) -> String {
    match all.saturating_sub(top) {
        0 => String::new(),
        more => format!("… and {more} more: {}\n", view_command(report, view)),
    }
}

/// Explanations below a table: a term and its meaning each, in lines that fit the terminal.
pub(crate) fn legend(terminal: Terminal, entries: &[(&str, &str)]) -> String {
    let indent = entries.iter().map(|(term, _)| term.chars().count()).max().unwrap_or(0) + 2;
    let width = terminal.width.unwrap_or(100).clamp(indent + 30, 100);
    let mut out = String::from("\n");
    for (term, meaning) in entries {
        let text = format!("{term:indent$}{}", wrap(words(meaning), indent, indent, width));
        for line in text.lines() {
            out.push_str(&terminal.paint(terminal::Look::Faint, line));
            out.push('\n');
        }
    }
    out
}

/// The words of a text; a number has its unit with it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    const UNITS: [&str; 10] = ["%", "ns", "µs", "ms", "s", "B", "kB", "MB", "GB", "points"];
    let is_number = |word: &str| {
        let word = word.trim_start_matches(['(', '~', '±', '≤', '≥', '<', '>', '×']);
        word.ends_with(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_ascii_digit() || c == '.')
    };
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut end = text.find(' ').unwrap_or(text.len());
        if let Some(next) = text.get(end + 1..).filter(|_| is_number(&text[..end])) {
            let len = next.find(' ').unwrap_or(next.len());
            let unit = next[..len].trim_end_matches([',', ';', '.', ':', ')']);
            end += if UNITS.contains(&unit) { 1 + len } else { 0 };
        }
        rest = text.get(end + 1..);
        Some(&text[..end])
    })
}

/// `pieces` with spaces between them, from column `start` on, or line breaks so that they fit
/// `width`; further lines are indented.
fn wrap<'t>(
    pieces: impl Iterator<Item = &'t str>,
    start: usize,
    indent: usize,
    width: usize,
) -> String {
    let mut out = String::new();
    let mut used = start;
    let mut begins = true;
    for piece in pieces {
        let len = piece.width();
        if !begins && used + 1 + len > width {
            out.push_str(&format!("\n{:indent$}", ""));
            (used, begins) = (indent, true);
        }
        if !begins {
            out.push(' ');
            used += 1;
        }
        out.push_str(piece);
        used += len;
        begins = false;
    }
    out
}

/// Explanations that several views need.
const SELF: (&str, &str) =
    ("self", "time in the function itself, without library calls that it makes");
const SELF_SHARE: (&str, &str) = (
    "self",
    "time in the function itself, without library calls that it makes, as a share of application time and all library calls",
);
const TOTAL: (&str, &str) = ("total", "with the library calls made inside");
const PERCENT: (&str, &str) = ("%", "share of application time and all library calls");
const COUNTED: (&str, &str) = (
    "only counted",
    "calls were not timed, but for those of a few functions (pthread_create, dlopen, fork): self, total, wait and p50 are of these alone, with the counted calls made inside, and ≥ is where others of the library are missing in it",
);
const ESTIMATE: (&str, &str) = (
    "~, ±, ≤, ≥",
    "an estimate: of hot, short, even calls only some were timed, each for a block of calls; ± is its 95 % confidence interval, with that of reading the clock, ≤ its end where that is all that is known, ≥ the longest that was timed. Counts are exact. CHASE_TIMING=all times every call",
);
const ESTIMATE_OF_CALLS: (&str, &str) = (
    "~, ±, ≤, ≥",
    "an estimate: of hot, short, even calls only some were timed, each for a block of calls; where the end of a process, or its start as a fork, was not seen, its latest or first calls are missing; ± is its 95 % confidence interval, with that of reading the clock, ≤ its end where that is all that is known, ≥ the longest that was timed. Counts without ~ are exact",
);
const CLOCK: (&str, &str) = (
    "±, ≤",
    "how far off a time may be, with 95 % confidence, and ≤ its end where that is all that is known: reading the clock takes some nanoseconds more in some places than in others, which counts for short calls",
);
const SAMPLED: (&str, &str) = (
    "~, ≥",
    "estimates: only some calls were timed, each for a block of calls; ≥ the longest that was timed. A quantile that too few of them tell is left out. CHASE_TIMING=all times every call",
);
const TIMED: (&str, &str) = (
    "timed",
    "the calls that an estimate rests on; with 95 % confidence, at most 3 in so many of the others took longer than the longest of them",
);
const QUANTILES: (&str, &str) = (
    "p50, p99.9",
    "half, and 99.9 %, of the calls took no longer; service time of single calls, within 6.25 %",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_units() {
        let all = |text| words(text).collect::<Vec<_>>();
        assert_eq!(all("takes 14.1 s (88.2 %), of 3"), ["takes", "14.1 s", "(88.2 %),", "of", "3"]);
        assert_eq!(all("within 6.25 %"), ["within", "6.25 %"]);
        assert_eq!(all("of ns 2 threads "), ["of", "ns", "2", "threads", ""]);
    }

    #[test]
    fn a_time_that_is_as_uncertain_as_long_has_only_a_limit() {
        let of = |self_ns, total_ns, clock_ci95_ns| Measures {
            estimated: true,
            self_ns: Ns(self_ns),
            total_ns: Ns(total_ns),
            clock_ci95_ns: Ns(clock_ci95_ns),
            ..Measures::default()
        };
        let said = |measures: &Measures| (self_time(measures), total_time(measures));
        let words = |own: &str, total: &str| (own.to_owned(), total.to_owned());
        assert_eq!(said(&of(4_000_000, 9_000_000, 0)), words("~4.00 ms", "~9.00 ms"));
        assert_eq!(
            said(&of(4_000_000, 9_000_000, 1_000_000)),
            words("~4.00 ms ±25.0 %", "~9.00 ms")
        );
        // The total is never less than the self time.
        assert_eq!(said(&of(4_000_000, 4_000_000, 6_000_000)), words("≤10.0 ms", "≤10.0 ms"));
    }
}
