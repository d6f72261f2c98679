//! What the figures of a run do not contain, by how much it matters.

use super::affected::affected;
use super::{Show, sampled};
use crate::machine::Rows;
use crate::report::{Report, fraction};
use crate::terminal::{Look, Terminal, clean, elapsed, plural};
use chase_analyzer::recorder::layout::{SKIP_REASONS, SkipReason};
use chase_analyzer::{Image, Skipped};

/// What shares rest on where no samples were taken.
const NO_SAMPLES: &str = "where the processor was: no samples were taken, so shares rest on which library was entered alone, and what a library calls back is in its own";
/// Samples of user space.
const USER_ONLY: &str = "the processor in the kernel: samples were taken without privilege, of user space alone, and not by context";
/// How many programs that were not recorded are named.
const NAMED: usize = 4;
/// From this fraction of the threads' lifetime on, times that contradict each other are mentioned.
const NOTABLE_OVERLAP: f64 = 0.01;

/// What is missing, most important first.
pub(super) struct NotSeen {
    /// Of the run: recordings that can't be read, wholly or in part, or that stopped before their process.
    pub(super) incomplete: Vec<String>,
    /// Of what was recorded.
    pub(super) gaps: Vec<String>,
    /// Imports that are left alone everywhere, for reasons of their own, and how many that are.
    by_design: Vec<String>,
    imports: u64,
}

impl NotSeen {
    pub(super) fn from_report(report: &Report) -> Self {
        Self {
            incomplete: incomplete(report),
            gaps: gaps(report),
            by_design: by_design(report),
            imports: report.analysis.not_seen.skipped.iter().map(|row| row.imports).sum(),
        }
    }

    /// All of it.
    pub(super) fn lines(self) -> Vec<String> {
        [self.incomplete, self.gaps, self.by_design].concat()
    }

    /// All but what makes the run incomplete, with what is left alone by design in one line.
    pub(super) fn folded(self) -> Vec<String> {
        let mut lines = self.gaps;
        match self.by_design.len() {
            0 | 1 => lines.extend(self.by_design),
            _ => lines.push(format!(
                "calls by {} that are left alone (chase-report not-seen says why)",
                plural(self.imports, "import")
            )),
        }
        lines
    }
}

fn incomplete(report: &Report) -> Vec<String> {
    let not_seen = &report.analysis.not_seen;
    let mut lines = Vec::new();
    for failure in &report.loaded.failures {
        lines.push(format!("{}: {}", failure.path.display(), failure.cause));
    }
    for stopped in &not_seen.stopped {
        let pid = report.analysis.processes.get(stopped.process).map_or(0, |process| process.pid);
        let errno = match stopped.errno {
            0 => String::new(),
            errno => format!(" ({})", std::io::Error::from_raw_os_error(errno as i32)),
        };
        let after = elapsed(stopped.after_ns.0);
        lines.push(format!("process {pid} after {after}: {}{errno}", stopped.reason));
    }
    for part in &not_seen.unreadable {
        lines.push(format!("part of {}: {}", part.path.display(), part.problem));
    }
    lines
}

fn by_design(report: &Report) -> Vec<String> {
    let line = |row: &chase_analyzer::Skipped| {
        format!("{} left alone: {}", plural(row.imports, "import"), row.reason)
    };
    report.analysis.not_seen.skipped.iter().map(line).collect()
}

/// Programs whose system calls were recorded, and not their library calls.
fn unrecorded(report: &Report) -> Option<String> {
    let mut names: Vec<(&str, u64)> = Vec::new();
    for process in report.analysis.processes.iter().filter(|process| !process.is_recorded) {
        match names.iter_mut().find(|(name, _)| *name == process.name()) {
            Some((_, times)) => *times += 1,
            None => names.push((process.name(), 1)),
        }
    }
    names.sort_by_key(|&(_, times)| std::cmp::Reverse(times));
    let all: u64 = names.iter().map(|(_, times)| times).sum();
    let mut shown: Vec<String> =
        names.iter().take(NAMED).map(|(name, _)| clean(name).into()).collect();
    if names.len() > NAMED {
        shown.push("…".to_owned());
    }
    // (Then the variables that start chase are not in the environment.)
    let began_late = report.loaded.images.iter().any(Image::began_late);
    let why = match began_late {
        true => {
            "what was started by a process after chase had attached to it (as --delay and --start-on do, too), "
        }
        false => "",
    };
    (all > 0).then(|| {
        format!(
            "library calls of {} that ran without the hook, as {why}static and set-user-id programs do, and what is started with an environment of its own: {}",
            plural(all, "program"),
            shown.join(", ")
        )
    })
}

/// Threads that were there when chase attached to their process, and made no call that is recorded.
fn silent_threads(report: &Report) -> Vec<String> {
    let line = |image: &Image| {
        let attached = image.recording.meta_value("attached")?;
        let mut numbers = attached.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        let (there, in_calls) = (numbers.next()?, numbers.next()?);
        let silent = there.saturating_sub(image.recording.threads().count() as u64);
        let pid = image.recording.header().pid;
        (silent > 0).then(|| {
            format!(
                "at least {} of {there} that process {pid} had when chase attached to it: they have begun no library call since, and are in no table ({in_calls} of {there} were in a call, which is not recorded)",
                plural(silent, "thread"),
            )
        })
    };
    report.loaded.images.iter().filter_map(line).collect()
}

/// Throws, which do not return.
fn exceptions(report: &Report) -> Option<String> {
    let found = chase_analyzer::exceptions(&report.analysis).filter(|found| found.are_many())?;
    let takes = found.on_cpu_ns.map_or_else(String::new, |ns| {
        format!("; by samples, at least {} on the processor", elapsed(ns.0))
    });
    Some(format!(
        "how long {} took, which do not return to their callers: unwinding the stack is in the time of the functions that throw{takes}",
        plural(found.thrown, "throw"),
    ))
}

fn gaps(report: &Report) -> Vec<String> {
    let not_seen = &report.analysis.not_seen;
    let counts = [
        (
            not_seen.processes_counted,
            "process",
            "whose calls were only counted (--timing count), but for those of a few functions: how long they took, and how long the program's own code, is not known",
        ),
        (
            not_seen.calls_without_thread,
            "call",
            match not_seen.stopped.is_empty() {
                true => "by threads that were starting or ending, or are not recorded",
                false => {
                    "by threads for which the recording had no room, or that were starting or ending"
                }
            },
        ),
        (not_seen.calls_without_space, "call", "for which the recording had no room"),
        (
            not_seen.calls_too_deep,
            "call",
            "untimed: frames were exhausted, by deep nesting or by calls left on other stacks",
        ),
        (not_seen.lost_calls, "call", "that threads made unrecorded"),
        (not_seen.threads, "thread", "without a record"),
        (not_seen.forks, "fork", "whose child has no recording: its calls are in no table"),
        (not_seen.slots_without_stub, "import", "for which no stub was left"),
        (not_seen.objects, "object", "whose tables could not be read"),
        (not_seen.late_loads, "dlopen call", "whose libraries were hooked a little later"),
        (not_seen.contexts_under_root, "context", "whose callers were not kept"),
        (
            not_seen.processes_sliced,
            "process",
            "where stacks are copied away and back (greenlets): callers may be taken for others",
        ),
        (
            not_seen.latest_calls,
            "call",
            "at most, of hot functions, too few or too many, since each was last timed: by processes or threads whose end was not seen, or that still run",
        ),
        (
            not_seen.calls_since_fork,
            "call",
            "at most, by forks' children before they were noticed: by a system call that nobody saw coming",
        ),
        (
            not_seen.contexts_without_arguments,
            "context",
            "whose arguments were not noted, or no longer, for want of room",
        ),
        (
            not_seen.events_without_space,
            "event",
            "missing on the timeline: no room was left for events of their threads",
        ),
        (
            not_seen.events_of_ended,
            "event",
            "missing on the timeline: of threads that had ended, in whose room are those of later ones",
        ),
        (
            not_seen.threads_left_out,
            "thread",
            "left out, as --threads asks: what they did is in no table",
        ),
        (
            not_seen.processes_in_windows,
            "process",
            "recorded with CHASE_BUDGET by an older version: of its hottest functions, only calls in short windows are counted and timed; what it estimated of the others is no longer shown",
        ),
    ];
    let mut gaps: Vec<String> = counts
        .iter()
        .filter(|(number, ..)| *number > 0)
        .map(|&(number, what, why)| format!("{} {why}", affected(report, number, what)))
        .collect();
    if not_seen.threads_left_out > 0 && report.analysis.threads.is_empty() {
        gaps.insert(
            0,
            "all threads: no start routine matches --threads (chase-report threads names them, in a run without it)"
                .to_owned(),
        );
    }
    let left_out = SKIP_REASONS[SkipReason::Filtered as usize];
    let is_left_out = |row: &&Skipped| row.reason == left_out;
    if report.analysis.totals.calls == 0
        && let Some(row) = not_seen.skipped.iter().find(is_left_out)
    {
        let imports = plural(row.imports, "import");
        gaps.insert(
            0,
            format!("all calls: --libs and --exclude leave none of {imports} (chase-report apis names libraries and functions, in a run without them)"),
        );
    }
    gaps.extend(exceptions(report));
    gaps.extend(silent_threads(report));
    gaps.extend(unrecorded(report));
    gaps.extend(super::syscalls::not_seen(report));
    if report.analysis.on_cpu.sample_hz == 0 {
        gaps.push(format!("{NO_SAMPLES} ({})", sampled::why_none(report)));
    } else if report.analysis.on_cpu.user_only {
        let rest = elapsed(report.analysis.on_cpu.not_sampled_ns.0);
        gaps.push(format!("{USER_ONLY}: {rest} in the kernel, or of threads without a sample"));
    }
    for process in report.analysis.processes.iter().filter(|process| !process.clock_is_calibrated) {
        let pid = process.pid;
        gaps.push(format!("the clock's rate in process {pid}: its times are in ticks, not in ns"));
    }
    let totals = &report.analysis.totals;
    if fraction(totals.overlap_ns, totals.lifetime_ns.as_f64()) > NOTABLE_OVERLAP {
        let (overlap, lifetime) = (elapsed(totals.overlap_ns.0), elapsed(totals.lifetime_ns.0));
        gaps.push(format!(
            "contradictory times: calls exceed the threads' {lifetime} by {overlap}, so shares mislead"
        ));
    }

    gaps
}

/// `chase-report not-seen`.
pub(super) struct Full;

impl Show for Full {
    const NAME: &'static str = "not-seen";

    fn text(&self, report: &Report, terminal: Terminal, _: usize) -> anyhow::Result<String> {
        let lines = NotSeen::from_report(report).lines();
        if lines.is_empty() {
            return Ok("Nothing is missing.\n".to_owned());
        }
        Ok(section("Not seen", &lines, terminal))
    }

    fn tables(&self, report: &Report, _: usize) -> anyhow::Result<Vec<Rows>> {
        let row = |text: String| serde_json::Map::from_iter([("text".to_owned(), text.into())]);
        let rows = NotSeen::from_report(report).lines().into_iter().map(row).collect();
        Ok(vec![Rows { name: "not_seen", columns: vec!["text"], rows }])
    }
}

/// A heading and lines below it.
pub(super) fn section(heading: &str, lines: &[String], terminal: Terminal) -> String {
    let lines = lines.iter().map(|line| format!("  {}\n", clean(line)));
    format!("{}\n{}", terminal.paint(Look::Warning, heading), lines.collect::<String>())
}
