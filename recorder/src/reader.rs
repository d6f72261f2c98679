//! Turns bytes into data or an error.
//!
//! [`Recording::parse`] takes any bytes whatever: whole, cut, damaged, random. It gives an
//! [`Error`] only where nothing can be said; otherwise it gives what is there, and a list of
//! [`Problem`]s. What it hands out was checked: references lead to where they should, and every
//! walk from a context to its callers ends.
//!
//! It copies little: an index of 12 bytes per 128-byte node, and of a few words per chunk and
//! thread. Strings, slots and histograms are read from the bytes when asked for, so the time taken
//! is linear in the size of the file. The bytes need no alignment.
//!
//! It does no I/O. A recording in the making is a sparse file: read only the first
//! [`Header::committed`] bytes of it, in one go, with the header first.

mod arguments;
mod bytes;
mod callers;
mod chunks;
mod error;
mod events;
mod header;
mod histogram;
mod nodes;
mod objects;
mod origins;
mod sites;
mod syscalls;
mod texts;
mod threads;
mod twins;

use std::borrow::Cow;

pub use arguments::Arguments;
pub use bytes::Bytes;
pub use error::{Error, Problem};
pub use events::Events;
pub use header::parse_header;
pub use histogram::Histogram;
pub use objects::{Object, Slot};
pub use origins::Origin;
pub use syscalls::{SyscallsFile, mapping_path, parse_syscalls_header};
pub use texts::Text;
pub use threads::{Context, Thread};

use crate::layout::{ChunkKind, Header, PAGE, SiteRecord};
use chunks::Chunk;
use events::EventIndex;
use nodes::NodeIndex;
use objects::ObjectIndex;
use origins::OriginIndex;
use sites::SiteIndex;
use threads::ThreadEntry;
use twins::TwinIndex;

/// One process image's recording.
#[derive(Debug)]
pub struct Recording<'a> {
    bytes: Bytes<'a>,
    header: Header,
    meta: Vec<Chunk>,
    objects: ObjectIndex,
    threads: Vec<ThreadEntry>,
    left_out: Vec<u32>,
    origins: OriginIndex,
    twins: TwinIndex,
    sites: SiteIndex,
    off_cpu: Vec<Chunk>,
    arguments: Vec<Chunk>,
    texts: Vec<Chunk>,
    callers: Vec<Chunk>,
    events: EventIndex,
    nodes: NodeIndex,
    problems: Vec<Problem>,
}

impl<'a> Recording<'a> {
    /// Reads `bytes`: a slice, a vector, or what else [`Bytes`] may be.
    ///
    /// # Errors
    ///
    /// If the bytes are not a recording, or one that this version or machine can't read.
    pub fn parse(bytes: impl Into<Bytes<'a>>) -> Result<Self, Error> {
        let bytes = bytes.into();
        let header = parse_header(&bytes)?;
        let mut problems = Vec::new();
        let end = extent(header.committed, bytes.len(), &mut problems);
        let chunks = chunks::scan(&bytes, end, &mut problems);
        let of_kind = |kind: ChunkKind| chunks.iter().filter(move |c| c.kind == kind as u32);

        let mut meta: Vec<Chunk> = of_kind(ChunkKind::Meta).copied().collect();
        meta.shrink_to_fit();
        let objects = ObjectIndex::new(&bytes, of_kind(ChunkKind::Object), &mut problems);
        let origins = OriginIndex::new(&bytes, of_kind(ChunkKind::Origins));
        let twins = TwinIndex::new(&bytes, of_kind(ChunkKind::Twins));
        let sites = SiteIndex::new(&bytes, of_kind(ChunkKind::Sites));
        let by_owner = |kind: ChunkKind| {
            let mut chunks: Vec<Chunk> = of_kind(kind).copied().collect();
            chunks.sort_by_key(|chunk| chunk.owner);
            chunks
        };
        let (off_cpu, arguments) = (by_owner(ChunkKind::OffCpu), by_owner(ChunkKind::Arguments));
        let (texts, callers) = (by_owner(ChunkKind::Texts), by_owner(ChunkKind::Callers));
        let (events, marks) = (of_kind(ChunkKind::Events), of_kind(ChunkKind::Marks));
        let events = EventIndex::new(&bytes, events, marks);
        let mut nodes = NodeIndex::new(of_kind(ChunkKind::Nodes), &mut problems);
        let mut left_out = Vec::new();
        let chunks = of_kind(ChunkKind::Threads);
        let mut threads =
            threads::find(&bytes, &header, chunks, &nodes, &mut left_out, &mut problems);
        for thread in &mut threads {
            let chunks = thread.chunks.clone();
            thread.nodes = nodes.add_thread(&bytes, thread.index, chunks, &mut problems);
        }
        Ok(Self {
            header,
            meta,
            objects,
            threads,
            left_out,
            origins,
            twins,
            sites,
            off_cpu,
            arguments,
            texts,
            callers,
            events,
            nodes,
            problems,
            bytes,
        })
    }

    /// Makes a recording with only a header, for a process that has only a `.syscalls` file.
    #[must_use]
    pub fn empty(header: Header) -> Self {
        Self {
            bytes: Bytes::from(&[][..]),
            header,
            meta: Vec::new(),
            objects: ObjectIndex::default(),
            threads: Vec::new(),
            left_out: Vec::new(),
            origins: OriginIndex::default(),
            twins: TwinIndex::default(),
            sites: SiteIndex::default(),
            off_cpu: Vec::new(),
            arguments: Vec::new(),
            texts: Vec::new(),
            callers: Vec::new(),
            events: EventIndex::default(),
            nodes: NodeIndex::default(),
            problems: Vec::new(),
        }
    }

    /// The header. Fields that an older writer did not know are zero.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What is wrong with the file; empty for a whole one, also of a process that was killed.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Keys and values, in the order written; see [`ChunkKind::Meta`].
    pub fn meta(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        self.meta.iter().flat_map(|chunk| {
            let contents = chunk.contents(&self.bytes);
            let used = contents.len().min(chunk.count as usize);
            let mut parts = contents[..used].split(|&byte| byte == 0);
            std::iter::from_fn(move || {
                let (key, value) = (parts.next()?, parts.next()?);
                Some((String::from_utf8_lossy(key), String::from_utf8_lossy(value)))
            })
        })
    }

    /// The value of one key of [`meta`](Self::meta).
    #[must_use]
    pub fn meta_value(&self, key: &str) -> Option<Cow<'_, str>> {
        self.meta().find(|(found, _)| found == key).map(|(_, value)| value)
    }

    /// Objects in the order in which they were loaded. One that was unloaded and loaded again
    /// is there once for each time, with the same number.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = Object<'_>> {
        self.objects.iter(&self.bytes)
    }

    /// The latest load of object number `id`.
    #[must_use]
    pub fn object(&self, id: u32) -> Option<Object<'_>> {
        self.objects.get(&self.bytes, id)
    }

    /// The import with this number, or whose twin has it, or that is called from the place with this number.
    #[must_use]
    pub fn slot(&self, number: u32) -> Option<Slot<'_>> {
        let slot = |number| self.objects.slot(&self.bytes, number);
        let number = self.sites.get(number).map_or(number, |site| site.import);
        slot(number).or_else(|| slot(self.twins.import_of(number)?))
    }

    /// The place that a slot's number stands for, if contexts are told apart by the places of calls.
    #[must_use]
    pub fn site(&self, number: u32) -> Option<&SiteRecord> {
        self.sites.get(number)
    }

    /// Whether contexts are told apart by the places of calls.
    #[must_use]
    pub fn has_sites(&self) -> bool {
        !self.sites.is_empty()
    }

    /// Whether calls are missing, because functions were seen in windows alone; only older versions have
    /// recorded in that way.
    #[must_use]
    pub fn has_windows(&self) -> bool {
        self.twins.have_pauses()
    }

    /// Threads by their number.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = Thread<'_>> {
        self.threads.iter().map(|entry| Thread::new(self, entry))
    }

    /// Kernel ids of threads that were not to be recorded; a recorded thread may have had the same id before or after.
    #[must_use]
    pub fn left_out(&self) -> &[u32] {
        &self.left_out
    }

    /// The name of a mark, by the [`subject`](crate::layout::EventRecord::subject) of its event.
    #[must_use]
    pub fn mark(&self, subject: u32) -> Option<Cow<'_, str>> {
        self.events.mark(&self.bytes, subject)
    }

    /// When the latest call began, in ticks; 0 if there was none.
    #[must_use]
    pub fn latest_start(&self) -> u64 {
        self.nodes.latest_start()
    }

    /// Contexts of all threads.
    #[must_use]
    pub fn context_count(&self) -> usize {
        self.nodes.len()
    }
}

/// Up to where chunks are to be looked for.
fn extent(committed: u64, len: usize, problems: &mut Vec<Problem>) -> usize {
    let end = usize::try_from(committed).unwrap_or(usize::MAX);
    if end < PAGE {
        problems.push(Problem::Committed { found: committed });
        return len;
    }
    if end > len {
        problems.push(Problem::Truncated { len: len as u64, committed });
    }
    end.min(len)
}

/// A structure at `offset`, whatever its alignment there.
fn pod_at<T: bytemuck::AnyBitPattern>(bytes: &[u8], offset: usize) -> Option<T> {
    let end = offset.checked_add(size_of::<T>())?;
    bytes.get(offset..end).map(bytemuck::pod_read_unaligned)
}

/// Bytes up to the first NUL, as text; other encodings than UTF-8 lose what isn't.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..len])
}
