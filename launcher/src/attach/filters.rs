//! Filters of system calls (seccomp): whether one could end a process for what chase does in it.
//!
//! Those of containers answer with an error, and do no harm. Those of sandboxes kill. The kernel shows a filter's program (classic
//! BPF) to root, and each way through it is followed for each system call of this architecture, whatever its arguments.

use std::mem::offset_of;

use anyhow::ensure;
use chase_format::requests::NO_CALL;
use libc::{seccomp_data, sock_filter};

use super::trace::Thread;

/// Numbers of system calls are below this.
const CALLS: u32 = 1024;
const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// The kernel has no longer filters, and theirs hardly branch by arguments.
const LONGEST: usize = 4096;
const MOST_STEPS: usize = 1 << 16;
const MEMORY: usize = 16;

/// # Errors
/// If a filter of one of these threads, which have stopped, may end the process, or can't be seen.
pub(super) fn check(threads: impl Iterator<Item = Thread>) -> anyhow::Result<()> {
    // Most threads have the same ones.
    let mut seen: Vec<Vec<sock_filter>> = Vec::new();
    for thread in threads {
        for index in 0.. {
            let Some(program) = thread.filter(index, LONGEST)? else { break };
            if seen.iter().any(|known| is_same(known, &program)) {
                continue;
            }
            ensure!(all_calls().all(|call| only_refuses(&program, call)), "it kills");
            seen.push(program);
        }
    }
    Ok(())
}

fn is_same(a: &[sock_filter], b: &[sock_filter]) -> bool {
    let words = |step: &sock_filter| (step.code, step.jt, step.jf, step.k);
    a.iter().map(words).eq(b.iter().map(words))
}

/// The numbers of all system calls, and that of none, by which calls in the process end.
fn all_calls() -> impl Iterator<Item = u32> {
    (0..CALLS).chain([NO_CALL])
}

/// What is in a register; `None` if that depends on the call's arguments.
type Value = Option<u32>;

/// A way through a filter.
#[derive(Clone, Copy)]
struct Way {
    at: usize,
    a: Value,
    x: Value,
    memory: [Value; MEMORY],
}

/// Whether the filter lets this system call pass or fail, or asks another process, whatever the arguments are.
fn only_refuses(program: &[sock_filter], call: u32) -> bool {
    let mut ways = vec![Way { at: 0, a: Some(0), x: Some(0), memory: [Some(0); MEMORY] }];
    let mut steps = 0;
    while let Some(mut way) = ways.pop() {
        loop {
            steps += 1;
            let Some(&step) = program.get(way.at) else { return false };
            if steps > MOST_STEPS {
                return false;
            }
            way.at += 1;
            match follow(step, call, &mut way) {
                Next::Goes => {}
                Next::Both(yes, no) => {
                    ways.push(Way { at: way.at + yes, ..way });
                    way.at += no;
                }
                Next::Ends(answer) if is_harmless(answer) => break,
                Next::Ends(_) | Next::Unknown => return false,
            }
        }
    }
    true
}

fn is_harmless(answer: u32) -> bool {
    let action = answer & libc::SECCOMP_RET_ACTION_FULL;
    [
        libc::SECCOMP_RET_ALLOW,
        libc::SECCOMP_RET_LOG,
        libc::SECCOMP_RET_ERRNO,
        libc::SECCOMP_RET_TRACE,
        libc::SECCOMP_RET_USER_NOTIF,
    ]
    .contains(&action)
}

enum Next {
    Goes,
    /// So many instructions further on, or so many.
    Both(usize, usize),
    Ends(u32),
    Unknown,
}

fn follow(step: sock_filter, call: u32, way: &mut Way) -> Next {
    const CLASS: u32 = 7;
    let code = u32::from(step.code);
    let k = step.k;
    let slot = (k as usize).min(MEMORY - 1);
    let operand = if code & libc::BPF_X == 0 { Some(k) } else { way.x };
    let loaded = |way: &Way| match code & 0xe0 {
        libc::BPF_IMM => Some(Some(k)),
        libc::BPF_ABS if k == offset_of!(seccomp_data, nr) as u32 => Some(Some(call)),
        libc::BPF_ABS if k == offset_of!(seccomp_data, arch) as u32 => {
            Some(Some(AUDIT_ARCH_X86_64))
        }
        libc::BPF_ABS => Some(None),
        libc::BPF_MEM => Some(way.memory[slot]),
        libc::BPF_LEN => Some(Some(size_of::<seccomp_data>() as u32)),
        _ => None,
    };
    match code & CLASS {
        libc::BPF_LD | libc::BPF_LDX => {
            let Some(value) = loaded(way) else { return Next::Unknown };
            *(if code & CLASS == libc::BPF_LD { &mut way.a } else { &mut way.x }) = value;
        }
        libc::BPF_ST => way.memory[slot] = way.a,
        libc::BPF_STX => way.memory[slot] = way.x,
        libc::BPF_ALU => {
            let with = |f: fn(u32, u32) -> u32| Some(f(way.a?, operand?));
            way.a = match code & 0xf0 {
                libc::BPF_ADD => with(u32::wrapping_add),
                libc::BPF_SUB => with(u32::wrapping_sub),
                libc::BPF_AND => with(|a, b| a & b),
                libc::BPF_OR => with(|a, b| a | b),
                libc::BPF_XOR => with(|a, b| a ^ b),
                libc::BPF_LSH => with(u32::wrapping_shl),
                libc::BPF_RSH => with(u32::wrapping_shr),
                libc::BPF_NEG => way.a.map(u32::wrapping_neg),
                // Rarely used: as if it depended on arguments.
                _ => None,
            };
        }
        libc::BPF_JMP if code & 0xf0 == libc::BPF_JA => way.at += k as usize,
        libc::BPF_JMP => {
            let (yes, no) = (usize::from(step.jt), usize::from(step.jf));
            let (Some(a), Some(b)) = (way.a, operand) else { return Next::Both(yes, no) };
            let holds = match code & 0xf0 {
                libc::BPF_JEQ => a == b,
                libc::BPF_JGT => a > b,
                libc::BPF_JGE => a >= b,
                libc::BPF_JSET => a & b != 0,
                _ => return Next::Unknown,
            };
            way.at += if holds { yes } else { no };
        }
        libc::BPF_RET if code & 0x18 == libc::BPF_K => return Next::Ends(k),
        libc::BPF_RET => return way.a.map_or(Next::Unknown, Next::Ends),
        _ if code & 0xf8 == libc::BPF_TAX => way.x = way.a,
        _ => way.a = way.x,
    }
    Next::Goes
}

#[cfg(test)]
mod tests {
    use libc::{
        BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W,
        SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_TRAP,
        SECCOMP_RET_USER_NOTIF,
    };

    use super::*;

    const ARGUMENT: usize = offset_of!(seccomp_data, args);

    fn load(offset: usize) -> sock_filter {
        sock_filter { code: (BPF_LD | BPF_W | BPF_ABS) as u16, jt: 0, jf: 0, k: offset as u32 }
    }

    fn equals(k: u32, jt: u8, jf: u8) -> sock_filter {
        sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt, jf, k }
    }

    fn answer(k: u32) -> sock_filter {
        sock_filter { code: (BPF_RET | BPF_K) as u16, jt: 0, jf: 0, k }
    }

    fn is_harmless(program: &[sock_filter]) -> bool {
        all_calls().all(|call| only_refuses(program, call))
    }

    /// A container's: other architectures' calls end the process, of this one some fail.
    #[test]
    fn what_a_filter_says_of_other_architectures_does_not_matter() {
        let arch = load(offset_of!(seccomp_data, arch));
        let number = load(offset_of!(seccomp_data, nr));
        let mut program = [
            arch,
            equals(AUDIT_ARCH_X86_64, 1, 0),
            answer(SECCOMP_RET_KILL_PROCESS),
            number,
            equals(libc::SYS_mount as u32, 0, 1),
            answer(SECCOMP_RET_ERRNO | libc::EPERM as u32),
            answer(SECCOMP_RET_ALLOW),
        ];
        assert!(is_harmless(&program));
        program[5] = answer(SECCOMP_RET_KILL_PROCESS);
        assert!(!is_harmless(&program));
        program[5] = answer(SECCOMP_RET_USER_NOTIF);
        assert!(is_harmless(&program));
    }

    #[test]
    fn one_that_ends_a_process_for_an_argument_does_harm() {
        let number = load(offset_of!(seccomp_data, nr));
        let mask = sock_filter { code: (BPF_ALU | BPF_AND | BPF_K) as u16, jt: 0, jf: 0, k: 7 };
        let program = |last| {
            [
                number,
                equals(libc::SYS_mprotect as u32, 0, 4),
                load(ARGUMENT + 16),
                mask,
                equals(libc::PROT_EXEC as u32, 0, 1),
                answer(last),
                answer(SECCOMP_RET_ALLOW),
            ]
        };
        assert!(!is_harmless(&program(SECCOMP_RET_TRAP)));
        assert!(is_harmless(&program(SECCOMP_RET_ERRNO)));
    }

    #[test]
    fn what_is_no_filter_is_not_trusted() {
        assert!(!is_harmless(&[]));
        assert!(!is_harmless(&[equals(1, 200, 0)]));
        assert!(!is_harmless(
            &[sock_filter { code: BPF_JMP as u16, jt: 0, jf: 0, k: u32::MAX }; 3]
        ));
    }
}
