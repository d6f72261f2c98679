//! What happened when: single calls, and marks by the application.

use bytemuck::{Pod, Zeroable};

/// [`EventRecord::kind`]: a call.
pub const EVENT_CALL: u8 = 1;
/// [`EventRecord::kind`]: the application called `chase_mark`.
pub const EVENT_MARK: u8 = 2;

/// What the contents of a chunk of events begin with; [`EventRecord`]s follow, up to its end.
///
/// A thread has several such chunks, each at least as large as the one before. They are filled in order. Once there is no
/// room for another, either the oldest events are overwritten, or the latest are not written.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct EventsHead {
    /// In the thread's first chunk: events that were not written.
    pub lost: u64,
    /// Padding.
    pub reserved: [u64; 3],
}

/// One event. It may be overwritten at any moment: its number is zeroed before and stored last, and [`check`](Self::check)
/// tells what is whole.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct EventRecord {
    /// When it began.
    pub start_ticks: u64,
    /// How long it took, the hook's inside cost included; 0 of a mark.
    pub ticks: u64,
    /// Of a call, its context's node; of a mark, the number of its name plus 1, or 0 if there was no room for that.
    pub of: u32,
    /// `EVENT_*`; 0: the place is empty.
    pub kind: u8,
    /// Padding.
    pub reserved: u8,
    /// [`check_of`](Self::check_of) the rest.
    pub check: u16,
    /// Number of the event among those of its thread, from 1 on; 0: nothing is here, or not all of it.
    pub number: u64,
}

impl EventRecord {
    /// What [`check`](Self::check) must be.
    #[must_use]
    pub const fn check_of(&self) -> u16 {
        let mixed = self.start_ticks
            ^ self.ticks.rotate_left(21)
            ^ ((self.of as u64) << 8 | self.kind as u64).rotate_left(42)
            ^ self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let folded = mixed ^ mixed >> 32;
        (folded ^ folded >> 16) as u16
    }
}

/// Bytes of [`MarkName::name`].
pub const MARK_NAME: usize = 120;

/// The name of a mark. They are numbered from 0 on, in the order in which they are in the file.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct MarkName {
    /// 1 if it is readable, stored last.
    pub state: u32,
    /// Bytes of the name.
    pub len: u32,
    /// UTF-8, cut if it is longer.
    pub name: [u8; MARK_NAME],
}
