//! Which functions are known to wait: for estimates by name, if the scheduler was not observed.
//!
//! The table only has functions that do little else. `read` and `write` are not in it, since the name doesn't tell
//! whether it is for a pipe or for a file in the page cache. Nor is `syscall`, whose number is unknown.

use serde::{Deserialize, Serialize};

/// What a function waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// A mutex, a read-write lock, a semaphore that is a lock.
    Lock,
    /// A condition that another thread makes true: by a condition variable, or by a semaphore that hands something over.
    Condition,
    /// A barrier.
    Barrier,
    /// The end of a thread or of a process; in `vfork` and its like, that the child runs a program, or ends.
    Join,
    /// Time to pass, or a signal.
    Sleep,
    /// Input, output or readiness of a file, a socket, a queue.
    Io,
    /// A page of memory: to be read from its file, or to be made.
    Page,
    /// Anything else, or unknown.
    Other,
}

/// Returns what `symbol`, a name from a symbol table, waits for. The C library's internal (`__poll`) and checked
/// (`__poll_chk`) variants count as the same function.
#[must_use]
pub(crate) fn cause_of(symbol: &str) -> Option<Cause> {
    let name = plain(symbol);
    TABLE.iter().find(|(_, names)| names.contains(&name)).map(|&(cause, _)| cause)
}

/// Whether a library is a runtime of OpenMP.
pub(crate) fn is_of_openmp(library: &str) -> bool {
    const RUNTIMES: &[&str] = &["libgomp.so", "libgomp-", "libomp.so", "libiomp5.so"];
    RUNTIMES.iter().any(|name| library.starts_with(name))
}

/// Whether threads that wait in `symbol` mostly wait for work. `measured`: they are known to have waited, whatever
/// the function is.
#[must_use]
pub(crate) fn is_for_work(symbol: &str, measured: bool) -> bool {
    let name = plain(symbol);
    match cause_of(symbol) {
        Some(Cause::Condition | Cause::Join | Cause::Sleep) => true,
        Some(_) => FOR_WORK.contains(&name),
        // Runtimes with condition variables of their own call futex by it.
        None => measured && name == "syscall",
    }
}

/// Removes from a symbol's name what the C library's variants add to it.
fn plain(symbol: &str) -> &str {
    let name = symbol.trim_start_matches('_');
    name.strip_suffix("_chk").unwrap_or(name)
}

/// Functions that wait for work, of those that could also wait for something under way.
const FOR_WORK: &[&str] = &[
    "sem_wait",
    "sem_timedwait",
    "sem_clockwait",
    "poll",
    "ppoll",
    "select",
    "pselect",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "accept",
    "accept4",
    "mq_receive",
    "mq_timedreceive",
    "msgrcv",
    "io_getevents",
];

const TABLE: &[(Cause, &[&str])] = &[
    (
        Cause::Lock,
        &[
            "pthread_mutex_lock",
            "pthread_mutex_timedlock",
            "pthread_mutex_clocklock",
            "pthread_rwlock_rdlock",
            "pthread_rwlock_wrlock",
            "pthread_rwlock_timedrdlock",
            "pthread_rwlock_timedwrlock",
            "pthread_rwlock_clockrdlock",
            "pthread_rwlock_clockwrlock",
            "pthread_spin_lock",
            "mtx_lock",
            "mtx_timedlock",
            "sem_wait",
            "sem_timedwait",
            "sem_clockwait",
            "semop",
            "semtimedop",
            "flock",
            "lockf",
            "omp_set_lock",
            "omp_set_nest_lock",
            "GOMP_critical_start",
            "GOMP_critical_name_start",
        ],
    ),
    (
        Cause::Condition,
        &[
            "pthread_cond_wait",
            "pthread_cond_timedwait",
            "pthread_cond_clockwait",
            "cnd_wait",
            "cnd_timedwait",
        ],
    ),
    (Cause::Barrier, &["pthread_barrier_wait", "GOMP_barrier"]),
    (
        Cause::Join,
        &[
            "pthread_join",
            "pthread_timedjoin_np",
            "pthread_clockjoin_np",
            "thrd_join",
            "wait",
            "wait3",
            "wait4",
            "waitid",
            "waitpid",
            "system",
            "pclose",
        ],
    ),
    (
        Cause::Sleep,
        &[
            "sleep",
            "usleep",
            "nanosleep",
            "clock_nanosleep",
            "thrd_sleep",
            "pause",
            "sigsuspend",
            "sigwait",
            "sigwaitinfo",
            "sigtimedwait",
        ],
    ),
    (
        Cause::Io,
        &[
            "poll",
            "ppoll",
            "select",
            "pselect",
            "epoll_wait",
            "epoll_pwait",
            "epoll_pwait2",
            "accept",
            "accept4",
            "connect",
            "recv",
            "recvfrom",
            "recvmsg",
            "recvmmsg",
            "msgrcv",
            "msgsnd",
            "mq_receive",
            "mq_timedreceive",
            "fsync",
            "fdatasync",
            "sync",
            "syncfs",
            "aio_suspend",
            "getaddrinfo",
            "res_search",
            "io_getevents",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_the_c_library_are_known() {
        assert_eq!(cause_of("__poll_chk"), Some(Cause::Io));
        assert_eq!(cause_of("__pthread_mutex_lock"), Some(Cause::Lock));
        assert!(is_for_work("__poll_chk", false) && is_for_work("pthread_cond_wait", false));
        assert!(!is_for_work("pthread_mutex_lock", true) && !is_for_work("fsync", true));
        assert!(is_for_work("syscall", true) && !is_for_work("syscall", false));
        assert_eq!(cause_of("read"), None);
        assert_eq!(cause_of("waitpid_of_mine"), None);
    }
}
