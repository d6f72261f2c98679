//! The kinds of the arguments of system calls.

use super::names::*;
use Kind::*;

/// The kind of an argument, which determines how it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A descriptor.
    Fd,
    /// A descriptor of a directory, or the working directory.
    Directory,
    /// A string that was recorded.
    Path,
    /// Bytes that were recorded; their number is the result or the next argument.
    Bytes,
    /// An address, or something shown as one.
    Address,
    /// A signed number of 32 bits.
    Signed,
    /// One of 64 bits.
    Long,
    /// An unsigned number.
    Number,
    /// An offset in a file.
    Offset,
    /// Permissions.
    Mode,
    /// A number with a name of its own.
    One(Names),
    /// Any of these flags together.
    Any(Names),
    /// The access mode and flags of `open`.
    Open,
    /// The protection and flags of `mmap`.
    Protection,
    Mapping,
    /// The mode of `access`.
    Access,
    /// Flags, and the signal at the end.
    Clone,
    /// Flags and more in a structure.
    CloneArguments,
    Futex,
    /// A time, or a number, which depends on the operation.
    FutexTime,
    /// The last argument of `fcntl`, which depends on the one before.
    ControlArgument,
    Ioctl,
    /// The last argument of `ioctl`, which depends on the one before.
    Requested,
    /// The name of a process, if the argument before says so.
    ProcessName,
    /// Type and flags of a socket.
    Socket,
    /// The protocol of a socket, which depends on its domain.
    Protocol,
    SocketAddress,
    /// An option of a socket, which depends on the level before.
    SocketOption,
    /// The value of such an option, and how long the caller's place for it is.
    OptionValue,
    OptionLength,
    /// What a program is started with: its arguments, and how many variables.
    ProgramArguments,
    ProgramVariables,
    /// What the system is called, and how much of it is in use.
    SystemName,
    SystemLoad,
    /// Flags, and permissions.
    SharedMemory,
    /// Descriptors, and what is waited for.
    Polled,
    SignalSet,
    /// Two descriptors that the call returned.
    Pair,
    /// Seconds, and a part of one that is called so.
    Time(&'static str),
    /// The status of a child.
    Status,
    /// What is known of a file.
    Stat,
    Statx,
    /// How `statx` finds a file and whether it asks a server.
    StatxFlags,
    /// What is done at a signal.
    Action,
    /// A limit of a resource.
    Limits,
}

/// A `timespec`.
const TIME: Kind = Time("tv_nsec");

/// Sorted by name.
const CALLS: &[(&str, &[Kind])] = &[
    ("accept", &[Fd, SocketAddress, Address]),
    ("accept4", &[Fd, SocketAddress, Address, Socket]),
    ("access", &[Path, Access]),
    ("arch_prctl", &[One(ARCHITECTURE), Address]),
    ("bind", &[Fd, SocketAddress, Number]),
    ("brk", &[Address]),
    ("chdir", &[Path]),
    ("chmod", &[Path, Mode]),
    ("clock_getres", &[One(CLOCKS), TIME]),
    ("clock_gettime", &[One(CLOCKS), TIME]),
    ("clock_nanosleep", &[One(CLOCKS), Any(TIMER_FLAGS), TIME, Address]),
    ("clock_settime", &[One(CLOCKS), Address]),
    ("clone", &[Clone, Address, Address, Address, Address]),
    ("clone3", &[CloneArguments, Number]),
    ("close", &[Fd]),
    ("close_range", &[Number, Number, Any(CLOSE_RANGES)]),
    ("connect", &[Fd, SocketAddress, Number]),
    ("copy_file_range", &[Fd, Address, Fd, Address, Number, Address]),
    ("dup", &[Fd]),
    ("dup2", &[Fd, Fd]),
    ("dup3", &[Fd, Fd, Any(OPEN)]),
    ("epoll_create1", &[Any(EPOLLS)]),
    ("epoll_ctl", &[Fd, One(EPOLL), Fd, Address]),
    ("epoll_pwait", &[Fd, Address, Number, Signed, Address, Number]),
    ("epoll_wait", &[Fd, Address, Number, Signed]),
    ("eventfd2", &[Number, Any(EVENT_FLAGS)]),
    ("execve", &[Path, ProgramArguments, ProgramVariables]),
    ("execveat", &[Directory, Path, ProgramArguments, ProgramVariables, Any(AT)]),
    ("exit", &[Signed]),
    ("exit_group", &[Signed]),
    ("faccessat", &[Directory, Path, Access]),
    ("faccessat2", &[Directory, Path, Access, Any(AT_ACCESS)]),
    ("fadvise64", &[Fd, Number, Number, One(FILE_ADVICE)]),
    ("fallocate", &[Fd, Any(ALLOCATIONS), Number, Number]),
    ("fchmod", &[Fd, Mode]),
    ("fcntl", &[Fd, One(CONTROL), ControlArgument]),
    ("fdatasync", &[Fd]),
    ("flock", &[Fd, Any(FILE_LOCKS)]),
    ("fsetxattr", &[Fd, Address, Address, Number, Any(ATTRIBUTES)]),
    ("fstat", &[Fd, Stat]),
    ("fstatfs", &[Fd, Address]),
    ("fsync", &[Fd]),
    ("ftruncate", &[Fd, Number]),
    ("futex", &[Address, Futex, Number, FutexTime, Address, Number]),
    ("getcwd", &[Path, Number]),
    ("getdents64", &[Fd, Address, Number]),
    ("getitimer", &[One(TIMERS), Address]),
    ("getpeername", &[Fd, SocketAddress, Address]),
    ("getpgid", &[Signed]),
    ("getpriority", &[One(PRIORITIES), Signed]),
    ("getrandom", &[Bytes, Number, Any(RANDOM)]),
    ("getrlimit", &[One(RESOURCES), Limits]),
    ("getrusage", &[One(USAGE), Address]),
    ("getsockname", &[Fd, SocketAddress, Address]),
    ("getsockopt", &[Fd, One(LEVELS), SocketOption, OptionValue, OptionLength]),
    ("getxattr", &[Path, Path, Address, Number]),
    ("inotify_add_watch", &[Fd, Path, Any(WATCHES)]),
    ("inotify_init1", &[Any(WATCHERS)]),
    ("ioctl", &[Fd, Ioctl, Requested]),
    ("kill", &[Signed, One(SIGNALS)]),
    ("lgetxattr", &[Path, Path, Address, Number]),
    ("linkat", &[Directory, Path, Directory, Path, Any(AT)]),
    ("listen", &[Fd, Signed]),
    ("lseek", &[Fd, Long, One(WHENCE)]),
    ("lsetxattr", &[Path, Address, Address, Number, Any(ATTRIBUTES)]),
    ("lstat", &[Path, Stat]),
    ("madvise", &[Address, Number, One(ADVICE)]),
    ("membarrier", &[One(BARRIERS), Number, Signed]),
    ("memfd_create", &[Path, Any(MEMORY_FILES)]),
    ("mkdir", &[Path, Mode]),
    ("mkdirat", &[Directory, Path, Mode]),
    ("mlockall", &[Any(MEMORY_LOCKS)]),
    ("mmap", &[Address, Number, Protection, Mapping, Fd, Offset]),
    ("mprotect", &[Address, Number, Protection]),
    ("mremap", &[Address, Number, Number, Any(MAPPING_MOVES), Address]),
    ("msync", &[Address, Number, Any(SYNC)]),
    ("munmap", &[Address, Number]),
    ("nanosleep", &[TIME, Address]),
    ("newfstatat", &[Directory, Path, Stat, Any(AT)]),
    ("open", &[Path, Open, Mode]),
    ("openat", &[Directory, Path, Open, Mode]),
    ("openat2", &[Directory, Path, Address, Number]),
    ("pidfd_open", &[Signed, Any(PROCESS_FILES)]),
    ("pipe", &[Pair]),
    ("pipe2", &[Pair, Any(OPEN)]),
    ("poll", &[Polled, Number, Signed]),
    ("ppoll", &[Polled, Number, TIME, Address, Number]),
    ("prctl", &[One(PRCTLS), ProcessName, Address, Address, Address]),
    ("pread64", &[Fd, Bytes, Number, Number]),
    ("preadv", &[Fd, Address, Number, Number, Number]),
    ("preadv2", &[Fd, Address, Number, Number, Number, Any(VECTOR_FLAGS)]),
    ("prlimit64", &[Signed, One(RESOURCES), Limits, Limits]),
    ("pselect6", &[Number, Address, Address, Address, TIME, Address]),
    ("ptrace", &[One(TRACES), Signed, Address, Address]),
    ("pwrite64", &[Fd, Bytes, Number, Number]),
    ("pwritev", &[Fd, Address, Number, Number, Number]),
    ("pwritev2", &[Fd, Address, Number, Number, Number, Any(VECTOR_FLAGS)]),
    ("read", &[Fd, Bytes, Number]),
    ("readlink", &[Path, Bytes, Number]),
    ("readlinkat", &[Directory, Path, Bytes, Number]),
    ("readv", &[Fd, Address, Number]),
    ("recvfrom", &[Fd, Bytes, Number, Any(MESSAGES), Address, Address]),
    ("recvmmsg", &[Fd, Address, Number, Any(MESSAGES), Address]),
    ("recvmsg", &[Fd, Address, Any(MESSAGES)]),
    ("rename", &[Path, Path]),
    ("renameat", &[Directory, Path, Directory, Path]),
    ("renameat2", &[Directory, Path, Directory, Path, Any(RENAMES)]),
    ("rmdir", &[Path]),
    ("rseq", &[Address, Number, Number, Address]),
    ("rt_sigaction", &[One(SIGNALS), Action, Action, Number]),
    ("rt_sigprocmask", &[One(SIGNAL_MASK), SignalSet, SignalSet, Number]),
    ("rt_sigsuspend", &[Address, Number]),
    ("sched_get_priority_max", &[One(POLICIES)]),
    ("sched_get_priority_min", &[One(POLICIES)]),
    ("sched_getaffinity", &[Signed, Number, Address]),
    ("sched_setaffinity", &[Signed, Number, Address]),
    ("sched_setscheduler", &[Signed, One(POLICIES), Address]),
    ("seccomp", &[One(FILTERS), Address, Address]),
    ("select", &[Number, Address, Address, Address, Time("tv_usec")]),
    ("sendfile", &[Fd, Fd, Address, Number]),
    ("sendmmsg", &[Fd, Address, Number, Any(MESSAGES)]),
    ("sendmsg", &[Fd, Address, Any(MESSAGES)]),
    ("sendto", &[Fd, Bytes, Number, Any(MESSAGES), Address, Number]),
    ("set_robust_list", &[Address, Number]),
    ("set_tid_address", &[Address]),
    ("setitimer", &[One(TIMERS), Address, Address]),
    ("setns", &[Fd, Any(CLONE)]),
    ("setpgid", &[Signed, Signed]),
    ("setpriority", &[One(PRIORITIES), Signed, Signed]),
    ("setrlimit", &[One(RESOURCES), Limits]),
    ("setsockopt", &[Fd, One(LEVELS), SocketOption, OptionValue, Number]),
    ("setxattr", &[Path, Address, Address, Number, Any(ATTRIBUTES)]),
    ("shmat", &[Signed, Address, Any(ATTACHMENTS)]),
    ("shmget", &[Signed, Number, SharedMemory]),
    ("shutdown", &[Fd, One(SHUTDOWNS)]),
    ("sigaltstack", &[Address, Address]),
    ("signalfd4", &[Fd, Address, Number, Any(SIGNAL_FILES)]),
    ("socket", &[One(DOMAINS), Socket, Protocol]),
    ("socketpair", &[One(DOMAINS), Socket, Protocol, Pair]),
    ("splice", &[Fd, Address, Fd, Address, Number, Any(SPLICES)]),
    ("stat", &[Path, Stat]),
    ("statfs", &[Path, Address]),
    ("statx", &[Directory, Path, StatxFlags, Any(STATX), Statx]),
    ("symlink", &[Path, Path]),
    ("symlinkat", &[Path, Directory, Path]),
    ("sync_file_range", &[Fd, Number, Number, Any(RANGE_SYNCS)]),
    ("sysinfo", &[SystemLoad]),
    ("tee", &[Fd, Fd, Number, Any(SPLICES)]),
    ("tgkill", &[Signed, Signed, One(SIGNALS)]),
    ("timer_create", &[One(CLOCKS), Address, Address]),
    ("timer_settime", &[Signed, Any(TIMER_FLAGS), Address, Address]),
    ("timerfd_create", &[One(CLOCKS), Any(TIMER_FILES)]),
    ("timerfd_settime", &[Fd, Any(TIMER_FLAGS), Address, Address]),
    ("truncate", &[Path, Number]),
    ("umask", &[Mode]),
    ("umount2", &[Path, Signed]),
    ("uname", &[SystemName]),
    ("unlink", &[Path]),
    ("unlinkat", &[Directory, Path, Any(AT)]),
    ("unshare", &[Any(CLONE)]),
    ("utimensat", &[Directory, Path, Address, Any(AT)]),
    ("vfork", &[]),
    ("vmsplice", &[Fd, Address, Number, Any(SPLICES)]),
    ("wait4", &[Signed, Status, Any(WAIT_OPTIONS), Address]),
    ("waitid", &[One(IDS), Signed, Address, Any(WAIT_OPTIONS), Address]),
    ("write", &[Fd, Bytes, Number]),
    ("writev", &[Fd, Address, Number]),
];

/// Returns the kinds of a call's arguments. Of a call that is not in the table, the kernel's names of its arguments have to do.
pub(super) fn kinds_of(name: &str, arguments: &[&str]) -> Vec<Kind> {
    match CALLS.binary_search_by_key(&name, |call| call.0) {
        Ok(at) => CALLS[at].1.to_vec(),
        Err(_) => arguments.iter().map(|argument| named_so(argument)).collect(),
    }
}

/// Returns the kind of an argument that the kernel calls so.
fn named_so(argument: &str) -> Kind {
    match argument {
        "fd" | "fildes" | "oldfd" | "newfd" | "epfd" | "ufd" | "pidfd" | "fd_in" | "fd_out" => Fd,
        "dfd" | "olddfd" | "newdfd" => Directory,
        "filename" | "pathname" | "path" | "oldname" | "newname" => Path,
        "sig" => One(SIGNALS),
        "which_clock" | "clockid" => One(CLOCKS),
        "pid" | "tgid" | "upid" | "uid" | "gid" | "ruid" | "euid" | "suid" | "rgid" | "egid"
        | "sgid" | "user" | "group" => Signed,
        "count" | "len" | "size" | "vlen" | "length" | "seconds" | "sigsetsize" => Number,
        "mode" => Mode,
        _ => Address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscalls::syscall;

    #[test]
    fn calls_are_in_order_and_have_as_many_arguments_as_in_the_kernel() {
        assert!(CALLS.is_sorted_by_key(|call| call.0));
        let known: Vec<_> = (0..500).filter_map(syscall).collect();
        for (name, kinds) in CALLS {
            let call = known.iter().find(|call| call.name == *name).expect(name);
            assert_eq!(kinds.len(), call.arguments.len(), "{name}");
        }
    }

    #[test]
    fn calls_without_a_row_are_shown_by_the_names_of_their_arguments() {
        let call = syscall(81).expect("fchdir");
        assert_eq!(kinds_of(call.name, call.arguments), [Fd]);
        let call = syscall(93).expect("fchown");
        assert_eq!(kinds_of(call.name, call.arguments), [Fd, Signed, Signed]);
    }
}
