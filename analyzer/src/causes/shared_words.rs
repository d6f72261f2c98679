//! Futexes in memory that processes share, each of which may have it at another address.

use std::collections::HashMap;

use chase_recorder::syscalls::{CauseRow as Recorded, OBJECT_NAME};

use crate::image::Image;

/// `futex(2)`.
pub(super) const FUTEX: u32 = 202;
/// Bit of a futex's operation: no other process waits for it.
const PRIVATE: u32 = 128;

/// A process, and an address there.
type Place = (usize, u64);

/// Where processes have the futexes that they share.
#[derive(Default)]
pub(super) struct SharedWords {
    /// In the first process that has it, by what it is.
    first: HashMap<[u8; OBJECT_NAME], Place>,
    /// What is there. (Of some waits that is not known: the memory map was being changed then.)
    names: HashMap<Place, [u8; OBJECT_NAME]>,
}

impl SharedWords {
    pub(super) fn new(images: &[Image]) -> Self {
        let mut this = Self::default();
        for (process, image) in images.iter().enumerate() {
            let Some(file) = &image.syscalls else { continue };
            for row in file.causes().filter(|row| may_be_shared(row) && is_named(row)) {
                this.first.entry(row.name).or_insert((process, row.object));
                this.names.insert((process, row.object), row.name);
            }
        }
        this
    }

    /// Returns where the first process has what is waited for, if processes share it.
    pub(super) fn first(&self, process: usize, row: &Recorded) -> Option<Place> {
        if !may_be_shared(row) {
            return None;
        }
        let name = match is_named(row) {
            true => &row.name,
            false => self.names.get(&(process, row.object))?,
        };
        self.first.get(name).copied()
    }
}

fn may_be_shared(row: &Recorded) -> bool {
    row.number == FUTEX && row.detail & PRIVATE == 0
}

fn is_named(row: &Recorded) -> bool {
    row.name[0] != 0
}
