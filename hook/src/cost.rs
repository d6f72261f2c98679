//! The processor time that recording takes apart from calls: for starts and ends of processes and threads, forks,
//! libraries.
//!
//! It is measured where it arises. Long pieces of work are measured by the thread's own processor time, which doesn't
//! include what other threads do meanwhile.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

use chase_format::layout::Header;

use crate::{clock, recording, sys};

/// Page faults of the dynamic linker when it loads and binds this library, and of the kernel when it unmaps it:
/// `true` has 50.7 without the library, and 61.7 with a library that does nothing at all (which takes 0.10 ms of
/// 0.7).
const LOADING_FAULTS: u64 = 11;

/// What the kernel does at the end of a process with the memory that the hook used, in page faults. (The processor time
/// of 300 times `true` rose by 156 ms, of which 136 were measured in them.)
const UNMAPPING_FAULTS: u64 = 8;
/// The same for a fork, with what it does to copy that memory's page tables. (300 forks took 68 ms more, of which 49
/// were measured in their children.)
const COPYING_FAULTS: u64 = 8;

/// Freeing this many pages at a process's end takes the kernel as long as one page fault at its start. Only the first
/// [`ENDING_PAGES`] are counted, since each of many takes less. (Samples of the kernel's work for `true`, 399 µs in all: page faults
/// 122 µs, the end of the process 80 µs.)
const ENDING_PART: u64 = 8;
const ENDING_PAGES: u64 = 400;
/// The average cost of a page fault at the start.
static FAULT_NS: AtomicU64 = AtomicU64::new(0);

/// The maximum duration of work that is measured by the clock of calls. If it took longer, others had the processor
/// meanwhile.
const LONGEST_US: u64 = 50;
/// This many ticks are less than that, at any rate of the clock.
const SURELY_SHORT: u64 = 10_000;

/// Limits the duration of a piece of the hook's own work to what that can have taken on the processor.
pub(crate) fn own_ticks(ticks: u64) -> u64 {
    if ticks <= SURELY_SHORT {
        return ticks;
    }
    clock::ticks_per_us().map_or(ticks, |rate| ticks.min(rate.saturating_mul(LONGEST_US)))
}

/// Processor time and page faults of the calling thread up to now.
#[derive(Clone, Copy)]
pub(crate) struct Spent {
    cpu_ns: u64,
    faults: u64,
}

impl Spent {
    pub(crate) fn now() -> Self {
        Self { cpu_ns: thread_ns(), faults: sys::page_faults() }
    }

    /// Returns the processor time since `self`, plus that of loading the library, and of unmapping its memory at the end.
    pub(crate) fn with_loading_ns(self) -> u64 {
        self.with_faults_ns(LOADING_FAULTS + UNMAPPING_FAULTS)
    }

    /// Returns the processor time since `self`, plus that of so many page faults more, estimated by their average cost:
    /// what the hook's work at start takes consists mostly of them.
    fn with_faults_ns(self, more: u64) -> u64 {
        let now = Self::now();
        let own = now.cpu_ns.saturating_sub(self.cpu_ns);
        let each = own.checked_div(now.faults.saturating_sub(self.faults)).unwrap_or(0);
        FAULT_NS.store(each, Ordering::Relaxed);
        own + each * more
    }
}

/// Returns the processor time of the calling thread; 0 if the system call is not allowed.
pub(crate) fn thread_ns() -> u64 {
    if sys::is_confined_here() { 0 } else { sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID) }
}

/// Adds the time while this lives to the recording's cost after the start, for work of a few microseconds. (It is measured by the
/// clock of calls: asking the kernel for the processor time would take as long as the work.)
pub(crate) struct Later(u64);

impl Later {
    pub(crate) fn begin() -> Self {
        Self(clock::now())
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        let ticks = own_ticks(clock::now().saturating_sub(self.0));
        add(offset_of!(Header, cost_later_ticks), ticks);
    }
}

/// Adds the thread's processor time while this lives to the recording's cost of start and end: for work at the start or end of
/// the image, or when an object is loaded.
pub(crate) struct Start(u64);

impl Start {
    pub(crate) fn begin() -> Self {
        Self(thread_ns())
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        add_start(thread_ns().saturating_sub(self.0));
    }
}

/// Like [`Start`], for a fork's child: also adds the kernel's work to copy the hook's memory.
pub(crate) struct Fork(Spent);

impl Fork {
    pub(crate) fn begin() -> Self {
        Self(Spent::now())
    }
}

impl Drop for Fork {
    fn drop(&mut self) {
        add_start(self.0.with_faults_ns(COPYING_FAULTS));
    }
}

/// Adds to the recording's cost of start and end.
pub(crate) fn add_start(ns: u64) {
    add(offset_of!(Header, cost_start_ns), ns);
}

fn add(offset: usize, time: u64) {
    if recording::is_open() {
        let field = recording::header().wrapping_byte_add(offset).cast();
        // SAFETY: the header is in the first page of the mapping, and its fields are aligned.
        unsafe { AtomicU64::from_ptr(field) }.fetch_add(time, Ordering::Relaxed);
    }
}

/// Stores the processor time that the whole process has used, and will have used once its memory is unmapped. The
/// recording is open.
pub(crate) fn note_process() {
    let ns = sys::clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
    let pages = sys::page_faults_of_process().min(ENDING_PAGES);
    let ending_ns = pages * FAULT_NS.load(Ordering::Relaxed) / ENDING_PART;
    // SAFETY: the header is in the first page of the mapping.
    unsafe { (*recording::header()).cpu_ns = ns + ending_ns };
}
