//! In a process that runs already: tells objects loaded at its start from those loaded later.

use chase_format::layout::{NONE, OBJECT_CHASE, OBJECT_DLOPENED, OBJECT_EXECUTABLE};

use super::Objects;

impl Objects {
    /// Marks the objects that were loaded later, and finds which of those were loaded together: the list has a loaded
    /// object first, then its dependencies that were not loaded yet. (Which of them are in the global scope can't be
    /// determined; none is assumed to be.)
    pub(crate) fn mark_loaded_later(&mut self) {
        let executable = self.all().iter().position(|it| it.flags & OBJECT_EXECUTABLE != 0);
        let at_start = self.needs(executable.map_or(0, |id| id as u32));
        let needed = at_start.ids().get(1..).unwrap_or(&[]);
        // Preloaded objects are before all these. (Objects that only these depend on are regarded as loaded later, but
        // are found by them all the same.)
        let first_needed = needed.iter().min().copied().unwrap_or(0);
        for id in 0..self.count as u32 {
            let Some(object) = self.get_mut(id) else { continue };
            let is_early = object.namespace == 0 && (id < first_needed || needed.contains(&id));
            if !is_early && object.flags & OBJECT_CHASE == 0 {
                object.flags |= OBJECT_DLOPENED;
                object.global = false;
                object.root = NONE;
            }
        }
        for id in 0..self.count as u32 {
            let has_no_root = |object: &super::Object| object.root == NONE;
            if !self.get(id).is_some_and(has_no_root) {
                continue;
            }
            let together = self.needs(id);
            for &other in together.ids().iter().filter(|&&other| other >= id) {
                if let Some(object) = self.get_mut(other).filter(|object| object.root == NONE) {
                    object.root = id;
                }
            }
        }
    }
}
