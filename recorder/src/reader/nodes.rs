//! The calling-context trees: where each node is, who called it, and that this is a tree.

use std::ops::Range;

use super::chunks::Chunk;
use super::{Problem, pod_at};
use crate::histogram::PAGE_BUCKETS;
use crate::layout::{
    FRAMED, INHERITED, NONE, Node, ROOT_SLOT, SAMPLED, SAMPLES_SLOT, Samples, UNIT,
};

/// Marks a node whose depth is not known yet.
const UNKNOWN: u32 = u32::MAX;
/// Marks a node on the path that is being followed.
const ON_PATH: u32 = u32::MAX - 1;

/// All contexts of all threads, each thread's in a row, callers before callees.
#[derive(Debug, Default)]
pub(super) struct NodeIndex {
    /// By owner, then by place.
    chunks: Vec<NodeChunk>,
    entries: Entries,
    /// Of the calls of all contexts, in ticks.
    latest_start: u64,
}

/// A chunk of nodes. Positions are in [`UNIT`]s, as in references.
#[derive(Clone, Copy, Debug)]
struct NodeChunk {
    owner: u32,
    first: u32,
    count: u32,
    end: u32,
}

/// A context. `caller` and `scope` number the contexts of the thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) unit: u32,
    /// [`NONE`] where the thread's own code is the caller.
    pub(super) caller: u32,
    pub(super) scope: u32,
}

/// Contexts, in half the memory where numbers are small: there may be very many small recordings.
#[derive(Debug)]
enum Entries {
    /// Those of a recording whose places and numbers are all below 2¹⁶ - 1, which stands for [`NONE`].
    Short(Vec<[u16; 3]>),
    Long(Vec<Entry>),
}

impl Default for Entries {
    fn default() -> Self {
        Self::Short(Vec::new())
    }
}

impl Entries {
    fn len(&self) -> usize {
        match self {
            Self::Short(entries) => entries.len(),
            Self::Long(entries) => entries.len(),
        }
    }

    fn get(&self, at: usize) -> Entry {
        match self {
            Self::Short(entries) => {
                let [unit, caller, scope] = entries[at];
                let caller = if caller == u16::MAX { NONE } else { caller.into() };
                Entry { unit: unit.into(), caller, scope: scope.into() }
            }
            Self::Long(entries) => entries[at],
        }
    }

    fn append(&mut self, mut more: Vec<Entry>) {
        match self {
            // The lower half of `NONE` is what stands for it.
            Self::Short(entries) => {
                entries.extend(more.iter().map(|entry| {
                    [entry.unit, entry.caller, entry.scope].map(|number| number as u16)
                }))
            }
            Self::Long(entries) => entries.append(&mut more),
        }
    }
}

impl NodeIndex {
    pub(super) fn new<'c>(
        chunks: impl Iterator<Item = &'c Chunk>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut chunks: Vec<_> =
            chunks.filter_map(|chunk| NodeChunk::new(chunk, problems)).collect();
        chunks.sort_by_key(|chunk| (chunk.owner, chunk.first));
        chunks.shrink_to_fit();
        // (References to 0 and to what is beyond the file are none.)
        let are_short = chunks.iter().all(|chunk| chunk.end <= u16::MAX.into());
        let entries = if are_short { Entries::default() } else { Entries::Long(Vec::new()) };
        Self { chunks, entries, latest_start: 0 }
    }

    /// Where the chunks of `thread` are in the index.
    pub(super) fn chunks_of(&self, thread: u32) -> Range<usize> {
        let start = self.chunks.partition_point(|chunk| chunk.owner < thread);
        let len = self.chunks[start..].partition_point(|chunk| chunk.owner == thread);
        start..start + len
    }

    /// Numbers of the threads that own chunks, in order, each once.
    pub(super) fn owners(&self) -> impl Iterator<Item = u32> {
        self.chunks.chunk_by(|a, b| a.owner == b.owner).map(|chunks| chunks[0].owner)
    }

    /// Whether a thread has more than its root, which it gets before its record says that it has begun.
    pub(super) fn has_begun(&self, thread: u32) -> bool {
        let nodes = self.chunks[self.chunks_of(thread)].iter().map(|chunk| u64::from(chunk.count));
        nodes.sum::<u64>() > 1
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn latest_start(&self) -> u64 {
        self.latest_start
    }

    pub(super) fn entries(&self, nodes: Range<usize>) -> impl ExactSizeIterator<Item = Entry> {
        nodes.map(|at| self.entries.get(at))
    }

    /// Checks and adds the contexts of one thread, which are in `chunks`; returns where they are in
    /// the index.
    pub(super) fn add_thread(
        &mut self,
        bytes: &[u8],
        thread: u32,
        chunks: Range<usize>,
        problems: &mut Vec<Problem>,
    ) -> Range<usize> {
        let mut nodes = Owned::read(bytes, &self.chunks[chunks]);
        let mut orphans = nodes.orphans;
        if nodes.entries.iter().zip(0..).any(|(node, at)| node.caller != NONE && node.caller >= at)
        {
            orphans += nodes.put_callers_first();
        }
        nodes.keep_contexts();
        for (count, problem) in [
            (orphans, Problem::Orphans { thread, count: orphans }),
            (nodes.bad_pages, Problem::Pages { thread, count: nodes.bad_pages }),
            (nodes.bad_samples, Problem::Samples { thread, count: nodes.bad_samples }),
        ] {
            if count > 0 {
                problems.push(problem);
            }
        }
        self.latest_start = self.latest_start.max(nodes.latest_start);
        let start = self.entries.len();
        self.entries.append(nodes.entries);
        start..self.entries.len()
    }

    /// Counts of the histogram page that `reference` names, if it is in `chunks`.
    pub(super) fn page(
        &self,
        bytes: &[u8],
        chunks: Range<usize>,
        reference: u32,
    ) -> Option<[u64; PAGE_BUCKETS]> {
        let chunk = chunk_of(&self.chunks[chunks], reference)?;
        if !chunk.holds_page(reference) {
            return None;
        }
        pod_at(bytes, reference as usize * UNIT)
    }

    /// Which of these pages in `chunks` was taken first: chunks follow each other in the file, and
    /// pages are taken from the back of a chunk.
    pub(super) fn first_page(&self, chunks: Range<usize>, references: &[u32]) -> Option<usize> {
        let chunks = &self.chunks[chunks];
        let taken = |&(_, &reference): &(usize, &u32)| {
            let chunk = chunk_of(chunks, reference).filter(|chunk| chunk.holds_page(reference));
            chunk.map(|chunk| (chunk.first, std::cmp::Reverse(reference)))
        };
        let pages = references.iter().enumerate().filter(|page| taken(page).is_some());
        pages.min_by_key(taken).map(|(number, _)| number)
    }
}

/// The chunk that a reference leads into.
fn chunk_of(chunks: &[NodeChunk], reference: u32) -> Option<&NodeChunk> {
    let at = chunks.partition_point(|chunk| chunk.first <= reference).checked_sub(1)?;
    chunks.get(at).filter(|chunk| reference < chunk.end)
}

impl NodeChunk {
    fn new(chunk: &Chunk, problems: &mut Vec<Problem>) -> Option<Self> {
        // References can't lead beyond 512 GiB, so nothing there is reachable.
        let first = u32::try_from(chunk.offset / UNIT + 1).ok()?;
        let room = u32::try_from(chunk.len / UNIT - 1).ok()?;
        let end = first.checked_add(room)?;
        if chunk.count > room {
            problems.push(Problem::Count {
                offset: chunk.offset as u64,
                what: "contexts",
                found: chunk.count.into(),
                room: room.into(),
            });
        }
        Some(Self { owner: chunk.owner, first, count: chunk.count.min(room), end })
    }

    fn holds_page(&self, reference: u32) -> bool {
        (self.first + self.count..self.end).contains(&reference)
    }
}

/// What is behind the node at `unit`, if it is one of sampled calls.
pub(super) fn samples_behind(bytes: &[u8], unit: u32, node: &Node) -> Option<Samples> {
    is_sampled(node)
        .then(|| pod_at::<Samples>(bytes, (unit as usize + 1) * UNIT))?
        .filter(|samples| samples.slot == SAMPLES_SLOT)
}

fn is_sampled(node: &Node) -> bool {
    !matches!(node.slot, ROOT_SLOT | SAMPLES_SLOT) && node.slot & (SAMPLED | INHERITED) == SAMPLED
}

/// One thread's nodes while they are checked. Among them are roots, and what is behind nodes of
/// sampled calls: no contexts.
struct Owned {
    entries: Vec<Entry>,
    is_context: Vec<bool>,
    latest_start: u64,
    orphans: u32,
    bad_pages: u32,
    bad_samples: u32,
}

impl Owned {
    fn read(bytes: &[u8], chunks: &[NodeChunk]) -> Self {
        // Number of the first node of each chunk among the thread's nodes.
        let mut numbers = Vec::with_capacity(chunks.len());
        let mut total = 0;
        for chunk in chunks {
            numbers.push(total);
            total += chunk.count;
        }
        let number_of = |reference: u32| {
            let at = chunks.partition_point(|c| c.first <= reference).checked_sub(1)?;
            let within = reference - chunks[at].first;
            (within < chunks[at].count).then(|| numbers[at] + within)
        };
        let node_at = |unit: u32| pod_at::<Node>(bytes, unit as usize * UNIT).filter(|_| unit != 0);

        let mut owned = Self {
            entries: Vec::with_capacity(total as usize),
            is_context: Vec::with_capacity(total as usize),
            latest_start: 0,
            orphans: 0,
            bad_pages: 0,
            bad_samples: 0,
        };
        for chunk in chunks {
            for unit in chunk.first..chunk.first + chunk.count {
                let Some(node) = node_at(unit) else { continue };
                let own = owned.entries.len() as u32;
                let is_context = !matches!(node.slot, ROOT_SLOT | SAMPLES_SLOT);
                let samples = samples_behind(bytes, unit, &node);
                owned.bad_samples += u32::from(is_sampled(&node) && samples.is_none());
                // A scope is a node of the same slot that is its own scope.
                let scope_of = |node: &Node, own: u32| {
                    node_at(node.scope_ref)
                        .filter(|scope| {
                            (scope.slot ^ node.slot) & !(INHERITED | SAMPLED | FRAMED) == 0
                                && scope.scope_ref == node.scope_ref
                        })
                        .and_then(|_| number_of(node.scope_ref))
                        .unwrap_or(own)
                };
                let caller = number_of(node.parent_ref)
                    .zip(node_at(node.parent_ref))
                    // Callees are looked up in scopes only; any other caller stands for its scope.
                    .map(|(number, caller)| scope_of(&caller, number));
                owned.orphans += u32::from(caller.is_none() && is_context);
                let holds_page = |&&page: &&u32| {
                    chunk.holds_page(page)
                        || chunk_of(chunks, page).is_some_and(|other| other.holds_page(page))
                };
                let page_refs = samples.map_or(node.page_refs, |samples| samples.page_refs);
                let pages = page_refs.iter().filter(|&&page| page != 0 && is_context);
                owned.bad_pages +=
                    (pages.clone().count() - pages.filter(holds_page).count()) as u32;
                if is_context {
                    owned.latest_start = owned.latest_start.max(node.last_start_ticks);
                }
                owned.is_context.push(is_context);
                owned.entries.push(Entry {
                    unit,
                    caller: if is_context { caller.unwrap_or(NONE) } else { NONE },
                    scope: if is_context { scope_of(&node, own) } else { own },
                });
            }
        }
        owned
    }

    /// Sorts by depth, as a damaged file may need, and cuts cycles; returns how many were cut.
    fn put_callers_first(&mut self) -> u32 {
        let mut depths = vec![UNKNOWN; self.entries.len()];
        let mut path = Vec::new();
        let mut cycles = 0;
        for start in 0..self.entries.len() {
            let mut at = start;
            let mut depth = loop {
                match depths[at] {
                    UNKNOWN => {
                        depths[at] = ON_PATH;
                        path.push(at);
                        match self.entries[at].caller {
                            NONE => break 0,
                            caller => at = caller as usize,
                        }
                    }
                    ON_PATH => {
                        if let Some(&last) = path.last() {
                            self.entries[last].caller = NONE;
                        }
                        cycles += 1;
                        break 0;
                    }
                    depth => break depth + 1,
                }
            };
            while let Some(at) = path.pop() {
                depths[at] = depth;
                depth += 1;
            }
        }
        let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
        order.sort_by_key(|&at| depths[at as usize]);
        let mut new_numbers = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            new_numbers[old as usize] = new as u32;
        }
        self.entries = order.iter().map(|&old| self.entries[old as usize]).collect();
        self.is_context = order.iter().map(|&old| self.is_context[old as usize]).collect();
        for entry in &mut self.entries {
            entry.scope = new_numbers[entry.scope as usize];
            if entry.caller != NONE {
                entry.caller = new_numbers[entry.caller as usize];
            }
        }
        cycles
    }

    /// Drops all else. Roots stand for the thread itself: what they call has no caller.
    fn keep_contexts(&mut self) {
        let mut next = 0;
        let new_numbers: Vec<u32> = self
            .is_context
            .iter()
            .map(|&is_context| {
                let number = if is_context { next } else { NONE };
                next += u32::from(is_context);
                number
            })
            .collect();
        let mut is_context = self.is_context.iter();
        self.entries.retain(|_| is_context.next() == Some(&true));
        for (own, entry) in (0..).zip(&mut self.entries) {
            // An ancestor's number is smaller; anything else is no ancestor.
            entry.scope = new_numbers[entry.scope as usize].min(own);
            if entry.caller != NONE {
                entry.caller = new_numbers[entry.caller as usize];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{ChunkKind, PAGE};

    fn index_with_chunk_at(offset: usize) -> NodeIndex {
        let kind = ChunkKind::Nodes as u32;
        let chunk = Chunk { offset, len: PAGE, kind, owner: 0, count: 1 };
        NodeIndex::new(std::iter::once(&chunk), &mut Vec::new())
    }

    #[test]
    fn entries_come_out_as_they_went_in_be_they_short_or_long() {
        let most = u32::from(u16::MAX) - 1;
        let short = [[1, NONE, 0], [2, 0, 0], [most, most, most]];
        let long = [[most + 1, most + 1, 70_000], [1 << 30, NONE, 0]];
        let entry = |&[unit, caller, scope]: &[u32; 3]| Entry { unit, caller, scope };
        let numbers = |Entry { unit, caller, scope }: Entry| [unit, caller, scope];
        let mut entries = index_with_chunk_at(PAGE).entries;
        assert!(matches!(entries, Entries::Short(_)));
        entries.append(short.iter().map(entry).collect());
        assert!((0..entries.len()).map(|at| numbers(entries.get(at))).eq(short));
        let mut entries = index_with_chunk_at(PAGE.max(usize::from(u16::MAX) * UNIT)).entries;
        assert!(matches!(entries, Entries::Long(_)));
        entries.append(short.iter().chain(&long).map(entry).collect());
        let all = short.iter().chain(&long).copied();
        assert!((0..entries.len()).map(|at| numbers(entries.get(at))).eq(all));
    }
}
