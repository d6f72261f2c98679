//! Prepares the search for the definitions that names are bound to (`chase_logic::scopes`).

use chase_logic::dependencies::{Dependencies, Loaded};
use chase_logic::resolve::hash_count;
use chase_logic::scopes::Scopes;

use super::{Object, Objects};
use crate::index::Mapped;

/// Up to this product of objects and imports, which is how many tables may have to be asked, no index is made.
const FEW_QUESTIONS: usize = 1 << 14;
/// Nor up to so many of them for each name that the index would hold. (The compiler of GCC asks 1.5 and starts 0.6 ms sooner
/// without one; for ImageMagick's 6 and GDB's 8 it makes no difference.)
const QUESTIONS_PER_NAME: usize = 8;

impl Objects {
    /// Prepares the look-up of imports of the objects that are not described yet: builds the index if there are many.
    pub(crate) fn prepare(&mut self) {
        let fresh = self.all().iter().filter(|object| object.loaded && !object.described);
        let imports: usize = fresh.map(|object| object.image.unbound()).sum();
        let questions = imports * self.range_count;
        if !self.index.is_open() && questions < FEW_QUESTIONS {
            return;
        }
        let is_new = |object: &Object| object.loaded && !object.indexed;
        let new = self.all().iter().filter(|object| is_new(object));
        let names: usize = new.map(|object| hash_count(&object.image)).sum();
        if !self.index.is_open() && questions < names * QUESTIONS_PER_NAME {
            return;
        }
        self.index.reserve(names);
        for id in 0..self.count as u32 {
            let Some(object) = self.get_mut(id).filter(|object| is_new(object)) else { continue };
            object.indexed = true;
            let Loaded { image, is_chase, .. } = **object;
            if !is_chase {
                self.index.add(&image, id);
            }
        }
    }

    /// Prepares the look-up of one object's imports.
    pub(crate) fn prepare_for(&mut self, id: u32) {
        if let Some(object) = self.get(id).filter(|object| object.is_opened())
            && object.root != self.dependencies.root()
        {
            self.dependencies = Dependencies::of(self.all(), object.root);
        }
    }

    /// Returns what is searched for definitions.
    pub(crate) fn scopes(&self) -> Scopes<'_, Object, Mapped> {
        let Self { index, dependencies, .. } = self;
        Scopes { objects: self.all(), index, dependencies }
    }
}
