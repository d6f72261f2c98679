//! Events: single calls, and marks set by the application.

use bytemuck::{Pod, Zeroable};

/// [`EventRecord::kind`]: a call.
pub const EVENT_CALL: u8 = 1;
/// [`EventRecord::kind`]: the application called `chase_mark`.
pub const EVENT_MARK: u8 = 2;

/// The beginning of a chunk of events; [`EventRecord`]s follow, up to the chunk's end.
///
/// A thread has several such chunks, each at least as large as the one before. They are filled in order. When there is
/// no room for another, either the oldest events are overwritten, or the latest are not recorded. Chunks of an ended
/// thread may be reused by other threads, in any order.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct EventsHead {
    /// In one of the thread's chunks: the number of events that were not recorded.
    pub lost: u64,
    /// For the writer's own use after the end of the thread.
    pub reserved: [u64; 3],
}

/// One event. It may be overwritten at any moment: its number is zeroed before and stored last, and
/// [`check`](Self::check) shows whether it is consistent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct EventRecord {
    /// When it began.
    pub start_ticks: u64,
    /// How long it took, including the hook's inside cost; 0 for a mark.
    pub ticks: u64,
    /// For a call, its context's node; for a mark, the number of its name plus 1, or 0 if there was no room for the
    /// name.
    pub subject: u32,
    /// `EVENT_*`; 0: the place is empty.
    pub kind: u8,
    /// Padding.
    pub reserved: u8,
    /// Must be [`check_of`](Self::check_of) the other fields.
    pub check: u16,
    /// Number of the event among those of its thread, from 1; 0: the place is empty, or being written.
    pub number: u64,
}

impl EventRecord {
    /// Factor of [`number`](Self::number) in [`check_of`](Self::check_of): 2^64 divided by the golden ratio.
    pub const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Computes [`check`](Self::check) from the other fields.
    #[must_use]
    pub const fn check_of(&self) -> u16 {
        let mixed = self.start_ticks
            ^ self.ticks.rotate_left(21)
            ^ ((self.subject as u64) << 8 | self.kind as u64).rotate_left(42)
            ^ self.number.wrapping_mul(Self::MIX);
        let folded = mixed ^ mixed >> 32;
        (folded ^ folded >> 16) as u16
    }

    /// The words that are stored in the place of an event, perhaps over another one, in this order: each word's index, and its
    /// value. A reader that comes in between finds the number 0, or that the check is wrong.
    #[must_use]
    #[inline]
    pub const fn stores(&self) -> [(usize, u64); 5] {
        const NUMBER: usize = core::mem::offset_of!(EventRecord, number) / 8;
        let kind = (self.check as u64) << 48 | (self.reserved as u64) << 40;
        let what = kind | (self.kind as u64) << 32 | self.subject as u64;
        [(NUMBER, 0), (0, self.start_ticks), (1, self.ticks), (2, what), (NUMBER, self.number)]
    }
}

/// Size in bytes of [`MarkName::name`].
pub const MARK_NAME: usize = 120;

/// The name of a mark. Names are numbered from 0, in the order in which they are in the file.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct MarkName {
    /// 1 if it is readable, stored last.
    pub state: u32,
    /// Length of the name in bytes.
    pub len: u32,
    /// UTF-8, cut off if it is longer.
    pub name: [u8; MARK_NAME],
}
