//! Takes a sample exactly like the one before: most of them, by little code.

use core::sync::atomic::Ordering;

use chase_format::layout::{FRAMED, Node, SAMPLED, TIMING_ADAPTIVE};

use super::{SAMPLES_PER_CHOICE, mode};
use chase_logic::countdown::until_sample;

use crate::counts::Change;
use crate::node::{add_calls, samples_of};
use crate::thread::Thread;

/// Makes this call of `slot`, whose countdown has ended, a sample, if nothing needs to be decided, measured or added
/// for that. (Where calls get frames, `framed`, the countdown has wrapped around.) Returns the node, and how many
/// calls the sample stands for; or `None`, having changed nothing.
pub(crate) fn sample_fast(
    thread: &Thread,
    slot: u32,
    framed: bool,
    sp: usize,
    context: *mut Node,
) -> Option<(*mut Node, u32)> {
    let counts = thread.counts.get()?;
    let state = counts.state_of(slot)?;
    let block = state.block.load(Ordering::Relaxed);
    let samples = state.samples.get() + 1;
    if block == 0
        || counts.is_framed(slot) != framed
        || samples >= SAMPLES_PER_CHOICE
        || mode() != TIMING_ADAPTIVE
        || counts.is_new()
        || !thread.tree.is_open()
    {
        return None;
    }
    let node = same_or_found(
        thread,
        state.node.load(Ordering::Relaxed),
        slot | if framed { SAMPLED | FRAMED } else { SAMPLED },
        context,
    );
    if node.is_null() {
        return None;
    }
    state.samples.set(samples);
    let place = counts.random_up_to(block);
    let remaining = until_sample(block - state.place.load(Ordering::Relaxed) + place, framed);
    let change = Change { node, calls: 0, slot, block, place, remaining, framed };
    // SAFETY: the node is this thread's, and one of sampled calls.
    unsafe { (*samples_of(state.node.load(Ordering::Relaxed))).adjust = 0 };
    if framed {
        // SAFETY: the node is this thread's.
        unsafe { add_calls(node, 1) };
    }
    counts.commit_same_block(change, state, if framed { 0 } else { block }, sp);
    Some((node, block))
}

/// Returns the node of `key` in `context`, mostly that of the latest sample, which takes no search; null if there is
/// none.
#[inline]
fn same_or_found(thread: &Thread, latest: *mut Node, key: u32, context: *mut Node) -> *mut Node {
    // SAFETY: both are nodes of this thread.
    let is_same = unsafe { (*latest).slot == key && (*latest).parent_ref == (*context).scope_ref };
    if is_same { latest } else { thread.tree.find(context, key) }
}
