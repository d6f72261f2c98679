//! Threads and where they come from.

use bytemuck::{Pod, Zeroable};

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
    /// Number of the creating thread, or [`NONE`](super::NONE).
    pub creator: u32,
    /// Root of its tree.
    pub root_ref: u32,
    /// Calls of this thread that were not recorded for other reasons than those in [`Unseen`](super::Unseen): made
    /// by handlers of synchronous signals that interrupted the recording.
    pub untimed_calls: u64,
    /// Name as of `prctl(PR_GET_NAME)`, NUL-padded.
    pub name: [u8; 16],
    /// Samples of which it was measured what they cost: not the latest ones.
    pub samples: u64,
    /// What they cost in all, as [`Header::cost_sampled`](super::Header::cost_sampled), but in ticks.
    pub samples_ticks: u64,
    /// 1 if the thread was gone, and its countdowns with it, when the process's end was seen: its latest calls are as
    /// little known as where that was not.
    pub untold: u16,
    /// 1 if `cpu_ns` is as of its end, or that of the process.
    pub cpu_is_final: u16,
    /// How often it asked how long it had run: once at its start, then at the end of long calls. 0: it never did, and its
    /// [`OffCpuRow`](super::OffCpuRow)s are missing.
    pub asks: u32,
    /// What calls took whose context was new, or that met anything else out of the ordinary, before they began, in ticks.
    pub slow_ticks: u64,
    /// Its time on the CPU since its start, ns: as of its end, or that of the process if it is the one that ended it; until then as of
    /// when it last asked. 0: not known.
    pub cpu_ns: u64,
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
    /// Padding to a multiple of [`UNIT`](super::UNIT).
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
