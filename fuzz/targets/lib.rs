//! What the fuzz targets share: files for readers that want a path, and a limit to what is allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;

/// Bytes that one allocation may have: far less than what a file could say that it needs.
const LARGEST: usize = 256 << 20;

/// The system's allocator, which ends the process where something far too large is asked for. (Memory that is never touched
/// is not in the resident set, which the fuzzer looks at.)
pub struct Limited;

// SAFETY: all is passed on to the system's allocator.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's obligations are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn check(size: usize) {
    if size > LARGEST {
        // No panic, which would allocate, and which readers might catch.
        eprintln!("{size} bytes are asked for at once");
        std::process::abort();
    }
}

/// A file of this name with these bytes, where temporary files are.
///
/// # Panics
///
/// If it can't be written.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).expect("written");
    path
}
