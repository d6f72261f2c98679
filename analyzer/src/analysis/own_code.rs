//! Time outside of library calls: whose code it is, and what of it is nobody's.

use crate::costs::Cost;
use crate::names::Names;
use crate::rows::ThreadRow;
use crate::sums::Scale;

/// Libraries whose start routines run what they are given. The object that their argument points to begins with the
/// function that is run, or with the table of functions of its class: in whose object that is, the thread is at home.
/// (Pools of GLib's are made so with a function of GLib's own.)
const RUNTIMES: [&str; 5] =
    ["libstdc++.so", "libc++.so", "libglib-2.0.so", "libQt5Core.so", "libQt6Core.so"];

/// The object that a thread's own code is in, by number.
pub(super) fn object(row: &ThreadRow, names: &Names, executable: u32) -> u32 {
    let Some(start) = row.start_routine.and_then(|routine| routine.object) else {
        return executable;
    };
    let name = &names.objects[start as usize].name;
    if !RUNTIMES.iter().any(|runtime| name.starts_with(runtime)) {
        return start;
    }
    let runs = row.creation.words.first().and_then(|word| word.object);
    // What it was made to run is not known of a thread whose creation was not seen.
    runs.unwrap_or(if row.creation.words.is_empty() { start } else { executable })
}

/// How long others had the processor during calls that were not timed: those are taken to last as long as the ones that
/// were, and of these, none counts for others in which that happened. So it is missing there, and looks like own code.
///
/// A thread that could have run for `ready_ns`, and did for `cpu_ns`, was kept from it everywhere in the same proportion.
pub(super) fn unattributed_ns(contexts: &[Cost], scale: &Scale, cpu_ns: f64, ready_ns: f64) -> f64 {
    if cpu_ns <= 0.0 || ready_ns <= cpu_ns {
        return 0.0;
    }
    let estimated = contexts.iter().filter(|context| context.samples < context.timed);
    let ticks: f64 = estimated.map(|context| context.measured).sum();
    ticks * scale.ns_per_tick * (ready_ns - cpu_ns) / cpu_ns
}
