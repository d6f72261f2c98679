//! Begins the recording with the first call of a function (`CHASE_START_ON=call:...`).
//!
//! Until then the library is loaded, and only the entries that this call may go through lead to it. The call then begins the
//! recording as `chase attach` does, but from inside and while other threads run: these are found at their next call. (If one of them
//! is about to bind an entry lazily, for the first time, that entry may be left unhooked.)

use core::sync::atomic::{AtomicU32, Ordering};

use chase_format::layout::PAGE;

use super::open_late;
use crate::arch::{on_stack, vector_area_len, with_vectors_saved};
use crate::cost::{self, Spent};
use crate::process::{self, watch_process};
use crate::recording::Refused;
use crate::signals::SignalsBlocked;
use crate::special::set_beginning;
use crate::thread_life::{leave_out_unwanted, note_found, origin_of_found, watch_ends};
use crate::{fork_word, loading, pages, recording, sys, thread};
use chase_logic::config::Config;

const NOT_CALLED: &[u8] =
    b"chase: CHASE_START_ON: no object of the program calls such a function through an import; nothing is recorded\n";

/// Size in bytes of the stack on which the recording is opened.
const STACK: usize = 16 * PAGE;

/// Whether the call is waited for, or has come.
static STATE: AtomicU32 = AtomicU32::new(0);
const WAITING: u32 = 1;
const HAS_COME: u32 = 2;

/// Waits for the call. Called by the constructor, when the objects have been found.
pub(super) fn wait(config: &Config) {
    // What calls the C library is done now: the call may come in a signal handler.
    watch_ends();
    watch_process();
    process::claim();
    set_beginning(begin);
    STATE.store(WAITING, Ordering::Relaxed);
    if loading::watch_first_call() == 0 && config.verbose {
        sys::write_stderr(NOT_CALLED);
    }
}

/// Begins the recording, unless that is not possible at this moment: then the next call does.
fn begin() {
    let _signals = SignalsBlocked::new();
    // (A child of `vfork` runs in the memory of its parent.)
    let is_own = process::is_own() || !fork_word::is_ours();
    if sys::is_confined()
        || !is_own
        || STATE.compare_exchange(WAITING, HAS_COME, Ordering::Relaxed, Ordering::Relaxed).is_err()
    {
        return;
    }
    let len = vector_area_len().next_multiple_of(PAGE) + STACK;
    let memory = pages::allocate(len);
    if memory.is_null() || loading::can_read_list() == Some(false) {
        STATE.store(WAITING, Ordering::Relaxed);
    } else {
        let top = memory.wrapping_add(len);
        // SAFETY: the memory is ours, zeroed, and aligned to a page; its end is a stack that nobody uses.
        unsafe { with_vectors_saved(memory, || record_from_here(top)) };
    }
    if !memory.is_null() {
        pages::give_back(memory, len);
    }
}

/// `stack` is the end of a stack of [`STACK`] bytes.
///
/// # Safety
/// Nothing else uses that stack.
unsafe fn record_from_here(stack: *mut u8) {
    let config = loading::config();
    if sys::has_seccomp_filter() {
        return loading::stop_watching();
    }
    let spent = Spent::now();
    let this = &mut *process::hold();
    let mut opened = Err(Refused { doing: "no stack", errno: 0 });
    // The call may come on a stack with little room, where paths have none.
    let open = || opened = open_late(this, &config, b"begun on", config.start_on);
    // SAFETY: the caller vouches for the stack.
    unsafe { on_stack(stack, open) };
    let _own = match opened {
        Ok(own) => own,
        Err(refused) => {
            super::say_refused(&config, &refused);
            return loading::stop_watching();
        }
    };
    let origin = origin_of_found();
    let Some(thread) = thread::register(&origin) else { return loading::stop_watching() };
    thread::expect_several(thread);
    super::measure_cost(this, thread);
    leave_out_unwanted(thread, &origin);
    note_found(origin.argument, thread);
    loading::hook_from_first_call();
    recording::note_latest();
    cost::add_start(spent.with_loading_ns());
    super::say_recording(&config, this);
}
