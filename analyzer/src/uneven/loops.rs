//! Threads of a pool that have event loops.

use crate::causes::{Purpose, WaitObject};
use crate::long_waits::LongWait;

/// `epoll_wait`, `epoll_pwait`, `epoll_pwait2`.
const EPOLLS: &[u32] = &[232, 281, 441];

/// Whether a thread waits for whatever comes next, of many things: in `epoll_wait`; or in `poll` or `select` until it is told. (For a
/// connection, that may be for an answer, which is part of what it does.)
pub(super) fn is_of_loop(wait: &LongWait) -> bool {
    let is_told = || match &wait.wait.object {
        WaitObject::File { name } => name.starts_with("pipe ") || name.contains("[eventfd]"),
        _ => false,
    };
    wait.wait.purpose == Purpose::Readiness
        && (wait.syscall.is_some_and(|number| EPOLLS.contains(&number)) || is_told())
}
