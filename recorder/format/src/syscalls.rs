//! The `.syscalls` file beside a recording, version 1.
//!
//! A recording is written by the recorded process alone. What the kernel tells of it, by eBPF, is
//! written by another process, the companion, into a file of its own: `<recording>.syscalls`. A
//! process that never said hello (a static program, an image that ended before its hooks) has such
//! a file and no recording.
//!
//! ```text
//! offset 0           4096            committed
//! ┌─────────────────┬───────────────┬
//! │ SyscallsHeader  │ chunks        │   chunks as in a recording: ChunkHeader + rows of one kind
//! └─────────────────┴───────────────┴
//! ```
//!
//! # Who writes what, and when it may be read
//!
//! Only the companion writes, with `pwrite`. A row keeps its place for good and is written again,
//! whole, when it has changed. Its counters only grow, so a reader that meets a row half written
//! sees counters of two moments and no nonsense.
//!
//! | what | becomes readable |
//! | --- | --- |
//! | [`SyscallsHeader`] | at once; written again with each new chunk and at the end |
//! | a chunk's place | [`SyscallsHeader::committed`] moves past it, after its header was written |
//! | a row | [`ChunkHeader::count`] is written after it |
//!
//! # Rows
//!
//! There may be several rows of one (context, thread, syscall); they add up. Rows of context 0 are
//! of what happened outside of any recorded call, or before the hello; so are rows of a thread's
//! root. Rows of [`OWN_CONTEXT_REF`] are of what chase itself does there. A row's thread is that of its context's tree. Where the context is 0, or where `tid` is
//! not that thread's (a child on its parent's memory, as of `vfork`), it is the thread named by
//! `tid`.
//!
//! # Samples
//!
//! The clock of each CPU strikes [`SyscallsHeader::sample_hz`] times a second, and a sample is taken of the thread that
//! runs, if it is traced. What it was doing is told by [`SampleRow`]s, of which there is one for each (context,
//! thread, address); how long it ran, by [`OnCpuRow`]s, from switch to switch. So the time of a part of a thread's
//! samples is that part of its time on the CPU. Addresses are to be looked up in the recording's objects, and
//! in [`MappingRow`]s where these have none; of several mappings of one address the latest counts.
//!
//! # Causes
//!
//! A [`CauseRow`] is what waits have in common that are counted together: of which thread, in which context, for what, and who
//! ended them. Their sums are those of the [`WaitRow`]s of kind [`WAIT_VOLUNTARY`], but for waits that found no place
//! ([`SyscallsHeader::lost_causes`]).
//!
//! Waits of [`LONG_WAIT_NS`] and more are told one by one too, as [`BlockedRow`]s, as far as there is room: those that found
//! none are counted ([`SyscallsHeader::lost_blocked`]).
//!
//! # Files
//!
//! Samples that were taken in a system call for a descriptor also count in a [`FileRow`]: which files such calls were for.
//!
//! # Narration
//!
//! Where that was asked for, each system call has a [`ToldRow`], in the order in which they returned; those that found no room are
//! counted ([`SyscallsHeader::lost_told`]). An `execve` or an exit has one when it begins; an `execve` that failed has another.
//!
//! Times are in ns of `CLOCK_MONOTONIC`. Those of syscalls contain
//! [`SyscallsHeader::cost_inside_ns`] per call.
//!
//! # Versions
//!
//! | version | oldest reader | what changed |
//! | --- | --- | --- |
//! | 1 | 1 | the first |
//!
//! The rules are those of [`layout`](crate::layout): a reader ignores chunk kinds that it does not
//! know, and accepts any file whose `reader_min` is at most its own [`VERSION`].

use bytemuck::{Pod, Zeroable};

#[cfg(doc)]
use crate::layout::{ChunkHeader, OWN_CONTEXT_REF};

/// First bytes of a `.syscalls` file.
pub const MAGIC: [u8; 8] = *b"CHASESYS";
/// Version of the file as this crate describes it.
pub const VERSION: u32 = 1;
/// The oldest reader that understands it.
pub const READER_MIN: u32 = 1;
/// Appended to the name of a recording, after a dot.
pub const EXTENSION: &str = "syscalls";

/// [`SyscallsHeader::state`]: the companion is at work, or was killed.
pub const STATE_OPEN: u32 = 0;
/// [`SyscallsHeader::state`]: the process ended, and all of it is here.
pub const STATE_COMPLETE: u32 = 1;
/// [`SyscallsHeader::state`]: the companion stopped before the process did.
pub const STATE_STOPPED: u32 = 2;

/// [`WaitRow::kind`]: the thread waited for something.
pub const WAIT_VOLUNTARY: u32 = 0;
/// [`WaitRow::kind`]: the thread could have run, but another did.
pub const WAIT_PREEMPTED: u32 = 1;

/// Bit of [`SyscallRow::number`]: a call by `int 0x80`, whose numbers are those of i386.
pub const COMPAT: u32 = 1 << 29;

/// Buckets of a row's histogram; see [`bucket_end_ns`].
pub const BUCKETS: usize = 32;
/// Errors that a row tells apart.
pub const ERRNOS: usize = 6;
/// Bits of the count in an entry of [`SyscallRow::errnos`]; the errno is above.
pub const ERRNO_SHIFT: u32 = 48;

/// Bucket `i` has the durations that are shorter than this and in no bucket before; the last one
/// has no end.
#[must_use]
pub const fn bucket_end_ns(bucket: usize) -> Option<u64> {
    if bucket + 1 < BUCKETS { Some(1 << (6 + bucket)) } else { None }
}

/// The first page of a `.syscalls` file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct SyscallsHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The oldest reader version that can read this file.
    pub reader_min: u32,
    /// Bytes of this structure that the writer knew.
    pub header_len: u32,
    /// `STATE_*`.
    pub state: u32,
    /// Process id, in the process's own pid namespace.
    pub pid: u32,
    /// The traced process that it came from (its own number after an exec); 0 when unknown.
    pub parent_pid: u32,
    /// Bytes of the file that hold this page and complete chunk headers.
    pub committed: u64,
    /// When the tracing of this image began, `CLOCK_MONOTONIC`.
    pub began_ns: u64,
    /// The same moment, ns since 1970.
    pub began_realtime_ns: u64,
    /// When its last thread ended; 0 as long as it lives.
    pub ended_ns: u64,
    /// When rows were last written.
    pub written_ns: u64,
    /// Of each call's duration, what the tracing itself takes.
    pub cost_inside_ns: u64,
    /// Per call, what the tracing takes beyond that.
    pub cost_outside_ns: u64,
    /// Calls of all processes of the run that found no room for a row.
    pub lost_calls: u64,
    /// Waits of all processes of the run that found no room for a row.
    pub lost_waits: u64,
    /// Processes of the run that could not be traced for want of room.
    pub lost_processes: u64,
    /// Threads of the run that could not be traced for want of room.
    pub lost_threads: u64,
    /// Images of the run that were no longer traced because they are set-user-id or set-group-id.
    pub dropped_images: u64,
    /// `/proc/sys/kernel/random/boot_id`, zero when it could not be read.
    pub boot_id: [u8; 16],
    /// Name of the process when the image began, padded with NUL.
    pub name: [u8; 16],
    /// Samples of what runs, per second and CPU; 0: none are taken. (Missing in older files, as is what follows.)
    pub sample_hz: u64,
    /// Samples of all processes of the run for which there was no room.
    pub lost_samples: u64,
    /// Processor time of the companion so far, for all processes that it watches, ns.
    pub companion_cpu_ns: u64,
    /// 1 if samples are of time in user space alone: they were taken without privilege, and nothing else was seen. Each
    /// stands for one part of a second in `sample_hz`; what threads lack in samples, they were in the kernel.
    pub user_only: u64,
    /// Waits of all processes of the run whose cause found no room.
    pub lost_causes: u64,
    /// System calls that were to be told and found no room: of this process, or of all of the run.
    pub lost_told: u64,
    /// Processors of the machine; 0: not known.
    pub processors: u64,
    /// Long waits without a row of their own, at least: of this process, or of all of the run.
    pub lost_blocked: u64,
}

/// What one thread did in one context by one syscall.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct SyscallRow {
    /// The context's node in the recording; 0 for none.
    pub context_ref: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// Number of the syscall, with [`COMPAT`] where it applies.
    pub number: u32,
    /// Padding.
    pub reserved: u32,
    /// Calls that have ended.
    pub calls: u64,
    /// Their time.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// How much of the time was spent off the CPU.
    pub off_cpu_ns: u64,
    /// Sum of the positive results: bytes, for the calls that return bytes.
    pub returned: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Calls that a signal ended and that the kernel makes again (results -512, -513, -514, -516).
    pub restarts: u64,
    /// Calls, counted in `calls` with the time until then, that never returned: the thread ended.
    pub unfinished: u64,
    /// `errno << ERRNO_SHIFT | count`, of the errors that were met first; the others are what is
    /// missing in `errors`.
    pub errnos: [u64; ERRNOS],
    /// See [`bucket_end_ns`].
    pub histogram: [u64; BUCKETS],
}

/// How long one thread was off the CPU in one context.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct WaitRow {
    /// The context's node in the recording; 0 for none.
    pub context_ref: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// `WAIT_*`.
    pub kind: u32,
    /// Padding.
    pub reserved: u32,
    /// Times that it was taken off and put on again.
    pub waits: u64,
    /// The time between.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Room for later: who woke it, how long it was ready.
    pub later: [u64; 11],
    /// See [`bucket_end_ns`].
    pub histogram: [u64; BUCKETS],
}

/// How often one thread was found at one address in one context, by the clock of its CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct SampleRow {
    /// The context's node in the recording; 0 for none.
    pub context_ref: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// Of the instruction in user space that it was at, or is to go on at after what it does in the kernel.
    pub address: u64,
    /// Samples in user space.
    pub user: u32,
    /// Samples in the kernel.
    pub kernel: u32,
}

/// How long one thread has been on the CPU in all, from the beginning of its tracing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct OnCpuRow {
    /// Thread id in the process's own pid namespace. There may be several rows of one; they add up.
    pub tid: u32,
    /// Padding.
    pub reserved: u32,
    /// The time.
    pub on_cpu_ns: u64,
}

/// [`CauseRow::waker_kind`]: not known.
pub const WAKER_UNKNOWN: u32 = 0;
/// [`CauseRow::waker_kind`]: a thread of a process that is traced.
pub const WAKER_THREAD: u32 = 1;
/// [`CauseRow::waker_kind`]: another process.
pub const WAKER_PROCESS: u32 = 2;
/// [`CauseRow::waker_kind`]: a thread of the kernel's.
pub const WAKER_KERNEL: u32 = 3;
/// [`CauseRow::waker_kind`]: an interrupt, of a device, of the network, or of a timer.
pub const WAKER_INTERRUPT: u32 = 4;

/// [`CauseRow::waker_kind`]: nobody; it had waited as long as it would at most.
pub const WAKER_TIME: u32 = 5;

/// [`CauseRow::number`]: the thread waited outside of any syscall, as for a page.
pub const NO_SYSCALL: u32 = u32::MAX;

/// Bytes of [`CauseRow::name`].
pub const OBJECT_NAME: usize = 256;

/// Waits that are alike.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct CauseRow {
    /// The context's node in the recording; 0 for none.
    pub context_ref: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// Number of the syscall that it waited in, or [`NO_SYSCALL`].
    pub number: u32,
    /// Operation of the futex, or the descriptor.
    pub detail: u32,
    /// Return address of the library call that it waited in; 0: not known.
    pub site: u64,
    /// Address of the futex, or inode behind the descriptor; 0: not known.
    pub object: u64,
    /// Thread that owned the mutex while this one waited; 0: not known, or it is no mutex.
    pub holder: u32,
    /// Context that the owner was in.
    pub holder_context_ref: u32,
    /// Return address of the library call that the owner was in.
    pub holder_site: u64,
    /// `WAKER_*`.
    pub waker_kind: u32,
    /// The thread that has woken it.
    pub waker: u32,
    /// Process of the waker, in its own pid namespace.
    pub waker_pid: u32,
    /// Context that the waker was in.
    pub waker_context_ref: u32,
    /// Return address of the library call by which it has woken.
    pub waker_site: u64,
    /// [`SyscallsHeader::began_ns`] of the waker's image.
    pub waker_began_ns: u64,
    /// How many waits.
    pub waits: u64,
    /// Their time, until the thread ran again.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The part of the time after the thread was woken.
    pub ready_ns: u64,
    /// Name of the thread that has woken it last, padded with NUL.
    pub waker_name: [u8; 16],
    /// What the descriptor was of, padded with NUL: a path, the ends of a connection; empty where that is not known.
    pub name: [u8; OBJECT_NAME],
}

/// Waits from this long on have a [`BlockedRow`].
pub const LONG_WAIT_NS: u64 = 1_000_000;

/// One wait, of [`LONG_WAIT_NS`] or more.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockedRow {
    /// What it has in common with others: which of the file's [`CauseRow`]s, in their order.
    pub cause: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// When it began, `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// When it was woken; 0: nobody was seen to do so.
    pub woken_ns: u64,
    /// When it ran again.
    pub end_ns: u64,
}

/// Bytes of [`FileRow::name`].
pub const FILE_NAME: usize = 64;

/// How often one thread was found in a system call for one file, by the clock of its CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct FileRow {
    /// The context's node in the recording; 0 for none.
    pub context_ref: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// Number of the system call.
    pub number: u32,
    /// Of the inode: what kind of file it is, as `stat(2)` has it.
    pub mode: u32,
    /// Inode.
    pub inode: u64,
    /// Samples.
    pub samples: u64,
    /// Name of the file, without its directory, padded with NUL.
    pub name: [u8; FILE_NAME],
}

/// Bytes of a text in [`ToldRow`].
pub const TOLD_TEXT: usize = 96;

/// One system call, with its arguments.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct ToldRow {
    /// The context's node in the recording; 0 for none.
    pub context_ref: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// Number of the syscall, with [`COMPAT`] where it applies.
    pub number: u32,
    /// Padding.
    pub reserved: u32,
    /// When it began.
    pub entered_ns: u64,
    /// When it returned; 0: it has not, or this is its beginning.
    pub left_ns: u64,
    /// What it returned; errors are negative.
    pub result: i64,
    /// As they were in the registers.
    pub arguments: [u64; 6],
    /// Inode behind the descriptor that it is for, or that it gave; 0: there is none.
    pub object: u64,
    /// Of the inode: what kind of file it is, as `stat(2)` has it.
    pub mode: u32,
    /// Bytes of the texts, an ending NUL among them; 0: there is none, or it could not be read.
    pub lens: [u32; 2],
    /// Padding.
    pub reserved_too: u32,
    /// What arguments lead to: paths, the beginnings of what was read and written, small structures.
    pub texts: [[u8; TOLD_TEXT]; 2],
    /// Name of the file behind the descriptor, without its directory, padded with NUL. Of a socket: its address family, its own port, the
    /// other one's in network order, two bytes of padding, its own address and the other one's, each in 16 bytes.
    pub name: [u8; 48],
}

/// Bytes of [`MappingRow::path`].
pub const MAPPING_PATH: usize = 480;

/// Executable memory of the process in which samples lie, as `/proc/PID/maps` had it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct MappingRow {
    /// First address.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Where in the file that is.
    pub offset: u64,
    /// When it was seen, `CLOCK_MONOTONIC`.
    pub seen_ns: u64,
    /// The file, or what the kernel calls it (`[vdso]`), padded with NUL; empty for memory of no file.
    pub path: [u8; MAPPING_PATH],
}

const _: () = {
    assert!(size_of::<SampleRow>() == 24);
    assert!(size_of::<OnCpuRow>() == 16);
    assert!(size_of::<MappingRow>() == 512);
    assert!(size_of::<SyscallRow>() == 384);
    assert!(size_of::<WaitRow>() == 384);
    assert!(size_of::<SyscallsHeader>() == 224);
    assert!(size_of::<BlockedRow>() == 32);
    assert!(size_of::<FileRow>() == 96);
    assert!(size_of::<ToldRow>() == 352);
    assert!(size_of::<CauseRow>() == 384);
    assert!(bucket_end_ns(0).unwrap() == 64);
    assert!(bucket_end_ns(BUCKETS - 1).is_none());
};
