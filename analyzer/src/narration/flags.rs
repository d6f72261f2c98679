//! Names of numeric constants. A number without a name is shown as a number.

use super::kinds::Kind;
use super::names::*;

/// Returns the name of `number` as an argument of this kind.
pub(super) fn named(kind: Kind, number: u64) -> Option<String> {
    // These arguments are 32 bits wide; the register's upper half is undefined.
    let (number, flags) = (i64::from(number as i32), u64::from(number as u32));
    match kind {
        Kind::Open => {
            let access = ["O_RDONLY", "O_WRONLY", "O_RDWR", "3"][(number & 3) as usize];
            Some(joined(OPEN, flags & !3, Some(access)))
        }
        Kind::Mapping => {
            let shared = ["0", "MAP_SHARED", "MAP_PRIVATE", "MAP_SHARED_VALIDATE"];
            Some(joined(MAPPING, flags & !3, Some(shared[(number & 3) as usize])))
        }
        Kind::Protection if number == 0 => Some("PROT_NONE".to_owned()),
        Kind::Protection => Some(joined(PROTECTION, flags, None)),
        Kind::Access if number == 0 => Some("F_OK".to_owned()),
        Kind::Access => Some(joined(ACCESS, flags, None)),
        Kind::Any(names) => Some(joined(names, flags, None)),
        // Real-time signals, which the kernel numbers from 32 on.
        Kind::One(names) if names == SIGNALS && (32..=64).contains(&number) => {
            Some(if number == 32 {
                "SIGRTMIN".to_owned()
            } else {
                format!("SIGRT_{}", number - 32)
            })
        }
        Kind::One(names) => one(names, number).map(str::to_owned),
        Kind::Clone => {
            let signal = one(SIGNALS, number & 0xff);
            let named = joined(CLONE, flags & !0xff, None);
            Some(match (signal, flags & !0xff) {
                (Some(signal), 0) => signal.to_owned(),
                (Some(signal), _) => format!("{named}|{signal}"),
                (None, _) => named,
            })
        }
        Kind::Futex => {
            let private = if number & 128 != 0 { "_PRIVATE" } else { "" };
            let clock = if number & 256 != 0 { "|FUTEX_CLOCK_REALTIME" } else { "" };
            one(FUTEX, number & 127).map(|name| format!("{name}{private}{clock}"))
        }
        Kind::Socket => {
            let kind = one(SOCKETS, number & 15);
            Some(joined(SOCKET_FLAGS, flags & !15, kind))
        }
        Kind::Ioctl => one(IOCTLS, number).map(str::to_owned),
        Kind::StatxFlags => {
            let asks = libc::AT_STATX_FORCE_SYNC | libc::AT_STATX_DONT_SYNC;
            let first = (flags & asks as u64 == 0).then_some("AT_STATX_SYNC_AS_STAT");
            Some(joined(STATX_FLAGS, flags, first))
        }
        Kind::SharedMemory => {
            let named = joined(SHARED_MEMORY, flags & !0o777, None);
            let mode = format!("0{:03o}", flags & 0o777);
            Some(if flags & !0o777 == 0 { mode } else { format!("{named}|{mode}") })
        }
        _ => None,
    }
}

fn one(names: Names, number: i64) -> Option<&'static str> {
    names.iter().find(|name| name.0 == number).map(|name| name.1)
}

/// Joins the names of the flags that are set, after `first`; the rest is shown as a number.
pub(super) fn joined(names: Names, flags: u64, first: Option<&str>) -> String {
    let mut parts: Vec<String> = first.into_iter().map(str::to_owned).collect();
    let mut rest = flags;
    // Names of several bits come first: one of their bits may be another flag.
    let mut by_bits: Vec<_> = names.iter().filter(|name| name.0 != 0).collect();
    by_bits.sort_by_key(|name| std::cmp::Reverse(name.0.count_ones()));
    let mut found: Vec<&(i64, &str)> = Vec::new();
    for name in by_bits {
        let bits = name.0 as u64;
        if rest & bits == bits {
            rest &= !bits;
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
            (Kind::Any(AT), 0, "0"),
            (Kind::Access, 0, "F_OK"),
            (Kind::Any(FILE_LOCKS), libc::LOCK_EX | libc::LOCK_NB, "LOCK_EX|LOCK_NB"),
            (Kind::Any(RANDOM), libc::GRND_NONBLOCK as i32, "GRND_NONBLOCK"),
            (Kind::One(USAGE), libc::RUSAGE_CHILDREN, "RUSAGE_CHILDREN"),
            (Kind::One(CLOCKS), libc::CLOCK_MONOTONIC, "CLOCK_MONOTONIC"),
            (Kind::Any(MAPPING_MOVES), libc::MREMAP_MAYMOVE, "MREMAP_MAYMOVE"),
            (Kind::SharedMemory, libc::IPC_CREAT | 0o600, "IPC_CREAT|0600"),
            (Kind::StatxFlags, 0x100, "AT_STATX_SYNC_AS_STAT|AT_SYMLINK_NOFOLLOW"),
            (Kind::Any(STATX), 0x7ff, "STATX_BASIC_STATS"),
            (Kind::Any(WATCHES), i32::MIN | 2, "IN_MODIFY|IN_ONESHOT"),
            (
                Kind::Any(CLONE),
                libc::CLONE_NEWUSER | libc::CLONE_NEWNET,
                "CLONE_NEWUSER|CLONE_NEWNET",
            ),
        ];
        for (kind, number, expected) in cases {
            assert_eq!(named(kind, number as u64).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_has_no_name_stays_a_number() {
        assert_eq!(named(Kind::Protection, 0x81).as_deref(), Some("PROT_READ|0x80"));
        assert_eq!(named(Kind::One(CONTROL), 999), None);
        assert_eq!(named(Kind::Number, 1), None);
    }
}
