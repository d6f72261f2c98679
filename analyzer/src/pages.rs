//! Limits how much memory a run of very many recordings takes.
//!
//! Recordings are mapped. Pages of a mapping that were read count as this process's memory until they are released,
//! though the kernel could reclaim them at any time. Each recording is read a few times, one after the other, and
//! released in between.

use std::sync::Arc;

use memmap2::{Mmap, UncheckedAdvice};

use crate::shelf::Shelved;

/// Where a recording's bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Pages {
    /// In allocated memory.
    Own,
    /// In a mapped file.
    File(Arc<Mmap>),
    /// In the shelf's mapping.
    Shelf(Shelved),
}

impl Pages {
    /// Releases its pages, which are loaded again on the next access.
    pub(crate) fn give_back(&self) {
        match self {
            Self::Own => {}
            // SAFETY: the mapping is of a file, read-only and shared, so later accesses find the same contents.
            Self::File(map) => drop(unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) }),
            Self::Shelf(shelved) => shelved.give_back(),
        }
    }
}
