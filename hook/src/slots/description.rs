//! The description of an object and its slots for the recording, and the list of patches.

use core::ptr;

use chase_format::layout::{ChunkKind, ObjectRecord, Segment, SkipReason, SlotRecord};

use super::imports::Import;
use crate::objects::{Object, Objects};
use crate::traits::Extent;
use crate::{clock, recording};
use chase_logic::elf::{ImportVersions, PF_R, PT_LOAD, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT};
use chase_logic::kinds::Kind;

/// Writes a description to the recording; returns its record, or null if there is no room.
pub(crate) fn write_object(contents: &[u8], id: u32) -> *mut ObjectRecord {
    let chunk = recording::write(ChunkKind::Object, id, contents, 1);
    chunk.map_or(ptr::null_mut(), |chunk| chunk.contents().cast())
}

/// The patch of a GOT entry.
#[derive(Clone, Copy)]
pub(super) struct Patch {
    pub(super) got: usize,
    pub(super) real: usize,
    pub(super) kind: Kind,
    pub(super) name: &'static [u8],
    pub(super) extent: Extent,
}

/// An object's chunk under construction, with the list of patches behind it.
pub(super) struct Description {
    pub(super) memory: *mut u8,
    pub(super) slots: *mut SlotRecord,
    pub(super) strings: *mut u8,
    pub(super) strings_len: usize,
    pub(super) strings_capacity: usize,
    pub(super) patches: *mut Patch,
    pub(super) special_count: usize,
    pub(super) first_slot: u32,
    pub(super) slot_count: usize,
    pub(super) bias: usize,
    /// Whether there is an import that the dynamic linker has not written yet.
    pub(super) not_ready: bool,
}

/// Returns the parts of a finished description: the record, the slots, and where the strings begin.
///
/// # Safety
/// An object's description is at `address`: these are never freed while they are referred to.
pub(super) unsafe fn parts_of(
    address: usize,
) -> (&'static ObjectRecord, &'static [SlotRecord], *const u8) {
    let record: *const ObjectRecord = ptr::with_exposed_provenance(address);
    // SAFETY: it begins with the record, which is followed by segments, slots and strings.
    unsafe {
        let slots = record.add(1).cast::<Segment>().add((*record).segment_count as usize).cast();
        let slots = core::slice::from_raw_parts(slots, (*record).slot_count as usize);
        (&*record, slots, slots.as_ptr_range().end.cast())
    }
}

/// The maximum size of a description.
pub(super) struct Size {
    segments: usize,
    /// The number of relocations that may become slots.
    slots: usize,
    /// The bytes of all strings, each with its NUL.
    strings: usize,
}

impl Size {
    pub(super) fn needed_for(object: &Object) -> Self {
        let image = &object.image;
        let mut size = Self {
            segments: image.program_headers().len(),
            slots: 0,
            strings: object.path.len() + object.image.soname().len() + 3,
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

    /// Returns the bytes of memory for record, segments, slots, strings and patches.
    pub(super) fn capacity(&self) -> usize {
        let segments = self.segments * size_of::<Segment>();
        let per_slot = size_of::<SlotRecord>() + size_of::<Patch>();
        size_of::<ObjectRecord>() + segments + self.slots * per_slot + self.strings + 64
    }
}

impl Description {
    /// Whether the description at `other` has the same slots in the same order: as many, with the same strings.
    pub(super) fn is_like(&self, (other, _len): (usize, usize)) -> bool {
        if other == 0 {
            return false;
        }
        // SAFETY: an object's description is at that address.
        unsafe {
            let (record, slots, strings) = parts_of(other);
            slots.len() == self.slot_count
                && record.strings_len as usize == self.strings_len
                && core::slice::from_raw_parts(strings, self.strings_len)
                    == core::slice::from_raw_parts(self.strings.cast_const(), self.strings_len)
        }
    }

    /// Begins a description, in as much zeroed memory as `size` says.
    pub(super) fn new(
        memory: *mut u8,
        size: &Size,
        object: &Object,
        id: u32,
        first_slot: u32,
    ) -> Self {
        let image = &object.image;
        let mut segment_count = 0;
        // SAFETY: the memory is ours; the parts are laid out one after another.
        unsafe {
            let segments = memory.add(size_of::<ObjectRecord>()).cast::<Segment>();
            for header in image.program_headers().iter().filter(|header| header.kind == PT_LOAD) {
                *segments.add(segment_count) = Segment {
                    svma: header.vaddr,
                    len: header.memsz,
                    flags: header.flags & (PF_R | 3),
                    reserved: 0,
                };
                segment_count += 1;
            }
            let slots = segments.add(segment_count).cast::<SlotRecord>();
            let patches_at = memory as usize + size.capacity() - size.slots * size_of::<Patch>();
            let mut this = Self {
                memory,
                slots,
                strings: ptr::null_mut(),
                strings_len: 0,
                strings_capacity: size.strings + 1,
                patches: (patches_at & !7) as *mut Patch,
                special_count: 0,
                first_slot,
                slot_count: 0,
                bias: image.bias(),
                not_ready: false,
            };
            // Strings are collected behind the room for all slots, and moved once the number of slots is known.
            this.strings = slots.add(size.slots).cast();
            this.string(b"");
            let path_off = this.string(object.path);
            let soname_off = this.string(image.soname());
            let build_id = image.build_id();
            let record = memory.cast::<ObjectRecord>();
            (*record).id = id;
            (*record).flags = object.flags;
            (*record).bias = image.bias() as u64;
            (*record).load_ticks = clock::now();
            (*record).first_slot = first_slot;
            (*record).segment_count = segment_count as u32;
            (*record).path_off = path_off;
            (*record).soname_off = soname_off;
            (*record).namespace = object.namespace;
            let len = build_id.len().min((*record).build_id.len());
            (*record).build_id_len = len as u32;
            ptr::copy_nonoverlapping(build_id.as_ptr(), (&raw mut (*record).build_id).cast(), len);
            this
        }
    }

    fn record(&mut self) -> &mut ObjectRecord {
        // SAFETY: the memory begins with the record.
        unsafe { &mut *self.memory.cast() }
    }

    pub(super) fn skip(&mut self, reason: SkipReason) {
        if let Some(count) = self.record().skipped.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Appends a string and returns its offset; 0, the empty string, if there is no room.
    fn string(&mut self, bytes: &[u8]) -> u32 {
        if self.strings_len + bytes.len() + 1 > self.strings_capacity
            || bytes.is_empty() && self.strings_len > 0
        {
            return 0;
        }
        let offset = self.strings_len;
        // SAFETY: there is room for the bytes and their NUL, which is there already.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.strings.add(offset), bytes.len()) };
        self.strings_len += bytes.len() + 1;
        offset as u32
    }

    pub(super) fn push(&mut self, import: &Import, objects: &Objects) {
        let name_off = self.string(import.name);
        let version_off = import.version.map_or(0, |version| self.string(version.name));
        let provider_bias =
            objects.get(import.provider).map_or(0, |provider| provider.image.bias());
        let slot = SlotRecord {
            name_off,
            version_off,
            provider: import.provider,
            class: import.kind.class() as u16,
            kind: import.relocation,
            got_svma: import.got.wrapping_sub(self.bias) as u64,
            target_svma: import.real.wrapping_sub(provider_bias) as u64,
        };
        // SAFETY: there is room for as many slots and patches as there are relocations.
        unsafe {
            *self.slots.add(self.slot_count) = slot;
            *self.patches.add(self.slot_count) = Patch {
                got: import.got,
                real: import.real,
                kind: import.kind,
                name: import.name,
                extent: import.extent,
            };
        }
        self.slot_count += 1;
    }

    /// Whether the finished description, of `len` bytes, is the same as the one at `other`, except for the time of
    /// loading.
    pub(super) fn is_unchanged(&mut self, len: usize, (other, other_len): (usize, usize)) -> bool {
        if other == 0 || len != other_len {
            return false;
        }
        // SAFETY: descriptions are never freed while they are referred to, and begin with a record.
        let before = unsafe { (*(other as *const ObjectRecord)).load_ticks };
        let now = core::mem::replace(&mut self.record().load_ticks, before);
        // SAFETY: both are `len` bytes.
        let same = unsafe {
            core::slice::from_raw_parts(self.memory.cast_const(), len)
                == core::slice::from_raw_parts(other as *const u8, len)
        };
        self.record().load_ticks = now;
        same
    }

    /// Moves the strings to their place behind the slots; returns the length of the description.
    pub(super) fn finish(&mut self) -> usize {
        // SAFETY: that place is not behind the one where the strings are now.
        unsafe {
            let place = self.slots.add(self.slot_count).cast::<u8>();
            ptr::copy(self.strings, place, self.strings_len);
            let (slot_count, strings_len) = (self.slot_count as u32, self.strings_len as u32);
            let record = self.record();
            record.slot_count = slot_count;
            record.strings_len = strings_len;
            place.add(self.strings_len) as usize - self.memory as usize
        }
    }
}
