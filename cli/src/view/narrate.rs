//! What happened, in order: one line for each system call, below the library calls that made it.

use std::collections::HashMap;

use anyhow::bail;
use chase_analyzer::{
    BlockedSpan, CodeAddress, NarratedCall, Narration, Ns, TimedCall, Timeline, narration,
};
use serde_json::Value;

use super::Show;
use crate::args::{SpanArgs, ThreadFilter, matches};
use crate::causes;
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::terminal::{Look, Terminal, clean, elapsed, plural};

/// Calls of one kind in a row, of which from so many on only the first is shown.
const FOLDED: usize = 3;

pub(super) struct Narrate<'a> {
    pub(super) thread: &'a ThreadFilter,
    pub(super) span: SpanArgs,
}

/// What is said when nobody told: why not, as the recording knows it, and what would.
pub(super) fn not_told(report: &Report) -> String {
    let images = &report.loaded.images;
    let mut notes = images.iter().filter_map(|image| image.recording.meta_value("syscalls"));
    let why = match notes.find(|note| note != "on") {
        Some(why) => format!("{}; where they can be: ", clean(&why)),
        None => "none had been asked for: ".to_owned(),
    };
    format!(
        "system calls were not told one by one: {why}chase record --narrate (or CHASE_NARRATE=1)"
    )
}

impl Narrate<'_> {
    fn wants(&self, report: &Report, at_ns: Ns, thread: Option<usize>, tid: u32) -> bool {
        let name = thread.map_or("", |thread| &*report.analysis.threads[thread].name);
        let after = self.span.from.is_none_or(|from| u128::from(at_ns.0) >= from.as_nanos());
        let before = self.span.to.is_none_or(|to| u128::from(at_ns.0) <= to.as_nanos());
        after && before && matches(&self.thread.threads, &[name, &tid.to_string()])
    }

    fn calls(&self, report: &Report) -> anyhow::Result<Narration> {
        let Some(mut all) = narration(&report.loaded.images, &report.analysis) else {
            bail!(not_told(report))
        };
        all.calls.retain(|call| self.wants(report, call.at_ns, call.thread, call.tid));
        Ok(all)
    }
}

/// What is written so far.
struct Writer<'r> {
    report: &'r Report,
    terminal: Terminal,
    timeline: &'r Timeline,
    out: String,
    /// By process and thread: the library calls that are written above what follows.
    chains: HashMap<(usize, u32), Vec<u32>>,
    /// Whose line was written last.
    latest: Option<(usize, u32)>,
    names: usize,
}

impl Writer<'_> {
    fn line(&mut self, at_ns: Ns, who: &str, depth: usize, text: &str, look: Look) {
        let at = format!("{:12.6}", at_ns.seconds());
        let indent = 2 * depth;
        let text = self.terminal.paint(look, text);
        let at = self.terminal.paint(Look::Faint, &at);
        self.out.push_str(&format!(
            "{at}  {who:width$}  {:indent$}{text}\n",
            "",
            width = self.names
        ));
    }

    /// The library calls that a system call was made in, as far as they are not written yet, and how many they are.
    fn chain(&mut self, call: &NarratedCall, who: &str) -> usize {
        let contexts = &self.report.analysis.contexts;
        let mut chain = Vec::new();
        let mut at = call.context;
        while let Some(context) = at.and_then(|at| contexts.get(at as usize)) {
            chain.extend(at);
            at = context.parent;
        }
        chain.reverse();
        let key = (call.process, call.tid);
        let known = self.chains.insert(key, chain.clone()).unwrap_or_default();
        let same = known.iter().zip(&chain).take_while(|(a, b)| a == b).count();
        let known_depth = if self.latest == Some(key) { same } else { 0 };
        for (depth, &context) in chain.iter().enumerate().skip(known_depth) {
            let api = contexts[context as usize].api;
            let library = self.report.names.object(self.report.analysis.apis[api as usize].object);
            let name = self.report.names.short(api as usize);
            let mut text = format!("{} ({})", clean(name), clean(library));
            let row = &contexts[context as usize];
            text.push_str(&called_at(self.report, row.process, row.site));
            if let Some(kept) = self.kept(call, context) {
                text.push_str(&format!("  {}", elapsed(kept.ns.0)));
            }
            self.line(call.at_ns, who, depth, &text, Look::Strong);
        }
        chain.len()
    }

    /// The library call in which a system call was made, if it was kept.
    fn kept(&self, call: &NarratedCall, context: u32) -> Option<&TimedCall> {
        let lane = self.timeline.lanes.get(call.thread?)?;
        let before = lane.calls.partition_point(|kept| kept.start_ns <= call.at_ns);
        let own = lane.calls[..before].iter().rev().find(|kept| kept.context == context)?;
        (own.start_ns.0.saturating_add(own.ns.0) >= call.at_ns.0).then_some(own)
    }
}

/// Long waits in a call.
fn waits_in<'t>(
    timeline: &'t Timeline,
    call: &NarratedCall,
) -> impl Iterator<Item = &'t BlockedSpan> {
    let lane = call.thread.and_then(|thread| timeline.lanes.get(thread));
    let spans = lane.map_or(&[][..], |lane| &lane.blocked);
    let (start, end) = (call.at_ns, Ns(call.at_ns.0 + call.ns.map_or(u64::MAX / 2, |ns| ns.0)));
    let first = spans.partition_point(|span| span.start_ns < start);
    spans[first..].iter().take_while(move |span| span.start_ns <= end)
}

/// Where a call was made, behind what is said of it; empty if that is not known.
fn called_at(report: &Report, process: usize, site: Option<CodeAddress>) -> String {
    match causes::site(report, process, site) {
        site if site.is_empty() => site,
        site => format!(" at {}", clean(&site)),
    }
}

/// How long a thread waited, and who ended that, doing what.
fn waited(report: &Report, timeline: &Timeline, span: &BlockedSpan) -> String {
    let mut text = format!("waited {}", elapsed(span.ns.0));
    text += &called_at(report, span.process, span.site);
    if let Some(lane) = span.waker.and_then(|waker| timeline.lanes.get(waker)) {
        let row = &report.analysis.threads[lane.thread];
        text += &format!(", ended by {} {}", clean(&row.name), row.tid);
    } else if !span.waker_name.is_empty() {
        text += &format!(", ended by {}", clean(&span.waker_name));
    }
    if let Some(api) = span.waker_api {
        text += &format!(" in {}", report.names.short(api as usize));
    }
    if let Some(lane) = span.waker.and_then(|waker| timeline.lanes.get(waker)) {
        text += &called_at(report, lane.process, span.waker_site);
    }
    text
}

/// What a call is to do, where its second argument names that: of `fcntl(3, F_SETLK, ...)`, `F_SETLK`.
fn operation(call: &NarratedCall) -> Option<&str> {
    let second = call.call.split_once(", ").filter(|(first, _)| !first.contains('"'))?.1;
    let name = second.split([',', ')', ' ']).next()?;
    name.starts_with(|first: char| first.is_ascii_uppercase()).then_some(name)
}

/// Whether two calls are told as one.
fn alike(a: &NarratedCall, b: &NarratedCall) -> bool {
    (a.process, a.tid, a.context, a.number, a.first_argument)
        == (b.process, b.tid, b.context, b.number, b.first_argument)
        && operation(a) == operation(b)
        && !a.failed
        && !b.failed
        && a.ns.is_some()
        && b.ns.is_some()
}

fn who(report: &Report, call: &NarratedCall) -> String {
    let program = report.analysis.processes.get(call.process).map_or("", |row| &*row.program);
    let thread = call.thread.map(|thread| &*report.analysis.threads[thread].name);
    let name = thread.filter(|name| !name.is_empty()).unwrap_or(program);
    format!("{} {}", clean(name), call.tid)
}

fn duration(call: &NarratedCall) -> String {
    call.ns.map_or_else(String::new, |ns| format!("  {}", elapsed(ns.0)))
}

impl Show for Narrate<'_> {
    const NAME: &'static str = "narrate";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        let Narration { calls, lost } = self.calls(report)?;
        let timeline = report.timeline();
        let names = calls.iter().map(|call| who(report, call).chars().count()).max().unwrap_or(0);
        let mut marks: Vec<(Ns, String, String)> = Vec::new();
        for lane in &timeline.lanes {
            let row = &report.analysis.threads[lane.thread];
            for mark in &lane.marks {
                if self.wants(report, mark.at_ns, Some(lane.thread), row.tid) {
                    let name = format!("── {} ──", clean(&timeline.marks[mark.name as usize]));
                    marks.push((mark.at_ns, format!("{} {}", clean(&row.name), row.tid), name));
                }
            }
        }
        marks.sort();
        let mut marks = marks.into_iter().peekable();
        let mut writer = Writer {
            report,
            terminal,
            timeline,
            out: String::new(),
            chains: HashMap::new(),
            latest: None,
            names,
        };
        let mut at = 0;
        let mut shown = 0;
        while let Some(call) = calls.get(at).filter(|_| shown < top) {
            while let Some((at_ns, who, name)) = marks.next_if(|mark| mark.0 <= call.at_ns) {
                writer.line(at_ns, &who, 0, &name, Look::Strong);
            }
            let run = calls[at..].iter().take_while(|next| alike(call, next)).count().max(1);
            let who = who(report, call);
            let depth = writer.chain(call, &who);
            let told = if run >= FOLDED { 1 } else { run };
            for one in &calls[at..at + told] {
                let text = format!("{} = {}{}", clean(&one.call), one.result, duration(one));
                let look = if one.failed { Look::Warning } else { Look::Plain };
                writer.line(one.at_ns, &who, depth, &text, look);
                for span in waits_in(timeline, one) {
                    let text = waited(report, timeline, span);
                    writer.line(span.start_ns, &who, depth + 1, &text, Look::Faint);
                }
            }
            if run >= FOLDED {
                let ns =
                    calls[at + 1..at + run].iter().filter_map(|call| call.ns).map(|ns| ns.0).sum();
                let text = format!("… {} more, {}", run - 1, elapsed(ns));
                writer.line(calls[at + run - 1].at_ns, &who, depth, &text, Look::Faint);
            }
            writer.latest = Some((call.process, call.tid));
            at += run;
            shown += 1;
        }
        for (at_ns, who, name) in marks.filter(|_| at >= calls.len()) {
            writer.line(at_ns, &who, 0, &name, Look::Strong);
        }
        let mut out = writer.out;
        if at < calls.len() {
            out.push_str(&super::left_out(calls.len() - at, 0, "system calls"));
        }
        if lost > 0 {
            let line =
                format!("Missing for lack of room: at least {}\n", plural(lost, "system call"));
            out.push_str(&terminal.paint(Look::Warning, &line));
        }
        Ok(out)
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        let all = self.calls(report)?;
        let rows = all.calls.iter().take(top).map(|call| {
            let api = call.context.map(|context| report.analysis.contexts[context as usize].api);
            let function = api.map(|api| report.names.full(api as usize));
            let name = call.thread.map(|thread| &*report.analysis.threads[thread].name);
            let site = call.context.map(|context| {
                let row = &report.analysis.contexts[context as usize];
                causes::site(report, row.process, row.site)
            });
            machine::row(
                call,
                [
                    ("pid", Value::from(report.analysis.processes[call.process].pid)),
                    ("thread_name", Value::from(name)),
                    ("function", Value::from(function)),
                    ("site", Value::from(site.filter(|site| !site.is_empty()))),
                    (
                        "syscall",
                        Value::from(chase_analyzer::syscall_name(call.number).into_owned()),
                    ),
                ],
            )
        });
        let columns = vec![
            "at_ns",
            "ns",
            "pid",
            "tid",
            "thread_name",
            "function",
            "site",
            "syscall",
            "call",
            "result",
            "failed",
        ];
        Ok(vec![Rows { name: "calls", columns, rows: rows.collect::<anyhow::Result<_>>()? }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_otherwise_is_not_told_as_the_same() {
        let call = |text: &str| NarratedCall {
            at_ns: Ns(0),
            ns: Some(Ns(1)),
            process: 0,
            thread: None,
            tid: 1,
            context: None,
            number: 72,
            call: text.to_owned(),
            result: "0".to_owned(),
            first_argument: 3,
            failed: false,
        };
        let [get, lock, copy] =
            ["fcntl(3, F_GETFD)", "fcntl(3, F_SETLK, 0x7ffe)", "fcntl(3, F_DUPFD, 100)"].map(call);
        assert!(alike(&get, &get.clone()) && alike(&lock, &call("fcntl(3, F_SETLK, 0x8000)")));
        assert!(!alike(&get, &lock) && !alike(&lock, &copy));
        assert!(alike(&call("read(3, \"A, B\", 9)"), &call("read(3, \"C\", 9)")));
        assert!(alike(&call("write(3, \"x, Y\", 9)"), &call("write(3, \"x, Z\", 9)")));
    }
}
