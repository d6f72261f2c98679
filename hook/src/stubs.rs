//! The code that calls go through, which the assembler writes as data: stubs, and pads of frames.

mod direct;

use core::sync::atomic::Ordering;

use crate::abi::{
    END, ENDS, ENDS_BLOCK, FRAME, FRAMES, PAD_CALL, PAD_DISTANCE, SPECIAL_STUB, SPECIAL_STUBS,
    STUB, STUBS, TARGETS,
};
use crate::arch::words_are_near;

pub(crate) use self::direct::make_direct;

unsafe extern "C" {
    static chase_stubs: u8;
    static chase_distant_stubs: u8;
    static chase_special_stubs: u8;
    pub(crate) static chase_frames: u8;
    pub(crate) static chase_pads: u8;
    static chase_exit_set_aside: u8;
    /// Returns the duration that is recorded of an empty call that is a sample, in ticks of the time stamp counter.
    pub(crate) safe fn chase_probe() -> u64;
    /// Runs first in a child of `clone` with memory of its own; the argument says what the child is to run.
    pub(crate) fn chase_clone_start(begun: *mut core::ffi::c_void) -> i32;
    /// Stands for a function that could not be found.
    pub(crate) fn chase_no_function();
    /// Runs first in a new thread; the argument is a `Start` of `thread::starts`.
    pub(crate) fn chase_thread_start(start: *mut core::ffi::c_void) -> *mut core::ffi::c_void;
}

/// Returns the address of the stub of `slot`.
pub(crate) fn stub(slot: usize) -> usize {
    if !words_are_near() {
        end_of(&raw const chase_distant_stubs, slot)
    } else {
        &raw const chase_stubs as usize + slot * STUB
    }
}

/// Returns the address of `slot`'s stub end in a table of stub ends.
fn end_of(table: *const u8, slot: usize) -> usize {
    table as usize + slot / ENDS * ENDS_BLOCK + slot % ENDS * END
}

/// Returns the address of the special stub with this number.
pub(crate) fn special_stub(number: usize) -> usize {
    &raw const chase_special_stubs as usize + number * SPECIAL_STUB
}

/// Whether `address` is that of a stub.
pub(crate) fn is_stub(address: usize) -> bool {
    let tables = [
        (&raw const chase_stubs, STUBS * STUB),
        (&raw const chase_distant_stubs, STUBS / ENDS * ENDS_BLOCK),
        (&raw const chase_special_stubs, SPECIAL_STUBS * SPECIAL_STUB),
    ];
    tables.iter().any(|&(table, len)| address.wrapping_sub(table as usize) < len)
}

/// Makes frames find their pads. Must come before the first call.
pub(crate) fn connect_pads() {
    let distance = (&raw const chase_pads as usize).wrapping_sub(first_frame());
    PAD_DISTANCE.store(distance, Ordering::Relaxed);
}

/// Returns the address of the first frame.
pub(crate) fn first_frame() -> usize {
    &raw const chase_frames as usize
}

/// Returns the frame of the call that returns to `address`; `None` if no frame's call does.
pub(crate) fn frame_of(address: usize) -> Option<usize> {
    let offset = address.wrapping_sub(&raw const chase_pads as usize + PAD_CALL);
    (offset < FRAMES * FRAME && offset.is_multiple_of(FRAME)).then(|| first_frame() + offset)
}

/// Whether `address` is in a pad: the call that returns there is made by a hooked function, or is a tail call of one.
pub(crate) fn is_exit(address: usize) -> bool {
    frame_of(address).is_some()
}

/// Returns the exit of frames that are set aside.
pub(crate) fn exit_of_set_aside() -> usize {
    &raw const chase_exit_set_aside as usize
}

/// Makes `target` the real function of `slot`. Returns false if its stub already jumps to another function and can't
/// be changed. Called while there is only one thread, or with the lock of what is loaded held.
pub(crate) fn set_target(slot: usize, target: usize) -> bool {
    if let Some(place) = TARGETS.get(slot) {
        place.store(target, Ordering::Relaxed);
    }
    direct::leads_to(slot, target) || {
        make_direct(slot..slot + 1);
        direct::leads_to(slot, target)
    }
}

/// Returns the real function of `slot`; 0 if it has none.
pub(crate) fn target(slot: usize) -> usize {
    TARGETS.get(slot).map_or(0, |target| target.load(Ordering::Relaxed))
}
