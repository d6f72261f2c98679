//! From an object's relocations to slots: which imports are hooked, what the recording says of
//! them, and the patch itself.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use chase_format::layout::{
    ChunkKind, NONE, OBJECT_CHASE, OBJECT_DLOPENED, OBJECT_EXECUTABLE, OBJECT_FIXED, ObjectRecord,
    SLOT_GLOBAL, SLOT_JUMP, Segment, SkipReason, SlotRecord,
};
use chase_format::writer::Writer;

use crate::arch::{self, SPECIAL_STUBS, STUBS, TARGETS};
use crate::callsites::{self, Candidate};
use crate::config::Config;
use crate::elf::{
    Image, PF_R, PT_LOAD, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, Relocation, STB_WEAK, STT_OBJECT,
    STT_TLS, Symbol, Version,
};
use crate::objects::{Object, Objects};
use crate::recording::Lost;
use crate::resolve::{Wanted, address_of, find_in};
use crate::special::{Kind, kind_of};
use crate::{clock, recording, sys};

const PAGE: usize = 4096;

/// Slots of the process, and those among them whose functions are not ordinary.
pub(crate) struct Slots {
    count: usize,
    special_count: usize,
    /// Slot and kind of each special stub.
    special: [(u32, Kind); SPECIAL_STUBS],
}

/// An import that can be hooked.
struct Import {
    name: &'static [u8],
    version: Option<Version>,
    real: usize,
    provider: u32,
    kind: Kind,
    got: usize,
    relocation: u16,
}

/// What is said of an import: hooked, left alone for a reason to be counted, or none of our
/// business.
enum Verdict {
    /// The dynamic linker has not written it yet.
    NotReady,
    Hook(Import),
    Skip(SkipReason),
    Ignore,
}

impl Slots {
    /// Slot 0 is the one that [`crate::calibrate`] calls.
    pub(crate) const fn new() -> Self {
        Self { count: 1, special_count: 0, special: [(0, Kind::Alone); SPECIAL_STUBS] }
    }

    /// Slot and kind behind a special stub.
    pub(crate) fn special(&self, number: usize) -> (u32, Kind) {
        self.special.get(number).copied().unwrap_or((0, Kind::Alone))
    }

    /// Describes object `id` in the recording and patches its slots. False: another thread is still
    /// loading it. The caller holds the lock, has signals blocked and the vector state saved.
    pub(crate) fn hook(&mut self, objects: &mut Objects, id: u32, config: &Config) -> bool {
        let Some(object) = objects.get(id).copied() else { return true };
        if object.flags & OBJECT_DLOPENED != 0 && !object.image.is_relocated() {
            return false;
        }
        let capacity = description_capacity(&object);
        let memory = sys::map_anonymous(capacity);
        if memory.is_null() {
            recording::unseen(Lost::Object);
            return true;
        }
        let mut description = self.describe(objects, id, config, memory, object.first_slot);
        if object.first_slot != NONE && !description.is_like(object.description) {
            // It came back as something else: its old slots keep their meaning.
            // SAFETY: the memory is ours.
            unsafe { ptr::write_bytes(memory, 0, capacity) };
            description = self.describe(objects, id, config, memory, NONE);
        }
        if description.not_ready {
            sys::unmap(memory, capacity);
            return false;
        }
        let len = description.finish();
        if description.is_unchanged(len, object.description) {
            // As before, in the same place: what is in the recording is true again.
            let witness = self.patch(&object, &description);
            if let Some(object) = objects.get_mut(id) {
                object.reinstate(witness);
            }
            sys::unmap(memory, capacity);
            return true;
        }
        // SAFETY: the description is `len` bytes at `memory`.
        let contents = unsafe { core::slice::from_raw_parts(memory, len) };
        let record = write_object(contents, id);
        let kept = len.next_multiple_of(PAGE);
        if kept < capacity {
            // The patches behind it are still needed, and their pages go with them.
            description.spare = (memory as usize + kept, capacity - kept);
        }
        if let Some(object) = objects.get_mut(id) {
            let (old, old_len) = object.description;
            if old != 0 {
                sys::unmap(ptr::with_exposed_provenance_mut(old), old_len);
            }
            object.first_slot = if record.is_null() { NONE } else { description.first_slot };
            object.slot_count = description.slot_count as u32;
            object.described = true;
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
        description.release_spare();
        true
    }

    fn describe(
        &mut self,
        objects: &Objects,
        id: u32,
        config: &Config,
        memory: *mut u8,
        first_slot: u32,
    ) -> Description {
        let first_slot = if first_slot == NONE { self.count as u32 } else { first_slot };
        let mut description = Description::none();
        if let Some(object) = objects.get(id) {
            description = Description::new(memory, object, id, first_slot);
            if object.flags & OBJECT_CHASE == 0 {
                self.describe_imports(objects, id, config, &mut description);
            }
        }
        description
    }

    fn describe_imports(
        &mut self,
        objects: &Objects,
        id: u32,
        config: &Config,
        description: &mut Description,
    ) {
        let Some(object) = objects.get(id) else { return };
        let uses = Uses::of(object);
        for relocation in object.image.relocations() {
            match judge(objects, id, relocation, config, &uses) {
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
        let known =
            self.special.iter().take(self.special_count).position(|entry| *entry == (slot, kind));
        let number = known.unwrap_or_else(|| {
            let number = self.special_count;
            if let Some(entry) = self.special.get_mut(number) {
                *entry = (slot, kind);
            }
            self.special_count += 1;
            number
        });
        arch::special_stub(number)
    }

    /// Connects the slots with the real functions, and stores the stubs' addresses into the GOT.
    /// Gives one entry and what was stored there.
    fn patch(&mut self, object: &Object, description: &Description) -> (usize, usize) {
        let mut unprotected = false;
        let mut witness = (0, 0);
        for i in 0..description.slot_count {
            // SAFETY: `i` is a slot of the description.
            let Patch { got, real, kind } = unsafe { *description.patches.add(i) };
            let slot = description.first_slot as usize + i;
            if let Some(target) = TARGETS.get(slot) {
                target.store(real, Ordering::Relaxed);
            }
            let stub = match kind {
                Kind::Ordinary => arch::stub(slot),
                kind => self.special_stub(slot as u32, kind),
            };
            if object.image.is_relro(got) && !unprotected {
                unprotected = true;
                if !object.image.protect_relro(libc::PROT_READ | libc::PROT_WRITE) {
                    recording::unseen(Lost::Object);
                    return witness;
                }
            }
            witness = (got, stub);
            let entry: *mut usize = ptr::with_exposed_provenance_mut(got);
            // SAFETY: the entry is an aligned word of the object's GOT; its page is writable, as
            // the dynamic linker writes it too. Other threads may be reading it.
            unsafe { AtomicUsize::from_ptr(entry) }.store(stub, Ordering::Release);
        }
        if unprotected {
            object.image.protect_relro(libc::PROT_READ);
        }
        witness
    }
}

/// Puts a description into the recording, and gives the place of its record; null if there is no
/// room.
pub(crate) fn write_object(contents: &[u8], id: u32) -> *mut ObjectRecord {
    let len = Writer::chunk_len(contents.len());
    let Some(chunk) = recording::chunk(ChunkKind::Object, id, len) else { return ptr::null_mut() };
    // SAFETY: the chunk has room for the contents, and nobody reads it yet.
    unsafe { ptr::copy_nonoverlapping(contents.as_ptr(), chunk.contents(), contents.len()) };
    chunk.commit(1);
    chunk.contents().cast()
}

// ---- which imports ------------------------------------------------------------------------------

fn judge(
    objects: &Objects,
    importer: u32,
    relocation: &Relocation,
    config: &Config,
    uses: &Uses,
) -> Verdict {
    let kind = relocation.kind();
    if relocation.symbol() == 0 || kind != R_X86_64_JUMP_SLOT && kind != R_X86_64_GLOB_DAT {
        return Verdict::Ignore;
    }
    let Some(object) = objects.get(importer) else { return Verdict::Ignore };
    let image = &object.image;
    let symbol = image.symbol(relocation.symbol());
    if matches!(symbol.kind(), STT_OBJECT | STT_TLS) {
        return Verdict::Ignore;
    }
    let got = image.bias.wrapping_add(relocation.offset as usize);
    // SAFETY: the dynamic linker has written this entry.
    let bound = unsafe { ptr::with_exposed_provenance::<usize>(got).read_volatile() };
    if object.flags & OBJECT_DLOPENED != 0 && is_unrelocated(image, bound, symbol, kind) {
        return Verdict::NotReady;
    }
    if bound == 0 {
        let counts = symbol.binding() == STB_WEAK && kind == R_X86_64_JUMP_SLOT;
        return if counts { Verdict::Skip(SkipReason::Undefined) } else { Verdict::Ignore };
    }
    if arch::is_stub(bound) {
        return Verdict::Ignore;
    }
    let name = image.name(symbol).to_bytes();
    let version = image.wanted_version(relocation.symbol());
    let direct = if image.start <= bound && bound < image.end { None } else { objects.at(bound) };
    let global = kind == R_X86_64_GLOB_DAT;
    if global {
        // Data of another object (or a pointer to it) is none of our business.
        let executes =
            direct.and_then(|id| objects.get(id)).is_some_and(|of| of.image.executes(bound));
        if !executes {
            return Verdict::Ignore;
        }
        if !uses.only_called(got) {
            return Verdict::Skip(SkipReason::Pointer);
        }
    }
    let mut special = kind_of(name);
    // Another C library does not tell us of its forks.
    if object.namespace != 0 && matches!(name, b"fork" | b"__fork" | b"__libc_fork") {
        special = Kind::Fork;
    }
    if special == Kind::Alone {
        return Verdict::Skip(SkipReason::Convention);
    }
    if version.is_some_and(|version| version.name == b"GLIBC_PRIVATE") {
        return Verdict::Skip(SkipReason::Private);
    }
    // Bound to the object itself, and not just to the entry's own PLT: by RTLD_DEEPBIND, say.
    let own =
        |name| find_in(image, &Wanted::new(name, version)).map(|own| address_of_plain(image, own));
    let direct = if direct.is_none() && own(name) == Some(bound) { Some(importer) } else { direct };
    let (provider, real) = match direct {
        // The function's address in a position-dependent executable is that of its PLT entry.
        Some(id) if !(global && is_canonical_plt(objects, id)) => (id, bound),
        _ => match resolve(objects, importer, name, version) {
            Ok(found) => found,
            Err(reason) => return Verdict::Skip(reason),
        },
    };
    if provider == importer && !config.wants_internal(object.name()) {
        return Verdict::Skip(SkipReason::Internal);
    }
    let provider_name = objects.get(provider).map_or(&b""[..], |provider| provider.name());
    if !config.wants(provider_name, name) {
        return Verdict::Skip(SkipReason::Filtered);
    }
    let relocation = if global { SLOT_GLOBAL } else { SLOT_JUMP };
    Verdict::Hook(Import { name, version, real, provider, kind: special, got, relocation })
}

/// Whether the entry still holds what is in the file: an address without the bias, or nothing.
fn is_unrelocated(image: &Image, bound: usize, symbol: &Symbol, kind: u32) -> bool {
    match kind {
        R_X86_64_JUMP_SLOT => bound != 0 && image.bias != 0 && bound < image.end - image.start,
        _ => bound == 0 && symbol.binding() != STB_WEAK,
    }
}

fn is_canonical_plt(objects: &Objects, id: u32) -> bool {
    objects.get(id).is_some_and(|object| {
        object.flags & (OBJECT_EXECUTABLE | OBJECT_FIXED) == OBJECT_EXECUTABLE | OBJECT_FIXED
    })
}

/// Address of a definition as it stands in the symbol table.
fn address_of_plain(image: &Image, symbol: &Symbol) -> usize {
    image.bias.wrapping_add(symbol.value as usize)
}

/// Provider and address of a function that the linker has not bound yet, or not directly.
fn resolve(
    objects: &Objects,
    importer: u32,
    name: &[u8],
    version: Option<Version>,
) -> Result<(u32, usize), SkipReason> {
    let wanted = Wanted::new(name, version);
    let found = objects.lookup(importer, &wanted).ok_or(SkipReason::Undefined)?;
    // With RTLD_DEEPBIND, which shows nowhere, the linker would look at home first.
    if objects.binds_otherwise_at_home(importer, &wanted, &found) {
        return Err(SkipReason::Late);
    }
    let provider = objects.get(found.object).ok_or(SkipReason::Undefined)?;
    // The linker notes such a binding, so that the provider is not unloaded. We can't.
    if !objects.is_bound_to_stay(importer, found.object) {
        return Err(SkipReason::Late);
    }
    let real = address_of(&provider.image, found.symbol);
    Ok((objects.at(real).unwrap_or(found.object), real))
}

/// Uses of the object's `GLOB_DAT` entries.
struct Uses {
    candidates: &'static mut [Candidate],
    memory: (usize, usize),
}

impl Uses {
    fn of(object: &Object) -> Self {
        let image = &object.image;
        let is_candidate = |relocation: &&Relocation| {
            relocation.kind() == R_X86_64_GLOB_DAT && relocation.symbol() != 0 && {
                let symbol = image.symbol(relocation.symbol());
                !matches!(symbol.kind(), STT_OBJECT | STT_TLS)
                    && kind_of(image.name(symbol).to_bytes()) != Kind::Alone
            }
        };
        let count = image.relocations().filter(is_candidate).count();
        let len = count * size_of::<Candidate>();
        let memory = if count == 0 { ptr::null_mut() } else { sys::map_anonymous(len) };
        if memory.is_null() {
            return Self { candidates: &mut [], memory: (0, 0) };
        }
        // SAFETY: the memory is ours, large enough and zeroed, which is a valid candidate.
        let candidates =
            unsafe { core::slice::from_raw_parts_mut(memory.cast::<Candidate>(), count) };
        for (candidate, relocation) in
            candidates.iter_mut().zip(image.relocations().filter(is_candidate))
        {
            candidate.address = image.bias.wrapping_add(relocation.offset as usize);
        }
        candidates.sort_unstable_by_key(|candidate| candidate.address);
        for (start, end) in image.executable_ranges() {
            // SAFETY: the segment is loaded and readable.
            unsafe { callsites::scan(candidates, start, end) };
        }
        Self { candidates, memory: (memory as usize, len) }
    }

    fn only_called(&self, got: usize) -> bool {
        self.candidates
            .binary_search_by_key(&got, |candidate| candidate.address)
            .ok()
            .and_then(|index| self.candidates.get(index))
            .is_some_and(Candidate::only_called)
    }
}

impl Drop for Uses {
    fn drop(&mut self) {
        if self.memory.1 > 0 {
            sys::unmap(ptr::with_exposed_provenance_mut(self.memory.0), self.memory.1);
        }
    }
}

// ---- what the recording says --------------------------------------------------------------------

/// What is done to one GOT entry.
#[derive(Clone, Copy)]
struct Patch {
    got: usize,
    real: usize,
    kind: Kind,
}

/// The contents of an object's chunk in the making, with the list of patches behind it.
struct Description {
    memory: *mut u8,
    slots: *mut SlotRecord,
    strings: *mut u8,
    strings_len: usize,
    strings_capacity: usize,
    patches: *mut Patch,
    special_count: usize,
    first_slot: u32,
    slot_count: usize,
    bias: usize,
    /// An import that the dynamic linker has not written yet was met.
    not_ready: bool,
    /// Pages that hold nothing but patches: address and length.
    spare: (usize, usize),
}

/// Bytes of memory for a description: record, segments, slots, strings, patches, each at its most.
fn description_capacity(object: &Object) -> usize {
    let (relocations, strings) = imports_size(object);
    let segments = object.image.program_headers().len() * size_of::<Segment>();
    let per_slot = size_of::<SlotRecord>() + size_of::<Patch>();
    size_of::<ObjectRecord>() + segments + relocations * per_slot + strings + 64
}

/// How many relocations may become slots, and how long all strings are at most.
fn imports_size(object: &Object) -> (usize, usize) {
    let image = &object.image;
    let mut count = 0;
    let mut strings = object.path.len() + object.image.soname().len() + 3;
    for relocation in image.relocations() {
        if matches!(relocation.kind(), R_X86_64_JUMP_SLOT | R_X86_64_GLOB_DAT)
            && relocation.symbol() != 0
        {
            count += 1;
            let symbol = image.symbol(relocation.symbol());
            strings += image.name(symbol).to_bytes().len() + 1;
            strings += image
                .wanted_version(relocation.symbol())
                .map_or(0, |version| version.name.len() + 1);
        }
    }
    (count, strings)
}

impl Description {
    const fn none() -> Self {
        Self {
            memory: ptr::null_mut(),
            slots: ptr::null_mut(),
            strings: ptr::null_mut(),
            strings_len: 0,
            strings_capacity: 0,
            patches: ptr::null_mut(),
            special_count: 0,
            first_slot: 0,
            slot_count: 0,
            bias: 0,
            not_ready: false,
            spare: (0, 0),
        }
    }

    /// Whether the description at an address, of some length, names the same slots in the same
    /// order: it has as many, and the same strings.
    fn is_like(&self, (other, _len): (usize, usize)) -> bool {
        if other == 0 {
            return false;
        }
        // SAFETY: descriptions are kept, and begin with a record, segments and slots.
        unsafe {
            let record = &*(other as *const ObjectRecord);
            if record.slot_count as usize != self.slot_count
                || record.strings_len as usize != self.strings_len
            {
                return false;
            }
            let strings = other
                + size_of::<ObjectRecord>()
                + record.segment_count as usize * size_of::<Segment>()
                + self.slot_count * size_of::<SlotRecord>();
            core::slice::from_raw_parts(strings as *const u8, self.strings_len)
                == core::slice::from_raw_parts(self.strings.cast_const(), self.strings_len)
        }
    }

    fn new(memory: *mut u8, object: &Object, id: u32, first_slot: u32) -> Self {
        let capacity = description_capacity(object);
        let (most_slots, strings_capacity) = imports_size(object);
        let image = &object.image;
        let mut segment_count = 0;
        // SAFETY: `description_capacity` bytes are ours; the parts are laid out one after another.
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
            let patches_at = memory as usize + capacity - most_slots * size_of::<Patch>();
            let mut this = Self {
                memory,
                slots,
                strings: ptr::null_mut(),
                strings_len: 0,
                strings_capacity: strings_capacity + 1,
                patches: (patches_at & !7) as *mut Patch,
                special_count: 0,
                first_slot,
                slot_count: 0,
                bias: image.bias,
                not_ready: false,
                spare: (0, 0),
            };
            // Strings are collected behind the room for all slots, and moved when their number is
            // known.
            this.strings = slots.add(most_slots).cast();
            this.string(b"");
            let path_off = this.string(object.path);
            let soname_off = this.string(image.soname());
            let build_id = image.build_id();
            let record = memory.cast::<ObjectRecord>();
            (*record).id = id;
            (*record).flags = object.flags;
            (*record).bias = image.bias as u64;
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

    fn skip(&mut self, reason: SkipReason) {
        if let Some(count) = self.record().skipped.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Appends a string and gives its offset; 0, the empty string, if there is no room.
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

    fn push(&mut self, import: &Import, objects: &Objects) {
        let name_off = self.string(import.name);
        let version_off = import.version.map_or(0, |version| self.string(version.name));
        let provider_bias = objects.get(import.provider).map_or(0, |provider| provider.image.bias);
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
            *self.patches.add(self.slot_count) =
                Patch { got: import.got, real: import.real, kind: import.kind };
        }
        self.slot_count += 1;
    }

    /// Whether the finished description, `len` bytes, says the same as the one at `other`.
    fn is_unchanged(&mut self, len: usize, (other, other_len): (usize, usize)) -> bool {
        if other == 0 || len != other_len {
            return false;
        }
        // SAFETY: descriptions are kept, and begin with a record.
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

    fn release_spare(&self) {
        if self.spare.1 > 0 {
            sys::unmap(ptr::with_exposed_provenance_mut(self.spare.0), self.spare.1);
        }
    }

    /// Moves the strings to their place behind the slots, and gives the length of it all.
    fn finish(&mut self) -> usize {
        // SAFETY: the place is before the one where the strings are now, or the same.
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
