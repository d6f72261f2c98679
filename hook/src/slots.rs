//! Turns an object's relocations into slots: decides which imports are hooked, describes them in the recording, and
//! patches their entries.

mod entries;
mod first_call;
mod imports;
mod memory;
mod originals;

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use chase_format::layout::{
    ChunkKind, NONE, OBJECT_CHASE, OBJECT_DLOPENED, ObjectRecord, SkipReason, SlotRecord,
};

use self::entries::{Entries, read_entry};
use self::imports::{Import, Uses, Verdict, verdict_on};
use self::memory::{Memory, Patches};
use crate::abi::{SPECIAL_STUBS, STUBS};
use crate::arch::prefetch;
use crate::objects::{Object, Objects};
use crate::recording::Lost;
use crate::{arguments, clock, images, recording, stubs, traits};
use chase_logic::config::Config;
use chase_logic::description::{Contents, Description, Size, is_unchanged};
use chase_logic::elf::ImportVersions;
use chase_logic::kinds::Kind;
use chase_logic::scopes::Hashes;

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
        let size = Size::needed_for(&object.image, object.path);
        let Some(mut memory) = Memory::map(&size) else {
            recording::unseen(Lost::Object);
            return true;
        };
        let (bytes, mut patches) = memory.parts();
        let record = ObjectRecord {
            id,
            flags: object.flags,
            bias: object.image.bias() as u64,
            load_ticks: clock::now(),
            first_slot: if object.first_slot == NONE {
                self.count as u32
            } else {
                object.first_slot
            },
            namespace: object.namespace,
            ..ObjectRecord::default()
        };
        let contents = Contents {
            headers: object.image.program_headers(),
            path: object.path,
            soname: object.image.soname(),
            build_id: object.image.build_id(),
        };
        let mut description = Description::new(bytes, &size, record, &contents);
        let mut is_ready =
            self.describe_imports(objects, id, &object, config, &mut description, &mut patches);
        if object.first_slot != NONE && !description.is_like(object.description()) {
            // A different object was loaded under the same name: the old slots keep their meaning.
            description.restart(self.count as u32);
            patches.clear();
            is_ready =
                self.describe_imports(objects, id, &object, config, &mut description, &mut patches);
        }
        if !is_ready {
            memory.keep(0);
            return false;
        }
        let ObjectRecord { first_slot, slot_count, .. } = *description.record();
        let contents = description.finish();
        if is_unchanged(contents, object.description()) {
            // Same contents, same address: the description in the recording is valid again.
            let witness = self.patch(&object, first_slot, patches.all());
            if let Some(object) = objects.get_mut(id) {
                object.reinstate(witness);
            }
            memory.keep(0);
            return true;
        }
        let record = record_description(&object, id, first_slot, contents);
        let place = (contents.as_ptr().expose_provenance(), contents.len());
        let mut witness = (0, 0);
        if !record.is_null() {
            self.count = self.count.max((first_slot + slot_count) as usize);
            witness = self.patch(&object, first_slot, patches.all());
        }
        // The patches behind the description are not needed any more.
        memory.keep(place.1);
        if let Some(object) = objects.get_mut(id) {
            object.first_slot = if record.is_null() { NONE } else { first_slot };
            object.slot_count = slot_count;
            object.described = true;
            object.chunks += 1;
            object.replace_description(place);
            object.record = record;
            object.witness = witness;
        }
        true
    }

    /// Describes each import of an object that is hooked, or why it is not. Returns false if there is one that the dynamic
    /// linker has not written yet.
    fn describe_imports(
        &self,
        objects: &Objects,
        id: u32,
        object: &Object,
        config: &Config,
        description: &mut Description<'_>,
        patches: &mut Patches<'_>,
    ) -> bool {
        if object.flags & OBJECT_CHASE != 0 {
            return true;
        }
        let uses = Uses::found_in(objects, object);
        let mut versions = ImportVersions::new(&object.image);
        let mut hashes = Hashes::NONE;
        let mut special_count = self.special_count;
        for (at, relocation) in object.image.relocations().enumerate() {
            objects.scopes().look_ahead(&object.image, at, &mut hashes, prefetch);
            match verdict_on(objects, id, relocation, config, &uses, &mut versions) {
                Verdict::Ignore => {}
                Verdict::NotReady => return false,
                Verdict::Skip(reason) => description.skip(reason),
                Verdict::Hook(import) => {
                    let special = import.kind != Kind::Ordinary;
                    if description.next_slot() >= STUBS || special && special_count >= SPECIAL_STUBS
                    {
                        description.skip(SkipReason::NoStub);
                        recording::unseen(Lost::SlotWithoutStub);
                        continue;
                    }
                    special_count += usize::from(special);
                    let slot = slot_of(&import, object, objects);
                    if description.push(slot, import.name, import.version) {
                        patches.push(import);
                    }
                }
            }
        }
        true
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
    fn patch(&mut self, object: &Object, first_slot: u32, patches: &[Import]) -> (usize, usize) {
        let mut entries = Entries::new(object);
        let mut witness = (0, 0);
        for (slot, import) in (first_slot as usize..).zip(patches) {
            let Import { got, real, kind, name, extent, .. } = *import;
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

/// Returns the record of an import's slot, as far as it has no strings.
fn slot_of(import: &Import, object: &Object, objects: &Objects) -> SlotRecord {
    let provider_bias = objects.get(import.provider).map_or(0, |provider| provider.image.bias());
    SlotRecord {
        provider: import.provider,
        class: import.kind.class() as u16,
        kind: import.relocation,
        got_svma: import.got.wrapping_sub(object.image.bias()) as u64,
        target_svma: import.real.wrapping_sub(provider_bias) as u64,
        ..SlotRecord::default()
    }
}

/// Writes an object's description to the recording; returns its record, or null if there is no room.
pub(crate) fn write_description(contents: &[u8], id: u32) -> *mut ObjectRecord {
    let chunk = recording::write(ChunkKind::Object, id, contents, 1);
    chunk.map_or(ptr::null_mut(), |chunk| chunk.contents().cast())
}

/// Does so for an object that may have a description there already.
fn record_description(
    object: &Object,
    id: u32,
    first_slot: u32,
    contents: &[u8],
) -> *mut ObjectRecord {
    let alike = contents.len() == object.description().len() && first_slot == object.first_slot;
    if alike && object.chunks >= MANY_LOADS && !object.record.is_null() {
        // The program loads and unloads it over and over: keep only the latest address.
        // SAFETY: the record is in the mapping, followed by the rest of a description of the same length.
        unsafe {
            object.record.cast::<u8>().copy_from_nonoverlapping(contents.as_ptr(), contents.len())
        };
        return object.record;
    }
    write_description(contents, id)
}
