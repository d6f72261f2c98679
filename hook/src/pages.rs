//! Private memory for shadow stacks, threads and tables: whole pages, zeroed. One or two are kept when given
//! back.

use core::ptr;

use crate::lock::{Fork, Lock};
use crate::{fork_word, sys};

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
/// So many pages, and fewer, are carved from mappings of this size, so that a thousand threads are no
/// thousand mappings.
const FEW: usize = 2;
const SLAB: usize = 64 * PAGE;

struct Pages {
    /// By number of pages less 1.
    blocks: [Blocks; FEW],
    /// Single pages that a fork's child finds zeroed.
    wiped: Blocks,
    names: *mut u8,
    names_left: usize,
}

/// Blocks of equally many pages.
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

/// At least one.
fn whole_pages(len: usize) -> usize {
    len.max(1).next_multiple_of(PAGE)
}

/// `len` bytes, zeroed and aligned to a page, and to two if it takes two; null if there is no memory.
/// Signals are blocked.
pub(crate) fn allocate(len: usize) -> *mut u8 {
    let len = whole_pages(len);
    match PAGES.hold().blocks_of(len) {
        Some(blocks) => blocks.take(len, sys::map_anonymous),
        None => sys::map_anonymous(len),
    }
}

/// A page, zeroed, that a fork's child will find zeroed, if the kernel can do that and forks are told from their
/// parents at all; null if there is no memory. Signals are blocked.
pub(crate) fn allocate_wiped() -> *mut u8 {
    let map = |len| {
        let memory = sys::map_anonymous(len);
        if !memory.is_null() && fork_word::is_known() {
            let _ = sys::advise(memory, len, libc::MADV_WIPEONFORK);
        }
        memory
    };
    PAGES.hold().wiped.take(PAGE, map)
}

/// Takes back what [`allocate_wiped`] gave, which nobody uses any more. Signals are blocked. (Of what was free at a fork,
/// its child finds the first page only, which does not lead to others.)
pub(crate) fn give_back_wiped(memory: *mut u8) {
    PAGES.hold().wiped.put(memory);
}

/// Takes back what [`take`] gave for the same `len`, and nobody uses any more. Signals are blocked.
pub(crate) fn give_back(memory: *mut u8, len: usize) {
    let len = whole_pages(len);
    match PAGES.hold().blocks_of(len) {
        Some(blocks) => blocks.put(memory),
        None => sys::unmap(memory, len),
    }
}

impl Pages {
    /// `len` bytes for a name, carved from a block of so many; null if there is no memory.
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

    /// The blocks of `len` bytes; `None` if that is more than a few pages.
    fn blocks_of(&mut self, len: usize) -> Option<&mut Blocks> {
        self.blocks.get_mut((len / PAGE).checked_sub(1)?)
    }
}

impl Blocks {
    const NONE: Self = Self { free: ptr::null_mut(), slab: ptr::null_mut(), slab_left: 0 };

    /// One of these blocks, of `len` bytes; `map` gives memory for more.
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
            // (One page or two: a power of 2.)
            let unaligned = slab.addr().wrapping_neg() & (len - 1);
            self.slab = slab.wrapping_add(unaligned);
            self.slab_left = (SLAB - unaligned) & !(len - 1);
        }
        self.slab_left -= len;
        self.slab.wrapping_add(self.slab_left)
    }

    fn put(&mut self, block: *mut u8) {
        // SAFETY: nobody uses the block any more, which is at least a page.
        unsafe { *block.cast::<*mut u8>() = self.free };
        self.free = block;
    }
}

/// Sees to the lock in a fork.
pub(crate) fn fork(moment: Fork) {
    PAGES.fork(moment);
}

/// A copy of a name that stays; empty if there is no memory. Signals are blocked, or there is one thread.
pub(crate) fn keep(name: &[u8]) -> &'static [u8] {
    const BLOCK: usize = 16 * PAGE;
    let len = name.len();
    let memory = if len > BLOCK { sys::map_anonymous(len) } else { PAGES.hold().carve(len, BLOCK) };
    if memory.is_null() {
        return b"";
    }
    // SAFETY: the memory is ours for ever and long enough.
    unsafe {
        ptr::copy_nonoverlapping(name.as_ptr(), memory, len);
        core::slice::from_raw_parts(memory, len)
    }
}
