//! The format, version 4.
//!
//! ```text
//! offset 0      4096          4096·k                                    committed        end of file
//! ┌────────────┬─────────────┬─────────────┬───────┬───────────────────┬────────────────────────┐
//! │ Header     │ chunk       │ chunk       │  ...  │ chunk             │ zeros (not allocated)  │
//! └────────────┴─────────────┴─────────────┴───────┴───────────────────┴────────────────────────┘
//!                ChunkHeader + contents, a multiple of 4096 bytes
//! ```
//!
//! All numbers are little-endian and of fixed width; positions are offsets from the start of the
//! file and never pointers. Where a field is called `_ref`, it is an offset divided by [`UNIT`]
//! (0: none). Times are in ticks of the clock that [`Header::clock_kind`] names.
//!
//! # Who writes what, and when it may be read
//!
//! The file is a shared mapping that the traced process writes in place; a reader may look at any
//! moment, and the process may be killed at any moment.
//!
//! | what | writer | becomes readable |
//! | --- | --- | --- |
//! | [`Header`] identity, clock, cost | the process, before its first chunk | when `magic` is stored, last |
//! | [`Header`] end, counters | any thread; each is one aligned store or one locked add | at any time |
//! | a chunk's place | a thread that holds the arena's lock | [`Header::committed`] moves past it, after its header was written |
//! | a chunk's contents | the thread that took it | [`ChunkHeader::state`] becomes [`COMMITTED`] |
//! | entries of a growing chunk | its owner | [`ChunkHeader::count`] is stored after the entry |
//! | [`Samples::adjust`] | its owner; at the process's end, the thread that ends it | at any time |
//! | counters of a [`Node`], a histogram page | the one thread that owns the node, by single instructions | at any time; the fields of one node may be one call apart |
//! | [`Node::page_refs`] | its owner | the page is zero before its reference is stored |
//! | [`ThreadRecord`] | its own thread (the first fields by its creator) | `state` is stored last |
//! | [`OriginRecord`] | the thread that it is about, once | `state` is stored last |
//! | [`TwinRecord`] | a thread that holds the patching lock, at the edges of windows | `state` is stored last; its times may be one window apart |
//! | [`ObjectRecord::unload_ticks`] | a thread that holds the patching lock | at any time |
//!
//! # The calling-context tree
//!
//! Each thread has a tree of nodes. A node stands for the calls of one slot made while the thread
//! was in one context. Its [`Node::parent_ref`] names the node whose *scope* it was looked up in,
//! and [`Node::scope_ref`] the node in whose scope its own callees are looked up: itself, except
//! where recursion is folded. A call whose slot already is among its ancestors gets a node of its
//! own whose scope is that ancestor, so that no tree grows without bound while every duration is
//! still counted once: summed over the nodes of one slot, self time is exact. (Inclusive time is
//! not, where several slots take part in each other's recursion.) A thread with more contexts than
//! the writer keeps puts further ones under its root, and counts them in
//! [`Unseen::contexts_under_root`].
//!
//! [`Node::calls`] counts calls begun. Calls completed are the sum of the histogram, calls that an
//! exception passed through are [`Node::unwound`], and what is left is still open (or was when
//! the process ended), since [`Node::last_start_ticks`]. Slots of class [`SlotClass::Counted`] are
//! never timed; their nodes only count.
//!
//! # Sampled calls
//!
//! A thread may time only some of the calls of a hot slot. These have a node of their own beside
//! that of the calls which were all timed: [`Node::slot`] has the bit [`SAMPLED`], and behind the
//! node, in the same chunk, is a [`Samples`]. The calls of a (thread, slot) are split into blocks;
//! one call of each block, at a random place, is timed, and stands for the block: its weight *w*
//! is the number of calls in it. The weight is fixed before the call is made.
//!
//! * `calls` + [`Samples::adjust`] = calls begun, exact over the contexts of a (thread, slot): the
//!   share of each context is an estimate. Until the thread, the process or the image ends in a way
//!   that was seen, it lacks what was called since the latest sample: fewer calls than a block.
//! * Where the calls themselves call others, each is counted in its own context, timed or not: the node
//!   has the bit [`FRAMED`] too, its `calls` are exact and `adjust` is 0. Its scope is that of the node of
//!   the calls which were all timed, of which there is always one.
//! * `total_ticks` = Σ w·x over the durations x that were measured; the histogram, whose pages are in
//!   [`Samples::page_refs`] (those of the node stay 0), counts each with its weight.
//! * A call in which the kernel took the processor away counts once; the rest of its block stands
//!   in the histogram and in the total with the mean so far.
//!
//! # Calls that are seen in windows
//!
//! With a budget, an import that is called very often is unhooked, and hooked again for short windows.
//! What it was called before is in the nodes of its own slot, complete; what it is called in windows is
//! in nodes of a slot of its own, the *twin*, which no object has. A [`TwinRecord`] says whose twin it
//! is, and how much of the process's CPU time its windows were open, and closed: what is in its nodes
//! stands for (`on_ns` + `off_ns`) / `on_ns` times as much.
//!
//! A window is opened by the first other call that passes by after it is due. If none came in time,
//! the pause before it is in `unseen_ns` and no window stands for it: when a window is due is random,
//! so the share of such pauses is that of the time in which no window can open. An import may have
//! several twins, one after the other, whose windows are ever rarer.
//!
//! # Versions
//!
//! | version | oldest reader | what changed |
//! | --- | --- | --- |
//! | 1 | 1 | the first |
//! | 2 | 1 | [`ChunkKind::Origins`]: what is known of a thread's creation |
//! | 3 | 3 | sampled calls: [`SAMPLED`], [`FRAMED`], [`Samples`], [`Header::timing`] and three costs |
//! | 4 | 4 | [`ChunkKind::Twins`]: calls seen in windows; without any, the oldest reader is 3 |
//!
//! A reader accepts any file whose `reader_min` is at most its own [`VERSION`], ignores chunk kinds
//! it does not know, and takes fields beyond the end of an older record as zero.

use bytemuck::{Pod, Zeroable};

use crate::histogram::PAGES;

/// First bytes of every recording.
pub const MAGIC: [u8; 8] = *b"CHASEREC";
/// Version of the format written by this crate.
pub const VERSION: u32 = 4;
/// The oldest reader that understands what this crate writes.
pub const READER_MIN: u32 = 3;
/// The same, where calls may be seen in windows alone.
pub const READER_MIN_TWINS: u32 = 4;
/// File name extension of a recording, without the dot.
pub const EXTENSION: &str = "chase";

/// Chunks start at, and are long, multiples of this many bytes; so is the header.
pub const PAGE: usize = 4096;
/// Unit of `_ref` fields, in bytes: the size of a node and of a histogram page.
pub const UNIT: usize = 128;

/// [`ChunkHeader::magic`].
pub const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"CHNK");
/// [`ChunkHeader::state`] of a chunk whose contents may be read.
pub const COMMITTED: u32 = 1;

/// [`Node::slot`] of a thread's root.
pub const ROOT_SLOT: u32 = u32::MAX;
/// Bit in [`Node::slot`] of a call that was open when a fork made this process. Such a node belongs
/// to the slot named by the other bits; its times are times of this process, from the fork on, but
/// its calls were made, and are counted, in the parent.
pub const INHERITED: u32 = 1 << 31;
/// Bit in [`Node::slot`] of calls of which only some were timed. A [`Samples`] is behind the node.
pub const SAMPLED: u32 = 1 << 30;
/// Bit in [`Node::slot`], beside [`SAMPLED`], of calls that are each counted in their own context.
pub const FRAMED: u32 = 1 << 29;
/// [`Samples::slot`]: what takes the place of a node and is none.
pub const SAMPLES_SLOT: u32 = u32::MAX - 1;
/// Unit of [`Samples::pairs_squares`], in ticks².
pub const SQUARES: u64 = 256;
/// The context of what chase itself does in the process: a `_ref` that no node has, since it lies
/// in the header.
pub const OWN_CONTEXT_REF: u32 = 1;
/// Object, thread or slot number that stands for "none" or "not known".
pub const NONE: u32 = u32::MAX;

/// [`Header::clock_kind`]: invariant time stamp counter.
pub const CLOCK_TSC: u32 = 0;
/// [`Header::clock_kind`]: `CLOCK_MONOTONIC` in nanoseconds, where the TSC can't be trusted.
pub const CLOCK_MONOTONIC: u32 = 1;

/// [`Header::timing`]: every call is timed.
pub const TIMING_ALL: u32 = 0;
/// [`Header::timing`]: of hot, short, even calls only some are timed.
pub const TIMING_ADAPTIVE: u32 = 1;
/// [`Header::timing`]: calls are only counted.
pub const TIMING_COUNT: u32 = 2;

/// [`Header::origin`]: the program image was started by exec.
pub const ORIGIN_EXEC: u32 = 0;
/// [`Header::origin`]: a fork's child, which goes on from its parent's image.
pub const ORIGIN_FORK: u32 = 1;

/// [`Header::end_kind`]: no end was seen. The process runs, or it was killed.
pub const END_NONE: u32 = 0;
/// [`Header::end_kind`]: `exit` or a return from `main`; `end_status` holds the status.
pub const END_EXIT: u32 = 1;
/// [`Header::end_kind`]: `_exit` and its kin; `end_status` holds the status.
pub const END_IMMEDIATE: u32 = 2;
/// [`Header::end_kind`]: the image was about to be replaced by exec.
pub const END_EXEC: u32 = 3;
/// [`Header::end_kind`]: `abort` was called.
pub const END_ABORT: u32 = 4;

/// [`Header::stop_reason`]: the recording is complete.
pub const STOP_NONE: u32 = 0;
/// [`Header::stop_reason`]: no more space (full disk, quota); `stop_errno` says which.
pub const STOP_NO_SPACE: u32 = 1;
/// [`Header::stop_reason`]: the size limit of a recording was reached.
pub const STOP_LIMIT: u32 = 2;
/// [`Header::stop_reason`]: the process may not map more memory.
pub const STOP_NO_MEMORY: u32 = 3;

/// [`Header::stop_reason`]: the process gave up the right to system calls that recording needs
/// (seccomp), or to the clock. What was known before goes on counting.
pub const STOP_CONFINED: u32 = 4;

/// A moment on the recording's own clock and on the system's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ClockPair {
    /// The recording's clock.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC`, ns; 0 when the pair was never taken.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`, ns since 1970.
    pub realtime_ns: u64,
}

/// What was not seen, as counts. Each is a lower bound only if the recording stopped.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Unseen {
    /// Calls by threads that had no record (starting, ending, or none could be made).
    pub calls_without_thread: u64,
    /// Calls counted nowhere because the recording had no room for their context.
    pub calls_without_space: u64,
    /// Calls that found the shadow stack full, and ran untimed.
    pub calls_too_deep: u64,
    /// Threads that got no record.
    pub threads: u64,
    /// Slots for which no stub was left.
    pub slots_without_stub: u64,
    /// Objects whose tables could not be read.
    pub objects: u64,
    /// `dlopen` calls passed through untouched because their search depends on the caller; the
    /// new objects were patched at the thread's next call.
    pub late_loads: u64,
    /// Contexts put under their thread's root because there were too many: their time is missing
    /// from the total of their callers and so too high in the callers' self time.
    pub contexts_under_root: u64,
    /// Room for later counters.
    pub reserved: [u64; 8],
}

/// The first page of a recording.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Header {
    /// [`MAGIC`], stored last.
    pub magic: [u8; 8],
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The oldest reader version that can read this file.
    pub reader_min: u32,
    /// ELF machine number; 62 is x86-64.
    pub machine: u32,
    /// Bytes of this structure that the writer knew.
    pub header_len: u32,
    /// `/proc/sys/kernel/random/boot_id`, zero when it could not be read.
    pub boot_id: [u8; 16],
    /// Process id, in the process's own pid namespace.
    pub pid: u32,
    /// Parent's process id at the start of the recording.
    pub parent_pid: u32,
    /// Process group id.
    pub process_group: u32,
    /// Session id.
    pub session: u32,
    /// Start of the process in clock ticks since boot (field 22 of `/proc/self/stat`), which with
    /// the pid identifies a process across exec; 0 when unknown.
    pub process_start: u64,
    /// [`ORIGIN_EXEC`] or [`ORIGIN_FORK`].
    pub origin: u32,
    /// [`CLOCK_TSC`] or [`CLOCK_MONOTONIC`].
    pub clock_kind: u32,
    /// Start of the recording.
    pub clock_start: ClockPair,
    /// The latest pair taken: at the end where one was seen, otherwise some time before. In a fork's
    /// child it is its ancestors' first pair, before `clock_start`, until another is taken.
    pub clock_latest: ClockPair,
    /// The hook's own share of a call's measured duration, in 1/1024 ticks.
    pub cost_inside: u64,
    /// The hook's share per call that only the caller sees, in 1/1024 ticks.
    pub cost_outside: u64,
    /// Bytes of the file that hold the header and complete chunk headers.
    pub committed: u64,
    /// How the process ended: `END_*`. Valid only if no call began after `end_ticks`.
    pub end_kind: u32,
    /// Exit status, where `end_kind` has one.
    pub end_status: i32,
    /// When the end was seen; 0 when it was not.
    pub end_ticks: u64,
    /// Why the recording is incomplete: `STOP_*`.
    pub stop_reason: u32,
    /// `errno` behind `stop_reason`, or 0.
    pub stop_errno: u32,
    /// When it stopped.
    pub stop_ticks: u64,
    /// What was not seen.
    pub unseen: Unseen,
    /// `TIMING_*`.
    pub timing: u32,
    /// Padding.
    pub reserved: u32,
    /// The hook's share of a call that is counted and not timed, in 1/1024 ticks; its caller sees it.
    pub cost_counted: u64,
    /// As `cost_outside`, of a call that is a sample.
    pub cost_sampled: u64,
    /// As `cost_counted`, of a call that gets a frame.
    pub cost_framed: u64,
}

/// What a chunk holds.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// Key and value strings: `key NUL value NUL ...`; `count` is the number of bytes. Keys:
    /// `executable`, `command` (arguments joined by 0x1f), `directory`, `host`, `kernel`, `writer`,
    /// `syscalls` (`on`, or why they are not recorded), `budget` (`on`, or why there is none; missing
    /// where none was asked for).
    Meta = 1,
    /// One loaded object: [`ObjectRecord`], its segments, its slots, their strings.
    Object = 2,
    /// [`ThreadRecord`]s, each readable by its own `state`.
    Threads = 3,
    /// [`Node`]s of thread `owner` from the front (`count` of them), its histogram pages from the
    /// back.
    Nodes = 4,
    /// [`SyscallRow`](crate::syscalls::SyscallRow)s, `count` of them; only in `.syscalls` files.
    Syscalls = 5,
    /// [`WaitRow`](crate::syscalls::WaitRow)s, `count` of them; only in `.syscalls` files.
    Waits = 6,
    /// [`OriginRecord`]s, each readable by its own `state`.
    Origins = 7,
    /// [`TwinRecord`]s, each readable by its own `state`.
    Twins = 8,
}

/// The first [`UNIT`] bytes of each chunk.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct ChunkHeader {
    /// [`CHUNK_MAGIC`].
    pub magic: u32,
    /// [`ChunkKind`] as a number.
    pub kind: u32,
    /// Length with this header, in bytes: a multiple of [`PAGE`].
    pub len: u64,
    /// [`COMMITTED`] once the contents may be read.
    pub state: u32,
    /// The thread or object whose chunk it is, or [`NONE`].
    pub owner: u32,
    /// Entries readable so far, where the kind has entries.
    pub count: u32,
    /// Padding to [`UNIT`].
    pub reserved: [u32; 25],
}

/// [`ObjectRecord::flags`]: the executable.
pub const OBJECT_EXECUTABLE: u32 = 1 << 0;
/// [`ObjectRecord::flags`]: libchase itself; not patched.
pub const OBJECT_CHASE: u32 = 1 << 1;
/// [`ObjectRecord::flags`]: loaded by `dlopen` or `dlmopen` and not at start.
pub const OBJECT_DLOPENED: u32 = 1 << 2;
/// [`ObjectRecord::flags`]: position-dependent (ELF type EXEC).
pub const OBJECT_FIXED: u32 = 1 << 3;

/// A loaded ELF file, first in an [`ChunkKind::Object`] chunk. Behind it in the chunk, in this
/// order: `segment_count` [`Segment`]s, `slot_count` [`SlotRecord`]s, `strings_len` bytes of
/// NUL-terminated strings, to which `*_off` fields are offsets (0 is the empty string).
///
/// An object that is unloaded and loaded again at the same place is reinstated: `unload_ticks`
/// becomes 0 again. At another place it gets a new chunk with the same `id`, the slots keeping their
/// numbers; after many of them the last chunk is rewritten.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct ObjectRecord {
    /// Number of the object, from 0.
    pub id: u32,
    /// `OBJECT_*`.
    pub flags: u32,
    /// Added to an address in the file (svma) to get the address in the process (avma).
    pub bias: u64,
    /// When it was first seen.
    pub load_ticks: u64,
    /// When it was found unloaded; 0 while it is loaded.
    pub unload_ticks: u64,
    /// Number of its first slot.
    pub first_slot: u32,
    /// Its slots have the numbers from `first_slot` on.
    pub slot_count: u32,
    /// Loaded segments.
    pub segment_count: u32,
    /// Bytes of strings.
    pub strings_len: u32,
    /// Path as the dynamic linker knows it.
    pub path_off: u32,
    /// `DT_SONAME`, or empty.
    pub soname_off: u32,
    /// Used bytes of `build_id`.
    pub build_id_len: u32,
    /// Link-map namespace: 0 is the program's own.
    pub namespace: u32,
    /// GNU build id, zero-padded.
    pub build_id: [u8; 32],
    /// Imports that are not hooked, by [`SkipReason`].
    pub skipped: [u32; 16],
}

/// A loaded segment of an object.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Segment {
    /// Address in the file.
    pub svma: u64,
    /// Size in memory, bytes.
    pub len: u64,
    /// ELF `p_flags`: 1 execute, 2 write, 4 read.
    pub flags: u32,
    /// Padding.
    pub reserved: u32,
}

/// How the calls of a slot are treated.
#[repr(u16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotClass {
    /// Counted and timed.
    Timed = 0,
    /// Only counted: the function returns twice, never, or must see its real caller.
    Counted = 1,
    /// Counted always, and timed where its arguments allow it.
    Sometimes = 2,
}

/// [`SlotRecord::kind`]: an `R_X86_64_JUMP_SLOT`.
pub const SLOT_JUMP: u16 = 0;
/// [`SlotRecord::kind`]: an `R_X86_64_GLOB_DAT` that the object's code only calls through.
pub const SLOT_GLOBAL: u16 = 1;

/// One import of one object.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct SlotRecord {
    /// Symbol name.
    pub name_off: u32,
    /// Symbol version, empty when it has none.
    pub version_off: u32,
    /// Object that the function is in, or [`NONE`].
    pub provider: u32,
    /// [`SlotClass`] as a number.
    pub class: u16,
    /// `SLOT_*`.
    pub kind: u16,
    /// Address of the GOT entry in the importer's file.
    pub got_svma: u64,
    /// Address of the function in the provider's file (the implementation, for an IFUNC).
    pub target_svma: u64,
}

/// Why an import is not hooked; index into [`ObjectRecord::skipped`].
#[repr(usize)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// A weak import that nothing provides.
    Undefined = 0,
    /// The slot's value is also used as a function pointer.
    Pointer = 1,
    /// It binds to the object it is in.
    Internal = 2,
    /// The function has a calling convention of its own.
    Convention = 3,
    /// `CHASE_LIBS` / `CHASE_EXCLUDE`.
    Filtered = 4,
    /// No stub was left.
    NoStub = 5,
    /// The page of the slot could not be made writable.
    Protected = 6,
    /// Private between the parts of the C library.
    Private = 7,
    /// Bound by the dynamic linker at its first call, to an object loaded later.
    Late = 8,
}

/// Names of the [`SkipReason`]s, in order, as reports show them.
pub const SKIP_REASONS: [&str; 9] = [
    "nothing provides it",
    "used as a function pointer",
    "call within one object",
    "own calling convention",
    "left out by CHASE_LIBS or CHASE_EXCLUDE",
    "no stub left",
    "page could not be made writable",
    "private to the C library",
    "bound late to a dlopened object",
];

/// [`ThreadRecord::state`]: the entry is empty.
pub const THREAD_FREE: u32 = 0;
/// [`ThreadRecord::state`]: the thread runs, as far as is known.
pub const THREAD_LIVE: u32 = 1;
/// [`ThreadRecord::state`]: the thread's end was seen.
pub const THREAD_ENDED: u32 = 2;

/// [`ThreadRecord::origin`]: the thread that the process started with.
pub const THREAD_MAIN: u32 = 0;
/// [`ThreadRecord::origin`]: its creation was seen.
pub const THREAD_CREATED: u32 = 1;
/// [`ThreadRecord::origin`]: first seen in mid-life; its start is that of its first call.
pub const THREAD_FOUND: u32 = 2;

/// One thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct ThreadRecord {
    /// `THREAD_FREE`, `THREAD_LIVE` or `THREAD_ENDED`.
    pub state: u32,
    /// Kernel thread id.
    pub tid: u32,
    /// Number of the thread in this recording, from 0.
    pub index: u32,
    /// `THREAD_MAIN`, `THREAD_CREATED` or `THREAD_FOUND`.
    pub origin: u32,
    /// When it started (or was found).
    pub start_ticks: u64,
    /// When it ended, if `state` says so.
    pub end_ticks: u64,
    /// Start routine, avma; 0 when unknown.
    pub start_routine_avma: u64,
    /// The argument of the start routine.
    pub start_argument: u64,
    /// Return address of the call that created it, avma; 0 when unknown.
    pub creation_site_avma: u64,
    /// Number of the creating thread, or [`NONE`].
    pub creator: u32,
    /// Root of its tree.
    pub root_ref: u32,
    /// Calls of this thread that were not recorded for other reasons than those in [`Unseen`]: made
    /// by handlers of synchronous signals that interrupted the recording.
    pub untimed_calls: u64,
    /// Name as of `prctl(PR_GET_NAME)`, NUL-padded.
    pub name: [u8; 16],
    /// Room for what a later version knows of a thread.
    pub reserved: [u64; 5],
}

/// [`OriginRecord::state`]: the record is complete.
pub const ORIGIN_COMPLETE: u32 = 1;
/// Return addresses kept of the calls that a thread's creation was made in.
pub const ORIGIN_STACK: usize = 8;
/// Words kept of what the start routine's argument points to.
pub const ORIGIN_WORDS: usize = 16;
/// Words kept of what the second of those words points to.
pub const ORIGIN_INNER_WORDS: usize = 12;
/// Numbers below this one are kept as they are: they may be offsets in tables of virtual functions.
pub const ORIGIN_SMALL: u64 = 1 << 16;
/// Bytes kept of what a runtime calls the thread's function.
pub const ORIGIN_TEXT: usize = 128;

/// What was seen of a thread's creation, raw: which function of the program the thread runs is for
/// the reader to find, who knows the symbols. Start routines of language runtimes are alike for all
/// threads; what differs is in the object that the argument points to.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct OriginRecord {
    /// [`ORIGIN_COMPLETE`] if it may be read.
    pub state: u32,
    /// Number of the thread.
    pub thread: u32,
    /// Addresses in `stack`.
    pub stack_len: u16,
    /// Words in `words`; 0 if the argument is no readable address.
    pub word_count: u16,
    /// Words in `inner_words`; 0 if the second word is no readable address.
    pub inner_word_count: u16,
    /// Bytes in `text`.
    pub text_len: u16,
    /// Return addresses (avma), innermost first: of the call that created the thread, then of the
    /// library calls that were open around it. Calls within an object are not among them.
    pub stack: [u64; ORIGIN_STACK],
    /// What the argument pointed to when the thread was created: words that are addresses in loaded
    /// objects, or below [`ORIGIN_SMALL`]. Any other is the application's data, and is 0 here.
    pub words: [u64; ORIGIN_WORDS],
    /// What the second of them pointed to, likewise.
    pub inner_words: [u64; ORIGIN_INNER_WORDS],
    /// UTF-8: what the Python interpreter runs in the thread, as `module.qualname`, then NUL and
    /// the name of its `Thread` object. Empty for other threads. What does not fit is cut.
    pub text: [u8; ORIGIN_TEXT],
    /// Padding to a multiple of [`UNIT`].
    pub reserved: [u64; 10],
}

impl OriginRecord {
    /// A record of which nothing is known.
    pub const EMPTY: Self = Self {
        state: 0,
        thread: 0,
        stack_len: 0,
        word_count: 0,
        inner_word_count: 0,
        text_len: 0,
        stack: [0; ORIGIN_STACK],
        words: [0; ORIGIN_WORDS],
        inner_words: [0; ORIGIN_INNER_WORDS],
        text: [0; ORIGIN_TEXT],
        reserved: [0; 10],
    };
}

/// One context of one thread; the hook's fast path updates it in place.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Node {
    /// Node in whose scope the call was made.
    pub parent_ref: u32,
    /// Slot that was called, with [`INHERITED`] where it applies, or [`ROOT_SLOT`].
    pub slot: u32,
    /// Calls begun.
    pub calls: u64,
    /// Ticks of the calls completed, the hook's inside cost included.
    pub total_ticks: u64,
    /// Longest completed call, inside cost included.
    pub max_ticks: u64,
    /// Start of the latest call.
    pub last_start_ticks: u64,
    /// Node in whose scope callees are looked up: itself, or an ancestor where recursion folds.
    pub scope_ref: u32,
    /// Calls that ended but are in no histogram: left by an exception, a longjmp or a cancellation
    /// (or completed when the recording had no room for a page). Their time is in `total_ticks`.
    pub unwound: u32,
    /// Histogram pages, each [`PAGE_BUCKETS`](crate::histogram::PAGE_BUCKETS) × u64. A page is taken
    /// when its first duration arrives, so the one taken first (in the earliest chunk, and the
    /// last one there) counts the first call.
    pub page_refs: [u32; PAGES],
}

/// What is known of sampled calls, behind the [`Node`] of their context. The fields of one may be
/// one call apart.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Samples {
    /// Calls made since the latest sample of the (thread, slot), less those that it stands for and
    /// that were not made yet; 0 in all of its contexts but that of the latest sample.
    pub adjust: i32,
    /// [`SAMPLES_SLOT`], in the place of [`Node::slot`].
    pub slot: u32,
    /// Samples begun.
    pub begun: u32,
    /// Samples that returned.
    pub ended: u32,
    /// Σ w over the samples that returned.
    pub weight: u64,
    /// Σ w·(w − 1) over them.
    pub pairs: u64,
    /// Σ w·(w − 1)·x over them, x in ticks.
    pub pairs_ticks: u64,
    /// Σ w·(w − 1)·x² over them, in units of [`SQUARES`] ticks²; it saturates. With the mean m, the
    /// estimated variance of the total is at most Σ w·(w − 1)·(x − m)² (one random call of each
    /// block of w, after Horvitz and Thompson).
    pub pairs_squares: u64,
    /// Histogram pages, with weights for counts.
    pub page_refs: [u32; PAGES],
}

/// [`TwinRecord::state`]: the record may be read.
pub const TWIN_USED: u32 = 1;

/// A slot whose calls are seen in windows alone. Times are CPU times of the process, of all its threads
/// together.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct TwinRecord {
    /// [`TWIN_USED`] if it may be read.
    pub state: u32,
    /// Number of the slot; none of an object's.
    pub slot: u32,
    /// The import's own slot.
    pub of: u32,
    /// Windows that were closed.
    pub windows: u32,
    /// How long windows were open, less what the calls in them are taken to have cost: in that time the
    /// program did as much as in the same time between windows.
    pub on_ns: u64,
    /// The pauses that they stand for too.
    pub off_ns: u64,
    /// The other pauses.
    pub unseen_ns: u64,
    /// Σ y, y the calls that were credited in a window, in all threads.
    pub calls: u64,
    /// Σ y². These sums saturate.
    pub calls_squared: u64,
    /// Σ x·y, x in µs the time that the window was open.
    pub calls_open_us: u64,
    /// Σ x².
    pub open_us_squared: u64,
    /// What was subtracted from `on_ns`.
    pub cost_ns: u64,
    /// Room for what a later version knows.
    pub reserved: [u64; 6],
}

const _: () = {
    assert!(size_of::<Samples>() == UNIT);
    assert!(size_of::<TwinRecord>() == UNIT);
    assert!(core::mem::offset_of!(Samples, slot) == core::mem::offset_of!(Node, slot));
    assert!(size_of::<Header>() <= PAGE);
    assert!(size_of::<ChunkHeader>() == UNIT);
    assert!(size_of::<Node>() == UNIT);
    assert!(size_of::<ThreadRecord>() == UNIT);
    assert!(size_of::<OriginRecord>() == 4 * UNIT);
    assert!(size_of::<ObjectRecord>() == 160);
    assert!(size_of::<Segment>() == 24);
    assert!(size_of::<SlotRecord>() == 32);
    assert!(size_of::<Header>() == 336);
    assert!(PAGE.is_multiple_of(UNIT));
};
