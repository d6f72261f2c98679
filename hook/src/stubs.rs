//! The code that calls go through, which the assembler writes as data: stubs, and the pads of frames.

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
    static chase_frames: u8;
    static chase_pads: u8;
    static chase_exit_left: u8;
    /// What is recorded of an empty call that is a sample, in ticks of the time stamp counter.
    pub(crate) safe fn chase_probe() -> u64;
    /// What the child of `clone` runs first, where it has memory of its own; its argument is what it is to run.
    pub(crate) fn chase_clone_start(begun: *mut core::ffi::c_void) -> i32;
    /// In the place of a function that is not to be found.
    pub(crate) fn chase_no_function();
    /// What a new thread runs first; its argument is a `Start` of `thread::starts`.
    pub(crate) fn chase_thread_start(start: *mut core::ffi::c_void) -> *mut core::ffi::c_void;
}

/// Address of the stub of `slot`.
pub(crate) fn stub(slot: usize) -> usize {
    if !words_are_near() {
        end_of(&raw const chase_distant_stubs, slot)
    } else {
        &raw const chase_stubs as usize + slot * STUB
    }
}

/// Address of the end of the stub of `slot` in one of the tables of those.
fn end_of(table: *const u8, slot: usize) -> usize {
    table as usize + slot / ENDS * ENDS_BLOCK + slot % ENDS * END
}

/// Address of the special stub with this number.
pub(crate) fn special_stub(number: usize) -> usize {
    &raw const chase_special_stubs as usize + number * SPECIAL_STUB
}

/// Whether `address` is one of the stubs.
pub(crate) fn is_stub(address: usize) -> bool {
    let tables = [
        (&raw const chase_stubs, STUBS * STUB),
        (&raw const chase_distant_stubs, STUBS / ENDS * ENDS_BLOCK),
        (&raw const chase_special_stubs, SPECIAL_STUBS * SPECIAL_STUB),
    ];
    tables.iter().any(|&(table, len)| address.wrapping_sub(table as usize) < len)
}

/// Has frames find their pads: before the first call.
pub(crate) fn connect_pads() {
    let distance = (&raw const chase_pads as usize).wrapping_sub(first_frame());
    PAD_DISTANCE.store(distance, Ordering::Relaxed);
}

/// Address of the first of all frames.
pub(crate) fn first_frame() -> usize {
    &raw const chase_frames as usize
}

/// The frame of the call that returns to `address`; `None` if that is none of ours.
pub(crate) fn frame_of(address: usize) -> Option<usize> {
    let offset = address.wrapping_sub(&raw const chase_pads as usize + PAD_CALL);
    (offset < FRAMES * FRAME && offset.is_multiple_of(FRAME)).then(|| first_frame() + offset)
}

/// Whether a call that returns to `address` is made from, or is a tail call of, a function that was called by us.
pub(crate) fn is_exit(address: usize) -> bool {
    frame_of(address).is_some()
}

/// Where a frame leads that is taken for left.
pub(crate) fn exit_of_left() -> usize {
    &raw const chase_exit_left as usize
}

/// Makes `target` the real function of `slot`. False if its stub leads to another one, and can't be changed:
/// it had one before. Called while there is one thread, or by who holds the lock of what is loaded.
pub(crate) fn set_target(slot: usize, target: usize) -> bool {
    if let Some(place) = TARGETS.get(slot) {
        place.store(target, Ordering::Relaxed);
    }
    direct::leads_to(slot, target) || {
        make_direct(slot..slot + 1);
        direct::leads_to(slot, target)
    }
}

/// The real function of `slot`; 0 if it has none.
pub(crate) fn target(slot: usize) -> usize {
    TARGETS.get(slot).map_or(0, |target| target.load(Ordering::Relaxed))
}
