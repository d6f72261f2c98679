//! Where a recording is mapped.
//!
//! It grows where it is, since contexts are referred to by address, and nothing is reserved for that:
//! what is reserved counts where the application limits or locks its memory. So it needs a place with
//! room behind it that nobody else wants. Programs and their run-time systems ask for addresses far
//! from where the kernel puts things by itself, and sanitizers keep almost all of those for themselves.
//! But all must leave room to the kernel for libraries and large blocks, and it begins with these at a
//! random place: nobody can ask for an address there but by chance. The kernel goes down from there,
//! and recordings are beneath, so far that few programs ever map as much.

use super::LARGEST;
use crate::{stubs, sys};

/// How far beneath this library, which the kernel has put where it puts things. `ThreadSanitizer` has
/// an application's libraries in the uppermost 1.5 TB, of which the kernel leaves up to 1 TB free.
const DISTANCE: usize = 256 << 30;

/// For the process's first recording. (Where the kernel goes up, all that it maps is above.)
pub(super) fn first() -> usize {
    stubs::stub(0).saturating_sub(DISTANCE) & !(LARGEST - 1)
}

/// For a fork's child, whose parent has its recording at `parent`: there is room for the longest.
pub(super) fn beneath(parent: usize) -> usize {
    parent.saturating_sub(LARGEST)
}

/// If that is not free: where there is as much room now.
pub(super) fn other() -> Option<usize> {
    let place = sys::map_nothing(LARGEST).ok()?;
    sys::unmap(place, LARGEST);
    Some(place as usize)
}
