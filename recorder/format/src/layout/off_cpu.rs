//! Time off the CPU, as threads have asked for it.

use bytemuck::{Pod, Zeroable};

/// How long a thread was off the CPU in one of its contexts: the calls of that context, or, for the thread's root, its time
/// outside of calls. Without what was too short to be asked about. Places whose `node_ref` is 0 are empty.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct OffCpuRow {
    /// The context's node.
    pub node_ref: u32,
    /// How often time was added.
    pub times: u32,
    /// Time off the CPU in stretches in which the thread gave it up by itself, in ns.
    pub blocked_ns: u64,
    /// Time off the CPU in stretches in which it was only taken away, in ns.
    pub preempted_ns: u64,
    /// What the asking took, in ticks: in the self time of this context.
    pub cost_ticks: u64,
}
