//! Waits for the end of threads, in functions whose names say something else.

use std::collections::HashMap;

/// What part of the waits of threads in functions, both by number, is for the end of a thread of Python.
#[derive(Clone, Debug, Default)]
pub struct Joins(pub(crate) HashMap<(u32, u32), f64>);

impl Joins {
    pub(crate) fn are_in(&self, api: u32) -> bool {
        self.0.keys().any(|key| key.0 == api)
    }

    /// `None` where none is.
    pub(crate) fn part(&self, api: u32, thread: u32) -> Option<f64> {
        self.0.get(&(api, thread)).copied()
    }
}
