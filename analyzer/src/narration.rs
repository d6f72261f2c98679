//! Single system calls in order, with their arguments, if the recording was asked for them.

mod arguments;
mod flags;
mod kinds;
mod names;
mod structures;

use std::collections::{HashMap, HashSet};

use chase_recorder::layout::{OWN_CONTEXT_REF, READABLE_HOW};
use chase_recorder::reader::SyscallsFile;
use chase_recorder::syscalls::SingleSyscallRow;
use serde::Serialize;

use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::common_time::CommonTime;
use crate::image::Image;
use crate::syscalls::Places;

/// System calls of a run, by the time at which they began.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Narration {
    /// All of them, except chase's own.
    pub calls: Vec<NarratedCall>,
    /// A lower bound of the system calls that are missing for lack of room.
    pub lost: u64,
}

/// A single system call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NarratedCall {
    /// When it began, relative to the start of the run.
    pub at_ns: Ns,
    /// How long it took; `None` if it did not return.
    pub ns: Option<Ns>,
    /// Its process, by number in [`Analysis::processes`].
    pub process: usize,
    /// Its thread, by number in [`Analysis::threads`], if the thread is recorded.
    pub thread: Option<usize>,
    /// Thread id.
    pub tid: u32,
    /// The context in which it was made, by number in [`Analysis::contexts`]; `None` if it was made outside of
    /// recorded calls.
    pub context: Option<u32>,
    /// Its number.
    pub number: u32,
    /// Name and arguments, written as in C.
    pub call: String,
    /// Its result: a number, or -1 and the name of the error; `?` if it did not return.
    pub result: String,
    /// Its first argument.
    #[serde(skip)]
    pub first_argument: u64,
    /// Whether it failed.
    pub failed: bool,
}

/// Returns the system calls of `images`, which are those of `analysis`; `None` if single system calls were not
/// recorded.
#[must_use]
pub fn narration(images: &[Image], analysis: &Analysis) -> Option<Narration> {
    let time = CommonTime::new(images);
    let start = images.iter().map(|image| time.of_ticks(image, image.start()).0).min()?;
    let threads: HashMap<(usize, u32), usize> = (0..)
        .zip(&analysis.threads)
        .map(|(number, row)| ((row.process, row.thread), number))
        .collect();
    let mut narration = Narration::default();
    let mut has_single_syscalls = false;
    for (process, image) in images.iter().enumerate() {
        let Some(file) = &image.syscalls else { continue };
        has_single_syscalls |= file.single_syscalls().next().is_some();
        narration.lost = narration.lost.max(file.header().lost_single_syscalls);
        let mut places = Places::new(image);
        for thread in image.recording.threads() {
            let record = thread.record();
            let Some(&number) = threads.get(&(process, record.index)) else { continue };
            places.add_thread(number as u32, record.tid, record.root_ref);
            for (context, part) in thread.contexts().zip(&analysis.threads[number].contexts) {
                places.add_context(number as u32, record.tid, context.reference, part.context);
            }
        }
        for row in of_recorded_threads(image, file) {
            let (thread, place) = places.place_of(row.context_ref, row.tid);
            let at = time.of_ticks(image, image.clock.ticks_at(Ns(row.entered_ns)));
            let context = Some(place).filter(|&at| (at as usize) < analysis.contexts.len());
            let ns = (row.left_ns > 0).then(|| Ns(row.left_ns.saturating_sub(row.entered_ns)));
            narration.calls.push(NarratedCall {
                at_ns: Ns(at.0.saturating_sub(start)),
                ns,
                process,
                thread: thread.map(|thread| thread as usize),
                tid: row.tid,
                context,
                number: row.number,
                call: arguments::call(&row),
                result: arguments::result(&row),
                first_argument: row.arguments[0],
                failed: row.left_ns > 0 && (-4095..0).contains(&row.result),
            });
        }
    }
    narration.calls.sort_by_key(|call| call.at_ns);
    has_single_syscalls.then_some(narration)
}

/// Returns the single system calls of an image, except chase's own, those of threads that were left out, and the rows of
/// beginnings for calls that have returned.
pub(crate) fn of_recorded_threads(image: &Image, file: &SyscallsFile<'_>) -> Vec<SingleSyscallRow> {
    let mut left_out: HashSet<u32> = image.recording.left_out().iter().copied().collect();
    // A number of which there has also been a recorded thread is not told apart.
    for thread in image.recording.threads() {
        left_out.remove(&thread.record().tid);
    }
    returned(file.single_syscalls().filter(|row| !left_out.contains(&row.tid)))
}

/// Whether chase asks the kernel by this call if memory can be read; it may do so before it can say that a call is its own.
fn is_question(row: &SingleSyscallRow) -> bool {
    row.number == libc::SYS_rt_sigprocmask as u32 && row.arguments[0] == READABLE_HOW
}

/// Drops chase's own calls, and the rows of beginnings for calls that have returned.
fn returned(rows: impl Iterator<Item = SingleSyscallRow>) -> Vec<SingleSyscallRow> {
    let mut kept: Vec<SingleSyscallRow> = Vec::new();
    let mut begun: HashMap<(u32, u32, u64), usize> = HashMap::new();
    for row in rows.filter(|row| row.context_ref != OWN_CONTEXT_REF && !is_question(row)) {
        let key = (row.tid, row.number, row.entered_ns);
        match begun.get(&key) {
            Some(&at) => kept[at] = row,
            None => {
                if row.left_ns == 0 {
                    begun.insert(key, kept.len());
                }
                kept.push(row);
            }
        }
    }
    kept
}
