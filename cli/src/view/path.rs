//! The critical path: what the run's length is made of.

use std::collections::BTreeMap;
use std::time::Duration;

use chase_analyzer::{
    CauseRow, CodeAddress, CriticalPath, Doing, Ns, Party, PartyKind, PathPart, PathStep, PathWait,
    ProcessRow, Runs, critical_path,
};
use serde_json::{Map, Value};

use super::{Show, left_out, legend};
use crate::args::SpanArgs;
use crate::causes;
use crate::event_loops::waits_at;
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::sentences::view_command;
use crate::terminal::{Align, Table, Terminal, count, elapsed, moment, percent, plural};

/// `path`.
pub(super) struct Path {
    /// The part of the run that is looked at.
    pub(super) span: SpanArgs,
}

impl Path {
    /// The window that is asked for, no longer than the run; `None` for all of it.
    fn window(&self, report: &Report) -> anyhow::Result<Option<(Ns, Ns)>> {
        if self.span.from.is_none() && self.span.to.is_none() {
            return Ok(None);
        }
        let ns = |time: Duration| Ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let wall = report.analysis.span_ns;
        let from = self.span.from.map_or(Ns(0), ns);
        let to = self.span.to.map_or(wall, ns).min(wall);
        anyhow::ensure!(
            from < to,
            "--from {} --to {}: there is nothing between them; the run took {}",
            elapsed(from.0),
            elapsed(to.0),
            elapsed(wall.0),
        );
        Ok(Some((from, to)))
    }

    fn find(&self, report: &Report) -> anyhow::Result<Option<CriticalPath>> {
        let (images, naming) = (&report.loaded.images, report.routines());
        let window = self.window(report)?;
        Ok(critical_path(images, &report.analysis, report.groups(), &naming, window))
    }
}

/// What most of the run's length is, if that is a wait at one place for what no thread of the run does: time, a disk, another machine.
/// That may be as it should be. In processes that run the same program, it is one place.
pub(super) fn mostly_waits(report: &Report) -> String {
    const MOST: f64 = 0.5;
    let (images, naming) = (&report.loaded.images, report.routines());
    let path = critical_path(images, &report.analysis, report.groups(), &naming, None);
    let parts = path.map_or_else(Vec::new, |path| path.parts);
    let mut places: Vec<(&PathPart, &PathWait, Ns, usize)> = Vec::new();
    for part in &parts {
        let Doing::Waiting(wait) = &part.doing else { continue };
        let place = |wait: &PathWait| (wait.api, wait.site.map(|site| (site.object, site.svma)));
        let same = places
            .iter_mut()
            .find(|(first, of, ..)| first.group == part.group && place(of) == place(wait));
        match same {
            Some((.., ns, steps)) => {
                ns.0 = ns.0.saturating_add(part.ns.0);
                *steps += part.steps;
            }
            None => places.push((part, wait, part.ns, part.steps)),
        }
    }
    let Some((part, wait, ns, steps)) = places.into_iter().max_by_key(|place| place.2) else {
        return String::new();
    };
    let of_run = ns.as_f64() / report.analysis.wall_ns.as_f64().max(1.0);
    if of_run < MOST {
        return String::new();
    }
    let times =
        if steps == 1 { "once".to_owned() } else { format!("{} times", count(steps as u64)) };
    format!(
        "Most of the run's length is a wait: {} waits in {}, {times}, {} together ({}){}: {}\n",
        report.groups().rows[part.group as usize].label,
        waits_at(report, wait),
        elapsed(ns.0),
        percent(of_run),
        not_recorded(report, part.group, wait)
            .unwrap_or_else(|| not_told(report, part.group, wait)),
        view_command(report, "path"),
    )
}

/// Whether of waits whose ends were seen for so long, ns, nearly all lasted until their limit of time: not if no end was seen.
fn are_ended_by_time(by_time_ns: f64, all_ns: f64) -> bool {
    const NEARLY_ALL: f64 = 0.9;
    by_time_ns > 0.0 && by_time_ns >= NEARLY_ALL * all_ns
}

/// Which process that was not recorded ended most of such waits.
fn not_recorded(report: &Report, group: u32, wait: &PathWait) -> Option<String> {
    let wakers = wakers(report, group, wait);
    let all: f64 = wakers.iter().map(|waker| waker.wait_ns.as_f64()).sum();
    let longest = wakers.into_iter().max_by_key(|waker| waker.wait_ns)?;
    let name = &*longest.name;
    let is_other = longest.kind == PartyKind::Process && !name.is_empty();
    // (Of a process that was recorded, the waits may not have been.)
    let is_known = |process: &ProcessRow| process.program.starts_with(name);
    let is_other = is_other && !report.analysis.processes.iter().any(is_known);
    (is_other && longest.wait_ns.as_f64() >= all / 2.0)
        .then(|| format!(", for process {name}, which was not recorded"))
}

/// Who ended such waits.
fn wakers<'r>(report: &'r Report, group: u32, wait: &PathWait) -> Vec<&'r Party> {
    let place = |site: Option<CodeAddress>| site.map(|site| (site.object, site.svma));
    let here = (group, wait.api, place(wait.site));
    let is_here = |row: &&CauseRow| (row.group, row.api, place(row.site)) == here;
    report.causes().iter().filter(is_here).flat_map(|row| &row.wakers).collect()
}

/// That a wait for others lasts until its limit of time, if nobody ends it earlier; and who waits for that.
fn not_told(report: &Report, group: u32, wait: &PathWait) -> String {
    if !wait.purpose.is_handover() {
        return String::new();
    }
    let wakers = wakers(report, group, wait);
    let sum = |is_of: &dyn Fn(PartyKind) -> bool| -> f64 {
        let of_kind = wakers.iter().filter(|waker| is_of(waker.kind));
        of_kind.map(|waker| waker.wait_ns.as_f64()).sum()
    };
    let over = sum(&|kind| kind == PartyKind::Time);
    if !are_ended_by_time(over, sum(&|_| true)) {
        return String::new();
    }
    let meanwhile = waiting_for(report.causes(), group).filter(|&(_, ns)| ns >= over / 2.0);
    let meanwhile = meanwhile.map_or_else(String::new, |(of, ns)| {
        let label = &report.groups().rows[of as usize].label;
        format!(", while {label} waits for it {}", elapsed(ns.round() as u64))
    });
    format!(", until its limit of time, since nobody ends it earlier{meanwhile}")
}

/// Which group waits longest for this one to hand over things, ns. Who is told of something now and then, and has nothing to do until then, does not.
fn waiting_for(causes: &[CauseRow], group: u32) -> Option<(u32, f64)> {
    const MANY_WAITS: u64 = 10;
    const ONE_WAIT: f64 = 0.25;
    let is_of = |waker: &&Party| waker.kind == PartyKind::Thread && waker.group == Some(group);
    let mut by_group: BTreeMap<u32, (f64, u64, Ns)> = BTreeMap::new();
    for row in causes.iter().filter(|row| row.group != group && row.purpose.is_handover()) {
        for waker in row.wakers.iter().filter(is_of) {
            let (ns, waits, longest) = by_group.entry(row.group).or_default();
            *ns += waker.wait_ns.as_f64();
            *waits = waits.saturating_add(waker.waits);
            *longest = row.max_ns.max(*longest);
        }
    }
    let is_again = |(ns, waits, longest): (f64, u64, Ns)| {
        waits >= MANY_WAITS && longest.as_f64() <= ONE_WAIT * ns
    };
    let waiting = by_group.into_iter().filter(|&(_, waits)| is_again(waits));
    waiting.map(|(of, (ns, ..))| (of, ns)).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// What is done, where, and for what it is waited.
fn words(report: &Report, doing: &Doing, runs: Option<Runs>) -> [String; 3] {
    match (doing, runs) {
        (Doing::Running, None) => ["runs".to_owned(), String::new(), String::new()],
        (Doing::Running, Some(runs)) => {
            let call = causes::function(report, runs.api);
            let object = report.names.object(runs.object).to_owned();
            [format!("runs in {call}"), object, String::new()]
        }
        (Doing::Woken, _) => ["was woken".to_owned(), String::new(), String::new()],
        (Doing::Waiting(PathWait { api, site, process, object, .. }), _) => {
            let call = causes::function(report, *api);
            let site = causes::site(report, *process, *site);
            [format!("waits in {call}"), site, causes::object(report, *process, object)]
        }
    }
}

/// The function that is called, and the library whose code runs, or of the function.
fn function(report: &Report, doing: &Doing, runs: Option<Runs>) -> [Value; 2] {
    let api = match doing {
        Doing::Waiting(wait) => wait.api,
        _ => runs.and_then(|runs| runs.api),
    };
    let of_api = api.map(|api| report.analysis.apis[api as usize].object);
    let object = runs.map(|runs| runs.object).or(of_api);
    let name = api.map(|api| report.names.full(api as usize));
    [name.into(), object.map(|object| report.names.object(object)).into()]
}

/// Parts of a path, longest first.
fn parts_table(report: &Report, parts: &[PathPart], top: usize) -> Table {
    let mut table = Table::new([
        ("Group", Align::Name),
        ("does", Align::Name),
        ("at", Align::Name),
        ("for", Align::Name),
        ("time", Align::Number),
        ("of the run", Align::Number),
        ("steps", Align::Number),
    ]);
    for part in parts.iter().take(top) {
        let [does, at, object] = words(report, &part.doing, part.runs);
        table.row([
            (&*report.groups().rows[part.group as usize].label).into(),
            does.into(),
            at.into(),
            causes::brief(&object).into(),
            elapsed(part.ns.0).into(),
            percent(part.share).into(),
            count(part.steps as u64).into(),
        ]);
    }
    table
}

/// Parts and steps of a path as JSON and CSV have them.
pub(super) fn path_rows(
    report: &Report,
    parts: &[PathPart],
    steps: &[PathStep],
    top: usize,
) -> anyhow::Result<Vec<Rows>> {
    let label = |group: u32| Value::from(&*report.groups().rows[group as usize].label);
    let named = |map: &mut Map<String, Value>, doing: &Doing, runs: Option<Runs>| {
        let [_, at, object] = words(report, doing, runs);
        let at = if runs.is_some() { String::new() } else { at };
        let [function, library] = function(report, doing, runs);
        map.insert("function".to_owned(), function);
        map.insert("library".to_owned(), library);
        map.insert("place".to_owned(), at.into());
        map.insert("object_name".to_owned(), object.into());
    };
    let mut part_rows = Vec::new();
    for part in parts.iter().take(top) {
        let mut map = machine::row(part, [("group", label(part.group))])?;
        named(&mut map, &part.doing, part.runs);
        part_rows.push(map);
    }
    let mut step_rows = Vec::new();
    for step in steps.iter().take(top) {
        let thread = &report.analysis.threads[step.thread as usize];
        let group = report.groups().of_thread[step.thread as usize];
        let more = [("thread", Value::from(thread.tid)), ("group", label(group))];
        let mut map = machine::row(step, more)?;
        named(&mut map, &step.doing, None);
        step_rows.push(map);
    }
    let columns =
        ["group", "doing", "function", "library", "place", "object_name", "ns", "share", "steps"];
    let parts = Rows { name: "parts", columns: columns.into(), rows: part_rows };
    let columns = [
        "thread",
        "group",
        "begin_ns",
        "end_ns",
        "doing",
        "function",
        "library",
        "place",
        "object_name",
    ];
    Ok(vec![parts, Rows { name: "steps", columns: columns.into(), rows: step_rows }])
}

pub(super) fn parts_text(
    report: &Report,
    parts: &[PathPart],
    terminal: Terminal,
    top: usize,
) -> String {
    let table = parts_table(report, parts, top).render(terminal);
    table + &left_out(parts.len(), top, "parts")
}

/// What it means that so many waits, or more, are missing; empty if none are.
pub(super) fn missing(lost: u64, meaning: &str) -> String {
    match lost {
        0 => String::new(),
        _ => format!("Missing: at least {}; {meaning}.\n", plural(lost, "long wait")),
    }
}

impl Show for Path {
    const NAME: &'static str = "path";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let Some(path) = self.find(report)? else {
            let why = "no companion has seen a wait of a millisecond or more";
            let hot = view_command(report, "hot");
            return Ok(match report.analysis.threads[..] {
                [_] => format!(
                    "Nothing is known of a critical path: {why}. There is one thread, so what it runs is on the path: {hot}\n"
                ),
                _ => format!("Nothing is known of the critical path: {why}.\n"),
            });
        };
        let mut out = match self.window(report)? {
            Some((from, to)) => {
                let length = Ns(to.0 - from.0);
                let (from, to) = (moment(from.0), moment(to.0));
                format!("From {from} to {to}, {}:\n\n", elapsed(length.0))
            }
            None => String::new(),
        };
        out.push_str(&parts_text(report, &path.parts, terminal, top));
        out.push_str(&missing(path.lost, "the path may go on in the wrong thread"));
        out.push_str(&legend(
            terminal,
            &[
                ("runs", "or could run, or waits for less than a millisecond at a time; in which functions, by samples in these times; where there are fewer than ten, as in the thread's whole life, by all samples, or by its calls where these are too few as well"),
                ("was woken", "by another thread, and does not run yet"),
                ("waits", "for what no thread of the run does: time, a disk, another machine"),
                ("of the run", "or of the window; the path is as long: what gets shorter on it, shortens the run, until another path is longer"),
            ],
        ));
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let path = self.find(report)?.unwrap_or_default();
        let mut tables = path_rows(report, &path.parts, &path.steps, top)?;
        if let Some((from, to)) = self.window(report)? {
            let window = [("from_ns", from.0), ("to_ns", to.0), ("ns", to.0 - from.0)];
            let row = window.map(|(name, ns)| (name.to_owned(), ns.into())).into_iter().collect();
            let columns = vec!["from_ns", "to_ns", "ns"];
            tables.push(Rows { name: "window", columns, rows: vec![row] });
        }
        Ok(tables)
    }
}

#[cfg(test)]
mod tests {
    use chase_analyzer::{CauseRow, Ns, Party, PartyKind, Purpose, WaitObject};

    use super::{are_ended_by_time, waiting_for};

    /// Waits of group 1 at a condition, which group 0 ends.
    fn waits(waits: u64, longest_ns: u64) -> CauseRow {
        let party = Party {
            kind: PartyKind::Thread,
            group: Some(0),
            name: String::new(),
            api: None,
            site: None,
            process: 0,
            waits,
            wait_ns: Ns(1_000),
            by_thread: Vec::new(),
        };
        CauseRow {
            group: 1,
            api: None,
            site: None,
            process: 0,
            syscall: None,
            object: WaitObject::None,
            purpose: Purpose::Condition,
            waits,
            calls: waits,
            wait_ns: Ns(1_000),
            max_ns: Ns(longest_ns),
            ready_ns: Ns(0),
            threads: 1,
            by_thread: Vec::new(),
            holders: Vec::new(),
            wakers: vec![party],
        }
    }

    #[test]
    fn who_is_told_now_and_then_waits_for_nobody() {
        assert_eq!(waiting_for(&[waits(20, 100)], 0), Some((1, 1_000.0)));
        assert_eq!(waiting_for(&[waits(6, 200)], 0), None);
        assert_eq!(waiting_for(&[waits(20, 800)], 0), None);
    }

    #[test]
    fn waits_whose_ends_were_not_seen_are_ended_by_nothing() {
        assert!(are_ended_by_time(9.0, 10.0) && !are_ended_by_time(8.0, 10.0));
        assert!(!are_ended_by_time(0.0, 0.0));
    }
}
