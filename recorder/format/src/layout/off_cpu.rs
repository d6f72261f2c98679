//! Time off the CPU, as threads have measured it themselves.

use bytemuck::{Pod, Zeroable};

/// How long a thread was off the CPU in one of its contexts: in the calls of that context, or, for the thread's root,
/// outside of calls. Times too short to be measured are missing. Rows whose `node_ref` is 0 are empty.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct OffCpuRow {
    /// The context's node.
    pub node_ref: u32,
    /// How often time was added.
    pub times: u32,
    /// Time off the CPU in which the thread waited, in ns.
    pub blocked_ns: u64,
    /// Time off the CPU in which it was preempted, in ns.
    pub preempted_ns: u64,
    /// What measuring took, in ticks: this is part of the self time of this context.
    pub cost_ticks: u64,
}
