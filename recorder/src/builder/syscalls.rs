//! `.syscalls` files from a description.

use bytemuck::{Zeroable, bytes_of, cast_slice};

use super::file::chunk;
use crate::layout::{ChunkKind, NONE, PAGE, UNIT};
use crate::syscalls::{
    BUCKETS, BlockedRow, CauseRow, ERRNO_SHIFT, ERRNOS, FileRow, LongTurnRow, MAGIC, MAPPING_PATH,
    MappingRow, NO_DESCRIPTOR, OnCpuRow, READER_MIN, SINGLE_SYSCALL_TEXT, STATE_COMPLETE,
    SampleRow, SingleSyscallRow, SyscallRow, SyscallsHeader, TimedSampleRow, TurnsRow, VERSION,
    WAKER_THREAD, WaitRow, bucket_end_ns,
};

/// Describes what the companion saw of a process.
#[derive(Clone, Debug)]
pub struct SyscallsBuilder {
    /// The first page; [`build`](Self::build) fills in `committed`.
    pub header: SyscallsHeader,
    /// Rows of syscalls.
    pub syscalls: Vec<SyscallRow>,
    /// Rows of waits.
    pub waits: Vec<WaitRow>,
    /// Rows of samples.
    pub samples: Vec<SampleRow>,
    /// Times on the CPU.
    pub on_cpu: Vec<OnCpuRow>,
    /// Executable mappings.
    pub mappings: Vec<MappingRow>,
    /// Causes of waits.
    pub causes: Vec<CauseRow>,
    /// Long waits.
    pub blocked: Vec<BlockedRow>,
    /// Samples of files.
    pub files: Vec<FileRow>,
    /// Single system calls.
    pub single_syscalls: Vec<SingleSyscallRow>,
    /// Sums of turns.
    pub turns: Vec<TurnsRow>,
    /// Long turns.
    pub long_turns: Vec<LongTurnRow>,
    /// Rows of samples late in turns.
    pub late_samples: Vec<SampleRow>,
    /// Times of samples.
    pub timed_samples: Vec<TimedSampleRow>,
}

impl SyscallsBuilder {
    /// A complete file of process `pid`, as of [`Builder::new`](super::Builder::new), without rows
    /// and by a companion that costs nothing.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        let began_ns = 1_000_000_000;
        let header = SyscallsHeader {
            magic: MAGIC,
            version: VERSION,
            reader_min: READER_MIN,
            header_len: size_of::<SyscallsHeader>() as u32,
            state: STATE_COMPLETE,
            pid,
            parent_pid: 1,
            began_ns,
            began_realtime_ns: 1_700_000_000_000_000_000,
            boot_id: [0xb0; 16],
            ..SyscallsHeader::zeroed()
        };
        Self {
            header,
            syscalls: Vec::new(),
            waits: Vec::new(),
            samples: Vec::new(),
            on_cpu: Vec::new(),
            mappings: Vec::new(),
            causes: Vec::new(),
            blocked: Vec::new(),
            files: Vec::new(),
            single_syscalls: Vec::new(),
            turns: Vec::new(),
            long_turns: Vec::new(),
            late_samples: Vec::new(),
            timed_samples: Vec::new(),
        }
    }

    /// The name of the process.
    pub fn name(&mut self, name: &str) -> &mut Self {
        let len = name.len().min(self.header.name.len() - 1);
        self.header.name[..len].copy_from_slice(&name.as_bytes()[..len]);
        self
    }

    /// Adds `calls` of syscall `number`, each of `each_ns` with the tracing's cost on top; returns the row, for setting
    /// other fields.
    pub fn syscall(
        &mut self,
        context_ref: u32,
        tid: u32,
        number: u32,
        calls: u64,
        each_ns: u64,
    ) -> &mut SyscallRow {
        let ns = each_ns + self.header.cost_inside_ns;
        let mut row = SyscallRow {
            context_ref,
            tid,
            number,
            calls,
            total_ns: calls * ns,
            max_ns: ns,
            ..SyscallRow::zeroed()
        };
        row.histogram[bucket_of(ns)] = calls;
        self.syscalls.push(row);
        let last = self.syscalls.len() - 1;
        &mut self.syscalls[last]
    }

    /// Adds `waits` of one kind, each of `each_ns`.
    pub fn wait(
        &mut self,
        context_ref: u32,
        tid: u32,
        kind: u32,
        waits: u64,
        each_ns: u64,
    ) -> &mut Self {
        let mut row = WaitRow {
            context_ref,
            tid,
            kind,
            waits,
            total_ns: waits * each_ns,
            max_ns: each_ns,
            ..WaitRow::zeroed()
        };
        row.histogram[bucket_of(each_ns)] = waits;
        self.waits.push(row);
        self
    }

    /// Adds samples, in user space and in the kernel.
    pub fn samples(
        &mut self,
        context_ref: u32,
        tid: u32,
        address: u64,
        user: u32,
        kernel: u32,
    ) -> &mut Self {
        self.samples.push(SampleRow { context_ref, tid, address, user, kernel });
        self
    }

    /// Adds when one of the samples of the latest row was taken, ns after the start, in user space.
    pub fn timed_sample(&mut self, at_ns: u64) -> &mut Self {
        let row = (self.samples.len() as u32).saturating_sub(1);
        let at_ns = self.header.began_ns + at_ns;
        self.timed_samples.push(TimedSampleRow { at_ns, row, stands_for: 1, in_kernel: 0 });
        self
    }

    /// Adds time of a thread on the CPU.
    pub fn on_cpu(&mut self, tid: u32, on_cpu_ns: u64) -> &mut Self {
        self.on_cpu.push(OnCpuRow { tid, processors: 0, first_processor: 0, on_cpu_ns });
        self
    }

    /// Says that the thread of the latest row of time on the CPU may only run on `processors`, the lowest of which is `first`.
    pub fn confined_to(&mut self, processors: u16, first: u16) -> &mut Self {
        if let Some(row) = self.on_cpu.last_mut() {
            (row.processors, row.first_processor) = (processors, first);
        }
        self
    }

    /// Adds an executable mapping of a file, from its start.
    pub fn mapping(&mut self, start: u64, end: u64, path: &str) -> &mut Self {
        let mut row = MappingRow { start, end, offset: 0, seen_ns: 0, path: [0; MAPPING_PATH] };
        row.path[..path.len()].copy_from_slice(path.as_bytes());
        self.mappings.push(row);
        self
    }

    /// Adds a cause of waits.
    pub fn cause(&mut self, row: CauseRow) -> &mut Self {
        self.causes.push(row);
        self
    }

    /// Adds a long wait.
    pub fn blocked(&mut self, row: BlockedRow) -> &mut Self {
        self.blocked.push(row);
        self
    }

    /// Adds samples of a file.
    pub fn file(&mut self, row: FileRow) -> &mut Self {
        self.files.push(row);
        self
    }

    /// Adds a long turn of a thread, ns after the start, entirely on the CPU, after which descriptors are ready.
    pub fn long_turn(
        &mut self,
        tid: u32,
        descriptor: u32,
        at_ns: u64,
        ns: u64,
        ready: u32,
    ) -> &mut LongTurnRow {
        let begin_ns = self.header.began_ns + at_ns;
        let end_ns = begin_ns + ns;
        let row = LongTurnRow { tid, descriptor, ready, begin_ns, end_ns, ..LongTurnRow::zeroed() };
        self.long_turns.push(row);
        let last = self.long_turns.len() - 1;
        &mut self.long_turns[last]
    }

    /// Adds a system call of a thread, ns after the start, with the text that its first argument leads to.
    pub fn single_syscall(&mut self, tid: u32, number: u32, text: &[u8], at_ns: u64) -> &mut Self {
        let entered_ns = self.header.began_ns + at_ns;
        let left_ns = entered_ns + 1_000;
        let mut row =
            SingleSyscallRow { tid, number, entered_ns, left_ns, ..SingleSyscallRow::zeroed() };
        let len = text.len().min(SINGLE_SYSCALL_TEXT);
        row.texts[0][..len].copy_from_slice(&text[..len]);
        row.lens[0] = len as u32;
        let len = text.len().min(row.name.len() - 1);
        row.name[..len].copy_from_slice(&text[..len]);
        (row.object, row.mode, row.result) = (7, 0o100_644, 3);
        self.single_syscalls.push(row);
        self
    }

    /// The file's bytes.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        // Several chunks, as in a file that grew.
        const IN_CHUNK: usize = (PAGE - UNIT) / size_of::<SyscallRow>();
        const SAMPLES_IN_CHUNK: usize = (PAGE - UNIT) / size_of::<SampleRow>();
        const SINGLE_SYSCALLS_IN_CHUNK: usize = (PAGE - UNIT) / size_of::<SingleSyscallRow>();
        const MAPPINGS_IN_CHUNK: usize = (PAGE - UNIT) / size_of::<MappingRow>();
        let mut file = vec![0; PAGE];
        for rows in self.syscalls.chunks(IN_CHUNK) {
            chunk(&mut file, ChunkKind::Syscalls, NONE, rows.len() as u32, cast_slice(rows));
        }
        for rows in self.waits.chunks(IN_CHUNK) {
            chunk(&mut file, ChunkKind::Waits, NONE, rows.len() as u32, cast_slice(rows));
        }
        for rows in self.samples.chunks(SAMPLES_IN_CHUNK) {
            chunk(&mut file, ChunkKind::Samples, NONE, rows.len() as u32, cast_slice(rows));
        }
        for rows in self.on_cpu.chunks(SAMPLES_IN_CHUNK) {
            chunk(&mut file, ChunkKind::OnCpu, NONE, rows.len() as u32, cast_slice(rows));
        }
        for rows in self.mappings.chunks(MAPPINGS_IN_CHUNK) {
            chunk(&mut file, ChunkKind::Mappings, NONE, rows.len() as u32, cast_slice(rows));
        }
        for rows in self.causes.chunks(IN_CHUNK) {
            chunk(&mut file, ChunkKind::Causes, NONE, rows.len() as u32, cast_slice(rows));
        }
        for rows in self.blocked.chunks(SAMPLES_IN_CHUNK / 2) {
            chunk(&mut file, ChunkKind::Blocked, NONE, rows.len() as u32, cast_slice(rows));
        }
        for rows in self.files.chunks(IN_CHUNK) {
            chunk(&mut file, ChunkKind::Files, NONE, rows.len() as u32, cast_slice(rows));
        }
        for rows in self.single_syscalls.chunks(SINGLE_SYSCALLS_IN_CHUNK) {
            chunk(&mut file, ChunkKind::SingleSyscalls, NONE, rows.len() as u32, cast_slice(rows));
        }
        for rows in self.turns.chunks(IN_CHUNK) {
            chunk(&mut file, ChunkKind::Turns, NONE, rows.len() as u32, cast_slice(rows));
        }
        for rows in self.long_turns.chunks(SAMPLES_IN_CHUNK / 2) {
            chunk(&mut file, ChunkKind::LongTurns, NONE, rows.len() as u32, cast_slice(rows));
        }
        for rows in self.late_samples.chunks(SAMPLES_IN_CHUNK) {
            chunk(&mut file, ChunkKind::LateSamples, NONE, rows.len() as u32, cast_slice(rows));
        }
        for rows in self.timed_samples.chunks(SAMPLES_IN_CHUNK) {
            chunk(&mut file, ChunkKind::TimedSamples, NONE, rows.len() as u32, cast_slice(rows));
        }
        let header = SyscallsHeader { committed: file.len() as u64, ..self.header };
        file[..size_of_val(&header)].copy_from_slice(bytes_of(&header));
        file
    }
}

/// The errors of a row: errno and count of each. With more than there is room for, the first.
#[must_use]
pub fn errnos(errors: &[(u64, u64)]) -> [u64; ERRNOS] {
    let mut packed = [0; ERRNOS];
    for (place, (errno, count)) in packed.iter_mut().zip(errors) {
        *place = errno << ERRNO_SHIFT | count;
    }
    packed
}

fn bucket_of(ns: u64) -> usize {
    let fits = |&bucket: &usize| bucket_end_ns(bucket).is_none_or(|end| ns < end);
    (0..BUCKETS).find(fits).unwrap_or(BUCKETS - 1)
}

/// A small file with some of everything that goes with [`sample`](super::sample()): contexts that
/// are there, the root, none, one that is not there, threads of other processes, errors.
#[must_use]
pub fn syscalls_sample() -> SyscallsBuilder {
    let mut builder = SyscallsBuilder::new(1000);
    builder.name("app");
    builder.header.cost_inside_ns = 70;
    builder.header.cost_outside_ns = 90;
    builder.header.ended_ns = builder.header.began_ns + 1_000_000;
    for context_ref in 0..200 {
        let tid = 1000 + context_ref % 6;
        let row =
            builder.syscall(context_ref, tid, context_ref * 7 % 470, 3, 100 << (context_ref % 30));
        row.errors = 2;
        row.errnos = errnos(&[(2, 1), (11, 1)]);
        row.returned = 4096;
        builder.wait(context_ref, tid, context_ref % 2, 2, 500);
    }
    builder.header.sample_hz = 997;
    for thread in 0..6 {
        builder.on_cpu(1000 + thread, 1_000_000 * u64::from(thread));
        for at in 0..40 {
            builder.samples(
                at * 5,
                1000 + thread,
                0x40_0000 + u64::from(at) * 0x1_0001,
                at,
                at % 3,
            );
            builder.timed_sample(u64::from(thread * 40 + at) * 3_000);
        }
    }
    // An event loop by epoll, and one by poll; threads that wait meanwhile.
    for (thread, descriptor) in (0..3).zip([7, 7, NO_DESCRIPTOR]) {
        let tid = 1000 + thread;
        let mut row = TurnsRow { tid, descriptor, context_ref: 3, ..TurnsRow::zeroed() };
        (row.waits, row.waited_ns, row.turns) = (101, 40_000, 100);
        (row.total_ns, row.max_ns, row.long_turns, row.long_ns) =
            (60_100_000, 60_000_000, 1, 60_000_000);
        row.histogram[2] = 99;
        row.histogram[BUCKETS - 2] = 1;
        builder.turns.push(row);
        builder.long_turn(tid, descriptor, 100_000, 60_000_000, 3).blocked_ns = 20_000_000;
        let late =
            SampleRow { tid, context_ref: 5, address: 0x40_1000, user: 9, ..SampleRow::zeroed() };
        builder.late_samples.push(late);
        let (waits, total_ns, waker) = (1, 20_000_000, 1000 + (thread + 1) % 3);
        let (waker_kind, waker_pid) = (WAKER_THREAD, 1000);
        let cause = CauseRow { tid, waits, total_ns, waker, ..CauseRow::zeroed() };
        builder.cause(CauseRow { object: 0x40_4000, waker_kind, waker_pid, ..cause });
        let begin_ns = builder.header.began_ns + 200_000;
        let (woken_ns, end_ns) = (begin_ns + total_ns, begin_ns + total_ns + 500_000);
        builder.blocked(BlockedRow { cause: thread, tid, begin_ns, woken_ns, end_ns });
        let file = FileRow { tid, number: 1, inode: 5, samples: 4, ..FileRow::zeroed() };
        builder.file(file);
    }
    builder.mapping(0x40_0000, 0x42_0000, "/usr/bin/app").mapping(0x44_0000, 0x48_0000, "");
    builder.syscall(u32::MAX, 9, u32::MAX, 1, u64::MAX >> 20).unfinished = 1;
    builder
}
