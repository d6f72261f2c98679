//! Forks of the process.

use chase_format::layout::ORIGIN_FORK;

use super::{claim, greet_companion, hold, open_recording};
use crate::companion::Starting;
use crate::cost::{self, Later};
use crate::frames::OpenCalls;
use crate::lock::{Fork, Lock, own_number, was_taken_from_fork};
use crate::recording::Lost;
use crate::signals::SignalsBlocked;
use crate::thread::{Origin, Thread, clear_current};
use crate::{
    companion, counts, fork_word, loading, marks, pages, recording, segments, sites, sys, thread,
};

/// All locks, in the order in which they are taken elsewhere.
const LOCKS: [fn(Fork); 9] = [
    super::fork,
    loading::fork,
    marks::fork,
    sites::fork,
    recording::fork,
    thread::fork,
    counts::fork,
    pages::fork,
    segments::fork,
];

/// Threads that may be in a fork at the same time.
const FORKS: usize = 64;

/// What blocks the signals of forking threads, each with its thread's number: the thread that holds the locks, and those that have lost them.
/// (A fork loses its locks after a second. If more threads than this fork at the same time, the signals of the others are not
/// blocked.)
static FORK_SIGNALS: Lock<[Option<(u32, SignalsBlocked)>; FORKS]> =
    Lock::new([const { None }; FORKS]);

pub(super) unsafe extern "C" fn before_fork() {
    let _cost = Later::begin();
    // Otherwise a signal handler in this thread would wait for the locks forever.
    let signals = SignalsBlocked::new();
    LOCKS.iter().for_each(|lock| lock(Fork::Before));
    if let Some(free) = FORK_SIGNALS.hold().iter_mut().find(|slot| slot.is_none()) {
        *free = Some((own_number(), signals));
    }
    thread::keep_copy();
}

/// Returns what blocks the signals of the calling thread, after its fork.
fn take_signals() -> Option<SignalsBlocked> {
    let is_own = |(owner, _): &mut (u32, SignalsBlocked)| *owner == own_number();
    let mut slots = FORK_SIGNALS.hold();
    slots.iter_mut().find_map(|slot| slot.take_if(is_own)).map(|(_, signals)| signals)
}

pub(super) unsafe extern "C" fn after_fork_in_parent() {
    let _cost = Later::begin();
    let _signals = take_signals();
    thread::discard_copy();
    LOCKS.iter().rev().for_each(|lock| lock(Fork::InParent));
}

pub(super) unsafe extern "C" fn after_fork_in_child() {
    FORK_SIGNALS.fork(Fork::InChild);
    let _signals = take_signals();
    // Threads that forked at the same time aren't here.
    FORK_SIGNALS.hold().iter_mut().for_each(|slot| core::mem::forget(slot.take()));
    // (A fork handler that ran before ours may have made a call, by which the fork was noticed.)
    if !fork_word::can_detect() || fork_word::begin_handling() {
        become_child();
    }
}

/// Handles a fork if there was one. Called after what may have been a fork, or if the thread's memory is zeroed, as
/// in a fork's child.
pub(crate) fn notice_fork() {
    if thread::has_ended() {
        // The child may have thread data of its own, of which nothing is recorded.
        return;
    }
    if recording::is_open() && !fork_word::is_ours() && fork_word::begin_handling() {
        become_child();
    } else if thread::current().is_some_and(Thread::is_wiped) {
        record_further_thread();
    }
}

/// Gives a fork's child a recording of its own. Only the calling thread is recorded in it.
fn become_child() {
    let _signals = SignalsBlocked::new();
    LOCKS.iter().for_each(|lock| lock(Fork::InChild));
    let starting = hold().session.map(|_| Starting::begin());
    let _cost = cost::Fork::begin();
    let was_recorded = thread::current().is_some();
    thread::restore();
    let uncredited = thread::uncredited();
    thread::discard_copy();
    counts::after_fork_in_child(thread::current().and_then(|thread| thread.counts.get()));
    if !recording::is_open() {
        // The call that begins one may still come, or chase has left the process.
        return claim();
    }
    let open_calls = thread::current().map(|thread| (thread.open_calls(), thread));
    let this = &mut *hold();
    if this.forks_are_left_out && this.session.is_some() && !sys::is_confined() {
        companion::decline(this.directory.as_bytes());
    }
    // What has no hooks has none here either.
    let unhooked = [Lost::Object, Lost::SlotWithoutStub];
    let unhooked = unhooked.map(|what| (what, recording::times_unseen(what)));
    let is_torn = was_taken_from_fork();
    if is_torn
        || sys::is_confined()
        || this.forks_are_left_out
        || open_recording(this, ORIGIN_FORK).is_err()
    {
        // Calls run unrecorded from now on; those that are open return through their frames.
        if !this.forks_are_left_out {
            // The recording is still the parent's.
            recording::unseen(Lost::Fork);
        }
        recording::close();
        fork_word::claim();
        return clear_current();
    }
    recording::add_unseen(Lost::CallSinceFork, uncredited);
    unhooked.into_iter().for_each(|(what, count)| recording::add_unseen(what, count));
    loading::describe_again();
    if greet_companion(this) {
        core::mem::forget(starting);
    }
    match open_calls {
        Some((open_calls, thread)) => enroll(thread, &open_calls),
        // Nothing of it was kept, for want of memory.
        None if was_recorded => recording::unseen(Lost::Thread),
        None => {}
    }
}

/// Records a further thread of a fork's child that has a recording already.
fn record_further_thread() {
    let _signals = SignalsBlocked::new();
    let was_recorded = thread::current().is_some();
    thread::restore();
    let Some(thread) = thread::current() else {
        if was_recorded {
            recording::unseen(Lost::Thread);
        }
        return;
    };
    recording::add_unseen(Lost::CallSinceFork, thread::uncredited());
    thread::discard_copy();
    if let Some(counts) = thread.counts.get() {
        counts::add_in_fork_child(counts);
    }
    if !recording::is_open() {
        return clear_current();
    }
    enroll(thread, &thread.open_calls());
}

fn enroll(thread: &Thread, open_calls: &OpenCalls) {
    if thread.enroll(&Origin::MAIN) {
        thread.inherit(open_calls);
        if thread.is_left_out() {
            thread.leave_out();
        }
    } else {
        clear_current();
    }
}

/// Handles pending forks and loads, if a call at `sp` shows that they are over.
pub(crate) fn catch_up(thread: &Thread, sp: usize) {
    let pending = thread.pending.get();
    if pending.fork {
        thread.clear_pending();
        thread::discard_copy();
        notice_fork();
        if pending.load_sp != 0 {
            thread.defer(pending.with_fork(false));
        }
    }
    loading::catch_up(thread, sp);
}
