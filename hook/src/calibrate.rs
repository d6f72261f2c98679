//! What the hook itself costs, measured at the start on this machine, so that reports can subtract
//! it.
//!
//! An empty function is called through a stub, and directly. *Inside* is what the recorded duration
//! has above the direct call's; *outside* is the rest of what the caller pays.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::hint::black_box;
use core::sync::atomic::Ordering;

use chase_format::histogram::PAGES;
use chase_format::layout::Node;

use crate::arch::{self, TARGETS};
use crate::clock;
use crate::thread::Thread;

/// The slot that is called; no import has it.
const SLOT: usize = 0;
const CALLS: u64 = 200;
const BATCHES: usize = 12;
/// Costs are kept in 1/1024 ticks.
const SCALE: u64 = 1024;

/// The node of these calls, which are none of the application's.
struct Scratch(UnsafeCell<Node>);
// SAFETY: only the start, with one thread, uses it.
unsafe impl Sync for Scratch {}
static SCRATCH: Scratch = Scratch(UnsafeCell::new(Node {
    parent_ref: 0,
    slot: SLOT as u32,
    calls: 0,
    total_ticks: 0,
    max_ticks: 0,
    last_start_ticks: 0,
    scope_ref: 0,
    unwound: 0,
    page_refs: [0; PAGES],
}));

extern "C" fn nothing() {}

/// Inside and outside cost of a call of this thread, in 1/1024 ticks.
pub(crate) fn measure(thread: &Thread) -> (u64, u64) {
    let direct = nothing as *const () as usize;
    TARGETS[SLOT].store(direct, Ordering::Relaxed);
    let node = SCRATCH.0.get();
    if !thread.tree.lend(node, SLOT as u32) {
        return (0, 0);
    }
    let (mut least_direct, mut least_hooked, mut least_recorded) = (u64::MAX, u64::MAX, u64::MAX);
    for _ in 0..BATCHES {
        least_direct = least_direct.min(time_calls(direct));
        // SAFETY: the node is ours alone.
        unsafe { (*node).total_ticks = 0 };
        least_hooked = least_hooked.min(time_calls(arch::stub(SLOT)));
        // SAFETY: as above.
        least_recorded = least_recorded.min(unsafe { (*node).total_ticks });
    }
    let inside = least_recorded.saturating_sub(least_direct);
    let outside = least_hooked.saturating_sub(least_recorded);
    (inside * SCALE / CALLS, outside * SCALE / CALLS)
}

fn time_calls(address: usize) -> u64 {
    // SAFETY: the address is that of `nothing`, or of a stub that leads to it.
    let function: extern "C" fn() =
        unsafe { core::mem::transmute(black_box(address) as *const c_void) };
    let start = clock::now();
    for _ in 0..CALLS {
        function();
    }
    clock::now().wrapping_sub(start)
}
