//! Formats a system call as it would be written in C.

use chase_recorder::syscalls::{SINGLE_SYSCALL_TEXT, SingleSyscallRow};

use super::flags::named;
use super::kinds::{Kind, kinds_of};
use super::names::*;
use super::structures::{Structure, address};
use crate::syscalls::{errno_name, syscall, syscall_name};

/// How many bytes of data are shown.
const SHOWN: usize = 32;

/// Most that is kept of an argument of a program, with its end.
const PROGRAM_ARGUMENT: usize = 32;

/// Most arguments and variables of a program that are counted.
const MOST_COUNTED: u32 = 4096;

/// Like `FUTEX_LOCK_PI`, by another clock.
const FUTEX_LOCK_PI2: i32 = 13;

/// Returns name and arguments.
pub(super) fn call(row: &SingleSyscallRow) -> String {
    let name = syscall_name(row.number);
    let mut texts = Texts { row, next: 0 };
    let kinds = match syscall(row.number) {
        Some(call) => kinds_of(call.name, call.arguments),
        None => vec![Kind::Address; row.arguments.len()],
    };
    let mut arguments: Vec<String> =
        kinds.iter().enumerate().map(|(at, &kind)| argument(kind, at, &mut texts)).collect();
    // Permissions only matter if a file is created.
    let flags = kinds.iter().position(|&kind| kind == Kind::Open);
    if let Some(at) = flags
        && kinds.get(at + 1) == Some(&Kind::Mode)
        && row.arguments[at] & (libc::O_CREAT | libc::O_TMPFILE) as u64 & !0o200_000 == 0
    {
        arguments.truncate(at + 1);
    }
    // The last argument of a wait with a mask of bits is the mask; the one before is not used.
    if name == "futex" && row.arguments[1] as i32 & 127 == libc::FUTEX_WAIT_BITSET {
        arguments.remove(4);
        if row.arguments[5] as u32 == u32::MAX {
            arguments[4] = "FUTEX_BITSET_MATCH_ANY".to_owned();
        }
    }
    arguments.truncate(used(&name, row).unwrap_or(arguments.len()));
    format!("{name}({})", arguments.join(", "))
}

/// Returns how many arguments the call uses, if that depends on one of them.
fn used(name: &str, row: &SingleSyscallRow) -> Option<usize> {
    let which = |at: usize| row.arguments[at] as i32;
    match (name, which(1)) {
        // Without the flags of `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME`.
        ("futex", command) => match command & 127 {
            libc::FUTEX_WAKE | libc::FUTEX_UNLOCK_PI | libc::FUTEX_TRYLOCK_PI => Some(3),
            libc::FUTEX_WAIT | libc::FUTEX_LOCK_PI => Some(4),
            _ => None,
        },
        ("fcntl", libc::F_GETFD | libc::F_GETFL | libc::F_GETOWN) => Some(2),
        ("fcntl", libc::F_GETPIPE_SZ | libc::F_GET_SEALS) => Some(2),
        ("mremap", _) if which(3) & (libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP) == 0 => Some(4),
        ("membarrier", _) if which(1) == 0 => Some(2),
        ("prctl", _) => match which(0) {
            libc::PR_GET_DUMPABLE | libc::PR_GET_KEEPCAPS | libc::PR_GET_SECCOMP => Some(1),
            libc::PR_SET_NAME | libc::PR_GET_NAME | libc::PR_SET_PDEATHSIG => Some(2),
            libc::PR_SET_DUMPABLE | libc::PR_CAPBSET_READ => Some(2),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the result; `?` if the call has not returned.
pub(super) fn result(row: &SingleSyscallRow) -> String {
    if row.left_ns == 0 {
        return "?".to_owned();
    }
    match row.result {
        -516 | -514 | -513 | -512 => "? (interrupted by a signal)".to_owned(),
        error @ -4095..=-1 => match errno_name(error.unsigned_abs() as u16) {
            Some(name) => format!("-1 {name}"),
            None => format!("{error}"),
        },
        address if matches!(&*syscall_name(row.number), "mmap" | "brk" | "mremap") => {
            format!("{address:#x}")
        }
        mask if &*syscall_name(row.number) == "umask" => format!("0{mask:03o}"),
        number => number.to_string(),
    }
}

/// The texts of a call, in order.
struct Texts<'r> {
    row: &'r SingleSyscallRow,
    next: usize,
}

impl<'r> Texts<'r> {
    fn next(&mut self) -> Option<&'r [u8]> {
        let at = self.next;
        self.next += 1;
        let len = (*self.row.lens.get(at)? as usize).min(SINGLE_SYSCALL_TEXT);
        self.row.texts.get(at)?.get(..len).filter(|text| !text.is_empty())
    }

    /// The next text as a structure; the address of one that was not recorded as a whole.
    fn shown(
        &mut self,
        address: impl Fn() -> String,
        show: impl Fn(&Structure<'_>) -> Option<String>,
    ) -> String {
        self.next().and_then(|text| show(&Structure(text))).unwrap_or_else(address)
    }
}

fn argument(kind: Kind, at: usize, texts: &mut Texts<'_>) -> String {
    let row = texts.row;
    let value = row.arguments.get(at).copied().unwrap_or(0);
    let address = || address(value);
    match kind {
        Kind::Fd | Kind::Signed => (value as i32).to_string(),
        Kind::Long => (value as i64).to_string(),
        Kind::Directory if value as i32 == libc::AT_FDCWD => "AT_FDCWD".to_owned(),
        Kind::Directory => (value as i32).to_string(),
        Kind::Path => texts.next().map_or_else(address, path),
        Kind::Bytes => {
            let text = texts.next().map(|text| {
                let all = row.arguments.get(at + 1).copied().unwrap_or(0);
                let is_written = matches!(row.number, 1 | 18 | 44);
                let all = if is_written { all } else { row.result.max(0) as u64 };
                quoted(text, all as usize > SHOWN.min(text.len()))
            });
            let is_empty = row.result == 0 && value != 0;
            text.unwrap_or_else(|| if is_empty { "\"\"".to_owned() } else { address() })
        }
        Kind::Offset if value == 0 => "0".to_owned(),
        Kind::Offset => format!("{value:#x}"),
        Kind::Number => value.to_string(),
        Kind::Mode => format!("0{:03o}", value as u32),
        Kind::Pair => texts.shown(address, |pair| pair.pair()),
        Kind::Time(fraction) => texts.shown(address, |time| time.time(fraction)),
        Kind::FutexTime => match row.arguments[1] as i32 & 127 {
            libc::FUTEX_WAIT
            | libc::FUTEX_WAIT_BITSET
            | libc::FUTEX_WAIT_REQUEUE_PI
            | libc::FUTEX_LOCK_PI
            | FUTEX_LOCK_PI2 => argument(Kind::Time("tv_nsec"), at, texts),
            _ => (value as u32).to_string(),
        },
        Kind::Status => {
            texts.shown(address, |status| (row.result > 0).then(|| status.status()).flatten())
        }
        Kind::Stat => texts.shown(address, |file| file.stat()),
        Kind::Statx => texts.shown(address, |file| file.statx()),
        Kind::Action => texts.shown(address, |action| action.action()),
        Kind::Limits => texts.shown(address, |limits| limits.limits()),
        Kind::Requested => match row.arguments[1] {
            libc::TCGETS => texts.shown(address, |terminal| terminal.terminal()),
            libc::TIOCGWINSZ => texts.shown(address, |size| size.window_size()),
            _ => address(),
        },
        Kind::SocketAddress => texts.shown(address, |to| to.socket_address()),
        Kind::CloneArguments => texts.shown(address, |arguments| arguments.clone_arguments()),
        Kind::SignalSet => texts.shown(address, |signals| signals.signals()),
        Kind::Polled => {
            let count = row.arguments.get(at + 1).copied().unwrap_or(0);
            texts.shown(address, |polled| Some(polled.polled(count)))
        }
        Kind::ProcessName => {
            let text = texts.next();
            match row.arguments[0] as i32 {
                libc::PR_SET_NAME | libc::PR_GET_NAME => text.map_or_else(address, path),
                libc::PR_SET_PDEATHSIG => argument(Kind::One(SIGNALS), at, texts),
                libc::PR_SET_DUMPABLE => value.to_string(),
                _ => address(),
            }
        }
        Kind::ControlArgument => match row.arguments[1] as i32 {
            libc::F_SETFD => argument(Kind::Any(DESCRIPTOR_FLAGS), at, texts),
            libc::F_SETFL => argument(Kind::Open, at, texts),
            libc::F_ADD_SEALS => argument(Kind::Any(SEALS), at, texts),
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC | libc::F_SETOWN | libc::F_SETPIPE_SZ => {
                (value as i32).to_string()
            }
            _ => address(),
        },
        Kind::Protocol => match row.arguments[0] as i32 {
            libc::AF_INET | libc::AF_INET6 => argument(Kind::One(PROTOCOLS), at, texts),
            libc::AF_NETLINK => argument(Kind::One(NETLINKS), at, texts),
            _ => (value as i32).to_string(),
        },
        Kind::SocketOption => {
            let names = match row.arguments[1] as i32 {
                libc::SOL_SOCKET => SOCKET_OPTIONS,
                libc::SOL_TCP => TCP_OPTIONS,
                libc::SOL_IP => IP_OPTIONS,
                libc::SOL_IPV6 => IPV6_OPTIONS,
                _ => &[],
            };
            argument(Kind::One(names), at, texts)
        }
        Kind::OptionValue => {
            let [level, option] = [row.arguments[1], row.arguments[2]].map(|of| of as i32);
            texts.shown(address, |shown| shown.socket_option(level, option))
        }
        Kind::OptionLength => {
            let returned = (row.result >= 0).then_some(row.lens[0]);
            texts.shown(address, |length| length.length(returned))
        }
        Kind::ProgramArguments => {
            let count = row.object as u32;
            let shown = texts.next().map(|text| program_arguments(text, count));
            shown.unwrap_or_else(|| address() + &counted(count, "argument"))
        }
        Kind::ProgramVariables => address() + &counted((row.object >> 32) as u32, "var"),
        Kind::SystemName | Kind::SystemLoad => {
            let parts = [texts.next(), texts.next()].map(Option::unwrap_or_default);
            let (whole, whole_is) = (parts.concat(), parts[0].len() == SINGLE_SYSCALL_TEXT);
            let whole = Structure(&whole);
            let shown = match kind {
                Kind::SystemName => whole.system_name(),
                _ => whole.system_load(),
            };
            shown.filter(|_| whole_is).unwrap_or_else(address)
        }
        kind => named(kind, value).unwrap_or_else(|| match kind {
            Kind::Address | Kind::Ioctl => address(),
            _ => (value as i32).to_string(),
        }),
    }
}

/// Formats what a program is started with, of `count` arguments those that were kept; each has its end, and at most
/// [`PROGRAM_ARGUMENT`] bytes with it.
fn program_arguments(kept: &[u8], count: u32) -> String {
    let kept = kept.strip_suffix(b"\0").unwrap_or(kept);
    let quoted = |text: &[u8]| quoted_all(text, text.len() + 1 == PROGRAM_ARGUMENT);
    let mut shown: Vec<String> = kept.split(|&byte| byte == 0).map(quoted).collect();
    if shown.len() < count as usize {
        shown.push("...".to_owned());
    }
    format!("[{}]", shown.join(", "))
}

/// How many there are, as a comment; nothing if that was not recorded.
fn counted(count: u32, what: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!(" /* 1 {what} */"),
        MOST_COUNTED.. => format!(" /* {MOST_COUNTED} {what}s or more */"),
        _ => format!(" /* {count} {what}s */"),
    }
}

/// Quotes a path up to its end; marks it if it was cut off.
fn path(text: &[u8]) -> String {
    match text.iter().position(|&byte| byte == 0) {
        // The kernel ends a text with NUL even if it cuts it off.
        Some(end) => quoted_all(&text[..end], end + 1 == SINGLE_SYSCALL_TEXT),
        None => quoted_all(text, true),
    }
}

fn quoted(text: &[u8], is_cut: bool) -> String {
    quoted_all(&text[..text.len().min(SHOWN)], is_cut)
}

fn quoted_all(text: &[u8], is_cut: bool) -> String {
    format!("\"{}\"{}", text.escape_ascii(), if is_cut { "..." } else { "" })
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;

    fn row(number: u32, arguments: &[u64], texts: &[&[u8]], result: i64) -> SingleSyscallRow {
        let mut row = SingleSyscallRow { number, result, left_ns: 1, ..SingleSyscallRow::zeroed() };
        row.arguments[..arguments.len()].copy_from_slice(arguments);
        for (at, text) in texts.iter().enumerate() {
            row.texts[at][..text.len()].copy_from_slice(text);
            row.lens[at] = text.len() as u32;
        }
        row
    }

    fn line(row: &SingleSyscallRow) -> String {
        format!("{} = {}", call(row), result(row))
    }

    #[test]
    fn calls_are_written_as_in_c() {
        let at_cwd = libc::AT_FDCWD as u64;
        let cases = [
            (
                row(257, &[at_cwd, 1, 0, 0], &[b"/etc/hosts\0"], 3),
                r#"openat(AT_FDCWD, "/etc/hosts", O_RDONLY) = 3"#,
            ),
            (
                row(257, &[at_cwd, 1, 0o101, 0o644], &[b"a\0"], -13),
                r#"openat(AT_FDCWD, "a", O_WRONLY|O_CREAT, 0644) = -1 EACCES"#,
            ),
            (row(0, &[3, 1, 4096], &[b"ab\n\xff"], 4), r#"read(3, "ab\n\xff", 4096) = 4"#),
            (row(0, &[3, 1, 4096], &[], 0), r#"read(3, "", 4096) = 0"#),
            (row(1, &[1, 1, 3], &[b"abc"], 3), r#"write(1, "abc", 3) = 3"#),
            (row(95, &[0o22], &[], 0o77), "umask(0022) = 0077"),
            (row(295, &[3, 0x1000, 2, 0, 0], &[], 7), "preadv(3, 0x1000, 2, 0, 0) = 7"),
            (
                row(9, &[0, 4096, 3, 34, u64::MAX, 0], &[], 0x7f00_0000),
                "mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f000000",
            ),
            (row(22, &[1], &[&[3, 0, 0, 0, 4, 0, 0, 0]], 0), "pipe([3, 4]) = 0"),
            (
                row(42, &[3, 1, 16], &[&[2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]], 0),
                r#"connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = 0"#,
            ),
            (row(82, &[1, 2], &[b"a\0", b"b\0"], 0), r#"rename("a", "b") = 0"#),
            (row(39, &[], &[], 12), "getpid() = 12"),
            (row(81, &[3], &[], 0), "fchdir(3) = 0"),
            (row(73, &[3, 6], &[], 0), "flock(3, LOCK_EX|LOCK_NB) = 0"),
            (
                row(318, &[1, 2, 1], &[b"\x01\x02"], 2),
                r#"getrandom("\x01\x02", 2, GRND_NONBLOCK) = 2"#,
            ),
            (row(98, &[u64::MAX, 16], &[], 0), "getrusage(RUSAGE_CHILDREN, 0x10) = 0"),
            (row(229, &[1, 0], &[], 0), "clock_getres(CLOCK_MONOTONIC, NULL) = 0"),
            (row(72, &[3, 2, 1], &[], 0), "fcntl(3, F_SETFD, FD_CLOEXEC) = 0"),
            (row(72, &[3, 3, 9], &[], 2), "fcntl(3, F_GETFL) = 2"),
            (row(202, &[16, 129, 1, 7, 7, 7], &[], 1), "futex(0x10, FUTEX_WAKE_PRIVATE, 1) = 1"),
            (
                row(54, &[3, 6, 1, 16, 4], &[], 0),
                "setsockopt(3, SOL_TCP, TCP_NODELAY, 0x10, 4) = 0",
            ),
            (
                row(54, &[3, 6, 1, 16, 4], &[&[1, 0, 0, 0]], 0),
                "setsockopt(3, SOL_TCP, TCP_NODELAY, [1], 4) = 0",
            ),
            (
                row(54, &[3, 1, 13, 16, 8], &[&[1, 0, 0, 0, 5, 0, 0, 0]], 0),
                "setsockopt(3, SOL_SOCKET, SO_LINGER, {l_onoff=1, l_linger=5}, 8) = 0",
            ),
            (
                row(55, &[3, 1, 4, 16, 32], &[&[111, 0, 0, 0], &[8; 16]], 0),
                "getsockopt(3, SOL_SOCKET, SO_ERROR, [111], [134744072 => 4]) = 0",
            ),
            (
                row(55, &[3, 1, 4, 16, 32], &[&[], &[4, 0, 0, 0, 1]], -88),
                "getsockopt(3, SOL_SOCKET, SO_ERROR, 0x10, [4]) = -1 ENOTSOCK",
            ),
            (row(41, &[2, 1, 6], &[], 3), "socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 3"),
            (
                row(14, &[0, 16, 0, 8], &[&[2, 0, 0, 0x80, 0, 0, 0, 0]], 0),
                "rt_sigprocmask(SIG_BLOCK, [INT RTMIN], NULL, 8) = 0",
            ),
            (
                row(14, &[2, 16, 0, 8], &[&[0xff, 0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff]], 0),
                "rt_sigprocmask(SIG_SETMASK, ~[RT_1], NULL, 8) = 0",
            ),
            (
                row(7, &[16, 3, 5], &[&[3, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0]], 1),
                "poll([{fd=3, events=POLLIN}, {fd=4, events=POLLOUT}, ...], 3, 5) = 1",
            ),
            (
                row(435, &[16, 88], &[&[0, 0x0f, 1, 0, 0, 0, 0, 0]], 7),
                "clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, ...}, 88) = 7",
            ),
            (row(79, &[16, 99], &[b"/tmp\0"], 5), r#"getcwd("/tmp", 99) = 5"#),
            (
                row(439, &[at_cwd, 16, 0, 0x200], &[b"a\0"], 0),
                r#"faccessat2(AT_FDCWD, "a", F_OK, AT_EACCESS) = 0"#,
            ),
            (row(13, &[33, 0, 0, 8], &[], 0), "rt_sigaction(SIGRT_1, NULL, NULL, 8) = 0"),
            (
                row(257 + 5, &[at_cwd, 16, 32, 0], &[b"a\0"], -2),
                r#"newfstatat(AT_FDCWD, "a", 0x20, 0) = -1 ENOENT"#,
            ),
            (
                row(302, &[0, 3, 0, 16], &[&[], &[0xff; 16]], 0),
                "prlimit64(0, RLIMIT_STACK, NULL, {rlim_cur=RLIM64_INFINITY, rlim_max=RLIM64_INFINITY}) = 0",
            ),
            (
                row(202, &[16, 0, 0, 32, 7, 7], &[&[1; 16]], -110),
                "futex(0x10, FUTEX_WAIT, 0, {tv_sec=72340172838076673, tv_nsec=72340172838076673}) = -1 ETIMEDOUT",
            ),
            (
                row(202, &[16, 4, 1, 5, 32, 0], &[], 0),
                "futex(0x10, FUTEX_CMP_REQUEUE, 1, 5, 0x20, 0) = 0",
            ),
            (row(16, &[1, 0x5401, 16], &[], -25), "ioctl(1, TCGETS, 0x10) = -1 ENOTTY"),
            (row(89, &[1, 16, 99], &[b"a\0", b"b"], 1), r#"readlink("a", "b", 99) = 1"#),
            (row(157, &[21, 9, 9], &[], 0), "prctl(PR_GET_SECCOMP) = 0"),
            (row(157, &[15, 16], &[b"worker\0"], 0), r#"prctl(PR_SET_NAME, "worker") = 0"#),
        ];
        for (row, expected) in cases {
            assert_eq!(line(&row), expected);
        }
        let mut exit = row(231, &[7], &[], 0);
        exit.left_ns = 0;
        assert_eq!(line(&exit), "exit_group(7) = ?");
    }

    #[test]
    fn programs_are_shown_with_the_arguments_that_were_kept() {
        let line = |object: u64, kept: &[u8]| {
            let row = row(59, &[1, 16, 32], &[b"/bin/a\0", kept], 0);
            call(&SingleSyscallRow { object, ..row })
        };
        let two = 2 | 27 << 32;
        assert_eq!(line(two, b"a\0b c\0"), r#"execve("/bin/a", ["a", "b c"], 0x20 /* 27 vars */)"#);
        assert_eq!(line(two, b"a\0\0"), r#"execve("/bin/a", ["a", ""], 0x20 /* 27 vars */)"#);
        let three = 3 | 1 << 32;
        assert_eq!(
            line(three, b"a\0b\0"),
            r#"execve("/bin/a", ["a", "b", ...], 0x20 /* 1 var */)"#
        );
        assert_eq!(
            line(three, b""),
            r#"execve("/bin/a", 0x10 /* 3 arguments */, 0x20 /* 1 var */)"#
        );
        let long = [&b"x".repeat(31)[..], b"\0"].concat();
        let cut = format!(r#"["{}"...]"#, "x".repeat(31));
        assert!(line(1, &long).contains(&cut), "{}", line(1, &long));
        // Of an older recording.
        assert_eq!(line(0, b""), r#"execve("/bin/a", 0x10, 0x20)"#);
        assert!(line(4096 << 32 | 1, b"a\0").ends_with("0x20 /* 4096 vars or more */)"));
    }

    #[test]
    fn names_and_load_of_the_system_are_in_two_parts() {
        let (mut first, mut second) = ([0; SINGLE_SYSCALL_TEXT], [0; 40]);
        first[..5].copy_from_slice(b"Linux");
        first[65..].fill(b'n');
        second[..2].copy_from_slice(b"nn");
        let shown = call(&row(63, &[16], &[&first, &second], 0));
        let expected = format!(r#"uname({{sysname="Linux", nodename="{}", ...}})"#, "n".repeat(33));
        assert_eq!(shown, expected);
        let (mut first, mut second) = ([0; SINGLE_SYSCALL_TEXT], [0; 16]);
        (first[0], first[32], first[80], second[0], second[8]) = (7, 9, 3, 5, 1);
        let shown = call(&row(99, &[16], &[&first, &second], 0));
        assert_eq!(
            shown,
            "sysinfo({uptime=7, loads=[0, 0, 0], totalram=9, freeram=0, sharedram=0, bufferram=0, totalswap=0, freeswap=0, \
             procs=3, totalhigh=0, freehigh=5, mem_unit=1})"
        );
        assert_eq!(call(&row(99, &[16], &[&first], 0)), "sysinfo(0x10)");
        assert_eq!(call(&row(63, &[16], &[&[], &second], 0)), "uname(0x10)");
    }

    #[test]
    fn what_was_cut_says_so() {
        let long = [b'x'; 40];
        assert!(
            line(&row(1, &[1, 1, 400], &[&long], 400))
                .contains(&format!("\"{}\"...", "x".repeat(32)))
        );
        let mut path = [b'p'; SINGLE_SYSCALL_TEXT];
        path[SINGLE_SYSCALL_TEXT - 1] = 0;
        assert!(line(&row(80, &[1], &[&path], 0)).contains("p\"..."));
    }
}
