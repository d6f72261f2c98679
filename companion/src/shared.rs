//! The interface between the eBPF program, the companion and the traced process: `bpf/shared.h` in Rust.
//!
//! The fields are described there. `tests/object.rs` compares the sizes with those in the object file.

use bytemuck::{Pod, Zeroable};

pub use chase_format::requests::{ATTACHED, GOODBYE, HELLO, HELLO_VERSION, NARRATE, STARTING};

/// [`Row::syscall`] of time off the CPU while the thread waited.
pub const WAIT_VOLUNTARY: u32 = 0xffff_fffe;
/// [`Row::syscall`] of time off the CPU while the thread was ready to run.
pub const WAIT_PREEMPTED: u32 = 0xffff_fffd;
/// [`Row::syscall`] of time on the CPU; `count` is how often the thread was switched off.
pub const ON_CPU: u32 = 0xffff_fffc;
/// [`Row::syscall`] of a row of turns: its fields are those of [`Turns`].
pub const TURNS: u32 = 0xffff_fffb;

/// The maximum number of rows at a time.
pub const ROWS: usize = 65536;
/// The maximum number of causes of waits at a time.
pub const WAITS: usize = 32768;
/// The maximum number of processes at a time.
pub const PROCESSES: usize = 8192;
/// The number of buckets of a row's histogram.
pub const BUCKETS: usize = 32;
/// The number of different errors that a row counts separately.
pub const ERRNOS: usize = 6;
/// Size in bytes of a recording's path, including the NUL at the end.
pub const PATH: usize = 960;

/// Tells the companion where to find the contexts of a process's threads.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Hello {
    /// [`HELLO_VERSION`].
    pub version: u32,
    /// Size of this structure in bytes.
    pub len: u32,
    /// The companion's session; a hello for another session is for another companion.
    pub session: u64,
    /// Offset from the thread pointer of the word that holds the address of the thread's node.
    pub tls_offset: i64,
    /// Address of the recording's mapping.
    pub base: u64,
    /// The size in bytes that the mapping may grow to.
    pub mapped: u64,
    /// Address of the recording's path, absolute and NUL-terminated.
    pub path: u64,
    /// Offset from the thread pointer of the word that points to the hook's data of the thread.
    pub thread_offset: i64,
    /// Address of the hook in memory.
    pub own: u64,
    /// Where it ends. System calls from in between are chase's own.
    pub own_end: u64,
}

/// The calls of one syscall by one thread in one context; or the thread's time off or on the CPU there.
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
    /// The number of calls, or waits.
    pub count: u64,
    /// Their total time.
    pub total_ns: u64,
    /// The time of the longest.
    pub max_ns: u64,
    /// The part of their time that was off the CPU.
    pub off_cpu_ns: u64,
    /// The sum of the positive results.
    pub returned: u64,
    /// The number of calls that failed.
    pub errors: u64,
    /// Calls that were interrupted by a signal, to be restarted.
    pub restarts: u64,
    /// Calls that never returned.
    pub unfinished: u64,
    /// `errno << 48 | count` of the errors that occurred first.
    pub errnos: [u64; ERRNOS],
    /// Bucket `i`: calls shorter than `2^(6+i)` ns that are in no lower bucket; the last has no limit.
    pub histogram: [u64; BUCKETS],
}

/// A [`Row`] with [`TURNS`] as its syscall.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Turns {
    /// As in [`Row`].
    pub process: u32,
    /// As in [`Row`].
    pub tid: u32,
    /// The descriptor of `epoll_wait`, or [`u32::MAX`]: a thread may have several loops, one inside another.
    pub descriptor: u32,
    /// [`TURNS`].
    pub syscall: u32,
    /// The number of waits that have begun.
    pub waits: u64,
    /// Total time of the turns.
    pub total_ns: u64,
    /// The time of the longest.
    pub max_ns: u64,
    /// The part of the total in which the thread waited.
    pub blocked_ns: u64,
    /// The part of the total in which others ran.
    pub preempted_ns: u64,
    /// Total time of the waits.
    pub waited_ns: u64,
    /// The number of turns.
    pub turns: u64,
    /// The number of long ones.
    pub long_turns: u64,
    /// Their total time.
    pub long_ns: u64,
    /// The context of the latest wait.
    pub in_context: u64,
    /// Sums of the thread when the latest wait ended.
    pub since: [u64; 3],
    /// The number of descriptors that the latest wait found ready.
    pub begun_with: u64,
    /// As in [`Row`].
    pub histogram: [u64; BUCKETS],
}

/// A long turn.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Turn {
    /// Number of the process in [`Process`]es.
    pub process: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// As in [`Turns`].
    pub descriptor: u32,
    /// The number of descriptors that were ready when it was over.
    pub ready: u32,
    /// The number of descriptors that were ready when it began.
    pub begun_with: u32,
    /// Padding.
    pub reserved: u32,
    /// When it began, `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// When it was over.
    pub end_ns: u64,
    /// The part in which the thread waited.
    pub blocked_ns: u64,
    /// The part in which others ran.
    pub preempted_ns: u64,
}

/// A sample, taken by the timer of a thread's CPU.
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
    /// Address of the instruction in user space that it was executing, or will continue with.
    pub address: u64,
    /// Inode of the file, if it was in a syscall on a descriptor; otherwise 0.
    pub file: u64,
    /// That syscall.
    pub syscall: u32,
    /// The inode's mode.
    pub mode: u32,
    /// Name of the file without its directory, NUL-padded.
    pub name: [u8; 48],
    /// When it was taken, `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// 1 if the thread had not waited in an event loop for [`LONG_TURN_NS`](chase_format::syscalls::LONG_TURN_NS).
    pub is_late: u32,
    /// Padding.
    pub reserved: u32,
}

/// A long wait.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Interval {
    /// The number of its cause; [`WAITS`]: the thread did not wait, others had the CPU.
    pub wait: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// When it began, `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// When it was woken; 0 if the waker was not seen. If others had the CPU, the number of the process.
    pub woken_ns: u64,
    /// When it ran again.
    pub end_ns: u64,
}

/// [`WaitKey::syscall`]: the thread was in no syscall.
pub const NO_SYSCALL: u32 = u32::MAX;

/// [`WaitKey::waker_kind`]: a thread of a traced process.
pub const WAKER_THREAD: u32 = 1;
/// [`WaitKey::waker_kind`]: another process.
pub const WAKER_PROCESS: u32 = 2;

/// The cause of waits, by which they are counted: which thread waited, where and for what, and who ended the wait,
/// and how.
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
    /// Return address of the library call in which it waited; 0 if unknown.
    pub site: u64,
    /// Address of the futex, or inode of the descriptor's file.
    pub object: u64,
    /// The operation of the futex, or the descriptor.
    pub detail: u32,
    /// The thread that owned the mutex; 0 if unknown.
    pub holder: u32,
    /// The context of the owner.
    pub holder_context: u32,
    /// `WAKER_*`.
    pub waker_kind: u32,
    /// Return address of the library call of the owner.
    pub holder_site: u64,
    /// Return address of the library call in which the waker woke it.
    pub waker_site: u64,
    /// Number of the waker's process in [`Process`]es; if it is not traced, its process id.
    pub waker_process: u32,
    /// The thread that woke it.
    pub waker: u32,
    /// The context of the waker.
    pub waker_context: u32,
    /// Padding.
    pub reserved: u32,
}

// SAFETY: plain integers without padding.
unsafe impl aya::Pod for WaitKey {}

/// Which futex it is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Futex {
    /// The file that is mapped there.
    pub inode: u64,
    /// Where it is in the file.
    pub offset: u64,
    /// The device of the file, as in the kernel: 20 bits are the minor number.
    pub device: u32,
    /// [`IN_FILE`], or else processes don't share it, as far as is known.
    pub place: u32,
}

/// [`Futex::place`]: in memory that processes share.
pub const IN_FILE: u32 = 2;

/// The ends of a socket, if they are internet addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Ends {
    /// `AF_*`.
    pub family: u16,
    /// Its own port.
    pub local_port: u16,
    /// The port of the peer, in network order.
    pub remote_port: u16,
    /// Padding.
    pub reserved: u16,
    /// Its own address; IPv4 addresses are in the first four bytes.
    pub local: [u8; 16],
    /// The address of the peer.
    pub remote: [u8; 16],
}

/// Waits with the same cause.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Wait {
    /// The cause.
    pub key: WaitKey,
    /// The number of waits.
    pub count: u64,
    /// Their total time, until the thread ran again.
    pub total_ns: u64,
    /// The time of the longest.
    pub max_ns: u64,
    /// The part of the time after the thread was woken.
    pub ready_ns: u64,
    /// The inode's mode.
    pub mode: u32,
    /// The number of library calls that waited for a futex, and for which one of these waits was the first.
    pub calls: u32,
    /// Name of the file without its directory, NUL-padded; for a socket, [`Ends`]; for a futex, [`Futex`].
    pub name: [u8; 48],
    /// Name of the thread that woke it last.
    pub waker_name: [u8; 16],
}

/// Size in bytes of a text in [`SingleSyscall`].
pub const TEXT: usize = 96;

/// A single system call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct SingleSyscall {
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
    /// When it returned; 0 if it has not.
    pub left_ns: u64,
    /// Its result.
    pub result: i64,
    /// The arguments in registers.
    pub arguments: [u64; 6],
    /// Inode of the file of the descriptor that it was called for, or that it returned.
    pub object: u64,
    /// The inode's mode.
    pub mode: u32,
    /// Sizes of the texts in bytes.
    pub lens: [u32; 2],
    /// Padding.
    pub reserved: u32,
    /// What the arguments point to.
    pub texts: [[u8; TEXT]; 2],
    /// Name of the file without its directory, NUL-padded; for a socket, [`Ends`]; for a futex, [`Futex`].
    pub name: [u8; 48],
}

/// [`Process::state`]: the entry is free.
pub const PROCESS_FREE: u32 = 0;
/// [`Process::state`]: a fork's child before its hello.
pub const PROCESS_FORKED: u32 = 1;
/// [`Process::state`]: a new image before its hello.
pub const PROCESS_EXECED: u32 = 2;
/// [`Process::state`]: it has sent its hello.
pub const PROCESS_GREETED: u32 = 3;

/// A program image of a process.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Process {
    /// `PROCESS_*`.
    pub state: u32,
    /// The number of living threads, including those of children that use its memory. 0: the entry may be freed by
    /// the companion.
    pub live: u32,
    /// Process id.
    pub pid: u32,
    /// Process id in its own pid namespace.
    pub own_pid: u32,
    /// Likewise of the process that it was forked from, or of itself if it ran another image before; 0 for the first.
    pub parent_pid: u32,
    /// For a process that had run before its hello, or was detached from: whether its threads are traced.
    pub attached: u32,
    /// When its tracing began, `CLOCK_MONOTONIC`.
    pub began_ns: u64,
    /// When a thread of it last ended.
    pub ended_ns: u64,
    /// Its name when tracing began, NUL-padded.
    pub name: [u8; 16],
    /// Path of its recording.
    pub path: [u8; PATH],
    /// The number of hellos that it has sent.
    pub greetings: u64,
}

/// Sums over all processes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Totals {
    /// Rows that are in use, or free again.
    pub rows: u64,
    /// Processes that are in use, or free again.
    pub processes: u64,
    /// Threads that are in use, or free again.
    pub threads: u64,
    /// Calls for which there was no row.
    pub lost_calls: u64,
    /// Waits for which there was no row.
    pub lost_waits: u64,
    /// Processes for which there was no entry.
    pub lost_processes: u64,
    /// Threads for which there was no entry.
    pub lost_threads: u64,
    /// Hellos from another user, or in another version.
    pub refused: u64,
    /// Processes that started a set-id image.
    pub dropped: u64,
    /// Samples for which there was no room.
    pub lost_samples: u64,
    /// Causes of waits that are in use, or free again.
    pub waits: u64,
    /// Waits for whose cause there was no entry.
    pub lost_wakers: u64,
    /// Long waits for which there was no room; they are only in the sums.
    pub lost_intervals: u64,
    /// Single system calls for which there was no room.
    pub lost_single_syscalls: u64,
    /// Processes that had run before their hello.
    pub attached: u64,
    /// Long times that others had the CPU, for which there was no room.
    pub lost_preempted: u64,
    /// Waits for descriptors for which there was no row.
    pub lost_turns: u64,
    /// Long turns for which there was no room; they are only in the sums.
    pub lost_long_turns: u64,
}

const _: () = {
    assert!(size_of::<Hello>() == 72);
    assert!(size_of::<WaitKey>() == 80);
    assert!(size_of::<Wait>() == 184);
    assert!(size_of::<Ends>() <= 48);
    assert!(size_of::<SingleSyscall>() == 352);
    assert!(size_of::<Row>() == 384);
    assert!(size_of::<Sample>() == 104);
    assert!(size_of::<Turns>() == size_of::<Row>());
    assert!(size_of::<Turn>() == 56);
    assert!(size_of::<Interval>() == 32);
    assert!(size_of::<Process>() == 1024);
};
