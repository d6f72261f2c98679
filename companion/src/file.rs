//! Writes a `.syscalls` file. Rows never move.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use bytemuck::{NoUninit, Zeroable, bytes_of, cast_slice};
use chase_format::layout::{CHUNK_MAGIC, COMMITTED, ChunkHeader, ChunkKind, NONE, PAGE};
use chase_format::syscalls::{
    BlockedRow, CauseRow, FileRow, LongTurnRow, MAGIC, MappingRow, OnCpuRow, READER_MIN,
    STATE_STOPPED, SampleRow, SingleSyscallRow, SyscallRow, SyscallsHeader, TimedSampleRow,
    TurnsRow, VERSION, WaitRow,
};

use crate::shared::{ON_CPU, Row, TURNS, Turns, WAIT_PREEMPTED, WAIT_VOLUNTARY};

/// Size in bytes of a chunk.
const CHUNK: usize = 4 * PAGE;

/// The chunk to which rows of one kind are appended.
#[derive(Debug)]
struct Growing {
    kind: ChunkKind,
    at: u64,
    header: ChunkHeader,
}

/// A file being written.
#[derive(Debug)]
pub struct SyscallsFile {
    file: File,
    /// The contents of the first page; written by [`SyscallsFile::write_header`].
    pub header: SyscallsHeader,
    syscalls: Growing,
    waits: Growing,
    on_cpu: Growing,
    samples: Growing,
    number_of_samples: u32,
    mappings: Growing,
    causes: Growing,
    number_of_causes: u32,
    blocked: Growing,
    files: Growing,
    single_syscalls: Growing,
    turns: Growing,
    long_turns: Growing,
    late_samples: Growing,
    timed_samples: Growing,
}

/// The position of a row in its file.
#[derive(Clone, Copy, Debug)]
pub struct Place(u64);

impl SyscallsFile {
    /// Creates the file, replacing an older one. Whatever else has its name, a link or a named pipe, is not opened.
    ///
    /// # Errors
    /// If it can't be created or written.
    pub fn create(path: &Path, header: SyscallsHeader) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut this = Self {
            file: options.open(path)?,
            header,
            syscalls: Growing::new(ChunkKind::Syscalls),
            waits: Growing::new(ChunkKind::Waits),
            on_cpu: Growing::new(ChunkKind::OnCpu),
            samples: Growing::new(ChunkKind::Samples),
            number_of_samples: 0,
            mappings: Growing::new(ChunkKind::Mappings),
            causes: Growing::new(ChunkKind::Causes),
            number_of_causes: 0,
            blocked: Growing::new(ChunkKind::Blocked),
            files: Growing::new(ChunkKind::Files),
            single_syscalls: Growing::new(ChunkKind::SingleSyscalls),
            turns: Growing::new(ChunkKind::Turns),
            long_turns: Growing::new(ChunkKind::LongTurns),
            late_samples: Growing::new(ChunkKind::LateSamples),
            timed_samples: Growing::new(ChunkKind::TimedSamples),
        };
        (this.header.magic, this.header.version) = (MAGIC, VERSION);
        this.header.reader_min = READER_MIN;
        this.header.header_len = size_of::<SyscallsHeader>() as u32;
        this.header.committed = PAGE as u64;
        if let Err(error) = this.begin() {
            // The disk is full. An empty file would be taken for a damaged one.
            let _ = fs::remove_file(path);
            return Err(error);
        }
        Ok(this)
    }

    fn begin(&self) -> io::Result<()> {
        self.file.set_len(PAGE as u64)?;
        self.write_header()
    }

    /// Marks the file as stopped. An error is ignored: the header's space exists, so there should be none.
    pub fn stop(&mut self) {
        self.header.state = STATE_STOPPED;
        let _ = self.write_header();
    }

    /// Writes the first page.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn write_header(&self) -> io::Result<()> {
        self.file.write_all_at(bytes_of(&self.header), 0)
    }

    /// Appends a row.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn add(&mut self, row: &Row) -> io::Result<Place> {
        let Self { file, header, .. } = self;
        match row.syscall {
            WAIT_VOLUNTARY | WAIT_PREEMPTED => self.waits.add(file, header, &wait_row(row)),
            ON_CPU => self.on_cpu.add(file, header, &on_cpu_row(row)),
            TURNS => self.turns.add(file, header, &turns_row(row)),
            _ => self.syscalls.add(file, header, &syscall_row(row)),
        }
    }

    /// Appends a row of samples; also returns its index among these rows.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn add_samples(&mut self, row: &SampleRow) -> io::Result<(Place, u32)> {
        let place = self.samples.add(&self.file, &mut self.header, row)?;
        self.number_of_samples += 1;
        Ok((place, self.number_of_samples - 1))
    }

    /// Appends times of samples.
    ///
    /// # Errors
    /// If they can't be written.
    pub fn add_timed_samples(&mut self, rows: &[TimedSampleRow]) -> io::Result<()> {
        self.timed_samples.add_all(&self.file, &mut self.header, rows)
    }

    /// Appends a row of samples late in turns.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn add_late_samples(&mut self, row: &SampleRow) -> io::Result<Place> {
        self.late_samples.add(&self.file, &mut self.header, row)
    }

    /// Appends a long turn.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn add_long_turn(&mut self, row: &LongTurnRow) -> io::Result<()> {
        self.long_turns.add(&self.file, &mut self.header, row).map(drop)
    }

    /// Appends a mapping.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn add_mapping(&mut self, row: &MappingRow) -> io::Result<()> {
        self.mappings.add(&self.file, &mut self.header, row).map(drop)
    }

    /// Appends a single system call.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn add_single_syscall(&mut self, row: &SingleSyscallRow) -> io::Result<()> {
        self.single_syscalls.add(&self.file, &mut self.header, row).map(drop)
    }

    /// Appends a cause of waits.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn add_cause(&mut self, row: &CauseRow) -> io::Result<Place> {
        self.number_of_causes += 1;
        self.causes.add(&self.file, &mut self.header, row)
    }

    /// Returns the number of causes written.
    #[must_use]
    pub fn causes(&self) -> u32 {
        self.number_of_causes
    }

    /// Appends a long wait.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn add_blocked(&mut self, row: &BlockedRow) -> io::Result<()> {
        self.blocked.add(&self.file, &mut self.header, row).map(drop)
    }

    /// Appends samples of a file.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn add_file(&mut self, row: &FileRow) -> io::Result<Place> {
        self.files.add(&self.file, &mut self.header, row)
    }

    /// Rewrites samples of a file.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn update_file(&self, Place(at): Place, row: &FileRow) -> io::Result<()> {
        self.file.write_all_at(bytes_of(row), at)
    }

    /// Rewrites a cause of waits.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn update_cause(&self, Place(at): Place, row: &CauseRow) -> io::Result<()> {
        self.file.write_all_at(bytes_of(row), at)
    }

    /// Rewrites a row.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn update(&self, Place(at): Place, row: &Row) -> io::Result<()> {
        match row.syscall {
            WAIT_VOLUNTARY | WAIT_PREEMPTED => self.file.write_all_at(bytes_of(&wait_row(row)), at),
            ON_CPU => self.file.write_all_at(bytes_of(&on_cpu_row(row)), at),
            TURNS => self.file.write_all_at(bytes_of(&turns_row(row)), at),
            _ => self.file.write_all_at(bytes_of(&syscall_row(row)), at),
        }
    }

    /// Rewrites a row of samples.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn update_samples(&self, Place(at): Place, row: &SampleRow) -> io::Result<()> {
        self.file.write_all_at(bytes_of(row), at)
    }
}

impl Growing {
    fn new(kind: ChunkKind) -> Self {
        Self { kind, at: 0, header: ChunkHeader::zeroed() }
    }

    fn add<T: NoUninit>(
        &mut self,
        file: &File,
        header: &mut SyscallsHeader,
        row: &T,
    ) -> io::Result<Place> {
        self.find_room::<T>(file, header)?;
        self.append(file, std::slice::from_ref(row))
    }

    /// Adds rows that follow each other, by few system calls.
    fn add_all<T: NoUninit>(
        &mut self,
        file: &File,
        header: &mut SyscallsHeader,
        mut rows: &[T],
    ) -> io::Result<()> {
        while !rows.is_empty() {
            let room = self.find_room::<T>(file, header)?;
            let (now, later) = rows.split_at(room.min(rows.len()));
            self.append(file, now)?;
            rows = later;
        }
        Ok(())
    }

    /// Begins another chunk if the present one is full; returns for how many rows there is room.
    fn find_room<T>(&mut self, file: &File, header: &mut SyscallsHeader) -> io::Result<usize> {
        let in_chunk = (CHUNK - size_of::<ChunkHeader>()) / size_of::<T>();
        if self.at == 0 || self.header.count as usize == in_chunk {
            let at = header.committed;
            self.header = ChunkHeader {
                magic: CHUNK_MAGIC,
                kind: self.kind as u32,
                len: CHUNK as u64,
                state: COMMITTED,
                owner: NONE,
                ..ChunkHeader::zeroed()
            };
            file.set_len(at + CHUNK as u64)?;
            file.write_all_at(bytes_of(&self.header), at)?;
            header.committed = at + CHUNK as u64;
            self.at = at;
            file.write_all_at(bytes_of(header), 0)?;
        }
        Ok(in_chunk - self.header.count as usize)
    }

    /// Adds rows to the present chunk, which has room for them; returns the place of the first.
    fn append<T: NoUninit>(&mut self, file: &File, rows: &[T]) -> io::Result<Place> {
        let offset = size_of::<ChunkHeader>() + self.header.count as usize * size_of::<T>();
        let at = self.at + offset as u64;
        file.write_all_at(cast_slice(rows), at)?;
        self.header.count += rows.len() as u32;
        file.write_all_at(bytes_of(&self.header), self.at)?;
        Ok(Place(at))
    }
}

fn on_cpu_row(row: &Row) -> OnCpuRow {
    OnCpuRow { tid: row.tid, reserved: 0, on_cpu_ns: row.total_ns }
}

fn turns_row(row: &Row) -> TurnsRow {
    let turns: Turns = bytemuck::cast(*row);
    TurnsRow {
        context_ref: turns.in_context as u32,
        tid: turns.tid,
        descriptor: turns.descriptor,
        reserved: 0,
        waits: turns.waits,
        waited_ns: turns.waited_ns,
        turns: turns.turns,
        total_ns: turns.total_ns,
        max_ns: turns.max_ns,
        blocked_ns: turns.blocked_ns,
        preempted_ns: turns.preempted_ns,
        long_turns: turns.long_turns,
        long_ns: turns.long_ns,
        histogram: turns.histogram,
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
