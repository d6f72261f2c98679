//! Gives up what the companion may do, as soon as it has no more use for it.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// What is used as long as processes are watched. Recordings and lists of generated code of root's processes may be in anybody's
/// directories, and `/proc` shows the mappings of a process only to one with as many capabilities, or with the one for tracing.
const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::SYS_PTRACE);

/// Gives up, for good, all capabilities that watching does not need once the eBPF program is attached. Before Linux 5.19, changing the
/// program's maps needs one; `can_go_on` tells whether it works without. What other programs may do that are started later by `exec` is
/// left as it is.
///
/// # Errors
/// If the kernel refuses.
pub fn give_up(can_go_on: impl FnOnce() -> bool) -> io::Result<()> {
    let before = capabilities(None)?.permitted;
    let for_maps = match before.contains(CapabilitySet::BPF) {
        true => CapabilitySet::BPF,
        false => CapabilitySet::SYS_ADMIN,
    };
    // What is not effective at the moment can be again, as long as it is permitted.
    let hold = |effective, permitted| {
        let inheritable = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective, permitted, inheritable })
    };
    let kept = before & KEPT;
    hold(kept, before & (KEPT | for_maps))?;
    let kept = if can_go_on() { kept } else { before & (KEPT | for_maps) };
    hold(kept, kept)?;
    Ok(())
}
