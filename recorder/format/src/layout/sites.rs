//! Places from which imports are called, where contexts are told apart by them.

use bytemuck::{Pod, Zeroable};

/// [`SiteRecord::state`]: the record may be read.
pub const SITE_USED: u32 = 1;
/// Slots from this number on are places from which an import is called ([`SiteRecord`]).
pub const FIRST_SITE: u32 = 1 << 18;

/// An import, as called from one place. Its number takes the place of the import's in nodes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct SiteRecord {
    /// [`SITE_USED`] if it may be read.
    pub state: u32,
    /// Its number: [`FIRST_SITE`] or more.
    pub slot: u32,
    /// The import's own slot.
    pub import: u32,
    /// Padding.
    pub reserved: u32,
    /// The return address in this process.
    pub return_avma: u64,
    /// When it was first called, in ticks: the object at that address is the one that was loaded then.
    pub first_ticks: u64,
}

const _: () = assert!(size_of::<SiteRecord>() == 32);
