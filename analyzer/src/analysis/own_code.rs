//! Attributes the time outside of library calls to the object whose code ran, and finds the part that can't be
//! attributed.

use crate::costs::Cost;
use crate::names::Names;
use crate::off_cpu::{OffCpu, WaitSource};
use crate::rows::ThreadRow;
use crate::sums::Scale;
use crate::walk::NOBODY;

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

/// Calls that were not timed, and during which other threads had the processor. Such calls are assumed to take as long
/// as those that were timed, but samples during which the thread was preempted don't count for others. So this time
/// is missing there, and looks like time in own code.
pub(super) struct Untimed {
    /// The estimated time of all calls that were made where the measured time off the CPU, if any, is that of the caller.
    all_ns: f64,
    /// The same of those made in the thread's own code.
    in_own_code_ns: f64,
}

impl Untimed {
    pub(super) fn new(contexts: &[Cost], scale: &Scale, source: WaitSource) -> Self {
        let mut untimed = Self { all_ns: 0.0, in_own_code_ns: 0.0 };
        for context in contexts {
            // The scheduler sees all calls that get frames. Threads only ask at the end of calls that were timed.
            let is_unseen = match source {
                WaitSource::Scheduler => context.is_partly_unseen(),
                _ => context.samples < context.timed,
            };
            if is_unseen {
                let ns = context.measured * scale.ns_per_tick;
                untimed.all_ns += ns;
                untimed.in_own_code_ns += if context.caller == NOBODY { ns } else { 0.0 };
            }
        }
        untimed
    }

    /// Returns for how long others had the processor, if that was not measured. If a thread was ready to run for
    /// `ready_ns` while others ran, and ran for `cpu_ns`, it is assumed to have been preempted everywhere in the same
    /// proportion.
    pub(super) fn unattributed_ns(&self, cpu_ns: f64, ready_ns: f64) -> f64 {
        if cpu_ns <= 0.0 || ready_ns <= cpu_ns {
            return 0.0;
        }
        self.all_ns * (ready_ns - cpu_ns) / cpu_ns
    }

    /// Returns for how long others had the processor, and takes it from the time that was measured as that of the thread's
    /// own code, of `application_ns`. It is assumed that the thread was preempted in its own code and in these calls in the same
    /// proportion to its time on the CPU.
    pub(super) fn take_preempted(&self, own_code: &mut OffCpu, application_ns: f64) -> f64 {
        let preempted_ns = own_code.preempted_ns.unwrap_or(0.0);
        let ran_ns = (application_ns - own_code.wait_ns - preempted_ns).max(0.0);
        if self.in_own_code_ns <= 0.0 || preempted_ns <= 0.0 {
            return 0.0;
        }
        // After a wait of its own it is the wait's.
        let pushed_aside_ns = preempted_ns - own_code.woken_ns;
        let taken_ns = pushed_aside_ns * self.in_own_code_ns / (self.in_own_code_ns + ran_ns);
        own_code.preempted_ns = Some(preempted_ns - taken_ns);
        taken_ns
    }
}
