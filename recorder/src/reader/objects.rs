//! Objects and their slots.

use std::borrow::Cow;

use super::chunks::Chunk;
use super::{Problem, pod_at, text};
use crate::layout::{ObjectRecord, Segment, SlotClass, SlotRecord, UNIT};

/// Longer strings are cut, so that a damaged file can't make each of many slots cost all of it.
const MAX_STRING: usize = 64 << 10;

/// Where the objects are.
#[derive(Debug, Default)]
pub(super) struct ObjectIndex {
    entries: Vec<Entry>,
    /// Entries by object number, then by place.
    by_id: Vec<u32>,
    /// Entries that have slots, by number of the first one, then by place.
    by_slot: Vec<u32>,
}

/// An object record and the numbers of its parts that are there.
#[derive(Clone, Copy, Debug)]
struct Entry {
    offset: usize,
    end: usize,
    id: u32,
    first_slot: u32,
    segments: u32,
    slots: u32,
}

impl ObjectIndex {
    pub(super) fn new<'c>(
        bytes: &[u8],
        chunks: impl Iterator<Item = &'c Chunk>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut entries: Vec<_> =
            chunks.filter_map(|chunk| Entry::new(bytes, chunk, problems)).collect();
        entries.shrink_to_fit();
        let mut by_id: Vec<u32> = (0..entries.len() as u32).collect();
        let mut by_slot = by_id.clone();
        by_id.sort_by_key(|&at| entries[at as usize].id);
        by_slot.retain(|&at| entries[at as usize].slots > 0);
        by_slot.sort_by_key(|&at| entries[at as usize].first_slot);
        Self { by_id, by_slot, entries }
    }

    pub(super) fn iter<'r>(&'r self, bytes: &'r [u8]) -> impl ExactSizeIterator<Item = Object<'r>> {
        self.entries.iter().map(|entry| entry.view(bytes))
    }

    pub(super) fn get<'r>(&'r self, bytes: &'r [u8], id: u32) -> Option<Object<'r>> {
        let end = self.by_id.partition_point(|&at| self.entries[at as usize].id <= id);
        let at = self.by_id[..end].last()?;
        let entry = &self.entries[*at as usize];
        (entry.id == id).then(|| entry.view(bytes))
    }

    pub(super) fn slot<'r>(&'r self, bytes: &'r [u8], number: u32) -> Option<Slot<'r>> {
        let end =
            self.by_slot.partition_point(|&at| self.entries[at as usize].first_slot <= number);
        let at = self.by_slot[..end].last()?;
        self.entries[*at as usize].view(bytes).slot(number)
    }
}

impl Entry {
    fn new(bytes: &[u8], chunk: &Chunk, problems: &mut Vec<Problem>) -> Option<Self> {
        let offset = chunk.offset + UNIT;
        let end = chunk.offset + chunk.len;
        let mut fit = |what, claimed: u32, from: usize, size: usize| {
            let room = (end.saturating_sub(from) / size).min(u32::MAX as usize) as u32;
            if claimed > room {
                problems.push(Problem::Count {
                    offset: chunk.offset as u64,
                    what,
                    found: claimed.into(),
                    room: room.into(),
                });
            }
            claimed.min(room)
        };
        let after_record = offset + size_of::<ObjectRecord>();
        if fit("object records", 1, offset, size_of::<ObjectRecord>()) == 0 {
            return None;
        }
        let record: ObjectRecord = pod_at(bytes, offset)?;
        let segments = fit("segments", record.segment_count, after_record, size_of::<Segment>());
        let slots_at = after_record + segments as usize * size_of::<Segment>();
        let slots = fit("slots", record.slot_count, slots_at, size_of::<SlotRecord>());
        let strings_at = slots_at + slots as usize * size_of::<SlotRecord>();
        fit("bytes of strings", record.strings_len, strings_at, 1);
        Some(Self { offset, end, id: record.id, first_slot: record.first_slot, segments, slots })
    }

    fn view<'r>(&self, bytes: &'r [u8]) -> Object<'r> {
        // The index holds only entries whose record was read at this place.
        let record: ObjectRecord =
            pod_at(bytes, self.offset).unwrap_or_else(bytemuck::Zeroable::zeroed);
        let rest = &bytes[self.offset + size_of::<ObjectRecord>()..self.end];
        let (segments, rest) = rest.split_at(self.segments as usize * size_of::<Segment>());
        let (slots, rest) = rest.split_at(self.slots as usize * size_of::<SlotRecord>());
        let strings = &rest[..rest.len().min(record.strings_len as usize)];
        Object { record, segments, slots, strings }
    }
}

/// A loaded ELF file.
#[derive(Clone, Copy, Debug)]
pub struct Object<'r> {
    record: ObjectRecord,
    segments: &'r [u8],
    slots: &'r [u8],
    strings: &'r [u8],
}

impl<'r> Object<'r> {
    /// The record as it stands in the file.
    #[must_use]
    pub fn record(&self) -> &ObjectRecord {
        &self.record
    }

    /// Path as the dynamic linker knows it.
    #[must_use]
    pub fn path(&self) -> Cow<'r, str> {
        self.string(self.record.path_off)
    }

    /// `DT_SONAME`, or empty.
    #[must_use]
    pub fn soname(&self) -> Cow<'r, str> {
        self.string(self.record.soname_off)
    }

    /// GNU build id; empty when the file has none.
    #[must_use]
    pub fn build_id(&self) -> &[u8] {
        let id = &self.record.build_id;
        &id[..id.len().min(self.record.build_id_len as usize)]
    }

    /// Loaded segments.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = Segment> + use<'r> {
        self.segments.chunks_exact(size_of::<Segment>()).map(bytemuck::pod_read_unaligned)
    }

    /// Its imports, by number.
    pub fn slots(&self) -> impl Iterator<Item = Slot<'r>> + use<'r> {
        let object = *self;
        let count = (self.slots.len() / size_of::<SlotRecord>()) as u32;
        (0..count).filter_map(move |at| object.slot(object.record.first_slot.checked_add(at)?))
    }

    fn slot(&self, number: u32) -> Option<Slot<'r>> {
        let at = number.checked_sub(self.record.first_slot)? as usize;
        let record = pod_at(self.slots, at.checked_mul(size_of::<SlotRecord>())?)?;
        Some(Slot { number, importer: self.record.id, record, strings: self.strings })
    }

    fn string(&self, offset: u32) -> Cow<'r, str> {
        string(self.strings, offset)
    }
}

/// One import of one object.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'r> {
    /// Its number, unique in the recording.
    pub number: u32,
    /// Number of the object that imports.
    pub importer: u32,
    record: SlotRecord,
    strings: &'r [u8],
}

impl<'r> Slot<'r> {
    /// The record as it stands in the file.
    #[must_use]
    pub fn record(&self) -> &SlotRecord {
        &self.record
    }

    /// Symbol name, as in the symbol table.
    #[must_use]
    pub fn name(&self) -> Cow<'r, str> {
        string(self.strings, self.record.name_off)
    }

    /// Symbol version, or empty.
    #[must_use]
    pub fn version(&self) -> Cow<'r, str> {
        string(self.strings, self.record.version_off)
    }

    /// How its calls are treated; a class that this version does not know counts as
    /// [`SlotClass::Sometimes`], of which least is assumed.
    #[must_use]
    pub fn class(&self) -> SlotClass {
        match self.record.class {
            0 => SlotClass::Timed,
            1 => SlotClass::Counted,
            _ => SlotClass::Sometimes,
        }
    }
}

fn string(strings: &[u8], offset: u32) -> Cow<'_, str> {
    let rest = strings.get(offset as usize..).unwrap_or_default();
    text(&rest[..rest.len().min(MAX_STRING)])
}
