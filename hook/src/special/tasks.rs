//! New processes and tasks, which the C library does not tell of.

use chase_format::layout::END_IMMEDIATE;

use super::Arguments;
use crate::arch::own_thread_pointer;
use crate::stubs::chase_clone_start;
use crate::thread::{Pending, Thread};
use crate::thread_life::current_or_adopt;
use crate::{loading, process, thread};

/// `clone(routine, stack, flags, argument, ...)` is about to be called.
pub(super) fn clone(thread: &Thread, arguments: &mut Arguments) {
    make(thread, arguments.rdx, arguments.r9);
    let shares_memory = arguments.rdx & libc::CLONE_VM as usize != 0;
    // (The function refuses to do without either.)
    if shares_memory || arguments.rdi == 0 || arguments.rsi == 0 {
        return;
    }
    // When the routine returns, the process ends by a system call. So what calls the routine is ours, and knows it
    // by what is put on the child's stack, as the C library puts there what it has to know.
    const ALIGNMENT: usize = 16;
    let place = (arguments.rsi & !(ALIGNMENT - 1)).wrapping_sub(size_of::<Begun>());
    // SAFETY: the function writes to the same stack, further down.
    unsafe {
        let begun = core::ptr::with_exposed_provenance_mut::<Begun>(place);
        begun.write(Begun { routine: arguments.rdi, argument: arguments.rcx });
    }
    arguments.rdi = chase_clone_start as *const () as usize;
    (arguments.rsi, arguments.rcx) = (place, place);
}

/// What the child of `clone` is to run: the assembly reads it.
#[repr(C)]
struct Begun {
    routine: usize,
    argument: usize,
}

/// The routine of `clone` has returned, in a child with memory of its own.
pub(crate) extern "C" fn clone_returned(status: i32) {
    process::notice_fork();
    process::end(END_IMMEDIATE, status);
}

/// One of the functions that are exported in the place of the C library's is called, through a pointer or by an
/// object that is not hooked.
pub(super) fn interposed(function: usize, arguments: &mut Arguments) {
    let target = loading::real(function);
    if let Some(thread) = current_or_adopt()
        && !thread.is_busy()
    {
        clone(thread, arguments);
    }
    arguments.r11 = target;
}

/// A new process or thread is about to be made with these `CLONE_*` flags. One with memory of its
/// own is a fork; one that shares even this thread's data makes the thread unfit for recording. One
/// that has thread data of its own at `thread_pointer` is not recorded if they are no C library's.
pub(super) fn make(thread: &Thread, flags: usize, thread_pointer: usize) {
    let has = |flag: i32| flags & flag as usize != 0;
    let has_own = has(libc::CLONE_SETTLS) && thread_pointer != own_thread_pointer();
    if has_own {
        thread::expect_foreign(thread, thread_pointer);
    }
    if !has(libc::CLONE_VM) {
        expect_fork(thread);
    } else if !has_own && !has(libc::CLONE_VFORK) {
        thread::leave();
    }
}

/// The thread may fork, in the call that it is about to make.
pub(super) fn expect_fork(thread: &Thread) {
    thread.defer(Pending { fork: true, ..thread.pending.get() });
    thread::keep();
}
