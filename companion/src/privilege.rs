//! What the companion may do, which it gives up as soon as it has no more use for it.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// The capabilities that are needed as long as processes are watched. Recordings and lists of generated code may be in directories of
/// any user, and `/proc` shows a process's mappings only to a process with the same capabilities, or with that for tracing.
const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::SYS_PTRACE);

/// Whether this process has the capabilities for loading tracing programs. (If they can't be read, the kernel decides.)
#[must_use]
pub fn may_load() -> bool {
    let both = CapabilitySet::BPF | CapabilitySet::PERFMON;
    capabilities(None).map_or(true, |own| {
        own.effective.contains(CapabilitySet::SYS_ADMIN) || own.effective.contains(both)
    })
}

/// Once the eBPF program is attached: gives up, for good, all capabilities that watching does not need. Before Linux 5.19, changing the
/// program's maps needs one; `can_go_on` returns whether it works without. The rights of programs that are started later by `exec`
/// are not changed.
///
/// # Errors
/// If the kernel refuses.
pub fn give_up(can_go_on: impl FnOnce() -> bool) -> io::Result<()> {
    let before = capabilities(None)?.permitted;
    let for_maps = match before.contains(CapabilitySet::BPF) {
        true => CapabilitySet::BPF,
        false => CapabilitySet::SYS_ADMIN,
    };
    // A capability that is permitted can be made effective again.
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
