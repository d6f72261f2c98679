//! Turns of event loops.

use bytemuck::{Pod, Zeroable};

use super::BUCKETS;
#[cfg(doc)]
use super::{SyscallsHeader, bucket_end_ns};

/// [`TurnsRow::descriptor`]: the waits were not `epoll_wait`s.
pub const NO_DESCRIPTOR: u32 = u32::MAX;

/// Turns of at least this duration have a [`LongTurnRow`].
pub const LONG_TURN_NS: u64 = 10_000_000;

/// The turns of one thread in one loop.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct TurnsRow {
    /// The context of its latest wait: a node in the recording; 0 for none.
    pub context_ref: u32,
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// The descriptor that the loop waits with by `epoll_wait`, or [`NO_DESCRIPTOR`] for other waits.
    pub descriptor: u32,
    /// Padding.
    pub reserved: u32,
    /// The number of waits that have begun.
    pub waits: u64,
    /// Their total time.
    pub waited_ns: u64,
    /// The number of turns. What precedes the first wait is none.
    pub turns: u64,
    /// Their total time.
    pub total_ns: u64,
    /// The time of the longest.
    pub max_ns: u64,
    /// The part of the total in which the thread waited for something.
    pub blocked_ns: u64,
    /// The part of the total in which it was ready to run, but others ran.
    pub preempted_ns: u64,
    /// The number of turns of at least [`LONG_TURN_NS`].
    pub long_turns: u64,
    /// Their total time.
    pub long_ns: u64,
    /// Turns by duration; see [`bucket_end_ns`].
    pub histogram: [u64; BUCKETS],
}

/// One turn, of [`LONG_TURN_NS`] or more.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct LongTurnRow {
    /// Thread id in the process's own pid namespace.
    pub tid: u32,
    /// As in its [`TurnsRow`].
    pub descriptor: u32,
    /// The number of descriptors that were ready when it was over, as the next wait says if it did not have to wait.
    pub ready: u32,
    /// The number of descriptors that were ready when it began.
    pub begun_with: u32,
    /// When it began, `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// When it was over.
    pub end_ns: u64,
    /// The part in which the thread waited for something.
    pub blocked_ns: u64,
    /// The part in which it was ready to run, but others ran.
    pub preempted_ns: u64,
}

const _: () = {
    assert!(size_of::<TurnsRow>() == 344);
    assert!(size_of::<LongTurnRow>() == 48);
};
