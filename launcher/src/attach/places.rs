//! Where a thread may be stopped for a while: not where it holds a lock that the loader, the allocator or a fork needs.
//!
//! Told from the instruction that it is at, and from the calls around it; where these can't be told for sure, from what looks like
//! them on its stack. Where that is wrong, somebody waits until the threads go on, and all the same nothing is lost.

use std::ops::Range;

use anyhow::Context;
use libc::{c_long, user_regs_struct};

use super::library::Attachment;
use super::memory::Memory;
use super::objects::Object;
use super::unwind::Tables;

/// Functions of the C library that hold such locks.
const HOLDING: [&str; 32] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "cfree",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "malloc_*",
    "mallopt",
    "mallinfo*",
    "fork",
    "__fork",
    "__libc_fork",
    "_Fork",
    "pthread_create",
    "pthread_join",
    "pthread_exit",
    "pthread_atfork",
    "__register_atfork",
    "exit",
    "__cxa_atexit",
    "__cxa_finalize",
    "on_exit",
    "setuid",
    "setgid",
    "setres*",
    "dl_iterate_phdr",
    "dl*",
    "__libc_dl*",
];
/// Of other allocators.
const ALLOCATING: [&str; 5] = ["malloc", "calloc", "realloc", "free", "posix_memalign"];
/// Of a stack, what may show the calls around: an allocator, a fork, the loader do not nest deeper.
const WINDOW: usize = 256;
/// In a wait for a lock, which is near where the lock is wanted.
const NEAR: usize = 64;

/// System calls in which a thread just waits.
const WAITS: [c_long; 30] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_pause,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_connect,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgrcv,
    libc::SYS_io_getevents,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_write,
    libc::SYS_sendto,
];

/// Where a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Where {
    /// It waits in the kernel, and holds nothing.
    Waits,
    /// It runs, and holds nothing as far as is known.
    Runs,
    /// It may hold something.
    Holds,
}

/// What is known of the code of a process.
pub(super) struct Places {
    holding: Vec<Range<u64>>,
    /// The library, where it is.
    library: Option<Range<u64>>,
    /// The part of it in which threads do the rest of a system call.
    rests: Range<u64>,
    /// A `syscall` instruction.
    pub(super) syscall: u64,
    /// What a signal handler returns to.
    returns: Vec<u64>,
    /// Who called whom.
    tables: Tables,
}

impl Places {
    pub(super) fn new(
        objects: &[Object],
        libc: &Object,
        program: &Range<u64>,
        attachment: Option<&Attachment>,
        memory: &Memory,
    ) -> anyhow::Result<Self> {
        let mut holding: Vec<Range<u64>> = libc.functions(&HOLDING).collect();
        for object in objects {
            let is_loader = object.function("_dl_allocate_tls").is_some();
            let is_libc = object.range == libc.range;
            let allocates = object.function("malloc").is_some() && !is_libc;
            let is_program = object.range == *program;
            if is_loader || allocates && !is_program {
                holding.push(object.range.clone());
            } else if allocates {
                holding.extend(object.functions(&ALLOCATING));
            }
        }
        let code = libc.function("syscall").map(|at| (at, memory.read(at, 64)));
        let (at, code) = code.context("no `syscall` in its C library")?;
        let found = code.windows(2).position(|bytes| bytes == [0x0f, 0x05]);
        let syscall = at + found.context("no `syscall` instruction in its C library")? as u64;
        let library = objects.iter().find(|object| object.data("chase_attachment").is_some());
        let library = library.map(|library| library.range.clone());
        let returns = if library.is_some() { signal_returns(libc, memory) } else { Vec::new() };
        let tables = Tables::new(objects, attachment.map(|it| it.pads), memory);
        let rests = attachment.map_or(0..0, |it| it.rests.range());
        Ok(Self { holding, library, rests, syscall, returns, tables })
    }

    /// Where a thread is that has stopped.
    pub(super) fn locate(&self, registers: &user_regs_struct, memory: &Memory) -> Where {
        if self.holds(registers.rip) || self.is_in_library(registers.rip) {
            return Where::Holds;
        }
        let number = registers.orig_rax as c_long;
        let waits = number >= 0 && (WAITS.contains(&number) || number == libc::SYS_futex);
        if waits && number != libc::SYS_futex && self.returns.is_empty() {
            return Where::Waits;
        }
        // A handler may have come in the middle of something.
        if self.library.is_some()
            && self.interrupted(registers.rsp, memory).into_iter().any(|at| self.is_in_library(at))
        {
            return Where::Holds;
        }
        if waits && number != libc::SYS_futex {
            return Where::Waits;
        }
        let window = if waits { NEAR } else { WINDOW };
        let callers = self.tables.returns(registers, memory);
        let callers = callers.unwrap_or_else(|| may_be_callers(registers, memory, window));
        match (callers.into_iter().any(|caller| self.holds(caller)), waits) {
            (true, _) => Where::Holds,
            (false, true) => Where::Waits,
            (false, false) => Where::Runs,
        }
    }

    /// Whether a thread is in the library there, and may be in the middle of something.
    pub(super) fn is_in_library(&self, address: u64) -> bool {
        self.library.as_ref().is_some_and(|library| library.contains(&address))
            && !self.rests.contains(&address)
    }

    fn holds(&self, address: u64) -> bool {
        self.holding.iter().any(|range| range.contains(&address))
    }

    /// Where signal handlers that run have interrupted what.
    fn interrupted(&self, rsp: u64, memory: &Memory) -> Vec<u64> {
        // Behind the address that the handler returns to: the kernel's `ucontext`, with the registers in it.
        const RIP: usize = (8 + 40 + 16 * 8) / 8;
        const DEEP: usize = 8 << 10;
        let stack = memory.read(rsp, DEEP);
        let words: Vec<u64> =
            stack.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let frames = words.iter().enumerate().filter(|(_, word)| self.returns.contains(word));
        frames.filter_map(|(i, _)| words.get(i + RIP).copied()).collect()
    }
}

/// What is on a thread's stack: also where calls returned to that are long over.
fn may_be_callers(registers: &user_regs_struct, memory: &Memory, words: usize) -> Vec<u64> {
    let stack = memory.read(registers.rsp, words * 8);
    stack.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// `mov $SYS_rt_sigreturn, %rax; syscall` in the C library.
fn signal_returns(libc: &Object, memory: &Memory) -> Vec<u64> {
    const CODE: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
    // Near `sigaction`, in whose file it is.
    const AROUND: u64 = 4 << 10;
    let near = libc.function("__libc_sigaction").or_else(|| libc.function("sigaction"));
    let starts = near.into_iter().flat_map(|near| {
        let start = near.saturating_sub(AROUND);
        let code = memory.read(start, 2 * AROUND as usize);
        let found: Vec<u64> = code
            .windows(9)
            .enumerate()
            .filter(|(_, it)| *it == CODE)
            .map(|(i, _)| start + i as u64)
            .collect();
        found
    });
    starts.collect()
}
