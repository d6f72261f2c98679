//! Arguments of calls: how much was to be read, allocated, waited for.

use bytemuck::{Pod, Zeroable};

use super::UNIT;

/// The number of buckets for values: the first has 0, the nth after it has 2^(n-1) to 2^n - 1; the last one also has
/// everything larger.
pub const ARGUMENT_BUCKETS: usize = 40;
/// How many calls a long row keeps with their durations.
pub const ARGUMENT_PAIRS: usize = 16;
/// How many calls a short row keeps with their durations.
pub const ARGUMENT_SHORT_PAIRS: usize = 4;

/// [`ArgumentHead::meaning`]: bytes.
pub const ARGUMENT_BYTES: u16 = 0;
/// [`ArgumentHead::meaning`]: a number of items.
pub const ARGUMENT_ITEMS: u16 = 1;
/// [`ArgumentHead::meaning`]: how long to wait at most, in ms; negative: without limit.
pub const ARGUMENT_MS: u16 = 2;
/// [`ArgumentHead::meaning`]: like [`ARGUMENT_MS`], in µs.
pub const ARGUMENT_US: u16 = 3;
/// [`ArgumentHead::meaning`]: like [`ARGUMENT_MS`], in s.
pub const ARGUMENT_S: u16 = 4;
/// [`ArgumentHead::meaning`]: a level, such as of compression.
pub const ARGUMENT_LEVEL: u16 = 5;

/// A call: the value of its argument, and its duration.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ArgumentPair {
    /// The argument's value.
    pub value: u64,
    /// The duration in ticks, including the hook's inside cost; 0 until the call has returned.
    pub ticks: u64,
}

/// The values of an argument, or of the product of two, in the timed calls of one context of a thread, as recorded
/// when calls began. A row is short at first: it ends after [`ArgumentHead::SHORT`] units, and has the pairs of its
/// first calls in place of the buckets. With more calls, a long row replaces it.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct ArgumentRow {
    /// The common part of long and short rows.
    pub head: ArgumentHead,
    /// Calls by the value of their argument, each with its weight. Calls with a negative argument are not included.
    pub buckets: [u64; ARGUMENT_BUCKETS],
    /// A selection of the calls, in which each is with about the same probability.
    pub pairs: [ArgumentPair; ARGUMENT_PAIRS],
}

/// A short row.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct ShortArgumentRow {
    /// As in a long row.
    pub head: ArgumentHead,
    /// The first calls.
    pub pairs: [ArgumentPair; ARGUMENT_SHORT_PAIRS],
}

/// The common part of rows of arguments.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ArgumentHead {
    /// The context's node.
    pub node_ref: u32,
    /// Length of the row: [`ArgumentHead::SHORT`] or [`ArgumentHead::LONG`].
    pub units: u16,
    /// The meaning of the value, and its unit: `ARGUMENT_*`.
    pub meaning: u16,
    /// In a short row, the long row that has replaced it; 0: none.
    pub longer_ref: u32,
    /// How many calls the fast path records before the next that is kept with its duration.
    pub until_kept: u32,
    /// The number of timed calls.
    pub calls: u64,
    /// The number of calls that they stand for: Σ w.
    pub weight: u64,
    /// Σ w·value, without negative values.
    pub sum: u64,
    /// The largest value.
    pub max: u64,
    /// Calls whose value was negative, each with its weight: no limit, a default, or as long as it takes.
    pub negative: u64,
    /// Reserved.
    pub reserved: u64,
}

impl ArgumentHead {
    /// [`ArgumentHead::units`] of a short row.
    pub const SHORT: u16 = 1;
    /// [`ArgumentHead::units`] of a long row.
    pub const LONG: u16 = 5;
}

/// Returns the bucket of a value.
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
