//! What the format gains: two kinds of chunk, and a file of their own to be in.
//!
//! A recording is written by the recorded process alone, so the companion writes beside it: the
//! file `<recording>.syscalls`, of the same structure (a first page, then chunks of
//! [`ChunkHeader`]s with contents). Rows have a fixed place and are written again, whole, while
//! the process runs; their counters only grow, so a reader that meets a row half written sees
//! counters of two moments and no nonsense. A process that never said hello (a static program, an
//! image that started before its hooks) has such a file and no recording.
//!
//! Rows of context 0 are of syscalls made outside any call that is recorded, or before the hello.
//! A row's thread is that of its context's tree; where the context is 0, or where `tid` is not
//! that thread's (a child on its parent's memory, as of `vfork`), it is the thread named by `tid`.
//!
//! Times are in ns of `CLOCK_MONOTONIC`, and contain [`SyscallsHeader::cost_inside_ns`] per call.
//!
//! [`ChunkHeader`]: chase_format::layout::ChunkHeader

use bytemuck::{Pod, Zeroable};

/// First bytes of a `.syscalls` file.
pub const MAGIC: [u8; 8] = *b"CHASESYS";
/// Version of the file.
pub const VERSION: u32 = 1;
/// Appended to the name of a recording, after a dot.
pub const EXTENSION: &str = "syscalls";

/// `ChunkKind::Syscalls`: [`SyscallRow`]s, `count` of them.
pub const CHUNK_SYSCALLS: u32 = 5;
/// `ChunkKind::Waits`: [`WaitRow`]s, `count` of them.
pub const CHUNK_WAITS: u32 = 6;

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

/// Buckets of a row's histogram: bucket `i` has the durations below `2^(6+i)` ns that no bucket
/// before has; the last has no limit.
pub const BUCKETS: usize = 32;
/// Errors that a row tells apart.
pub const ERRNOS: usize = 6;

/// The first page of a `.syscalls` file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct SyscallsHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// Bytes of this structure.
    pub header_len: u32,
    /// Process id, in the process's own pid namespace.
    pub pid: u32,
    /// `STATE_*`.
    pub state: u32,
    /// Bytes of the file that hold this page and complete chunk headers.
    pub committed: u64,
    /// When the tracing of this image began, `CLOCK_MONOTONIC`.
    pub began_ns: u64,
    /// When its last thread ended; 0 as long as it lives.
    pub ended_ns: u64,
    /// When rows were last written.
    pub written_ns: u64,
    /// Of each duration, what the program itself takes.
    pub cost_inside_ns: u64,
    /// Per call, what the program takes beyond that.
    pub cost_outside_ns: u64,
    /// Calls of all processes of the run that found no room for a row.
    pub lost_calls: u64,
    /// Waits of all processes of the run that found no room for a row.
    pub lost_waits: u64,
    /// Processes of the run that could not be traced for want of room.
    pub lost_processes: u64,
    /// Threads of the run that could not be traced for want of room.
    pub lost_threads: u64,
    /// Name of the process when the image began, padded with NUL.
    pub name: [u8; 16],
    /// Room for later.
    pub reserved: u64,
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
    /// Calls, counted in `calls`, that never returned: the thread was killed.
    pub unfinished: u64,
    /// `errno << 48 | count`, of the errors that were met first; the others are what is missing in
    /// `errors`.
    pub errnos: [u64; ERRNOS],
    /// See [`BUCKETS`].
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
    /// See [`BUCKETS`].
    pub histogram: [u64; BUCKETS],
}

const _: () = {
    assert!(size_of::<SyscallRow>() == 384);
    assert!(size_of::<WaitRow>() == 384);
    assert!(size_of::<SyscallsHeader>() == 128);
};
