//! A recording that the program has mapped other memory over. That it is gone shows in its header.

use core::mem::offset_of;
use core::sync::atomic::Ordering;

use chase_format::layout::{END_NONE, Header, MAGIC, STOP_CUT_OFF};

use super::{RECORDING, STOPPED, State, header, open_again};
use crate::signals::SignalsBlocked;
use crate::{clock, sys};

/// What is written into the file's header, as it stands there.
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

/// Whether the header is not where it was. (Where nothing can be read, the next call that is recorded
/// would fail before this is asked.)
pub(super) fn is_gone() -> bool {
    // SAFETY: there is a mapping, the recording's or another.
    unsafe { (&raw const (*header()).magic).read_volatile() != MAGIC }
}

/// The end of the process, for the file of a recording that is gone. False if it is there: it is to be
/// told.
pub(crate) fn end_if_gone(kind: u32, status: i32) -> bool {
    if !is_gone() {
        return false;
    }
    let _signals = SignalsBlocked::new();
    write_ending(&RECORDING.hold(), kind, status);
    true
}

/// Stops a recording that is gone.
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
        sys::write_at(fd, bytes, offset_of!(Header, end_kind));
        sys::close(fd);
    }
}
