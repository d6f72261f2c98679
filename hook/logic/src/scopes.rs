//! Finds the object, and its symbol, that a name is bound to.

use core::ops::Deref;
use core::ptr;

use crate::definers::Definer;
use crate::dependencies::{Dependencies, Loaded};
use crate::elf::{Image, Symbol};
use crate::index::{Index, Places};
use crate::resolve::{Wanted, find_at, find_in};
use crate::symbol_hash;

/// How many imports ahead of the look-up these are prefetched: an import's index entry, then the symbol that the entry names,
/// then the symbol's name.
const PLACES_AHEAD: usize = 15;
const SYMBOLS_AHEAD: usize = 10;
const NAMES_AHEAD: usize = 5;
/// Names of this length are not unusual.
const CACHE_LINE: usize = 64;

/// What an undefined name of an object is bound to.
#[derive(Clone, Copy)]
pub struct Definition {
    /// The number of the object that has it.
    pub object: u32,
    /// Its symbol there.
    pub symbol: &'static Symbol,
}

/// Hashes of the names for which [`Scopes::look_ahead`] has begun to prefetch.
#[derive(Debug)]
pub struct Hashes([u32; PLACES_AHEAD + 1]);

impl Hashes {
    /// No hashes.
    pub const NONE: Self = Self([0; PLACES_AHEAD + 1]);

    fn place_of(&mut self, import: usize) -> &mut u32 {
        &mut self.0[import % (PLACES_AHEAD + 1)]
    }
}

/// All objects, in the order in which they were loaded, and what speeds up the search in them.
#[derive(Debug)]
pub struct Scopes<'a, O, P> {
    /// The objects.
    pub objects: &'a [O],
    /// Index of the names of all objects; may be empty.
    pub index: &'a Index<P>,
    /// The dependencies of some object.
    pub dependencies: &'a Dependencies,
}

impl<O: Deref<Target = Loaded>, P: Places> Scopes<'_, O, P> {
    fn get(&self, id: u32) -> Option<&O> {
        self.objects.get(id as usize)
    }

    /// Returns the definition that the dynamic linker would bind a jump slot of `importer` to.
    #[must_use]
    pub fn lookup(&self, importer: u32, wanted: &Wanted<'_>) -> Option<Definition> {
        let object = self.get(importer)?;
        let definer = self.index.definer(wanted.gnu_hash());
        if object.image.is_symbolic()
            && let Some(found) = self.definition_in(importer, wanted, definer)
        {
            return Some(found);
        }
        let mut candidates = match definer {
            Definer::NoObject => return None,
            Definer::Only(id, _) => id..id + 1,
            Definer::From(id) => id..self.objects.len() as u32,
        };
        let is_global =
            |other: &&O| other.loaded && other.global && other.namespace == object.namespace;
        let found = candidates.find_map(|id| {
            self.get(id).filter(is_global)?;
            self.definition_in(id, wanted, definer)
        });
        found.or_else(|| self.lookup_in_dependencies(object.root, wanted))
    }

    /// Prefetches what the look-up of imports `at` and later ones of `image` will read. Worth it for an object with
    /// many imports, as each look-up waits for memory three times.
    pub fn look_ahead(
        &self,
        image: &Image,
        at: usize,
        hashes: &mut Hashes,
        prefetch: impl Fn(usize),
    ) {
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
            self.index.place_of(hash).into_iter().for_each(&prefetch);
        }
        if let Some((image, symbol)) = defined(*hashes.place_of(at + SYMBOLS_AHEAD)) {
            prefetch(ptr::from_ref(image.symbol(symbol)).addr());
        }
        if let Some((image, symbol)) = defined(*hashes.place_of(at + NAMES_AHEAD)) {
            let name = image.name_address(image.symbol(symbol));
            prefetch(name);
            prefetch(name + CACHE_LINE);
        }
    }

    /// Returns the definition in the object itself.
    #[must_use]
    pub fn own_definition(&self, id: u32, wanted: &Wanted<'_>) -> Option<Definition> {
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
    #[must_use]
    pub fn binds_otherwise_in_dependencies(
        &self,
        importer: u32,
        wanted: &Wanted<'_>,
        found: &Definition,
    ) -> bool {
        let is_other =
            |it: Definition| it.object != found.object || !ptr::eq(it.symbol, found.symbol);
        self.get(importer).filter(|object| object.is_opened()).is_some_and(|object| {
            self.lookup_in_dependencies(object.root, wanted).is_some_and(is_other)
        })
    }

    /// Whether `provider` stays loaded as long as `importer` needs it: it was loaded at the start, or is among the
    /// dependencies of the importer's root.
    #[must_use]
    pub fn stays_loaded_for(&self, importer: u32, provider: u32) -> bool {
        let (Some(object), Some(other)) = (self.get(importer), self.get(provider)) else {
            return false;
        };
        !other.is_opened() || self.with_dependencies(object.root, |ids| ids.contains(&provider))
    }

    /// Calls `f` with the numbers of `root` and its dependencies.
    fn with_dependencies<T>(&self, root: u32, f: impl FnOnce(&[u32]) -> T) -> T {
        if self.dependencies.root() == root {
            f(self.dependencies.ids())
        } else {
            f(Dependencies::of(self.objects, root).ids())
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::boxed::Box;
    use std::cell::RefCell;
    use std::vec::Vec;

    use chase_format::layout::OBJECT_DLOPENED;

    use super::*;
    use crate::definers::Entry;
    use crate::dependencies::tests::{Object, number_of, objects};
    use crate::elf::ImportVersions;

    struct Leaked;

    impl Places for Leaked {
        fn allocate(entries: usize) -> Option<&'static mut [Entry]> {
            Some(Box::leak(std::vec![Entry::FREE; entries].into()))
        }

        fn free(_: &'static mut [Entry]) {}
    }

    struct Fixture {
        objects: Vec<Object>,
        index: Index<Leaked>,
    }

    impl Fixture {
        fn new(is_indexed: bool) -> Self {
            let (objects, mut index) = (objects(), Index::new());
            if is_indexed {
                index.reserve(1);
                for (object, id) in objects.iter().zip(0..) {
                    index.add(&object.image, id);
                }
            }
            Self { objects, index }
        }

        fn scopes(&self) -> Scopes<'_, Object, Leaked> {
            let dependencies = &Dependencies::UNKNOWN;
            Scopes { objects: &self.objects, index: &self.index, dependencies }
        }

        fn finds(&self, importer: u32, name: &[u8]) -> Option<u32> {
            self.scopes().lookup(importer, &Wanted::new(name, None)).map(|found| found.object)
        }
    }

    #[test]
    fn with_an_index_and_without_one_the_same_is_found() {
        let [with, without] = [true, false].map(Fixture::new);
        let own = &with.objects[0].image;
        let mut versions = ImportVersions::new(own);
        let mut count = 0;
        for relocation in own.relocations().filter(|relocation| relocation.symbol() != 0) {
            let name = own.name(own.symbol(relocation.symbol()));
            let wanted = Wanted::new(name, versions.wanted(relocation.symbol()));
            let found = [&with, &without].map(|it| it.scopes().lookup(0, &wanted));
            let first = with.objects.iter().position(|it| find_in(&it.image, &wanted).is_some());
            for found in found {
                assert_eq!(found.map(|it| it.object as usize), first, "{}", name.escape_ascii());
                let symbol = first.and_then(|id| find_in(&with.objects[id].image, &wanted));
                assert_eq!(found.map(|it| ptr::from_ref(it.symbol)), symbol.map(ptr::from_ref));
            }
            count += usize::from(first.is_some());
        }
        assert!(count > 20, "{count}");
        assert_eq!([with.finds(0, b"no such name"), without.finds(0, b"no such name")], [None; 2]);
    }

    #[test]
    fn only_loaded_objects_of_the_namespace_are_searched() {
        for is_indexed in [false, true] {
            let mut it = Fixture::new(is_indexed);
            let c_library = number_of(&it.objects, b"libc.so.6");
            assert_eq!(it.finds(0, b"getppid"), Some(c_library));
            let object = it.objects[c_library as usize];
            let others = [
                Loaded { loaded: false, ..*object },
                Loaded { namespace: 1, ..*object },
                Loaded { is_chase: true, ..*object },
            ];
            for other in others {
                *it.objects[c_library as usize] = other;
                assert_eq!(it.finds(0, b"getppid"), None);
            }
            // An earlier image had this number: its symbols are others.
            *it.objects[c_library as usize] = Loaded { returned: true, ..*object };
            assert_eq!(it.finds(0, b"getppid"), Some(c_library));
        }
    }

    #[test]
    fn what_is_not_global_is_found_by_what_needs_it() {
        let mut it = Fixture::new(true);
        let c_library = number_of(&it.objects, b"libc.so.6");
        it.objects[c_library as usize].global = false;
        assert_eq!(it.finds(0, b"getppid"), Some(c_library));
        // The linker needs nothing.
        let linker = number_of(&it.objects, b"ld-linux-x86-64.so.2");
        assert_eq!(it.finds(linker, b"getppid"), None);
        let dependencies = Dependencies::of(&it.objects, 0);
        let scopes = Scopes { dependencies: &dependencies, ..it.scopes() };
        assert!(scopes.lookup(0, &Wanted::new(b"getppid", None)).is_some());
        assert!(scopes.own_definition(c_library, &Wanted::new(b"getppid", None)).is_some());
        assert!(scopes.own_definition(0, &Wanted::new(b"getppid", None)).is_none());
    }

    #[test]
    fn what_was_loaded_later_stays_for_those_that_need_it() {
        let mut it = Fixture::new(false);
        let c_library = number_of(&it.objects, b"libc.so.6");
        let linker = number_of(&it.objects, b"ld-linux-x86-64.so.2");
        assert!(it.scopes().stays_loaded_for(linker, c_library));
        it.objects[c_library as usize].flags |= OBJECT_DLOPENED;
        assert!(!it.scopes().stays_loaded_for(linker, c_library));
        assert!(it.scopes().stays_loaded_for(0, c_library));
        assert!(!it.scopes().stays_loaded_for(77, c_library));
    }

    #[test]
    fn an_object_loaded_later_may_have_a_definition_of_its_own() {
        let mut it = Fixture::new(false);
        let c_library = number_of(&it.objects, b"libc.so.6");
        // A copy that is loaded later: it finds the first one in the global scope, and itself among its dependencies.
        let (later, wanted) = (it.objects.len() as u32, Wanted::new(b"getppid", None));
        let mut copy = it.objects[c_library as usize];
        (copy.flags, copy.global, copy.root) = (OBJECT_DLOPENED, false, later);
        it.objects.push(copy);
        let found = it.scopes().lookup(later, &wanted).expect("found");
        assert_eq!(found.object, c_library);
        assert!(it.scopes().binds_otherwise_in_dependencies(later, &wanted, &found));
        let own = it.scopes().own_definition(later, &wanted).expect("found");
        assert!(!it.scopes().binds_otherwise_in_dependencies(later, &wanted, &own));
        assert!(!it.scopes().binds_otherwise_in_dependencies(0, &wanted, &own));
    }

    #[test]
    fn what_a_look_up_reads_was_prefetched() {
        let it = Fixture::new(true);
        let with_many = |object: &&Object| object.image.jump_slots().len() > 2 * PLACES_AHEAD;
        let image = &it.objects.iter().find(with_many).expect("an object with imports").image;
        let fetched = RefCell::new(Vec::new());
        let mut hashes = Hashes::NONE;
        for (at, relocation) in image.jump_slots().iter().enumerate() {
            it.scopes()
                .look_ahead(image, at, &mut hashes, |address| fetched.borrow_mut().push(address));
            let hash = symbol_hash::gnu(image.name(image.symbol(relocation.symbol())));
            if at < PLACES_AHEAD {
                continue;
            }
            let fetched = fetched.borrow();
            assert!(it.index.place_of(hash).is_some_and(|place| fetched.contains(&place)));
            if let Definer::Only(id, symbol) = it.index.definer(hash) {
                let image = &it.objects[id as usize].image;
                let symbol = image.symbol(symbol);
                assert!(fetched.contains(&ptr::from_ref(symbol).addr()));
                assert!(fetched.contains(&image.name_address(symbol)));
            }
        }
        fetched.borrow_mut().clear();
        Fixture::new(false)
            .scopes()
            .look_ahead(image, 0, &mut hashes, |it| fetched.borrow_mut().push(it));
        assert!(fetched.borrow().is_empty());
    }
}
