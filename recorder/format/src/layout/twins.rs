//! Calls that were only seen in windows: in files of older versions.

use bytemuck::{Pod, Zeroable};

/// [`TwinRecord::state`]: the record may be read.
pub const TWIN_USED: u32 = 1;

/// A slot whose calls were only seen in windows.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct TwinRecord {
    /// [`TWIN_USED`] if it may be read.
    pub state: u32,
    /// Number of the slot, which belongs to no object.
    pub slot: u32,
    /// The import's own slot.
    pub import: u32,
    /// The number of closed windows.
    pub windows: u32,
    /// How long windows were open.
    pub on_ns: u64,
    /// Pauses between windows: time in which the process ran.
    pub off_ns: u64,
    /// Pauses after the last window: CPU time of the process.
    pub unseen_ns: u64,
    /// The writer's data for estimating the calls in pauses.
    pub unused: [u64; 11],
}
