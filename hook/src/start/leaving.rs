//! Takes back the memory of threads when chase leaves a process, except where calls still return to it.

use core::ptr;

use chase_format::layout::END_DETACHED;

use crate::lock::Lock;
use crate::process;
use crate::signals::SignalsBlocked;
use crate::thread::Thread;
use crate::{companion, counts, loading, thread_life};

/// The number of threads that can be kept until their calls have returned through their frames.
const LINGERING: usize = 4096;
#[unsafe(link_section = ".bss.large")]
static WAITING: Lock<[*const Thread; LINGERING]> = Lock::new([ptr::null(); LINGERING]);

/// Restores all GOT entries and ends the recording; returns how many entries.
pub(super) fn leave() -> u64 {
    // While this lock is held, no thread forks.
    let process = process::hold();
    // (What the threads do from here on is not theirs.)
    if process.session.is_some() {
        companion::watch_all(false);
    }
    let restored = loading::unhook_all();
    process::end(END_DETACHED, 0);
    restored
}

/// Ends the recording of a thread at `ticks`, and takes back its memory. Returns false if the thread is inside a call that
/// will return through its frames, which stay.
pub(super) fn dismiss(thread: &Thread, ticks: u64) -> bool {
    let _signals = SignalsBlocked::new();
    thread.stamp_left(ticks);
    thread.stop_sampling();
    if let Some(counts) = thread.counts.take() {
        counts::give_back(counts);
    }
    thread.mark_ended();
    if thread_life::release(thread) {
        return true;
    }
    // (If there is no place, the memory is never reused.)
    if let Some(place) = WAITING.hold().iter_mut().find(|place| place.is_null()) {
        *place = thread;
    }
    false
}

/// Takes back the memory of threads whose calls have returned since.
pub(super) fn dismiss_lingering() {
    let _signals = SignalsBlocked::new();
    for place in WAITING.hold().iter_mut().filter(|place| !place.is_null()) {
        // SAFETY: a thread's memory is not reused while it is in this list.
        if thread_life::release(unsafe { &**place }) {
            *place = ptr::null();
        }
    }
}
