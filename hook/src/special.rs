//! Functions that are not ordinary: which they are, and what is done about them.

mod tasks;

use core::mem::offset_of;

use chase_format::layout::{END_ABORT, END_EXEC, END_IMMEDIATE, Node, SlotClass};

pub(crate) use self::tasks::clone_returned;
use crate::arch::{SPECIAL_STUBS, chase_thread_start, jump_target_sp, set_context, target};
use crate::names::Names;
use crate::readable::Reader;
use crate::recording::Lost;
use crate::thread::Thread;
use crate::{clock, loading, process, recording, sampling, thread};

/// What kind of function it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing special.
    Ordinary,
    /// Returns twice or captures the context that it is called in: a frame of ours would be part of
    /// it. Counted, and entered with the stack as it is.
    Capture,
    /// Never returns to its caller. Counted only.
    Leave,
    /// `longjmp` and its kin, with a `jmp_buf` of the C library. The frames in between are dropped.
    Jump,
    /// `exec*`: the image ends, if it succeeds.
    Exec,
    /// Ends the process without handlers; its argument is the status.
    Exit,
    /// `abort`.
    Abort,
    /// `pthread_create(thread, attributes, routine, argument)`: the last two are wrapped.
    Thread,
    /// `thrd_create(thread, routine, argument)`: the same.
    ThreadC11,
    /// `clone(routine, stack, flags, ...)`: the child has a stack of its own, and perhaps memory.
    Clone,
    /// `dlopen(name, mode)`: the search may depend on the object that the call returns to.
    Open,
    /// `dlmopen(namespace, name, mode)`: the same.
    OpenIn,
    /// `dlclose`: objects may go.
    Close,
    /// `dlsym`, `dlvsym`: two handles mean something that depends on the caller.
    Find,
    /// Forks without telling the C library's handlers.
    Fork,
    /// `syscall(number, ...)`: may fork, or end the thread.
    System,
    /// `prctl(option, ...)`: may forbid system calls or the time stamp counter.
    Control,
    /// Has a calling convention of its own, is part of a runtime that looks at its callers, or
    /// runs the application itself. Left alone.
    Alone,
}

impl Kind {
    /// How the calls of such a slot appear in the recording.
    pub(crate) fn class(self) -> SlotClass {
        match self {
            Self::Ordinary
            | Self::Control
            | Self::Thread
            | Self::ThreadC11
            | Self::Close
            | Self::System
            | Self::Alone => SlotClass::Timed,
            Self::Open | Self::OpenIn | Self::Find => SlotClass::Sometimes,
            Self::Capture
            | Self::Leave
            | Self::Jump
            | Self::Exec
            | Self::Exit
            | Self::Abort
            | Self::Fork
            | Self::Clone => SlotClass::Counted,
        }
    }
}

/// The table. Each group says why.
static TABLE: Names<Kind, 256> = Names::new(&[
    // Return twice: the second time, their frame would be gone.
    (b"setjmp", Kind::Capture),
    (b"_setjmp", Kind::Capture),
    (b"sigsetjmp", Kind::Capture),
    (b"__sigsetjmp", Kind::Capture),
    (b"vfork", Kind::Capture),
    (b"__vfork", Kind::Capture),
    (b"_Fork", Kind::Fork),
    // The child returns somewhere else.
    (b"clone", Kind::Clone),
    (b"__clone", Kind::Clone),
    // Capture or switch the context that they are called in.
    (b"getcontext", Kind::Capture),
    (b"setcontext", Kind::Capture),
    (b"swapcontext", Kind::Capture),
    (b"jump_fcontext", Kind::Capture),
    (b"ontop_fcontext", Kind::Capture),
    (b"co_switch", Kind::Capture),
    (b"coro_transfer", Kind::Capture),
    (b"unw_getcontext", Kind::Capture),
    (b"_Ux86_64_getcontext", Kind::Capture),
    (b"_ULx86_64_*", Kind::Alone),
    (b"backtrace", Kind::Capture),
    (b"_Unwind_Backtrace", Kind::Capture),
    // Unwind the stack from where they are called; they come back only when nobody catches.
    (b"_Unwind_RaiseException", Kind::Capture),
    (b"_Unwind_Resume", Kind::Leave),
    (b"_Unwind_Resume_or_Rethrow", Kind::Capture),
    (b"_Unwind_ForcedUnwind", Kind::Capture),
    (b"__cxa_throw", Kind::Leave),
    (b"__cxa_rethrow", Kind::Leave),
    (b"_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE", Kind::Leave),
    (b"__pthread_unwind_next", Kind::Leave),
    (b"pthread_exit", Kind::Leave),
    (b"thrd_exit", Kind::Leave),
    // Jump.
    (b"longjmp", Kind::Jump),
    (b"_longjmp", Kind::Jump),
    (b"siglongjmp", Kind::Jump),
    (b"__longjmp_chk", Kind::Jump),
    // End the process or the image.
    (b"exit", Kind::Leave),
    (b"_exit", Kind::Exit),
    (b"_Exit", Kind::Exit),
    (b"quick_exit", Kind::Exit),
    (b"abort", Kind::Abort),
    (b"__stack_chk_fail", Kind::Leave),
    (b"__assert_fail", Kind::Leave),
    (b"__fortify_fail", Kind::Leave),
    (b"_ZSt9terminatev", Kind::Leave),
    (b"execve", Kind::Exec),
    (b"execv", Kind::Exec),
    (b"execvp", Kind::Exec),
    (b"execvpe", Kind::Exec),
    (b"execl", Kind::Exec),
    (b"execlp", Kind::Exec),
    (b"execle", Kind::Exec),
    (b"fexecve", Kind::Exec),
    (b"execveat", Kind::Exec),
    // Start threads.
    (b"pthread_create", Kind::Thread),
    (b"thrd_create", Kind::ThreadC11),
    // Look at their return address, or change what is loaded.
    (b"dlopen", Kind::Open),
    (b"dlmopen", Kind::OpenIn),
    (b"dlclose", Kind::Close),
    (b"dlsym", Kind::Find),
    (b"dlvsym", Kind::Find),
    (b"syscall", Kind::System),
    (b"prctl", Kind::Control),
    // Calling conventions of their own.
    (b"__svml_*", Kind::Alone),
    (b"__tls_get_addr", Kind::Alone),
    (b"___tls_get_addr", Kind::Alone),
    (b"__fentry__", Kind::Alone),
    (b"mcount", Kind::Alone),
    (b"_mcount", Kind::Alone),
    (b"__morestack*", Kind::Alone),
    (b"_ZGV*", Kind::Alone),
    // Run the application itself: its own code would be in a library call for ever.
    (b"__libc_start_main", Kind::Alone),
    // Look at their callers by design.
    (b"__asan_*", Kind::Alone),
    (b"__tsan_*", Kind::Alone),
    (b"__msan_*", Kind::Alone),
    (b"__ubsan_*", Kind::Alone),
    (b"__sanitizer_*", Kind::Alone),
    (b"__gcov_*", Kind::Alone),
    (b"__cyg_profile_*", Kind::Alone),
    // Hooks of the start files, called once, mostly absent.
    (b"__gmon_start__", Kind::Alone),
    (b"_ITM_*", Kind::Alone),
    (b"__cxa_finalize", Kind::Alone),
]);

/// The kind of the function `name`.
pub(crate) fn kind_of(name: &[u8]) -> Kind {
    TABLE.get(name).unwrap_or(Kind::Ordinary)
}

/// The registers that hold arguments, as the assembly saved them.
#[repr(C)]
pub(crate) struct Arguments {
    /// In: number of the special stub. Out: the slot, or the function to jump to.
    r11: usize,
    r10: usize,
    r9: usize,
    r8: usize,
    rdi: usize,
    rsi: usize,
    rcx: usize,
    rdx: usize,
    rax: usize,
    return_address: usize,
}

/// What the assembly does next.
const ENTER: u32 = 0;
const JUMP: u32 = 1;

/// A function that is not ordinary is being called.
///
/// # Safety
/// Called by the special stubs with the registers that they saved.
pub(crate) unsafe extern "C" fn enter(arguments: *mut Arguments) -> u32 {
    // SAFETY: the assembly passes its own stack.
    let arguments = unsafe { &mut *arguments };
    if let Some(function) = arguments.r11.checked_sub(SPECIAL_STUBS) {
        tasks::interposed(function, arguments);
        return JUMP;
    }
    let (slot, kind) = loading::special_slot(arguments.r11);
    let target = target(slot as usize);
    let sp = &raw const arguments.return_address as usize;
    let timed = match thread::current_or_adopt() {
        Some(thread) if thread.is_busy() => {
            thread.count_untimed();
            kind.class() == SlotClass::Timed
        }
        Some(thread) => {
            loading::catch_up(thread, sp);
            act(thread, kind, arguments, sp, slot)
        }
        None => {
            confine_if_asked(kind, arguments);
            recording::unseen(Lost::CallWithoutThread);
            kind.class() == SlotClass::Timed
        }
    };
    arguments.r11 = if timed { slot as usize } else { target };
    if timed { ENTER } else { JUMP }
}

/// Does what the kind asks for, and says whether the call gets a frame.
fn act(thread: &Thread, kind: Kind, arguments: &mut Arguments, sp: usize, slot: u32) -> bool {
    if matches!(kind, Kind::Capture | Kind::Leave | Kind::Jump) {
        thread.last_leaving_ticks.set(clock::now());
    }
    let timed = match kind {
        Kind::Ordinary | Kind::Alone => true,
        Kind::Capture | Kind::Leave => false,
        Kind::Jump => {
            count(thread, sp, slot);
            thread.jump(jump_target_sp(arguments.rdi));
            return false;
        }
        Kind::Exec => {
            process::end(END_EXEC, 0);
            false
        }
        Kind::Exit => {
            process::end(END_IMMEDIATE, arguments.rdi as i32);
            false
        }
        Kind::Abort => {
            process::end(END_ABORT, 0);
            false
        }
        Kind::Thread => {
            let plan = thread::Plan {
                routine: arguments.rdx,
                argument: arguments.rcx,
                creation_site: arguments.return_address,
                creator: thread,
                sp,
                attributes: arguments.rsi,
            };
            wrap_start(thread, &plan, &mut arguments.rdx, &mut arguments.rcx);
            true
        }
        Kind::ThreadC11 => {
            let plan = thread::Plan {
                routine: arguments.rsi,
                argument: arguments.rdx,
                creation_site: arguments.return_address,
                creator: thread,
                sp,
                attributes: 0,
            };
            wrap_start(thread, &plan, &mut arguments.rsi, &mut arguments.rdx);
            true
        }
        Kind::Clone => {
            tasks::clone(thread, arguments);
            false
        }
        Kind::Open => {
            let timed = !loading::depends_on_caller(arguments.rdi, arguments.return_address);
            loading::expect(thread, sp, arguments.rsi, timed);
            timed
        }
        Kind::OpenIn => {
            let timed = !loading::depends_on_caller(arguments.rsi, arguments.return_address);
            loading::expect(thread, sp, arguments.rdx, timed);
            timed
        }
        Kind::Close => {
            loading::expect(thread, sp, 0, true);
            true
        }
        Kind::Find => {
            const RTLD_DEFAULT: usize = 0;
            const RTLD_NEXT: usize = usize::MAX;
            if loading::is_interposed(arguments.rdi, arguments.rsi, arguments.return_address) {
                arguments.rdi = RTLD_DEFAULT;
            }
            arguments.rdi != RTLD_DEFAULT && arguments.rdi != RTLD_NEXT
        }
        Kind::Fork => {
            tasks::expect_fork(thread);
            false
        }
        Kind::System => {
            confine_if_asked(kind, arguments);
            match arguments.rdi as i64 {
                libc::SYS_fork => tasks::make(thread, 0, 0),
                libc::SYS_clone => tasks::make(thread, arguments.rsi, arguments.r9),
                libc::SYS_clone3 => {
                    // (Who only asks whether the kernel knows the call passes nonsense.)
                    let word = |offset| Reader::new()?.word(arguments.rsi.wrapping_add(offset));
                    let flags = word(offset_of!(libc::clone_args, flags));
                    let thread_pointer = word(offset_of!(libc::clone_args, tls));
                    if let (Some(flags), Some(thread_pointer)) = (flags, thread_pointer) {
                        tasks::make(thread, flags, thread_pointer);
                    }
                }
                libc::SYS_vfork => {}
                libc::SYS_exit_group => process::end(END_IMMEDIATE, arguments.rsi as i32),
                // Nobody else notices this end of a thread, and its countdowns go with it.
                libc::SYS_exit if sampling::has_threads() => {
                    thread.stop_sampling();
                    thread.stamp_end();
                    return true;
                }
                libc::SYS_exit => process::end(END_IMMEDIATE, arguments.rsi as i32),
                _ => return true,
            }
            false
        }
        Kind::Control => {
            confine_if_asked(kind, arguments);
            true
        }
    };
    if !timed {
        let node = count(thread, sp, slot);
        if kind.class() == SlotClass::Timed && !node.is_null() {
            // It does not stay open, as a call that has begun would.
            // SAFETY: the node is this thread's.
            unsafe { (*node).unwound += 1 };
        }
        let leaves = matches!(kind, Kind::Leave | Kind::Exec | Kind::Exit | Kind::Abort);
        // (Whose process this is takes a system call to know.)
        if leaves && !node.is_null() && sampling::companion_listens() && process::is_own() {
            // It has no exit to take that back, but it does not come back either. (A child of
            // `vfork` does, in its parent.)
            set_context(node as usize);
        }
    }
    timed
}

/// Whether the process is about to give up the right to some system calls, and perhaps to the clock. (Who
/// only asks whether the kernel knows filters passes none.)
fn confine_if_asked(kind: Kind, arguments: &Arguments) {
    const PR_SET_TSC: i32 = 26;
    let (option, mode, filter) = match kind {
        // Its operations are the modes, numbered from 0.
        Kind::System if arguments.rdi as i64 == libc::SYS_seccomp => {
            (libc::PR_SET_SECCOMP, (arguments.rsi as u32).wrapping_add(1), arguments.rcx)
        }
        Kind::Control => (arguments.rdi as i32, arguments.rsi as u32, arguments.rdx),
        _ => return,
    };
    let without_clock = match (option, mode) {
        (PR_SET_TSC, _) | (libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) => true,
        (libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER) if filter != 0 => false,
        _ => return,
    };
    // A child of `vfork` gives up nothing of its parent's.
    if process::is_own() {
        // A filter may not know of the system call, since programs read that clock without one.
        recording::confine(without_clock || !clock::is_time_stamp());
    }
}

/// Puts our start of a thread in the place of the application's.
fn wrap_start(thread: &Thread, plan: &thread::Plan<'_>, routine: &mut usize, argument: &mut usize) {
    sampling::expect_threads(thread);
    let start = thread::prepare(plan);
    if !start.is_null() {
        *routine = chase_thread_start as *const () as usize;
        *argument = start as usize;
    }
}

/// Counts a call that gets no frame, and gives its node, or null.
fn count(thread: &Thread, sp: usize, slot: u32) -> *mut Node {
    let context = thread.enclosing(sp);
    let node = thread.tree.find_or_add(context, slot);
    if node.is_null() {
        recording::unseen(Lost::CallWithoutSpace);
    } else {
        // SAFETY: the node is this thread's.
        unsafe { (*node).calls += 1 };
    }
    node
}
