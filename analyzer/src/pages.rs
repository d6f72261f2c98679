//! What of a run of very many recordings is in memory.
//!
//! Recordings are mapped, and pages of a mapping that were looked at count as this process's memory until they are given back, though
//! the system could take them at any time. Each recording is looked at a few times, one after the other; so it is given back in between.

use std::sync::Arc;

use memmap2::{Mmap, UncheckedAdvice};

use crate::shelf::Shelved;

/// Where a recording's bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Pages {
    /// In memory of this process's own.
    Own,
    /// In a file that is mapped.
    File(Arc<Mmap>),
    /// On the shelf.
    Shelf(Shelved),
}

impl Pages {
    /// Gives back what is in memory, until it is looked at again.
    pub(crate) fn give_back(&self) {
        match self {
            Self::Own => {}
            // SAFETY: the mapping is of a file, read only and shared: who looks again finds the same.
            Self::File(map) => drop(unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) }),
            Self::Shelf(shelved) => shelved.give_back(),
        }
    }
}
