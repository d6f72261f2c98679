//! The HTML page: what the analyzer and the symbolizer found out, handed to the page.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write, stderr, stdin};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use chase_analyzer::{CauseRow, CodeAddress, Finding, GroupRow, Ns};
use chase_export::{Profile, Stacks};
use chase_html::{CauseOfWait, Comparison, Facts, Figures, Flame, FlameKind, Process};

use super::files::{Files, save};
use super::not_seen::NotSeen;
use super::{approximate, compare as views, processes, sampled};
use crate::args::{Cli, CompareArgs};
use crate::causes::{self, Told};
use crate::compare::Compared;
use crate::report::Report;
use crate::sentences::{Sentence, sentence};
use crate::stacks;
use crate::terminal::{clean, count, elapsed, plural};

/// Thread groups that get stacks of their own.
const GROUPS: usize = 6;
/// Causes of waits.
const CAUSES: usize = 50;
/// Rows of the table of processes.
const PROCESSES: usize = 50;

/// Writes the page of `report`, compared with the first of two `recordings`.
pub(super) fn write(
    cli: &Cli,
    report: &Report,
    recordings: &[PathBuf],
    output: &Path,
) -> anyhow::Result<Files> {
    let mut model = model(report)?;
    if let [before, now] = recordings {
        let arguments =
            CompareArgs { paths: vec![before.clone(), now.clone()], ..CompareArgs::default() };
        let compared = Compared::open(&arguments, &cli.source)?;
        compare(&mut model, &Report::read(cli, vec![before.clone()])?, report, &compared);
    }
    let page = chase_html::page(&model).context("cannot make the page")?;
    save(output, page.as_bytes())?;
    Ok(Files::written(output.to_owned()))
}

/// A page that is there may be another run's: asks whether to overwrite it, on a terminal; elsewhere it says how.
pub(super) fn may_write(output: &Path, force: bool) -> anyhow::Result<()> {
    // Devices and pipes hold nothing that could be lost.
    if force || !output.is_file() {
        return Ok(());
    }
    let shown = clean(&output.display().to_string()).into_owned();
    if stdin().is_terminal() && stderr().is_terminal() {
        write!(stderr(), "{shown} is there. Overwrite it? [y/N] ")?;
        let mut answer = String::new();
        stdin().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
    }
    bail!("{shown} is there: --force overwrites it, -o writes another")
}

/// What the page, and the charts, are made from.
pub(super) fn model(report: &Report) -> anyhow::Result<chase_html::Report> {
    let names = PageNames { report };
    let mut model = chase_html::Report::new(figures(report), &names, facts(report));
    model.flames = profiles(report)
        .into_iter()
        .map(|profile| {
            let kind = FlameKind::Time(profile.stacks);
            Flame { name: profile.name.into(), on_cpu: false, kind }
        })
        .collect();
    if let Some(stacks) = stacks::on_cpu(&report.analysis, &report.names) {
        let (name, kind) = ("All threads, on the processor".into(), FlameKind::Time(stacks));
        model.flames.insert(0, Flame { name, on_cpu: true, kind });
    }
    Ok(model)
}

fn figures(report: &Report) -> Figures<'_> {
    Figures {
        analysis: &report.analysis,
        groups: report.groups(),
        tails: report.tails(),
        findings: report.findings(),
        timeline: report.timeline(),
    }
}

/// The stacks of all threads, and of each of the first thread groups where there are several.
pub(super) fn profiles(report: &Report) -> Vec<Profile> {
    let (analysis, names) = (&report.analysis, &report.names);
    let all =
        Profile { name: "All threads".to_owned(), stacks: stacks::from_analysis(analysis, names) };
    let groups = &report.groups().rows;
    let shown = if groups.len() > 1 { groups.len().min(GROUPS) } else { 0 };
    let of_group = |group: &GroupRow| Profile {
        name: group.label.clone(),
        stacks: stacks::of_group(analysis, names, group),
    };
    std::iter::once(all).chain(groups[..shown].iter().map(of_group)).collect()
}

/// Puts what `before` had beside what is there now, by names, and what changed.
fn compare(model: &mut chase_html::Report, before: &Report, now: &Report, compared: &Compared) {
    model.add_tails_before(figures(before), &PageNames { report: before });
    let stacks =
        |report: &Report| -> Stacks { stacks::from_analysis(&report.analysis, &report.names) };
    let kind = FlameKind::Difference { before: stacks(before), now: stacks(now) };
    let name = format!("Difference from {}", before.path.display());
    // Behind those of all threads.
    let at = model.flames.iter().take_while(|flame| flame.on_cpu).count() + 1;
    let flame = Flame { name: name.into(), on_cpu: false, kind };
    model.flames.insert(at.min(model.flames.len()), flame);
    let after = compared.after.as_ref().unwrap_or(&compared.before);
    let sides = [&compared.before, after].map(views::side);
    let mut notes = vec![format!("Verdicts: {}.", views::basis(compared))];
    if compared.comparison.wait_sources.0 != compared.comparison.wait_sources.1 {
        let why = "Waits are not compared: one side’s are measured, the other’s told by name.";
        notes.push(why.to_owned());
    }
    model.comparison = Some(Comparison::new(&compared.comparison, sides, notes, &views::function));
}

/// Names for the page.
struct PageNames<'r> {
    report: &'r Report,
}

impl chase_html::Names for PageNames<'_> {
    fn object(&self, number: u32) -> &str {
        self.report.names.object(number)
    }

    fn function(&self, api: usize) -> &str {
        self.report.names.short(api)
    }

    fn whole_function(&self, api: usize) -> &str {
        self.report.names.full(api)
    }

    fn code(&self, process: usize, address: &CodeAddress, object: u32) -> String {
        self.report.code(process, address, object)
    }

    fn sentence(&self, finding: &Finding) -> chase_html::Sentence {
        let Sentence { claim, evidence, gain } = sentence(self.report, finding);
        chase_html::Sentence { claim, evidence, gain: gain.unwrap_or_default() }
    }
}

fn facts(report: &Report) -> Facts {
    let analysis = &report.analysis;
    let first = analysis.processes.first();
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut add = |term: &str, text: String| {
        if !text.is_empty() {
            facts.push((term.to_owned(), text));
        }
    };
    if analysis.totals.calls_estimated {
        add("Counts", "marked with ~ are estimates".to_owned());
    }
    add("Ended", first.map(|process| processes::ending(process.ending)).unwrap_or_default());
    let hosts = hosts(report);
    if let Some(image) = report.loaded.images.first() {
        let meta = |key| image.recording.meta_value(key).unwrap_or_default().into_owned();
        let header = image.recording.header();
        add(
            "Host",
            if hosts > 1 { format!("{} hosts", count(hosts as u64)) } else { meta("host") },
        );
        add("Kernel", meta("kernel"));
        let start = Duration::from_nanos(header.clock_start.realtime_ns);
        if let Some(start) = SystemTime::UNIX_EPOCH.checked_add(start) {
            add("Recorded", humantime::format_rfc3339_seconds(start).to_string());
        }
        let writer = match meta("writer") {
            writer if writer.is_empty() => String::new(),
            writer => format!("{writer}, "),
        };
        add("Recorder", format!("{writer}format {}", header.version));
    }
    add("Report", format!("chase-report {}", chase_version::VERSION));
    let mut not_seen = NotSeen::from_report(report);
    Facts {
        program: first.map(|process| process.program.clone()).unwrap_or_default(),
        command: first.map(|process| command(&process.command)).unwrap_or_default(),
        lead: lead(report),
        facts,
        incomplete: std::mem::take(&mut not_seen.incomplete),
        gaps: not_seen.gaps.len(),
        not_seen: not_seen.lines(),
        processes: processes::costliest(&analysis.processes, PROCESSES)
            .map(|process| Process {
                pid: process.pid,
                program: process.name().into(),
                wall_ns: process.wall_ns.as_f64(),
                threads: process.totals.threads,
                calls: process.totals.calls,
                calls_estimated: process.totals.calls_estimated,
                ended: processes::brief_ending(process.ending).into(),
            })
            .collect(),
        more_processes: analysis.processes.len().saturating_sub(PROCESSES),
        processor: super::hot::ran(report),
        causes: causes_of_waits(report),
        waits_for_whom: super::graph::for_page(report),
        parts: super::components::for_page(report),
        processors: report.watched().processors.count(),
        idle: super::blocked::idle_threads(report),
        runnable: super::blocked::runnable(report),
    }
}

/// The run in one line: values, and what they are of.
fn lead(report: &Report) -> Vec<(String, String)> {
    let analysis = &report.analysis;
    let totals = &analysis.totals;
    let first = analysis.processes.first();
    let about = if first.is_some_and(|process| process.end_is_estimate) { "about " } else { "" };
    let wall_ns = analysis.wall_ns.as_f64();
    let mut lead =
        vec![(format!("{about}{}", elapsed(analysis.wall_ns.0)), "wall time".to_owned())];
    let mut add = |value: String, of: &str| lead.push((value, of.to_owned()));
    let whole = analysis.on_cpu.whole_ns().as_f64();
    let of_threads = || analysis.threads.iter().map(|t| Some(t.on_cpu_ns?.as_f64())).sum();
    // What a companion did not watch, the threads may have asked for themselves.
    let all_watched = sampled::unwatched(report) == 0;
    let on_cpu: Option<f64> = if whole > 0.0 && all_watched { Some(whole) } else { of_threads() };
    if let Some(on_cpu) = on_cpu.filter(|_| wall_ns > 0.0) {
        let text = elapsed(Ns::from_f64(on_cpu).0);
        let busy = on_cpu / wall_ns;
        let of_all = match report.watched().processors.count() {
            Some(all) => format!("{busy:.2} of {all}"),
            None => format!("{busy:.2}"),
        };
        add(text, &format!("on processors ({of_all} busy with it on average)"));
    }
    if analysis.processes.len() > 1 {
        add(processes::number(&analysis.processes), "");
    }
    add(processes::threads(analysis), "");
    let calls = approximate(totals.calls_estimated, plural(totals.calls, "library call"));
    add(calls, "");
    let cost = processes::Cost::new(analysis);
    add(format!("about {}", cost.inside), "cost of recording");
    if let Some(time) = cost.companion {
        add(time, "on processors for chase’s companion, beside it");
    }
    lead
}

/// How many machines were recorded on.
fn hosts(report: &Report) -> usize {
    let images = report.loaded.images.iter();
    images.filter_map(|image| image.recording.meta_value("host")).collect::<BTreeSet<_>>().len()
}

/// As it could be typed.
fn command(arguments: &[String]) -> String {
    let quoted = shlex::try_join(arguments.iter().map(String::as_str));
    quoted.unwrap_or_else(|_| arguments.join(" "))
}

/// What threads wait for, longest first, those of groups that have nothing to do behind the others.
fn causes_of_waits(report: &Report) -> Vec<CauseOfWait> {
    let idle = chase_analyzer::blocked(&report.analysis).idle_groups(report.groups());
    let rows: Vec<&CauseRow> = report.causes().iter().collect();
    let mut rows = causes::told(report, &rows);
    // As in the tables beside it, until the threads were woken.
    let until_woken = |row: &Told<'_>| row.wait_ns.saturating_sub(row.ready_ns);
    let is_idle = |row: &Told<'_>| idle[row.row.group as usize];
    rows.sort_by_key(|row| (is_idle(row), std::cmp::Reverse(until_woken(row))));
    let cause = |row: &Told<'_>| CauseOfWait {
        function: row.words.function.as_str().into(),
        site: row.words.site.as_str().into(),
        group: row.words.group.as_str().into(),
        is_idle: is_idle(row),
        object: row.words.object.as_str().into(),
        ns: until_woken(row) as f64,
        waits: row.waits,
        holder: row.words.holder.as_str().into(),
        waker: row.words.waker.as_str().into(),
    };
    rows.iter().take(CAUSES).map(cause).collect()
}
