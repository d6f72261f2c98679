//! New processes and tasks that the C library doesn't announce.

use chase_format::layout::END_IMMEDIATE;

use super::Arguments;
use crate::arch::own_thread_pointer;
use crate::stubs::chase_clone_start;
use crate::thread::Thread;
use crate::thread_life::current_or_adopt;
use crate::{loading, process, thread};

/// Prepares a call of `clone(routine, stack, flags, argument, ...)`.
pub(super) fn clone(thread: &Thread, arguments: &mut Arguments) {
    make(thread, arguments.rdx, arguments.r9);
    let shares_memory = arguments.rdx & libc::CLONE_VM as usize != 0;
    // (The function refuses a null routine or stack.)
    if shares_memory || arguments.rdi == 0 || arguments.rsi == 0 {
        return;
    }
    // When the routine returns, the process ends by a system call. So our own function calls the routine, whose
    // address and argument are put on the child's stack, where the C library puts its own data.
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

/// What the child of `clone` runs, as read by the assembly.
#[repr(C)]
struct Begun {
    routine: usize,
    argument: usize,
}

/// Handles the return of `clone`'s routine, in a child with memory of its own.
pub(crate) extern "C" fn clone_returned(status: i32) {
    process::notice_fork();
    process::end(END_IMMEDIATE, status);
}

/// Handles a call of a function that is exported in place of the C library's, through a pointer or by an object that
/// is not hooked.
pub(super) fn interposed(function: usize, arguments: &mut Arguments) {
    let target = loading::real(function);
    if let Some(thread) = current_or_adopt()
        && !thread.is_busy()
    {
        clone(thread, arguments);
    }
    arguments.r11 = target;
}

/// Prepares for a new process or thread with these `CLONE_*` flags. One with memory of its own is a fork. One that
/// shares even this thread's data makes the thread unfit for recording. One that has thread data of its own at
/// `thread_pointer` is not recorded if that was not made by the C library.
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

/// Notes that the thread may fork in the call that it is about to make.
pub(super) fn expect_fork(thread: &Thread) {
    thread.defer(thread.pending.get().with_fork(true));
    thread::keep_copy();
}
