//! What the assembly of the call path and the Rust code agree on: the layout of the memory that both use, and the
//! words of the process that the assembly reads.

use core::cell::Cell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicI16, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

use chase_format::histogram::{PAGE_BUCKETS, bucket_of, bucket_start};
use chase_format::layout::{FRAMED, Node, SAMPLED};
use chase_logic::hash::ENTRY;

// ---- stubs --------------------------------------------------------------------------------------

/// How many slots a process can have.
pub(crate) const STUBS: usize = 1 << 17;
/// How many of them can be functions that are not ordinary.
pub(crate) const SPECIAL_STUBS: usize = 1 << 13;
/// Bytes of a stub, and of one of a function that is not ordinary.
pub(crate) const STUB: usize = 32;
pub(crate) const SPECIAL_STUB: usize = 16;
/// Bytes of a stub's end, how many share a jump, and bytes of those and the jump.
pub(crate) const END: usize = 8;
pub(crate) const ENDS: usize = 16;
pub(crate) const ENDS_BLOCK: usize = END * ENDS + 8;

/// The real functions, by slot.
pub(crate) static TARGETS: [AtomicUsize; STUBS] = [const { AtomicUsize::new(0) }; STUBS];

/// By slot, what is noted of its calls; 0: nothing. From the lowest bits on: where the argument is below the return address,
/// when the call path has saved the registers (8 bits, signed); likewise what it is multiplied by, or 0;
/// [`ARGUMENT_IS_INT`]; what it means.
pub(crate) static ARGUMENTS: [AtomicU32; STUBS] = [const { AtomicU32::new(0) }; STUBS];
/// The argument has 32 bits. The call path tests the lowest bit of the third byte.
pub(crate) const ARGUMENT_IS_INT: u32 = 1 << 16;

// ---- frames -------------------------------------------------------------------------------------

/// Frames of a process, of all threads together. (Each takes a line of the library's text, too, touched where it is used.)
pub(crate) const FRAMES: usize = 1 << 17;
/// Bytes of a frame.
pub(crate) const FRAME: usize = 64;
/// Bytes, and alignment, of a segment: 63 frames. (Calls that go to and fro between two take the slow path; with larger
/// ones there would be fewer threads that get one.)
pub(crate) const SEGMENT: usize = 64 * FRAME;
/// Bytes of a pad's call: a call returns to so many behind the pad.
pub(crate) const PAD_CALL: usize = 6;

/// How far each pad is behind its frame.
pub(crate) static PAD_DISTANCE: AtomicUsize = AtomicUsize::new(0);

/// [`Frame::sp`] of a frame that is free, or claimed and not filled yet.
pub(crate) const FREE: usize = 0;
/// [`Frame::sp`] of a frame that has ended while it was not on top.
pub(crate) const DEAD: usize = 1;
/// [`Frame::sp`] of a frame that has ended on another thread, which has recorded the call as its own.
pub(crate) const MOVED: usize = 2;

/// Why the slow half of the entry is called, where it is told no frame: the slot's countdown is at zero, or it
/// has wrapped round.
pub(crate) const AT_ZERO: usize = 1;
pub(crate) const WRAPPED: usize = 2;

/// A call under way.
#[repr(C, align(64))]
pub(crate) struct Frame {
    pub(crate) return_address: usize,
    /// What the pad calls.
    pub(crate) target: usize,
    /// Where the pad goes when that has returned. (Until `chase_start` has run: the real function.)
    pub(crate) exit: usize,
    /// Where the return address was on the real stack; or a state.
    pub(crate) sp: AtomicUsize,
    pub(crate) start_ticks: u64,
    pub(crate) node: *mut Node,
    /// Where only some calls are timed: how many this one stands for; 0: it is not timed.
    pub(crate) weight: u32,
    /// Of a frame that is set aside: 0 if its place may be used again; otherwise why its call may return (`left.rs`).
    /// Before, of a call that is kept with its argument: where its duration goes, as `tree::Kept` says it.
    pub(crate) may_return: u32,
    /// When the making of a sample began; 0: not known.
    pub(crate) began_ticks: u64,
}

/// What is in the place of a segment's first frame. `sp` and `node` are those of the frame below,
/// since the call path looks there for the caller.
#[repr(C, align(64))]
pub(crate) struct Segment {
    /// The thread that uses it, or null.
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
    // The CFI knows this.
    assert!(offset_of!(Frame, return_address) == 0);
};

/// The segment that a frame is in.
pub(crate) fn segment_of(frame: *const Frame) -> *mut Segment {
    (frame as usize & !(SEGMENT - 1)) as *mut Segment
}

// ---- threads ------------------------------------------------------------------------------------

/// What a `Thread` begins with. All-zero in a fork's child.
#[repr(C)]
pub(crate) struct ThreadHead {
    /// Where the next frame goes. The call path claims and releases by single instructions.
    pub(crate) top: AtomicUsize,
    /// In how many sections the thread is that no signal handler may interrupt.
    pub(crate) busy: Cell<u32>,
    /// It stands for the thread of whoever has none.
    pub(crate) is_nobody: bool,
}

/// Where the words of a thread are, from the thread pointer, if the executable has little of its own there.
pub(crate) const WORDS: isize = -1536;
pub(crate) const WORDS_ALIGN: usize = 512;
/// Where the thread and its context are, behind the word that names its countdowns.
pub(crate) const THREAD: usize = 8;
pub(crate) const CONTEXT: usize = 16;
/// And where the countdowns of the first slots are: how many have them there, and who uses them.
pub(crate) const NEAR: usize = 512;
pub(crate) const NEAR_OWNER: usize = 24;
pub(crate) const NEAR_COUNTDOWNS: usize = 32;

/// Whether the library came into a process that ran already: then there was room for the words of threads, and for no
/// countdowns beside them.
pub(crate) static IS_LATE: AtomicBool = AtomicBool::new(false);

/// What the call path needs to know of a slot in a thread.
#[repr(C)]
pub(crate) struct Countdown {
    /// The stubs count it down, and know where it is.
    pub(crate) left: AtomicI16,
    /// Place among the slots that were looked at plus 1, or 0; and [`HAS_FRAMES`].
    pub(crate) place: AtomicU16,
}

/// Bit in [`Countdown::place`]: calls that are not timed get frames. The call path tests it as the sign.
pub(crate) const HAS_FRAMES: u16 = 1 << 15;

impl Countdown {
    pub(crate) const fn new() -> Self {
        Self { left: AtomicI16::new(0), place: AtomicU16::new(0) }
    }
}

// ---- the tree's table ---------------------------------------------------------------------------

/// An entry of the table that finds a node by (caller, slot). The key has the lower half of the caller's node's
/// address, and the slot; it is zero for a free entry. Callers of one scope share the nodes of what they call: those
/// are first in the scope's entries, and in those of other callers once these have called.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) key: u64,
    pub(crate) node: *mut Node,
}

const _: () = assert!(size_of::<Entry>() == ENTRY);

/// What a slot's number has as a key of the tree, where its calls get frames and are not all timed.
pub(crate) const FRAMED_KEY: u32 = SAMPLED | FRAMED;

// ---- the clock and the recording ----------------------------------------------------------------

/// Calls whose frames are at most at this address read the time stamp counter: all or none.
pub(crate) static CLOCK_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// What the clock shows once it stands still; 0 as long as it runs.
pub(crate) static FROZEN_TICKS: AtomicU64 = AtomicU64::new(0);
/// The call path leaves the recording of calls that took so many ticks to the slow half of the exit. Never as long as nobody
/// wants to know more of them.
pub(crate) static LONG: AtomicU64 = AtomicU64::new(u64::MAX);
/// Ticks below which the call path looks the bucket up: [`SHORT`], or 0 where all calls go the slow way.
pub(crate) static SHORT_LIMIT: AtomicU64 = AtomicU64::new(SHORT as u64);
/// Where the recording is mapped.
pub(crate) static BASE: AtomicUsize = AtomicUsize::new(0);

/// Ticks below which buckets can be looked up: those of the first three pages of a histogram.
pub(crate) const SHORT: usize = bucket_start(3 * PAGE_BUCKETS) as usize;
/// By ticks: the bucket in its page.
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
