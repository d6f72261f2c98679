//! Names of numeric constants. A number without a name is shown as a number.

use super::kinds::Kind;

type Names = &'static [(i64, &'static str)];

macro_rules! names {
    ($($name:ident),* $(,)?) => { &[$((libc::$name as i64, stringify!($name))),*] };
}

const OPEN: Names = names![
    O_CREAT,
    O_EXCL,
    O_NOCTTY,
    O_TRUNC,
    O_APPEND,
    O_NONBLOCK,
    O_SYNC,
    O_DSYNC,
    O_DIRECT,
    O_NOFOLLOW,
    O_NOATIME,
    O_CLOEXEC,
    O_PATH,
    O_TMPFILE,
    O_DIRECTORY,
];
const PROTECTION: Names = names![PROT_READ, PROT_WRITE, PROT_EXEC];
const MAPPING: Names = names![
    MAP_FIXED,
    MAP_ANONYMOUS,
    MAP_GROWSDOWN,
    MAP_DENYWRITE,
    MAP_EXECUTABLE,
    MAP_LOCKED,
    MAP_NORESERVE,
    MAP_POPULATE,
    MAP_NONBLOCK,
    MAP_STACK,
    MAP_HUGETLB,
    MAP_FIXED_NOREPLACE,
];
const ACCESS: Names = names![R_OK, W_OK, X_OK];
const AT: Names =
    names![AT_SYMLINK_NOFOLLOW, AT_REMOVEDIR, AT_SYMLINK_FOLLOW, AT_NO_AUTOMOUNT, AT_EMPTY_PATH,];
const WHENCE: Names = names![SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE];
const SIGNALS: Names = names![
    SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGUSR1, SIGSEGV,
    SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGSTKFLT, SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN,
    SIGTTOU, SIGURG, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGWINCH, SIGIO, SIGPWR, SIGSYS,
];
const SIGNAL_MASK: Names = names![SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK];
const CLONE: Names = names![
    CLONE_VM,
    CLONE_FS,
    CLONE_FILES,
    CLONE_SIGHAND,
    CLONE_PTRACE,
    CLONE_VFORK,
    CLONE_PARENT,
    CLONE_THREAD,
    CLONE_NEWNS,
    CLONE_SYSVSEM,
    CLONE_SETTLS,
    CLONE_PARENT_SETTID,
    CLONE_CHILD_CLEARTID,
    CLONE_CHILD_SETTID,
];
const FUTEX: Names = names![
    FUTEX_WAIT,
    FUTEX_WAKE,
    FUTEX_REQUEUE,
    FUTEX_CMP_REQUEUE,
    FUTEX_WAKE_OP,
    FUTEX_LOCK_PI,
    FUTEX_UNLOCK_PI,
    FUTEX_TRYLOCK_PI,
    FUTEX_WAIT_BITSET,
    FUTEX_WAKE_BITSET,
];
const CONTROL: Names = names![
    F_DUPFD,
    F_GETFD,
    F_SETFD,
    F_GETFL,
    F_SETFL,
    F_GETLK,
    F_SETLK,
    F_SETLKW,
    F_SETOWN,
    F_GETOWN,
    F_DUPFD_CLOEXEC,
    F_SETPIPE_SZ,
    F_GETPIPE_SZ,
    F_ADD_SEALS,
    F_GET_SEALS,
];
const DOMAINS: Names = names![AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET];
const SOCKETS: Names = names![SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET];
const SOCKET_FLAGS: Names = names![SOCK_CLOEXEC, SOCK_NONBLOCK];
const WAIT_OPTIONS: Names = names![WNOHANG, WUNTRACED, WCONTINUED, WEXITED, WNOWAIT];
const ADVICE: Names = names![
    MADV_NORMAL,
    MADV_RANDOM,
    MADV_SEQUENTIAL,
    MADV_WILLNEED,
    MADV_DONTNEED,
    MADV_FREE,
    MADV_REMOVE,
    MADV_DONTFORK,
    MADV_HUGEPAGE,
    MADV_NOHUGEPAGE,
    MADV_POPULATE_READ,
    MADV_POPULATE_WRITE,
];
const EPOLL: Names = names![EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD];
const CLOCKS: Names = names![
    CLOCK_REALTIME,
    CLOCK_MONOTONIC,
    CLOCK_PROCESS_CPUTIME_ID,
    CLOCK_THREAD_CPUTIME_ID,
    CLOCK_MONOTONIC_RAW,
    CLOCK_BOOTTIME,
];
const RESOURCES: Names = names![
    RLIMIT_CPU,
    RLIMIT_FSIZE,
    RLIMIT_DATA,
    RLIMIT_STACK,
    RLIMIT_CORE,
    RLIMIT_RSS,
    RLIMIT_NPROC,
    RLIMIT_NOFILE,
    RLIMIT_MEMLOCK,
    RLIMIT_AS,
];
const IOCTLS: Names = names![
    TCGETS, TCSETS, TCSETSW, TIOCGWINSZ, TIOCGPGRP, TIOCSPGRP, FIONREAD, FIONBIO, FIOCLEX,
    TIOCGPTN,
];
const PRCTLS: Names = names![
    PR_SET_PDEATHSIG,
    PR_SET_NAME,
    PR_GET_NAME,
    PR_SET_DUMPABLE,
    PR_SET_SECCOMP,
    PR_CAPBSET_READ,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_THP_DISABLE,
];

/// Returns the name of `number` as an argument of this kind.
pub(super) fn named(kind: Kind, number: u64) -> Option<String> {
    // These arguments are 32 bits wide; the register's upper half is undefined.
    let number = i64::from(number as i32);
    match kind {
        Kind::Open => {
            let access = ["O_RDONLY", "O_WRONLY", "O_RDWR", "3"][(number & 3) as usize];
            Some(joined(OPEN, number & !3, Some(access)))
        }
        Kind::OpenFlags => Some(joined(OPEN, number, None)),
        Kind::Mapping => {
            let shared = ["0", "MAP_SHARED", "MAP_PRIVATE", "MAP_SHARED_VALIDATE"];
            Some(joined(MAPPING, number & !3, Some(shared[(number & 3) as usize])))
        }
        Kind::Protection if number == 0 => Some("PROT_NONE".to_owned()),
        Kind::Protection => Some(joined(PROTECTION, number, None)),
        Kind::Access if number == 0 => Some("F_OK".to_owned()),
        Kind::Access => Some(joined(ACCESS, number, None)),
        Kind::At => Some(joined(AT, number, None)),
        Kind::WaitOptions => Some(joined(WAIT_OPTIONS, number, None)),
        Kind::Clone => {
            let signal = one(SIGNALS, number & 0xff);
            let flags = joined(CLONE, number & !0xff, None);
            Some(match (signal, number & !0xff) {
                (Some(signal), 0) => signal.to_owned(),
                (Some(signal), _) => format!("{flags}|{signal}"),
                (None, _) => flags,
            })
        }
        Kind::Futex => {
            let private = if number & 128 != 0 { "_PRIVATE" } else { "" };
            let clock = if number & 256 != 0 { "|FUTEX_CLOCK_REALTIME" } else { "" };
            one(FUTEX, number & 127).map(|name| format!("{name}{private}{clock}"))
        }
        Kind::Socket => {
            let kind = one(SOCKETS, number & 15);
            Some(joined(SOCKET_FLAGS, number & !15, kind))
        }
        Kind::Whence => one(WHENCE, number).map(str::to_owned),
        Kind::Signal => one(SIGNALS, number).map(str::to_owned),
        Kind::SignalMask => one(SIGNAL_MASK, number).map(str::to_owned),
        Kind::Control => one(CONTROL, number).map(str::to_owned),
        Kind::Domain => one(DOMAINS, number).map(str::to_owned),
        Kind::Advice => one(ADVICE, number).map(str::to_owned),
        Kind::Epoll => one(EPOLL, number).map(str::to_owned),
        Kind::Clock => one(CLOCKS, number).map(str::to_owned),
        Kind::Resource => one(RESOURCES, number).map(str::to_owned),
        Kind::Ioctl => one(IOCTLS, number).map(str::to_owned),
        Kind::Prctl => one(PRCTLS, number).map(str::to_owned),
        _ => None,
    }
}

fn one(names: Names, number: i64) -> Option<&'static str> {
    names.iter().find(|name| name.0 == number).map(|name| name.1)
}

/// Joins the names of the flags that are set, after `first`; the rest is shown as a number.
fn joined(names: Names, number: i64, first: Option<&str>) -> String {
    let mut parts: Vec<String> = first.into_iter().map(str::to_owned).collect();
    let mut rest = number;
    // Names of several bits come first: one of their bits may be another flag.
    let mut by_bits: Vec<_> = names.iter().filter(|name| name.0 != 0).collect();
    by_bits.sort_by_key(|name| std::cmp::Reverse(name.0.count_ones()));
    let mut found: Vec<&(i64, &str)> = Vec::new();
    for name in by_bits {
        if rest & name.0 == name.0 {
            rest &= !name.0;
            found.push(name);
        }
    }
    found.sort_by_key(|name| names.iter().position(|known| known.1 == name.1));
    parts.extend(found.iter().map(|name| name.1.to_owned()));
    if rest != 0 {
        parts.push(format!("{rest:#x}"));
    }
    if parts.is_empty() { "0".to_owned() } else { parts.join("|") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_the_names_that_headers_give_them() {
        let cases = [
            (Kind::Open, libc::O_RDONLY | libc::O_CLOEXEC, "O_RDONLY|O_CLOEXEC"),
            (Kind::Open, libc::O_RDWR | libc::O_CREAT | libc::O_SYNC, "O_RDWR|O_CREAT|O_SYNC"),
            (Kind::Mapping, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, "MAP_PRIVATE|MAP_ANONYMOUS"),
            (Kind::Protection, 0, "PROT_NONE"),
            (Kind::Protection, 3, "PROT_READ|PROT_WRITE"),
            (Kind::Futex, 129, "FUTEX_WAKE_PRIVATE"),
            (Kind::Clone, libc::CLONE_CHILD_SETTID | libc::SIGCHLD, "CLONE_CHILD_SETTID|SIGCHLD"),
            (Kind::Socket, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, "SOCK_STREAM|SOCK_CLOEXEC"),
            (Kind::At, 0, "0"),
            (Kind::Access, 0, "F_OK"),
        ];
        for (kind, number, expected) in cases {
            assert_eq!(named(kind, number as u64).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_has_no_name_stays_a_number() {
        assert_eq!(named(Kind::Protection, 0x81).as_deref(), Some("PROT_READ|0x80"));
        assert_eq!(named(Kind::Control, 999), None);
        assert_eq!(named(Kind::Number, 1), None);
    }
}
