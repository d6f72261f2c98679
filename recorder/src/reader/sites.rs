//! Places from which imports were called, where contexts are told apart by them.

use super::chunks::Chunk;
use super::pod_at;
use crate::layout::{FIRST_SITE, SITE_USED, SiteRecord, UNIT};

/// All places, by number.
#[derive(Debug, Default)]
pub(super) struct SiteIndex {
    sites: Vec<SiteRecord>,
}

impl SiteIndex {
    pub(super) fn new<'c>(bytes: &[u8], chunks: impl Iterator<Item = &'c Chunk>) -> Self {
        const SIZE: usize = size_of::<SiteRecord>();
        let mut sites: Vec<SiteRecord> = chunks
            .flat_map(|chunk| (chunk.offset + UNIT..chunk.offset + chunk.len).step_by(SIZE))
            .filter_map(|offset| pod_at(bytes, offset))
            .filter(|site: &SiteRecord| {
                site.state == SITE_USED && site.slot >= FIRST_SITE && site.import < FIRST_SITE
            })
            .collect();
        sites.sort_by_key(|site| site.slot);
        Self { sites }
    }

    /// The place with this number.
    pub(super) fn get(&self, slot: u32) -> Option<&SiteRecord> {
        let at = self.sites.binary_search_by_key(&slot, |site| site.slot).ok()?;
        self.sites.get(at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }
}
