//! Samples that are made like the ones before them: most of them, by little code.

use core::sync::atomic::{AtomicBool, Ordering};

use chase_format::layout::{FRAMED, Node, SAMPLED};

use super::counts::Change;
use super::{SAMPLES_PER_CHOICE, samples_of};
use crate::thread::Thread;

/// Whether samples may be made like the ones before them, without asking: there is no budget to keep,
/// and calls are not only counted.
static ALLOWED: AtomicBool = AtomicBool::new(false);

/// Says whether they may be. Called while there is one thread.
pub(super) fn allow(allowed: bool) {
    ALLOWED.store(allowed, Ordering::Relaxed);
}

/// A call of `slot` at `sp` in `context` is due to be a sample: makes it one, if nothing is to be decided,
/// asked or added for that. Otherwise `None`, and nothing has changed. Gives the node, and for how many
/// calls it counts.
pub(crate) fn sample_alike(
    thread: &Thread,
    slot: u32,
    sp: usize,
    context: *mut Node,
) -> Option<(*mut Node, u32)> {
    let counts = thread.counts.get()?;
    let known = counts.known(slot)?;
    let block = known.block.load(Ordering::Relaxed);
    let samples = known.samples.get() + 1;
    if block == 0
        || samples >= SAMPLES_PER_CHOICE
        || !ALLOWED.load(Ordering::Relaxed)
        || counts.is_new()
        || !thread.tree.is_open()
    {
        return None;
    }
    let framed = counts.is_framed(slot);
    let node = thread.tree.find(context, slot | if framed { SAMPLED | FRAMED } else { SAMPLED });
    if node.is_null() {
        return None;
    }
    known.samples.set(samples);
    let place = counts.random_up_to(block);
    let left = (block - known.place.load(Ordering::Relaxed) + place) as i16;
    let change = Change { node, calls: 0, slot, block, place, left, framed };
    // SAFETY: the node is this thread's, and of sampled calls.
    unsafe { (*samples_of(known.node.load(Ordering::Relaxed))).adjust = 0 };
    counts.make_alike(change, known, if framed { 1 } else { block }, sp);
    Some((node, block))
}
