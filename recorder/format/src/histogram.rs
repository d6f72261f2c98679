//! Log-linear buckets for durations (the idea of HdrHistogram).
//!
//! There are eight linear sub-buckets per power of two. So the width of a bucket is at most 12.5 % of its values, and
//! its middle is at most 6.25 % from any value in it. Below [`LINEAR_LIMIT`] ticks, buckets are [`LINEAR_WIDTH`]
//! ticks wide: finer than the resolution of a pair of clock reads. Buckets are stored in pages of [`PAGE_BUCKETS`]
//! (two powers of two), each allocated when its first value arrives.
//!
//! The hook's assembly computes `bucket_of` with the same constants; chase-tests compares each recording's buckets
//! with its sums and longest calls.

/// log2 of the number of sub-buckets per power of two.
pub const SUB_BITS: u32 = 3;
/// Exponent of the first power of two with buckets of its own; smaller values share its formula.
pub const MIN_EXPONENT: u32 = 5;
/// Below this many ticks the buckets have a fixed width.
pub const LINEAR_LIMIT: u64 = 1 << MIN_EXPONENT;
/// Width in ticks of the buckets below [`LINEAR_LIMIT`].
pub const LINEAR_WIDTH: u64 = 1 << (MIN_EXPONENT - SUB_BITS);
/// Buckets per page: two powers of two.
pub const PAGE_BUCKETS: usize = 16;
/// Pages per node.
pub const PAGES: usize = 20;
/// Buckets per node.
pub const BUCKETS: usize = PAGES * PAGE_BUCKETS;
/// Values with at least this exponent (half an hour and more) are counted in the last bucket; sums and maxima stay
/// exact.
pub const MAX_EXPONENT: u32 = MIN_EXPONENT - 1 + (BUCKETS as u32 >> SUB_BITS) - 1;

/// Returns the bucket of a duration of `ticks`.
#[must_use]
#[inline(always)]
pub const fn bucket_of(ticks: u64) -> usize {
    let exponent = (ticks | LINEAR_LIMIT).ilog2();
    if exponent > MAX_EXPONENT {
        return BUCKETS - 1;
    }
    let octave = ((exponent - MIN_EXPONENT) << SUB_BITS) as usize;
    octave + (ticks >> (exponent - SUB_BITS)) as usize
}

/// Returns the first value of `bucket`, in ticks. For [`BUCKETS`], this is the end of the last bucket.
#[must_use]
pub const fn bucket_start(bucket: usize) -> u64 {
    let sub = 1 << SUB_BITS;
    if bucket < 2 * sub {
        return bucket as u64 * LINEAR_WIDTH;
    }
    let octave = (bucket >> SUB_BITS) as u32 - 1;
    let mantissa = (sub + (bucket & (sub - 1))) as u64;
    mantissa << (octave + MIN_EXPONENT - SUB_BITS)
}

/// Returns the value that represents all of `bucket`: its middle, in ticks.
#[must_use]
pub const fn bucket_middle(bucket: usize) -> u64 {
    let start = bucket_start(bucket);
    start + (bucket_start(bucket + 1) - start) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_the_range() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(bucket_start(bucket)), bucket);
            assert_eq!(bucket_of(bucket_start(bucket + 1) - 1), bucket);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket_start(BUCKETS), 1 << (MAX_EXPONENT + 1));
    }

    #[test]
    fn middles_are_within_the_promised_error() {
        let mut ticks = LINEAR_LIMIT;
        while ticks < 1 << MAX_EXPONENT {
            let middle = bucket_middle(bucket_of(ticks));
            assert!(middle.abs_diff(ticks) * 10_000 <= ticks * 625, "{ticks} -> {middle}");
            ticks += ticks / 97 + 1;
        }
    }
}
