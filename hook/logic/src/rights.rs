//! Calls by which a process gives up rights that its recording needs.

use crate::kinds::Kind;

/// What a call takes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Some system calls.
    SystemCalls,
    /// Those, and reading the time stamp counter.
    Clock,
}

/// Returns what a call of a function of this kind, with these arguments, takes away, if anything. (A call that only tests whether
/// the kernel supports filters passes none.)
#[must_use]
pub fn loss_by(kind: Kind, [first, second, third, fourth]: [usize; 4]) -> Option<Loss> {
    const PR_SET_TSC: i32 = 26;
    let (option, mode, filter) = match kind {
        // The operations of this system call are the modes, numbered from 0.
        Kind::System if first as i64 == libc::SYS_seccomp => {
            (libc::PR_SET_SECCOMP, (second as u32).wrapping_add(1), fourth)
        }
        Kind::Control => (first as i32, second as u32, third),
        _ => return None,
    };
    match (option, mode) {
        (PR_SET_TSC, _) | (libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) => Some(Loss::Clock),
        (libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER) if filter != 0 => Some(Loss::SystemCalls),
        _ => None,
    }
}

/// Whether a call of a function of this kind, with this first argument, may put the recording's file out of reach.
#[must_use]
pub fn departs(kind: Kind, first: usize) -> bool {
    match kind {
        Kind::Depart => true,
        Kind::System => matches!(
            first as i64,
            libc::SYS_setuid
                | libc::SYS_setreuid
                | libc::SYS_setresuid
                | libc::SYS_chroot
                | libc::SYS_pivot_root
                | libc::SYS_setns
                | libc::SYS_unshare
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILTER: usize = 0x5000;

    #[test]
    fn a_filter_forbids_system_calls() {
        let control = |mode: u32, filter| {
            loss_by(Kind::Control, [libc::PR_SET_SECCOMP as usize, mode as usize, filter, 0])
        };
        assert_eq!(control(libc::SECCOMP_MODE_FILTER, FILTER), Some(Loss::SystemCalls));
        assert_eq!(control(libc::SECCOMP_MODE_FILTER, 0), None);
        assert_eq!(control(libc::SECCOMP_MODE_STRICT, 0), Some(Loss::Clock));
        let system = |operation: u32, filter| {
            loss_by(Kind::System, [libc::SYS_seccomp as usize, operation as usize, 0, filter])
        };
        assert_eq!(system(libc::SECCOMP_SET_MODE_FILTER, FILTER), Some(Loss::SystemCalls));
        assert_eq!(system(libc::SECCOMP_SET_MODE_FILTER, 0), None);
        assert_eq!(system(libc::SECCOMP_SET_MODE_STRICT, 0), Some(Loss::Clock));
        assert_eq!(system(libc::SECCOMP_GET_ACTION_AVAIL, FILTER), None);
    }

    #[test]
    fn other_calls_forbid_nothing() {
        let name = [libc::PR_SET_NAME as usize, libc::SECCOMP_MODE_STRICT as usize, FILTER, FILTER];
        assert_eq!(loss_by(Kind::Control, name), None);
        assert_eq!(loss_by(Kind::System, [libc::SYS_getpid as usize, 1, FILTER, FILTER]), None);
        assert_eq!(loss_by(Kind::Depart, [libc::PR_SET_SECCOMP as usize, 1, 0, 0]), None);
        assert_eq!(loss_by(Kind::Control, [26, 1, 0, 0]), Some(Loss::Clock));
    }

    #[test]
    fn another_user_or_root_departs() {
        assert!(departs(Kind::Depart, 0) && departs(Kind::System, libc::SYS_chroot as usize));
        assert!(!departs(Kind::System, libc::SYS_getpid as usize));
        assert!(!departs(Kind::Ordinary, libc::SYS_chroot as usize));
    }
}
