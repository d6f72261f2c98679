//! Writes a `.syscalls` file. Rows never move. They are collected and written together ([`SyscallsFile::flush`]): of short processes,
//! writing each by itself took a third of the companion's time.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use bytemuck::bytes_of;
use chase_format::layout::{ChunkKind, PAGE};
use chase_format::syscalls::{
    BlockedRow, CauseRow, FileRow, LongTurnRow, MAGIC, MappingRow, OnCpuRow, READER_MIN,
    STATE_STOPPED, SampleRow, SingleSyscallRow, SyscallRow, SyscallsHeader, TimedSampleRow,
    TurnsRow, VERSION, WaitRow,
};

use crate::growing::Growing;
pub use crate::growing::Place;
use crate::processors::Allowed;
use crate::shared::{ON_CPU, Row, TURNS, Turns, WAIT_PREEMPTED, WAIT_VOLUNTARY};

/// A file being written.
#[derive(Debug)]
pub struct SyscallsFile {
    file: File,
    /// The contents of the first page; written by [`SyscallsFile::write_header`].
    pub header: SyscallsHeader,
    /// Where the next chunk belongs. (Those that the header speaks of are in the file.)
    allocated: u64,
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

impl SyscallsFile {
    /// Creates the file, replacing an older one. Whatever else has its name, a link or a named pipe, is not opened.
    ///
    /// # Errors
    /// If it can't be created or written.
    pub fn create(path: &Path, header: SyscallsHeader) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(path)?;
                options.open(path)?
            }
            other => other?,
        };
        let mut this = Self {
            file,
            header,
            allocated: PAGE as u64,
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

    /// Writes the rows that were added since the last time, and then the header if there are new chunks.
    ///
    /// # Errors
    /// If they can't be written. Then the file is as it was, but may have more rows of some kinds than of others.
    pub fn flush(&mut self) -> io::Result<()> {
        let growing = [
            &mut self.syscalls,
            &mut self.waits,
            &mut self.on_cpu,
            &mut self.samples,
            &mut self.mappings,
            &mut self.causes,
            &mut self.blocked,
            &mut self.files,
            &mut self.single_syscalls,
            &mut self.turns,
            &mut self.long_turns,
            &mut self.late_samples,
            &mut self.timed_samples,
        ];
        for growing in growing {
            growing.flush(&self.file)?;
        }
        if self.header.committed < self.allocated {
            self.file.set_len(self.allocated)?;
            self.header.committed = self.allocated;
            self.write_header()?;
        }
        Ok(())
    }

    /// Appends a row; one of time on the CPU with the processors that the thread may run on.
    ///
    /// # Errors
    /// If those before it can't be written.
    pub fn add(&mut self, row: &Row, allowed: Option<Allowed>) -> io::Result<Place> {
        let Self { file, allocated, .. } = self;
        match row.syscall {
            WAIT_VOLUNTARY | WAIT_PREEMPTED => self.waits.add(file, allocated, &wait_row(row)),
            ON_CPU => self.on_cpu.add(file, allocated, &on_cpu_row(row, allowed)),
            TURNS => self.turns.add(file, allocated, &turns_row(row)),
            _ => self.syscalls.add(file, allocated, &syscall_row(row)),
        }
    }

    /// Appends a row of samples; also returns its index among these rows.
    ///
    /// # Errors
    /// If those before it can't be written.
    pub fn add_samples(&mut self, row: &SampleRow) -> io::Result<(Place, u32)> {
        let place = self.samples.add(&self.file, &mut self.allocated, row)?;
        self.number_of_samples += 1;
        Ok((place, self.number_of_samples - 1))
    }

    /// Appends times of samples.
    ///
    /// # Errors
    /// If those before them can't be written.
    pub fn add_timed_samples(&mut self, rows: &[TimedSampleRow]) -> io::Result<()> {
        self.timed_samples.add_all(&self.file, &mut self.allocated, rows)
    }

    /// Appends a row of samples late in turns.
    ///
    /// # Errors
    /// If those before it can't be written.
    pub fn add_late_samples(&mut self, row: &SampleRow) -> io::Result<Place> {
        self.late_samples.add(&self.file, &mut self.allocated, row)
    }

    /// Appends a long turn.
    ///
    /// # Errors
    /// If those before it can't be written.
    pub fn add_long_turn(&mut self, row: &LongTurnRow) -> io::Result<()> {
        self.long_turns.add(&self.file, &mut self.allocated, row).map(drop)
    }

    /// Appends a mapping.
    ///
    /// # Errors
    /// If those before it can't be written.
    pub fn add_mapping(&mut self, row: &MappingRow) -> io::Result<()> {
        self.mappings.add(&self.file, &mut self.allocated, row).map(drop)
    }

    /// Appends a single system call.
    ///
    /// # Errors
    /// If those before it can't be written.
    pub fn add_single_syscall(&mut self, row: &SingleSyscallRow) -> io::Result<()> {
        self.single_syscalls.add(&self.file, &mut self.allocated, row).map(drop)
    }

    /// Appends a cause of waits.
    ///
    /// # Errors
    /// If those before it can't be written.
    pub fn add_cause(&mut self, row: &CauseRow) -> io::Result<Place> {
        self.number_of_causes += 1;
        self.causes.add(&self.file, &mut self.allocated, row)
    }

    /// Returns the number of causes written.
    #[must_use]
    pub fn causes(&self) -> u32 {
        self.number_of_causes
    }

    /// Appends a long wait.
    ///
    /// # Errors
    /// If those before it can't be written.
    pub fn add_blocked(&mut self, row: &BlockedRow) -> io::Result<()> {
        self.blocked.add(&self.file, &mut self.allocated, row).map(drop)
    }

    /// Appends samples of a file.
    ///
    /// # Errors
    /// If those before it can't be written.
    pub fn add_file(&mut self, row: &FileRow) -> io::Result<Place> {
        self.files.add(&self.file, &mut self.allocated, row)
    }

    /// Rewrites samples of a file.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn update_file(&mut self, place: Place, row: &FileRow) -> io::Result<()> {
        self.files.update(&self.file, place, row)
    }

    /// Rewrites a cause of waits.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn update_cause(&mut self, place: Place, row: &CauseRow) -> io::Result<()> {
        self.causes.update(&self.file, place, row)
    }

    /// Rewrites a row, as [`SyscallsFile::add`].
    ///
    /// # Errors
    /// If it can't be written.
    pub fn update(&mut self, place: Place, row: &Row, allowed: Option<Allowed>) -> io::Result<()> {
        let file = &self.file;
        match row.syscall {
            WAIT_VOLUNTARY | WAIT_PREEMPTED => self.waits.update(file, place, &wait_row(row)),
            ON_CPU => self.on_cpu.update(file, place, &on_cpu_row(row, allowed)),
            TURNS => self.turns.update(file, place, &turns_row(row)),
            _ => self.syscalls.update(file, place, &syscall_row(row)),
        }
    }

    /// Rewrites a row of samples.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn update_samples(&mut self, place: Place, row: &SampleRow) -> io::Result<()> {
        self.samples.update(&self.file, place, row)
    }

    /// Rewrites a row of samples late in turns.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn update_late_samples(&mut self, place: Place, row: &SampleRow) -> io::Result<()> {
        self.late_samples.update(&self.file, place, row)
    }
}

fn on_cpu_row(row: &Row, allowed: Option<Allowed>) -> OnCpuRow {
    let Allowed { processors, first } = allowed.unwrap_or_default();
    OnCpuRow { tid: row.tid, processors, first_processor: first, on_cpu_ns: row.total_ns }
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

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use chase_format::layout::ChunkHeader;
    use chase_recorder::reader::SyscallsFile as Reader;

    use super::*;
    use crate::growing;

    fn sample(number: u32, user: u32) -> SampleRow {
        SampleRow { context_ref: 1, tid: 2, address: number.into(), user, kernel: 0 }
    }

    fn late(number: u32) -> SampleRow {
        SampleRow { tid: 3, ..sample(number, 1) }
    }

    /// What a reader finds: samples, and those late in turns.
    fn found(path: &Path) -> (Vec<SampleRow>, Vec<SampleRow>) {
        let file = Reader::parse(fs::read(path).expect("read")).expect("well-formed");
        assert_eq!(file.problems(), []);
        (file.samples().collect(), file.late_samples().collect())
    }

    #[test]
    fn rows_are_in_the_file_once_it_is_flushed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.chase.syscalls");
        fs::write(&path, "an older file").expect("written");
        let mut file = SyscallsFile::create(&path, SyscallsHeader::zeroed()).expect("a file");
        assert_eq!(found(&path), (vec![], vec![]));
        // Some chunks, flushed within a chunk, at its end, and not for more than one.
        let mut expected = (Vec::new(), Vec::new());
        let mut places = Vec::new();
        let in_chunk = (growing::CHUNK - size_of::<ChunkHeader>()) / size_of::<SampleRow>();
        for number in 0..5 * in_chunk as u32 {
            let row = sample(number, 1);
            let (place, index) = file.add_samples(&row).expect("added");
            assert_eq!(index, number);
            places.push(place);
            expected.0.push(row);
            if number % 100 == 0 {
                let row = late(number);
                file.add_late_samples(&row).expect("added");
                expected.1.push(row);
            }
            // One that waits, and one that is in the file, perhaps.
            for changed in [number, number / 2] {
                let row = sample(changed, number + 2);
                file.update_samples(places[changed as usize], &row).expect("changed");
                expected.0[changed as usize] = row;
            }
            let is_end = number as usize + 1 == in_chunk;
            if is_end || number == 7 || number as usize == 3 * in_chunk + 9 {
                file.flush().expect("flushed");
                assert_eq!(found(&path), expected, "{number}");
            }
        }
        file.flush().expect("flushed");
        assert_eq!(found(&path), expected);
        let len = fs::metadata(&path).expect("a file").len();
        file.flush().expect("nothing to do");
        assert_eq!((fs::metadata(&path).expect("a file").len(), len), (len, file.allocated));
    }

    #[test]
    fn what_can_not_be_written_is_not_spoken_of() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.chase.syscalls");
        let mut file = SyscallsFile::create(&path, SyscallsHeader::zeroed()).expect("a file");
        file.add_samples(&sample(1, 1)).expect("added");
        file.flush().expect("flushed");
        // From now on, it can't be written.
        file.file = File::open(&path).expect("opened");
        file.add_late_samples(&late(2)).expect("added");
        assert!(file.flush().is_err());
        file.stop();
        assert_eq!(found(&path), (vec![sample(1, 1)], vec![]));
    }
}
