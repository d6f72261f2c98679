//! Room for chunks: mapped and populated, so that nothing that is written fails for lack of space.
//!
//! No lock is held while pages are populated: on a busy machine that can take long, and each thread that starts would wait for it. Several
//! threads may populate the same pages, which is harmless.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use chase_format::layout::{PAGE, STOP_LIMIT, STOP_NO_MEMORY, STOP_NO_SPACE};

use super::length::lengthen;
use super::{LARGEST, LARGEST_STEP, MANY, RECORDING, STEP, State, base, cut_off};
use super::{is_open, note_latest, stop, stopped};
use crate::lock::Fork;
use crate::sys::{self, Errno};

/// For how many tenths of a second a thread waits for others that are populating pages.
const PATIENCE: usize = 10;

/// How many threads are populating pages. Only grows while [`RECORDING`] is held.
static POPULATING: AtomicU32 = AtomicU32::new(0);

/// Returns the range to populate ahead of need, if little room is left; only one thread at a time gets it.
pub(super) fn ahead(state: &State) -> Option<Range<usize>> {
    let room = state.writer.room();
    let is_short = room - state.writer.committed() < LARGEST_STEP / 2;
    let ahead = room..room + LARGEST_STEP;
    let is_wanted =
        is_open() && !stopped() && room >= MANY && is_short && ahead.end <= state.length;
    let is_first = POPULATING.load(Ordering::Relaxed) == 0;
    (is_wanted && is_first && !cut_off::is_gone()).then(|| begin(ahead))
}

/// Makes room for `len` bytes, unless another thread has. If there is none, returns `None`, and stops the recording.
pub(super) fn make(len: usize) -> Option<()> {
    let range = next_room(&mut RECORDING.hold(), len);
    if let Err((reason, errno)) = range.and_then(populate) {
        // (A child that uses this memory may not make the system calls; its parent goes on.)
        if !sys::is_confined_here() {
            stop(reason, errno);
        }
        return None;
    }
    note_latest();
    Some(())
}

/// Begins to populate a range. [`RECORDING`] is held.
fn begin(range: Range<usize>) -> Range<usize> {
    POPULATING.fetch_add(1, Ordering::Relaxed);
    range
}

/// Begins to populate a range for `len` bytes more, now mapped; an empty one if there is room.
fn next_room(state: &mut State, len: usize) -> Result<Range<usize>, (u32, Errno)> {
    let room = state.writer.room();
    if state.has_room(len) {
        return Ok(begin(room..room));
    }
    let step = (room / 2).clamp(STEP, LARGEST_STEP) & !(PAGE - 1);
    let wanted = (room + step).min(LARGEST);
    if wanted <= room {
        return Err((STOP_LIMIT, 0));
    }
    if wanted > state.length {
        lengthen(state, wanted)?;
    }
    Ok(begin(room..wanted))
}

/// Populates a range behind the room, which was begun, and adds it. [`RECORDING`] is not held.
pub(super) fn populate(range: Range<usize>) -> Result<(), (u32, Errno)> {
    let (start, len) = (base().wrapping_add(range.start), range.len());
    let populated =
        if len > 0 { sys::advise(start, len, sys::MADV_POPULATE_WRITE) } else { Ok(()) };
    POPULATING.fetch_sub(1, Ordering::Release);
    let state = &mut *RECORDING.hold();
    // Another thread may have been faster; or the recording was trimmed, and what is behind it unmapped.
    if state.writer.room() != range.start || range.end > state.length {
        return Ok(());
    }
    populated.map_err(|errno| {
        // EFAULT: a write would have raised SIGBUS for lack of space.
        let reason = if errno == libc::EFAULT { STOP_NO_SPACE } else { STOP_NO_MEMORY };
        (reason, if errno == libc::EFAULT { libc::ENOSPC } else { errno })
    })?;
    // SAFETY: the part behind the old room is populated now.
    unsafe { state.writer.set_room(range.end) };
    Ok(())
}

impl State {
    pub(super) fn has_room(&self, len: usize) -> bool {
        self.writer.room() - self.writer.committed() >= len
    }
}

/// Waits until no thread makes room; [`RECORDING`] is held, so that none begins to.
pub(super) fn wait_for_others() {
    // (A child that used this memory may have been killed in between.)
    for _ in 0..PATIENCE {
        match POPULATING.load(Ordering::Acquire) {
            0 => break,
            threads => sys::futex_wait(&POPULATING, threads),
        }
    }
}

/// In a fork's child, no other thread goes on.
pub(super) fn fork(moment: Fork) {
    if moment == Fork::InChild {
        POPULATING.store(0, Ordering::Relaxed);
    }
}
