//! Traces a thread of this process as if it were recorded, to measure the cost of tracing.

use std::arch::asm;
use std::cell::Cell;
use std::ptr;

use crate::shared::{GOODBYE, HELLO, HELLO_VERSION, Hello};

/// Size in bytes of a node in a recording.
const UNIT: u64 = 128;

thread_local! {
    /// Stands for the hook's context word.
    static WORD: Cell<u64> = const { Cell::new(0) };
}

/// Traces the calling thread until this is dropped.
#[derive(Debug)]
pub struct Greeter(());

impl Greeter {
    /// Sends a hello for `session`; the thread's context is number `context`.
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
            own: 0,
            own_end: 0,
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

/// The kernel doesn't know these options, and returns EINVAL.
fn prctl(option: u32, argument: usize) {
    // SAFETY: an option that does not exist does nothing.
    unsafe { libc::syscall(libc::SYS_prctl, u64::from(option), argument, 0, 0, 0) };
}
