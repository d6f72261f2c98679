//! What the hook itself costs, measured at the start on this machine, so that reports can subtract
//! it.
//!
//! An empty function is called through a stub, and directly. *Inside* is what the recorded duration
//! has above the direct call's; *outside* is the rest of what the caller pays.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::hint::black_box;
use core::ptr;

use chase_format::histogram::PAGES;
use chase_format::layout::{FRAMED, Node, SAMPLED, TIMING_ADAPTIVE, TIMING_ALL};

use crate::arch;
use crate::clock;
use crate::sampling::{self, SAMPLES_PER_CHOICE};
use crate::thread::Thread;

/// The slot that is called; no import has it.
const SLOT: usize = 0;
const CALLS: u64 = 100;
const BATCHES: usize = 8;
/// Fewer than would make the sampling look whether it is worth it.
const SAMPLES: u64 = SAMPLES_PER_CHOICE as u64 - 2;
/// Costs are kept in 1/1024 ticks.
const SCALE: u64 = 1024;

/// Nodes of these calls, which are none of the application's: of those that are timed; of samples,
/// and what belongs behind it; of those that get frames.
struct Scratch(UnsafeCell<[Node; 5]>);
// SAFETY: only the start, with one thread, uses it.
unsafe impl Sync for Scratch {}
static SCRATCH: Scratch = Scratch(UnsafeCell::new(
    [const {
        Node {
            parent_ref: 0,
            slot: SLOT as u32,
            calls: 0,
            total_ticks: 0,
            max_ticks: 0,
            last_start_ticks: 0,
            scope_ref: 0,
            unwound: 0,
            page_refs: [0; PAGES],
        }
    }; 5],
));

/// What a call costs, in 1/1024 ticks.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) inside: u64,
    pub(crate) outside: u64,
    /// Of a call that is only counted; its caller sees it.
    pub(crate) counted: u64,
    /// As `outside`, of a call that is a sample.
    pub(crate) sampled: u64,
    /// The recorded duration of a call of an empty function.
    pub(crate) empty: u64,
    /// As `counted`, of a call that gets a frame.
    pub(crate) framed: u64,
    /// As `empty`, of a sample.
    pub(crate) probed: u64,
    /// What is in `sampled` and is not measured of each sample.
    pub(crate) unmeasured: u64,
}

impl Cost {
    pub(crate) const NONE: Self = Self {
        inside: 0,
        outside: 0,
        counted: 0,
        sampled: 0,
        empty: 0,
        framed: 0,
        probed: 0,
        unmeasured: 0,
    };
}

extern "C" fn nothing() {}

/// What a call of this thread costs.
pub(crate) fn measure(thread: &Thread) -> Cost {
    let direct = nothing as *const () as usize;
    if !arch::set_target(SLOT, direct) {
        return Cost::NONE;
    }
    arch::make_direct(SLOT..SLOT + 1);
    let nodes = SCRATCH.0.get().cast::<Node>();
    // SAFETY: the nodes are ours alone, one behind the other.
    let (node, sampled_node, framed_node) = unsafe { (nodes, nodes.add(1), nodes.add(3)) };
    // SAFETY: as above.
    let lent = unsafe {
        thread.tree.lend(node, SLOT as u32)
            && thread.tree.lend(sampled_node, SLOT as u32 | SAMPLED)
            && thread.tree.lend(framed_node, SLOT as u32 | SAMPLED | FRAMED)
    };
    if !lent {
        return Cost::NONE;
    }
    let (mut least_direct, mut least_hooked, mut least_recorded) = (u64::MAX, u64::MAX, u64::MAX);
    let (mut least_counted, mut least_framed) = (u64::MAX, u64::MAX);
    let (mut samples, mut probed) = (Sampled { outside: u64::MAX, measured: 0 }, 0);
    for _ in 0..BATCHES {
        let stub = arch::stub(SLOT);
        least_direct = least_direct.min(time_calls(direct, CALLS));
        // SAFETY: the node is ours alone.
        unsafe { (*node).total_ticks = 0 };
        least_hooked = least_hooked.min(time_calls(stub, CALLS));
        // SAFETY: as above.
        least_recorded = least_recorded.min(unsafe { (*node).total_ticks });
        if sampling::mode() == TIMING_ALL {
            continue;
        }
        sampling::prepare_counted(thread, SLOT as u32, 2 * CALLS as u32);
        least_counted = least_counted.min(time_calls(stub, CALLS));
        sampling::prepare_counted(thread, SLOT as u32, 0);
        if sampling::mode() != TIMING_ADAPTIVE {
            continue;
        }
        if let Some(latest) = time_samples(thread, sampled_node)
            && latest.outside < samples.outside
        {
            samples = latest;
        }
        probed = sampling::probe(thread);
        if sampling::prepare_framed(thread, SLOT as u32, 2 * CALLS as u32) {
            least_framed = least_framed.min(time_calls(stub, CALLS));
            sampling::prepare_framed(thread, SLOT as u32, 0);
        }
    }
    let per_call =
        |ticks: u64, calls: u64| if ticks == u64::MAX { 0 } else { ticks * SCALE / calls };
    Cost {
        inside: per_call(least_recorded.saturating_sub(least_direct), CALLS),
        outside: per_call(least_hooked.saturating_sub(least_recorded), CALLS),
        counted: per_call(least_counted, CALLS).saturating_sub(per_call(least_direct, CALLS)),
        sampled: per_call(samples.outside, SAMPLES),
        empty: per_call(least_recorded, CALLS),
        framed: per_call(least_framed, CALLS).saturating_sub(per_call(least_direct, CALLS)),
        probed: probed * SCALE,
        unmeasured: per_call(samples.outside, SAMPLES)
            .saturating_sub(per_call(samples.measured, SAMPLES)),
    }
}

/// What samples cost in all, in ticks, but for what they add to their own durations.
struct Sampled {
    outside: u64,
    /// As those have measured it that did.
    measured: u64,
}

/// Makes [`SAMPLES`] samples. `None` if there is no room, or if one was interrupted, which makes the
/// sampling look at it, and perhaps change its mind.
fn time_samples(thread: &Thread, node: *mut Node) -> Option<Sampled> {
    if !sampling::prepare_samples(thread, SLOT as u32, node) {
        return None;
    }
    // SAFETY: only the start uses the node, and what is behind it.
    let samples = unsafe { sampling::samples_of(node) };
    // SAFETY: as above.
    unsafe { ((*node).total_ticks, (*samples).weight) = (0, 0) };
    sampling::take_spent(thread);
    let took = time_calls(arch::stub(SLOT), SAMPLES);
    let (count, ticks) = sampling::take_spent(thread);
    // SAFETY: as above.
    let (recorded, weight) = unsafe { ((*node).total_ticks, (*samples).weight) };
    sampling::prepare_samples(thread, SLOT as u32, ptr::null_mut());
    let outside = took.saturating_sub(recorded);
    // Some of them were measured, or none.
    let measured = (ticks * SAMPLES).checked_div(count).unwrap_or(outside);
    (weight == SAMPLES).then_some(Sampled { outside, measured })
}

fn time_calls(address: usize, calls: u64) -> u64 {
    // SAFETY: the address is that of `nothing`, or of a stub that leads to it.
    let function: extern "C" fn() =
        unsafe { core::mem::transmute(black_box(address) as *const c_void) };
    let start = clock::now();
    for _ in 0..calls {
        function();
    }
    clock::now().wrapping_sub(start)
}
