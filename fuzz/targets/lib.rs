//! What the fuzz targets share: files for readers that want a path, and a limit to what is allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::ptr::null_mut;

/// Bytes that one allocation may have: far less than what a file could say that it needs.
const LARGEST: usize = 256 << 20;

/// The system's allocator, which has nothing where something far too large is asked for: who can't do without ends the process.
/// (Memory that is never touched is not in the resident set, which the fuzzer looks at.)
pub struct Limited;

// SAFETY: all is passed on to the system's allocator.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LARGEST {
            return null_mut();
        }
        // SAFETY: the caller's obligations are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LARGEST {
            return null_mut();
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > LARGEST {
            return null_mut();
        }
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
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
