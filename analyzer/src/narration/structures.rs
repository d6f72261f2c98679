//! Structures that arguments lead to, as C's initializers. Of large ones, the members that matter most are shown.

use chase_recorder::syscalls::SINGLE_SYSCALL_TEXT;

use super::flags::{joined, named};
use super::kinds::Kind;
use super::names::*;

/// A structure, as far as it was recorded.
pub(super) struct Structure<'r>(pub(super) &'r [u8]);

impl Structure<'_> {
    fn bytes<const LEN: usize>(&self, at: usize) -> Option<[u8; LEN]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    fn u16(&self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    fn u64(&self, at: usize) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }

    /// Two descriptors.
    pub(super) fn pair(&self) -> Option<String> {
        Some(format!("[{}, {}]", self.u32(0)? as i32, self.u32(4)? as i32))
    }

    /// Seconds, and the fraction of one that is called `fraction`.
    pub(super) fn time(&self, fraction: &str) -> Option<String> {
        let (seconds, rest) = (self.u64(0)? as i64, self.u64(8)? as i64);
        Some(format!("{{tv_sec={seconds}, {fraction}={rest}}}"))
    }

    /// The status of a child.
    pub(super) fn status(&self) -> Option<String> {
        let status = self.u32(0)?;
        let signal = |number: u32| {
            let name = named(Kind::One(SIGNALS), number.into());
            name.unwrap_or_else(|| number.to_string())
        };
        let what = match (status & 0x7f, status >> 8 & 0xff) {
            (0, code) => format!("WIFEXITED(s) && WEXITSTATUS(s) == {code}"),
            (0x7f, _) if status == 0xffff => "WIFCONTINUED(s)".to_owned(),
            (0x7f, stop) => format!("WIFSTOPPED(s) && WSTOPSIG(s) == {}", signal(stop)),
            (kill, _) => {
                let core = if status & 0x80 == 0 { "" } else { " && WCOREDUMP(s)" };
                format!("WIFSIGNALED(s) && WTERMSIG(s) == {}{core}", signal(kill))
            }
        };
        Some(format!("[{{{what}}}]"))
    }

    /// `struct stat`.
    pub(super) fn stat(&self) -> Option<String> {
        let mode = self.u32(24)?;
        let what = match mode & libc::S_IFMT {
            libc::S_IFCHR | libc::S_IFBLK => {
                let device = self.u64(40)?;
                let [major, minor] = [libc::major(device), libc::minor(device)].map(hexadecimal);
                format!("st_rdev=makedev({major}, {minor})")
            }
            _ => format!("st_size={}", self.u64(48)? as i64),
        };
        Some(format!("{{st_mode={}, {what}, ...}}", file_mode(mode)))
    }

    /// `struct statx`.
    pub(super) fn statx(&self) -> Option<String> {
        let mask = joined(STATX, self.u32(0)?.into(), None);
        let attributes = joined(STATX_ATTRIBUTES, self.u64(8)?, None);
        let (mode, size) = (file_mode(self.u16(28)?.into()), self.u64(40)?);
        Some(format!(
            "{{stx_mask={mask}, stx_attributes={attributes}, stx_mode={mode}, stx_size={size}, ...}}"
        ))
    }

    /// What is done at a signal, as the kernel lays it out.
    pub(super) fn action(&self) -> Option<String> {
        let handler = match self.u64(0)? as usize {
            libc::SIG_DFL => "SIG_DFL".to_owned(),
            libc::SIG_IGN => "SIG_IGN".to_owned(),
            handler => format!("{handler:#x}"),
        };
        let flags = self.u64(8)?;
        let (restorer, mask) = (self.u64(16)?, signal_set(self.u64(24)?));
        let restorer = match flags & SA_RESTORER {
            0 => String::new(),
            _ => format!(", sa_restorer={}", address(restorer)),
        };
        let flags = joined(ACTIONS, flags, None);
        Some(format!("{{sa_handler={handler}, sa_mask={mask}, sa_flags={flags}{restorer}}}"))
    }

    /// A set of signals.
    pub(super) fn signals(&self) -> Option<String> {
        self.u64(0).map(signal_set)
    }

    /// A limit and its limit.
    pub(super) fn limits(&self) -> Option<String> {
        let [current, most] = [self.u64(0)?, self.u64(8)?].map(|limit| match limit {
            u64::MAX => "RLIM64_INFINITY".to_owned(),
            limit if limit > 1024 && limit.is_multiple_of(1024) => format!("{}*1024", limit / 1024),
            limit => limit.to_string(),
        });
        Some(format!("{{rlim_cur={current}, rlim_max={most}}}"))
    }

    /// The settings of a terminal.
    pub(super) fn terminal(&self) -> Option<String> {
        let (input, output) = (self.u32(0)?, self.u32(4)?);
        let (control, local) = (self.u32(8)?, self.u32(12)?);
        Some(format!(
            "{{c_iflag={}, c_oflag={}, c_cflag={}, c_lflag={}, ...}}",
            joined(TERMINAL_INPUT, input.into(), None),
            with_values(TERMINAL_DELAYS, TERMINAL_OUTPUT, output),
            with_values(TERMINAL_SPEEDS, TERMINAL_CONTROL, control),
            joined(TERMINAL_LOCAL, local.into(), None),
        ))
    }

    /// The size of a terminal.
    pub(super) fn window_size(&self) -> Option<String> {
        let (rows, columns) = (self.u16(0)?, self.u16(2)?);
        let (width, height) = (self.u16(4)?, self.u16(6)?);
        Some(format!("{{ws_row={rows}, ws_col={columns}, ws_xpixel={width}, ws_ypixel={height}}}"))
    }

    /// What `clone3` is given. (Older recordings have the flags only.)
    pub(super) fn clone_arguments(&self) -> Option<String> {
        let bits = self.u64(0)?;
        let mut members = vec![format!("flags={}", joined(CLONE, bits, None))];
        let Some(tls) = self.u64(56) else {
            return Some(format!("{{{}, ...}}", members[0]));
        };
        let mut member = |is_used: bool, name: &str, at: usize| {
            if let Some(value) = self.u64(at).filter(|_| is_used) {
                members.push(format!("{name}={}", address(value)));
            }
        };
        let has = |flags: i32| bits & flags as u64 != 0;
        member(has(libc::CLONE_PIDFD), "pidfd", 8);
        member(has(libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID), "child_tid", 16);
        member(has(libc::CLONE_PARENT_SETTID), "parent_tid", 24);
        let signal = self.u64(32)?;
        let name = named(Kind::One(SIGNALS), signal);
        members.push(format!("exit_signal={}", name.unwrap_or_else(|| signal.to_string())));
        let (stack, size) = (self.u64(40)?, self.u64(48)?);
        members.push(format!("stack={}, stack_size={}", address(stack), hexadecimal(size)));
        if has(libc::CLONE_SETTLS) {
            members.push(format!("tls={}", address(tls)));
        }
        Some(format!("{{{}}}", members.join(", ")))
    }

    /// The value of an option of a socket.
    pub(super) fn socket_option(&self, level: i32, option: i32) -> Option<String> {
        let int = |at| self.u32(at).map(|value| value as i32);
        let is_text = match (level, option) {
            (libc::SOL_SOCKET, libc::SO_LINGER) if self.0.len() == 8 => {
                return Some(format!("{{l_onoff={}, l_linger={}}}", int(0)?, int(4)?));
            }
            (libc::SOL_SOCKET, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO) if self.0.len() == 16 => {
                return self.time("tv_usec");
            }
            (libc::SOL_SOCKET, libc::SO_PEERCRED) if self.0.len() == 12 => {
                return Some(format!("{{pid={}, uid={}, gid={}}}", int(0)?, int(4)?, int(8)?));
            }
            (libc::SOL_SOCKET, libc::SO_BINDTODEVICE) => true,
            (libc::SOL_TCP, libc::TCP_CONGESTION | libc::TCP_ULP) => true,
            _ => false,
        };
        if self.0.len() == 4 && !is_text {
            return Some(format!("[{}]", int(0)?));
        }
        let end = self.0.iter().position(|&byte| byte == 0).filter(|_| is_text);
        let bytes = &self.0[..end.unwrap_or(self.0.len())];
        let is_cut = self.0.len() >= SINGLE_SYSCALL_TEXT && end.is_none();
        Some(format!("\"{}\"{}", bytes.escape_ascii(), if is_cut { "..." } else { "" }))
    }

    /// A length that the caller gives, and `returned`, if that is another one.
    pub(super) fn length(&self, returned: Option<u32>) -> Option<String> {
        let given = self.u32(0)?;
        match returned {
            // More than was kept: it may be any.
            Some(at_least) if at_least as usize >= SINGLE_SYSCALL_TEXT => None,
            Some(other) if other != given => Some(format!("[{given} => {other}]")),
            _ => Some(format!("[{given}]")),
        }
    }

    /// The beginning of `struct utsname`: the system's name, and the machine's.
    pub(super) fn system_name(&self) -> Option<String> {
        const FIELD: usize = 65;
        let name = |at: usize| {
            let name = self.0.get(at..)?;
            let name = &name[..name.len().min(FIELD)];
            let end = name.iter().position(|&byte| byte == 0);
            let shown = name[..end.unwrap_or(name.len())].escape_ascii();
            Some(format!("\"{shown}\"{}", if end.is_none() { "..." } else { "" }))
        };
        Some(format!("{{sysname={}, nodename={}, ...}}", name(0)?, name(FIELD)?))
    }

    /// `struct sysinfo`.
    pub(super) fn system_load(&self) -> Option<String> {
        let at = |at: usize| self.u64(at);
        Some(format!(
            "{{uptime={}, loads=[{}, {}, {}], totalram={}, freeram={}, sharedram={}, bufferram={}, totalswap={}, \
             freeswap={}, procs={}, totalhigh={}, freehigh={}, mem_unit={}}}",
            at(0)?,
            at(8)?,
            at(16)?,
            at(24)?,
            at(32)?,
            at(40)?,
            at(48)?,
            at(56)?,
            at(64)?,
            at(72)?,
            self.u16(80)?,
            at(88)?,
            at(96)?,
            self.u32(104)?,
        ))
    }

    /// Descriptors and what is waited for, of `count` in all.
    pub(super) fn polled(&self, count: u64) -> String {
        let (entries, _) = self.0.as_chunks::<8>();
        let shown = entries.iter().take(count.try_into().unwrap_or(usize::MAX));
        let mut shown: Vec<String> = shown
            .map(|&[a, b, c, d, low, high, ..]| {
                let events = u64::from(u16::from_le_bytes([low, high]));
                let events = named(Kind::Any(POLLS), events).unwrap_or_default();
                format!("{{fd={}, events={events}}}", i32::from_le_bytes([a, b, c, d]))
            })
            .collect();
        if (shown.len() as u64) < count {
            shown.push("...".to_owned());
        }
        format!("[{}]", shown.join(", "))
    }

    /// The address of a socket, of the common families.
    pub(super) fn socket_address(&self) -> Option<String> {
        let family = i32::from(self.u16(0)?);
        let port = self.bytes(2).map(u16::from_be_bytes);
        let name = named(Kind::One(DOMAINS), family as u64)?;
        let rest = match family {
            libc::AF_INET => {
                let [a, b, c, d] = self.bytes(4)?;
                format!("sin_port=htons({}), sin_addr=inet_addr(\"{a}.{b}.{c}.{d}\")", port?)
            }
            libc::AF_INET6 if self.0.len() >= 28 => {
                let flow = self.bytes(4).map(u32::from_be_bytes)?;
                let to = std::net::Ipv6Addr::from(self.bytes::<16>(8)?);
                let (port, scope) = (port?, self.u32(24)?);
                format!(
                    "sin6_port=htons({port}), sin6_flowinfo=htonl({flow}), inet_pton(AF_INET6, \"{to}\", &sin6_addr), sin6_scope_id={scope}"
                )
            }
            libc::AF_UNIX if self.0.len() == 2 => return Some("{sa_family=AF_UNIX}".to_owned()),
            libc::AF_UNIX => format!("sun_path={}", unix_path(self.0.get(2..)?)),
            libc::AF_NETLINK => {
                format!("nl_pid={}, nl_groups={:08x}", self.u32(4)?, self.u32(8)?)
            }
            _ => "...".to_owned(),
        };
        Some(format!("{{sa_family={name}, {rest}}}"))
    }
}

/// A path, or a name without a file, which begins with a NUL.
fn unix_path(path: &[u8]) -> String {
    // Neither has to end with a NUL.
    let is_full = path.len() + 2 >= SINGLE_SYSCALL_TEXT;
    let (sign, path) = match path {
        [0, name @ ..] if name.iter().any(|&byte| byte != 0) => ("@", name),
        _ => ("", path),
    };
    let end = path.iter().position(|&byte| byte == 0);
    let shown = &path[..end.unwrap_or(path.len())];
    let is_cut = is_full && end.is_none();
    format!("{sign}\"{}\"{}", shown.escape_ascii(), if is_cut { "..." } else { "" })
}

/// Formats a set of signals by their names without `SIG`; a set of more than half of them by those that are missing.
fn signal_set(set: u64) -> String {
    let is_most = set.count_ones() > 32;
    let shown = if is_most { !set } else { set };
    let names = (1..=64_u64).filter(|signal| shown >> (signal - 1) & 1 != 0).map(|signal| {
        let name = named(Kind::One(SIGNALS), signal);
        name.map_or_else(|| signal.to_string(), |name| name.trim_start_matches("SIG").to_owned())
    });
    let names: Vec<String> = names.collect();
    format!("{}[{}]", if is_most { "~" } else { "" }, names.join(" "))
}

/// The type of a file and its permissions.
fn file_mode(mode: u32) -> String {
    let kind = FILE_TYPES.iter().find(|kind| kind.0 == i64::from(mode & libc::S_IFMT));
    let special =
        [(libc::S_ISUID, "S_ISUID"), (libc::S_ISGID, "S_ISGID"), (libc::S_ISVTX, "S_ISVTX")];
    let special = special.iter().filter(|(bit, _)| mode & bit != 0).map(|&(_, name)| name);
    let names: Vec<&str> = kind.into_iter().map(|kind| kind.1).chain(special).collect();
    let permissions = format!("0{:02o}", mode & 0o777);
    if names.is_empty() { permissions } else { format!("{}|{permissions}", names.join("|")) }
}

/// Names of values that take up several bits each, and of the flags in the other bits.
fn with_values(values: &[(u32, Names)], flags: Names, bits: u32) -> String {
    let mut rest = bits;
    let mut names: Vec<&str> = Vec::new();
    for &(mask, known) in values {
        if let Some(name) = known.iter().find(|name| name.0 == i64::from(bits & mask)) {
            names.push(name.1);
            rest &= !mask;
        }
    }
    let first = names.join("|");
    joined(flags, rest.into(), (!first.is_empty()).then_some(&first))
}

/// An address whose contents are not known.
pub(super) fn address(value: u64) -> String {
    if value == 0 { "NULL".to_owned() } else { format!("{value:#x}") }
}

fn hexadecimal(value: impl Into<u64>) -> String {
    let value = value.into();
    if value == 0 { "0".to_owned() } else { format!("{value:#x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers at these places of a structure.
    fn bytes(len: usize, members: &[(usize, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; len + 8];
        for &(at, value) in members {
            for (byte, new) in bytes[at..].iter_mut().zip(value.to_le_bytes()) {
                *byte |= new;
            }
        }
        bytes.truncate(len);
        bytes
    }

    /// What strace 6.1 shows of the same structures.
    #[test]
    fn structures_are_shown_as_strace_shows_them() {
        type Show = fn(&Structure<'_>) -> Option<String>;
        let cases: [(Show, Vec<u8>, &str); 16] = [
            (
                |it| it.stat(),
                bytes(56, &[(24, 0o104_755), (48, 68_248)]),
                "{st_mode=S_IFREG|S_ISUID|0755, st_size=68248, ...}",
            ),
            (
                |it| it.stat(),
                bytes(56, &[(24, 0o20_666), (40, 0x103)]),
                "{st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...}",
            ),
            (
                |it| it.statx(),
                bytes(56, &[(0, 0x17ff), (28, 0o40_755), (40, 4096)]),
                "{stx_mask=STATX_BASIC_STATS|STATX_MNT_ID, stx_attributes=0, stx_mode=S_IFDIR|0755, stx_size=4096, ...}",
            ),
            (|it| it.action(), bytes(32, &[]), "{sa_handler=SIG_DFL, sa_mask=[], sa_flags=0}"),
            (
                |it| it.action(),
                bytes(32, &[(0, 1), (8, 0x1400_0000), (16, 0x99), (24, 2)]),
                "{sa_handler=SIG_IGN, sa_mask=[INT], sa_flags=SA_RESTORER|SA_RESTART, sa_restorer=0x99}",
            ),
            (
                |it| it.limits(),
                bytes(16, &[(0, 8192 * 1024), (8, u64::MAX)]),
                "{rlim_cur=8192*1024, rlim_max=RLIM64_INFINITY}",
            ),
            (
                |it| it.limits(),
                bytes(16, &[(0, 1024), (8, 20_000)]),
                "{rlim_cur=1024, rlim_max=20000}",
            ),
            (|time| time.time("tv_nsec"), bytes(16, &[(8, 1000)]), "{tv_sec=0, tv_nsec=1000}"),
            (|it| it.status(), bytes(4, &[(0, 0x300)]), "[{WIFEXITED(s) && WEXITSTATUS(s) == 3}]"),
            (
                |it| it.status(),
                bytes(4, &[(0, 0x86)]),
                "[{WIFSIGNALED(s) && WTERMSIG(s) == SIGABRT && WCOREDUMP(s)}]",
            ),
            (
                |it| it.status(),
                bytes(4, &[(0, 0x137f)]),
                "[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}]",
            ),
            (
                |it| it.terminal(),
                bytes(16, &[(0, 0x500), (4, 5), (8, 0xbf), (12, 0x8a3b)]),
                "{c_iflag=ICRNL|IXON, c_oflag=NL0|CR0|TAB0|BS0|VT0|FF0|OPOST|ONLCR, c_cflag=B38400|CS8|CREAD, c_lflag=ISIG|ICANON|ECHO|ECHOE|ECHOK|IEXTEN|ECHOCTL|ECHOKE, ...}",
            ),
            (
                |it| it.window_size(),
                bytes(16, &[(0, 24), (2, 80)]),
                "{ws_row=24, ws_col=80, ws_xpixel=0, ws_ypixel=0}",
            ),
            (
                |it| it.clone_arguments(),
                bytes(88, &[(0, 0x4100), (32, 17), (40, 0x7000), (48, 0x9000)]),
                "{flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD, stack=0x7000, stack_size=0x9000}",
            ),
            (
                |it| it.socket_address(),
                bytes(28, &[(0, 10), (2, 0xbb01), (23, 1)]),
                r#"{sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}"#,
            ),
            (
                |it| it.socket_address(),
                [&[1, 0][..], b"/run/a\0\0"].concat(),
                r#"{sa_family=AF_UNIX, sun_path="/run/a"}"#,
            ),
        ];
        for (show, bytes, expected) in cases {
            assert_eq!(show(&Structure(&bytes)).as_deref(), Some(expected));
        }
    }

    #[test]
    fn addresses_of_sockets_within_the_machine_end_where_they_say() {
        let long = "x".repeat(SINGLE_SYSCALL_TEXT - 3);
        for (path, expected) in [
            ("", "{sa_family=AF_UNIX}".to_owned()),
            ("/run/a", r#"{sa_family=AF_UNIX, sun_path="/run/a"}"#.to_owned()),
            ("\0name", r#"{sa_family=AF_UNIX, sun_path=@"name"}"#.to_owned()),
            (&format!("\0{long}"), format!(r#"{{sa_family=AF_UNIX, sun_path=@"{long}"...}}"#)),
        ] {
            let address = [&[1, 0][..], path.as_bytes()].concat();
            assert_eq!(Structure(&address).socket_address(), Some(expected));
        }
    }

    #[test]
    fn structures_that_were_not_read_as_a_whole_are_not_shown() {
        for len in 0..16 {
            let bytes = vec![0xff; len];
            let part = Structure(&bytes);
            assert_eq!((part.stat(), part.statx(), part.action()), (None, None, None));
            assert_eq!((part.limits(), part.time("tv_usec"), part.terminal()), (None, None, None));
        }
        let [older, none] = [&[0_u8, 1, 0, 0, 0, 0, 0, 0][..], &[]].map(Structure);
        assert_eq!(older.clone_arguments().as_deref(), Some("{flags=CLONE_VM, ...}"));
        assert_eq!(none.clone_arguments(), None);
    }
}
