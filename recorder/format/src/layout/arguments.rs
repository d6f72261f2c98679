//! What arguments of calls say: how much was to be read, allocated, waited for.

use bytemuck::{Pod, Zeroable};

use super::UNIT;

/// Buckets of values: 0 is in the first, and 2^(n-1) to 2^n - 1 in the nth after it; the last one has all that is larger.
pub const ARGUMENT_BUCKETS: usize = 40;
/// Calls kept with their durations, in a row of either length.
pub const ARGUMENT_PAIRS: usize = 16;
/// Likewise in a short one.
pub const ARGUMENT_SHORT_PAIRS: usize = 4;

/// [`ArgumentRow::meaning`]: bytes.
pub const ARGUMENT_BYTES: u16 = 0;
/// [`ArgumentRow::meaning`]: how many of something.
pub const ARGUMENT_ITEMS: u16 = 1;
/// [`ArgumentRow::meaning`]: how long to wait at most, in ms. None where it is negative: as long as it takes.
pub const ARGUMENT_MS: u16 = 2;
/// [`ArgumentRow::meaning`]: as [`ARGUMENT_MS`], in µs.
pub const ARGUMENT_US: u16 = 3;
/// [`ArgumentRow::meaning`]: as [`ARGUMENT_MS`], in s.
pub const ARGUMENT_S: u16 = 4;
/// [`ArgumentRow::meaning`]: a level, such as of compression.
pub const ARGUMENT_LEVEL: u16 = 5;

/// A call: the value of its argument, and its duration.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ArgumentPair {
    /// What the argument was.
    pub value: u64,
    /// The duration in ticks, the hook's inside cost included; 0 until the call has returned.
    pub ticks: u64,
}

/// What one argument, or the product of two, was in the timed calls of one context of a thread. It is noted as a call
/// begins. A row is short at first: it ends after [`ArgumentHead::SHORT`] units, and has the pairs of its first
/// calls in the place of the buckets. With more calls it is continued by a long one, which has all.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct ArgumentRow {
    /// What rows of both lengths begin with.
    pub head: ArgumentHead,
    /// Calls by the value of their argument, each with its weight. Without those whose argument was negative.
    pub buckets: [u64; ARGUMENT_BUCKETS],
    /// Some of the calls, each with the same chance, about.
    pub pairs: [ArgumentPair; ARGUMENT_PAIRS],
}

/// A short row.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct ShortArgumentRow {
    /// As of a long one.
    pub head: ArgumentHead,
    /// The first calls.
    pub pairs: [ArgumentPair; ARGUMENT_SHORT_PAIRS],
}

/// What rows of arguments begin with.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ArgumentHead {
    /// The context's node.
    pub node_ref: u32,
    /// Length of the row: [`ArgumentHead::SHORT`] or [`ArgumentHead::LONG`].
    pub units: u16,
    /// What the value is, and in which unit: `ARGUMENT_*`.
    pub meaning: u16,
    /// Of a short row, the long one that has taken its place; 0: none.
    pub longer_ref: u32,
    /// How many calls the fast path notes before one that is kept with its duration.
    pub until_kept: u32,
    /// Timed calls.
    pub calls: u64,
    /// Calls that they stand for: Σ w.
    pub weight: u64,
    /// Σ w·value, without those whose value is negative.
    pub sum: u64,
    /// The largest value.
    pub max: u64,
    /// Calls whose value was negative, each with its weight: none, a default, as long as it takes.
    pub negative: u64,
    /// Room for more.
    pub reserved: u64,
}

impl ArgumentHead {
    /// [`ArgumentHead::units`] of a short row.
    pub const SHORT: u16 = 1;
    /// [`ArgumentHead::units`] of a long row.
    pub const LONG: u16 = 5;
}

/// The bucket of a value.
#[must_use]
#[inline]
pub const fn argument_bucket(value: u64) -> usize {
    let bits = (u64::BITS - value.leading_zeros()) as usize;
    if bits < ARGUMENT_BUCKETS { bits } else { ARGUMENT_BUCKETS - 1 }
}

const _: () = {
    assert!(size_of::<ArgumentHead>() == 64);
    assert!(size_of::<ArgumentRow>() == ArgumentHead::LONG as usize * UNIT);
    assert!(size_of::<ShortArgumentRow>() == ArgumentHead::SHORT as usize * UNIT);
    assert!(argument_bucket(0) == 0 && argument_bucket(1) == 1 && argument_bucket(3) == 2);
    assert!(argument_bucket(u64::MAX) == ARGUMENT_BUCKETS - 1);
};
