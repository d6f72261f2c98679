//! Handles a recording over which the program has mapped other memory. This shows in its header.

use core::mem::offset_of;
use core::sync::atomic::Ordering;

use chase_format::layout::{END_NONE, Header, MAGIC, STOP_CUT_OFF};

use super::{RECORDING, STOPPED, State, header, open_again};
use crate::signals::SignalsBlocked;
use crate::{clock, sys};

/// The fields to write into the file's header, in the same layout.
#[repr(C)]
struct Ending {
    end_kind: u32,
    end_status: i32,
    end_ticks: u64,
    stop_reason: u32,
    stop_errno: u32,
    stop_ticks: u64,
}

const _: () = assert!(
    offset_of!(Header, stop_ticks) - offset_of!(Header, end_kind) == offset_of!(Ending, stop_ticks)
);

/// Whether the header is not mapped any more. (If nothing is mapped there, the next recorded call fails before this
/// is asked.)
pub(super) fn is_gone() -> bool {
    // SAFETY: there is a mapping, the recording's or another.
    unsafe { (&raw const (*header()).magic).read_volatile() != MAGIC }
}

/// If the mapping is gone, writes the process's end into the file. Returns false if it is still there, and the caller
/// has to record the end.
pub(crate) fn end_if_gone(kind: u32, status: i32) -> bool {
    if !is_gone() {
        return false;
    }
    let _signals = SignalsBlocked::new();
    write_ending(&RECORDING.hold(), kind, status);
    true
}

/// Stops a recording whose mapping is gone.
pub(super) fn stop(state: &State) {
    write_ending(state, END_NONE, 0);
}

fn write_ending(state: &State, end_kind: u32, end_status: i32) {
    STOPPED.store(true, Ordering::Relaxed);
    let now = clock::now();
    let ending = Ending {
        end_kind,
        end_status,
        end_ticks: if end_kind == END_NONE { 0 } else { now },
        stop_reason: STOP_CUT_OFF,
        stop_errno: 0,
        stop_ticks: now,
    };
    if let Ok(fd) = open_again(state) {
        // SAFETY: it has no padding.
        let bytes = unsafe {
            core::slice::from_raw_parts((&raw const ending).cast::<u8>(), size_of::<Ending>())
        };
        let _ = sys::write_at(fd, bytes, offset_of!(Header, end_kind));
        sys::close(fd);
    }
}
