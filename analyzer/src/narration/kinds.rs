//! The kinds of the arguments of system calls.

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
    /// A signed number.
    Signed,
    /// An unsigned number.
    Number,
    /// Permissions.
    Mode,
    /// The flags of `open`.
    Open,
    /// The flags of `open` other than the access mode.
    OpenFlags,
    /// The protection and flags of `mmap`.
    Protection,
    Mapping,
    /// The mode of `access`.
    Access,
    /// `AT_*`.
    At,
    Whence,
    Signal,
    SignalMask,
    Clone,
    Futex,
    Control,
    Domain,
    Socket,
    Address2,
    WaitOptions,
    Advice,
    Epoll,
    Clock,
    Resource,
    Ioctl,
    /// An offset in a file.
    Offset,
    /// Two descriptors that the call returned.
    Pair,
    /// A `timespec`.
    Time,
    /// The status of a child.
    Status,
    Prctl,
}

/// Returns the kind for a letter.
fn kind(letter: u8) -> Kind {
    match letter {
        b'f' => Kind::Fd,
        b'd' => Kind::Directory,
        b'p' => Kind::Path,
        b'b' => Kind::Bytes,
        b'i' => Kind::Signed,
        b'u' => Kind::Number,
        b'm' => Kind::Mode,
        b'o' => Kind::Open,
        b'O' => Kind::OpenFlags,
        b'P' => Kind::Protection,
        b'M' => Kind::Mapping,
        b'A' => Kind::Access,
        b'T' => Kind::At,
        b'w' => Kind::Whence,
        b's' => Kind::Signal,
        b'h' => Kind::SignalMask,
        b'c' => Kind::Clone,
        b'F' => Kind::Futex,
        b'n' => Kind::Control,
        b'D' => Kind::Domain,
        b'Y' => Kind::Socket,
        b'S' => Kind::Address2,
        b'W' => Kind::WaitOptions,
        b'v' => Kind::Advice,
        b'E' => Kind::Epoll,
        b'C' => Kind::Clock,
        b'R' => Kind::Resource,
        b'I' => Kind::Ioctl,
        b'q' => Kind::Pair,
        b'z' => Kind::Offset,
        b't' => Kind::Time,
        b'y' => Kind::Status,
        b'k' => Kind::Prctl,
        _ => Kind::Address,
    }
}

/// Sorted by name.
const CALLS: &[(&str, &[u8])] = &[
    ("accept", b"fSx"),
    ("accept4", b"fSxY"),
    ("access", b"pA"),
    ("arch_prctl", b"xx"),
    ("bind", b"fSu"),
    ("brk", b"x"),
    ("chdir", b"p"),
    ("chmod", b"pm"),
    ("clock_nanosleep", b"Citx"),
    ("clone", b"cxxxx"),
    ("clone3", b"xu"),
    ("close", b"f"),
    ("close_range", b"uux"),
    ("connect", b"fSu"),
    ("copy_file_range", b"fxfxux"),
    ("dup", b"f"),
    ("dup2", b"ff"),
    ("dup3", b"ffO"),
    ("epoll_create1", b"O"),
    ("epoll_ctl", b"fEfx"),
    ("epoll_pwait", b"fxuix"),
    ("epoll_wait", b"fxui"),
    ("eventfd2", b"uO"),
    ("execve", b"pxx"),
    ("execveat", b"dpxxT"),
    ("exit", b"i"),
    ("exit_group", b"i"),
    ("faccessat", b"dpA"),
    ("faccessat2", b"dpAT"),
    ("fadvise64", b"fuui"),
    ("fchmod", b"fm"),
    ("fcntl", b"fnx"),
    ("fdatasync", b"f"),
    ("flock", b"fi"),
    ("fstat", b"fx"),
    ("fstatfs", b"fx"),
    ("fsync", b"f"),
    ("ftruncate", b"fu"),
    ("futex", b"xFuxxu"),
    ("getcwd", b"bu"),
    ("getdents64", b"fxu"),
    ("getpeername", b"fSx"),
    ("getpgid", b"i"),
    ("getrandom", b"bux"),
    ("getrusage", b"ix"),
    ("getsockname", b"fSx"),
    ("getsockopt", b"fiixx"),
    ("ioctl", b"fIx"),
    ("kill", b"is"),
    ("linkat", b"dpdpT"),
    ("listen", b"fi"),
    ("lseek", b"fiw"),
    ("lstat", b"px"),
    ("madvise", b"xuv"),
    ("membarrier", b"ixi"),
    ("memfd_create", b"px"),
    ("mkdir", b"pm"),
    ("mkdirat", b"dpm"),
    ("mmap", b"xuPMfz"),
    ("mprotect", b"xuP"),
    ("mremap", b"xuuxx"),
    ("munmap", b"xu"),
    ("nanosleep", b"tx"),
    ("newfstatat", b"dpxT"),
    ("open", b"pom"),
    ("openat", b"dpom"),
    ("openat2", b"dpxu"),
    ("pipe", b"q"),
    ("pipe2", b"qO"),
    ("poll", b"xui"),
    ("ppoll", b"xuxxu"),
    ("prctl", b"kxxxx"),
    ("pread64", b"fbuu"),
    ("prlimit64", b"iRxx"),
    ("pselect6", b"uxxxxx"),
    ("pwrite64", b"fbuu"),
    ("read", b"fbu"),
    ("readlink", b"pxu"),
    ("readlinkat", b"dpxu"),
    ("readv", b"fxu"),
    ("recvfrom", b"fbuxxx"),
    ("recvmsg", b"fxx"),
    ("rename", b"pp"),
    ("renameat", b"dpdp"),
    ("renameat2", b"dpdpx"),
    ("rmdir", b"p"),
    ("rseq", b"xuxx"),
    ("rt_sigaction", b"sxxu"),
    ("rt_sigprocmask", b"hxxu"),
    ("rt_sigsuspend", b"xu"),
    ("sched_getaffinity", b"iux"),
    ("sched_setaffinity", b"iux"),
    ("select", b"uxxxx"),
    ("sendfile", b"ffxu"),
    ("sendmsg", b"fxx"),
    ("sendto", b"fbuxxu"),
    ("set_robust_list", b"xu"),
    ("set_tid_address", b"x"),
    ("setpgid", b"ii"),
    ("setsockopt", b"fiixu"),
    ("shutdown", b"fi"),
    ("sigaltstack", b"xx"),
    ("socket", b"DYi"),
    ("socketpair", b"DYiq"),
    ("splice", b"fxfxux"),
    ("stat", b"px"),
    ("statfs", b"px"),
    ("statx", b"dpTxx"),
    ("symlink", b"pp"),
    ("symlinkat", b"pdp"),
    ("sysinfo", b"x"),
    ("tgkill", b"iis"),
    ("truncate", b"pu"),
    ("umask", b"m"),
    ("uname", b"x"),
    ("unlink", b"p"),
    ("unlinkat", b"dpT"),
    ("utimensat", b"dpxT"),
    ("vfork", b""),
    ("wait4", b"iyWx"),
    ("waitid", b"iixWx"),
    ("write", b"fbu"),
    ("writev", b"fxu"),
];

/// Returns the kinds of a call's arguments; `None` if unknown: then all that the kernel passes are shown as
/// addresses.
pub(super) fn kinds_of(name: &str) -> Option<impl Iterator<Item = Kind> + use<>> {
    let at = CALLS.binary_search_by_key(&name, |call| call.0).ok()?;
    Some(CALLS[at].1.iter().map(|&letter| kind(letter)))
}

#[cfg(test)]
mod tests {
    use super::CALLS;
    use crate::syscalls::syscall;

    #[test]
    fn calls_are_in_order_and_exist() {
        assert!(CALLS.is_sorted_by_key(|call| call.0));
        let known: Vec<&str> = (0..500).filter_map(syscall).map(|call| call.name).collect();
        for (name, kinds) in CALLS {
            assert!(known.contains(name), "{name}");
            assert!(kinds.len() <= 6, "{name}");
        }
    }
}
