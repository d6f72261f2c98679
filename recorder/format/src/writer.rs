//! Lays out structures in memory that the caller has mapped and made writable.
//!
//! The caller maps the file, sets how many bytes of it may be written ([`Writer::set_room`]) and holds the lock that
//! [`layout`](crate::layout) mentions: a `Writer` is used by one thread at a time.

use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::layout::{
    CHUNK_MAGIC, COMMITTED, ChunkHeader, ChunkKind, Header, MAGIC, Node, PAGE, SAMPLES_SLOT, UNIT,
};

/// Appends chunks to a recording in memory.
#[derive(Debug)]
pub struct Writer {
    base: *mut u8,
    committed: usize,
    room: usize,
}

impl Writer {
    /// Returns a writer that does nothing until it is replaced by [`Writer::begin`].
    #[must_use]
    pub const fn unopened() -> Self {
        Self { base: ptr::null_mut(), committed: 0, room: 0 }
    }

    /// Begins a recording at `base` with `header`, whose `magic` and `committed` are filled in.
    ///
    /// # Safety
    /// `base` is aligned to [`PAGE`]; the `room` bytes from there on are zero and writable, and used by nobody else
    /// as long as the writer, or anything that it returns, is used. `room` is at least [`PAGE`].
    pub unsafe fn begin(base: *mut u8, room: usize, header: &Header) -> Self {
        let mut header = *header;
        header.magic = [0; 8];
        header.committed = PAGE as u64;
        // SAFETY: the header fits into the first page, which the caller vouches for; the magic is the first field,
        // and stored after the rest.
        unsafe {
            base.cast::<Header>().write(header);
            AtomicU64::from_ptr(base.cast()).store(u64::from_le_bytes(MAGIC), Ordering::Release);
        }
        Self { base, committed: PAGE, room }
    }

    /// Returns how many bytes of the file hold the header and chunks.
    #[must_use]
    pub fn committed(&self) -> usize {
        self.committed
    }

    /// Returns how many bytes of the file may be written.
    #[must_use]
    pub fn room(&self) -> usize {
        self.room
    }

    /// Sets how many bytes of the file may be written.
    ///
    /// # Safety
    /// As for [`Writer::begin`].
    pub unsafe fn set_room(&mut self, room: usize) {
        self.room = room;
    }

    /// Returns the length of a chunk for `contents` bytes.
    #[must_use]
    pub const fn chunk_len(contents: usize) -> usize {
        (size_of::<ChunkHeader>() + contents).next_multiple_of(PAGE)
    }

    /// Appends a chunk of `len` bytes (a positive multiple of [`PAGE`]) whose contents are zero and not yet readable.
    /// Returns `None` if there is no room for it, or if `len` is invalid.
    pub fn chunk(&mut self, kind: ChunkKind, owner: u32, len: usize) -> Option<Chunk> {
        if len == 0 || !len.is_multiple_of(PAGE) || len > self.room.saturating_sub(self.committed) {
            return None;
        }
        // SAFETY: the bytes from `committed` to `room` are ours and zero (`begin`, `set_room`). `committed` is
        // changed after the header is complete, so readers never see an incomplete one.
        unsafe {
            let header = self.base.add(self.committed).cast::<ChunkHeader>();
            (*header).magic = CHUNK_MAGIC;
            (*header).kind = kind as u32;
            (*header).len = len as u64;
            (*header).owner = owner;
            self.committed += len;
            let committed = ptr::addr_of_mut!((*self.base.cast::<Header>()).committed);
            AtomicU64::from_ptr(committed).store(self.committed as u64, Ordering::Release);
            Some(Chunk { header, len })
        }
    }
}

/// A chunk being filled.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    header: *mut ChunkHeader,
    len: usize,
}

impl Chunk {
    /// Returns the start of the contents.
    #[must_use]
    pub fn contents(&self) -> *mut u8 {
        // SAFETY: a chunk is at least one page, and the header is smaller than that.
        unsafe { self.header.add(1).cast() }
    }

    /// Makes the contents readable, which are `count` entries.
    pub fn commit(&self, count: usize) {
        self.set_count(count);
        // SAFETY: the header is ours until the recording ends.
        unsafe { AtomicU32::from_ptr(ptr::addr_of_mut!((*self.header).state)) }
            .store(COMMITTED, Ordering::Release);
    }

    /// Makes `count` entries readable.
    pub fn set_count(&self, count: usize) {
        // SAFETY: as in `commit`.
        unsafe { AtomicU32::from_ptr(ptr::addr_of_mut!((*self.header).count)) }
            .store(count as u32, Ordering::Release);
    }
}

/// The space of one thread's tree: nodes grow from the front of a chunk, and histogram pages from its back. When they
/// meet, a new chunk is needed.
#[derive(Debug)]
pub struct NodeSpace {
    chunk: Option<Chunk>,
    nodes: usize,
    units_left: usize,
}

impl NodeSpace {
    /// Returns a space without a chunk.
    #[must_use]
    pub const fn none() -> Self {
        Self { chunk: None, nodes: 0, units_left: 0 }
    }

    /// Continues in `chunk`, of kind [`ChunkKind::Nodes`]; the rest of the previous chunk stays unused.
    pub fn enter(&mut self, chunk: Chunk) {
        chunk.commit(0);
        self.nodes = 0;
        self.units_left = chunk.len / UNIT - 1;
        self.chunk = Some(chunk);
    }

    /// Adds a node; returns `None` if the chunk is full.
    pub fn node(&mut self, parent_ref: u32, slot: u32) -> Option<*mut Node> {
        let chunk = self.chunk?;
        self.units_left = self.units_left.checked_sub(1)?;
        // SAFETY: `units_left` counts the units between the last node and the first page, all of which are ours and
        // zero.
        let node = unsafe { chunk.contents().cast::<Node>().add(self.nodes) };
        // SAFETY: as above.
        unsafe {
            (*node).parent_ref = parent_ref;
            (*node).slot = slot;
        }
        self.nodes += 1;
        Some(node)
    }

    /// Adds a node of sampled calls, followed by its [`Samples`](crate::layout::Samples); returns `None` if the chunk
    /// is full.
    pub fn sampled_node(&mut self, parent_ref: u32, slot: u32) -> Option<*mut Node> {
        if self.units_left < 2 {
            return None;
        }
        let node = self.node(parent_ref, slot);
        self.node(0, SAMPLES_SLOT);
        node
    }

    /// Makes the nodes added so far readable.
    pub fn publish(&self) {
        if let Some(chunk) = self.chunk {
            chunk.set_count(self.nodes);
        }
    }

    /// Adds a zeroed histogram page; returns `None` if the chunk is full.
    pub fn page(&mut self) -> Option<*mut u64> {
        let chunk = self.chunk?;
        self.units_left = self.units_left.checked_sub(1)?;
        let unit = self.nodes + self.units_left;
        // SAFETY: as in `node`; the page is the last free unit.
        Some(unsafe { chunk.contents().add(unit * UNIT).cast() })
    }
}

/// The space of one thread's rows of arguments, which follow each other.
#[derive(Debug)]
pub struct RowSpace {
    chunk: Option<Chunk>,
    used: usize,
    /// How many units were taken, of all chunks.
    total: usize,
}

impl RowSpace {
    /// Returns a space without a chunk.
    #[must_use]
    pub const fn none() -> Self {
        Self { chunk: None, used: 0, total: 0 }
    }

    /// Takes the next `units` units, which are zero, of `most` in all. They are readable after [`RowSpace::publish`]. If the chunk is
    /// full, continues in one of the length that `more` is called with: one page at first, more for a thread with many rows.
    /// Returns `None` if there is none.
    pub fn take(
        &mut self,
        units: usize,
        most: usize,
        more: impl FnOnce(usize) -> Option<Chunk>,
    ) -> Option<*mut u8> {
        if self.total + units > most {
            return None;
        }
        let has_room = |chunk: &Chunk, used| used + units < chunk.len / UNIT;
        if !self.chunk.is_some_and(|chunk| has_room(&chunk, self.used)) {
            let len = (self.total * UNIT).next_multiple_of(PAGE).clamp(PAGE, 16 * PAGE);
            let chunk = more(len)?;
            chunk.commit(0);
            (self.chunk, self.used) = (Some(chunk), 0);
        }
        let chunk = self.chunk.filter(|chunk| has_room(chunk, self.used))?;
        // SAFETY: the units are in the chunk, behind those in use.
        let place = unsafe { chunk.contents().add(self.used * UNIT) };
        (self.used, self.total) = (self.used + units, self.total + units);
        Some(place)
    }

    /// Makes the units taken so far readable.
    pub fn publish(&self) {
        if let Some(chunk) = self.chunk {
            chunk.set_count(self.used);
        }
    }
}

/// Returns how many records of `size` bytes fit into a chunk of `len` bytes.
#[must_use]
pub const fn records_per_chunk(len: usize, size: usize) -> usize {
    (len - size_of::<ChunkHeader>()) / size
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[repr(align(4096))]
    struct Memory([u8; 4 * PAGE]);

    fn memory() -> std::boxed::Box<Memory> {
        std::boxed::Box::new(Memory([0; 4 * PAGE]))
    }

    fn writer(memory: &mut Memory) -> Writer {
        // SAFETY: all-zero is a valid header.
        let header: Header = unsafe { core::mem::zeroed() };
        // SAFETY: the memory is zero, aligned, and the test's alone.
        unsafe { Writer::begin(memory.0.as_mut_ptr(), memory.0.len(), &header) }
    }

    #[test]
    fn space_for_nothing_takes_nothing() {
        let mut space = NodeSpace::none();
        assert!(space.node(0, 1).is_none());
        assert!(space.sampled_node(0, 1).is_none());
        assert!(space.page().is_none());
        space.publish();
    }

    #[test]
    fn a_writer_that_has_not_begun_gives_no_chunk() {
        let mut writer = Writer::unopened();
        assert!(writer.chunk(ChunkKind::Nodes, 0, PAGE).is_none());
        assert!(writer.chunk(ChunkKind::Nodes, 0, 0).is_none());
    }

    #[test]
    fn chunks_have_whole_pages_as_long_as_there_are_any() {
        let mut memory = memory();
        let mut writer = writer(&mut memory);
        assert!(writer.chunk(ChunkKind::Nodes, 0, 0).is_none());
        assert!(writer.chunk(ChunkKind::Nodes, 0, PAGE - 1).is_none());
        assert!(writer.chunk(ChunkKind::Nodes, 0, 3 * PAGE).is_some());
        assert!(writer.chunk(ChunkKind::Nodes, 0, PAGE).is_none());
        assert_eq!(writer.committed(), writer.room());
    }

    #[test]
    fn rows_are_behind_each_other_in_as_many_chunks_as_they_need() {
        const UNITS: usize = 3;
        let per_page = (PAGE / UNIT - 1) / UNITS;
        let mut memory = memory();
        let mut writer = writer(&mut memory);
        let mut space = RowSpace::none();
        let mut lengths = std::vec::Vec::new();
        let mut take = |most| {
            space.take(UNITS, most, |len| {
                lengths.push(len);
                writer.chunk(ChunkKind::Arguments, 0, len)
            })
        };
        let places: std::vec::Vec<usize> =
            (0..2 * per_page).map(|_| take(usize::MAX).unwrap().addr()).collect();
        for page in places.chunks(per_page) {
            assert!(page.windows(2).all(|pair| pair[1] == pair[0] + UNITS * UNIT));
        }
        assert_eq!(places[per_page] - places[0], PAGE);
        // No more than was allowed, even where there is room.
        assert!(take(2 * per_page * UNITS + UNITS - 1).is_none());
        assert_eq!(lengths, [PAGE, PAGE]);
        // What is larger than its chunk is nowhere.
        let more = |len| writer.chunk(ChunkKind::Arguments, 0, len);
        assert!(RowSpace::none().take(PAGE / UNIT, usize::MAX, more).is_none());
        space.publish();
    }

    #[test]
    fn later_chunks_of_rows_are_longer() {
        let mut memory = memory();
        let mut writer = writer(&mut memory);
        let mut space = RowSpace { total: 5 * PAGE / UNIT / 2, ..RowSpace::none() };
        let mut asked = 0;
        let more = |len| {
            asked = len;
            writer.chunk(ChunkKind::Arguments, 0, PAGE)
        };
        assert!(space.take(1, usize::MAX, more).is_some());
        assert_eq!(asked, 3 * PAGE);
    }

    /// Nodes and pages meet in the middle, and never overlap.
    #[test]
    fn a_chunk_is_filled_from_both_ends() {
        let mut memory = memory();
        let mut writer = writer(&mut memory);
        let mut space = NodeSpace::none();
        space.enter(writer.chunk(ChunkKind::Nodes, 0, PAGE).unwrap());
        let units = PAGE / UNIT - 1;
        let mut taken = std::collections::BTreeSet::new();
        for turn in 0..units {
            let place = match turn % 3 {
                0 => space.page().map(|page| page.addr()),
                _ => space.node(0, turn as u32).map(|node| node.addr()),
            };
            assert!(taken.insert(place.unwrap()), "unit {turn}");
        }
        assert!(space.node(0, 0).is_none() && space.page().is_none());
        let (first, last) = (*taken.first().unwrap(), *taken.last().unwrap());
        assert_eq!((last - first) / UNIT + 1, units);
    }
}
