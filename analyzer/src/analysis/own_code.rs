//! Attributes the time outside of library calls to the object whose code ran, and finds the part that can't be
//! attributed.

use crate::costs::Cost;
use crate::names::Names;
use crate::rows::ThreadRow;
use crate::sums::Scale;

/// Libraries whose start routines run a given function. The object that the start routine's argument points to begins
/// with the function that is run, or with the virtual table of its class: the thread's own code is that of the object
/// that contains it. (Thread pools of GLib are created with a function of GLib itself.)
const RUNTIMES: [&str; 5] =
    ["libstdc++.so", "libc++.so", "libglib-2.0.so", "libQt5Core.so", "libQt6Core.so"];

/// Returns the number of the object to which a thread's own code is attributed.
pub(super) fn object(row: &ThreadRow, names: &Names, executable: u32) -> u32 {
    let Some(start) = row.start_routine.and_then(|routine| routine.object) else {
        return executable;
    };
    let name = &names.objects[start as usize].name;
    if !RUNTIMES.iter().any(|runtime| name.starts_with(runtime)) {
        return start;
    }
    let runs = row.creation.words.first().and_then(|word| word.object);
    // If the creation was not seen, it is unknown what the thread was made to run.
    runs.unwrap_or(if row.creation.words.is_empty() { start } else { executable })
}

/// Returns the time for which other threads had the processor during calls that were not timed. Such calls are
/// assumed to take as long as those that were timed, but samples during which the thread was preempted don't count
/// for others. So this time is missing there, and looks like time in own code.
///
/// If a thread was ready to run for `ready_ns` while others ran, and ran for `cpu_ns`, it is assumed to have been
/// preempted everywhere in the same proportion.
pub(super) fn unattributed_ns(contexts: &[Cost], scale: &Scale, cpu_ns: f64, ready_ns: f64) -> f64 {
    if cpu_ns <= 0.0 || ready_ns <= cpu_ns {
        return 0.0;
    }
    let estimated = contexts.iter().filter(|context| context.samples < context.timed);
    let ticks: f64 = estimated.map(|context| context.measured).sum();
    ticks * scale.ns_per_tick * (ready_ns - cpu_ns) / cpu_ns
}
