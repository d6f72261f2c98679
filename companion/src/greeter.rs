//! A thread of this process that is traced as if it were recorded, to measure what tracing costs.

use std::arch::asm;
use std::cell::Cell;
use std::ptr;

use crate::shared::{GOODBYE, HELLO, HELLO_VERSION, Hello};

/// Bytes of a node in a recording.
const UNIT: u64 = 128;

thread_local! {
    /// Stands for the hook's.
    static WORD: Cell<u64> = const { Cell::new(0) };
}

/// The calling thread, traced until this is dropped.
#[derive(Debug)]
pub struct Greeter(());

impl Greeter {
    /// Says hello in `session`; the context will be number `context`, which is below 2^16.
    #[must_use]
    pub fn new(session: u64, context: u16) -> Self {
        const BASE: u64 = 1 << 32;
        WORD.set(BASE + u64::from(context) * UNIT);
        let word = WORD.with(|word| ptr::from_ref(word) as usize);
        let thread_pointer: usize;
        // SAFETY: the thread pointer's first word holds its own address (x86-64 TLS ABI).
        unsafe { asm!("mov {}, fs:0", out(reg) thread_pointer, options(nostack, readonly)) };
        let hello = Hello {
            version: HELLO_VERSION,
            len: size_of::<Hello>() as u32,
            session,
            tls_offset: word.wrapping_sub(thread_pointer) as i64,
            base: BASE,
            mapped: (1 << 16) * UNIT,
            path: c"".as_ptr() as u64,
            thread_offset: 0,
        };
        prctl(HELLO, ptr::from_ref(&hello) as usize);
        Self(())
    }
}

impl Drop for Greeter {
    fn drop(&mut self) {
        prctl(GOODBYE, 0);
        WORD.set(0);
    }
}

/// The kernel knows neither number, and answers EINVAL.
fn prctl(option: u32, argument: usize) {
    // SAFETY: an option that does not exist does nothing.
    unsafe { libc::syscall(libc::SYS_prctl, u64::from(option), argument, 0, 0, 0) };
}
