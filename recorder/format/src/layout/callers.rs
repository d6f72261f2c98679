//! Places from which sampled calls, and long ones, were made.

use bytemuck::{Pod, Zeroable};

/// The bit of [`CallerRow::node_ref`] that long calls have which are timed for themselves alone: `samples` is their number, and `calls`
/// how many ticks they took. (The longest recording has smaller references. Whoever doesn't know the bit finds no such node.)
pub const LONG_CALLS: u32 = 1 << 31;

/// The sampled calls of one context of a thread that return to the same address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct CallerRow {
    /// The context's node; 0: the row is not used.
    pub node_ref: u32,
    /// The number of samples.
    pub samples: u32,
    /// The return address in this process; 0 if calls were made by a jump from a function that had ended then (a tail
    /// call).
    pub return_avma: u64,
    /// The number of calls that the samples stand for.
    pub calls: u64,
    /// When the first of them was made, in ticks: the object at that address is the one that was loaded then.
    pub first_ticks: u64,
}

const _: () = assert!(size_of::<CallerRow>() == 32);
