//! Single long waits, and times in which others had the processors, on the clock of the run.

use chase_recorder::layout::OWN_CONTEXT_REF;
use chase_recorder::syscalls::{CauseRow as Recorded, NO_CAUSE, NO_SYSCALL};

use crate::address::CodeAddress;
use crate::analysis::Analysis;
use crate::causes::{NamingPlaces, PathWait, Run};
use crate::common_time::CommonTime;
use crate::groups::Groups;
use crate::image::Image;
use crate::run_start::start;
use crate::spans::Span;

/// A wait of a millisecond or more. Times are in ns since the start of the run.
#[derive(Clone, Debug)]
pub(crate) struct LongWait {
    pub(crate) begin_ns: u64,
    /// When it was woken, if that was seen.
    pub(crate) woken_ns: Option<u64>,
    /// When it ran again.
    pub(crate) end_ns: u64,
    /// The thread that woke it, by number in [`Analysis::threads`].
    pub(crate) waker: Option<u32>,
    /// The API that the waker was in, by number in [`Analysis::apis`].
    pub(crate) waker_api: Option<u32>,
    /// Name of the waker, if it is another process.
    pub(crate) waker_name: String,
    /// The return address of the call that the waker was in.
    pub(crate) waker_site: Option<CodeAddress>,
    /// The system call in which it waited, if it was one.
    pub(crate) syscall: Option<u32>,
    /// In which call it waited, and for what.
    pub(crate) wait: PathWait,
    /// Whether the hook waited, for a lock of its own.
    pub(crate) is_own: bool,
}

/// The long times off the CPU of a thread, in order of their beginnings, as far as they are in its life.
#[derive(Clone, Debug, Default)]
pub(crate) struct OffCpuTimes {
    /// Times in which it waited.
    pub(crate) waits: Vec<LongWait>,
    /// Times of a millisecond or more in which it was ready and others had the processors: from, to, like those of waits.
    pub(crate) preempted: Vec<(u64, u64)>,
}

impl OffCpuTimes {
    /// Returns when it could have run, and others had the processors: in order, and without overlaps.
    pub(crate) fn without_processor(&self) -> Vec<Span> {
        let ready = |wait: &LongWait| (wait.woken_ns.unwrap_or(wait.end_ns), wait.end_ns);
        let mut spans: Vec<Span> = self.preempted.clone();
        spans.extend(self.waits.iter().map(ready));
        spans.sort_unstable();
        let mut end = 0;
        spans.retain_mut(|span| {
            span.0 = span.0.max(end);
            end = end.max(span.1);
            span.0 < span.1
        });
        spans
    }
}

/// Returns what was recorded of single times off the CPU, by thread of the analysis.
pub(crate) fn long_waits(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
    naming: &dyn NamingPlaces,
) -> Vec<OffCpuTimes> {
    let run = Run::new(images, analysis, groups, naming);
    let time = CommonTime::new(images);
    let mut of_threads: Vec<OffCpuTimes> = Vec::new();
    of_threads.resize_with(analysis.threads.len(), OffCpuTimes::default);
    let Some(start) = start(images, analysis, &time) else { return of_threads };
    for (process, image) in images.iter().enumerate() {
        let Some(file) = &image.syscalls else { continue };
        let since = |ns: u64| time.of_monotonic(image, ns).0.saturating_sub(start);
        let causes: Vec<Recorded> = file.causes().collect();
        for row in file.blocked() {
            let cause = causes.get(row.cause as usize).filter(|cause| cause.tid == row.tid);
            let reference = match cause {
                Some(cause) => cause.context_ref,
                None if row.cause == NO_CAUSE => 0,
                None => continue,
            };
            let (thread, api) = run.place(process, reference, row.tid);
            let Some(own) = thread.and_then(|thread| of_threads.get_mut(thread as usize)) else {
                continue;
            };
            let (begin_ns, end_ns) = (since(row.begin_ns), since(row.end_ns));
            let Some(cause) = cause else {
                own.preempted.push((begin_ns, end_ns));
                continue;
            };
            let ((_, _, waker_api, waker_site, waker_name, _), waker) = run.waker(cause);
            let woken_ns = (row.woken_ns != 0).then(|| since(row.woken_ns));
            // A child ends the `vfork` that made it before it is recorded: what it does until then is part of the wait.
            let has_begun = |&waker: &u32| {
                let row = analysis.threads.get(waker as usize);
                row.zip(woken_ns).is_none_or(|(row, woken)| row.start_ns.0 <= woken)
            };
            own.waits.push(LongWait {
                begin_ns,
                woken_ns,
                end_ns,
                waker: waker.filter(|&waker| Some(waker) != thread).filter(has_begun),
                waker_api,
                waker_name,
                waker_site,
                syscall: (cause.number != NO_SYSCALL).then_some(cause.number),
                wait: run.wait(process, cause, api),
                is_own: reference == OWN_CONTEXT_REF,
            });
        }
    }
    for (own, row) in of_threads.iter_mut().zip(&analysis.threads) {
        // The companion may have seen a thread before it was recorded, and until after that.
        let cut = |from: &mut u64, to: &mut u64| {
            (*from, *to) = ((*from).max(row.start_ns.0), (*to).min(row.end_ns.0));
            *from < *to
        };
        own.waits.retain_mut(|wait| cut(&mut wait.begin_ns, &mut wait.end_ns));
        own.waits.sort_by_key(|wait| (wait.begin_ns, wait.end_ns));
        own.preempted.retain_mut(|(from, to)| cut(from, to));
        own.preempted.sort_unstable();
    }
    of_threads
}
