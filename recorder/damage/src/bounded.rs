//! How much memory a reader may take.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

/// The system's allocator, which has nothing for who asks for more than `LARGEST` bytes at once, far less than what a file could
/// say that it needs, and tells where that was. Who can't do without ends the process. (Memory that is never touched is not in
/// the resident set, which fuzzers look at.)
pub struct Bounded<const LARGEST: usize>;

/// Bytes that were in use at once at most, since [`reset_peak`].
#[must_use]
pub fn peak_bytes() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Begins to look for the most that is in use at once, with what is in use now.
pub fn reset_peak() {
    PEAK.store(IN_USE.load(Ordering::Relaxed), Ordering::Relaxed);
}

fn add(bytes: usize) {
    let now = IN_USE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

fn take(bytes: usize) {
    IN_USE.fetch_sub(bytes, Ordering::Relaxed);
}

impl<const LARGEST: usize> Bounded<LARGEST> {
    fn is_too_much(size: usize) -> bool {
        let is_too_much = size > LARGEST;
        if is_too_much && !IS_TELLING.replace(true) {
            let place = std::backtrace::Backtrace::force_capture();
            #[allow(clippy::print_stderr, reason = "only tests and fuzzers allocate by it")]
            {
                eprintln!("{size} bytes asked for at once:\n{place}");
            }
            IS_TELLING.set(false);
        }
        is_too_much
    }
}

// SAFETY: all is passed on to the system's allocator.
unsafe impl<const LARGEST: usize> GlobalAlloc for Bounded<LARGEST> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::is_too_much(layout.size()) {
            return null_mut();
        }
        add(layout.size());
        // SAFETY: the caller's obligations are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if Self::is_too_much(layout.size()) {
            return null_mut();
        }
        add(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if Self::is_too_much(size) {
            return null_mut();
        }
        add(size);
        take(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        take(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
