//! Single waits of threads, as a companion sees them.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::syscalls::{BlockedRow, CauseRow, WAKER_THREAD, WAKER_TIME};

pub const MS: u64 = 1_000_000;
const FUTEX: u32 = 202;
const NANOSLEEP: u32 = 35;

/// A wait, from and to in ms, and the thread that ended it; at a condition, if it is not for a lock.
#[derive(Clone, Copy)]
pub struct Wait {
    pub of: ThreadId,
    pub from: u64,
    pub to: u64,
    pub ended_by: Option<ThreadId>,
    pub is_lock: bool,
}

/// What is seen of waits in process `pid`; `context` tells in which context each of them is.
pub fn seen(pid: u32, waits: &[Wait], context: impl Fn(&Wait) -> u32) -> SyscallsBuilder {
    let mut seen = SyscallsBuilder::new(pid);
    seen.header.processors = 4;
    let began_ns = seen.header.began_ns;
    for (cause, wait) in (0..).zip(waits) {
        let tid = |thread: ThreadId| pid + thread.0;
        let waker = wait.ended_by.map_or(0, tid);
        seen.cause(CauseRow {
            context_ref: context(wait),
            tid: tid(wait.of),
            number: if wait.ended_by.is_some() { FUTEX } else { NANOSLEEP },
            object: if wait.is_lock { 0x9000 } else { 0x1000 },
            holder: if wait.is_lock { waker } else { 0 },
            waker_kind: if wait.ended_by.is_some() { WAKER_THREAD } else { WAKER_TIME },
            waker,
            waker_pid: pid,
            waker_began_ns: began_ns,
            waits: 1,
            total_ns: (wait.to - wait.from) * MS,
            max_ns: (wait.to - wait.from) * MS,
            ..bytemuck::Zeroable::zeroed()
        });
        let (begin_ns, end_ns) = (began_ns + wait.from * MS, began_ns + wait.to * MS);
        let woken_ns = if wait.ended_by.is_some() { end_ns } else { 0 };
        seen.blocked(BlockedRow { cause, tid: tid(wait.of), begin_ns, woken_ns, end_ns });
    }
    seen
}
