//! Turns an object's relocations into slots: decides which imports are hooked, describes them in the recording, and
//! patches their entries.

mod description;
mod entries;
mod first_call;
mod imports;
mod originals;

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use chase_format::layout::{NONE, OBJECT_CHASE, OBJECT_DLOPENED, ObjectRecord, PAGE, SkipReason};

use self::description::{Description, Patch, Size, write_object};
use self::entries::{Entries, read_entry};
use self::imports::{Uses, Verdict, verdict_on};
use crate::abi::{SPECIAL_STUBS, STUBS};
use crate::objects::{Hashes, Object, Objects};
use crate::recording::Lost;
use crate::{arguments, images, recording, stubs, sys, traits};
use chase_logic::config::Config;
use chase_logic::elf::ImportVersions;
use chase_logic::kinds::Kind;

pub(crate) use self::description::write_object as write_description;
pub(crate) use self::first_call::watched_target;
pub(crate) use self::originals::{keep_originals, restore};

/// How many chunks an object gets for different load addresses, before the last is overwritten.
const MANY_LOADS: u32 = 16;

/// The slots of the process, and those of special functions.
pub(crate) struct Slots {
    count: usize,
    special_count: usize,
    /// The highest slot that has a special stub.
    last_special: u32,
}

/// Slot and kind of each special stub. They are stored before the stub is used.
#[unsafe(link_section = ".bss.large")]
static SPECIAL: [[AtomicU32; 2]; SPECIAL_STUBS] =
    [const { [const { AtomicU32::new(0) }; 2] }; SPECIAL_STUBS];

/// Returns the slot and kind of a special stub.
pub(crate) fn special_slot(number: usize) -> (u32, Kind) {
    SPECIAL.get(number).map_or((0, Kind::Alone), |[slot, kind]| {
        (slot.load(Ordering::Relaxed), Kind::from_number(kind.load(Ordering::Relaxed)))
    })
}

impl Slots {
    /// Slot 0 is reserved for [`crate::calibrate`].
    pub(crate) const fn new() -> Self {
        Self { count: 1, special_count: 0, last_special: 0 }
    }

    /// Returns the number of slots.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the first of the slots that are used from now on; the reserved one comes with the others.
    pub(crate) fn first_new(&self) -> usize {
        if self.count == 1 { 0 } else { self.count }
    }

    /// Describes object `id` in the recording and patches its slots. Returns false if another thread is still loading
    /// it. The caller holds the lock, has signals blocked and the vector state saved.
    pub(crate) fn hook(&mut self, objects: &mut Objects, id: u32, config: &Config) -> bool {
        let Some(object) = objects.get(id).copied() else { return true };
        if object.flags & OBJECT_DLOPENED != 0 && !images::is_relocated(&object.image) {
            return false;
        }
        objects.prepare_for(id);
        let size = Size::needed_for(&object);
        let capacity = size.capacity();
        let memory = sys::map_populated(capacity);
        if memory.is_null() {
            recording::unseen(Lost::Object);
            return true;
        }
        let describe = |first_slot| {
            let first_slot = if first_slot == NONE { self.count as u32 } else { first_slot };
            let mut description = Description::new(memory, &size, &object, id, first_slot);
            if object.flags & OBJECT_CHASE == 0 {
                self.describe_imports(objects, id, &object, config, &mut description);
            }
            description
        };
        let mut description = describe(object.first_slot);
        if object.first_slot != NONE && !description.is_like(object.description) {
            // A different object was loaded under the same name: the old slots keep their meaning.
            // SAFETY: the memory is ours.
            unsafe { ptr::write_bytes(memory, 0, capacity) };
            description = describe(NONE);
        }
        if description.not_ready {
            sys::unmap(memory, capacity);
            return false;
        }
        let len = description.finish();
        if description.is_unchanged(len, object.description) {
            // Same contents, same address: the description in the recording is valid again.
            let witness = self.patch(&object, &description);
            if let Some(object) = objects.get_mut(id) {
                object.reinstate(witness);
            }
            sys::unmap(memory, capacity);
            return true;
        }
        let record = record_description(&object, id, &description, memory, len);
        if let Some(object) = objects.get_mut(id) {
            let (old, old_len) = object.description;
            if old != 0 {
                sys::unmap(ptr::with_exposed_provenance_mut(old), old_len);
            }
            object.first_slot = if record.is_null() { NONE } else { description.first_slot };
            object.slot_count = description.slot_count as u32;
            object.described = true;
            object.chunks += 1;
            object.description = (memory as usize, len);
            object.record = record;
            object.witness = (0, 0);
        }
        if !record.is_null() {
            self.count = self.count.max(description.first_slot as usize + description.slot_count);
            let witness = self.patch(&object, &description);
            if let Some(object) = objects.get_mut(id) {
                object.witness = witness;
            }
        }
        // The patches behind the description are not needed any more.
        let kept = len.next_multiple_of(PAGE);
        if kept < capacity {
            sys::unmap(memory.wrapping_add(kept), capacity - kept);
        }
        true
    }

    /// Describes each import of an object that is hooked, or why it is not.
    fn describe_imports(
        &self,
        objects: &Objects,
        id: u32,
        object: &Object,
        config: &Config,
        description: &mut Description,
    ) {
        let uses = Uses::found_in(objects, object);
        let mut versions = ImportVersions::new(&object.image);
        let mut hashes = Hashes::NONE;
        for (at, relocation) in object.image.relocations().enumerate() {
            objects.look_ahead(&object.image, at, &mut hashes);
            match verdict_on(objects, id, relocation, config, &uses, &mut versions) {
                Verdict::Ignore => {}
                Verdict::NotReady => {
                    description.not_ready = true;
                    return;
                }
                Verdict::Skip(reason) => description.skip(reason),
                Verdict::Hook(import) => {
                    let slot = description.first_slot as usize + description.slot_count;
                    let special = import.kind != Kind::Ordinary;
                    if slot >= STUBS
                        || special
                            && self.special_count + description.special_count >= SPECIAL_STUBS
                    {
                        description.skip(SkipReason::NoStub);
                        recording::unseen(Lost::SlotWithoutStub);
                        continue;
                    }
                    description.special_count += usize::from(special);
                    description.push(&import, objects);
                }
            }
        }
    }

    fn special_stub(&mut self, slot: u32, kind: Kind) -> usize {
        let is_known = |&number: &usize| special_slot(number) == (slot, kind);
        let known =
            if slot > self.last_special { None } else { (0..self.special_count).find(is_known) };
        self.last_special = self.last_special.max(slot);
        let number = known.unwrap_or_else(|| {
            let number = self.special_count;
            if let Some([slot_of, kind_of]) = SPECIAL.get(number) {
                slot_of.store(slot, Ordering::Relaxed);
                kind_of.store(kind as u32, Ordering::Relaxed);
            }
            self.special_count += 1;
            number
        });
        stubs::special_stub(number)
    }

    /// Sets the targets of the slots, and stores the stubs' addresses in the GOT. Returns the address of one entry
    /// and what was stored there.
    fn patch(&mut self, object: &Object, description: &Description) -> (usize, usize) {
        let mut entries = Entries::new(object);
        let mut witness = (0, 0);
        for i in 0..description.slot_count {
            // SAFETY: `i` is a slot of the description.
            let Patch { got, real, kind, name, extent } = unsafe { *description.patches.add(i) };
            let slot = description.first_slot as usize + i;
            traits::describe(slot, name, kind != Kind::Ordinary, extent);
            arguments::describe(slot, name);
            if !stubs::set_target(slot, real) {
                recording::unseen(Lost::SlotWithoutStub);
                continue;
            }
            let stub = match kind {
                Kind::Ordinary => stubs::stub(slot),
                kind => self.special_stub(slot as u32, kind),
            };
            originals::keep(slot, read_entry(got));
            if !entries.store(got, stub) {
                recording::unseen(Lost::Object);
                break;
            }
            witness = (got, stub);
        }
        witness
    }
}

/// Writes an object's description, `len` bytes at `memory`, into the recording; returns its record, null if there is no room.
fn record_description(
    object: &Object,
    id: u32,
    description: &Description,
    memory: *mut u8,
    len: usize,
) -> *mut ObjectRecord {
    let alike = len == object.description.1 && description.first_slot == object.first_slot;
    if alike && object.chunks >= MANY_LOADS && !object.record.is_null() {
        // The program loads and unloads it over and over: keep only the latest address.
        // SAFETY: the record is in the mapping, followed by the rest of a description of the same length.
        unsafe { ptr::copy_nonoverlapping(memory, object.record.cast(), len) };
        return object.record;
    }
    // SAFETY: the caller's memory is that long.
    write_object(unsafe { core::slice::from_raw_parts(memory, len) }, id)
}
