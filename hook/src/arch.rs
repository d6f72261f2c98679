//! What depends on the CPU: the assembly of the call path, the thread register, the clock.

mod x86_64;

pub(crate) use x86_64::*;
