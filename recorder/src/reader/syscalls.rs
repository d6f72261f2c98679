//! The `.syscalls` file beside a recording.

use std::borrow::Cow;

use bytemuck::Zeroable;

use super::chunks::{self, Chunk};
use super::{Bytes, Error, Problem, extent, pod_at, text};
use crate::layout::{ChunkKind, UNIT};
use crate::syscalls::{
    BlockedRow, CauseRow, FileRow, LongTurnRow, MAGIC, MappingRow, OnCpuRow, SampleRow,
    SingleSyscallRow, SyscallRow, SyscallsHeader, TimedSampleRow, TurnsRow, VERSION, VERSION_CALLS,
    WaitRow,
};

/// What the companion wrote of one process image. Like [`Recording`](super::Recording), it takes
/// any bytes; rows are read from them when asked for.
#[derive(Debug)]
pub struct SyscallsFile<'a> {
    bytes: Bytes<'a>,
    header: SyscallsHeader,
    syscalls: Vec<Chunk>,
    waits: Vec<Chunk>,
    samples: Vec<Chunk>,
    on_cpu: Vec<Chunk>,
    mappings: Vec<Chunk>,
    causes: Vec<Chunk>,
    blocked: Vec<Chunk>,
    files: Vec<Chunk>,
    single_syscalls: Vec<Chunk>,
    turns: Vec<Chunk>,
    long_turns: Vec<Chunk>,
    late_samples: Vec<Chunk>,
    timed_samples: Vec<Chunk>,
    problems: Vec<Problem>,
}

/// Reads the header alone: the first [`PAGE`](crate::layout::PAGE) bytes of a file are enough.
///
/// # Errors
///
/// As [`SyscallsFile::parse`].
pub fn parse_syscalls_header(bytes: &[u8]) -> Result<SyscallsHeader, Error> {
    if bytes.is_empty() {
        return Err(Error::NoBytes);
    }
    let magic = &bytes[..bytes.len().min(MAGIC.len())];
    if !MAGIC.starts_with(magic) {
        if magic.iter().all(|&byte| byte == 0) {
            return Err(Error::NeverBegun);
        }
        return Err(Error::NotSyscalls { found: format!("\"{}\"", magic.escape_ascii()) });
    }
    let too_short = Error::TooShort { len: bytes.len(), expected: size_of::<SyscallsHeader>() };
    // These places are the same in all versions, so that any reader can tell what it has.
    let number = |offset| pod_at::<u32>(bytes, offset).ok_or_else(|| too_short.clone());
    let (version, reader_min) = (number(8)?, number(12)?);
    if reader_min > VERSION {
        return Err(Error::LaterSyscalls { version, reader_min });
    }
    let header_len = number(16)? as usize;
    // What an older writer did not know is zero; the rest of its page may be missing.
    let known = bytes.get(..header_len.min(size_of::<SyscallsHeader>())).ok_or(too_short)?;
    let mut header = SyscallsHeader::zeroed();
    bytemuck::bytes_of_mut(&mut header)[..known.len()].copy_from_slice(known);
    Ok(header)
}

/// The path of a mapping, or what the kernel calls it; empty for memory of no file.
#[must_use]
pub fn mapping_path(mapping: &MappingRow) -> Cow<'_, str> {
    text(&mapping.path)
}

impl<'a> SyscallsFile<'a> {
    /// Reads `bytes`: a slice, a vector, or what else [`Bytes`] may be.
    ///
    /// # Errors
    ///
    /// If the bytes are no `.syscalls` file, or one that this version can't read.
    pub fn parse(bytes: impl Into<Bytes<'a>>) -> Result<Self, Error> {
        let bytes = bytes.into();
        let header = parse_syscalls_header(&bytes)?;
        let mut problems = Vec::new();
        let end = extent(header.committed, bytes.len(), &mut problems);
        let chunks = chunks::scan(&bytes, end, &mut problems);
        let mut of_kind = |kind: ChunkKind, size, what| {
            let chunks = chunks.iter().filter(|chunk| chunk.kind == kind as u32);
            chunks.map(|chunk| limited(chunk, size, what, &mut problems)).collect()
        };
        let syscalls = of_kind(ChunkKind::Syscalls, size_of::<SyscallRow>(), "rows of syscalls");
        let waits = of_kind(ChunkKind::Waits, size_of::<WaitRow>(), "rows of waits");
        let samples = of_kind(ChunkKind::Samples, size_of::<SampleRow>(), "rows of samples");
        let on_cpu = of_kind(ChunkKind::OnCpu, size_of::<OnCpuRow>(), "rows of times on the CPU");
        let mappings = of_kind(ChunkKind::Mappings, size_of::<MappingRow>(), "rows of mappings");
        let causes = of_kind(ChunkKind::Causes, size_of::<CauseRow>(), "rows of causes");
        let blocked = of_kind(ChunkKind::Blocked, size_of::<BlockedRow>(), "rows of long waits");
        let files = of_kind(ChunkKind::Files, size_of::<FileRow>(), "rows of files");
        let single_syscalls = of_kind(
            ChunkKind::SingleSyscalls,
            size_of::<SingleSyscallRow>(),
            "rows of single syscalls",
        );
        let turns = of_kind(ChunkKind::Turns, size_of::<TurnsRow>(), "rows of turns");
        let long_turns =
            of_kind(ChunkKind::LongTurns, size_of::<LongTurnRow>(), "rows of long turns");
        let late_samples =
            of_kind(ChunkKind::LateSamples, size_of::<SampleRow>(), "rows of late samples");
        let timed_samples =
            of_kind(ChunkKind::TimedSamples, size_of::<TimedSampleRow>(), "times of samples");
        Ok(Self {
            bytes,
            header,
            syscalls,
            waits,
            samples,
            on_cpu,
            mappings,
            causes,
            blocked,
            files,
            single_syscalls,
            turns,
            long_turns,
            late_samples,
            timed_samples,
            problems,
        })
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &SyscallsHeader {
        &self.header
    }

    /// Name of the process when its image began.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        text(&self.header.name)
    }

    /// What is wrong with the file; empty for a whole one.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Rows of syscalls, in no particular order.
    pub fn syscalls(&self) -> impl Iterator<Item = SyscallRow> {
        self.rows(&self.syscalls)
    }

    /// Rows of waits, in no particular order.
    pub fn waits(&self) -> impl Iterator<Item = WaitRow> {
        self.rows(&self.waits)
    }

    /// Rows of samples, in the order that [`TimedSampleRow::row`] counts in.
    pub fn samples(&self) -> impl Iterator<Item = SampleRow> {
        self.rows(&self.samples)
    }

    /// Times on the CPU, in no particular order.
    pub fn on_cpu(&self) -> impl Iterator<Item = OnCpuRow> {
        self.rows(&self.on_cpu)
    }

    /// Executable mappings, in the order in which they were seen.
    pub fn mappings(&self) -> impl Iterator<Item = MappingRow> {
        self.rows(&self.mappings)
    }

    /// Causes of waits, in the order that [`BlockedRow::cause`] counts in.
    pub fn causes(&self) -> impl Iterator<Item = CauseRow> {
        let knows_calls = self.header.version >= VERSION_CALLS;
        self.rows(&self.causes).map(move |row: CauseRow| {
            let calls = if knows_calls { row.calls } else { 0 };
            CauseRow { calls, ..row }
        })
    }

    /// Long waits, in the order in which they ended, but for those that came late.
    pub fn blocked(&self) -> impl Iterator<Item = BlockedRow> {
        self.rows(&self.blocked)
    }

    /// Samples of files, in no particular order.
    pub fn files(&self) -> impl Iterator<Item = FileRow> {
        self.rows(&self.files)
    }

    /// Single system calls, in the order in which they returned; see [`SingleSyscallRow`].
    pub fn single_syscalls(&self) -> impl Iterator<Item = SingleSyscallRow> {
        self.rows(&self.single_syscalls)
    }

    /// Sums of turns, in no particular order.
    pub fn turns(&self) -> impl Iterator<Item = TurnsRow> {
        self.rows(&self.turns)
    }

    /// Long turns, in the order in which they were over.
    pub fn long_turns(&self) -> impl Iterator<Item = LongTurnRow> {
        self.rows(&self.long_turns)
    }

    /// Rows of samples late in turns, in no particular order. They are among [`samples`](Self::samples), too.
    pub fn late_samples(&self) -> impl Iterator<Item = SampleRow> {
        self.rows(&self.late_samples)
    }

    /// Times of samples, in the order in which they were taken on each CPU; [`TimedSampleRow::row`] counts in the order of
    /// [`samples`](Self::samples).
    pub fn timed_samples(&self) -> impl Iterator<Item = TimedSampleRow> {
        self.rows(&self.timed_samples)
    }

    fn rows<'s, T: bytemuck::AnyBitPattern>(
        &'s self,
        chunks: &'s [Chunk],
    ) -> impl Iterator<Item = T> + use<'s, T> {
        chunks.iter().flat_map(move |chunk| {
            let at = move |row: u32| chunk.offset + UNIT + row as usize * size_of::<T>();
            (0..chunk.count).filter_map(move |row| pod_at(&self.bytes, at(row)))
        })
    }
}

/// The chunk with as many rows as fit into it.
fn limited(chunk: &Chunk, size: usize, what: &'static str, problems: &mut Vec<Problem>) -> Chunk {
    let room = ((chunk.len - UNIT) / size) as u32;
    if chunk.count > room {
        problems.push(Problem::Count {
            offset: chunk.offset as u64,
            what,
            found: chunk.count.into(),
            room: room.into(),
        });
    }
    Chunk { count: chunk.count.min(room), ..*chunk }
}
