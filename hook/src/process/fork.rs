//! Forks of the process.

use core::cell::UnsafeCell;
use core::ptr;

use chase_format::layout::ORIGIN_FORK;

use super::{greet_companion, memory_is_ours, open_recording, process};
use crate::sampling::no_counts;
use crate::signals::SignalsBlocked;
use crate::thread::{Origin, no_thread};
use crate::{arch, frames, loading, pages, recording, sampling, thread, windows};

/// Signals of the forking thread, which is the one that holds the locks.
struct ForkSignals(UnsafeCell<Option<SignalsBlocked>>);
// SAFETY: it is touched only by who holds the locks.
unsafe impl Sync for ForkSignals {}
static FORK_SIGNALS: ForkSignals = ForkSignals(UnsafeCell::new(None));

pub(super) unsafe extern "C" fn before_fork() {
    // A signal handler in this thread would wait for the locks for ever. They are taken in the
    // order in which they are taken elsewhere.
    let signals = SignalsBlocked::new();
    loading::before_fork();
    recording::before_fork();
    thread::before_fork();
    sampling::before_fork();
    pages::before_fork();
    frames::before_fork();
    // SAFETY: the locks are held.
    unsafe { *FORK_SIGNALS.0.get() = Some(signals) };
}

pub(super) unsafe extern "C" fn after_fork_in_parent() {
    // SAFETY: the locks are held.
    let _signals = unsafe { (*FORK_SIGNALS.0.get()).take() };
    frames::after_fork_in_parent();
    pages::after_fork_in_parent();
    sampling::after_fork_in_parent();
    thread::after_fork_in_parent();
    recording::after_fork_in_parent();
    loading::after_fork_in_parent();
}

pub(super) unsafe extern "C" fn after_fork_in_child() {
    // SAFETY: there is no other thread.
    let _signals = unsafe { (*FORK_SIGNALS.0.get()).take() };
    become_child();
}

/// A thread calls after something that may have been a fork.
pub(crate) fn notice_fork() {
    if recording::is_open() && !memory_is_ours() {
        become_child();
    }
}

/// Gives a fork's child, which has one thread, a recording of its own.
fn become_child() {
    let _signals = SignalsBlocked::new();
    thread::after_fork_in_child();
    sampling::after_fork_in_child(thread::current().and_then(|thread| thread.counts.get()));
    pages::after_fork_in_child();
    frames::after_fork_in_child();
    recording::after_fork_in_child();
    loading::after_fork_in_child();
    if !recording::is_open() {
        return;
    }
    let open_calls = thread::current().map(|thread| (thread.open_calls(), thread));
    if recording::is_confined() || open_recording(ORIGIN_FORK).is_err() {
        // Calls run unrecorded from now on; those that are open return through their frames.
        recording::close();
        arch::set_current_thread(no_thread(), no_counts(), ptr::null());
        return;
    }
    loading::describe_again();
    windows::after_fork_in_child();
    greet_companion(process());
    let Some((open_calls, thread)) = open_calls else { return };
    if thread.enroll(&Origin::MAIN) {
        thread.inherit(&open_calls);
    } else {
        arch::set_current_thread(no_thread(), no_counts(), ptr::null());
    }
}
