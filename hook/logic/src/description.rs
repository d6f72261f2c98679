//! The description of an object and its slots in the recording, built in memory that the caller provides.

use bytemuck::{bytes_of, pod_read_unaligned};
use chase_format::layout::{ObjectRecord, Segment, SkipReason, SlotRecord};

use crate::elf::{
    Image, ImportVersions, PF_R, PF_W, PF_X, PT_LOAD, ProgramHeader, R_X86_64_GLOB_DAT,
    R_X86_64_JUMP_SLOT,
};

/// The maximum size of a description.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of segments.
    pub segments: usize,
    /// The number of relocations that may become slots.
    pub slots: usize,
    /// The bytes of all strings, each with its NUL.
    pub strings: usize,
}

impl Size {
    /// Returns the size that is enough for the object with this path.
    #[must_use]
    pub fn needed_for(image: &Image, path: &[u8]) -> Self {
        let mut size = Self {
            segments: image.program_headers().len(),
            slots: 0,
            strings: path.len() + image.soname().len() + 3,
        };
        let mut versions = ImportVersions::new(image);
        for relocation in image.relocations() {
            if matches!(relocation.kind(), R_X86_64_JUMP_SLOT | R_X86_64_GLOB_DAT)
                && relocation.symbol() != 0
            {
                size.slots += 1;
                let symbol = image.symbol(relocation.symbol());
                size.strings += image.name(symbol).len() + 1;
                let version = versions.wanted(relocation.symbol());
                size.strings += version.map_or(0, |version| version.name.len() + 1);
            }
        }
        size
    }

    /// Returns the bytes of memory for record, segments, slots and strings.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let segments = self.segments * size_of::<Segment>();
        size_of::<ObjectRecord>() + segments + self.slots * size_of::<SlotRecord>() + self.strings
    }
}

/// What is known of an object beside its slots and the numbers in its record.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// Its program headers.
    pub headers: &'a [ProgramHeader],
    /// The path as the dynamic linker knows it.
    pub path: &'a [u8],
    /// The name by which others need it; may be empty.
    pub soname: &'a [u8],
    /// The GNU build id; may be empty.
    pub build_id: &'a [u8],
}

/// A description under construction.
#[derive(Debug)]
pub struct Description<'m> {
    bytes: &'m mut [u8],
    record: ObjectRecord,
    slots_at: usize,
    /// Strings are collected behind the room for all slots, and moved once the number of slots is known.
    strings_at: usize,
    /// The bytes of the strings that are not of slots.
    own_strings: u32,
}

impl<'m> Description<'m> {
    /// Begins a description in as much memory as `size` says. Of the record, the caller sets the object's number, flags, bias,
    /// namespace, time of loading and first slot.
    #[must_use]
    pub fn new(
        bytes: &'m mut [u8],
        size: &Size,
        record: ObjectRecord,
        contents: &Contents<'_>,
    ) -> Self {
        let mut this = Self {
            bytes,
            record,
            slots_at: size_of::<ObjectRecord>(),
            strings_at: 0,
            own_strings: 0,
        };
        for header in contents.headers.iter().filter(|header| header.kind == PT_LOAD) {
            let flags = header.flags & (PF_R | PF_W | PF_X);
            let segment = Segment { svma: header.vaddr, len: header.memsz, flags, reserved: 0 };
            if this.write(this.slots_at, bytes_of(&segment)) {
                this.slots_at += size_of::<Segment>();
                this.record.segment_count += 1;
            }
        }
        this.strings_at = this.slots_at + size.slots * size_of::<SlotRecord>();
        this.string(b"");
        this.record.path_off = this.string(contents.path);
        this.record.soname_off = this.string(contents.soname);
        this.own_strings = this.record.strings_len;
        for (place, &byte) in this.record.build_id.iter_mut().zip(contents.build_id) {
            *place = byte;
            this.record.build_id_len += 1;
        }
        this
    }

    /// Begins again, without slots, and with another number for the first one.
    pub fn restart(&mut self, first_slot: u32) {
        self.record.first_slot = first_slot;
        (self.record.slot_count, self.record.strings_len) = (0, self.own_strings);
        self.record.skipped.fill(0);
    }

    /// Returns the record as it is so far.
    #[must_use]
    pub fn record(&self) -> &ObjectRecord {
        &self.record
    }

    /// Returns the number of the slot that is added next.
    #[must_use]
    pub fn next_slot(&self) -> usize {
        self.record.first_slot as usize + self.record.slot_count as usize
    }

    /// Counts an import that is not hooked.
    pub fn skip(&mut self, reason: SkipReason) {
        if let Some(count) = self.record.skipped.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Adds a slot with this name and version, which may be empty. Returns false if there is no room.
    pub fn push(&mut self, slot: SlotRecord, name: &[u8], version: &[u8]) -> bool {
        let at = self.slots_at + self.record.slot_count as usize * size_of::<SlotRecord>();
        if at + size_of::<SlotRecord>() > self.strings_at {
            return false;
        }
        let (name_off, version_off) = (self.string(name), self.string(version));
        let pushed = self.write(at, bytes_of(&SlotRecord { name_off, version_off, ..slot }));
        self.record.slot_count += u32::from(pushed);
        pushed
    }

    /// Whether the finished description `other` has the same slots in the same order: as many, with the same strings.
    #[must_use]
    pub fn is_like(&self, other: &[u8]) -> bool {
        let strings = self.bytes.get(self.strings_at..).unwrap_or(&[]);
        parts_of(other).is_some_and(|(record, _)| {
            let len = self.record.strings_len as usize;
            let others = other.len().checked_sub(len).and_then(|at| other.get(at..));
            record.slot_count == self.record.slot_count
                && record.strings_len == self.record.strings_len
                && others.is_some_and(|others| strings.get(..len) == Some(others))
        })
    }

    /// Completes the description, and returns it.
    #[must_use]
    pub fn finish(self) -> &'m [u8] {
        let Self { bytes, record, slots_at, strings_at, .. } = self;
        let place = slots_at + record.slot_count as usize * size_of::<SlotRecord>();
        let len = record.strings_len as usize;
        if let Some(end) = bytes.get_mut(place..strings_at + len)
            && let Some(strings) = end.len().checked_sub(len)
        {
            end.copy_within(strings.., 0);
        }
        if let Some(head) = bytes.first_chunk_mut::<{ size_of::<ObjectRecord>() }>() {
            head.copy_from_slice(bytes_of(&record));
        }
        bytes.get(..place + len).unwrap_or(&[])
    }

    /// Appends a string and returns its offset; 0, the empty string, if there is no room.
    fn string(&mut self, bytes: &[u8]) -> u32 {
        let offset = self.record.strings_len;
        if bytes.is_empty() && offset > 0 {
            return 0;
        }
        let at = self.strings_at + offset as usize;
        let Some(place) = self.bytes.get_mut(at..at + bytes.len() + 1) else { return 0 };
        if let Some((nul, place)) = place.split_last_mut() {
            place.copy_from_slice(bytes);
            *nul = 0;
        }
        self.record.strings_len += bytes.len() as u32 + 1;
        offset
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> bool {
        let place = self.bytes.get_mut(at..at + bytes.len());
        place.map(|place| place.copy_from_slice(bytes)).is_some()
    }
}

/// Returns the record and the slots of a finished description.
#[must_use]
pub fn parts_of(
    description: &[u8],
) -> Option<(ObjectRecord, impl Iterator<Item = SlotRecord> + use<'_>)> {
    let (record, rest) = description.split_first_chunk::<{ size_of::<ObjectRecord>() }>()?;
    let record: ObjectRecord = pod_read_unaligned(record);
    let (slots, _) = rest
        .get(record.segment_count as usize * size_of::<Segment>()..)?
        .as_chunks::<{ size_of::<SlotRecord>() }>();
    let slots = slots.iter().take(record.slot_count as usize);
    Some((record, slots.map(|slot| pod_read_unaligned(slot))))
}

/// Whether two finished descriptions are the same, except for the time of loading.
#[must_use]
pub fn is_unchanged(new: &[u8], old: &[u8]) -> bool {
    let (Some((new_record, _)), Some((old_record, _))) = (parts_of(new), parts_of(old)) else {
        return false;
    };
    let rest = size_of::<ObjectRecord>()..;
    new_record == (ObjectRecord { load_ticks: new_record.load_ticks, ..old_record })
        && new.get(rest.clone()) == old.get(rest)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const SIZE: Size = Size { segments: 2, slots: 3, strings: 64 };
    const HEADERS: [ProgramHeader; 2] = [header(PT_LOAD), header(PT_LOAD + 1)];
    const CONTENTS: Contents<'_> =
        Contents { headers: &HEADERS, path: b"/lib/a.so", soname: b"a.so", build_id: &[7; 20] };

    const fn header(kind: u32) -> ProgramHeader {
        ProgramHeader {
            kind,
            flags: PF_R | PF_X | 1 << 20,
            offset: 0,
            vaddr: 0x1000,
            paddr: 0,
            filesz: 0,
            memsz: 0x200,
            align: 0,
        }
    }

    fn record(load_ticks: u64) -> ObjectRecord {
        ObjectRecord { id: 3, bias: 0x7000, load_ticks, first_slot: 10, ..Default::default() }
    }

    fn slot(got_svma: u64) -> SlotRecord {
        SlotRecord { provider: 1, got_svma, ..Default::default() }
    }

    /// The finished description of an object that imports these names in version `V`.
    fn describe(names: &[&[u8]], contents: &Contents<'_>, load_ticks: u64) -> Vec<u8> {
        let mut memory = std::vec![0xff; SIZE.bytes()];
        let mut description = Description::new(&mut memory, &SIZE, record(load_ticks), contents);
        for (at, name) in names.iter().enumerate() {
            assert_eq!(description.next_slot(), 10 + at);
            assert!(description.push(slot(at as u64 * 8), name, b"V"));
        }
        description.skip(SkipReason::Late);
        description.finish().to_vec()
    }

    /// The string at this offset of a finished description.
    fn string(description: &[u8], offset: u32) -> &[u8] {
        let (record, _) = parts_of(description).unwrap();
        let strings = &description[description.len() - record.strings_len as usize..];
        strings[offset as usize..].split(|&byte| byte == 0).next().unwrap()
    }

    #[test]
    fn what_is_described_is_read_again() {
        let description = describe(&[b"read", b"write"], &CONTENTS, 5);
        let (found, slots) = parts_of(&description).unwrap();
        let slots: Vec<_> = slots.collect();
        assert_eq!((found.id, found.bias, found.load_ticks, found.first_slot), (3, 0x7000, 5, 10));
        assert_eq!((found.segment_count, found.slot_count), (1, 2));
        assert_eq!(found.skipped[SkipReason::Late as usize], 1);
        assert_eq!((&found.build_id[..20], found.build_id_len), (&[7; 20][..], 20));
        assert_eq!(string(&description, 0), b"");
        assert_eq!(string(&description, found.path_off), b"/lib/a.so");
        assert_eq!(string(&description, found.soname_off), b"a.so");
        for (at, name) in [&b"read"[..], b"write"].into_iter().enumerate() {
            assert_eq!((slots[at].got_svma, slots[at].provider), (at as u64 * 8, 1));
            assert_eq!(string(&description, slots[at].name_off), name);
            assert_eq!(string(&description, slots[at].version_off), b"V");
        }
        let segment = description[size_of::<ObjectRecord>()..].first_chunk().unwrap();
        let segment: Segment = pod_read_unaligned::<Segment>(segment as &[u8; 24]);
        assert_eq!((segment.svma, segment.len, segment.flags), (0x1000, 0x200, PF_R | PF_X));
    }

    #[test]
    fn without_slots_and_names_it_is_short() {
        let nothing = Contents { headers: &[], path: b"", soname: b"", build_id: b"" };
        let description = describe(&[], &nothing, 5);
        assert_eq!(description.len(), size_of::<ObjectRecord>() + 1);
        let (found, _) = parts_of(&description).unwrap();
        assert_eq!((found.path_off, found.soname_off, found.build_id_len), (0, 0, 0));
    }

    #[test]
    fn a_build_id_that_is_too_long_is_cut_off() {
        let description = describe(&[], &Contents { build_id: &[9; 40], ..CONTENTS }, 5);
        let (found, _) = parts_of(&description).unwrap();
        assert_eq!((found.build_id, found.build_id_len), ([9; 32], 32));
    }

    #[test]
    fn what_has_no_room_is_left_out() {
        let size = Size { segments: 1, slots: 1, strings: 16 };
        let mut memory = std::vec![0; size.bytes()];
        let mut description = Description::new(&mut memory, &size, record(0), &CONTENTS);
        // 1 + 10 + 5 bytes are in use.
        assert!(description.push(slot(0), b"n", b""));
        assert!(!description.push(slot(8), b"", b""));
        let description = description.finish();
        let (found, mut slots) = parts_of(description).unwrap();
        assert_eq!((found.slot_count, slots.next().unwrap().name_off), (1, 0));
        assert_eq!(string(description, found.soname_off), b"a.so");
        // Nor is there a panic if there is less memory than for the record alone.
        for len in 0..size.bytes() {
            let mut memory = std::vec![0; len];
            let mut description = Description::new(&mut memory, &size, record(0), &CONTENTS);
            description.push(slot(0), b"name", b"");
            assert!(description.finish().len() <= len);
        }
        assert!(parts_of(&[0; 12]).is_none());
    }

    #[test]
    fn like_another_are_the_same_names() {
        let old = describe(&[b"read", b"write"], &CONTENTS, 5);
        let is_like = |names: [&[u8]; 2]| {
            let mut memory = std::vec![0; SIZE.bytes()];
            let mut new = Description::new(&mut memory, &SIZE, record(9), &CONTENTS);
            names.iter().for_each(|name| assert!(new.push(slot(0x80), name, b"V")));
            new.is_like(&old)
        };
        assert!(is_like([b"read", b"write"]));
        assert!(!is_like([b"write", b"read"]));
        assert!(!is_like([b"read", b"writev"]));
        let mut memory = std::vec![0; SIZE.bytes()];
        let new = Description::new(&mut memory, &SIZE, record(9), &CONTENTS);
        assert!(!new.is_like(&old) && !new.is_like(&[]));
    }

    #[test]
    fn unchanged_is_all_but_the_time_of_loading() {
        let old = describe(&[b"read"], &CONTENTS, 5);
        assert!(is_unchanged(&describe(&[b"read"], &CONTENTS, 6), &old));
        assert!(!is_unchanged(&describe(&[b"pipe"], &CONTENTS, 5), &old));
        assert!(!is_unchanged(&describe(&[b"read", b"write"], &CONTENTS, 5), &old));
        let other = Contents { build_id: &[8; 20], ..CONTENTS };
        assert!(!is_unchanged(&describe(&[b"read"], &other, 5), &old));
        assert!(!is_unchanged(&old, &[]));
    }

    #[test]
    fn restarted_it_has_only_what_comes_after() {
        let mut memory = std::vec![0; SIZE.bytes()];
        let mut description = Description::new(&mut memory, &SIZE, record(5), &CONTENTS);
        assert!(description.push(slot(0x80), b"a_longer_name", b"V"));
        description.skip(SkipReason::Private);
        description.restart(20);
        assert!(description.push(slot(0), b"read", b"V"));
        description.skip(SkipReason::Late);
        let restarted = description.finish().to_vec();
        assert_eq!(parts_of(&restarted).unwrap().0.first_slot, 20);
        let mut expected = describe(&[b"read"], &CONTENTS, 5);
        let first_slot = core::mem::offset_of!(ObjectRecord, first_slot);
        expected[first_slot..first_slot + 4].copy_from_slice(&20_u32.to_ne_bytes());
        assert_eq!(restarted, expected);
    }
}
