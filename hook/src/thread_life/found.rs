//! Finds the start routine of threads whose creation was not seen: those that constructors of loaded libraries make.
//!
//! The C library keeps a thread's start routine in the thread's control block, to which the thread pointer points,
//! and tells debuggers its offset: `libthread_db` reads descriptions of the fields from variables that the C library
//! exports. So no version needs to be known, and if the variable doesn't exist, nothing is read. The argument, which
//! debuggers are not told of, follows the start routine in all versions of glibc with such control blocks.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::arch::own_thread_pointer;
use crate::readable::Reader;
use crate::stubs::chase_thread_start;
use crate::thread::Origin;
use crate::{loading, sys};
use chase_logic::memory::Memory;

/// The description of a field for `libthread_db`: its bits, how many there are, and the offset.
#[repr(C)]
struct Description {
    bits: u32,
    count: u32,
    offset: u32,
}

/// The offset of the start routine in a control block; 0 if unknown.
static START_ROUTINE: AtomicUsize = AtomicUsize::new(0);

/// Determines the offset of the start routine.
pub(super) fn learn() {
    const WORD: usize = size_of::<usize>();
    let field = loading::find(c"_thread_db_pthread_start_routine") as *const Description;
    let size = loading::find(c"_thread_db_sizeof_pthread") as *const u32;
    if field.is_null() || size.is_null() {
        return;
    }
    // SAFETY: the C library exports variables of these types for debuggers.
    let (Description { bits, count, offset }, size) = unsafe { (field.read(), size.read()) };
    let (offset, size) = (offset as usize, size as usize);
    let is_word = bits == usize::BITS && count == 1 && offset.is_multiple_of(WORD);
    if is_word && offset > 0 && offset + WORD <= size {
        START_ROUTINE.store(offset, Ordering::Relaxed);
    }
}

/// Returns how the calling thread was created, as far as that can be found out afterwards. Signals are blocked.
pub(crate) fn origin() -> Origin {
    if sys::gettid() == sys::getpid() {
        return Origin::MAIN;
    }
    let (start_routine, argument) = start().unwrap_or((0, 0));
    Origin { start_routine, argument, ..Origin::FOUND }
}

/// Returns the start routine and its argument.
fn start() -> Option<(usize, usize)> {
    let offset = START_ROUTINE.load(Ordering::Relaxed);
    let block = own_thread_pointer();
    if offset == 0 || block == 0 {
        return None;
    }
    // Threads that are made without the C library may have less memory here.
    let mut reader = Reader::new()?;
    let routine = reader.word(block + offset)?;
    // Not if the thread's creation was seen after all.
    let is_own = routine == chase_thread_start as *const () as usize;
    let mut argument = || reader.word(block + offset + size_of::<usize>()).unwrap_or(0);
    (!is_own).then(|| (routine, argument()))
}
