//! Calls that were seen in windows: only in files of older versions.

use bytemuck::{Pod, Zeroable};

/// [`TwinRecord::state`]: the record may be read.
pub const TWIN_USED: u32 = 1;

/// A slot whose calls were seen in windows alone.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct TwinRecord {
    /// [`TWIN_USED`] if it may be read.
    pub state: u32,
    /// Number of the slot; none of an object's.
    pub slot: u32,
    /// The import's own slot.
    pub of: u32,
    /// Windows that were closed.
    pub windows: u32,
    /// How long they were open.
    pub on_ns: u64,
    /// Pauses between windows: time in which the process worked.
    pub off_ns: u64,
    /// Pauses that no window came after: CPU time of the process.
    pub unseen_ns: u64,
    /// What the writer made of it to estimate the calls in pauses.
    pub unused: [u64; 11],
}
