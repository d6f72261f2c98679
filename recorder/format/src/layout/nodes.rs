//! Contexts, samples, and windows of calls.

use bytemuck::{Pod, Zeroable};

use crate::histogram::PAGES;

/// One context of one thread; the hook's fast path updates it in place.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Node {
    /// Node in whose scope the call was made.
    pub parent_ref: u32,
    /// Slot that was called, with [`INHERITED`](super::INHERITED) where it applies, or [`ROOT_SLOT`](super::ROOT_SLOT).
    pub slot: u32,
    /// Calls begun.
    pub calls: u64,
    /// Ticks of the calls completed, the hook's inside cost included.
    pub total_ticks: u64,
    /// Longest completed call, inside cost included.
    pub max_ticks: u64,
    /// Start of the latest call.
    pub last_start_ticks: u64,
    /// Node in whose scope callees are looked up: itself, or an ancestor where recursion folds.
    pub scope_ref: u32,
    /// Calls that ended but are in no histogram: left by an exception, a longjmp or a cancellation,
    /// or suspended on another stack (or completed when the recording had no room for a page). Their time is in `total_ticks`.
    pub unwound: u32,
    /// Histogram pages, each [`PAGE_BUCKETS`](crate::histogram::PAGE_BUCKETS) × u64. A page is taken
    /// when its first duration arrives, so the one taken first (in the earliest chunk, and the
    /// last one there) counts the first call.
    pub page_refs: [u32; PAGES],
}

/// What is known of sampled calls, behind the [`Node`] of their context. The fields of one may be
/// one call apart.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Samples {
    /// Calls made since the latest sample of the (thread, slot), less those that it stands for and
    /// that were not made yet; 0 in all of its contexts but that of the latest sample.
    pub adjust: i32,
    /// [`SAMPLES_SLOT`](super::SAMPLES_SLOT), in the place of [`Node::slot`].
    pub slot: u32,
    /// Samples begun.
    pub begun: u32,
    /// Samples that returned.
    pub ended: u32,
    /// Σ w over the samples that returned.
    pub weight: u64,
    /// Σ w·(w − 1) over them.
    pub pairs: u64,
    /// Σ w·(w − 1)·x over them, x in ticks.
    pub pairs_ticks: u64,
    /// Σ w·(w − 1)·x² over them, in units of [`SQUARES`](super::SQUARES) ticks²; it saturates. With the mean m, the
    /// estimated variance of the total is at most Σ w·(w − 1)·(x − m)² (one random call of each
    /// block of w, after Horvitz and Thompson).
    pub pairs_squares: u64,
    /// Histogram pages, with weights for counts.
    pub page_refs: [u32; PAGES],
}

/// The longest block of a (thread, slot) that was called so often: so few calls are missing where a process
/// is killed. With a budget it is [`LONGEST_COUNTDOWN`], and before version 7 also where calls are only counted.
#[must_use]
pub const fn longest_block(calls: u64) -> u64 {
    const FIRST: u64 = 256;
    const EVER: u64 = 4096;
    const PART: u64 = 128;
    match calls / PART {
        ..FIRST => FIRST,
        part @ FIRST..EVER => part,
        EVER.. => EVER,
    }
}

/// Most calls from one that takes the slow path to the next.
pub const LONGEST_COUNTDOWN: u64 = i16::MAX as u64;
