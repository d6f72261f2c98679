//! Private memory for shadow stacks, threads and tables: whole, zeroed pages. Blocks of one or two pages are reused
//! when given back.

use core::ptr;

use chase_format::layout::PAGE;

use crate::lock::{Fork, Lock};
use crate::{fork_word, sys};

/// Blocks of up to this many pages are carved from mappings of [`SLAB`] bytes, so that a thousand threads don't take a
/// thousand mappings.
const FEW: usize = 2;
const SLAB: usize = 64 * PAGE;

struct Pages {
    /// By number of pages minus 1.
    blocks: [Blocks; FEW],
    /// Single pages that a fork's child finds zeroed.
    wiped: Blocks,
    names: *mut u8,
    names_left: usize,
}

/// Blocks of the same size.
struct Blocks {
    free: *mut u8,
    slab: *mut u8,
    slab_left: usize,
}

static PAGES: Lock<Pages> = Lock::new(Pages {
    blocks: [const { Blocks::NONE }; FEW],
    wiped: Blocks::NONE,
    names: ptr::null_mut(),
    names_left: 0,
});

/// Rounds up to whole pages, at least one.
fn whole_pages(len: usize) -> usize {
    len.max(1).next_multiple_of(PAGE)
}

/// Allocates `len` bytes, zeroed and aligned to a page, or to two pages if they take two. Returns null if there is no
/// memory. Signals are blocked.
pub(crate) fn allocate(len: usize) -> *mut u8 {
    let len = whole_pages(len);
    match PAGES.hold().blocks_of(len) {
        Some(blocks) => blocks.take(len, sys::map_anonymous),
        None => sys::map_anonymous(len),
    }
}

/// Allocates a zeroed page that a fork's child finds zeroed, if the kernel supports that and forks can be detected.
/// Returns null if there is no memory. Signals are blocked.
pub(crate) fn allocate_wiped() -> *mut u8 {
    let map = |len| {
        let memory = sys::map_anonymous(len);
        if !memory.is_null() && fork_word::can_detect() {
            let _ = sys::advise(memory, len, libc::MADV_WIPEONFORK);
        }
        memory
    };
    PAGES.hold().wiped.take(PAGE, map)
}

/// Frees a page from [`allocate_wiped`]. Signals are blocked. (After a fork, the child only finds the first page of
/// the free list, which is zeroed and so links to no others.)
pub(crate) fn give_back_wiped(memory: *mut u8) {
    PAGES.hold().wiped.put(memory);
}

/// Frees what [`allocate`] returned for the same `len`. Signals are blocked.
pub(crate) fn give_back(memory: *mut u8, len: usize) {
    let len = whole_pages(len);
    match PAGES.hold().blocks_of(len) {
        Some(blocks) => blocks.put(memory),
        None => sys::unmap(memory, len),
    }
}

impl Pages {
    /// Carves `len` bytes for a name from a mapping of `block` bytes; returns null if there is no memory.
    fn carve(&mut self, len: usize, block: usize) -> *mut u8 {
        if self.names_left < len {
            self.names_left = 0;
            self.names = sys::map_anonymous(block);
            if self.names.is_null() {
                return self.names;
            }
            self.names_left = block;
        }
        let memory = self.names;
        self.names = memory.wrapping_add(len);
        self.names_left -= len;
        memory
    }

    /// Returns the blocks of `len` bytes; `None` if that is more than [`FEW`] pages.
    fn blocks_of(&mut self, len: usize) -> Option<&mut Blocks> {
        self.blocks.get_mut((len / PAGE).checked_sub(1)?)
    }
}

impl Blocks {
    const NONE: Self = Self { free: ptr::null_mut(), slab: ptr::null_mut(), slab_left: 0 };

    /// Takes one of these blocks, of `len` bytes; `map` allocates memory for more.
    fn take(&mut self, len: usize, map: impl Fn(usize) -> *mut u8) -> *mut u8 {
        if !self.free.is_null() {
            let block = self.free;
            // SAFETY: free blocks are linked by their first word.
            unsafe {
                self.free = *block.cast::<*mut u8>();
                ptr::write_bytes(block, 0, len);
            }
            return block;
        }
        if self.slab_left == 0 {
            let slab = map(SLAB);
            if slab.is_null() {
                return ptr::null_mut();
            }
            // (`len` is one page or two: a power of 2.)
            let unaligned = slab.addr().wrapping_neg() & (len - 1);
            self.slab = slab.wrapping_add(unaligned);
            self.slab_left = (SLAB - unaligned) & !(len - 1);
        }
        self.slab_left -= len;
        self.slab.wrapping_add(self.slab_left)
    }

    fn put(&mut self, block: *mut u8) {
        // SAFETY: nobody uses the block any more, which has at least a page.
        unsafe { *block.cast::<*mut u8>() = self.free };
        self.free = block;
    }
}

/// Handles the lock in a fork.
pub(crate) fn fork(moment: Fork) {
    PAGES.fork(moment);
}

/// Returns a copy of a name that is never freed; empty if there is no memory. Signals are blocked, or there is only
/// one thread.
pub(crate) fn keep(name: &[u8]) -> &'static [u8] {
    const BLOCK: usize = 16 * PAGE;
    let len = name.len();
    let memory = if len > BLOCK { sys::map_anonymous(len) } else { PAGES.hold().carve(len, BLOCK) };
    if memory.is_null() {
        return b"";
    }
    // SAFETY: the memory is never freed, and long enough.
    unsafe {
        ptr::copy_nonoverlapping(name.as_ptr(), memory, len);
        core::slice::from_raw_parts(memory, len)
    }
}
