//! Finds the object, and its symbol, that a name is bound to.

use core::ptr;

use chase_format::layout::{NONE, OBJECT_DLOPENED};

use super::{Object, Objects};
use crate::arch;
use chase_logic::definers::Definer;
use chase_logic::elf::{Image, Symbol};
use chase_logic::resolve::{Wanted, find_at, find_in, hash_count};
use chase_logic::symbol_hash;

/// The maximum number of dependencies that are followed from an object.
const MANY_NEEDED: usize = 256;
/// Up to this product of objects and imports, no index is made: the look-ups take less than a millisecond.
const FEW_QUESTIONS: usize = 1 << 14;
/// How many imports ahead of the look-up these are prefetched: an import's index entry, then the symbol that the entry names,
/// then the symbol's name.
const PLACES_AHEAD: usize = 15;
const SYMBOLS_AHEAD: usize = 10;
const NAMES_AHEAD: usize = 5;
/// Names of this length are not unusual.
const CACHE_LINE: usize = 64;

/// What an undefined name of an object is bound to.
#[derive(Clone, Copy)]
pub(crate) struct Definition {
    pub(crate) object: u32,
    pub(crate) symbol: &'static Symbol,
}

/// An object, its dependencies, and theirs, breadth first.
pub(super) struct Dependencies {
    pub(super) root: u32,
    ids: [u32; MANY_NEEDED],
    len: usize,
}

impl Dependencies {
    pub(super) const UNKNOWN: Self = Self { root: NONE, ids: [NONE; MANY_NEEDED], len: 0 };

    pub(super) fn ids(&self) -> &[u32] {
        self.ids.get(..self.len).unwrap_or(&[])
    }
}

/// Hashes of the names for which [`Objects::look_ahead`] has begun to prefetch.
pub(crate) struct Hashes([u32; PLACES_AHEAD + 1]);

impl Hashes {
    pub(crate) const NONE: Self = Self([0; PLACES_AHEAD + 1]);

    fn place_of(&mut self, import: usize) -> &mut u32 {
        &mut self.0[import % (PLACES_AHEAD + 1)]
    }
}

impl Objects {
    /// Prepares the look-up of imports of the objects that are not described yet: builds the index if there are many.
    pub(crate) fn prepare(&mut self) {
        let fresh = self.all().iter().filter(|object| object.loaded && !object.described);
        let imports: usize = fresh.map(|object| object.image.unbound()).sum();
        if !self.index.is_open() && imports * self.range_count < FEW_QUESTIONS {
            return;
        }
        let new = self.all().iter().filter(|object| object.loaded && !object.indexed);
        self.index.reserve(new.map(|object| hash_count(&object.image)).sum());
        for id in 0..self.count as u32 {
            if let Some(&Object { image, loaded: true, indexed: false, is_chase, .. }) =
                self.get(id)
            {
                if !is_chase {
                    self.index.add(&image, id);
                }
                if let Some(object) = self.get_mut(id) {
                    object.indexed = true;
                }
            }
        }
    }

    /// Prepares the look-up of one object's imports.
    pub(crate) fn prepare_for(&mut self, id: u32) {
        if let Some(&Object { root, flags, .. }) = self.get(id)
            && flags & OBJECT_DLOPENED != 0
            && root != self.dependencies.root
        {
            self.dependencies = self.needs(root);
        }
    }

    /// Returns the definition that the dynamic linker would bind a jump slot of `importer` to.
    pub(crate) fn lookup(&self, importer: u32, wanted: &Wanted<'_>) -> Option<Definition> {
        let object = self.get(importer)?;
        let definer = self.index.definer(wanted.gnu_hash());
        if object.image.is_symbolic()
            && let Some(found) = self.definition_in(importer, wanted, definer)
        {
            return Some(found);
        }
        let candidates = match definer {
            Definer::NoObject => return None,
            Definer::Only(id, _) => id..id + 1,
            Definer::From(id) => id..self.count as u32,
        };
        let is_global = |id: &u32| {
            self.get(*id).is_some_and(|other| {
                other.loaded && other.global && other.namespace == object.namespace
            })
        };
        let found =
            candidates.filter(is_global).find_map(|id| self.definition_in(id, wanted, definer));
        found.or_else(|| self.lookup_in_dependencies(object.root, wanted))
    }

    /// Prefetches what the look-up of imports `at` and later ones of `image` will read. Worth it for an object with
    /// many imports, as each look-up waits for memory three times.
    pub(crate) fn look_ahead(&self, image: &Image, at: usize, hashes: &mut Hashes) {
        if !self.index.is_open() {
            return;
        }
        let defined = |hash| match self.index.definer(hash) {
            Definer::Only(id, symbol) => self.get(id).map(|object| (&object.image, symbol)),
            _ => None,
        };
        if let Some(relocation) = image.jump_slots().get(at + PLACES_AHEAD) {
            let hash = symbol_hash::gnu(image.name(image.symbol(relocation.symbol())));
            *hashes.place_of(at + PLACES_AHEAD) = hash;
            self.index.place_of(hash).into_iter().for_each(arch::prefetch);
        }
        if let Some((image, symbol)) = defined(*hashes.place_of(at + SYMBOLS_AHEAD)) {
            arch::prefetch(ptr::from_ref(image.symbol(symbol)).addr());
        }
        if let Some((image, symbol)) = defined(*hashes.place_of(at + NAMES_AHEAD)) {
            let name = image.name_address(image.symbol(symbol));
            arch::prefetch(name);
            arch::prefetch(name + CACHE_LINE);
        }
    }

    /// Returns the definition in the object itself.
    pub(crate) fn own_definition(&self, id: u32, wanted: &Wanted<'_>) -> Option<Definition> {
        self.definition_in(id, wanted, self.index.definer(wanted.gnu_hash()))
    }

    /// Returns the definition in `root` or its dependencies, breadth first.
    fn lookup_in_dependencies(&self, root: u32, wanted: &Wanted<'_>) -> Option<Definition> {
        match self.index.definer(wanted.gnu_hash()) {
            Definer::NoObject => None,
            definer => self.with_dependencies(root, |ids| {
                ids.iter().find_map(|&id| self.definition_in(id, wanted, definer))
            }),
        }
    }

    /// Returns the definition in object `id`, unless `definer` says that this object can't define the name.
    fn definition_in(&self, id: u32, wanted: &Wanted<'_>, definer: Definer) -> Option<Definition> {
        // The definitions in a copy of chase replace those of other objects.
        let object = self.get(id).filter(|object| !object.is_chase)?;
        let symbol = match definer {
            Definer::NoObject => None,
            Definer::Only(other, _) if other != id => None,
            Definer::From(first) if id < first => None,
            Definer::Only(_, symbol) if !object.returned => find_at(&object.image, symbol, wanted),
            _ => find_in(&object.image, wanted),
        };
        symbol.map(|symbol| Definition { object: id, symbol })
    }

    /// Whether an object that was loaded later finds another definition among its root's dependencies than in the
    /// global scope.
    pub(crate) fn binds_otherwise_in_dependencies(
        &self,
        importer: u32,
        wanted: &Wanted<'_>,
        found: &Definition,
    ) -> bool {
        let Some(object) = self.get(importer) else { return false };
        object.flags & OBJECT_DLOPENED != 0
            && self.lookup_in_dependencies(object.root, wanted).is_some_and(|dependencies| {
                dependencies.object != found.object || !ptr::eq(dependencies.symbol, found.symbol)
            })
    }

    /// Whether `provider` stays loaded as long as `importer` needs it: it was loaded at the start, or is among the
    /// dependencies of the importer's root.
    pub(crate) fn stays_loaded_for(&self, importer: u32, provider: u32) -> bool {
        let (Some(object), Some(other)) = (self.get(importer), self.get(provider)) else {
            return false;
        };
        if other.flags & OBJECT_DLOPENED == 0 {
            return true;
        }
        self.with_dependencies(object.root, |ids| ids.contains(&provider))
    }

    /// Calls `f` with the numbers of `root` and its dependencies.
    fn with_dependencies<T>(&self, root: u32, f: impl FnOnce(&[u32]) -> T) -> T {
        if self.dependencies.root == root {
            f(self.dependencies.ids())
        } else {
            f(self.needs(root).ids())
        }
    }

    pub(super) fn needs(&self, root: u32) -> Dependencies {
        let mut dependencies = Dependencies { root, len: 1, ..Dependencies::UNKNOWN };
        dependencies.ids[0] = root;
        let mut at = 0;
        while let Some(object) = dependencies.ids().get(at).and_then(|&id| self.get(id)) {
            at += 1;
            for needed in object.image.needed() {
                let found = self.all().iter().position(|other| {
                    other.loaded && other.namespace == object.namespace && other.is_named(needed)
                });
                let Some(id) = found.map(|id| id as u32) else { continue };
                if dependencies.ids().contains(&id) {
                    continue;
                }
                let Some(place) = dependencies.ids.get_mut(dependencies.len) else {
                    return dependencies;
                };
                *place = id;
                dependencies.len += 1;
            }
        }
        dependencies
    }
}
