//! Single calls and marks, with their times.

use std::borrow::Cow;

use super::chunks::Chunk;
use super::{Bytes, pod_at};
use crate::layout::{EVENT_CALL, EVENT_MARK, EventRecord, EventsHead, MarkName, UNIT};

/// What is kept of a thread's events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// In the order in which they were written: of calls, that of their ends.
    pub events: Vec<EventRecord>,
    /// How many were there and are not any more, because later ones are in their place.
    pub overwritten: u64,
    /// How many were just being written, or are damaged.
    pub torn: u64,
    /// How many found no room.
    pub lost: u64,
}

/// Where the events of all threads are.
#[derive(Debug, Default)]
pub(super) struct EventIndex {
    /// By thread, and for each in the order of the file.
    chunks: Vec<Chunk>,
    marks: Vec<usize>,
}

impl EventIndex {
    pub(super) fn new<'c>(
        bytes: &[u8],
        events: impl Iterator<Item = &'c Chunk>,
        marks: impl Iterator<Item = &'c Chunk>,
    ) -> Self {
        let mut chunks: Vec<Chunk> = events.copied().collect();
        chunks.sort_by_key(|chunk| chunk.owner);
        let marks = marks
            .flat_map(|chunk| {
                (chunk.offset + UNIT..chunk.offset + chunk.len).step_by(size_of::<MarkName>())
            })
            .filter(|&offset| pod_at::<u32>(bytes, offset) == Some(1))
            .collect();
        Self { chunks, marks }
    }

    /// Returns the events of a thread. Numbers increase by one, so those missing below the highest were overwritten; an
    /// incomplete event counts as one of them, unless nothing else is missing.
    pub(super) fn of_thread(&self, bytes: &Bytes<'_>, thread: u32) -> Events {
        let first = self.chunks.partition_point(|chunk| chunk.owner < thread);
        let own = self.chunks[first..].iter().take_while(|chunk| chunk.owner == thread);
        let mut found = Events::default();
        for chunk in own {
            let contents = chunk.contents(bytes);
            let head: EventsHead = pod_at(contents, 0).unwrap_or_default();
            found.lost = found.lost.saturating_add(head.lost);
            let places = (contents.len() / size_of::<EventRecord>()).max(1);
            for place in 1..places {
                let record: EventRecord =
                    pod_at(contents, place * size_of::<EventRecord>()).unwrap_or_default();
                if record.kind == 0 && record.number == 0 {
                    continue;
                }
                let is_known = matches!(record.kind, EVENT_CALL | EVENT_MARK);
                if record.number != 0 && is_known && record.check == record.check_of() {
                    found.events.push(record);
                } else {
                    found.torn += 1;
                }
            }
        }
        found.events.sort_unstable_by_key(|event| event.number);
        found.events.dedup_by_key(|event| event.number);
        let written = found.events.last().map_or(0, |last| last.number);
        found.overwritten =
            written.saturating_sub(found.events.len() as u64).saturating_sub(found.torn);
        found
    }

    /// The name of a mark, by the subject of its event.
    pub(super) fn mark<'b>(&self, bytes: &'b Bytes<'_>, subject: u32) -> Option<Cow<'b, str>> {
        let offset = *self.marks.get((subject as usize).checked_sub(1)?)?;
        let record = bytes.get(offset..offset.checked_add(size_of::<MarkName>())?)?;
        let len = pod_at::<MarkName>(record, 0)?.len as usize;
        const BEFORE: usize = std::mem::offset_of!(MarkName, name);
        record[BEFORE..].get(..len).map(String::from_utf8_lossy)
    }
}
