//! Lays structures into memory that the caller has mapped and made ready to be written.
//!
//! The caller maps the file, tells how many bytes of it may be written ([`Writer::set_room`]) and
//! keeps the lock that [`layout`](crate::layout) speaks of: a `Writer` is used by one thread at a
//! time.

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
    /// A writer that does nothing until it is replaced by [`Writer::begin`].
    #[must_use]
    pub const fn unopened() -> Self {
        Self { base: ptr::null_mut(), committed: 0, room: 0 }
    }

    /// Starts a recording at `base` with `header`, whose `magic` and `committed` are filled in.
    ///
    /// # Safety
    /// `base` is aligned to [`PAGE`] and the `room` bytes behind it are zero, writable and, for as
    /// long as the writer or anything that it hands out is used, nobody else's. `room` is at least
    /// [`PAGE`].
    pub unsafe fn begin(base: *mut u8, room: usize, header: &Header) -> Self {
        let mut header = *header;
        header.magic = [0; 8];
        header.committed = PAGE as u64;
        // SAFETY: the header fits into the first page, which the caller vouches for; the magic
        // is the first field and is stored after the rest.
        unsafe {
            base.cast::<Header>().write(header);
            AtomicU64::from_ptr(base.cast()).store(u64::from_le_bytes(MAGIC), Ordering::Release);
        }
        Self { base, committed: PAGE, room }
    }

    /// Bytes from the start of the file that hold chunks.
    #[must_use]
    pub fn committed(&self) -> usize {
        self.committed
    }

    /// Bytes from the start of the file that may be written.
    #[must_use]
    pub fn room(&self) -> usize {
        self.room
    }

    /// Tells that `room` bytes from the start of the file may be written now.
    ///
    /// # Safety
    /// As for [`Writer::begin`].
    pub unsafe fn set_room(&mut self, room: usize) {
        self.room = room;
    }

    /// The length that a chunk needs for `contents` bytes.
    #[must_use]
    pub const fn chunk_len(contents: usize) -> usize {
        (size_of::<ChunkHeader>() + contents).next_multiple_of(PAGE)
    }

    /// Appends a chunk of `len` bytes (a multiple of [`PAGE`], and at least one) whose contents are zero and not yet
    /// readable. `None` if there is no room for it, or no chunk has this length.
    pub fn chunk(&mut self, kind: ChunkKind, owner: u32, len: usize) -> Option<Chunk> {
        if len == 0 || !len.is_multiple_of(PAGE) || len > self.room.saturating_sub(self.committed) {
            return None;
        }
        // SAFETY: the bytes from `committed` to `room` are ours and zero (`begin`, `set_room`).
        // `committed` moves after the header is complete, so that readers never meet half a one.
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
    /// Where the contents start.
    #[must_use]
    pub fn contents(&self) -> *mut u8 {
        // SAFETY: a chunk is at least one page, and the header is smaller than that.
        unsafe { self.header.add(1).cast() }
    }

    /// Makes the contents readable, of which there are `count` entries.
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

/// The space of one thread's tree: nodes grow from the front of a chunk, histogram pages from its
/// back, and a new chunk is taken when the two meet.
#[derive(Debug)]
pub struct NodeSpace {
    chunk: Option<Chunk>,
    nodes: usize,
    units_left: usize,
}

impl NodeSpace {
    /// Space for nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self { chunk: None, nodes: 0, units_left: 0 }
    }

    /// Goes on in `chunk`, of kind [`ChunkKind::Nodes`]; what is left of the one before is lost.
    pub fn enter(&mut self, chunk: Chunk) {
        chunk.commit(0);
        self.nodes = 0;
        self.units_left = chunk.len / UNIT - 1;
        self.chunk = Some(chunk);
    }

    /// Adds a node; `None` when the chunk is full.
    pub fn node(&mut self, parent_ref: u32, slot: u32) -> Option<*mut Node> {
        let chunk = self.chunk?;
        self.units_left = self.units_left.checked_sub(1)?;
        // SAFETY: `units_left` counts the units between the last node and the first page, all of
        // them ours and zero.
        let node = unsafe { chunk.contents().cast::<Node>().add(self.nodes) };
        // SAFETY: as above.
        unsafe {
            (*node).parent_ref = parent_ref;
            (*node).slot = slot;
        }
        self.nodes += 1;
        Some(node)
    }

    /// Adds a node of sampled calls, with its [`Samples`](crate::layout::Samples) behind it; `None`
    /// when the chunk is full.
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

    /// Adds a histogram page, zeroed; `None` when the chunk is full.
    pub fn page(&mut self) -> Option<*mut u64> {
        let chunk = self.chunk?;
        self.units_left = self.units_left.checked_sub(1)?;
        let unit = self.nodes + self.units_left;
        // SAFETY: as in `node`; the page is the last free unit.
        Some(unsafe { chunk.contents().add(unit * UNIT).cast() })
    }
}

/// The space of one thread's rows of arguments, which lie one behind the other.
#[derive(Debug)]
pub struct RowSpace {
    chunk: Option<Chunk>,
    used: usize,
}

impl RowSpace {
    /// Space for nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self { chunk: None, used: 0 }
    }

    /// Goes on in `chunk`; what is left of the one before stays empty.
    pub fn enter(&mut self, chunk: Chunk) {
        chunk.commit(0);
        (self.chunk, self.used) = (Some(chunk), 0);
    }

    /// The next so many units, which are zero; `None` when the chunk is full. They are readable after [`RowSpace::publish`].
    pub fn take(&mut self, units: usize) -> Option<*mut u8> {
        let chunk = self.chunk?;
        if self.used + units > chunk.len / UNIT - 1 {
            return None;
        }
        // SAFETY: the units are in the chunk, behind those in use.
        let place = unsafe { chunk.contents().add(self.used * UNIT) };
        self.used += units;
        Some(place)
    }

    /// Makes the units taken so far readable.
    pub fn publish(&self) {
        if let Some(chunk) = self.chunk {
            chunk.set_count(self.used);
        }
    }
}

/// How many records of `size` bytes fit into a chunk of `len` bytes.
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

    /// Nodes and pages meet in the middle, and none is where another one is.
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
