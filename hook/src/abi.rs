//! Definitions that the assembly of the call path and the Rust code share: the layout of memory that both access, and
//! the process-wide variables that the assembly reads.

use core::cell::Cell;
use core::mem::offset_of;
use core::sync::atomic::{
    AtomicBool, AtomicI16, AtomicIsize, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
};

use chase_format::histogram::{PAGE_BUCKETS, bucket_of, bucket_start};
use chase_format::layout::{FRAMED, Node, SAMPLED};
use chase_logic::hash::ENTRY;

// ---- stubs --------------------------------------------------------------------------------------

/// The maximum number of slots in a process.
pub(crate) const STUBS: usize = 1 << 17;
/// The maximum number of slots of special functions.
pub(crate) const SPECIAL_STUBS: usize = 1 << 13;
/// Size in bytes of a stub, and of a special function's stub.
pub(crate) const STUB: usize = 32;
pub(crate) const SPECIAL_STUB: usize = 16;
/// Size in bytes of a stub's end; how many ends share one jump; size in bytes of these ends and their jump.
pub(crate) const END: usize = 8;
pub(crate) const ENDS: usize = 16;
pub(crate) const ENDS_BLOCK: usize = END * ENDS + 8;

// What is large is together (`.bss.large`), so that the small variables share few pages: each page that a process touches at its
// start costs it a fault.

/// The address of the real function, by slot.
#[unsafe(link_section = ".bss.large")]
pub(crate) static TARGETS: [AtomicUsize; STUBS] = [const { AtomicUsize::new(0) }; STUBS];

/// By slot, which argument is recorded of its calls; 0: none. From the lowest bits: the offset of the argument's
/// saved register from the place of the return address (8 bits, signed); the same of the argument that it is
/// multiplied by, or 0; [`ARGUMENT_IS_INT`]; [`ARGUMENT_IS_TEXT`]; the meaning.
#[unsafe(link_section = ".bss.large")]
pub(crate) static ARGUMENTS: [AtomicU32; STUBS] = [const { AtomicU32::new(0) }; STUBS];
/// The argument has 32 bits. The call path tests this as the lowest bit of the third byte.
pub(crate) const ARGUMENT_IS_INT: u32 = 1 << 16;
/// The argument is the address of a text: the frame keeps it until the call has returned. The next bit.
pub(crate) const ARGUMENT_IS_TEXT: u32 = 1 << 17;

// ---- frames -------------------------------------------------------------------------------------

/// The number of frames in a process, of all threads together. (Each also takes a line of the library's text, for its
/// pad; unused ones are never touched.)
pub(crate) const FRAMES: usize = 1 << 17;
/// Size in bytes of a frame.
pub(crate) const FRAME: usize = chase_format::attachment::PAD_LEN as usize;
/// Size and alignment in bytes of a segment: a header and 63 frames. (Larger segments would be crossed less often, but
/// fewer threads would get one.)
pub(crate) const SEGMENT: usize = 64 * FRAME;
/// Size in bytes of a pad's call instruction: the return address that it pushes is so many bytes behind the pad.
pub(crate) const PAD_CALL: usize = 6;

/// The distance from each frame to its pad, the same for all.
pub(crate) static PAD_DISTANCE: AtomicUsize = AtomicUsize::new(0);

/// [`Frame::sp`] of a frame that is free, or claimed and not yet filled.
pub(crate) const FREE: usize = 0;
/// [`Frame::sp`] of a frame whose call ended while it was not the top frame.
pub(crate) const DEAD: usize = 1;
/// [`Frame::sp`] of a frame whose call ended on another thread, which has recorded it.
pub(crate) const MOVED: usize = 2;

/// Why the slow half of the entry is called without a claimed frame: the slot's countdown has reached zero, or has
/// wrapped around.
pub(crate) const AT_ZERO: usize = 1;
pub(crate) const WRAPPED: usize = 2;

/// A call under way.
#[repr(C, align(64))]
pub(crate) struct Frame {
    pub(crate) return_address: usize,
    /// What the pad calls.
    pub(crate) target: usize,
    /// Where the pad jumps once the function has returned. (Until `chase_start` has run: the real function.)
    pub(crate) exit: usize,
    /// The address that the return address had on the real stack; or a state: [`FREE`], [`DEAD`], [`MOVED`].
    pub(crate) sp: AtomicUsize,
    pub(crate) start_ticks: u64,
    pub(crate) node: *mut Node,
    /// Where only some calls are timed: how many calls this one stands for; 0 if it is not timed.
    pub(crate) weight: u32,
    /// In a frame that was set aside: 0 if it may be reused; otherwise the reason why its call may still return
    /// (`segments.rs`). In a live frame whose call is kept with its argument: where its duration goes, encoded as in
    /// `tree::Kept`.
    pub(crate) may_return: u32,
    /// When taking the sample began; 0 if unknown. In a frame of a call that is no sample, of a function whose text is
    /// recorded: the address of the text.
    pub(crate) began_ticks: u64,
}

/// A segment's header, in the place of its first frame. `sp` and `node` have the same offsets as in a frame, and are
/// copies of those of the frame below, because the call path reads the caller there.
#[repr(C, align(64))]
pub(crate) struct Segment {
    /// The thread that uses the segment, or null.
    pub(crate) owner: *mut ThreadHead,
    pub(crate) previous: *mut Segment,
    pub(crate) next: *mut Segment,
    pub(crate) sp: AtomicUsize,
    unused: u64,
    pub(crate) node: *mut Node,
}

const _: () = {
    assert!(size_of::<Frame>() == FRAME && size_of::<Segment>() == FRAME);
    assert!(offset_of!(Frame, sp) == offset_of!(Segment, sp));
    assert!(offset_of!(Frame, node) == offset_of!(Segment, node));
    // The CFI relies on this.
    assert!(offset_of!(Frame, return_address) == 0);
};

/// Returns the segment that contains the frame.
pub(crate) fn segment_of(frame: *const Frame) -> *mut Segment {
    (frame as usize & !(SEGMENT - 1)) as *mut Segment
}

// ---- threads ------------------------------------------------------------------------------------

/// The beginning of a `Thread`. All zero in the child of a fork.
#[repr(C)]
pub(crate) struct ThreadHead {
    /// The next frame to claim. The call path claims and releases frames by single instructions.
    pub(crate) top: AtomicUsize,
    /// How many nested sections the thread is in that no signal handler may interrupt.
    pub(crate) busy: Cell<u32>,
    /// This is the placeholder for threads that have no `Thread`.
    pub(crate) is_nobody: bool,
}

/// Offset of a thread's words from the thread pointer; 0 if it was not determined yet, or if there are none.
pub(crate) static WORDS_AT: AtomicIsize = AtomicIsize::new(0);
/// That offset where the executable has little thread-local storage of its own.
pub(crate) const WORDS: isize = -1536;
pub(crate) const WORDS_ALIGN: usize = 512;
/// Offsets within a thread's words of its thread and of its context. (The first word points to its countdowns.)
pub(crate) const THREAD: usize = 8;
pub(crate) const CONTEXT: usize = 16;
/// How many slots have their countdowns beside the words; offsets of their owner and of these countdowns.
pub(crate) const NEAR: usize = 512;
pub(crate) const NEAR_OWNER: usize = 24;
pub(crate) const NEAR_COUNTDOWNS: usize = 32;

/// Whether the library was loaded into a running process. There is room for the words of threads then, but for no
/// countdowns beside them.
pub(crate) static IS_LATE: AtomicBool = AtomicBool::new(false);

/// What the call path needs to know of a slot in a thread.
#[repr(C)]
pub(crate) struct Countdown {
    /// The number of calls until the next timed one. The stubs decrement it, by a fixed offset.
    pub(crate) remaining: AtomicI16,
    /// One-based index among the slots that sampling looks at, or 0; and the bit [`HAS_FRAMES`].
    pub(crate) place: AtomicU16,
}

/// Bit in [`Countdown::place`]: calls get frames even if they are not timed. The call path tests it as the sign.
pub(crate) const HAS_FRAMES: u16 = 1 << 15;

impl Countdown {
    pub(crate) const fn new() -> Self {
        Self { remaining: AtomicI16::new(0), place: AtomicU16::new(0) }
    }
}

// ---- the tree's table ---------------------------------------------------------------------------

/// An entry of the hash table that finds a node by (caller, slot). The key is the lower half of the address of the
/// caller's node, and the slot; 0 marks a free entry. Callers with the same scope share the nodes of what they call:
/// such a node is entered under the scope first, and under each further caller once that has called.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) key: u64,
    pub(crate) node: *mut Node,
}

const _: () = assert!(size_of::<Entry>() == ENTRY);

/// Bits that a slot's number has in a key of the tree if its calls get frames and are not all timed.
pub(crate) const FRAMED_KEY: u32 = SAMPLED | FRAMED;

// ---- the clock and the recording ----------------------------------------------------------------

/// Frames at or below this address read the time stamp counter: either all frames, or none.
pub(crate) static CLOCK_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The time at which the clock was stopped; 0 while it runs.
pub(crate) static FROZEN_TICKS: AtomicU64 = AtomicU64::new(0);
/// Calls that took at least this many ticks are recorded by the slow half of the exit. The maximum value if nothing more is
/// recorded of long calls.
pub(crate) static LONG: AtomicU64 = AtomicU64::new(u64::MAX);
/// The call path itself records each call that took fewer ticks than this as an event; 0: none. At most the duration from which
/// threads ask for their time off the CPU, and at most the longest with a histogram bucket of its own.
pub(crate) static EVENTS_BELOW: AtomicU64 = AtomicU64::new(0);
/// Durations below this many ticks have their bucket looked up by the call path: [`SHORT`], or 0 to send all calls to
/// the slow half.
pub(crate) static SHORT_LIMIT: AtomicU64 = AtomicU64::new(SHORT as u64);
/// The address at which the recording is mapped.
pub(crate) static BASE: AtomicUsize = AtomicUsize::new(0);

/// Durations below this many ticks are in the first three pages of a histogram, and are looked up in
/// [`SHORT_BUCKETS`].
pub(crate) const SHORT: usize = bucket_start(3 * PAGE_BUCKETS) as usize;
/// The bucket within its page, by duration in ticks.
pub(crate) static SHORT_BUCKETS: [u8; SHORT] = short_buckets();

const fn short_buckets() -> [u8; SHORT] {
    let mut buckets = [0; SHORT];
    let mut ticks = 0;
    while ticks < SHORT {
        buckets[ticks] = (bucket_of(ticks as u64) % PAGE_BUCKETS) as u8;
        ticks += 1;
    }
    buckets
}
