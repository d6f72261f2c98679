//! Assembles the call path: passes it the addresses and offsets of Rust definitions, and the functions that it calls.

mod exported;
mod slow_path;

use core::arch::global_asm;
use core::mem::offset_of;

use chase_format::histogram::{LINEAR_LIMIT, MAX_EXPONENT, PAGE_BUCKETS, SUB_BITS, bucket_start};
use chase_format::layout::{
    ARGUMENT_BUCKETS, ArgumentHead, ArgumentRow, Node, OWN_CONTEXT_REF, UNIT,
};

use chase_logic::hash;

use crate::abi::{self, Countdown, Frame};
use crate::thread::{self, Thread};
use crate::{counts, special, thread_life};

global_asm!(
    include_str!("arch/x86_64/macros.S"),
    include_str!("arch/x86_64/words.S"),
    include_str!("arch/x86_64/call.S"),
    include_str!("arch/x86_64/arguments.S"),
    include_str!("arch/x86_64/framed.S"),
    include_str!("arch/x86_64/clock.S"),
    include_str!("arch/x86_64/special.S"),
    include_str!("arch/x86_64/pads.S"),
    distance = sym abi::PAD_DISTANCE,
    leave_set_aside = sym slow_path::leave_set_aside,
    FRAMES = const abi::FRAMES,
    PAD_CALL = const abi::PAD_CALL,
    TARGET = const offset_of!(Frame, target),
    EXIT = const offset_of!(Frame, exit),
    no_thread = sym thread::NO_THREAD,
    no_counts = sym counts::NO_COUNTS,
    clock_limit = sym abi::CLOCK_LIMIT,
    words_at = sym abi::WORDS_AT,
    short_buckets = sym abi::SHORT_BUCKETS,
    short_limit = sym abi::SHORT_LIMIT,
    SECOND_PAGE = const bucket_start(PAGE_BUCKETS),
    THIRD_PAGE = const bucket_start(2 * PAGE_BUCKETS),
    frozen_ticks = sym abi::FROZEN_TICKS,
    long = sym abi::LONG,
    targets = sym abi::TARGETS,
    base = sym abi::BASE,
    enter_slow = sym slow_path::enter_slow,
    enter_counted_down = sym slow_path::enter_counted_down,
    leave_slow = sym slow_path::leave_slow,
    leave_moved = sym slow_path::leave_moved,
    leave_framed = sym slow_path::leave_framed,
    leave_kept = sym slow_path::leave_kept,
    arguments = sym abi::ARGUMENTS,
    special = sym special::enter,
    thread_begin = sym thread_life::begin,
    clone_returned = sym special::clone_returned,
    SPECIAL_STUBS = const abi::SPECIAL_STUBS,
    FRAME = const abi::FRAME,
    SEGMENT_MASK = const abi::SEGMENT - 1,
    AT_ZERO = const abi::AT_ZERO,
    WRAPPED = const abi::WRAPPED,
    FRAMED = const abi::FRAMED_KEY,
    WORDS = const abi::WORDS,
    WORDS_ALIGN = const abi::WORDS_ALIGN,
    NEAR = const abi::NEAR,
    NEAR_COUNTDOWNS = const abi::NEAR_COUNTDOWNS,
    THREAD = const abi::THREAD,
    PLACE = const offset_of!(Countdown, place),
    COUNTDOWN = const size_of::<Countdown>(),
    WEIGHT = const offset_of!(Frame, weight),
    TOP = const offset_of!(Thread, head.top),
    MASK = const offset_of!(Thread, tree.shown.mask),
    TABLE = const offset_of!(Thread, tree.shown.table),
    RET = const offset_of!(Frame, return_address),
    SP = const offset_of!(Frame, sp),
    START = const offset_of!(Frame, start_ticks),
    NODE = const offset_of!(Frame, node),
    CONTEXT = const abi::CONTEXT,
    OWN_CONTEXT = const OWN_CONTEXT_REF as usize * UNIT,
    CALLS = const offset_of!(Node, calls),
    TOTAL = const offset_of!(Node, total_ticks),
    MAX = const offset_of!(Node, max_ticks),
    LAST_START = const offset_of!(Node, last_start_ticks),
    PAGES = const offset_of!(Node, page_refs),
    WITH_ARGUMENT = const hash::WITH_ARGUMENT.trailing_zeros(),
    ROW_NODE = const offset_of!(ArgumentHead, node_ref),
    ROW_UNTIL = const offset_of!(ArgumentHead, until_kept),
    ROW_CALLS = const offset_of!(ArgumentHead, calls),
    ROW_WEIGHT = const offset_of!(ArgumentHead, weight),
    ROW_SUM = const offset_of!(ArgumentHead, sum),
    ROW_MAX = const offset_of!(ArgumentHead, max),
    ROW_NEGATIVE = const offset_of!(ArgumentHead, negative),
    ROW_BUCKETS = const offset_of!(ArgumentRow, buckets),
    LAST_ARGUMENT = const ARGUMENT_BUCKETS - 1,
    HASH = const hash::HASH,
    FRAMED_HASH = const hash::FRAMED_HASH,
    LINEAR_LIMIT = const LINEAR_LIMIT,
    MAX_EXPONENT = const MAX_EXPONENT,
    SUB_BITS = const SUB_BITS,
    options(att_syntax)
);
global_asm!(
    include_str!("arch/x86_64/stubs.S"),
    targets = sym abi::TARGETS,
    WORDS = const abi::WORDS,
    NEAR = const abi::NEAR,
    NEAR_COUNTDOWNS = const abi::NEAR_COUNTDOWNS,
    COUNTDOWN = const size_of::<Countdown>(),
    STUB = const abi::STUB,
    END = const abi::END,
    ENDS = const abi::ENDS,
    ENDS_BLOCK = const abi::ENDS_BLOCK,
    SPECIAL_STUB = const abi::SPECIAL_STUB,
    STUBS = const abi::STUBS,
    SPECIAL_STUBS = const abi::SPECIAL_STUBS,
    options(att_syntax)
);
