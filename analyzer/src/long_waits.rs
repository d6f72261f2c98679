//! Single long waits, and times in which others had the processors, on the clock of the run.

use chase_recorder::syscalls::{CauseRow as Recorded, NO_CAUSE, NO_SYSCALL};

use crate::analysis::Analysis;
use crate::causes::{NamingPlaces, PathWait, Run};
use crate::clock::Ticks;
use crate::common_time::CommonTime;
use crate::groups::{Groups, Unnamed};
use crate::image::Image;

/// A wait of a millisecond or more. Times are in ns since the start of the run.
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
    /// The system call in which it waited, if it was one.
    pub(crate) syscall: Option<u32>,
    /// In which call it waited, and for what.
    pub(crate) wait: PathWait,
}

/// Returns long waits by thread of the analysis, in order of their beginnings.
pub(crate) fn long_waits(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
    naming: &dyn NamingPlaces,
) -> Vec<Vec<LongWait>> {
    let run = Run::new(images, analysis, groups, naming);
    let time = CommonTime::new(images);
    let mut of_threads: Vec<Vec<LongWait>> = Vec::new();
    of_threads.resize_with(analysis.threads.len(), Vec::new);
    let start = start(images, analysis, &time);
    for (process, image) in images.iter().enumerate() {
        let (Some(file), Some(start)) = (&image.syscalls, start) else { continue };
        let since = |ns: u64| time.of_monotonic(image, ns).0.saturating_sub(start);
        let causes: Vec<Recorded> = file.causes().collect();
        for row in file.blocked() {
            let Some(cause) = causes.get(row.cause as usize).filter(|cause| cause.tid == row.tid)
            else {
                continue;
            };
            let (thread, api) = run.place(process, cause.context_ref, cause.tid);
            let Some(own) = thread.and_then(|thread| of_threads.get_mut(thread as usize)) else {
                continue;
            };
            let ((_, _, waker_api, _, waker_name, _), waker) = run.waker(cause);
            own.push(LongWait {
                begin_ns: since(row.begin_ns),
                woken_ns: (row.woken_ns != 0).then(|| since(row.woken_ns)),
                end_ns: since(row.end_ns),
                waker: waker.filter(|&waker| Some(waker) != thread),
                waker_api,
                waker_name,
                syscall: (cause.number != NO_SYSCALL).then_some(cause.number),
                wait: run.wait(process, cause, api),
            });
        }
    }
    for own in &mut of_threads {
        own.retain(|wait| wait.begin_ns < wait.end_ns);
        own.sort_by_key(|wait| (wait.begin_ns, wait.end_ns));
    }
    of_threads
}

/// Times of a millisecond or more in which a thread was ready and others had the processors, by thread of the analysis: from, to.
pub(crate) fn preempted(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
) -> Vec<Vec<(u64, u64)>> {
    let run = Run::new(images, analysis, groups, &Unnamed);
    let time = CommonTime::new(images);
    let mut of_threads: Vec<Vec<(u64, u64)>> = vec![Vec::new(); analysis.threads.len()];
    let Some(start) = start(images, analysis, &time) else { return of_threads };
    for (process, image) in images.iter().enumerate() {
        let Some(file) = &image.syscalls else { continue };
        let since = |ns: u64| time.of_monotonic(image, ns).0.saturating_sub(start);
        for row in file.blocked().filter(|row| row.cause == NO_CAUSE) {
            let (thread, _) = run.place(process, 0, row.tid);
            let own = thread.and_then(|thread| of_threads.get_mut(thread as usize));
            own.into_iter().for_each(|own| own.push((since(row.begin_ns), since(row.end_ns))));
        }
    }
    for own in &mut of_threads {
        own.retain(|(from, to)| from < to);
        own.sort_unstable();
    }
    of_threads
}

/// Returns the time at which the run started.
fn start(images: &[Image], analysis: &Analysis, time: &CommonTime) -> Option<u64> {
    let row = analysis.threads.first()?;
    let image = images.get(row.process)?;
    let mut threads = image.recording.threads();
    let record = *threads.find(|thread| thread.record().index == row.thread)?.record();
    Some(time.of_ticks(image, Ticks(record.start_ticks)).0.saturating_sub(row.start_ns.0))
}
