//! Threads and their contexts.

use std::borrow::Cow;
use std::ops::Range;

use super::chunks::Chunk;
use super::nodes::{Entry, NodeIndex, samples_behind};
use super::{
    Arguments, Events, Histogram, Origin, Problem, Recording, Text, arguments, callers, pod_at,
    text, texts,
};
use crate::layout::{
    CallerRow, FRAMED, Header, INHERITED, NONE, Node, OffCpuRow, SAMPLED, Samples, THREAD_ENDED,
    THREAD_FOUND, THREAD_FREE, THREAD_LEFT_OUT, THREAD_LIVE, ThreadRecord, UNIT,
};

/// A thread and where its contexts are.
#[derive(Debug)]
pub(super) struct ThreadEntry {
    pub(super) index: u32,
    record: ThreadRecord,
    /// Its chunks of nodes, and its contexts, in the index.
    pub(super) chunks: Range<usize>,
    pub(super) nodes: Range<usize>,
}

/// All threads by number: those with a record, and those that only own contexts. Adds the ids of threads that were left out to
/// `left_out`.
pub(super) fn find<'c>(
    bytes: &[u8],
    header: &Header,
    chunks: impl Iterator<Item = &'c Chunk>,
    nodes: &NodeIndex,
    left_out: &mut Vec<u32>,
    problems: &mut Vec<Problem>,
) -> Vec<ThreadEntry> {
    let mut records = Vec::new();
    // Those that were never the program's, and were taken back, or were not to be recorded: all-zero ones have no number of
    // their own.
    let mut withdrawn = Vec::new();
    for chunk in chunks {
        for offset in (chunk.offset + UNIT..chunk.offset + chunk.len).step_by(UNIT) {
            let Some(record) = pod_at::<ThreadRecord>(bytes, offset) else { continue };
            let mut bad = |what, found| {
                problems.push(Problem::ThreadRecord { offset: offset as u64, what, found });
            };
            match record.state {
                THREAD_FREE if record.tid != 0 => {
                    withdrawn.push(record.index);
                    if record.origin == THREAD_LEFT_OUT {
                        left_out.push(record.tid);
                    }
                }
                THREAD_FREE => {}
                THREAD_LIVE | THREAD_ENDED if record.index == NONE => {
                    bad("number", record.index);
                }
                THREAD_LIVE | THREAD_ENDED => records.push((offset, record)),
                state => bad("state", state),
            }
        }
    }
    records.sort_by_key(|(_, record)| record.index);
    records.dedup_by(|(offset, later), (_, earlier)| {
        let twice = later.index == earlier.index;
        if twice {
            let (offset, found) = (*offset as u64, later.index);
            problems.push(Problem::ThreadRecord { offset, what: "a number in use,", found });
        }
        twice
    });
    let known = records.len();
    for owner in nodes.owners().filter(|owner| !withdrawn.contains(owner)) {
        // (A thread may have been about to begin when the process was killed, or when its recording was read.)
        if records[..known].binary_search_by_key(&owner, |(_, record)| record.index).is_err()
            && nodes.has_begun(owner)
        {
            problems.push(Problem::ThreadMissing { thread: owner });
            records.push((0, unknown_thread(header, owner)));
        }
    }
    records.sort_by_key(|(_, record)| record.index);
    let mut threads = Vec::with_capacity(records.len());
    threads.extend(records.into_iter().map(|(_, record)| {
        let (index, chunks) = (record.index, nodes.chunks_of(record.index));
        ThreadEntry { index, record, chunks, nodes: 0..0 }
    }));
    threads
}

fn unknown_thread(header: &Header, index: u32) -> ThreadRecord {
    ThreadRecord {
        state: THREAD_LIVE,
        index,
        origin: THREAD_FOUND,
        start_ticks: header.clock_start.ticks,
        creator: NONE,
        ..bytemuck::Zeroable::zeroed()
    }
}

/// One thread.
#[derive(Clone, Copy, Debug)]
pub struct Thread<'r> {
    recording: &'r Recording<'r>,
    entry: &'r ThreadEntry,
}

impl<'r> Thread<'r> {
    pub(super) fn new(recording: &'r Recording<'_>, entry: &'r ThreadEntry) -> Self {
        Self { recording, entry }
    }

    /// The record as it stands in the file. A thread whose record is lost gets one that says no
    /// more than its number.
    #[must_use]
    pub fn record(&self) -> &'r ThreadRecord {
        &self.entry.record
    }

    /// Name, as of `prctl(PR_GET_NAME)`.
    #[must_use]
    pub fn name(&self) -> Cow<'r, str> {
        text(&self.entry.record.name)
    }

    /// What was seen of its creation, if that was seen.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        self.recording.origins.get(&self.recording.bytes, self.entry.index)
    }

    /// What the hook's share of a sample was that only the caller sees, in ticks: the mean, if it was measured.
    #[must_use]
    pub fn sample_cost(&self) -> Option<f64> {
        let ThreadRecord { samples, samples_ticks, .. } = self.entry.record;
        (samples > 0).then(|| samples_ticks as f64 / samples as f64)
    }

    /// Whether it asked how long it was off the CPU: then [`off_cpu`](Self::off_cpu) has all but what was too short.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.entry.record.asks > 0
    }

    /// How long it was off the CPU where, in no order; there may be several rows of a node, and rows of nodes that it
    /// does not have.
    pub fn off_cpu(&self) -> impl Iterator<Item = OffCpuRow> + use<'r> {
        let recording = self.recording;
        let rows = self.own_chunks(&recording.off_cpu).iter().flat_map(move |chunk| {
            let contents = chunk.contents(&recording.bytes);
            let size = size_of::<OffCpuRow>();
            (0..(contents.len() / size).min(chunk.count as usize))
                .filter_map(move |place| pod_at::<OffCpuRow>(contents, place * size))
        });
        rows.filter(|row| row.node_ref != 0)
    }

    /// What arguments of its calls were, by context, in no order; there may be rows of nodes that it does not have.
    pub fn arguments(&self) -> impl Iterator<Item = Arguments> + use<'r> {
        arguments::arguments(&self.recording.bytes, self.own_chunks(&self.recording.arguments))
    }

    /// What texts its long calls were passed, by context, in no order; there may be several rows of a context with the same
    /// text, and rows of nodes that it does not have.
    pub fn texts(&self) -> impl Iterator<Item = Text<'r>> + use<'r> {
        let recording = self.recording;
        let kept = texts::texts(&recording.bytes, self.own_chunks(&recording.texts));
        kept.chain(texts::others(&recording.bytes, self.own_chunks(&recording.arguments)))
    }

    /// From where its sampled calls were made, by context, in no order; there may be several rows of a context with the same
    /// address, and rows of nodes that it does not have.
    pub fn callers(&self) -> impl Iterator<Item = CallerRow> + use<'r> {
        callers::callers(&self.recording.bytes, self.own_chunks(&self.recording.callers))
    }

    /// The chunks that belong to it, of those sorted by owner.
    fn own_chunks(&self, chunks: &'r [Chunk]) -> &'r [Chunk] {
        let owner = self.entry.index;
        let first = chunks.partition_point(|chunk| chunk.owner < owner);
        let end = chunks.partition_point(|chunk| chunk.owner <= owner);
        &chunks[first..end]
    }

    /// What is kept of its single calls and marks.
    #[must_use]
    pub fn events(&self) -> Events {
        self.recording.events.of_thread(&self.recording.bytes, self.entry.index)
    }

    /// Its contexts, callers before callees, numbered from 0 in this order.
    pub fn contexts(&self) -> impl ExactSizeIterator<Item = Context<'r>> + use<'r> {
        let thread = *self;
        let entries = self.recording.nodes.entries(self.entry.nodes.clone());
        entries.enumerate().map(move |(number, entry)| {
            let Entry { unit, caller, scope } = entry;
            // The index holds only places where a node was read before.
            let bytes = &thread.recording.bytes;
            let node =
                pod_at(bytes, unit as usize * UNIT).unwrap_or_else(bytemuck::Zeroable::zeroed);
            let samples = samples_behind(bytes, unit, &node);
            let caller = (caller != NONE).then_some(caller);
            Context { number: number as u32, reference: unit, caller, scope, node, samples, thread }
        })
    }
}

/// One context of one thread. Roots are not among them: they stand for the thread itself.
#[derive(Clone, Copy, Debug)]
pub struct Context<'r> {
    /// Its number in the thread.
    pub number: u32,
    /// Where its node is, as `_ref` fields and `.syscalls` files say it.
    pub reference: u32,
    /// Number of the context that it was called in, always smaller than its own; `None` if the
    /// thread's own code called.
    pub caller: Option<u32>,
    /// Number of the context that its callees are in: its own, or, where recursion was folded,
    /// that of an earlier context of the same slot.
    pub scope: u32,
    node: Node,
    samples: Option<Samples>,
    thread: Thread<'r>,
}

impl Context<'_> {
    /// The node as it stands in the file.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Number of the slot that was called.
    #[must_use]
    pub fn slot(&self) -> u32 {
        self.node.slot & !(INHERITED | SAMPLED | FRAMED)
    }

    /// What is known of the samples, where not all calls were timed.
    #[must_use]
    pub fn samples(&self) -> Option<&Samples> {
        self.samples.as_ref()
    }

    /// Whether only some of its calls were timed.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        !self.is_inherited() && self.node.slot & SAMPLED != 0
    }

    /// Whether its calls were each counted in this context, though not all were timed.
    #[must_use]
    pub fn is_framed(&self) -> bool {
        self.is_sampled() && self.node.slot & FRAMED != 0
    }

    /// Calls begun. Where they were sampled and not framed, exact only when summed over the contexts
    /// of a thread and slot.
    #[must_use]
    pub fn calls(&self) -> u64 {
        let adjust = self.samples.map_or(0, |samples| i64::from(samples.adjust));
        self.node.calls.saturating_add_signed(adjust)
    }

    /// Whether there may have been other calls, of which nothing was seen: only older versions have recorded in that way.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.thread.recording.twins.is_incomplete(self.slot())
    }

    /// Whether it stands for a call that was open when a fork made the process; see [`INHERITED`].
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.node.slot & INHERITED != 0
    }

    /// Durations of its completed calls, in ticks, each with its weight, the hook's inside cost included.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::default();
        self.read_histogram(&mut histogram);
        histogram
    }

    /// Like [`Self::histogram`], into one whose memory is used again.
    pub fn read_histogram(&self, histogram: &mut Histogram) {
        histogram.clear();
        let (recording, chunks) = (self.thread.recording, &self.thread.entry.chunks);
        let page_refs = self.samples.map_or(self.node.page_refs, |samples| samples.page_refs);
        for (number, &reference) in (0_u8..).zip(&page_refs) {
            if reference != 0
                && let Some(counts) =
                    recording.nodes.page(&recording.bytes, chunks.clone(), reference)
            {
                histogram.add_page(number, &counts);
            }
        }
        histogram.raise_max(self.node.max_ticks);
    }

    /// The page of the histogram that counts the first call that was completed: pages are taken
    /// when their first duration arrives. `None` if no call was completed.
    #[must_use]
    pub fn first_page(&self) -> Option<usize> {
        let (chunks, pages) = (self.thread.entry.chunks.clone(), &self.node.page_refs);
        self.thread.recording.nodes.first_page(chunks, pages)
    }
}
