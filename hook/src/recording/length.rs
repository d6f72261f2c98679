//! How long the recording's file is, and its mapping.

use chase_format::layout::{PAGE, STOP_LIMIT, STOP_NO_MEMORY, STOP_NO_SPACE};

use super::{LARGEST, RECORDING, State, base, cut_off, file_limit, is_open, open_again, stopped};
use crate::signals::SignalsBlocked;
use crate::sys::{self, Errno};

/// How long a file is that may have to grow without being opened again; what is not written of it takes no space.
const AHEAD: usize = LARGEST / 16;

/// Lengthens the file alone, by a hole, as long as the process can still open it: once it is another user, or has another root,
/// it may not. Where the file then grows, only its mapping has to.
pub(crate) fn lengthen_ahead() {
    let _signals = SignalsBlocked::new();
    let state = &mut *RECORDING.hold();
    let length = AHEAD.min(file_limit() & !(PAGE - 1));
    let is_wanted = is_open() && !stopped() && length > state.file_length && !cut_off::is_gone();
    if is_wanted && set_length(state, length).is_ok() {
        state.file_length = length;
    }
}

/// Lengthens the mapping, and the file if it is not long enough.
pub(super) fn lengthen(state: &mut State, wanted: usize) -> Result<(), (u32, Errno)> {
    let mut length = (state.length * 4).max(wanted);
    if wanted > state.file_length {
        length = length.min(LARGEST).min(file_limit() & !(PAGE - 1));
        if length < wanted {
            return Err((STOP_LIMIT, libc::EFBIG));
        }
        set_length(state, length).map_err(|errno| (STOP_NO_SPACE, errno))?;
        state.file_length = length;
    }
    // (What was lengthened ahead may be longer than a limit that the process has set since.)
    let length = length.min(state.file_length);
    sys::extend_mapping(base(), state.length, length).map_err(|errno| (STOP_NO_MEMORY, errno))?;
    state.length = length;
    Ok(())
}

/// Sets the file's length. Its path may lead to another file by now, or to none, so the inode is compared.
fn set_length(state: &State, length: usize) -> Result<(), Errno> {
    let fd = open_again(state)?;
    let result = sys::ftruncate(fd, length);
    sys::close(fd);
    result
}

/// At the process's end: sets the file's length to what is used. Other threads may go on counting in it; if one needs
/// more room, it lengthens the file again.
pub(crate) fn trim() {
    let _signals = SignalsBlocked::new();
    let state = &mut *RECORDING.hold();
    let used = state.writer.committed();
    if set_length(state, used).is_ok() {
        // SAFETY: less room needs nothing.
        unsafe { state.writer.set_room(used) };
        sys::unmap(base().wrapping_add(used), state.length - used);
        (state.length, state.file_length) = (used, used);
    }
}
