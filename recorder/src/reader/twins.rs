//! Slots whose calls were seen in windows alone, in recordings of older versions.

use super::chunks::Chunk;
use super::pod_at;
use crate::layout::{TWIN_USED, TwinRecord, UNIT};

/// All twins, by number of their slot.
#[derive(Debug, Default)]
pub(super) struct TwinIndex {
    twins: Vec<TwinRecord>,
    /// Slots of which some calls are in no figure, by number: imports, and their twins.
    incomplete: Vec<u32>,
}

impl TwinIndex {
    pub(super) fn new<'c>(bytes: &[u8], chunks: impl Iterator<Item = &'c Chunk>) -> Self {
        let mut twins: Vec<TwinRecord> = chunks
            .flat_map(|chunk| (chunk.offset + UNIT..chunk.offset + chunk.len).step_by(UNIT))
            .filter_map(|offset| pod_at(bytes, offset))
            .filter(|twin: &TwinRecord| twin.state == TWIN_USED)
            .collect();
        twins.sort_by_key(|twin| twin.slot);
        let mut incomplete: Vec<u32> = twins
            .iter()
            .filter(|twin| twin.off_ns > 0 || twin.unseen_ns > 0)
            .flat_map(|twin| [twin.slot, twin.import])
            .collect();
        incomplete.sort_unstable();
        Self { twins, incomplete }
    }

    /// The import that the slot is a twin of.
    pub(super) fn import_of(&self, slot: u32) -> Option<u32> {
        let at = self.twins.binary_search_by_key(&slot, |twin| twin.slot).ok()?;
        Some(self.twins[at].import)
    }

    /// Whether there were times in which nothing was seen of the slot.
    pub(super) fn is_incomplete(&self, slot: u32) -> bool {
        self.incomplete.binary_search(&slot).is_ok()
    }

    /// Whether there were times in which nothing was seen of some import.
    pub(super) fn have_pauses(&self) -> bool {
        !self.incomplete.is_empty()
    }
}
