//! Decides which imports of an object are hooked, and why others are not.

use core::ptr;

use chase_format::layout::{
    OBJECT_DLOPENED, OBJECT_EXECUTABLE, OBJECT_FIXED, SLOT_GLOBAL, SLOT_JUMP, SkipReason,
};

use super::entries::read_entry;
use crate::images::address_of;
use crate::objects::{Object, Objects};
use crate::{stubs, sys};
use chase_logic::callsites::{ENTRY, Entries};
use chase_logic::config::Config;
use chase_logic::elf::{
    Image, ImportVersions, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, Relocation, STB_WEAK, STT_OBJECT,
    STT_TLS, Symbol,
};
use chase_logic::kinds::{
    Kind, is_called_without_plt, is_only_called, is_passed_for_linkers, kind_of,
};
use chase_logic::resolve::Wanted;
use chase_logic::traits::Extent;

/// An import that can be hooked.
pub(super) struct Import {
    pub(super) name: &'static [u8],
    /// Its version; may be empty.
    pub(super) version: &'static [u8],
    pub(super) real: usize,
    pub(super) provider: u32,
    pub(super) kind: Kind,
    pub(super) got: usize,
    pub(super) relocation: u16,
    pub(super) extent: Extent,
}

/// What to do with an import: hook it, skip it for a reason that is counted, or ignore it.
pub(super) enum Verdict {
    /// The dynamic linker has not written it yet.
    NotReady,
    Hook(Import),
    Skip(SkipReason),
    Ignore,
}

/// Up to this size in bytes, searching the code takes a negligible part of a start.
const LITTLE_CODE: usize = 256 << 10;
/// An object with so many other entries for each jump slot was compiled without a PLT.
const ENTRIES_PER_JUMP_SLOT: usize = 4;
/// In an object with more code, at least one in so many functions must be in an entry that is not a jump slot.
const JUMP_SLOTS_PER_CANDIDATE: usize = 4;

pub(super) fn verdict_on(
    objects: &Objects,
    importer: u32,
    relocation: &Relocation,
    config: &Config,
    uses: &Uses,
    versions: &mut ImportVersions<'_>,
) -> Verdict {
    let kind = relocation.kind();
    if relocation.symbol() == 0 || kind != R_X86_64_JUMP_SLOT && kind != R_X86_64_GLOB_DAT {
        return Verdict::Ignore;
    }
    let Some(object) = objects.get(importer) else { return Verdict::Ignore };
    let image = &object.image;
    let symbol = image.symbol(relocation.symbol());
    // (Go's linker says of functions, too, that they are data. But a jump slot is for calls alone.)
    if symbol.kind() == STT_TLS || symbol.kind() == STT_OBJECT && kind == R_X86_64_GLOB_DAT {
        return Verdict::Ignore;
    }
    let got = image.bias().wrapping_add(relocation.offset as usize);
    let bound = read_entry(got);
    if object.flags & OBJECT_DLOPENED != 0 && is_unrelocated(image, bound, symbol, kind) {
        return Verdict::NotReady;
    }
    if bound == 0 {
        let counts = symbol.binding() == STB_WEAK && kind == R_X86_64_JUMP_SLOT;
        return if counts { Verdict::Skip(SkipReason::Undefined) } else { Verdict::Ignore };
    }
    if stubs::is_stub(bound) {
        return Verdict::Ignore;
    }
    let name = image.name(symbol);
    let version = versions.wanted(relocation.symbol());
    let is_ours = |id: &u32| objects.get(*id).is_some_and(|object| object.is_chase);
    let direct =
        if image.contains(bound) { None } else { objects.at(bound).filter(|id| !is_ours(id)) };
    let global = kind == R_X86_64_GLOB_DAT;
    if global {
        // Data of another object, or a pointer to data.
        if !is_function_of_another(objects, image, bound) {
            return Verdict::Ignore;
        }
        // (What is passed on must stay valid: an executable is not unloaded.)
        let is_passed = object.flags & OBJECT_EXECUTABLE != 0 && is_passed_for_linkers(name);
        let is_called = || is_only_called(name) || uses.called_by_registers(got, name);
        if !uses.only_called(got) && !is_called() && !is_passed {
            return Verdict::Skip(SkipReason::Pointer);
        }
    }
    let mut special = kind_of(name);
    // The handlers of forks are registered with the main C library only.
    if object.namespace != 0 && matches!(name, b"fork" | b"__fork" | b"__libc_fork") {
        special = Kind::Fork;
    }
    if special == Kind::Alone {
        return Verdict::Skip(SkipReason::Convention);
    }
    if version.is_some_and(|version| version.name == b"GLIBC_PRIVATE") || is_former_part(image) {
        return Verdict::Skip(SkipReason::Private);
    }
    // Bound to the object itself, and not just to the entry's own PLT: for example by RTLD_DEEPBIND.
    let (provider, real) = match direct {
        // In a position-dependent executable, a function's address is that of its PLT entry.
        Some(id) if !(global && is_canonical_plt(objects, id)) => (id, bound),
        _ => {
            let wanted = Wanted::new(name, version);
            let own = || {
                let own = objects.scopes().own_definition(importer, &wanted);
                own.map(|own| address_of_plain(image, own.symbol))
            };
            let found = if direct.is_none() && own() == Some(bound) {
                Ok((importer, bound))
            } else {
                resolve(objects, importer, &wanted)
            };
            match found {
                Ok(found) => found,
                Err(reason) => return Verdict::Skip(reason),
            }
        }
    };
    if provider == importer && !config.wants_internal(object.name()) {
        return Verdict::Skip(SkipReason::Internal);
    }
    // A sanitizer's functions walk the stack from their caller, which error reports are to name. (Functions that load
    // objects, forbid system calls or end the process must be hooked all the same.)
    let reports_caller = matches!(special, Kind::Ordinary | Kind::Thread | Kind::ThreadC11);
    if reports_caller && objects.get(provider).is_some_and(|provider| provider.is_sanitizer) {
        return Verdict::Skip(SkipReason::Sanitizer);
    }
    let provider_name = objects.get(provider).map_or(&b""[..], |provider| provider.name());
    let extent = match () {
        () if config.filters() && !config.wants(provider_name, name) => Extent::Nothing,
        () if config.events.choose(provider_name, name) => Extent::Events,
        () => Extent::Calls,
    };
    if matches!(extent, Extent::Nothing) && !special.concerns_recording() {
        return Verdict::Skip(SkipReason::Filtered);
    }
    let version = version.map_or(&b""[..], |version| version.name);
    let relocation = if global { SLOT_GLOBAL } else { SLOT_JUMP };
    Verdict::Hook(Import { name, version, real, provider, kind: special, got, relocation, extent })
}

/// Whether an object was a part of the C library before version 2.34. Its calls are the C library's own, which it makes while
/// threads start and end.
fn is_former_part(image: &Image) -> bool {
    matches!(image.soname(), b"libpthread.so.0" | b"libdl.so.2" | b"librt.so.1")
}

fn is_function_of_another(objects: &Objects, image: &Image, bound: usize) -> bool {
    !image.contains(bound)
        && objects.object_at(bound).is_some_and(|object| object.image.executes(bound))
}

/// Whether the entry still holds what is in the file: an address without the bias, or zero.
fn is_unrelocated(image: &Image, bound: usize, symbol: &Symbol, kind: u32) -> bool {
    match kind {
        R_X86_64_JUMP_SLOT => bound != 0 && image.bias() != 0 && bound < image.range().len(),
        _ => bound == 0 && symbol.binding() != STB_WEAK,
    }
}

fn is_canonical_plt(objects: &Objects, id: u32) -> bool {
    objects.get(id).is_some_and(|object| {
        object.flags & (OBJECT_EXECUTABLE | OBJECT_FIXED) == OBJECT_EXECUTABLE | OBJECT_FIXED
    })
}

/// Returns the address of a definition as in the symbol table.
fn address_of_plain(image: &Image, symbol: &Symbol) -> usize {
    image.bias().wrapping_add(symbol.value as usize)
}

/// Returns provider and address of a function that the linker has not bound yet, or not directly.
fn resolve(
    objects: &Objects,
    importer: u32,
    wanted: &Wanted<'_>,
) -> Result<(u32, usize), SkipReason> {
    let scopes = objects.scopes();
    let found = scopes.lookup(importer, wanted).ok_or(SkipReason::Undefined)?;
    // With RTLD_DEEPBIND, which can't be detected, the linker would search the root's dependencies first.
    if scopes.binds_otherwise_in_dependencies(importer, wanted, &found) {
        return Err(SkipReason::Late);
    }
    let provider = objects.get(found.object).ok_or(SkipReason::Undefined)?;
    // The linker records such a binding, so that the provider is not unloaded. We can't.
    if !scopes.stays_loaded_for(importer, found.object) {
        return Err(SkipReason::Late);
    }
    let real = address_of(&provider.image, found.symbol);
    if provider.image.contains(real) {
        return Ok((found.object, real));
    }
    // The resolver of an IFUNC may return any address.
    Ok((objects.at(real).unwrap_or(found.object), real))
}

/// Uses of the object's `GLOB_DAT` entries that hold functions of other objects. If there are no such entries, the
/// code is not searched: searching the C library would take most of the time of each process's start. Large code of
/// an object that calls most functions through jump slots is not searched either, since its other entries are
/// pointers then (`docs/history.md`): searching `libLLVM` took a tenth of a second, and searching a browser would
/// read all of it from the disk.
pub(super) struct Uses {
    entries: Entries<'static>,
    memory: (usize, usize),
    /// Whether nearly all functions are called through entries that are no jump slots.
    without_plt: bool,
}

impl Uses {
    pub(super) fn found_in(objects: &Objects, object: &Object) -> Self {
        let image = &object.image;
        let wanted = || {
            image.relocations().filter_map(|relocation| {
                let symbol = image.symbol(relocation.symbol());
                let got = image.bias().wrapping_add(relocation.offset as usize);
                let is_wanted = relocation.kind() == R_X86_64_GLOB_DAT
                    && relocation.symbol() != 0
                    && !matches!(symbol.kind(), STT_OBJECT | STT_TLS)
                    && {
                        let bound = read_entry(got);
                        !stubs::is_stub(bound)
                            && is_function_of_another(objects, image, bound)
                            && kind_of(image.name(symbol)) != Kind::Alone
                    };
                is_wanted.then_some(got)
            })
        };
        let (first, last, number) = wanted()
            .fold((usize::MAX, 0, 0), |(first, last, number), got| {
                (first.min(got), last.max(got), number + 1)
            });
        let without_plt = number > image.jump_slots().len() * ENTRIES_PER_JUMP_SLOT;
        let is_worthwhile = || {
            let code: usize = image.executable_ranges().map(|(start, end)| end - start).sum();
            code <= LITTLE_CODE || number * JUMP_SLOTS_PER_CANDIDATE > image.jump_slots().len()
        };
        let len = if first <= last && is_worthwhile() { (last - first) / ENTRY + 1 } else { 0 };
        let memory = if len == 0 { ptr::null_mut() } else { sys::map_anonymous(len) };
        if memory.is_null() {
            return Self { entries: Entries::new(0, &mut []), memory: (0, 0), without_plt };
        }
        // SAFETY: the memory is ours, large enough and zeroed.
        let states = unsafe { core::slice::from_raw_parts_mut(memory, len) };
        let mut entries = Entries::new(first, states);
        for got in wanted() {
            entries.want(got);
        }
        for (start, end) in image.executable_ranges() {
            // SAFETY: the segment is loaded and readable.
            unsafe { entries.scan(start, end) };
        }
        Self { entries, memory: (memory as usize, len), without_plt }
    }

    fn only_called(&self, got: usize) -> bool {
        self.entries.only_called(got)
    }

    /// Whether the entry of a function that is hardly used for anything else is also loaded into registers.
    fn called_by_registers(&self, got: usize, name: &[u8]) -> bool {
        self.without_plt && is_called_without_plt(name) && self.entries.called_or_loaded(got)
    }
}

impl Drop for Uses {
    fn drop(&mut self) {
        if self.memory.1 > 0 {
            sys::unmap(ptr::with_exposed_provenance_mut(self.memory.0), self.memory.1);
        }
    }
}
