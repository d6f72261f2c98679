//! x86-64, System V ABI.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::arch::{asm, global_asm};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use chase_format::histogram::{
    LINEAR_LIMIT, MAX_EXPONENT, PAGE_BUCKETS, SUB_BITS, bucket_of, bucket_start,
};
use chase_format::layout::{FRAMED, Node, OWN_CONTEXT_REF, SAMPLED, TIMING_ALL, UNIT};

use crate::frames::{self, FRAME, Frame, SEGMENT};
use crate::sampling;
use crate::special;
use crate::thread::{self, Thread};
use crate::tree::{FRAMED_HASH, HASH};

mod direct;
mod exported;
mod words;

pub(crate) use self::direct::make_direct;
use self::words::{CONTEXT, NEAR, NEAR_COUNTDOWNS, THREAD, WORDS, WORDS_ALIGN, words_are_near};
pub(crate) use self::words::{
    NearCountdowns, context, context_offset, current_counts, current_thread, own_thread_pointer,
    set_context, set_current_thread, set_thread_at, thread_at, thread_offset,
};

#[cfg(target_feature = "avx")]
compile_error!(
    "the hook must be built for baseline x86-64: it may not touch the upper halves of vector registers"
);

/// How many slots a process can have.
pub(crate) const STUBS: usize = 1 << 17;
/// How many of them can be functions that are not ordinary.
pub(crate) const SPECIAL_STUBS: usize = 1 << 13;
/// How many slots have a stub for when all calls are timed: address space can be scarce.
const TIMED_STUBS: usize = 1 << 14;
/// Bytes of a stub, of one where all calls are timed, and of one of a function that is not ordinary.
const STUB: usize = 32;
const TIMED_STUB: usize = 16;
const SPECIAL_STUB: usize = 16;
/// Bytes of a stub's end, how many share a jump, and bytes of those and the jump.
const END: usize = 8;
const ENDS: usize = 16;
const ENDS_BLOCK: usize = END * ENDS + 8;
/// Frames of a process, of all threads together. (Each takes a line of the library's text, too, touched where it is used.)
pub(crate) const FRAMES: usize = 1 << 17;
/// Bytes of a pad's call: a call returns to so many behind the pad.
const PAD_CALL: usize = 6;
/// What a slot's number has as a key of the tree, where its calls get frames and are not all timed.
const FRAMED_KEY: u32 = SAMPLED | FRAMED;
/// ELF machine number.
pub(crate) const MACHINE: u32 = 62;

/// The real functions, by slot.
static TARGETS: [AtomicUsize; STUBS] = [const { AtomicUsize::new(0) }; STUBS];
/// Calls whose frames are at most at this address read the time stamp counter: all or none.
static CLOCK_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// What the clock shows once it stands still; 0 as long as it runs.
pub(crate) static FROZEN_TICKS: AtomicU64 = AtomicU64::new(0);
/// How far each pad is behind its frame.
static PAD_DISTANCE: AtomicUsize = AtomicUsize::new(0);
/// Where the recording is mapped.
pub(crate) static BASE: AtomicUsize = AtomicUsize::new(0);

/// Ticks below which the call path looks the bucket up: those of the first three pages of a histogram.
const SHORT: usize = bucket_start(3 * PAGE_BUCKETS) as usize;
/// By ticks: the bucket in its page.
static SHORT_BUCKETS: [u8; SHORT] = short_buckets();

const fn short_buckets() -> [u8; SHORT] {
    let mut buckets = [0; SHORT];
    let mut ticks = 0;
    while ticks < SHORT {
        buckets[ticks] = (bucket_of(ticks as u64) % PAGE_BUCKETS) as u8;
        ticks += 1;
    }
    buckets
}

global_asm!(
    include_str!("macros.S"),
    include_str!("words.S"),
    include_str!("call.S"),
    include_str!("framed.S"),
    include_str!("clock.S"),
    include_str!("special.S"),
    include_str!("pads.S"),
    distance = sym PAD_DISTANCE,
    leave_left = sym frames::leave_left,
    FRAMES = const FRAMES,
    PAD_CALL = const PAD_CALL,
    TARGET = const offset_of!(Frame, target),
    EXIT = const offset_of!(Frame, exit),
    no_thread = sym thread::NO_THREAD,
    no_counts = sym sampling::NO_COUNTS,
    clock_limit = sym CLOCK_LIMIT,
    short_buckets = sym SHORT_BUCKETS,
    SHORT = const SHORT,
    SECOND_PAGE = const bucket_start(PAGE_BUCKETS),
    THIRD_PAGE = const bucket_start(2 * PAGE_BUCKETS),
    frozen_ticks = sym FROZEN_TICKS,
    ask_limit = sym thread::ASK_LIMIT,
    targets = sym TARGETS,
    base = sym BASE,
    enter_slow = sym frames::enter_slow,
    enter_due = sym frames::enter_due,
    leave_slow = sym frames::leave_slow,
    leave_moved = sym frames::leave_moved,
    leave_framed = sym frames::leave_framed,
    special = sym special::enter,
    thread_begin = sym thread::begin,
    clone_returned = sym special::clone_returned,
    SPECIAL_STUBS = const SPECIAL_STUBS,
    FRAME = const FRAME,
    SEGMENT_MASK = const SEGMENT - 1,
    AT_ZERO = const frames::AT_ZERO,
    WRAPPED = const frames::WRAPPED,
    FRAMED = const FRAMED_KEY,
    WORDS = const WORDS,
    WORDS_ALIGN = const WORDS_ALIGN,
    NEAR = const NEAR,
    NEAR_COUNTDOWNS = const NEAR_COUNTDOWNS,
    THREAD = const THREAD,
    PLACE = const sampling::PLACE,
    COUNTDOWN = const sampling::COUNTDOWN,
    WEIGHT = const offset_of!(Frame, weight),
    TOP = const offset_of!(Thread, top),
    MASK = const offset_of!(Thread, tree.shown.mask),
    TABLE = const offset_of!(Thread, tree.shown.table),
    RET = const offset_of!(Frame, return_address),
    SP = const offset_of!(Frame, sp),
    START = const offset_of!(Frame, start_ticks),
    NODE = const offset_of!(Frame, node),
    CONTEXT = const CONTEXT,
    OWN_CONTEXT = const OWN_CONTEXT_REF as usize * UNIT,
    CALLS = const offset_of!(Node, calls),
    TOTAL = const offset_of!(Node, total_ticks),
    MAX = const offset_of!(Node, max_ticks),
    LAST_START = const offset_of!(Node, last_start_ticks),
    PAGES = const offset_of!(Node, page_refs),
    HASH = const HASH,
    FRAMED_HASH = const FRAMED_HASH,
    LINEAR_LIMIT = const LINEAR_LIMIT,
    MAX_EXPONENT = const MAX_EXPONENT,
    SUB_BITS = const SUB_BITS,
    options(att_syntax)
);
global_asm!(
    include_str!("stubs.S"),
    targets = sym TARGETS,
    WORDS = const WORDS,
    NEAR = const NEAR,
    NEAR_COUNTDOWNS = const NEAR_COUNTDOWNS,
    COUNTDOWN = const sampling::COUNTDOWN,
    STUB = const STUB,
    END = const END,
    ENDS = const ENDS,
    ENDS_BLOCK = const ENDS_BLOCK,
    TIMED_STUB = const TIMED_STUB,
    TIMED_STUBS = const TIMED_STUBS,
    SPECIAL_STUB = const SPECIAL_STUB,
    STUBS = const STUBS,
    SPECIAL_STUBS = const SPECIAL_STUBS,
    options(att_syntax)
);
global_asm!(include_str!("memory.S"), options(att_syntax));

unsafe extern "C" {
    static chase_stubs: u8;
    static chase_distant_stubs: u8;
    static chase_special_stubs: u8;
    static chase_timed_stubs: u8;
    static chase_frames: u8;
    static chase_pads: u8;
    static chase_exit_left: u8;
    /// What is recorded of an empty call that is a sample, in ticks of the time stamp counter.
    pub(crate) safe fn chase_probe() -> u64;
    /// What the child of `clone` runs first, where it has memory of its own; its argument is what it is to run.
    pub(crate) fn chase_clone_start(begun: *mut core::ffi::c_void) -> i32;
    /// In the place of a function that is not to be found.
    pub(crate) fn chase_no_function();
    /// What a new thread runs first; its argument is a `Start` of `thread::start`.
    pub(crate) fn chase_thread_start(start: *mut core::ffi::c_void) -> *mut core::ffi::c_void;
}

/// Address of the stub of `slot`.
pub(crate) fn stub(slot: usize) -> usize {
    if !words_are_near() {
        end_of(&raw const chase_distant_stubs, slot)
    } else if sampling::mode() == TIMING_ALL && slot < TIMED_STUBS {
        // There is nothing to count down.
        &raw const chase_timed_stubs as usize + slot * TIMED_STUB
    } else {
        &raw const chase_stubs as usize + slot * STUB
    }
}

/// Address of the end of the stub of `slot` in one of the tables of those.
fn end_of(table: *const u8, slot: usize) -> usize {
    table as usize + slot / ENDS * ENDS_BLOCK + slot % ENDS * END
}

/// Address of the special stub with this number.
pub(crate) fn special_stub(number: usize) -> usize {
    &raw const chase_special_stubs as usize + number * SPECIAL_STUB
}

/// Whether `address` is one of the stubs.
pub(crate) fn is_stub(address: usize) -> bool {
    let tables = [
        (&raw const chase_stubs, STUBS * STUB),
        (&raw const chase_timed_stubs, TIMED_STUBS * TIMED_STUB),
        (&raw const chase_distant_stubs, STUBS / ENDS * ENDS_BLOCK),
        (&raw const chase_special_stubs, SPECIAL_STUBS * SPECIAL_STUB),
    ];
    tables.iter().any(|&(table, len)| address.wrapping_sub(table as usize) < len)
}

/// Has frames find their pads: before the first call.
pub(crate) fn connect_pads() {
    let distance = (&raw const chase_pads as usize).wrapping_sub(first_frame());
    PAD_DISTANCE.store(distance, Ordering::Relaxed);
}

/// Address of the first of all frames.
pub(crate) fn first_frame() -> usize {
    &raw const chase_frames as usize
}

/// The frame of the call that returns to `address`; `None` if that is none of ours.
pub(crate) fn frame_of(address: usize) -> Option<usize> {
    let offset = address.wrapping_sub(&raw const chase_pads as usize + PAD_CALL);
    (offset < FRAMES * FRAME && offset.is_multiple_of(FRAME)).then(|| first_frame() + offset)
}

/// Whether a call that returns to `address` is made from, or is a tail call of, a function that was called by us.
pub(crate) fn is_exit(address: usize) -> bool {
    frame_of(address).is_some()
}

/// Where a frame leads that is taken for left.
pub(crate) fn exit_of_left() -> usize {
    &raw const chase_exit_left as usize
}

/// Makes `target` the real function of `slot`. False if its stub leads to another one, and can't be changed:
/// it had one before. Called while there is one thread, or by who holds the lock of what is loaded.
pub(crate) fn set_target(slot: usize, target: usize) -> bool {
    if let Some(place) = TARGETS.get(slot) {
        place.store(target, Ordering::Relaxed);
    }
    direct::leads_to(slot, target) || {
        make_direct(slot..slot + 1);
        direct::leads_to(slot, target)
    }
}

/// The real function of `slot`; 0 if it has none.
pub(crate) fn target(slot: usize) -> usize {
    TARGETS.get(slot).map_or(0, |target| target.load(Ordering::Relaxed))
}

/// Adds to a word that the calling thread alone writes, and its signal handlers: one instruction, and
/// not a locked one. Gives what it was.
pub(crate) fn add_to_own(word: &AtomicUsize, more: usize) -> usize {
    let before: usize;
    // SAFETY: the word is ours to write.
    unsafe {
        asm!("xaddq {0}, ({1})", inlateout(reg) more => before, in(reg) word.as_ptr(),
            options(att_syntax, nostack));
    }
    before
}

/// Changes such a word to `to` if it is `from`, and says whether it was.
pub(crate) fn move_own(word: &AtomicUsize, from: usize, to: usize) -> bool {
    let before: usize;
    // SAFETY: as above.
    unsafe {
        asm!("cmpxchgq {0}, ({1})", in(reg) to, in(reg) word.as_ptr(),
            inlateout("rax") from => before, options(att_syntax, nostack));
    }
    before == from
}

/// The stack pointer, about.
pub(crate) fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe { asm!("movq %rsp, {0}", out(reg) sp, options(att_syntax, nomem, nostack)) };
    sp
}

/// The thread pointer's word at `offset`.
pub(crate) fn thread_control_word(offset: usize) -> usize {
    let word: usize;
    // SAFETY: the thread control block is mapped and larger than the offsets used here.
    unsafe {
        asm!("movq %fs:({1}), {0}", out(reg) word, in(reg) offset,
            options(att_syntax, nostack, readonly, preserves_flags));
    }
    word
}

/// Has the call path read the time stamp counter, or another clock.
pub(crate) fn use_time_stamp(is_trusted: bool) {
    CLOCK_LIMIT.store(if is_trusted { usize::MAX } else { 0 }, Ordering::Relaxed);
}

/// Whether the call path reads the time stamp counter.
pub(crate) fn uses_time_stamp() -> bool {
    CLOCK_LIMIT.load(Ordering::Relaxed) > 0
}

/// Reads the time stamp counter.
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: the instruction is part of the baseline; `clock` checks that it is allowed.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Whether the time stamp counter runs at one rate, in every state of the CPU.
pub(crate) fn time_stamp_is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    const ADVANCED_POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    __cpuid(0x8000_0000).eax >= ADVANCED_POWER_MANAGEMENT
        && __cpuid(ADVANCED_POWER_MANAGEMENT).edx & INVARIANT_TSC != 0
}

/// Bytes that [`with_vectors_saved`] needs for its area; 0 if the processor has no such instructions.
pub(crate) fn vector_area_len() -> usize {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    const XSAVE_LEAF: u32 = 0xd;
    const OSXSAVE: u32 = 1 << 27;
    const UNKNOWN: usize = usize::MAX;
    // A hypervisor takes tens of microseconds to answer.
    static KNOWN: AtomicUsize = AtomicUsize::new(UNKNOWN);
    let known = KNOWN.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known;
    }
    let has_xsave = __cpuid(1).ecx & OSXSAVE != 0;
    let len = if has_xsave { __cpuid_count(XSAVE_LEAF, 0).ebx as usize } else { 0 };
    KNOWN.store(len, Ordering::Relaxed);
    len
}

/// Runs `f` with the whole vector state saved before and restored after it, so that `f` may call
/// the C library while the registers hold the application's arguments.
///
/// # Safety
/// `area` is aligned to 64, zero at its first use, writable for [`vector_area_len`] bytes, and in
/// use by nobody else.
pub(crate) unsafe fn with_vectors_saved(area: *mut u8, f: impl FnOnce()) {
    // A CPU without XSAVE has no more vector state than the assembly has saved already.
    if vector_area_len() == 0 {
        return f();
    }
    // SAFETY: the caller vouches for `area`; edx:eax selects all components that are enabled.
    unsafe {
        asm!("xsave64 ({0})", in(reg) area, in("eax") u32::MAX, in("edx") u32::MAX,
            options(att_syntax, nostack));
        f();
        asm!("xrstor64 ({0})", in(reg) area, in("eax") u32::MAX, in("edx") u32::MAX,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
            out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _,
            out("xmm15") _, options(att_syntax, nostack));
    }
}

/// Has the processor fetch what is at an address, whether or not it can be read.
pub(crate) fn prefetch(address: usize) {
    // SAFETY: it changes nothing, and never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::without_provenance(address)) }
}

/// One system call, in the context of chase's own. Never changes `errno`: that is the C library's.
pub(crate) fn system_call(number: usize, arguments: [usize; 6]) -> isize {
    let result: isize;
    let before = context();
    set_context(BASE.load(Ordering::Relaxed) + OWN_CONTEXT_REF as usize * UNIT);
    // SAFETY: the callers in `sys` keep to what each call demands.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    set_context(before);
    result
}

/// The saved stack pointer in a `jmp_buf` of the C library: its 7th word, rotated and masked with
/// the thread's pointer guard.
pub(crate) fn jump_target_sp(buffer: usize) -> usize {
    const SP_WORD: usize = 6;
    const ROTATION: u32 = 17;
    const POINTER_GUARD: usize = 0x30;
    // SAFETY: the application is about to load the same words.
    let mangled = unsafe { (buffer as *const usize).add(SP_WORD).read_unaligned() };
    mangled.rotate_right(ROTATION) ^ thread_control_word(POINTER_GUARD)
}

/// Publishes the base of the mapped recording to the call path.
pub(crate) fn set_base(base: *mut u8) {
    BASE.store(base as usize, Ordering::Relaxed);
}
