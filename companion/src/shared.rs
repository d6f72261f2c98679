//! What the program, the companion and the traced process agree on: `bpf/shared.h`, in Rust.
//!
//! The fields are described there. `tests/object.rs` compares the sizes with those in the object.

use bytemuck::{Pod, Zeroable};

/// First argument of the `prctl` by which a process asks to be traced; the second is the address
/// of a [`Hello`].
pub const HELLO: u32 = u32::from_le_bytes(*b"CHAS");
/// First argument of the `prctl` by which a thread ends its tracing.
pub const GOODBYE: u32 = HELLO + 1;
/// First argument of the `prctl` between which, with a second argument of 1 and of 0 or a hello, a thread's doings are
/// chase's own.
pub const STARTING: u32 = HELLO + 2;
/// First argument of the `prctl` by which a thread asks that its system calls are told one by one, and those of all that it
/// starts.
pub const NARRATE: u32 = HELLO + 3;
/// First argument of the `prctl` by which a process that ran before its hello says so, with a second argument of 1: all its threads are
/// traced then; and of 0: none is any more.
pub const ATTACHED: u32 = HELLO + 4;
/// [`Hello::version`].
pub const HELLO_VERSION: u32 = 2;

/// [`Row::syscall`] of time off the CPU that the thread gave up by itself.
pub const WAIT_VOLUNTARY: u32 = 0xffff_fffe;
/// [`Row::syscall`] of time off the CPU while the thread was ready to run.
pub const WAIT_PREEMPTED: u32 = 0xffff_fffd;
/// [`Row::syscall`] of time on the CPU; its count is that of pieces.
pub const ON_CPU: u32 = 0xffff_fffc;

/// Most rows at a time.
pub const ROWS: usize = 65536;
/// Most kinds of waits at a time.
pub const WAITS: usize = 32768;
/// Most processes at a time.
pub const PROCESSES: usize = 8192;
/// Buckets of a row's histogram.
pub const BUCKETS: usize = 32;
/// Errors that a row tells apart.
pub const ERRNOS: usize = 6;
/// Bytes of a recording's path, the ending NUL among them.
pub const PATH: usize = 960;

/// How a traced process tells where its threads' contexts are found.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Hello {
    /// [`HELLO_VERSION`].
    pub version: u32,
    /// Bytes of this structure.
    pub len: u32,
    /// The companion's session; one of another session is that companion's to watch.
    pub session: u64,
    /// Offset from the thread pointer of the word that holds the address of the thread's node.
    pub tls_offset: i64,
    /// Address of the recording's mapping.
    pub base: u64,
    /// Bytes that it may grow to.
    pub mapped: u64,
    /// Address of the recording's path, absolute, ended by NUL.
    pub path: u64,
    /// Offset from the thread pointer of the word that holds the address of what is known of the thread.
    pub thread_offset: i64,
}

/// What one thread did in one context by one syscall; or how long it was off the CPU there.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Row {
    /// Number of the process in [`Process`]es.
    pub process: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// The context's `_ref` in the recording; 0 for none.
    pub context: u32,
    /// Number of the syscall, or `WAIT_*`, or [`ON_CPU`].
    pub syscall: u32,
    /// Calls, or waits.
    pub count: u64,
    /// Their time.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// How much of the time was spent off the CPU.
    pub off_cpu_ns: u64,
    /// Sum of the positive results.
    pub returned: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Calls that a signal ended, to be made again.
    pub restarts: u64,
    /// Calls that never returned.
    pub unfinished: u64,
    /// `errno << 48 | count`, of the errors that were met first.
    pub errnos: [u64; ERRNOS],
    /// Bucket `i`: calls shorter than `2^(6+i)` ns and not in a bucket before; the last has no
    /// limit.
    pub histogram: [u64; BUCKETS],
}

/// What a thread did when the clock of its CPU struck.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Sample {
    /// Number of the process in [`Process`]es.
    pub process: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// The context's `_ref` in the recording; 0 for none.
    pub context: u32,
    /// 1 if it was in the kernel.
    pub in_kernel: u32,
    /// Of the instruction in user space that it was at, or is to go on at.
    pub address: u64,
    /// Inode of the file, if it was in a syscall for a descriptor; otherwise 0.
    pub file: u64,
    /// That syscall.
    pub syscall: u32,
    /// Of the inode: what kind of file it is.
    pub mode: u32,
    /// Name of the file, without its directory, padded with NUL.
    pub name: [u8; 48],
}

/// A long wait.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Interval {
    /// Number, among the kinds of waits, of what it has in common with others.
    pub wait: u32,
    /// Padding.
    pub reserved: u32,
    /// When it began, `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// When it was woken; 0: nobody was seen to do so.
    pub woken_ns: u64,
    /// When it ran again.
    pub end_ns: u64,
}

/// [`WaitKey::syscall`]: the thread was in none.
pub const NO_SYSCALL: u32 = u32::MAX;

/// [`WaitKey::waker_kind`]: a thread of a traced process.
pub const WAKER_THREAD: u32 = 1;
/// [`WaitKey::waker_kind`]: another process.
pub const WAKER_PROCESS: u32 = 2;

/// What waits have in common that are counted together: whose they are, where, for what, and who ended them, doing what.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct WaitKey {
    /// Number of the process in [`Process`]es.
    pub process: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// The context's `_ref` in the recording; 0 for none.
    pub context: u32,
    /// The syscall that it waited in, or [`NO_SYSCALL`].
    pub syscall: u32,
    /// Return address of the library call that it waited in; 0: not known.
    pub site: u64,
    /// Address of the futex, or inode behind the descriptor.
    pub object: u64,
    /// Operation of the futex, or the descriptor.
    pub detail: u32,
    /// Thread that owned the mutex; 0: not known.
    pub holder: u32,
    /// Context that the owner was in.
    pub holder_context: u32,
    /// `WAKER_*`.
    pub waker_kind: u32,
    /// Return address of the library call that the owner was in.
    pub holder_site: u64,
    /// Return address of the library call by which the waker has woken it.
    pub waker_site: u64,
    /// Number of the waker's process in [`Process`]es; of another process, its id.
    pub waker_process: u32,
    /// The thread that has woken it.
    pub waker: u32,
    /// Context that this was in.
    pub waker_context: u32,
    /// Padding.
    pub reserved: u32,
}

// SAFETY: plain integers without padding.
unsafe impl aya::Pod for WaitKey {}

/// The ends of a socket, if they are addresses of the internet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Ends {
    /// `AF_*`.
    pub family: u16,
    /// Its own port.
    pub local_port: u16,
    /// The other one's, in network order.
    pub remote_port: u16,
    /// Padding.
    pub reserved: u16,
    /// Its own address; of IPv4 the first four bytes.
    pub local: [u8; 16],
    /// The other one's.
    pub remote: [u8; 16],
}

/// Waits that are alike.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Wait {
    /// What they have in common.
    pub key: WaitKey,
    /// How many.
    pub count: u64,
    /// Their time, until the thread ran again.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The part of the time after the thread was woken.
    pub ready_ns: u64,
    /// Of the inode: what kind of file it is.
    pub mode: u32,
    /// Padding.
    pub reserved: u32,
    /// Name of the file, without its directory, padded with NUL; of a socket, [`Ends`].
    pub name: [u8; 48],
    /// Name of the thread that has woken it last.
    pub waker_name: [u8; 16],
}

/// Bytes of a text in [`Told`].
pub const TEXT: usize = 96;

/// One system call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Told {
    /// Number of the process in [`Process`]es.
    pub process: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// The context's `_ref` in the recording; 0 for none.
    pub context: u32,
    /// Number of the syscall.
    pub syscall: u32,
    /// When it began, `CLOCK_MONOTONIC`.
    pub entered_ns: u64,
    /// When it returned; 0: it has not.
    pub left_ns: u64,
    /// What it returned.
    pub result: i64,
    /// As they are in the registers.
    pub arguments: [u64; 6],
    /// Inode behind the descriptor that it is for, or that it gave.
    pub object: u64,
    /// Of the inode.
    pub mode: u32,
    /// Bytes of the texts.
    pub lens: [u32; 2],
    /// Padding.
    pub reserved: u32,
    /// What arguments lead to.
    pub texts: [[u8; TEXT]; 2],
    /// Name of the file, without its directory, padded with NUL; of a socket, [`Ends`].
    pub name: [u8; 48],
}

/// [`Process::state`]: the place is free.
pub const PROCESS_FREE: u32 = 0;
/// [`Process::state`]: a fork's child before its hello.
pub const PROCESS_FORKED: u32 = 1;
/// [`Process::state`]: a new image before its hello.
pub const PROCESS_EXECED: u32 = 2;
/// [`Process::state`]: it has said hello.
pub const PROCESS_GREETED: u32 = 3;

/// One program image of one process.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Process {
    /// `PROCESS_*`.
    pub state: u32,
    /// Threads that live, children on its memory among them. 0: the place is the companion's.
    pub live: u32,
    /// Process id.
    pub pid: u32,
    /// Process id in its own pid namespace.
    pub own_pid: u32,
    /// Number of the process, or image, that it came from; its own for the first.
    pub parent: u32,
    /// Of one that ran before its hello, or that was left: whether its threads are traced.
    pub attached: u32,
    /// When its tracing began, `CLOCK_MONOTONIC`.
    pub began_ns: u64,
    /// When a thread of it last ended.
    pub ended_ns: u64,
    /// Name as of then, padded with NUL.
    pub name: [u8; 16],
    /// Path of its recording.
    pub path: [u8; PATH],
    /// Hellos it has said.
    pub greetings: u64,
}

/// Sums over all processes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Totals {
    /// Rows in use or free again.
    pub rows: u64,
    /// Processes in use or free again.
    pub processes: u64,
    /// Threads in use or free again.
    pub threads: u64,
    /// Calls that found no row.
    pub lost_calls: u64,
    /// Waits that found no row.
    pub lost_waits: u64,
    /// Processes that found no place.
    pub lost_processes: u64,
    /// Threads that found no place.
    pub lost_threads: u64,
    /// Hellos of another user, or of another version.
    pub refused: u64,
    /// Processes that started a set-id image.
    pub dropped: u64,
    /// Samples that found no room.
    pub lost_samples: u64,
    /// Kinds of waits in use or free again.
    pub waits: u64,
    /// Waits whose cause found no place.
    pub lost_wakers: u64,
    /// Long waits that found no room, and are in sums alone.
    pub lost_intervals: u64,
    /// System calls that were to be told and found no room.
    pub lost_told: u64,
    /// Processes that ran before their hello.
    pub attached: u64,
}

const _: () = {
    assert!(size_of::<Hello>() == 56);
    assert!(size_of::<WaitKey>() == 80);
    assert!(size_of::<Wait>() == 184);
    assert!(size_of::<Ends>() <= 48);
    assert!(size_of::<Told>() == 352);
    assert!(size_of::<Row>() == 384);
    assert!(size_of::<Sample>() == 88);
    assert!(size_of::<Interval>() == 32);
    assert!(size_of::<Process>() == 1024);
};
