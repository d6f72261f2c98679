//! Measures the overhead of the eBPF program in a syscall.

use std::time::Instant;

use crate::greeter::Greeter;
use crate::program::Program;

/// The eBPF program's overhead in a syscall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The part that is in the measured duration.
    pub inside_ns: u64,
    /// The part that is not.
    pub outside_ns: u64,
}

/// So few that most rounds are over before another thread gets the processor, however many want it.
const CALLS: u32 = 100;
const ROUNDS: u32 = 160;

impl Cost {
    /// Measures with `getppid`, which does nothing itself; takes about 10 ms. `before_ns` is the result of
    /// [`untraced_ns`] from just before the program was attached: once it is, the kernel enters and leaves system calls
    /// by a slower path, in processes that are not watched, too.
    pub fn measure(program: &mut Program, session: u64, before_ns: u64) -> Self {
        let greeter = Greeter::new(session, 1);
        // The first call makes the row.
        let _ = round_ns();
        let number = (0..program.totals().rows as usize)
            .find(|&number| i64::from(program.rows.read(number).syscall) == libc::SYS_getppid);
        let Some(number) = number else { return Self::default() };
        let mut inside_until = program.rows.read(number).total_ns;
        // Both parts are from the same calls, so that what slows them is not taken for one of these.
        let fastest = (0..ROUNDS).map(|_| {
            let traced_ns = round_ns();
            let since = std::mem::replace(&mut inside_until, program.rows.read(number).total_ns);
            (traced_ns, inside_until.saturating_sub(since) / u64::from(CALLS))
        });
        let (traced_ns, inside_ns) = fastest.min().unwrap_or_default();
        drop(greeter);
        Self { inside_ns, outside_ns: traced_ns.saturating_sub(before_ns + inside_ns) }
    }
}

/// Measures the duration of a system call while nothing of ours is attached.
#[must_use]
pub fn untraced_ns() -> u64 {
    (0..ROUNDS).map(|_| round_ns()).min().unwrap_or(0)
}

/// Returns the mean duration of a call in ns.
fn round_ns() -> u64 {
    let start = Instant::now();
    for _ in 0..CALLS {
        // SAFETY: it only asks for a number.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
    start.elapsed().as_nanos() as u64 / u64::from(CALLS)
}
