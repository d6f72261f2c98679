//! The `.syscalls` file beside a recording, version 3.
//!
//! A recording is written by the recorded process alone. What the kernel reports about it, through eBPF, is written
//! by another process, the companion, into a file of its own: `<recording>.syscalls`. A process that never sent a
//! hello (a static program, or an image that ended before it was hooked) has such a file and no recording.
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
//! Only the companion writes, with `pwrite`. A row stays in its place, and is rewritten as a whole when it has
//! changed. Its counters only grow, so a reader that reads a row while it is written gets counters of two moments,
//! but no garbage.
//!
//! | what | becomes readable |
//! | --- | --- |
//! | [`SyscallsHeader`] | at once; written again with each new chunk and at the end |
//! | a chunk's place | [`SyscallsHeader::committed`] moves past it, after its header was written |
//! | a row | [`ChunkHeader::count`] is written after it |
//!
//! # Rows
//!
//! There may be several rows of one (context, thread, syscall), which add up. Rows of context 0 are for what happened
//! outside of any recorded call, or before the hello; so are rows of a thread's root. Rows of [`OWN_CONTEXT_REF`] are
//! for what chase itself does there. A row's thread is that of its context's tree. If the context is 0, or if `tid`
//! is not that thread's (but that of a child that uses its parent's memory, as after `vfork`), it is the thread
//! `tid`.
//!
//! # Samples
//!
//! A timer of each CPU fires [`SyscallsHeader::sample_hz`] times a second, and takes a sample of the running thread
//! if it is traced. [`SampleRow`]s count what threads were doing, one for each (context, thread, address);
//! [`OnCpuRow`]s sum up how long threads ran, from switch to switch. So a fraction of a thread's samples stands for
//! the same fraction of its time on the CPU. Addresses are to be looked up in the recording's objects, and in
//! [`MappingRow`]s where no object contains them; if several mappings contain an address, the latest counts.
//!
//! [`TimedSampleRow`]s tell when some of these samples were taken: all of a process's first ones, and later one of two, of
//! four, and so on, drawn evenly, so that their number grows with the logarithm of the time only. Each says how many it
//! stands for. Processes with few samples have none.
//!
//! # Causes
//!
//! A [`CauseRow`] counts waits that have everything in common: the thread, the context, what was waited for, and who
//! ended the wait. Their sums are those of the [`WaitRow`]s of kind [`WAIT_VOLUNTARY`], except for waits for which
//! there was no room ([`SyscallsHeader::lost_causes`]).
//!
//! Single waits of [`LONG_WAIT_NS`] or more are also recorded as [`BlockedRow`]s, as far as there is room, and so are
//! times as long in which others had the CPU; those without a row are counted ([`SyscallsHeader::lost_blocked`],
//! [`SyscallsHeader::lost_preempted`]).
//!
//! # Turns
//!
//! A *turn* of a thread is the time from the end of a wait for descriptors (`poll`, `select`, `epoll_wait` and their variants) to the
//! beginning of its next one of the same loop. Whoever the thread serves waits meanwhile. `poll` and `select` for a
//! single descriptor count only if that takes new connections; others belong to the read or write that follows, and their time to the
//! turn. (What an `epoll` waits for is not looked at; all `poll`s and `select`s of a thread are one loop.) A
//! [`TurnsRow`] sums up the turns of one thread in one loop: by one `epoll` descriptor, or by `poll` and `select`; as far as there was room ([`SyscallsHeader::lost_turns`] counts waits without). Turns
//! of [`LONG_TURN_NS`] or more are also recorded as [`LongTurnRow`]s; those without a row are counted in their `TurnsRow`, too. Samples
//! that were taken when a turn had taken [`LONG_TURN_NS`] already are counted again, in [`SampleRow`]s of their own
//! ([`ChunkKind::LateSamples`]).
//!
//! # Files
//!
//! Samples taken in a system call on a descriptor are also counted in a [`FileRow`], by file.
//!
//! # Narration
//!
//! If requested, each single system call has a [`SingleSyscallRow`], in the order of their returns; those for which
//! there was no room are counted ([`SyscallsHeader::lost_single_syscalls`]). An `execve` or an exit has a row when it
//! begins; an `execve` that failed has another.
//!
//! Times are in ns of `CLOCK_MONOTONIC`. Those of syscalls include [`SyscallsHeader::cost_inside_ns`] per call.
//!
//! # Versions
//!
//! | version | oldest reader | what changed |
//! | --- | --- | --- |
//! | 1 | 1 | the first |
//! | 2 | 1 | [`CauseRow::calls`], in place of the last bytes of its name |
//! | 3 | 1 | [`CauseRow::name`] of futexes that processes share |
//!
//! The rules are those of [`layout`](crate::layout): a reader ignores unknown chunk kinds, and accepts any file whose
//! `reader_min` is at most its own [`VERSION`].

use bytemuck::{Pod, Zeroable};

mod header;
mod timed;
mod turns;

#[cfg(doc)]
use crate::layout::{ChunkHeader, ChunkKind, OWN_CONTEXT_REF};
pub use header::{QUOTA_GROUP, SyscallsHeader};
pub use timed::TimedSampleRow;
pub use turns::{LONG_TURN_NS, LongTurnRow, NO_DESCRIPTOR, TurnsRow};

/// First bytes of a `.syscalls` file.
pub const MAGIC: [u8; 8] = *b"CHASESYS";
/// Version of the format described by this crate.
pub const VERSION: u32 = 3;
/// Since this version, there is [`CauseRow::calls`].
pub const VERSION_CALLS: u32 = 2;
/// The oldest reader that understands it.
pub const READER_MIN: u32 = 1;
/// Appended to the name of a recording, after a dot.
pub const EXTENSION: &str = "syscalls";

/// [`SyscallsHeader::state`]: the companion is working, or was killed.
pub const STATE_OPEN: u32 = 0;
/// [`SyscallsHeader::state`]: the process has ended, and the file is complete.
pub const STATE_COMPLETE: u32 = 1;
/// [`SyscallsHeader::state`]: the companion stopped before the process did.
pub const STATE_STOPPED: u32 = 2;

/// [`WaitRow::kind`]: the thread waited for something.
pub const WAIT_VOLUNTARY: u32 = 0;
/// [`WaitRow::kind`]: the thread was ready to run, but others ran.
pub const WAIT_PREEMPTED: u32 = 1;

/// Bit of [`SyscallRow::number`]: a call by `int 0x80`, whose numbers are those of i386.
pub const COMPAT: u32 = 1 << 29;

/// The number of buckets of a row's histogram; see [`bucket_end_ns`].
pub const BUCKETS: usize = 32;
/// The number of different errors that a row counts separately.
pub const ERRNOS: usize = 6;
/// The number of bits of the count in an entry of [`SyscallRow::errnos`]; the errno is above them.
pub const ERRNO_SHIFT: u32 = 48;

/// Returns the exclusive end of bucket `bucket` in ns, which is the start of the next; `None` for the last one, which
/// has no end.
#[must_use]
pub const fn bucket_end_ns(bucket: usize) -> Option<u64> {
    if bucket + 1 < BUCKETS { Some(1 << (6 + bucket)) } else { None }
}

/// The calls of one syscall by one thread in one context.
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
    /// The number of calls that have ended.
    pub calls: u64,
    /// Their total time.
    pub total_ns: u64,
    /// The time of the longest.
    pub max_ns: u64,
    /// The part of their time that was off the CPU.
    pub off_cpu_ns: u64,
    /// The sum of the positive results: bytes, for calls that return bytes.
    pub returned: u64,
    /// The number of calls that failed.
    pub errors: u64,
    /// Calls that were interrupted by a signal and made again by the kernel.
    pub restarts: u64,
    /// Calls that never returned, because the thread ended. They are in `calls`, with their time until then.
    pub unfinished: u64,
    /// `errno << ERRNO_SHIFT | count` of the errors that occurred first; the rest of `errors` are other ones.
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
    /// How often it was switched off the CPU and back on.
    pub waits: u64,
    /// The total time in between.
    pub total_ns: u64,
    /// The longest such time.
    pub max_ns: u64,
    /// Reserved.
    pub later: [u64; 11],
    /// See [`bucket_end_ns`].
    pub histogram: [u64; BUCKETS],
}

/// How often the samples found one thread at one address in one context.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct SampleRow {
    /// The context's node in the recording; 0 for none.
    pub context_ref: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// The address of the instruction in user space that it was executing, or will continue with after the kernel.
    pub address: u64,
    /// Samples in user space.
    pub user: u32,
    /// Samples in the kernel.
    pub kernel: u32,
}

/// How long one thread was on the CPU in total, since its tracing began.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct OnCpuRow {
    /// Thread id in the process's own pid namespace. If a thread has several rows, their times add up.
    pub tid: u32,
    /// The number of processors that it was allowed to run on when this was written; 0 if unknown.
    pub processors: u16,
    /// The lowest number of these.
    pub first_processor: u16,
    /// The time.
    pub on_cpu_ns: u64,
}

/// [`CauseRow::waker_kind`]: unknown.
pub const WAKER_UNKNOWN: u32 = 0;
/// [`CauseRow::waker_kind`]: a thread of a process that is traced.
pub const WAKER_THREAD: u32 = 1;
/// [`CauseRow::waker_kind`]: another process.
pub const WAKER_PROCESS: u32 = 2;
/// [`CauseRow::waker_kind`]: a kernel thread.
pub const WAKER_KERNEL: u32 = 3;
/// [`CauseRow::waker_kind`]: an interrupt, of a device, the network, or a timer.
pub const WAKER_INTERRUPT: u32 = 4;

/// [`CauseRow::waker_kind`]: nobody; the wait timed out.
pub const WAKER_TIME: u32 = 5;

/// [`CauseRow::number`]: the thread waited outside of any syscall, for example for a page.
pub const NO_SYSCALL: u32 = u32::MAX;

/// [`CauseRow::detail`]: the thread was stopped, by a signal or by who traces it.
pub const STOPPED: u32 = 1;

/// Bytes of [`CauseRow::name`].
pub const OBJECT_NAME: usize = 248;

/// Waits that have everything in common.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct CauseRow {
    /// The context's node in the recording; 0 for none.
    pub context_ref: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// Number of the syscall that it waited in, or [`NO_SYSCALL`].
    pub number: u32,
    /// The operation of the futex, or the descriptor; of a wait for several, the one that the thread took something from next. Outside of
    /// any syscall: [`STOPPED`], or 0.
    pub detail: u32,
    /// Return address of the library call in which it waited; 0 if unknown.
    pub site: u64,
    /// Address of the futex, or inode of the descriptor's file; 0 if unknown.
    pub object: u64,
    /// The thread that owned the mutex while this one waited; 0 if unknown, or if there is no mutex.
    pub holder: u32,
    /// The context of the owner.
    pub holder_context_ref: u32,
    /// Return address of the library call of the owner.
    pub holder_site: u64,
    /// `WAKER_*`.
    pub waker_kind: u32,
    /// The thread that woke it.
    pub waker: u32,
    /// The waker's process, in its own pid namespace.
    pub waker_pid: u32,
    /// The context of the waker.
    pub waker_context_ref: u32,
    /// Return address of the library call in which the waker woke it.
    pub waker_site: u64,
    /// [`SyscallsHeader::began_ns`] of the waker's image.
    pub waker_began_ns: u64,
    /// The number of waits.
    pub waits: u64,
    /// Their total time, until the thread ran again.
    pub total_ns: u64,
    /// The time of the longest.
    pub max_ns: u64,
    /// The part of the time after the thread was woken.
    pub ready_ns: u64,
    /// Name of the thread that woke it last, NUL-padded.
    pub waker_name: [u8; 16],
    /// What the descriptor refers to, NUL-padded: a path, or the ends of a connection; empty if unknown. Of a futex that processes share,
    /// the file and the place in it that are mapped there, `shared DEVICE:INODE+OFFSET`: the same for all that wait for it, at whatever
    /// addresses; empty for others, or if unknown.
    pub name: [u8; OBJECT_NAME],
    /// The number of library calls that waited for a futex, and for which one of these waits was the first: summed over
    /// the rows with that futex, all calls that had to wait for it. 0 for other waits, and for those outside of calls.
    pub calls: u64,
}

/// Waits of at least this duration have a [`BlockedRow`].
pub const LONG_WAIT_NS: u64 = 1_000_000;

/// [`BlockedRow::cause`]: the thread did not wait; it was ready to run, and others had the CPU.
pub const NO_CAUSE: u32 = u32::MAX;

/// One wait, of [`LONG_WAIT_NS`] or more, or a time as long in which others had the CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct BlockedRow {
    /// Its cause: the index among the file's [`CauseRow`]s, in their order, or [`NO_CAUSE`].
    pub cause: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// When it began, `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// When it was woken; 0 if the waker was not seen.
    pub woken_ns: u64,
    /// When it ran again.
    pub end_ns: u64,
}

/// Bytes of [`FileRow::name`].
pub const FILE_NAME: usize = 64;

/// How often the samples found one thread in one system call on one file.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct FileRow {
    /// The context's node in the recording; 0 for none.
    pub context_ref: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// Number of the system call.
    pub number: u32,
    /// The inode's mode, as in `stat(2)`.
    pub mode: u32,
    /// Inode number.
    pub inode: u64,
    /// The number of samples.
    pub samples: u64,
    /// Name of the file without its directory, NUL-padded.
    pub name: [u8; FILE_NAME],
}

/// Size in bytes of a text in [`SingleSyscallRow`].
pub const SINGLE_SYSCALL_TEXT: usize = 96;

/// A single system call, with its arguments.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct SingleSyscallRow {
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
    /// When it returned; 0 if it did not, or if this is the row of its beginning.
    pub left_ns: u64,
    /// Its result; errors are negative.
    pub result: i64,
    /// The arguments in registers.
    pub arguments: [u64; 6],
    /// Inode of the file of the descriptor that it was called for, or that it returned; 0 if there is none. Of `execve` and `execveat`:
    /// how many arguments, and in the upper half how many variables, the program is started with, at most 4096 each.
    pub object: u64,
    /// The inode's mode, as in `stat(2)`.
    pub mode: u32,
    /// Sizes of the texts in bytes, including the NUL at the end; 0 if there is none, or if it could not be read.
    pub lens: [u32; 2],
    /// Padding.
    pub reserved_too: u32,
    /// What the arguments point to: paths, the beginning of what was read or written, small structures, the first arguments of a program, each
    /// with its NUL and cut to 32 bytes with it.
    pub texts: [[u8; SINGLE_SYSCALL_TEXT]; 2],
    /// Name of the descriptor's file without its directory, NUL-padded. For a socket: its address family, its own
    /// port and that of the peer in network order, two bytes of padding, its own address and that of the peer, each
    /// in 16 bytes. For `AF_UNIX`, the peer's address is its inode, in 8 bytes; 0 if it is not known.
    pub name: [u8; 48],
}

/// Bytes of [`MappingRow::path`].
pub const MAPPING_PATH: usize = 480;

/// Executable memory of the process in which samples lie, as in `/proc/PID/maps`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct MappingRow {
    /// First address.
    pub start: u64,
    /// End address.
    pub end: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// When it was seen, `CLOCK_MONOTONIC`.
    pub seen_ns: u64,
    /// The file's path, or the kernel's name (`[vdso]`), NUL-padded; empty for anonymous memory.
    pub path: [u8; MAPPING_PATH],
}

const _: () = {
    assert!(size_of::<SampleRow>() == 24);
    assert!(size_of::<OnCpuRow>() == 16);
    assert!(size_of::<MappingRow>() == 512);
    assert!(size_of::<SyscallRow>() == 384);
    assert!(size_of::<WaitRow>() == 384);
    assert!(size_of::<SyscallsHeader>() == 368);
    assert!(size_of::<BlockedRow>() == 32);
    assert!(size_of::<FileRow>() == 96);
    assert!(size_of::<SingleSyscallRow>() == 352);
    assert!(size_of::<CauseRow>() == 384);
    assert!(bucket_end_ns(0).unwrap() == 64);
    assert!(bucket_end_ns(BUCKETS - 1).is_none());
};
