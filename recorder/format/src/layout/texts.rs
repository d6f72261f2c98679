//! Texts that calls were passed: paths and names of hosts.

use bytemuck::{Pod, Zeroable};

use super::UNIT;

/// [`ArgumentHead::meaning`](super::ArgumentHead::meaning): the path of a file. From here on, the row has no values.
pub const ARGUMENT_PATH: u16 = 6;
/// [`ArgumentHead::meaning`](super::ArgumentHead::meaning): the name of a host.
pub const ARGUMENT_HOST: u16 = 7;

/// The maximum length of a text that is kept, in bytes: of a longer one, its end.
pub const TEXT_BYTES: usize = 216;
/// The maximum number of texts of a context.
pub const TEXTS: usize = 8;
/// The length of a [`TextRow`] in [`UNIT`]s.
pub const TEXT_UNITS: usize = size_of::<TextRow>() / UNIT;

/// The calls of one context of a thread that took long and were passed the same text.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct TextRow {
    /// The context's node.
    pub node_ref: u32,
    /// The context's next row; 0: none.
    pub next_ref: u32,
    /// The number of calls.
    pub calls: u64,
    /// Their total time in ticks, including the hook's inside cost.
    pub ticks: u64,
    /// The time of the longest.
    pub max_ticks: u64,
    /// The length of the text as kept. It is 0 while the text is being replaced.
    pub len: u16,
    /// 1 if the text was longer.
    pub is_cut: u16,
    /// Padding.
    pub reserved: u32,
    /// The text, or the end of it.
    pub text: [u8; TEXT_BYTES],
}

const _: () = assert!(size_of::<TextRow>() == 2 * UNIT && TEXT_UNITS == 2);
