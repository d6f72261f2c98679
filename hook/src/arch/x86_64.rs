//! x86-64, System V ABI.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

use chase_format::layout::{OWN_CONTEXT_REF, UNIT};

use crate::abi::{BASE, CLOCK_LIMIT};

mod words;

pub(crate) use self::words::{
    NearCountdowns, context, context_offset, current_counts, current_thread, find_words, is_late,
    own_thread_pointer, set_context, set_words, thread_offset, words_are_near, words_offset,
};

#[cfg(target_feature = "avx")]
compile_error!(
    "the hook must be built for baseline x86-64: it may not touch the upper halves of vector registers"
);

/// ELF machine number.
pub(crate) const MACHINE: u32 = 62;

global_asm!(include_str!("x86_64/memory.S"), include_str!("x86_64/rest.S"), options(att_syntax));

unsafe extern "C" {
    /// Where the launcher lets threads go on that it has stopped in the middle of a system call.
    pub(crate) static chase_rest_of_buffer: u8;
    pub(crate) static chase_rest_of_file: u8;
    pub(crate) static chase_rest_of_buffers: u8;
    pub(crate) static chase_rest_end: u8;
}

/// A number that only one thread and its signal handlers change. It is changed by a single, unlocked instruction, so
/// a handler runs before or after it.
#[repr(transparent)]
pub(crate) struct OwnCounter<T>(UnsafeCell<T>);

impl<T> OwnCounter<T> {
    /// Returns the counter at `place`.
    ///
    /// # Safety
    /// `place` is valid as long as the result is used, and only the calling thread writes to it.
    pub(crate) unsafe fn at<'a>(place: *mut T) -> &'a Self {
        // SAFETY: the caller vouches for the place.
        unsafe { &*place.cast() }
    }
}

impl OwnCounter<u64> {
    pub(crate) fn add(&self, more: u64) {
        // SAFETY: `at` vouches for the place.
        unsafe {
            asm!("addq {0}, ({1})", in(reg) more, in(reg) self.0.get(), options(att_syntax, nostack))
        };
    }
}

impl OwnCounter<u32> {
    pub(crate) fn add(&self, more: u32) {
        // SAFETY: as above.
        unsafe {
            asm!("addl {0:e}, ({1})", in(reg) more, in(reg) self.0.get(), options(att_syntax, nostack))
        };
    }
}

/// Adds to a word that only the calling thread and its signal handlers write, by a single, unlocked instruction.
/// Returns the previous value.
pub(crate) fn add_to_own(word: &AtomicUsize, more: usize) -> usize {
    let before: usize;
    // SAFETY: the word is ours to write.
    unsafe {
        asm!("xaddq {0}, ({1})", inlateout(reg) more => before, in(reg) word.as_ptr(),
            options(att_syntax, nostack));
    }
    before
}

/// Changes such a word from `from` to `to`; returns false if it was not `from`.
pub(crate) fn move_own(word: &AtomicUsize, from: usize, to: usize) -> bool {
    let before: usize;
    // SAFETY: as above.
    unsafe {
        asm!("cmpxchgq {0}, ({1})", in(reg) to, in(reg) word.as_ptr(),
            inlateout("rax") from => before, options(att_syntax, nostack));
    }
    before == from
}

/// Returns approximately the current stack pointer.
pub(crate) fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe { asm!("movq %rsp, {0}", out(reg) sp, options(att_syntax, nomem, nostack)) };
    sp
}

/// Returns the word at `offset` from the thread pointer.
pub(crate) fn thread_control_word(offset: usize) -> usize {
    let word: usize;
    // SAFETY: the thread control block is mapped and larger than the offsets used here.
    unsafe {
        asm!("movq %fs:({1}), {0}", out(reg) word, in(reg) offset,
            options(att_syntax, nostack, readonly, preserves_flags));
    }
    word
}

/// Makes the call path read the time stamp counter if that can be trusted, and otherwise the kernel's clock.
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

/// Whether the time stamp counter runs at a constant rate in all states of the CPU.
pub(crate) fn time_stamp_is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    const ADVANCED_POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    __cpuid(0x8000_0000).eax >= ADVANCED_POWER_MANAGEMENT
        && __cpuid(ADVANCED_POWER_MANAGEMENT).edx & INVARIANT_TSC != 0
}

/// The size in bytes of the area that [`with_vectors_saved`] needs; 0 if the processor has no such instructions.
pub(crate) fn vector_area_len() -> usize {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    const XSAVE_LEAF: u32 = 0xd;
    const OSXSAVE: u32 = 1 << 27;
    const UNKNOWN: usize = usize::MAX;
    // CPUID traps to a hypervisor, which takes tens of microseconds.
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

/// Runs `f` on another stack, which ends at `top`.
///
/// # Safety
/// `top` is aligned to 16; below it is enough memory that nobody uses.
pub(crate) unsafe fn on_stack<F: FnOnce()>(top: *mut u8, f: F) {
    unsafe extern "C" fn run<F: FnOnce()>(f: *mut Option<F>) {
        // SAFETY: `on_stack` passes its own.
        if let Some(f) = unsafe { (*f).take() } {
            f();
        }
    }
    let mut f = Some(f);
    // SAFETY: the caller vouches for the stack; r12 is kept by what is called.
    unsafe {
        asm!("xchgq %rsp, %r12", "callq *{run}", "movq %r12, %rsp",
            run = in(reg) run::<F> as unsafe extern "C" fn(*mut Option<F>),
            in("rdi") &raw mut f, inout("r12") top => _,
            clobber_abi("C"), options(att_syntax));
    }
}

/// Asks the processor to prefetch what is at an address, which need not be readable.
pub(crate) fn prefetch(address: usize) {
    // SAFETY: it changes nothing, and never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::without_provenance(address)) }
}

/// Makes a system call in chase's own context. Doesn't change `errno`, which is the C library's.
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
