//! Leaving a process: what threads have is taken back, as far as nothing returns there.

use core::ptr;

use chase_format::layout::END_DETACHED;

use crate::lock::Lock;
use crate::process;
use crate::signals::SignalsBlocked;
use crate::thread::Thread;
use crate::{companion, counts, loading, thread_life};

/// Threads whose calls will return through frames, which are kept until they have.
const LINGERING: usize = 4096;
static WAITING: Lock<[*const Thread; LINGERING]> = Lock::new([ptr::null(); LINGERING]);

/// Restores all entries, and ends the recording. Gives how many entries.
pub(super) fn leave() -> u64 {
    // No fork meanwhile.
    let process = process::hold();
    let restored = loading::unhook_all();
    process::end(END_DETACHED, 0);
    if process.session.is_some() {
        companion::watch_all(false);
    }
    restored
}

/// Takes back what a thread has. False: it is inside a call that returns through its frames, which stay.
pub(super) fn dismiss(thread: &Thread) -> bool {
    let _signals = SignalsBlocked::new();
    thread.stop_sampling();
    if let Some(counts) = thread.counts.take() {
        counts::give_back(counts);
    }
    thread.close_for_good();
    if thread_life::release(thread) {
        return true;
    }
    // (Without a place for it, its memory is never used again.)
    if let Some(place) = WAITING.hold().iter_mut().find(|place| place.is_null()) {
        *place = thread;
    }
    false
}

/// Takes back what is left of threads whose calls have returned since.
pub(super) fn dismiss_lingering() {
    let _signals = SignalsBlocked::new();
    for place in WAITING.hold().iter_mut().filter(|place| !place.is_null()) {
        // SAFETY: a thread's memory stays as long as it is here.
        if thread_life::release(unsafe { &**place }) {
            *place = ptr::null();
        }
    }
}
