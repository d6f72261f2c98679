//! Where a recording is mapped.
//!
//! It grows in place, since contexts are referred to by address. The address range is not reserved, since
//! reservations count where the application limits or locks its memory. So the recording needs a place with room
//! behind it that nobody else uses. Programs and their run-time systems request addresses far from where the kernel
//! puts mappings by itself, and sanitizers take almost all of those. But everyone must leave room for the kernel to
//! map libraries and large blocks, which it does downwards from a random address: nobody can request addresses there
//! except by chance. Recordings are placed below, so far away that few programs ever map as much.

use super::LARGEST;
use crate::{stubs, sys};

/// The distance below this library, which is where the kernel maps things. `ThreadSanitizer` keeps an application's
/// libraries in the uppermost 1.5 TB, of which the kernel leaves up to 1 TB free.
const DISTANCE: usize = 256 << 30;

/// Returns the place for the process's first recording. (If the kernel maps upwards, everything is above it.)
pub(super) fn first() -> usize {
    stubs::stub(0).saturating_sub(DISTANCE) & !(LARGEST - 1)
}

/// Returns the place for a fork's child, whose parent's recording is at `parent`: with room for the longest
/// recording.
pub(super) fn beneath(parent: usize) -> usize {
    parent.saturating_sub(LARGEST)
}

/// Returns another place with enough room, if that is not free.
pub(super) fn other() -> Option<usize> {
    let place = sys::map_nothing(LARGEST).ok()?;
    sys::unmap(place, LARGEST);
    Some(place as usize)
}
