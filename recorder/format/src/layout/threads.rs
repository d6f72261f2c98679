//! Threads and their creation.

use bytemuck::{Pod, Zeroable};

/// [`ThreadRecord::state`]: the record is unused.
pub const THREAD_FREE: u32 = 0;
/// [`ThreadRecord::state`]: the thread is running, as far as known.
pub const THREAD_LIVE: u32 = 1;
/// [`ThreadRecord::state`]: the thread's end was seen.
pub const THREAD_ENDED: u32 = 2;

/// [`ThreadRecord::origin`]: the process's first thread.
pub const THREAD_MAIN: u32 = 0;
/// [`ThreadRecord::origin`]: its creation was seen.
pub const THREAD_CREATED: u32 = 1;
/// [`ThreadRecord::origin`]: found when it made its first call, which is taken for its start.
pub const THREAD_FOUND: u32 = 2;
/// [`ThreadRecord::origin`], where `state` is [`THREAD_FREE`]: a thread that was not to be recorded. Of its calls nothing is in
/// the recording.
pub const THREAD_LEFT_OUT: u32 = 3;

/// A thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct ThreadRecord {
    /// `THREAD_FREE`, `THREAD_LIVE` or `THREAD_ENDED`.
    pub state: u32,
    /// Kernel thread id.
    pub tid: u32,
    /// Number of the thread in this recording, from 0.
    pub index: u32,
    /// `THREAD_MAIN`, `THREAD_CREATED`, `THREAD_FOUND` or `THREAD_LEFT_OUT`.
    pub origin: u32,
    /// When it started (or was found).
    pub start_ticks: u64,
    /// When it ended, if `state` says so; or when it was stopped for the process to be detached from.
    pub end_ticks: u64,
    /// Start routine, avma; 0 if unknown.
    pub start_routine_avma: u64,
    /// The argument of the start routine.
    pub start_argument: u64,
    /// Return address of the call that created it, avma; 0 if unknown.
    pub creation_site_avma: u64,
    /// Number of the creating thread, or [`NONE`](super::NONE).
    pub creator: u32,
    /// Root of its tree.
    pub root_ref: u32,
    /// Calls of this thread that were not recorded for other reasons than those in [`Unseen`](super::Unseen): they
    /// were made by handlers of synchronous signals that interrupted the recording.
    pub untimed_calls: u64,
    /// Name as of `prctl(PR_GET_NAME)`, NUL-padded.
    pub name: [u8; 16],
    /// The number of samples whose cost was measured, except for the latest ones.
    pub samples: u64,
    /// The sum of these costs, like [`Header::cost_sampled`](super::Header::cost_sampled), but in ticks.
    pub samples_ticks: u64,
    /// 1 if the thread, and its countdowns with it, was gone when the process's end was seen: its latest calls are
    /// missing, as if no end had been seen.
    pub countdowns_lost: u16,
    /// 1 if `cpu_ns` is from the end of the thread or of the process.
    pub cpu_is_final: u16,
    /// How often it asked the kernel how long it had run: once at its start, then at the end of long calls. 0: never,
    /// and it has no [`OffCpuRow`](super::OffCpuRow)s.
    pub asks: u32,
    /// The time, in ticks, that the slow path took before calls, because the context was new or for other reasons, and after them for new pages
    /// of histograms.
    pub slow_ticks: u64,
    /// Its time on the CPU since its start, in ns: up to its end, or up to the process's end if it caused that; until
    /// then, up to when it last asked. 0 if unknown.
    pub cpu_ns: u64,
}

/// [`OriginRecord::state`]: the record is complete.
pub const ORIGIN_COMPLETE: u32 = 1;
/// How many return addresses of open calls around a thread's creation are kept.
pub const ORIGIN_STACK: usize = 8;
/// How many words that the start routine's argument points to are kept.
pub const ORIGIN_WORDS: usize = 16;
/// How many words that the second of those words points to are kept.
pub const ORIGIN_INNER_WORDS: usize = 12;
/// Numbers below this are kept as they are: they may be offsets in tables of virtual functions.
pub const ORIGIN_SMALL: u64 = 1 << 16;
/// How many bytes of a runtime's name of the thread's function are kept.
pub const ORIGIN_TEXT: usize = 128;

/// What was seen of a thread's creation, uninterpreted. The reader, who knows the symbols, finds out which function
/// of the program the thread runs. Language runtimes have the same start routine for all threads; they differ in the
/// object that the argument points to.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct OriginRecord {
    /// [`ORIGIN_COMPLETE`] if it may be read.
    pub state: u32,
    /// Number of the thread.
    pub thread: u32,
    /// Number of addresses in `stack`.
    pub stack_len: u16,
    /// Number of words in `words`; 0 if the argument is not a readable address.
    pub word_count: u16,
    /// Number of words in `inner_words`; 0 if what it is read from is not a readable address.
    pub inner_word_count: u16,
    /// Number of bytes in `text`.
    pub text_len: u16,
    /// Return addresses (avma), innermost first: of the call that created the thread, then of the open library calls
    /// around it. Calls within an object are not included.
    pub stack: [u64; ORIGIN_STACK],
    /// What the argument pointed to when the thread was created, or, if that was not seen, when it was found: words that are addresses in loaded
    /// objects, or below [`ORIGIN_SMALL`]. Other words are the application's data, and 0 here.
    pub words: [u64; ORIGIN_WORDS],
    /// What the second of these words pointed to, likewise; of a thread that APR starts, the third.
    pub inner_words: [u64; ORIGIN_INNER_WORDS],
    /// UTF-8: what the Python interpreter runs in the thread, as `module.qualname`, then NUL and the name of its
    /// `Thread` object. Empty for other threads. Cut off if it does not fit.
    pub text: [u8; ORIGIN_TEXT],
    /// Padding to a multiple of [`UNIT`](super::UNIT).
    pub reserved: [u64; 10],
}

impl OriginRecord {
    /// An empty record.
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
