//! Nodes of contexts, and data of samples.

use bytemuck::{Pod, Zeroable};

use crate::histogram::PAGES;

/// A context of a thread; the hook's fast path updates it in place.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Node {
    /// The node in whose scope the call was made.
    pub parent_ref: u32,
    /// The slot that was called, perhaps with [`INHERITED`](super::INHERITED), or [`ROOT_SLOT`](super::ROOT_SLOT).
    pub slot: u32,
    /// The number of calls begun.
    pub calls: u64,
    /// Ticks of the completed calls, including the hook's inside cost.
    pub total_ticks: u64,
    /// Ticks of the longest completed call, including the inside cost.
    pub max_ticks: u64,
    /// Start of the latest call.
    pub last_start_ticks: u64,
    /// The node in whose scope callees are looked up: itself, or an ancestor where recursion is folded.
    pub scope_ref: u32,
    /// Calls that ended but are in no histogram: abandoned by an exception, a longjmp or a cancellation, or suspended
    /// on another stack (or completed when the recording had no room for a page). Their time is in `total_ticks`.
    pub unwound: u32,
    /// Histogram pages, each [`PAGE_BUCKETS`](crate::histogram::PAGE_BUCKETS) × u64. A page is allocated when its
    /// first duration arrives, so the page allocated first (in the earliest chunk, and the last one there) counts the
    /// first call.
    pub page_refs: [u32; PAGES],
}

impl Node {
    /// All zeros.
    pub const EMPTY: Self = Self {
        parent_ref: 0,
        slot: 0,
        calls: 0,
        total_ticks: 0,
        max_ticks: 0,
        last_start_ticks: 0,
        scope_ref: 0,
        unwound: 0,
        page_refs: [0; PAGES],
    };
}

/// Data of sampled calls, behind the [`Node`] of their context. The fields may be one call apart.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Samples {
    /// Calls made since the latest sample of the (thread, slot), minus those that the sample stands for and that were
    /// not made yet; 0 in all of its contexts except that of the latest sample.
    pub adjust: i32,
    /// [`SAMPLES_SLOT`](super::SAMPLES_SLOT), in the place of [`Node::slot`].
    pub slot: u32,
    /// The number of samples begun.
    pub begun: u32,
    /// The number of samples that returned.
    pub ended: u32,
    /// Σ w over the samples that returned.
    pub weight: u64,
    /// Σ w·(w − 1) over them.
    pub pairs: u64,
    /// Σ w·(w − 1)·x over them, x in ticks.
    pub pairs_ticks: u64,
    /// Σ w·(w − 1)·x² over them, in units of [`SQUARES`](super::SQUARES) ticks², saturating. With the mean m, the
    /// estimated variance of the total is at most Σ w·(w − 1)·(x − m)² (one random call of each block of w; Horvitz
    /// and Thompson).
    pub pairs_squares: u64,
    /// Histogram pages, with weights for counts.
    pub page_refs: [u32; PAGES],
}

/// Returns the longest block of a (thread, slot) with this many calls: an upper bound of the calls that are missing
/// if the process is killed. Before version 7, it is [`LONGEST_COUNTDOWN`] where calls are only counted, and in any
/// file with a budget.
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

/// The maximum number of calls from one that takes the slow path to the next.
pub const LONGEST_COUNTDOWN: u64 = i16::MAX as u64;
