//! Threads that a Java virtual machine makes for itself.

use super::Evidence;
use crate::groups::GroupRow;
use crate::wait_causes::made_by;

/// How their names begin (`os::set_native_thread_name`, which the kernel cuts at 15 bytes). Of the programs' own threads, nothing but the name
/// tells them: all are made by one function.
const NAMES: &[&str] = &[
    "Attach Listener",
    "C1 Compiler",
    "C2 Compiler",
    "Common-Cleaner",
    "Finalizer",
    "G1 ",
    "GC Thread#",
    "JVMCI",
    "Monitor Deflati",
    "Notification Th",
    "Reference Handl",
    "Service Thread",
    "Shenandoah",
    "Signal Dispatch",
    "Sweeper thread",
    "VM Periodic Tas",
    "VM Thread",
];

/// Whether all threads of a group are such: they wait until there is something to compile, to collect or to clean up, and the less there is,
/// the better.
pub(super) fn is_own(evidence: &Evidence<'_>, group: &GroupRow) -> bool {
    evidence.groups.threads(evidence.analysis, group).all(|row| {
        made_by(row, &evidence.analysis.objects).is_some_and(|name| name.starts_with("libjvm."))
            && NAMES.iter().any(|name| row.name.starts_with(name))
    })
}
