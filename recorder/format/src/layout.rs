//! The format, version 11.
//!
//! ```text
//! offset 0      4096          4096·k                                    committed        end of file
//! ┌────────────┬─────────────┬─────────────┬───────┬───────────────────┬────────────────────────┐
//! │ Header     │ chunk       │ chunk       │  ...  │ chunk             │ zeros (not allocated)  │
//! └────────────┴─────────────┴─────────────┴───────┴───────────────────┴────────────────────────┘
//!                ChunkHeader + contents, a multiple of 4096 bytes
//! ```
//!
//! All numbers are little-endian and of fixed width; positions are offsets from the start of the file, never
//! pointers. A field called `_ref` is an offset divided by [`UNIT`] (0: none). Times are in ticks of the clock given
//! by [`Header::clock_kind`].
//!
//! # Who writes what, and when it may be read
//!
//! The file is a shared mapping that the traced process writes in place; it may be read at any moment, and the
//! process may be killed at any moment.
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
//! | [`OffCpuRow`] | its own thread | at any time; the fields of one may be one call apart |
//! | [`ArgumentRow`] | its own thread, by single instructions | [`ChunkHeader::count`] covers it; then at any time, the fields of one may be one call apart |
//! | [`TextRow`] | its own thread, with signals blocked | [`ChunkHeader::count`] covers it; then at any time, if `len` is not 0 before and after |
//! | [`CallerRow`] | its own thread, by single instructions | `node_ref` is not 0 |
//! | [`SiteRecord`] | a thread that holds the lock of sites, once | `state` is stored last |
//! | [`OriginRecord`] | the thread that it is about, once | `state` is stored last |
//! | [`EventRecord`] | its own thread, again and again | `number` is stored last; see there |
//! | [`ChunkHeader::owner`] of events | a thread that holds the lock of rooms, once the thread that had it has ended | `state` is 0 before, and stored last |
//! | [`MarkName`] | a thread that holds the lock of marks, once | `state` is stored last |
//! | [`TwinRecord`] | nobody any more | `state` was stored last |
//! | [`ObjectRecord::unload_ticks`] | a thread that holds the patching lock | at any time |
//!
//! # The calling-context tree
//!
//! Each thread has a tree of nodes. A node represents the calls of one slot that were made in one context of the
//! thread. [`Node::parent_ref`] refers to the node in whose *scope* it is looked up, and [`Node::scope_ref`] to the
//! node in whose scope its own callees are looked up: itself, except where recursion is folded. A call whose slot is
//! already among its ancestors gets a node of its own whose scope is that ancestor. So no tree grows without bound,
//! and every duration is still counted once: summed over the nodes of one slot, self time is exact. (Inclusive time
//! is not, where several slots recurse through each other.) If a thread has more contexts than the writer keeps,
//! further ones are put under its root, and counted in [`Unseen::contexts_under_root`].
//!
//! [`Node::calls`] counts calls begun. The sum of the histogram is the number of calls completed. [`Node::unwound`]
//! counts calls that an exception passed through, calls whose thread continued on another stack (timed until then),
//! and calls that could not be timed (such as a `clone` by `syscall`). The remaining calls are still open, or were
//! when the process ended, since [`Node::last_start_ticks`]. Slots of class [`SlotClass::Counted`] are never timed;
//! their nodes only count.
//!
//! # Sampled calls
//!
//! A thread may time only some of the calls of a hot slot. These have a node of their own beside that of the calls
//! that were all timed: [`Node::slot`] has the bit [`SAMPLED`], and the node is followed, in the same chunk, by a
//! [`Samples`]. The calls of a (thread, slot) are divided into blocks. One call of each block, at a random position,
//! is timed, and stands for the block: its weight *w* is the number of calls in the block. The weight is fixed before
//! the call is made.
//!
//! * `calls` + [`Samples::adjust`] = calls begun, exact over the contexts of a (thread, slot); the share of each
//!   context is an estimate. Until an end of the thread, the process or the image was seen, the calls since the
//!   latest sample are missing: fewer than a block ([`longest_block`]).
//! * Where the calls themselves call others, each is counted in its own context, timed or not: the node also has the
//!   bit [`FRAMED`], and its `calls` are exact. (Its `adjust` is 0, unless the slot's calls have just stopped being
//!   counted that way.) Its scope is that of the node of the calls that were all timed, which always exists. (Where
//!   calls are only counted it doesn't; the node then has the calls that signal handlers made while others were being
//!   credited.)
//! * `total_ticks` = Σ w·x over the measured durations x; the histogram, whose pages are in [`Samples::page_refs`]
//!   (those of the node stay 0), counts each with its weight.
//! * A call during which the kernel preempted the thread counts once; the rest of its block is counted, in the
//!   histogram and in the total, with the mean so far.
//!
//! # Arguments
//!
//! Some functions have an argument that says how much work a call does: bytes, items, the longest wait. For their
//! timed calls the thread keeps a row for each of its contexts, in chunks of their own ([`ChunkKind::Arguments`]):
//! rows follow each other, each [`ArgumentHead::units`] long, and [`ChunkHeader::count`] is the number of units that
//! may be read. Contexts that got no row, because there was no room, are counted in
//! [`Unseen::contexts_without_arguments`].
//!
//! Of functions that take a path or the name of a host, the row says only that ([`ARGUMENT_PATH`], [`ARGUMENT_HOST`]).
//! Once a call has taken long, its text is read, and the call is added to the [`TextRow`] with that text, in chunks of
//! their own ([`ChunkKind::Texts`], which are read like those of rows). [`ArgumentHead::longer_ref`] refers to the
//! context's first such row. There are at most [`TEXTS`]: a further text replaces the one with the shortest total, if its
//! call took longer than that. What calls with texts that have no row took is in [`ArgumentHead::sum`], and how many
//! these are in [`ArgumentHead::negative`]. No other memory that an argument points to is read.
//!
//! # Calls that were seen in windows
//!
//! Versions 4 to 7 could unhook an import that was called very often, and hook it again for short windows; files are
//! no longer written that way. The calls before are in the nodes of the import's own slot, complete; the calls in
//! windows are in nodes of a slot of their own, the *twin*, which belongs to no object. A [`TwinRecord`] says whose
//! twin it is, and for how long nothing was seen.
//!
//! # Events
//!
//! In addition to the sums over all calls, single calls may be recorded with their times: by default those that took
//! long. A call's [`EventRecord`] is written when it returns; calls that were open when the process was killed only
//! show in the `calls` of their nodes. Gaps in the numbers of events show how many were overwritten.
//!
//! # Versions
//!
//! | version | oldest reader | what changed |
//! | --- | --- | --- |
//! | 1 | 1 | the first |
//! | 2 | 1 | [`ChunkKind::Origins`]: what is known of a thread's creation |
//! | 3 | 3 | sampled calls: [`SAMPLED`], [`FRAMED`], [`Samples`], [`Header::timing`] and three costs |
//! | 4 | 4 | [`ChunkKind::Twins`]: calls seen in windows; without any, the oldest reader is 3 |
//! | 5 | 5 | estimates of calls between windows; without twins, the oldest reader is 3 |
//! | 6 | 5 | [`Header::parent_start`]; without twins, the oldest reader is 3 |
//! | 7 | 5 | [`Unseen::calls_since_fork`], [`ThreadRecord::countdowns_lost`]; calls that are only counted are credited as often as others; without twins, the oldest reader is 3 |
//! | 8 | 5 | [`OffCpuRow`], [`ThreadRecord::asks`], [`ThreadRecord::cpu_ns`], [`ThreadRecord::slow_ticks`]; without twins, the oldest reader is 3 |
//! | 9 | 5 | [`ChunkKind::Arguments`]: what calls were asked to do; without twins, the oldest reader is 3 |
//! | 10 | 5 | [`ChunkKind::Events`], [`ChunkKind::Marks`], [`Unseen::events_without_space`], [`Unseen::events_of_ended`]; without twins, the oldest reader is 3 |
//! | 11 | 5 | [`ChunkKind::Texts`]: paths and names of hosts that long calls were passed; [`ChunkKind::Sites`], with which the oldest reader is 11; without these and twins, it is 3 |
//!
//! A reader accepts any file whose `reader_min` is at most its own [`VERSION`], ignores unknown chunk kinds, and
//! takes fields beyond the end of an older record as zero. Older readers may ignore what was added without a version of its own:
//! [`Unseen::threads_left_out`], [`THREAD_LEFT_OUT`], [`ChunkKind::Callers`], [`Unseen::forks`],
//! [`Header::condition_words`].

mod arguments;
mod callers;
mod events;
mod nodes;
mod objects;
mod off_cpu;
mod sites;
mod texts;
mod threads;
mod twins;

use bytemuck::{Pod, Zeroable};

pub use self::arguments::*;
pub use self::callers::*;
pub use self::events::*;
pub use self::nodes::*;
pub use self::objects::*;
pub use self::off_cpu::*;
pub use self::sites::*;
pub use self::texts::*;
pub use self::threads::*;
pub use self::twins::*;

/// First bytes of every recording.
pub const MAGIC: [u8; 8] = *b"CHASEREC";
/// Version of the format written by this crate.
pub const VERSION: u32 = 11;
/// Since this version, calls that are only counted are credited as often as others ([`longest_block`]).
pub const VERSION_COUNT_BLOCKS: u32 = 7;
/// The oldest reader that understands what this crate writes.
pub const READER_MIN: u32 = 3;
/// The same where contexts are told apart by the places of calls: [`Node::slot`] is not always a slot's number then.
pub const READER_MIN_OF_SITES: u32 = 11;
/// File name extension of a recording, without the dot.
pub const EXTENSION: &str = "chase";

/// Chunks begin at multiples of this many bytes, and have a multiple of them as their length; the header has this
/// length.
pub const PAGE: usize = 4096;
/// Unit of `_ref` fields, in bytes: the size of a node and of a histogram page.
pub const UNIT: usize = 128;

/// [`ChunkHeader::magic`].
pub const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"CHNK");
/// [`ChunkHeader::state`] of a chunk whose contents may be read.
pub const COMMITTED: u32 = 1;

/// [`Node::slot`] of a thread's root.
pub const ROOT_SLOT: u32 = u32::MAX;
/// Bit in [`Node::slot`] of a call that was open when a fork made this process. The other bits are the slot. The
/// node's times are this process's, since the fork; its calls were made, and are counted, in the parent.
pub const INHERITED: u32 = 1 << 31;
/// Bit in [`Node::slot`] of calls of which only some were timed. The node is followed by a [`Samples`].
pub const SAMPLED: u32 = 1 << 30;
/// Bit in [`Node::slot`], together with [`SAMPLED`], of calls that are each counted in their own context.
pub const FRAMED: u32 = 1 << 29;
/// [`Samples::slot`]: marks what is in the place of a node and is none.
pub const SAMPLES_SLOT: u32 = u32::MAX - 1;
/// Unit of [`Samples::pairs_squares`], in ticks².
pub const SQUARES: u64 = 256;
/// A sample that took this many means of those before it, and [`INTERRUPTION_NS`], may have been interrupted. It only counts for
/// itself then.
pub const INTERRUPTION_MEANS: u64 = 64;
/// No interruption of a sample is shorter.
pub const INTERRUPTION_NS: u64 = 20_000;
/// With so many samples that seem interrupted, their calls are believed to be like that, and they count for all that they represent.
pub const INTERRUPTIONS_BELIEVED: u8 = 3;
/// The context of what chase itself does in the process: a `_ref` that no node has, since it is within the header.
pub const OWN_CONTEXT_REF: u32 = 1;
/// The first argument of the `rt_sigprocmask` by which the hook asks if memory can be read: a value that the kernel rejects.
pub const READABLE_HOW: u64 = 1 << 20;
/// Stands for "none" or "unknown" as the number of an object, thread or slot.
pub const NONE: u32 = u32::MAX;

/// [`Header::clock_kind`]: invariant time stamp counter.
pub const CLOCK_TSC: u32 = 0;
/// [`Header::clock_kind`]: `CLOCK_MONOTONIC` in nanoseconds, where the TSC can't be trusted.
pub const CLOCK_MONOTONIC: u32 = 1;

/// [`Header::timing`]: every call is timed.
pub const TIMING_ALL: u32 = 0;
/// [`Header::timing`]: only some of the hot, short, even calls are timed.
pub const TIMING_ADAPTIVE: u32 = 1;
/// [`Header::timing`]: calls are only counted.
pub const TIMING_COUNT: u32 = 2;

/// [`Header::origin`]: the program image was started by exec.
pub const ORIGIN_EXEC: u32 = 0;
/// [`Header::origin`]: a fork's child, which continues its parent's image.
pub const ORIGIN_FORK: u32 = 1;

/// [`Header::end_kind`]: no end was seen. The process is running, or was killed; if who started it knows by which signal, `end_status`
/// holds that.
pub const END_NONE: u32 = 0;
/// [`Header::end_kind`]: `exit` or a return from `main`; `end_status` holds the status.
pub const END_EXIT: u32 = 1;
/// [`Header::end_kind`]: `_exit` or similar; `end_status` holds the status.
pub const END_IMMEDIATE: u32 = 2;
/// [`Header::end_kind`]: the image was about to be replaced by exec.
pub const END_EXEC: u32 = 3;
/// [`Header::end_kind`]: `abort` was called.
pub const END_ABORT: u32 = 4;

/// [`Header::end_kind`]: chase has left the process, which goes on running.
pub const END_DETACHED: u32 = 5;

/// [`Header::stop_reason`]: the recording is complete.
pub const STOP_NONE: u32 = 0;
/// [`Header::stop_reason`]: no more space (full disk, quota); see `stop_errno`.
pub const STOP_NO_SPACE: u32 = 1;
/// [`Header::stop_reason`]: the size limit of a recording was reached.
pub const STOP_LIMIT: u32 = 2;
/// [`Header::stop_reason`]: the process can't map more memory.
pub const STOP_NO_MEMORY: u32 = 3;

/// [`Header::stop_reason`]: the process gave up the right to system calls that recording needs (seccomp), or to the
/// clock. Existing contexts go on being counted.
pub const STOP_CONFINED: u32 = 4;
/// [`Header::stop_reason`]: the program mapped other memory over the recording, which was not updated any more;
/// `stop_ticks` is when that was noticed.
pub const STOP_CUT_OFF: u32 = 5;

/// One moment, on the recording's own clock and on the system's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ClockPair {
    /// The recording's clock.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC`, ns; 0 if the pair was never taken.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`, ns since 1970.
    pub realtime_ns: u64,
}

/// Counts of what could not be recorded. After the recording has stopped, they are lower bounds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Unseen {
    /// Calls by threads that had no record (starting, ending, or none could be made).
    pub calls_without_thread: u64,
    /// Calls that were not counted because the recording had no room for their context.
    pub calls_without_space: u64,
    /// Calls that ran untimed because all frames were used: by deep nesting, or by calls abandoned on other stacks.
    pub calls_too_deep: u64,
    /// Threads that got no record.
    pub threads: u64,
    /// Slots for which there were no more stubs.
    pub slots_without_stub: u64,
    /// Objects whose tables could not be read.
    pub objects: u64,
    /// `dlopen` calls that were not hooked because their search depends on the caller; the new objects were patched
    /// at the thread's next call.
    pub late_loads: u64,
    /// Contexts put under their thread's root because there were too many: their time is missing from the totals of
    /// their callers, whose self times are too high by it.
    pub contexts_under_root: u64,
    /// 1 if a call has returned that seemed abandoned for good: the process copies slices of stacks away and back.
    pub stacks_sliced: u64,
    /// An upper bound of the calls that a fork's child made before the fork was noticed, and that were only counted:
    /// the fork was an unannounced system call. In which contexts is unknown.
    pub calls_since_fork: u64,
    /// Contexts whose arguments were not recorded, or only up to some point, for lack of room.
    pub contexts_without_arguments: u64,
    /// Events of threads that have no room for any.
    pub events_without_space: u64,
    /// Events of ended threads whose chunks were reused by later threads.
    pub events_of_ended: u64,
    /// Threads that were not to be recorded (`CHASE_THREADS`): see [`THREAD_LEFT_OUT`].
    pub threads_left_out: u64,
    /// Forks' children that got no recording, in that of their parent. What they called is in none.
    pub forks: u64,
    /// Room for later counters.
    pub reserved: [u64; 1],
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
    /// Size of this structure in bytes, as known to the writer.
    pub header_len: u32,
    /// `/proc/sys/kernel/random/boot_id`, zero when it could not be read.
    pub boot_id: [u8; 16],
    /// Process id, in the process's own pid namespace.
    pub pid: u32,
    /// If `parent_start` is not 0: the id of the process that forked this one, in that process's own pid namespace.
    /// Otherwise the parent's at the start of the recording; 0 if the parent is in another pid namespace.
    pub parent_pid: u32,
    /// Process group id.
    pub process_group: u32,
    /// Session id.
    pub session: u32,
    /// Start of the process in clock ticks since boot (field 22 of `/proc/self/stat`). Together with the pid,
    /// identifies a process across exec; 0 if unknown.
    pub process_start: u64,
    /// [`ORIGIN_EXEC`] or [`ORIGIN_FORK`].
    pub origin: u32,
    /// [`CLOCK_TSC`] or [`CLOCK_MONOTONIC`].
    pub clock_kind: u32,
    /// Start of the recording.
    pub clock_start: ClockPair,
    /// The latest pair: from the end if that was seen, otherwise from some time before. In a fork's child it is its
    /// ancestors' first pair, before `clock_start`, until another is taken.
    pub clock_latest: ClockPair,
    /// The hook's overhead within a call's measured duration, in 1/1024 ticks.
    pub cost_inside: u64,
    /// The hook's overhead of a call outside of its measured duration, in 1/1024 ticks; it is in the caller's time.
    pub cost_outside: u64,
    /// Bytes of the file that hold the header and chunks with complete headers.
    pub committed: u64,
    /// How the process ended: `END_*`. Valid only if no call began after `end_ticks`.
    pub end_kind: u32,
    /// Exit status or signal, where `end_kind` has one.
    pub end_status: i32,
    /// When the end was seen; 0 when it was not.
    pub end_ticks: u64,
    /// Why the recording is incomplete: `STOP_*`.
    pub stop_reason: u32,
    /// `errno` behind `stop_reason`, or 0.
    pub stop_errno: u32,
    /// When it stopped.
    pub stop_ticks: u64,
    /// What could not be recorded.
    pub unseen: Unseen,
    /// `TIMING_*`.
    pub timing: u32,
    /// Standard error of what is subtracted from samples' measured durations, in 1/1024 ticks, the same for all of
    /// them; 0 if unknown.
    pub cost_error: u32,
    /// The hook's overhead of a call that is counted and not timed, in 1/1024 ticks; it is in the caller's time.
    pub cost_counted: u64,
    /// Like `cost_outside`, for a call that is a sample and finds all that it needs in caches.
    pub cost_sampled: u64,
    /// Like `cost_counted`, for a call that gets a frame.
    pub cost_framed: u64,
    /// `process_start` of the process that forked this one; 0 if unknown.
    pub parent_start: u64,
    /// Processor time of the process up to its recorded end, in ns, with what the kernel will take to unmap its memory
    /// then, as estimated. It begins at 0 in a fork's child, and continues through exec. 0 if unknown.
    pub cpu_ns: u64,
    /// Processor time that chase took to start and end in this image, including the loading of its library, and to hook
    /// objects that were loaded later, in ns.
    pub cost_start_ns: u64,
    /// Time that it took later on beside calls, for threads and forks, in ticks.
    pub cost_later_ticks: u64,
    /// Where in a `pthread_cond_t` the words are that threads wait for, in bytes; 0 if unknown.
    pub condition_words: u64,
}

/// What a chunk holds.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// Key and value strings: `key NUL value NUL ...`; `count` is the number of bytes. Keys:
    /// `executable`, `command` (arguments joined by 0x1f), `directory`, `host`, `kernel`, `writer`,
    /// `syscalls` (`on`, or why they are not recorded), `events` (see the reader's `EventsKept`), `attached` (of a process
    /// that ran already: how many threads it had, and in how many of them a call was under way, which is not recorded), `title`
    /// (in a chunk of its own, at the end: what the process called itself then, `program: what it does`); in older files also `budget` (`on` where calls
    /// may have been seen in windows alone).
    Meta = 1,
    /// One loaded object: [`ObjectRecord`], its segments, its slots, their strings.
    Object = 2,
    /// [`ThreadRecord`]s, each readable by its own `state`.
    Threads = 3,
    /// [`Node`]s of thread `owner`, `count` of them, from the front, and histogram pages from the back.
    Nodes = 4,
    /// [`SyscallRow`](crate::syscalls::SyscallRow)s, `count` of them; only in `.syscalls` files.
    Syscalls = 5,
    /// [`WaitRow`](crate::syscalls::WaitRow)s, `count` of them; only in `.syscalls` files.
    Waits = 6,
    /// [`OriginRecord`]s, each readable by its own `state`.
    Origins = 7,
    /// [`TwinRecord`]s, each readable by its own `state`; only in files of older versions.
    Twins = 8,
    /// [`SampleRow`](crate::syscalls::SampleRow)s, `count` of them; only in `.syscalls` files.
    Samples = 9,
    /// [`OnCpuRow`](crate::syscalls::OnCpuRow)s, `count` of them; only in `.syscalls` files.
    OnCpu = 10,
    /// [`MappingRow`](crate::syscalls::MappingRow)s, `count` of them; only in `.syscalls` files.
    Mappings = 11,
    /// [`OffCpuRow`]s of thread `owner`, `count` of them, unordered.
    OffCpu = 12,
    /// [`CauseRow`](crate::syscalls::CauseRow)s, `count` of them; only in `.syscalls` files.
    Causes = 13,
    /// [`BlockedRow`](crate::syscalls::BlockedRow)s, `count` of them; only in `.syscalls` files.
    Blocked = 20,
    /// [`TurnsRow`](crate::syscalls::TurnsRow)s, `count` of them; only in `.syscalls` files.
    Turns = 22,
    /// [`LongTurnRow`](crate::syscalls::LongTurnRow)s, `count` of them; only in `.syscalls` files.
    LongTurns = 23,
    /// [`SampleRow`](crate::syscalls::SampleRow)s of samples late in turns, `count` of them; only in `.syscalls` files.
    LateSamples = 24,
    /// [`TimedSampleRow`](crate::syscalls::TimedSampleRow)s, `count` of them; only in `.syscalls` files.
    TimedSamples = 26,
    /// [`FileRow`](crate::syscalls::FileRow)s, `count` of them; only in `.syscalls` files.
    Files = 21,
    /// [`ArgumentRow`]s and [`ShortArgumentRow`]s of thread `owner`, `count` units of them.
    Arguments = 14,
    /// [`TextRow`]s of thread `owner`, `count` units of them.
    Texts = 15,
    /// [`SiteRecord`]s, each readable by its own `state`.
    Sites = 19,
    /// [`CallerRow`]s of thread `owner`, unordered; there may be several with the same node and address.
    Callers = 25,
    /// [`EventsHead`], then [`EventRecord`]s of thread `owner`, each readable by its own `number`.
    Events = 16,
    /// [`MarkName`]s, each readable by its own `state`.
    Marks = 17,
    /// [`SingleSyscallRow`](crate::syscalls::SingleSyscallRow)s, `count` of them; only in `.syscalls` files.
    SingleSyscalls = 18,
}

/// The first [`UNIT`] bytes of each chunk.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct ChunkHeader {
    /// [`CHUNK_MAGIC`].
    pub magic: u32,
    /// [`ChunkKind`] as a number.
    pub kind: u32,
    /// Length including this header, in bytes: a multiple of [`PAGE`].
    pub len: u64,
    /// [`COMMITTED`] once the contents may be read.
    pub state: u32,
    /// The thread or object to which the chunk belongs, or [`NONE`].
    pub owner: u32,
    /// Entries readable so far, where the kind has entries.
    pub count: u32,
    /// Padding to [`UNIT`].
    pub reserved: [u32; 25],
}

const _: () = {
    assert!(size_of::<Samples>() == UNIT);
    assert!(size_of::<TwinRecord>() == UNIT);
    assert!(size_of::<OffCpuRow>() == 32);
    assert!(size_of::<EventsHead>() == size_of::<EventRecord>());
    assert!(size_of::<EventRecord>() == 32);
    assert!(size_of::<MarkName>() == UNIT);
    assert!(core::mem::offset_of!(Samples, slot) == core::mem::offset_of!(Node, slot));
    assert!(size_of::<Header>() <= PAGE);
    assert!(size_of::<ChunkHeader>() == UNIT);
    assert!(size_of::<Node>() == UNIT);
    assert!(size_of::<ThreadRecord>() == UNIT);
    assert!(size_of::<OriginRecord>() == 4 * UNIT);
    assert!(size_of::<ObjectRecord>() == 160);
    assert!(size_of::<Segment>() == 24);
    assert!(size_of::<SlotRecord>() == 32);
    assert!(size_of::<Header>() == 376);
    assert!(PAGE.is_multiple_of(UNIT));
};
