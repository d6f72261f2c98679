//! What was seen of a thread's creation.

use chase_recorder::reader::Thread;

use super::Scene;
use crate::address::CodeAddress;
use crate::clock::Ticks;
use crate::rows::ThreadCreation;

/// Returns what was seen of a thread's creation, with what was loaded at its addresses.
pub(super) fn creation(scene: &Scene<'_>, thread: Thread<'_>, start: Ticks) -> ThreadCreation {
    let Some(origin) = thread.origin() else { return ThreadCreation::default() };
    let places = |avmas: &[u64]| -> Vec<CodeAddress> {
        avmas.iter().map(|&avma| scene.addresses.find(avma, start)).collect()
    };
    ThreadCreation {
        stack: places(origin.stack()),
        words: places(origin.words()),
        inner_words: places(origin.inner_words()),
        python_function: origin.python_function().map(Into::into),
        python_thread_name: origin.python_thread_name().map(Into::into),
    }
}
