//! What samples of the processor say, in columns of other tables.

use chase_analyzer::{ApiRow, Ns, SampledTime};

use crate::report::{Report, fraction};
use crate::terminal::{Cell, Look, percent};

/// Heading of the share of the time on the CPU.
pub(super) const CPU: &str = "cpu";
/// Heading of the part of it in the kernel.
pub(super) const KERNEL: &str = "kernel";
/// Heading of the part of a function's time in which the application ran.
pub(super) const CALLBACKS: &str = "callbacks";

/// Instead of the part in the kernel, where samples are of user space alone.
const UNKNOWN: &str = "?";

/// A smaller part is not worth a figure.
const LEAST_CALLBACKS: f64 = 0.01;

pub(super) const CPU_LEGEND: (&str, &str) = (
    "cpu",
    "where the processor was, by samples of what ran, whoever called whom, as a share of all time on it; of functions, during their calls, without library calls made inside. ± in points, with a confidence of 95 %",
);
pub(super) const CALLBACKS_LEGEND: (&str, &str) =
    ("callbacks", "how much of that was in the application, which the function called back");

/// What samples need, where nothing else is known of why there are none.
const NEEDS: &str = "samples need chase-companion and CHASE_SAMPLE not off; and kernel.perf_event_paranoid of 2 or less, or root, or setcap cap_bpf,cap_perfmon+ep";

/// Why no samples were taken, as far as the recorded program has noted it.
pub(super) fn why_none(report: &Report) -> String {
    let images = report.loaded.images.iter();
    let noted = images.filter_map(|image| image.recording.meta_value("syscalls")).next();
    noted.filter(|why| *why != "on").map_or_else(|| NEEDS.to_owned(), std::borrow::Cow::into_owned)
}

/// Whether samples were taken.
pub(super) fn is_sampled(report: &Report) -> bool {
    report.analysis.on_cpu.samples > 0
}

/// How many processes were not watched: no sample is of what they ran.
pub(super) fn unwatched(report: &Report) -> usize {
    report.analysis.not_seen.syscalls.processes_without.len()
}

/// A share of all time on the CPU, with how far off it may be; empty for nothing.
pub(super) fn share(report: &Report, time: Option<SampledTime>) -> String {
    let all = report.analysis.on_cpu.whole_ns().as_f64();
    match time {
        Some(time) if time.samples > 0 => {
            let points = fraction(time.on_cpu_ci95_ns, all) * 100.0;
            format!("{} ±{points:.1}", percent(fraction(time.on_cpu_ns, all)))
        }
        _ => String::new(),
    }
}

/// A row for time on the CPU that no sample tells of, if that is worth one: the kernel's, where samples are of user space alone.
/// The others' shares are of all time.
pub(super) fn not_sampled<const N: usize>(report: &Report) -> Option<[Cell; N]> {
    const WORTH: f64 = 0.01;
    let on_cpu = &report.analysis.on_cpu;
    let share = fraction(on_cpu.not_sampled_ns, on_cpu.whole_ns().as_f64());
    (is_sampled(report) && share >= WORTH).then(|| {
        std::array::from_fn(|column| match column {
            0 => Cell::new("[not sampled]", Look::Faint),
            1 => percent(share).into(),
            _ => "".into(),
        })
    })
}

/// How much of the time on the CPU in calls of a function the application ran, called back; empty for next to nothing.
pub(super) fn callbacks(row: &ApiRow) -> String {
    let Some(on_cpu) = row.on_cpu else { return String::new() };
    let share = fraction(on_cpu.on_cpu_application_ns, on_cpu.time.on_cpu_ns.as_f64());
    if share < LEAST_CALLBACKS { String::new() } else { percent(share) }
}

/// The part of it in the kernel; empty for nothing.
pub(super) fn kernel(report: &Report, time: Option<SampledTime>) -> String {
    let all = report.analysis.on_cpu.whole_ns().as_f64();
    match time.and_then(|time| time.on_cpu_kernel_ns) {
        None if report.analysis.on_cpu.user_only => UNKNOWN.to_owned(),
        None | Some(Ns(0)) => String::new(),
        Some(kernel_ns) => percent(fraction(kernel_ns, all)),
    }
}
