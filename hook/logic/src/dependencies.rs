//! Loaded objects, as far as the dynamic linker's search for definitions goes, and which of them need which.

use core::ops::{Deref, DerefMut};

use chase_format::layout::{NONE, OBJECT_CHASE, OBJECT_DLOPENED, OBJECT_EXECUTABLE};

use crate::elf::Image;
use crate::text::file_name;

/// The maximum number of dependencies that are followed from an object.
const MANY_NEEDED: usize = 256;

/// An object that is or was loaded. Its number is its place among all of them.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// Its tables.
    pub image: Image,
    /// Its path, as the dynamic linker knows it.
    pub path: &'static [u8],
    /// The namespace that it is in.
    pub namespace: u32,
    /// `OBJECT_*`.
    pub flags: u32,
    /// Whether it still is.
    pub loaded: bool,
    /// Whether it is in the scope that every object of the namespace searches.
    pub global: bool,
    /// Whether it is this library, or another copy of it.
    pub is_chase: bool,
    /// The object whose loading loaded this one.
    pub root: u32,
    /// Whether the index also has names of an earlier image with the same number.
    pub returned: bool,
}

impl Loaded {
    /// Returns the object's usual name: its soname, or else its file name.
    #[must_use]
    pub fn name(&self) -> &'static [u8] {
        let soname = self.image.soname();
        if soname.is_empty() { file_name(self.path) } else { soname }
    }

    /// Whether it was loaded after the program's start.
    #[must_use]
    pub fn is_opened(&self) -> bool {
        self.flags & OBJECT_DLOPENED != 0
    }

    fn is_named(&self, needed: &[u8]) -> bool {
        self.image.soname() == needed || self.path == needed || file_name(self.path) == needed
    }
}

/// An object, its dependencies, and theirs, breadth first.
#[derive(Debug)]
pub struct Dependencies {
    root: u32,
    ids: [u32; MANY_NEEDED],
    len: usize,
}

impl Dependencies {
    /// Those of no object.
    pub const UNKNOWN: Self = Self { root: NONE, ids: [NONE; MANY_NEEDED], len: 0 };

    /// Finds those of object `root`.
    #[must_use]
    pub fn of<O: Deref<Target = Loaded>>(objects: &[O], root: u32) -> Self {
        let mut found = Self { root, ..Self::UNKNOWN };
        found.add(root);
        let mut at = 0;
        while let Some(object) = found.ids().get(at).and_then(|&id| objects.get(id as usize)) {
            at += 1;
            for needed in object.image.needed() {
                let is_it = |other: &O| {
                    other.loaded && other.namespace == object.namespace && other.is_named(needed)
                };
                if let Some(id) = objects.iter().position(is_it) {
                    found.add(id as u32);
                }
            }
        }
        found
    }

    fn add(&mut self, id: u32) {
        if !self.ids().contains(&id)
            && let Some(place) = self.ids.get_mut(self.len)
        {
            *place = id;
            self.len += 1;
        }
    }

    /// Returns the object whose dependencies these are.
    #[must_use]
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Returns their numbers: first that of the object itself.
    #[must_use]
    pub fn ids(&self) -> &[u32] {
        self.ids.get(..self.len).unwrap_or(&[])
    }
}

/// In a process that runs already: marks the objects that were loaded after its start, and finds which of those were loaded
/// together: the list has a loaded object first, then its dependencies that were not loaded yet. (Which of them are in the global
/// scope can't be determined; none is assumed to be.)
pub fn mark_loaded_later<O: DerefMut<Target = Loaded>>(objects: &mut [O]) {
    let executable = objects.iter().position(|it| it.flags & OBJECT_EXECUTABLE != 0);
    let at_start = Dependencies::of(objects, executable.unwrap_or(0) as u32);
    let needed = at_start.ids().get(1..).unwrap_or(&[]);
    // Preloaded objects are before all these. (Objects that only these depend on are regarded as loaded later, but
    // are found by them all the same.)
    let first_needed = needed.iter().min().copied().unwrap_or(0);
    for (object, id) in objects.iter_mut().zip(0..) {
        let is_early = object.namespace == 0 && (id < first_needed || needed.contains(&id));
        if !is_early && object.flags & OBJECT_CHASE == 0 {
            object.flags |= OBJECT_DLOPENED;
            object.global = false;
            object.root = NONE;
        }
    }
    for id in 0..objects.len() {
        if objects.get(id).is_none_or(|object| object.root != NONE) {
            continue;
        }
        let together = Dependencies::of(objects, id as u32);
        for &other in together.ids().iter().filter(|&&other| other as usize >= id) {
            if let Some(object) = objects.get_mut(other as usize).filter(|it| it.root == NONE) {
                object.root = id as u32;
            }
        }
    }
}

/// Objects that outlive the one that they were loaded for, or were only taken to be loaded for it, are on their own: what is not
/// loaded can't be read.
pub fn forget_lost_roots<O: DerefMut<Target = Loaded>>(objects: &mut [O]) {
    for id in 0..objects.len() {
        let root = objects.get(id).filter(|object| object.loaded).map(|object| object.root);
        let is_lost = root.and_then(|root| objects.get(root as usize)).is_some_and(|it| !it.loaded);
        if let Some(object) = objects.get_mut(id).filter(|_| is_lost) {
            object.root = id as u32;
        }
    }
}

#[cfg(all(test, not(miri)))]
pub(crate) mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::resolve::tests::images;

    #[derive(Clone, Copy)]
    pub(crate) struct Object(Loaded);

    impl Deref for Object {
        type Target = Loaded;

        fn deref(&self) -> &Loaded {
            &self.0
        }
    }

    impl DerefMut for Object {
        fn deref_mut(&mut self) -> &mut Loaded {
            &mut self.0
        }
    }

    /// The objects of this process, as if all were loaded at its start. The executable is the first.
    pub(crate) fn objects() -> Vec<Object> {
        let of = |(id, image): (usize, Image)| {
            Object(Loaded {
                image,
                path: if id == 0 { b"/tmp/executable" } else { b"" },
                namespace: 0,
                flags: if id == 0 { OBJECT_EXECUTABLE } else { 0 },
                loaded: true,
                global: true,
                is_chase: false,
                root: id as u32,
                returned: false,
            })
        };
        // (The vDSO is no object that others find.)
        let all = images().into_iter().filter(|image| !image.soname().starts_with(b"linux-vdso"));
        all.enumerate().map(of).collect()
    }

    pub(crate) fn number_of(objects: &[Object], soname: &[u8]) -> u32 {
        objects.iter().position(|object| object.image.soname() == soname).expect("loaded") as u32
    }

    #[test]
    fn an_object_needs_what_it_names_and_what_that_needs() {
        let objects = objects();
        let found = Dependencies::of(&objects, 0);
        assert_eq!((found.root(), found.ids()[0]), (0, 0));
        // Breadth first: its own first, in order.
        let own: Vec<u32> =
            objects[0].image.needed().map(|name| number_of(&objects, name)).collect();
        assert_eq!(found.ids()[1..=own.len()], own);
        // The linker, which only libraries need, once.
        let linker = number_of(&objects, b"ld-linux-x86-64.so.2");
        assert_eq!(found.ids().iter().filter(|&&id| id == linker).count(), 1);
        let c_library = number_of(&objects, b"libc.so.6");
        assert_eq!(Dependencies::of(&objects, c_library).ids(), [c_library, linker]);
        assert!(Dependencies::UNKNOWN.ids().is_empty());
    }

    #[test]
    fn what_is_unloaded_or_in_another_namespace_is_not_needed() {
        let mut objects = objects();
        let (c_library, linker) =
            (number_of(&objects, b"libc.so.6"), number_of(&objects, b"ld-linux-x86-64.so.2"));
        objects[linker as usize].loaded = false;
        assert_eq!(Dependencies::of(&objects, c_library).ids(), [c_library]);
        objects[linker as usize].loaded = true;
        objects[linker as usize].namespace = 1;
        assert_eq!(Dependencies::of(&objects, c_library).ids(), [c_library]);
        assert_eq!(Dependencies::of(&objects, 77).ids(), [77]);
    }

    #[test]
    fn names_are_sonames_or_files() {
        let mut objects = objects();
        let c_library = number_of(&objects, b"libc.so.6") as usize;
        assert_eq!(
            (objects[0].name(), objects[c_library].name()),
            (&b"executable"[..], &b"libc.so.6"[..])
        );
        objects[c_library].path = b"/lib/libc-2.so";
        for name in [&b"libc.so.6"[..], b"libc-2.so", b"/lib/libc-2.so"] {
            assert!(objects[c_library].is_named(name));
        }
        assert!(!objects[c_library].is_named(b"/usr/lib/libc-2.so"));
    }

    #[test]
    fn what_the_executable_does_not_need_was_loaded_later() {
        let mut objects = objects();
        let later = objects.len();
        // A second C library, and the linker for it, in the order of their loading.
        let c_library = *objects[number_of(&objects, b"libc.so.6") as usize];
        let other = Loaded { path: b"/lib/other.so", namespace: 1, ..c_library };
        objects.extend([Object(other), Object(Loaded { flags: OBJECT_CHASE, ..other })]);
        mark_loaded_later(&mut objects);
        assert!(objects[..later].iter().all(|object| !object.is_opened() && object.global));
        assert!(objects[later].is_opened() && !objects[later].global);
        assert_eq!(objects[later].root, later as u32);
        assert!(!objects[later + 1].is_opened());
    }

    #[test]
    fn what_was_loaded_together_has_one_root() {
        let mut objects = objects();
        let later = objects.len() as u32;
        let own = |soname| *objects[number_of(&objects, soname) as usize];
        let copies = [own(b"libc.so.6"), own(b"ld-linux-x86-64.so.2")];
        objects.extend(copies.map(|it| Object(Loaded { namespace: 1, ..it })));
        mark_loaded_later(&mut objects);
        let [first, second] = [later, later + 1].map(|id| *objects[id as usize]);
        assert!(first.is_opened() && second.is_opened());
        assert_eq!([first.root, second.root], [later; 2]);
        // The second outlives the first.
        objects[later as usize].loaded = false;
        forget_lost_roots(&mut objects);
        assert_eq!(
            [objects[later as usize].root, objects[later as usize + 1].root],
            [later, later + 1]
        );
    }
}
