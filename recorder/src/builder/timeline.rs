//! What a thread does, as an ideal hook would record it.

use std::collections::HashMap;

use bytemuck::Zeroable;

use super::{Builder, SlotId, ThreadId};
use crate::histogram::{PAGE_BUCKETS, bucket_of};
use crate::layout::{
    EVENT_CALL, EVENT_MARK, EventRecord, SQUARES, Samples, SlotClass, THREAD_ENDED,
};
use crate::reader::Histogram;

/// Parts of a tick, the unit of the hook's cost.
const PARTS: u64 = 1024;

/// A thread's tree and the state of its virtual hook. Times are in 1/1024 ticks.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<TreeNode>,
    by_place: HashMap<Place, usize>,
    open: Vec<Frame>,
    now: u64,
    /// Calls by node, and marks by number, as they are kept.
    pub(super) events: Vec<(Option<usize>, EventRecord)>,
}

/// What makes calls belong to one context.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    caller: Option<usize>,
    slot: SlotId,
    inherited: bool,
    kind: Kind,
}

/// How the calls of a context are timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    #[default]
    All,
    Sampled,
    Framed,
}

/// A context. Numbers are those of the tree, in the order of creation.
#[derive(Clone, Debug)]
pub(super) struct TreeNode {
    pub(super) slot: SlotId,
    pub(super) inherited: bool,
    pub(super) caller: Option<usize>,
    pub(super) scope: usize,
    depth: usize,
    pub(super) calls: u64,
    total: u64,
    last_start: u64,
    pub(super) unwound: u32,
    pub(super) histogram: Histogram,
    /// Pages of the histogram in the order in which their first duration came.
    pub(super) pages: Vec<usize>,
    pub(super) samples: Option<Samples>,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
struct Frame {
    node: usize,
    start: u64,
}

impl Tree {
    pub(super) fn now_ticks(&self) -> u64 {
        self.now / PARTS
    }

    /// The node for `slot` where the thread is now.
    fn node(&mut self, slot: SlotId, inherited: bool, depth_limit: usize) -> usize {
        self.node_of(slot, inherited, Kind::All, depth_limit)
    }

    fn node_of(&mut self, slot: SlotId, inherited: bool, kind: Kind, depth_limit: usize) -> usize {
        let caller = self.open.last().map(|frame| self.nodes[frame.node].scope);
        let new = self.nodes.len();
        let at = *self.by_place.entry(Place { caller, slot, inherited, kind }).or_insert(new);
        if at == new {
            let depth = caller.map_or(0, |caller| self.nodes[caller].depth + 1);
            let mut callers = std::iter::successors(caller, |&caller| self.nodes[caller].caller);
            let folded = (depth >= depth_limit)
                .then(|| callers.find(|&caller| self.nodes[caller].slot == slot))
                .flatten();
            // Framed calls are in the scope of the timed ones beside them.
            let timed = Place { caller, slot, inherited, kind: Kind::All };
            let timed = self.by_place.get(&timed).filter(|_| kind == Kind::Framed);
            let beside = timed.map(|&timed| self.nodes[timed].scope);
            self.nodes.push(TreeNode {
                slot,
                inherited,
                caller,
                scope: beside.or(folded).unwrap_or(new),
                depth,
                calls: 0,
                total: 0,
                last_start: 0,
                unwound: 0,
                histogram: Histogram::default(),
                pages: Vec::new(),
                samples: (kind != Kind::All).then(Samples::zeroed),
                kind,
            });
        }
        at
    }
}

impl TreeNode {
    fn record(&mut self, ticks: u64, times: u64) {
        let page = bucket_of(ticks) / PAGE_BUCKETS;
        if !self.pages.contains(&page) {
            self.pages.push(page);
        }
        self.histogram.record(ticks, times);
    }

    pub(super) fn total_ticks(&self) -> u64 {
        self.total / PARTS
    }

    pub(super) fn last_start_ticks(&self) -> u64 {
        self.last_start / PARTS
    }
}

/// Plays what a thread does, from where it is. Durations are in ticks.
#[derive(Debug)]
pub struct Timeline<'b> {
    builder: &'b mut Builder,
    thread: usize,
}

impl<'b> Timeline<'b> {
    pub(super) fn new(builder: &'b mut Builder, thread: ThreadId) -> Self {
        let thread = thread.0 as usize;
        let at = &mut builder.threads[thread];
        at.tree.now = at.tree.now.max(at.record.start_ticks * PARTS);
        Self { builder, thread }
    }

    /// Runs code of its own, or of the function that it is in.
    pub fn work(&mut self, ticks: u64) -> &mut Self {
        self.tree().now += ticks * PARTS;
        self
    }

    /// Calls a timed function and goes on inside it.
    pub fn enter(&mut self, slot: SlotId) -> &mut Self {
        assert_ne!(self.builder.slot_class(slot), SlotClass::Counted as u16, "use `count`");
        let depth_limit = self.builder.depth_limit;
        let (inside, outside) = self.cost();
        let tree = self.tree();
        let node = tree.node(slot, false, depth_limit);
        tree.now += outside;
        let start = tree.now;
        tree.nodes[node].calls += 1;
        tree.nodes[node].last_start = start;
        tree.open.push(Frame { node, start });
        tree.now += inside;
        self
    }

    /// Is inside a function that it called before a fork made this process.
    pub fn inherit(&mut self, slot: SlotId) -> &mut Self {
        let depth_limit = self.builder.depth_limit;
        let tree = self.tree();
        let node = tree.node(slot, true, depth_limit);
        let start = tree.now;
        tree.nodes[node].last_start = start;
        tree.open.push(Frame { node, start });
        self
    }

    /// Returns from the function it is in.
    pub fn leave(&mut self) -> &mut Self {
        let limit = self.builder.event_limit;
        let now = self.tree().now;
        let called = self.tree().open.last().map(|frame| frame.node);
        let (node, duration) = self.close();
        let ticks = duration / PARTS;
        node.record(ticks, 1);
        if limit.is_some_and(|limit| ticks >= limit) {
            let start_ticks = (now - duration) / PARTS;
            let event =
                EventRecord { start_ticks, ticks, kind: EVENT_CALL, ..EventRecord::zeroed() };
            self.tree().events.push((called, event));
        }
        self
    }

    /// An exception leaves the function it is in.
    pub fn unwind(&mut self) -> &mut Self {
        let (node, duration) = self.close();
        node.histogram.raise_max(duration / PARTS);
        node.unwound += 1;
        self
    }

    /// A call that takes `ticks`.
    pub fn call(&mut self, slot: SlotId, ticks: u64) -> &mut Self {
        self.enter(slot).work(ticks).leave()
    }

    /// The same call `times` times (at least once), at the price of one.
    pub fn calls(&mut self, slot: SlotId, ticks: u64, times: u64) -> &mut Self {
        let more = times - 1;
        self.call(slot, ticks);
        let depth_limit = self.builder.depth_limit;
        let (inside, outside) = self.cost();
        let tree = self.tree();
        let at = tree.node(slot, false, depth_limit);
        let each = ticks * PARTS + inside;
        tree.now += more * (each + outside);
        let last_start = tree.now - each;
        let node = &mut tree.nodes[at];
        node.calls += more;
        node.total += more * each;
        node.last_start = last_start;
        node.record(each / PARTS, more);
        self
    }

    /// A block of `weight` calls of `ticks` each, one of which is timed and stands for all.
    pub fn block(&mut self, slot: SlotId, ticks: u64, weight: u64) -> &mut Self {
        let depth_limit = self.builder.depth_limit;
        let (inside, _) = self.cost();
        let header = &self.builder.header;
        let (counted, sampled) = (header.cost_counted, header.cost_sampled);
        let tree = self.tree();
        let at = tree.node_of(slot, false, Kind::Sampled, depth_limit);
        let start = tree.now + sampled;
        tree.now = start + inside + ticks * PARTS + (weight - 1) * (ticks * PARTS + counted);
        let each = ticks * PARTS + inside;
        let node = &mut tree.nodes[at];
        node.calls += weight;
        node.total += weight * each;
        node.last_start = start;
        node.record(each / PARTS, weight);
        if let Some(samples) = &mut node.samples {
            let (pairs, ticks) = (weight * (weight - 1), each / PARTS);
            samples.begun += 1;
            samples.ended += 1;
            samples.weight += weight;
            samples.pairs += pairs;
            samples.pairs_ticks += pairs * ticks;
            let squares = u128::from(pairs * ticks) * u128::from(ticks) / u128::from(SQUARES);
            let squares = u64::try_from(squares).unwrap_or(u64::MAX);
            samples.pairs_squares = samples.pairs_squares.saturating_add(squares);
        }
        self
    }

    /// Calls of a slot that was sampled, after the latest block: none of them was timed.
    pub fn rest(&mut self, slot: SlotId, ticks: u64, calls: u32) -> &mut Self {
        let depth_limit = self.builder.depth_limit;
        let counted = self.builder.header.cost_counted;
        let tree = self.tree();
        let at = tree.node_of(slot, false, Kind::Sampled, depth_limit);
        tree.now += u64::from(calls) * (ticks * PARTS + counted);
        if let Some(samples) = &mut tree.nodes[at].samples {
            samples.adjust += calls as i32;
        }
        self
    }

    /// A call of a slot whose calls get frames and are not all timed, of which this one stands for
    /// `weight`, or is not timed: 0. A timed one in the same context came before.
    pub fn framed(&mut self, slot: SlotId, ticks: u64, weight: u64) -> &mut Self {
        let depth_limit = self.builder.depth_limit;
        let (inside, _) = self.cost();
        let header = &self.builder.header;
        let (framed, sampled) = (header.cost_framed, header.cost_sampled);
        let tree = self.tree();
        let at = tree.node_of(slot, false, Kind::Framed, depth_limit);
        let each = ticks * PARTS + inside;
        let node = &mut tree.nodes[at];
        node.calls += 1;
        let Some(samples) = node.samples.as_mut().filter(|_| weight > 0) else {
            tree.now += ticks * PARTS + framed;
            return self;
        };
        samples.begun += 1;
        samples.ended += 1;
        samples.weight += weight;
        node.total += weight * each;
        node.last_start = tree.now + sampled;
        node.record(each / PARTS, weight);
        tree.now += sampled + each;
        self
    }

    /// A call as in [`Timeline::framed`] that is not timed, and does nothing but call `inner`, which is and takes `ticks`.
    pub fn framed_around(&mut self, slot: SlotId, inner: SlotId, ticks: u64) -> &mut Self {
        let depth_limit = self.builder.depth_limit;
        let framed = self.builder.header.cost_framed;
        let tree = self.tree();
        let at = tree.node_of(slot, false, Kind::Framed, depth_limit);
        tree.nodes[at].calls += 1;
        tree.now += framed;
        // What is called inside is in the scope of the timed calls.
        let node = tree.node(slot, false, depth_limit);
        let start = tree.now;
        tree.open.push(Frame { node, start });
        self.call(inner, ticks);
        self.tree().open.pop();
        self
    }

    /// A sample as in [`Timeline::framed`], of `ticks`, in which the thread did not run for `away` more: it only stands for
    /// itself, and the others of its block are taken to be as it would have been.
    pub fn framed_interrupted(
        &mut self,
        slot: SlotId,
        ticks: u64,
        away: u64,
        weight: u64,
    ) -> &mut Self {
        self.framed(slot, ticks, weight);
        let depth_limit = self.builder.depth_limit;
        let (inside, _) = self.cost();
        let tree = self.tree();
        let at = tree.node_of(slot, false, Kind::Framed, depth_limit);
        tree.now += away * PARTS;
        let node = &mut tree.nodes[at];
        node.total += away * PARTS;
        node.histogram.raise_max(ticks + away + inside / PARTS);
        self
    }

    /// A call that is counted and not timed.
    pub fn count(&mut self, slot: SlotId) -> &mut Self {
        let depth_limit = self.builder.depth_limit;
        let tree = self.tree();
        let node = tree.node(slot, false, depth_limit);
        tree.nodes[node].calls += 1;
        self
    }

    /// The thread marks this moment.
    pub fn mark(&mut self, name: &str) -> &mut Self {
        if self.builder.event_limit.is_none() {
            return self;
        }
        let marks = &mut self.builder.marks;
        let known = marks.iter().position(|mark| mark == name);
        let number = known.unwrap_or_else(|| {
            marks.push(name.into());
            marks.len() - 1
        });
        let start_ticks = self.tree().now_ticks();
        let (subject, kind) = (number as u32 + 1, EVENT_MARK);
        let event = EventRecord { start_ticks, subject, kind, ..EventRecord::zeroed() };
        self.tree().events.push((None, event));
        self
    }

    /// The thread ends now.
    pub fn end(&mut self) -> &mut Self {
        let thread = &mut self.builder.threads[self.thread];
        thread.record.state = THREAD_ENDED;
        thread.record.end_ticks = thread.tree.now_ticks();
        self
    }

    fn close(&mut self) -> (&mut TreeNode, u64) {
        let tree = self.tree();
        let frame = tree.open.pop().expect("no call is open");
        let duration = tree.now - frame.start;
        let node = &mut tree.nodes[frame.node];
        node.total += duration;
        (node, duration)
    }

    fn tree(&mut self) -> &mut Tree {
        &mut self.builder.threads[self.thread].tree
    }

    fn cost(&self) -> (u64, u64) {
        (self.builder.header.cost_inside, self.builder.header.cost_outside)
    }
}
