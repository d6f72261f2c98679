//! Measures the overhead of the eBPF program in a syscall.

use std::time::Instant;

use crate::greeter::Greeter;
use crate::program::Program;
use crate::shared::Row;

/// The eBPF program's overhead in a syscall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The part that is in the measured duration.
    pub inside_ns: u64,
    /// The part that is not.
    pub outside_ns: u64,
}

const CALLS: u32 = 2_000;
const ROUNDS: u32 = 8;

impl Cost {
    /// Measures with `getppid`, which does nothing itself; takes about 10 ms. `before_ns` is the result of
    /// [`untraced_ns`] from before the program was attached: once it is, the kernel enters and leaves system calls by
    /// a slower path, in processes that are not watched, too.
    pub fn measure(program: &mut Program, session: u64, before_ns: u64) -> Self {
        let greeter = Greeter::new(session, 1);
        let traced = fastest_ns();
        drop(greeter);
        let mut row = Row::default();
        for number in 0..program.totals().rows as usize {
            let found = program.rows.read(number);
            if i64::from(found.syscall) == libc::SYS_getppid {
                row = found;
            }
        }
        let inside_ns = row.total_ns.checked_div(row.count).unwrap_or(0);
        Self { inside_ns, outside_ns: traced.saturating_sub(before_ns + inside_ns) }
    }
}

/// Measures the duration of a system call while nothing of ours is attached.
#[must_use]
pub fn untraced_ns() -> u64 {
    fastest_ns()
}

/// Returns the duration of a call in ns, from the round with the least disturbance.
fn fastest_ns() -> u64 {
    let round = || {
        let start = Instant::now();
        for _ in 0..CALLS {
            // SAFETY: it only asks for a number.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        start.elapsed().as_nanos() as u64 / u64::from(CALLS)
    };
    (0..ROUNDS).map(|_| round()).min().unwrap_or(0)
}
