//! Where in a condition variable the words are that threads wait for: the C library has moved them, also in corrections of old versions.

use core::ffi::c_void;

use crate::{loading, recording};
use chase_logic::elf::Version;

type Init = unsafe extern "C" fn(*mut c_void) -> i32;
type SetClock = unsafe extern "C" fn(*mut c_void, i32) -> i32;
type InitWith = unsafe extern "C" fn(*mut c_void, *const c_void) -> i32;

/// Makes a condition variable whose clock is not the usual one: that is noted in the word in front of those.
pub(super) fn learn() {
    /// With its hash. The first version was another object.
    const VERSION: Version = Version { name: b"GLIBC_2.3.2", hash: 0x0969_1972 };
    // Larger than they are.
    let (mut attributes, mut condition) = ([0_u64; 8], [0_u32; 32]);
    let (its, attributes) = ((&raw mut condition).cast(), (&raw mut attributes).cast());
    // SAFETY: these are the C library's functions, of these types, and all that they do is to write there.
    let done = unsafe {
        loading::function::<Init>(c"pthread_condattr_init", None)
            .is_some_and(|init| init(attributes) == 0)
            && loading::function::<SetClock>(c"pthread_condattr_setclock", None)
                .is_some_and(|set_clock| set_clock(attributes, libc::CLOCK_MONOTONIC) == 0)
            && loading::function::<InitWith>(c"pthread_cond_init", Some(VERSION))
                .is_some_and(|init_with| init_with(its, attributes) == 0)
    };
    if let Some(noted) = condition.iter().position(|&word| word != 0).filter(|_| done) {
        recording::set_condition_words((noted as u64 + 1) * size_of::<u32>() as u64);
    }
}
