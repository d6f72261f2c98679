//! Forks of the process.

use core::cell::UnsafeCell;
use core::ptr;

use chase_format::layout::ORIGIN_FORK;

use super::{
    claim_memory, follow, greet_companion, is_to_be_parted, knows_its_memory, memory_is_ours,
    open_recording, process,
};
use crate::companion::Starting;
use crate::cost::{Later, Start};
use crate::frames::OpenCalls;
use crate::recording::Lost;
use crate::sampling::{Counts, no_counts};
use crate::signals::SignalsBlocked;
use crate::thread::{Origin, Thread, no_thread};
use crate::{arch, companion, frames, loading, pages, recording, sampling, thread};

/// Signals of the forking thread, which is the one that holds the locks.
struct ForkSignals(UnsafeCell<Option<SignalsBlocked>>);
// SAFETY: it is touched only by who holds the locks.
unsafe impl Sync for ForkSignals {}
static FORK_SIGNALS: ForkSignals = ForkSignals(UnsafeCell::new(None));

pub(super) unsafe extern "C" fn before_fork() {
    let _cost = Later::begin();
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
    thread::keep();
}

pub(super) unsafe extern "C" fn after_fork_in_parent() {
    let _cost = Later::begin();
    // SAFETY: the locks are held.
    let _signals = unsafe { (*FORK_SIGNALS.0.get()).take() };
    thread::keep_no_more();
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
    // (A handler that was there before ours may have called something, and that was noticed.)
    if !knows_its_memory() || is_to_be_parted() {
        become_child();
    }
}

/// A thread calls after something that may have been a fork, or is found wiped, as in a fork's child.
pub(crate) fn notice_fork() {
    if thread::has_ended() {
        // It is one with thread data of its own, perhaps, of which nothing is recorded.
        return;
    }
    if recording::is_open() && !memory_is_ours() && is_to_be_parted() {
        become_child();
    } else if thread::current().is_some_and(Thread::is_wiped) {
        rejoin();
    }
}

/// Gives a fork's child, in which only the calling thread is recorded, a recording of its own.
fn become_child() {
    let starting = process().session.map(|_| Starting::begin());
    let _cost = Start::begin();
    let _signals = SignalsBlocked::new();
    thread::restore();
    thread::after_fork_in_child();
    let uncredited = uncredited();
    thread::keep_no_more();
    sampling::after_fork_in_child(thread::current().and_then(|thread| thread.counts.get()));
    pages::after_fork_in_child();
    frames::after_fork_in_child();
    recording::after_fork_in_child();
    loading::after_fork_in_child();
    if !recording::is_open() {
        return;
    }
    let open_calls = thread::current().map(|thread| (thread.open_calls(), thread));
    let is_wanted = follow::forks_are_wanted(process().config.follow);
    if !is_wanted && process().session.is_some() && !recording::is_confined() {
        companion::decline(process().directory.as_bytes());
    }
    if recording::is_confined() || !is_wanted || open_recording(ORIGIN_FORK).is_err() {
        // Calls run unrecorded from now on; those that are open return through their frames.
        recording::close();
        claim_memory();
        arch::set_current_thread(no_thread(), no_counts(), ptr::null());
        return;
    }
    recording::add_unseen(Lost::CallSinceFork, uncredited);
    loading::describe_again();
    if greet_companion(process()) {
        core::mem::forget(starting);
    }
    if let Some((open_calls, thread)) = open_calls {
        enroll(thread, &open_calls);
    }
}

/// A thread of a fork's child that another thread has given a recording.
fn rejoin() {
    let _signals = SignalsBlocked::new();
    thread::restore();
    let Some(thread) = thread::current() else { return };
    recording::add_unseen(Lost::CallSinceFork, uncredited());
    thread::keep_no_more();
    if let Some(counts) = thread.counts.get() {
        sampling::rejoin(counts);
    }
    if !recording::is_open() {
        return arch::set_current_thread(no_thread(), no_counts(), ptr::null());
    }
    enroll(thread, &thread.open_calls());
}

fn enroll(thread: &Thread, open_calls: &OpenCalls) {
    if thread.enroll(&Origin::MAIN) {
        thread.inherit(open_calls);
    } else {
        arch::set_current_thread(no_thread(), no_counts(), ptr::null());
    }
}

/// What this thread may have called, and only counted, since a fork that nobody saw coming: before others, all was
/// credited or is the parent's.
fn uncredited() -> u64 {
    let counts = thread::current().and_then(|thread| thread.counts.get());
    counts.filter(|counts| !counts.kept.was_copied()).map_or(0, Counts::uncredited)
}
