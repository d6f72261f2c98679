//! A `.syscalls` file, being written. Rows keep their place.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use bytemuck::{Zeroable, bytes_of};
use chase_format::layout::{CHUNK_MAGIC, COMMITTED, ChunkHeader, ChunkKind, NONE, PAGE};
use chase_format::syscalls::{
    MAGIC, READER_MIN, STATE_STOPPED, SyscallRow, SyscallsHeader, VERSION, WaitRow,
};

use crate::shared::{Row, WAIT_PREEMPTED, WAIT_VOLUNTARY};

/// Bytes of a chunk.
const CHUNK: usize = 4 * PAGE;
/// Bytes of a row of either kind.
const ROW: usize = size_of::<SyscallRow>();
const IN_CHUNK: usize = (CHUNK - size_of::<ChunkHeader>()) / ROW;

/// The chunk that rows of one kind go to.
#[derive(Debug)]
struct Growing {
    kind: ChunkKind,
    at: u64,
    header: ChunkHeader,
}

impl Growing {
    fn new(kind: ChunkKind) -> Self {
        Self { kind, at: 0, header: ChunkHeader::zeroed() }
    }
}

/// A file being written.
#[derive(Debug)]
pub struct SyscallsFile {
    file: File,
    /// What the first page says; written by [`SyscallsFile::write_header`].
    pub header: SyscallsHeader,
    syscalls: Growing,
    waits: Growing,
}

/// Where a row is in its file.
#[derive(Clone, Copy, Debug)]
pub struct Place(u64);

impl SyscallsFile {
    /// Creates the file; an older one is replaced.
    ///
    /// # Errors
    /// When it can't be created or written.
    pub fn create(path: &Path, header: SyscallsHeader) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let mut this = Self {
            file: options.open(path)?,
            header,
            syscalls: Growing::new(ChunkKind::Syscalls),
            waits: Growing::new(ChunkKind::Waits),
        };
        (this.header.magic, this.header.version) = (MAGIC, VERSION);
        this.header.reader_min = READER_MIN;
        this.header.header_len = size_of::<SyscallsHeader>() as u32;
        this.header.committed = PAGE as u64;
        if let Err(error) = this.begin() {
            // On a full disk. A file that says nothing would be taken for a damaged one.
            let _ = fs::remove_file(path);
            return Err(error);
        }
        Ok(this)
    }

    fn begin(&self) -> io::Result<()> {
        self.file.set_len(PAGE as u64)?;
        self.write_header()
    }

    /// Says that no more comes. There is room for that, since there was for the header.
    pub fn stop(&mut self) {
        self.header.state = STATE_STOPPED;
        let _ = self.write_header();
    }

    /// Writes the first page.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn write_header(&self) -> io::Result<()> {
        self.file.write_all_at(bytes_of(&self.header), 0)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn add(&mut self, row: &Row) -> io::Result<Place> {
        let growing = if is_wait(row) { &mut self.waits } else { &mut self.syscalls };
        if growing.at == 0 || growing.header.count as usize == IN_CHUNK {
            let at = self.header.committed;
            growing.header = ChunkHeader {
                magic: CHUNK_MAGIC,
                kind: growing.kind as u32,
                len: CHUNK as u64,
                state: COMMITTED,
                owner: NONE,
                ..ChunkHeader::zeroed()
            };
            self.file.set_len(at + CHUNK as u64)?;
            self.file.write_all_at(bytes_of(&growing.header), at)?;
            self.header.committed = at + CHUNK as u64;
            growing.at = at;
            self.file.write_all_at(bytes_of(&self.header), 0)?;
        }
        let offset = size_of::<ChunkHeader>() + growing.header.count as usize * ROW;
        let place = Place(growing.at + offset as u64);
        write_row(&self.file, place, row)?;
        growing.header.count += 1;
        self.file.write_all_at(bytes_of(&growing.header), growing.at)?;
        Ok(place)
    }

    /// Writes a row again.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn update(&self, place: Place, row: &Row) -> io::Result<()> {
        write_row(&self.file, place, row)
    }
}

fn is_wait(row: &Row) -> bool {
    matches!(row.syscall, WAIT_VOLUNTARY | WAIT_PREEMPTED)
}

fn write_row(file: &File, Place(at): Place, row: &Row) -> io::Result<()> {
    if is_wait(row) {
        file.write_all_at(bytes_of(&wait_row(row)), at)
    } else {
        file.write_all_at(bytes_of(&syscall_row(row)), at)
    }
}

fn syscall_row(row: &Row) -> SyscallRow {
    SyscallRow {
        context_ref: row.context,
        tid: row.tid,
        number: row.syscall,
        reserved: 0,
        calls: row.count,
        total_ns: row.total_ns,
        max_ns: row.max_ns,
        off_cpu_ns: row.off_cpu_ns,
        returned: row.returned,
        errors: row.errors,
        restarts: row.restarts,
        unfinished: row.unfinished,
        errnos: row.errnos,
        histogram: row.histogram,
    }
}

fn wait_row(row: &Row) -> WaitRow {
    WaitRow {
        context_ref: row.context,
        tid: row.tid,
        kind: WAIT_VOLUNTARY - row.syscall,
        reserved: 0,
        waits: row.count,
        total_ns: row.total_ns,
        max_ns: row.max_ns,
        later: [0; 11],
        histogram: row.histogram,
    }
}
