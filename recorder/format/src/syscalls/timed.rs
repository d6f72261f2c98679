//! When samples were taken.

use bytemuck::{Pod, Zeroable};

#[cfg(doc)]
use super::SampleRow;

/// When a sample was taken.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct TimedSampleRow {
    /// The time, `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// What the sample found: the index among the file's [`SampleRow`]s, in their order.
    pub row: u32,
    /// How many samples it stands for: at that time, one of so many was noted.
    pub stands_for: u16,
    /// 1 if it was in the kernel.
    pub in_kernel: u16,
}

const _: () = assert!(size_of::<TimedSampleRow>() == 16);
