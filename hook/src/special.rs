//! Handles calls of special functions.

mod tasks;

use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use chase_format::layout::{END_ABORT, END_EXEC, END_IMMEDIATE, Node, SlotClass};

pub(crate) use self::tasks::clone_returned;
use crate::abi::SPECIAL_STUBS;
use crate::arch::{jump_target_sp, set_context};
use crate::node::{add_calls, add_unwound};
use crate::readable::Reader;
use crate::recording::Lost;
use crate::stubs::{chase_thread_start, target};
use crate::thread::{Thread, are_several, expect_several};
use crate::thread_life::{Plan, current_or_adopt, prepare};
use crate::{clock, loading, process, recording, sampling, slots, sys, traits};
use chase_logic::kinds::Kind;
use chase_logic::memory::Memory;
use chase_logic::rights::{Loss, departs, loss_by};
use chase_logic::traits::LEFT_OUT;

/// The registers that hold arguments, as saved by the assembly.
#[repr(C)]
pub(crate) struct Arguments {
    /// In: the number of the special stub. Out: the slot, or the function to jump to.
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

/// What the assembly does next: enter the function through a frame, or jump to it.
const ENTER: u32 = 0;
const JUMP: u32 = 1;

/// Handles a call of a special function; returns [`ENTER`] or [`JUMP`].
///
/// # Safety
/// Called by the special stubs, with the registers that they saved.
pub(crate) unsafe extern "C" fn enter(arguments: *mut Arguments) -> u32 {
    // SAFETY: the assembly passes its own stack.
    let arguments = unsafe { &mut *arguments };
    if let Some(function) = arguments.r11.checked_sub(SPECIAL_STUBS) {
        tasks::interposed(function, arguments);
        return JUMP;
    }
    let number = arguments.r11;
    let (slot, kind) = slots::special_slot(number);
    let target = target(slot as usize);
    if kind == Kind::Begin {
        begin_recording();
        arguments.r11 = slots::watched_target(number, target);
        return JUMP;
    }
    let sp = &raw const arguments.return_address as usize;
    let is_left_out = traits::has(slot, LEFT_OUT);
    let timed = match current_or_adopt() {
        Some(thread) if thread.is_busy() => {
            if !is_left_out {
                thread.count_untimed(1);
            }
            kind.class() == SlotClass::Timed
        }
        Some(thread) => {
            process::catch_up(thread, sp);
            prepare_call(thread, kind, arguments, sp, slot)
        }
        None => {
            confine_if_asked(kind, arguments);
            lengthen_if_departing(kind, arguments);
            if !is_left_out {
                recording::unseen(Lost::CallWithoutThread);
            }
            kind.class() == SlotClass::Timed
        }
    };
    let timed = timed && !is_left_out;
    arguments.r11 = if timed { slot as usize } else { target };
    if timed { ENTER } else { JUMP }
}

/// What begins the recording: a function without arguments.
static BEGINNING: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Sets what the call of a function of [`Kind::Begin`] does first.
pub(crate) fn set_beginning(begin: fn()) {
    BEGINNING.store(begin as *mut (), Ordering::Relaxed);
}

fn begin_recording() {
    let begin = BEGINNING.load(Ordering::Relaxed);
    if !begin.is_null() {
        // SAFETY: it was stored as such a function.
        let begin: fn() = unsafe { core::mem::transmute(begin) };
        begin();
    }
}

/// Does what the function's kind requires; returns whether the call gets a frame.
fn prepare_call(
    thread: &Thread,
    kind: Kind,
    arguments: &mut Arguments,
    sp: usize,
    slot: u32,
) -> bool {
    if matches!(kind, Kind::Capture | Kind::Leave | Kind::Jump) {
        thread.last_jump_ticks.set(clock::now());
    }
    let timed = match kind {
        Kind::Ordinary | Kind::Alone | Kind::Begin => true,
        Kind::Capture | Kind::Leave => false,
        Kind::Jump => {
            count(thread, sp, slot);
            let (target_sp, now_ticks) = (jump_target_sp(arguments.rdi), clock::now());
            thread.finish_change(target_sp);
            thread.leave_by_jump(target_sp, now_ticks);
            return false;
        }
        Kind::Exec => {
            process::end(END_EXEC, 0);
            false
        }
        Kind::Exit | Kind::Abort => {
            let (how, status) = if kind == Kind::Exit {
                (END_IMMEDIATE, arguments.rdi as i32)
            } else {
                (END_ABORT, 0)
            };
            process::end(how, status);
            false
        }
        Kind::Thread | Kind::ThreadC11 => {
            prepare_thread(thread, kind, arguments, sp);
            true
        }
        Kind::Clone => {
            tasks::clone(thread, arguments);
            false
        }
        Kind::Open | Kind::OpenIn => {
            let Arguments { rdi, rsi, rdx, return_address, .. } = *arguments;
            let (name, mode) = if kind == Kind::Open { (rdi, rsi) } else { (rsi, rdx) };
            if kind == Kind::OpenIn {
                loading::note_namespace(rdi);
            }
            let timed = !loading::depends_on_caller(name, return_address);
            loading::announce_load(thread, sp, mode, timed);
            timed
        }
        Kind::Close => {
            loading::announce_load(thread, sp, 0, true);
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
            lengthen_if_departing(kind, arguments);
            prepare_system_call(thread, arguments)
        }
        Kind::Control => {
            confine_if_asked(kind, arguments);
            true
        }
        Kind::Depart => {
            lengthen_if_departing(kind, arguments);
            true
        }
    };
    if traits::has(slot, LEFT_OUT) {
        return false;
    }
    if !timed {
        count_without_frame(thread, kind, sp, slot);
    }
    timed
}

/// Makes the thread that is about to be created run our code first.
fn prepare_thread(thread: &Thread, kind: Kind, arguments: &mut Arguments, sp: usize) {
    let Arguments { rsi, rdx, rcx, return_address, .. } = arguments;
    let (attributes, routine, argument) =
        if kind == Kind::Thread { (*rsi, rdx, rcx) } else { (0, rsi, rdx) };
    expect_several(thread);
    let start = prepare(&Plan {
        routine: *routine,
        argument: *argument,
        creation_site: thread.site_of(sp, *return_address),
        creator: thread,
        sp,
        attributes,
    });
    if !start.is_null() {
        (*routine, *argument) = (chase_thread_start as *const () as usize, start as usize);
    }
}

/// Handles a call of `syscall`: it may make a task, or end a thread or the process. Returns whether the call is timed.
fn prepare_system_call(thread: &Thread, arguments: &Arguments) -> bool {
    match arguments.rdi as i64 {
        libc::SYS_fork => tasks::make(thread, 0, 0),
        libc::SYS_clone => tasks::make(thread, arguments.rsi, arguments.r9),
        libc::SYS_clone3 => {
            // (A call that only tests whether the kernel supports it passes invalid arguments.)
            let word = |offset| Reader::new()?.word(arguments.rsi.wrapping_add(offset));
            let flags = word(offset_of!(libc::clone_args, flags));
            let thread_pointer = word(offset_of!(libc::clone_args, tls));
            if let (Some(flags), Some(thread_pointer)) = (flags, thread_pointer) {
                tasks::make(thread, flags, thread_pointer);
            }
        }
        libc::SYS_vfork => {}
        libc::SYS_exit_group => process::end(END_IMMEDIATE, arguments.rsi as i32),
        // Nothing else notices this end of a thread, which takes its near countdowns with it.
        libc::SYS_exit if are_several() => {
            thread.stop_sampling();
            thread.ask_between();
            thread.stamp_end();
            return true;
        }
        libc::SYS_exit => process::end(END_IMMEDIATE, arguments.rsi as i32),
        _ => return true,
    }
    false
}

/// Counts a call that runs without a frame, so that it has no exit.
fn count_without_frame(thread: &Thread, kind: Kind, sp: usize, slot: u32) {
    let node = count(thread, sp, slot);
    if node.is_null() {
        return;
    }
    if kind.class() == SlotClass::Timed {
        // It is not an open call, as one that has begun would be.
        // SAFETY: the node is this thread's.
        unsafe { add_unwound(node) };
    }
    let leaves = matches!(kind, Kind::Leave | Kind::Exec | Kind::Exit | Kind::Abort);
    // (Asking whose process this is takes a system call.)
    if leaves && sampling::companion_listens() && process::is_own() {
        // No exit will reset the context, but the call does not return either. (If it is made by a child of `vfork`, it
        // returns in the parent.)
        set_context(node as usize);
    }
}

/// Confines the recording if the process is about to give up the right to some system calls, and perhaps to the
/// clock.
fn confine_if_asked(kind: Kind, arguments: &Arguments) {
    let Arguments { rdi, rsi, rdx, rcx, .. } = *arguments;
    let Some(loss) = loss_by(kind, [rdi, rsi, rdx, rcx]) else { return };
    // A child of `vfork` gives up nothing of its parent's.
    if process::is_own() {
        // A filter may forbid the clock's system call, since programs read the clock without one.
        process::confine(loss == Loss::Clock || !clock::is_time_stamp());
    } else {
        sys::confine_child();
    }
}

/// Lengthens the recording's file before the process may have to leave it behind.
fn lengthen_if_departing(kind: Kind, arguments: &Arguments) {
    if departs(kind, arguments.rdi) && process::is_own() {
        recording::lengthen_ahead();
    }
}

/// Counts a call that gets no frame; returns its node, or null if there is no room or the thread is left out.
fn count(thread: &Thread, sp: usize, slot: u32) -> *mut Node {
    if thread.is_left_out() {
        return ptr::null_mut();
    }
    let context = thread.context_at(sp);
    let node = thread.tree.find_or_add(context, slot);
    if node.is_null() {
        recording::unseen(Lost::CallWithoutSpace);
    } else {
        // SAFETY: the node is this thread's.
        unsafe { add_calls(node, 1) };
    }
    node
}
