//! Measures at start, on this machine, what the hook itself costs, so that reports can subtract it.
//!
//! An empty function is called through a stub, and directly. The *inside* cost is the recorded duration less that of
//! the direct call; *outside* is what the caller pays beyond the recorded duration.

use core::ffi::c_void;
use core::hint::black_box;
use core::ptr;

use chase_format::layout::{FRAMED, Node, SAMPLED, TIMING_ADAPTIVE, TIMING_ALL};

use crate::lock::Lock;
use crate::node::samples_of;
use crate::sampling::{self, Cost, SAMPLES_PER_CHOICE};
use crate::thread::Thread;
use crate::{clock, stubs};
use chase_logic::batches::Batches;

/// The slot that is called; no import has it.
const SLOT: usize = 0;
/// So few that a short program does not wait for them, and so many that steps of 10 ns of the time stamp counter change
/// a call's duration by a quarter of a nanosecond at most, and less in the mean of several batches.
const CALLS: u64 = 40;
const BATCHES: usize = 8;
type Durations = Batches<BATCHES, CALLS>;
/// Fewer samples than would make the sampling reconsider the block's length.
const SAMPLES: u64 = SAMPLES_PER_CHOICE as u64 - 2;
/// Costs are in 1/1024 ticks.
const SCALE: u64 = 1024;

/// Nodes of these calls, apart from those of the application: one for timed calls, one for samples and one for the
/// sample data behind it, and the same two for framed calls.
static SCRATCH: Lock<[Node; 5]> = Lock::new([Node::EMPTY; 5]);

extern "C" fn nothing() {}

/// Gives the slot that is called its function, which all stubs' jumps are made direct with.
pub(crate) fn prepare() {
    stubs::set_target(SLOT, nothing as *const () as usize);
}

/// Measures the costs of a call in this thread.
pub(crate) fn measure(thread: &Thread) -> Cost {
    let address = nothing as *const () as usize;
    if !stubs::set_target(SLOT, address) {
        return Cost::NONE;
    }
    if sampling::mode() != TIMING_ALL {
        stubs::make_direct(SLOT..SLOT + 1);
    }
    let mut scratch = SCRATCH.hold();
    let nodes = scratch.as_mut_ptr();
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
    let [mut direct, mut hooked, mut recorded] = [Durations::NONE; 3];
    let [mut counted, mut framed, mut probed] = [Durations::NONE; 3];
    let mut samples = Sampled { outside: u64::MAX, measured: 0 };
    for _ in 0..BATCHES {
        let stub = stubs::stub(SLOT);
        direct.add(time_calls(address, CALLS));
        // SAFETY: the node is ours alone.
        unsafe { (*node).total_ticks = 0 };
        hooked.add(time_calls(stub, CALLS));
        // SAFETY: as above.
        recorded.add(unsafe { (*node).total_ticks });
        if sampling::mode() == TIMING_ALL {
            continue;
        }
        sampling::prepare_counted(thread, SLOT as u32, 2 * CALLS as u32);
        counted.add(time_calls(stub, CALLS));
        sampling::prepare_counted(thread, SLOT as u32, 0);
        if sampling::mode() != TIMING_ADAPTIVE {
            continue;
        }
        if let Some(latest) = time_samples(thread, sampled_node)
            && latest.outside < samples.outside
        {
            samples = latest;
        }
        probed.add(sampling::probe(CALLS));
        if sampling::prepare_framed(thread, SLOT as u32, 2 * CALLS as u32) {
            framed.add(time_calls(stub, CALLS));
            sampling::prepare_framed(thread, SLOT as u32, 0);
        }
    }
    let per_sample = |ticks: u64| if ticks == u64::MAX { 0 } else { ticks * SCALE / SAMPLES };
    Cost {
        inside: recorded.per_call().saturating_sub(direct.per_call()),
        outside: hooked.per_call().saturating_sub(recorded.per_call()),
        counted: counted.per_call().saturating_sub(direct.per_call()),
        sampled: per_sample(samples.outside),
        empty: recorded.per_call(),
        framed: framed.per_call().saturating_sub(direct.per_call()),
        probed: probed.per_call(),
        unmeasured: per_sample(samples.outside).saturating_sub(per_sample(samples.measured)),
        // The other corrections nearly cancel out.
        error: u32::try_from(probed.error() + direct.error()).unwrap_or(u32::MAX),
    }
}

/// The total cost of samples in ticks, without what they add to their own durations.
struct Sampled {
    outside: u64,
    /// That total by the samples that measured their own cost.
    measured: u64,
}

/// Takes [`SAMPLES`] samples. Returns `None` if there is no room, or if one was interrupted, since the sampling may
/// then change the block's length.
fn time_samples(thread: &Thread, node: *mut Node) -> Option<Sampled> {
    if !sampling::prepare_samples(thread, SLOT as u32, node) {
        return None;
    }
    // SAFETY: only the start uses the node, and what is behind it.
    let samples = unsafe { samples_of(node) };
    // SAFETY: as above.
    unsafe { ((*node).total_ticks, (*samples).weight) = (0, 0) };
    sampling::take_measured(thread);
    let took = time_calls(stubs::stub(SLOT), SAMPLES);
    let (count, ticks) = sampling::take_measured(thread);
    // SAFETY: as above.
    let (recorded, weight) = unsafe { ((*node).total_ticks, (*samples).weight) };
    sampling::prepare_samples(thread, SLOT as u32, ptr::null_mut());
    let outside = took.saturating_sub(recorded);
    // Only some of them may have measured themselves, or none.
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
