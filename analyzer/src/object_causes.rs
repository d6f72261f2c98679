//! What waits in a function, or in a thread's own code, are for, where only the object that was waited for or the place tell, and not the
//! function's name.

use std::collections::{BTreeMap, HashMap};

use crate::blocking::Cause;

/// Causes of the waits of threads in functions, both by number (`None`: their own code): what the objects and places tell, and which part of
/// the waits each is. What is missing to 1 is as the function's name says.
#[derive(Clone, Debug, Default)]
pub struct ObjectCauses(pub(crate) HashMap<(Option<u32>, u32), BTreeMap<Cause, f64>>);

impl ObjectCauses {
    pub(crate) fn are_in(&self, api: u32) -> bool {
        self.0.keys().any(|key| key.0 == Some(api))
    }

    /// Returns the parts, largest first; `None` where the function's name tells all.
    pub(crate) fn parts(
        &self,
        api: Option<u32>,
        thread: u32,
        by_name: Cause,
    ) -> Option<Vec<(Cause, f64)>> {
        let mut parts = self.0.get(&(api, thread))?.clone();
        let rest = 1.0 - parts.values().sum::<f64>();
        *parts.entry(by_name).or_default() += rest.max(0.0);
        // (Sums of parts are not exact.)
        let mut parts: Vec<(Cause, f64)> = parts.into_iter().filter(|part| part.1 > 1e-9).collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        Some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_what_no_object_does() {
        let told = BTreeMap::from([(Cause::Condition, 0.25), (Cause::Join, 0.125)]);
        let causes = ObjectCauses(HashMap::from([((Some(3), 7), told)]));
        let parts = [(Cause::Lock, 0.625), (Cause::Condition, 0.25), (Cause::Join, 0.125)];
        assert_eq!(causes.parts(Some(3), 7, Cause::Lock).as_deref(), Some(&parts[..]));
        assert_eq!(causes.parts(Some(3), 8, Cause::Lock), None);
    }

    #[test]
    fn what_is_told_by_all_objects_leaves_nothing_to_the_name() {
        let told = BTreeMap::from([(Cause::Condition, 1.0)]);
        let causes = ObjectCauses(HashMap::from([((Some(0), 0), told)]));
        assert_eq!(causes.parts(Some(0), 0, Cause::Lock), Some(vec![(Cause::Condition, 1.0)]));
        assert!(causes.are_in(0) && !causes.are_in(1));
    }
}
