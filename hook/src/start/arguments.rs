//! The arguments that the dynamic linker passes to constructors.

use crate::readable::Reader;
use chase_logic::memory::Memory;
use chase_logic::text::c_bytes;

/// More arguments than the kernel accepts.
const TOO_MANY: i32 = 1 << 26;

/// Returns the arguments.
///
/// # Safety
/// They are those of a program: there are `count` of them.
pub(super) unsafe fn each(
    count: i32,
    arguments: *const usize,
) -> impl Iterator<Item = &'static [u8]> {
    // SAFETY: the caller vouches for the number.
    (0..count.max(0) as usize).map(move |at| c_bytes(unsafe { *arguments.add(at) }))
}

/// Whether these are the arguments of a program, as glibc passes them to constructors. Others, like musl, pass none,
/// so the values are arbitrary.
pub(super) fn are_those_of_glibc(
    count: i32,
    arguments: *const usize,
    environment: *const usize,
) -> bool {
    if !(0..TOO_MANY).contains(&count) {
        return false;
    }
    let end = arguments.wrapping_add(count as usize);
    if environment != end.wrapping_add(1) {
        return false;
    }
    // If it can't be found out what is readable, matching addresses must suffice.
    let Some(mut reader) = Reader::new() else { return true };
    // The first one may be null, if there is none.
    reader.word(arguments as usize).is_some()
        && reader.word(end as usize) == Some(0)
        && reader.word(environment as usize).is_some()
}
