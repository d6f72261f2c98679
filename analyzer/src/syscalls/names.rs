//! Names, arguments and categories of the system calls of x86-64.

use std::borrow::Cow;
use std::sync::LazyLock;

use chase_recorder::syscalls::{COMPAT, NO_SYSCALL};
use serde::Serialize;

use super::errors::ERRORS;
use super::table::CALLS;

/// What a system call is about. The kernel has no categories; these are the ones by which people look for calls,
/// similar to strace's classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Data of open files: read, write, lseek, fsync.
    Io,
    /// Names and attributes of files: open, stat, rename.
    File,
    /// Sockets.
    Network,
    /// Waiting for several descriptors: poll, epoll.
    Poll,
    /// Address space.
    Memory,
    /// Processes and threads, their creation, end and identity.
    Process,
    /// Futexes, semaphores, pipes, and the IPC of System V and POSIX.
    Sync,
    /// Signals.
    Signal,
    /// Clocks, timers and sleep.
    Time,
    /// Scheduling.
    Schedule,
    /// Everything else, and unknown numbers.
    Other,
}

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syscall {
    /// Number.
    pub number: u32,
    /// Name, as in `asm/unistd_64.h`.
    pub name: &'static str,
    /// Names of its arguments in the kernel; also empty if they are unknown.
    pub arguments: &'static [&'static str],
}

/// A row of [`CALLS`].
type Row = (u32, &'static str, &'static [&'static str]);

/// Returns the call with this number, if it is known.
#[must_use]
pub fn syscall(number: u32) -> Option<Syscall> {
    Some(of_row(&CALLS[row_of(number)?]))
}

fn row_of(number: u32) -> Option<usize> {
    CALLS.binary_search_by_key(&number, |call| call.0).ok()
}

fn of_row(&(number, name, arguments): &Row) -> Syscall {
    Syscall { number, name, arguments }
}

/// Returns the name for a number; for unknown numbers, and for those of i386 (`int 0x80`), it contains the number.
#[must_use]
pub fn syscall_name(number: u32) -> Cow<'static, str> {
    match syscall(number) {
        Some(known) => known.name.into(),
        None if number & COMPAT != 0 => format!("i386 syscall {}", number & !COMPAT).into(),
        None => format!("syscall {number}").into(),
    }
}

/// Returns the call's category; [`Category::Other`] for unknown numbers.
pub(crate) fn category_of(number: u32) -> Category {
    // (It is asked for each row of system calls, of which there may be millions.)
    static CATEGORIES: LazyLock<Vec<Category>> =
        LazyLock::new(|| CALLS.iter().map(|row| of_row(row).category()).collect());
    row_of(number).map_or(Category::Other, |at| CATEGORIES[at])
}

/// Returns the name of an error, for example `ENOENT` for 2, if it is known.
pub(crate) fn error_name(errno: u16) -> Option<&'static str> {
    let at = ERRORS.binary_search_by_key(&errno, |error| error.0).ok()?;
    ERRORS.get(at).map(|error| error.1)
}

/// Whether positive results of the call are numbers of bytes transferred.
pub(super) fn returns_bytes(number: u32) -> bool {
    let Some(Syscall { name, .. }) = syscall(number) else { return false };
    const BYTES: [&str; 26] = [
        "read",
        "write",
        "pread64",
        "pwrite64",
        "readv",
        "writev",
        "preadv",
        "pwritev",
        "preadv2",
        "pwritev2",
        "sendto",
        "recvfrom",
        "sendmsg",
        "recvmsg",
        "sendfile",
        "splice",
        "tee",
        "vmsplice",
        "copy_file_range",
        "getrandom",
        "process_vm_readv",
        "process_vm_writev",
        "getdents64",
        "getdents",
        "readlink",
        "readlinkat",
    ];
    BYTES.contains(&name)
}

impl Category {
    /// Returns the name for tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Io => "file I/O",
            Self::File => "files",
            Self::Network => "network",
            Self::Poll => "poll",
            Self::Memory => "memory",
            Self::Process => "process",
            Self::Sync => "synchronisation",
            Self::Signal => "signals",
            Self::Time => "time",
            Self::Schedule => "scheduling",
            Self::Other => "other",
        }
    }
}

impl Syscall {
    /// Returns the category of a call.
    #[must_use]
    pub fn category(&self) -> Category {
        // The first matching rule counts.
        const RULES: [(Category, &[&str]); 11] = [
            (Category::Poll, &["poll", "ppoll", "select", "pselect6", "epoll_*"]),
            (
                Category::Network,
                &[
                    "socket*",
                    "connect",
                    "accept*",
                    "send*",
                    "recv*",
                    "bind",
                    "listen",
                    "shutdown",
                    "getsockname",
                    "getpeername",
                    "getsockopt",
                    "setsockopt",
                ],
            ),
            (
                Category::Signal,
                &[
                    "rt_sig*",
                    "kill",
                    "tkill",
                    "tgkill",
                    "pause",
                    "sigaltstack",
                    "signalfd*",
                    "restart_syscall",
                    "pidfd_send_signal",
                ],
            ),
            (
                Category::Time,
                &[
                    "clock_*",
                    "timer_*",
                    "timerfd_*",
                    "nanosleep",
                    "gettimeofday",
                    "settimeofday",
                    "time",
                    "times",
                    "alarm",
                    "getitimer",
                    "setitimer",
                    "adjtimex",
                ],
            ),
            (Category::Schedule, &["sched_*", "getpriority", "setpriority", "ioprio_*", "getcpu"]),
            (
                Category::Memory,
                &[
                    "mmap",
                    "munmap",
                    "mprotect",
                    "mremap",
                    "madvise",
                    "process_madvise",
                    "brk",
                    "msync",
                    "mincore",
                    "mlock*",
                    "munlock*",
                    "mbind",
                    "move_pages",
                    "migrate_pages",
                    "get_mempolicy",
                    "set_mempolicy*",
                    "pkey_*",
                    "remap_file_pages",
                    "memfd_*",
                    "userfaultfd",
                    "map_shadow_stack",
                    "mseal",
                    "process_mrelease",
                ],
            ),
            (
                Category::Sync,
                &["futex*", "shm*", "sem*", "msg*", "mq_*", "pipe*", "eventfd*", "membarrier"],
            ),
            (
                Category::Process,
                &[
                    "clone*",
                    "fork",
                    "vfork",
                    "exec*",
                    "exit*",
                    "wait*",
                    "get*id",
                    "set*id",
                    "getresuid",
                    "getresgid",
                    "setresuid",
                    "setresgid",
                    "getgroups",
                    "setgroups",
                    "setfs*id",
                    "prctl",
                    "arch_prctl",
                    "ptrace",
                    "pidfd_*",
                    "set_tid_address",
                    "*_robust_list",
                    "rseq",
                    "capget",
                    "capset",
                    "personality",
                    "seccomp",
                    "unshare",
                    "setns",
                    "kcmp",
                    "getrusage",
                    "*rlimit*",
                    "process_vm_*",
                    "getpgrp",
                ],
            ),
            (
                Category::Io,
                &[
                    "read",
                    "write",
                    "pread*",
                    "pwrite*",
                    "readv",
                    "writev",
                    "lseek",
                    "close*",
                    "dup*",
                    "fsync",
                    "fdatasync",
                    "sync*",
                    "splice",
                    "tee",
                    "vmsplice",
                    "copy_file_range",
                    "fallocate",
                    "ftruncate",
                    "ioctl",
                    "fcntl",
                    "flock",
                    "readahead",
                    "fadvise64",
                    "io_*",
                    "getdents*",
                ],
            ),
            (
                Category::File,
                &[
                    "open*",
                    "creat",
                    "*stat*",
                    "access",
                    "faccessat*",
                    "rename*",
                    "link*",
                    "unlink*",
                    "symlink*",
                    "readlink*",
                    "mkdir*",
                    "rmdir",
                    "mknod*",
                    "ch*",
                    "fch*",
                    "lchown",
                    "truncate",
                    "utime*",
                    "futimesat",
                    "*xattr*",
                    "getcwd",
                    "inotify_*",
                    "fanotify_*",
                    "name_to_handle_at",
                    "umask",
                    "lookup_dcookie",
                    "file_getattr",
                    "file_setattr",
                ],
            ),
            (Category::Other, &["*"]),
        ];
        let fits = |patterns: &&[&str]| patterns.iter().any(|pattern| matches(pattern, self.name));
        RULES
            .iter()
            .find(|(_, patterns)| fits(patterns))
            .map_or(Category::Other, |(category, _)| *category)
    }
}

/// Whether `name` matches `pattern`, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(before) else { return false };
    (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| matches(after, rest)))
}

/// Whether a wait in this system call, or in none, is for the map of the process's memory, which one thread changes at a time: nothing
/// else that changes memory, or has a page fault, waits for a thread of the process.
pub(crate) fn is_for_memory_map(number: u32, by_own_process: bool) -> bool {
    // `mmap`, `mprotect`, `munmap`, `brk`, `mremap`, `madvise`.
    by_own_process && matches!(number, 9..=12 | 25 | 28 | NO_SYSCALL)
}

#[cfg(test)]
mod tests {
    use chase_recorder::syscalls::COMPAT;

    use super::{Category, error_name, returns_bytes, syscall, syscall_name};

    #[test]
    fn calls_have_names_arguments_and_categories() {
        let known = |number| syscall(number).expect("known");
        assert_eq!((known(0).name, known(0).category()), ("read", Category::Io));
        assert_eq!(known(0).arguments, ["fd", "buf", "count"]);
        assert_eq!((known(202).name, known(202).category()), ("futex", Category::Sync));
        assert_eq!((known(257).name, known(257).category()), ("openat", Category::File));
        assert_eq!((known(5).name, known(5).arguments.len()), ("fstat", 2));
        assert_eq!(known(39).category(), Category::Process);
        assert_eq!(known(45).category(), Category::Network);
        assert!(syscall(100_000).is_none());
    }

    #[test]
    fn numbers_that_are_not_known_are_shown_as_numbers() {
        assert_eq!(syscall_name(0), "read");
        assert_eq!(syscall_name(100_000), "syscall 100000");
        assert_eq!(syscall_name(COMPAT | 64), "i386 syscall 64");
        assert_eq!((error_name(2), error_name(11)), (Some("ENOENT"), Some("EAGAIN")));
        assert_eq!(error_name(5_000), None);
        assert!(returns_bytes(0) && !returns_bytes(3) && !returns_bytes(COMPAT | 3));
    }
}
