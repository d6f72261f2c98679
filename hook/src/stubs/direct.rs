//! Makes stubs jump straight to the real function.
//!
//! For the processor, a jump through the table of targets is as much work as the rest of a stub. But targets are only
//! known once the program runs, and code is never writable. So stubs are copied to other memory and changed there;
//! the copy is made executable, and replaces the library's pages in one step: a thread sees either the old stub or
//! the new one. Where this is forbidden, or the function is too far away, the stub stays as it is.

use core::ops::Range;
use core::ptr;

use chase_format::layout::PAGE;

use super::{chase_stubs, target};
use crate::abi::{NEAR, STUB, STUBS, TARGETS};
use crate::arch::words_are_near;
use crate::sys;
use chase_logic::jump::{self, Jump};

/// Offset of the jump in the stubs of the first slots, and in others (`stubs.S`).
const NEAR_JUMP: usize = 15;
const FAR_JUMP: usize = 23;

/// Makes the jumps of these stubs direct, where possible. Called while there is only one thread, or with the lock of
/// what is loaded held.
pub(crate) fn make_direct(slots: Range<usize>) {
    if !words_are_near() || sys::is_confined() {
        return;
    }
    let changes = || {
        slots.clone().filter_map(|slot| {
            let (at, wanted) = (jump_of(slot), wanted(slot)?);
            (read(at) != wanted).then_some((at, wanted))
        })
    };
    if changes().next().is_none() {
        return;
    }
    let stub = |slot| &raw const chase_stubs as usize + slot * STUB;
    let start = stub(slots.start) & !(PAGE - 1);
    let len = stub(slots.end).next_multiple_of(PAGE) - start;
    let copy = sys::map_movable(len);
    if copy.is_null() {
        return;
    }
    // SAFETY: the table of stubs begins and ends at page boundaries; the memory is ours, and of the same length.
    unsafe {
        ptr::copy_nonoverlapping(ptr::with_exposed_provenance(start), copy, len);
        for (at, wanted) in changes() {
            copy.add(at - start).cast::<Jump>().write_unaligned(wanted);
        }
    }
    let executable = libc::PROT_READ | libc::PROT_EXEC;
    if sys::protect(copy as usize, len, executable).is_err()
        || sys::move_mapping(copy, len, start).is_err()
    {
        sys::unmap(copy, len);
    }
}

/// Whether the stub of `slot` jumps to `target`, provided that the table has that target.
pub(super) fn leads_to(slot: usize, target: usize) -> bool {
    let at = jump_of(slot);
    slot >= STUBS || jump::destination(at, read(at)).is_none_or(|to| to == target)
}

/// Returns the address of a stub's jump.
fn jump_of(slot: usize) -> usize {
    let place = if slot < NEAR { NEAR_JUMP } else { FAR_JUMP };
    &raw const chase_stubs as usize + slot * STUB + place
}

fn read(at: usize) -> Jump {
    // SAFETY: a stub's jump is at this address.
    unsafe { ptr::with_exposed_provenance::<Jump>(at).read_unaligned() }
}

/// Returns the jump that a stub should have; `None` if it has no target yet.
fn wanted(slot: usize) -> Option<Jump> {
    let target = Some(target(slot)).filter(|&target| target != 0)?;
    jump::to(jump_of(slot), target, TARGETS.get(slot)?.as_ptr() as usize)
}
