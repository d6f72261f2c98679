//! Threads by time, from the analyzer's timeline.

mod queued;
mod ran;
mod short_waits;

use std::collections::{HashMap, HashSet};

use chase_analyzer::{
    Analysis, BlockedSpan, Lane as Events, LibraryKind, TimedCall, Timeline as When,
};
use chase_viz::{Unit, plural, quantity};

use super::groups::thread_name;
use super::single_waits::ends;
use super::{Does, Figures, Lane, Names, Span, Timeline};
use crate::Label;
use queued::Pieces;
use ran::RanPlaces;

/// Most threads of the picture.
const LANES: usize = 500;
/// Most calls and waits: a few hundred kilobytes of the page. What is left out looks busy, so that there should be few.
const SPANS: usize = 20_000;
/// Most times without a processor that are shown one by one. If there are more, each thread's are added up in pieces of time: so
/// many pieces shared by the threads, at least [`PIECES`] each. A piece with waits in it is several spans.
const QUEUED: usize = 2_500;
/// Least pieces of a thread.
const PIECES: usize = 20;
/// A thread whose events are not all there may seem to be busy for longer than it was by such a part of its life.
const MUCH: f64 = 0.05;

/// The timeline of a run; `None` where nothing was kept of when anything happened.
pub(super) fn timeline(figures: Figures<'_>, names: &dyn Names) -> Option<Timeline> {
    let (analysis, groups, when) = (figures.analysis, figures.groups, figures.timeline);
    let events = |lane: &Events| {
        let calls = lane.calls.len() + lane.blocked.len() + lane.preempted.len();
        calls + lane.marks.len() + lane.samples.len()
    };
    if when.lanes.iter().map(events).sum::<usize>() == 0 {
        return None;
    }
    // Threads that something is known of first, groups as elsewhere on the page.
    let mut shown: Vec<&Events> = when.lanes.iter().collect();
    let group = |lane: &Events| groups.of_thread.get(lane.thread).copied().unwrap_or(u32::MAX);
    shown.sort_by_key(|lane| (events(lane) == 0, group(lane), lane.start_ns, lane.thread));
    let left_out = shown.len().saturating_sub(LANES);
    shown.truncate(LANES);
    shown.sort_by_key(|lane| (group(lane), lane.start_ns, lane.thread));
    let mut place = vec![None; when.lanes.len()];
    for (at, lane) in shown.iter().enumerate() {
        place[lane.thread] = Some(at);
    }
    let least_ns = least(&shown);
    let idle = chase_analyzer::blocked(analysis).idle_groups(groups);
    let pieces = pieces(&shown, when.end_ns.as_f64());
    let library_of = library_of(analysis);
    let mut ran = RanPlaces::new(&shown, analysis, names);
    let mut seems_busy_ns = 0.0;
    let mut lane = |lane: &&Events| {
        let filling = Filling {
            analysis,
            names,
            place: &place,
            library_of: &library_of,
            lane,
            waited_in: analysis.threads[lane.thread]
                .apis
                .iter()
                .filter(|api| api.wait_ns.0 > 0)
                .map(|api| api.api)
                .collect(),
            least_ns,
            pieces,
        };
        let row = groups.rows.get(group(lane) as usize);
        let spans = filling.spans();
        seems_busy_ns += filling.seems_busy(&spans).unwrap_or(0.0);
        Lane {
            name: thread_name(&analysis.threads[lane.thread]).into(),
            group: row.map_or("", |row| &*row.label).into(),
            is_idle: idle.get(group(lane) as usize).is_some_and(|&is_idle| is_idle),
            spans,
            ran: ran.samples_of(lane),
        }
    };
    let mark = |mark: &chase_analyzer::Mark| {
        let name = when.marks.get(mark.name as usize).map_or("(mark)", |name| &**name);
        (mark.at_ns.as_f64(), Label::from(name))
    };
    let mut marks: Vec<_> = shown.iter().flat_map(|lane| lane.marks.iter().map(mark)).collect();
    marks.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let lanes = shown.iter().map(&mut lane).collect();
    Some(Timeline {
        end_ns: when.end_ns.as_f64(),
        lanes,
        ran_places: ran.places,
        sample_ns: 1e9 / (analysis.on_cpu.sample_hz.max(1) as f64),
        marks,
        left_out_ns: least_ns as f64,
        seems_busy_ns,
        more_lanes: left_out,
        notes: notes(when, pieces),
    })
}

/// Rows of the table of libraries, by number of the object.
fn library_of(analysis: &Analysis) -> Vec<Option<usize>> {
    let mut rows = vec![None; analysis.objects.len()];
    for (at, row) in analysis.libraries.iter().enumerate() {
        if let Some(place) = rows.get_mut(row.object as usize)
            && row.kind == LibraryKind::Library
        {
            *place = Some(at);
        }
    }
    rows
}

/// Calls and waits that are shorter are left out, ns.
fn least(lanes: &[&Events]) -> u64 {
    let lengths = |lane: &&Events| {
        let calls: Vec<u64> = lane.calls.iter().map(|call| call.ns.0).collect();
        // What follows the wake is a span of its own.
        let blocked = lane.blocked.iter().flat_map(|span| {
            let (woken, runs) = ends(span);
            std::iter::repeat_n(span.ns.0, if woken < runs { 2 } else { 1 })
        });
        calls.into_iter().chain(blocked).collect::<Vec<_>>()
    };
    let mut all: Vec<u64> = lanes.iter().flat_map(lengths).collect();
    if all.len() <= SPANS {
        return 0;
    }
    all.sort_unstable_by(|a, b| b.cmp(a));
    all[SPANS]
}

/// Where times without a processor are very many, the pieces in which they are put together.
fn pieces(lanes: &[&Events], end_ns: f64) -> Option<Pieces> {
    let all: usize = lanes.iter().map(|lane| lane.preempted.len()).sum();
    let concerned = lanes.iter().filter(|lane| !lane.preempted.is_empty()).count();
    (all > QUEUED).then(|| {
        let number = (QUEUED / concerned).max(PIECES);
        Pieces { number, ns: (end_ns / number as f64).max(1.0) }
    })
}

fn notes(when: &When, pieces: Option<Pieces>) -> Vec<Label> {
    let time = |ns: u64| quantity(ns as f64, Unit::Nanoseconds);
    let sum = |of: fn(&Events) -> u64| when.lanes.iter().map(of).fold(0, u64::saturating_add);
    let mut notes = vec![
        "Busy: not known to wait. The thread runs, or could and others have the processors; of short \
         calls and waits nothing was kept. So the sums of the picture have a little more of it than the tables, where \
         waits count however short they are. Of waits of less than a millisecond it is not known when they were: calls of \
         functions that wait begin with so much of them as there was on average."
            .to_owned(),
    ];
    if let Some(limit) = when.limit_ns.filter(|limit| limit.0 > 0) {
        notes.push(format!("Calls of less than {} were not kept.", time(limit.0)));
    }
    if let Some(pieces) = pieces {
        let piece = quantity(pieces.ns, Unit::Nanoseconds);
        notes.push(format!("Waits for a processor are put together in pieces of {piece}."));
    }
    if when.lost_preempted > 0 {
        let times = plural(when.lost_preempted, "wait");
        notes.push(format!(
            "At least {times} for a processor found no room: the thread seems to be busy then."
        ));
    }
    for (number, what) in [
        (
            sum(|lane| lane.overwritten),
            "are not there any more: later ones took their place, and nothing is drawn where it is not known what the thread did",
        ),
        (sum(|lane| lane.lost), "found no room, or were half written at the end"),
    ] {
        if number > 0 {
            notes.push(format!("{} {what}.", plural(number, "event")));
        }
    }
    notes.into_iter().map(Label::from).collect()
}

/// A lane in the making.
struct Filling<'a> {
    analysis: &'a Analysis,
    names: &'a dyn Names,
    /// Place in the picture, by number of the thread.
    place: &'a [Option<usize>],
    /// Row of the table of libraries, by number of the object.
    library_of: &'a [Option<usize>],
    lane: &'a Events,
    /// The APIs in which the thread waits at all, as the tables have it.
    waited_in: HashSet<u32>,
    least_ns: u64,
    pieces: Option<Pieces>,
}

impl Filling<'_> {
    /// What the thread did, without gaps, in order: innermost calls, and over them what is known of waits.
    fn spans(&self) -> Vec<Span> {
        let mut waits: Vec<Span> = Vec::new();
        for span in self.lane.blocked.iter().filter(|span| span.ns.0 >= self.least_ns) {
            self.wait(span, &mut waits);
        }
        let by_time = |a: &Span, b: &Span| a.from_ns.total_cmp(&b.from_ns);
        waits.sort_by(by_time);
        self.preempted(&mut waits);
        waits.sort_by(by_time);
        let mut spans = Vec::new();
        let mut next = waits.iter_mut().peekable();
        // What is left of calls between waits.
        for span in self.calls() {
            let mut from_ns = span.from_ns;
            while let Some(wait) = next.peek_mut().filter(|wait| wait.from_ns < span.to_ns) {
                if wait.does == Does::Queue && wait.text.as_str().is_empty() {
                    // It goes on with that when it runs again.
                    (wait.text, wait.library) = (span.text.clone(), span.library);
                }
                if wait.from_ns > from_ns {
                    spans.push(Span { from_ns, to_ns: wait.from_ns, ..span.clone() });
                }
                from_ns = from_ns.max(wait.to_ns);
                if wait.to_ns > span.to_ns {
                    break;
                }
                next.next();
            }
            if from_ns < span.to_ns {
                spans.push(Span { from_ns, ..span });
            }
        }
        let mut spans = short_waits::within(spans, &waits, &self.waited());
        spans.extend(waits);
        spans.sort_by(by_time);
        self.without_unknown(spans)
    }

    /// How long the thread waited in each function, as the tables have it.
    fn waited(&self) -> HashMap<short_waits::Function, f64> {
        let mut waited = HashMap::new();
        for api in &self.analysis.threads[self.lane.thread].apis {
            let function = (self.function(Some(api.api)), self.library(api.api));
            *waited.entry(function).or_default() += api.wait_ns.as_f64();
        }
        waited
    }

    /// For how much longer the thread seems to be busy, or to wait for a processor, than it was, ns; `None` if that was not measured.
    fn seems_busy(&self, spans: &[Span]) -> Option<f64> {
        let row = &self.analysis.threads[self.lane.thread];
        let ready = row.on_cpu_ns?.as_f64() + row.off_cpu.runnable_ns?.as_f64();
        let drawn = spans.iter().filter(|span| matches!(span.does, Does::Run | Does::Queue));
        let drawn: f64 = drawn.map(|span| span.to_ns - span.from_ns).sum();
        Some((drawn - ready).max(0.0))
    }

    /// Leaves out what seems busy only because later events took the place of those that would tell.
    fn without_unknown(&self, mut spans: Vec<Span>) -> Vec<Span> {
        let life = self.lane.end_ns.as_f64() - self.lane.start_ns.as_f64();
        let is_wrong = self.seems_busy(&spans).is_some_and(|ns| ns > MUCH * life);
        if self.lane.overwritten > 0 && is_wrong {
            // Of calls that ended before the first that is kept, none is there.
            let ended = self.lane.calls.iter().filter(|call| !call.is_open);
            let kept_ns = ended.map(|call| call.start_ns.0 + call.ns.0).min();
            let kept_ns = kept_ns.unwrap_or(self.lane.end_ns.0) as f64;
            spans.retain_mut(|span| {
                let is_unknown = span.does == Does::Run && span.text.as_str().is_empty();
                if is_unknown {
                    span.from_ns = span.from_ns.max(kept_ns.min(span.to_ns));
                }
                span.from_ns < span.to_ns
            });
        }
        spans
    }

    /// The innermost call at each moment.
    fn calls(&self) -> Vec<Span> {
        let end = |call: &TimedCall| (call.start_ns.0 + call.ns.0).min(self.lane.end_ns.0);
        let mut spans = Vec::new();
        let mut at = self.lane.start_ns.0;
        let mut open: Vec<&TimedCall> = Vec::new();
        let mut until = |to: u64, inside: Option<&&TimedCall>| {
            if to > at {
                spans.push(self.call(at, to, inside.copied()));
                at = to;
            }
        };
        for call in self.lane.calls.iter().filter(|call| call.ns.0 >= self.least_ns) {
            while let Some(inner) = open.last().filter(|inner| end(inner) <= call.start_ns.0) {
                until(end(inner), Some(inner));
                open.pop();
            }
            until(call.start_ns.0, open.last());
            open.push(call);
        }
        while let Some(inner) = open.last() {
            until(end(inner), Some(inner));
            open.pop();
        }
        until(self.lane.end_ns.0, None);
        spans
    }

    fn call(&self, from: u64, to: u64, call: Option<&TimedCall>) -> Span {
        // What is not known to wait may be busy; what is known not to have waited is.
        let has_waited = |call: &&TimedCall| self.waited_in.contains(&call.api);
        // The name tells that it waits; what for, the tables know better, as for a semaphore that is no lock.
        let known = |call: &TimedCall| {
            self.analysis.apis.get(call.api as usize)?.waits_for?;
            Some(self.analysis.waits_for(Some(call.api), self.lane.thread as u32))
        };
        let waits_for = call.filter(has_waited).and_then(known);
        Span {
            from_ns: from as f64,
            to_ns: to as f64,
            does: waits_for.map_or(Does::Run, Does::Wait),
            text: self.function(call.map(|call| call.api)),
            library: call.and_then(|call| self.library(call.api)),
            waker: None,
            waker_in: Label::default(),
        }
    }

    /// Times in which others had the processors, put among the waits.
    fn preempted(&self, waits: &mut Vec<Span>) {
        let mut queued = queued::exact(&self.lane.preempted);
        if let Some(pieces) = self.pieces {
            let known: Vec<_> = waits.iter().map(|wait| (wait.from_ns, wait.to_ns)).collect();
            let life = (self.lane.start_ns.as_f64(), self.lane.end_ns.as_f64());
            queued = queued::together(&queued, &known, life, pieces);
        }
        waits.extend(queued.into_iter().map(|(from_ns, to_ns)| Span {
            from_ns,
            to_ns,
            does: Does::Queue,
            text: Label::default(),
            library: None,
            waker: None,
            waker_in: Label::default(),
        }));
    }

    /// A wait, until the thread was woken, as the times of threads have it, and then until it ran again.
    fn wait(&self, span: &BlockedSpan, spans: &mut Vec<Span>) {
        let from = span.start_ns.0;
        let (to, runs) = ends(span);
        let cause = span.is_for(self.analysis, self.lane.thread as u32);
        let waker = span.waker.and_then(|waker| self.place.get(waker).copied().flatten());
        let text = self.function(span.api);
        let library = span.api.and_then(|api| self.library(api));
        let queued = Span {
            from_ns: to as f64,
            to_ns: runs as f64,
            does: Does::Queue,
            text: text.clone(),
            library,
            waker: None,
            waker_in: Label::default(),
        };
        let waited = Span {
            from_ns: from as f64,
            to_ns: to as f64,
            does: Does::Wait(cause),
            text,
            library,
            waker,
            waker_in: if waker.is_some() {
                self.function(span.waker_api)
            } else {
                Label::default()
            },
        };
        spans.extend([waited, queued].into_iter().filter(|span| span.from_ns < span.to_ns));
    }

    fn library(&self, api: u32) -> Option<usize> {
        let object = self.analysis.apis.get(api as usize)?.object;
        self.library_of.get(object as usize).copied().flatten()
    }

    fn function(&self, api: Option<u32>) -> Label {
        api.map_or_else(Label::default, |api| self.names.function(api as usize).into())
    }
}

#[cfg(test)]
mod tests {
    use chase_analyzer::{Ns, SpanCause};

    use super::super::single_waits::SEEN;
    use super::*;

    #[test]
    fn the_shortest_are_left_out_where_there_are_too_many() {
        let lane = |calls: usize| {
            let call = |number: usize| TimedCall {
                api: 0,
                context: 0,
                start_ns: Ns(number as u64 * 1_000_000),
                ns: Ns(number as u64 + 1),
                depth: 0,
                is_open: false,
            };
            Events { calls: (0..calls).map(call).collect(), ..Events::default() }
        };
        assert_eq!(least(&[&lane(SPANS)]), 0);
        // Two of them, and so calls of three nanoseconds are shown.
        assert_eq!(least(&[&lane(SPANS + 2)]), 2);
    }

    #[test]
    fn waits_end_when_the_thread_is_woken_if_one_can_see_it() {
        let ends = |ready_ns| {
            ends(&BlockedSpan {
                start_ns: Ns(1_000_000),
                ns: Ns(3_000_000),
                ready_ns: Ns(ready_ns),
                cause: SpanCause::Threads,
                syscall: None,
                api: None,
                waker: None,
                waker_api: None,
                site: None,
                process: 0,
                waker_site: None,
                waker_name: String::new(),
            })
        };
        assert_eq!(ends(SEEN - 1), (4_000_000, 4_000_000));
        assert_eq!(ends(2_500_000), (1_500_000, 4_000_000));
        // More than it is in all, which can't be.
        assert_eq!(ends(5_000_000), (1_000_000, 4_000_000));
    }
}
