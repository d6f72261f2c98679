//! What the dynamic linker passes to constructors.

use crate::readable::Reader;

/// More than the kernel takes.
const TOO_MANY: i32 = 1 << 26;

/// Whether these are the arguments of a program, as glibc passes them. Others, like musl, pass none, and
/// what is in their place may be anything.
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
    // Where the kernel can't be asked what may be read, addresses that fit so well have to do.
    let Some(mut reader) = Reader::new() else { return true };
    // The first one may be null, if there is none.
    reader.word(arguments as usize).is_some()
        && reader.word(end as usize) == Some(0)
        && reader.word(environment as usize).is_some()
}
