//! Stopping the threads of another process, looking at their registers, and letting them go.
//!
//! The kernel lets everything go when the thread ends that has stopped it, whatever happens here.

use std::io;
use std::ptr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use libc::{c_int, c_void, sock_filter, user_regs_struct};

/// Between two looks at a thread that is to stop.
const PAUSE: Duration = Duration::from_micros(50);
/// A vector state is smaller.
const LARGEST_STATE: usize = 16 << 10;
const NT_X86_XSTATE: usize = 0x202;
const PTRACE_GETSIGMASK: u32 = 0x420a;
const PTRACE_SETSIGMASK: u32 = 0x420b;
const PTRACE_SECCOMP_GET_FILTER: u32 = 0x420c;
/// Size of the kernel's set of signals.
const SIGNALS_LEN: usize = 8;

fn request(request: u32, tid: i32, address: usize, data: *mut c_void) -> io::Result<()> {
    // SAFETY: what `data` points to is as large as the request needs.
    let result = unsafe { libc::ptrace(request, tid, address as *mut c_void, data) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Why a thread stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// It was asked to.
    Interrupted,
    /// At the beginning or at the end of a system call.
    Syscall,
    /// A signal is about to be delivered.
    Signal(c_int),
    /// The whole process is stopped, by a signal.
    Group,
    /// It has ended.
    Gone,
}

/// Whether a thread is the one that its process is named by.
fn is_process(tid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    status
        .lines()
        .any(|line| line.strip_prefix("Tgid:").is_some_and(|of| of.trim().parse() == Ok(tid)))
}

/// A thread of another process, which this thread traces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub(super) tid: i32,
}

impl Thread {
    /// Begins to trace it.
    pub(super) fn seize(tid: i32) -> io::Result<Self> {
        let options = libc::PTRACE_O_TRACESYSGOOD as usize;
        request(libc::PTRACE_SEIZE, tid, 0, options as *mut c_void)?;
        Ok(Self { tid })
    }

    /// Asks it to stop.
    pub(super) fn interrupt(self) -> io::Result<()> {
        request(libc::PTRACE_INTERRUPT, self.tid, 0, ptr::null_mut())
    }

    /// Whether it has stopped by now, and why.
    pub(super) fn stop_reason(self) -> Option<Stop> {
        const EVENT_STOP: c_int = libc::PTRACE_EVENT_STOP;
        const SYSCALL: c_int = libc::SIGTRAP | 0x80;
        if self.has_ended_with_its_process() {
            return Some(Stop::Gone);
        }
        let mut status = 0;
        // SAFETY: the kernel fills in the status.
        let found =
            unsafe { libc::waitpid(self.tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
        if found == 0 {
            return None;
        }
        if found < 0 || !libc::WIFSTOPPED(status) {
            return Some(Stop::Gone);
        }
        let signal = libc::WSTOPSIG(status);
        Some(match (status >> 16, signal) {
            (EVENT_STOP, libc::SIGTRAP) => Stop::Interrupted,
            (EVENT_STOP, _) => Stop::Group,
            (_, SYSCALL) => Stop::Syscall,
            (_, signal) => Stop::Signal(signal),
        })
    }

    /// Whether it has ended as the last of its process. That is for the process's parent to be told, which may be chase.
    fn has_ended_with_its_process(self) -> bool {
        let kinds = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        // SAFETY: all-zero is a valid structure, which the kernel fills in.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let found = unsafe { libc::waitid(libc::P_PID, self.tid as u32, &raw mut info, kinds) };
        // SAFETY: the field is there, and zero where nothing was found.
        let is_told = found == 0 && unsafe { info.si_pid() } != 0;
        let ends = [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED];
        is_told && ends.contains(&info.si_code) && is_process(self.tid)
    }

    /// Waits until it has stopped.
    pub(super) fn wait(self, patience: Duration) -> anyhow::Result<Stop> {
        let until = Instant::now() + patience;
        loop {
            if let Some(stop) = self.stop_reason() {
                return Ok(stop);
            }
            if Instant::now() > until {
                bail!("thread {} does not stop", self.tid);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Lets it run, with a signal or none.
    pub(super) fn go_on(self, signal: c_int) -> io::Result<()> {
        request(libc::PTRACE_CONT, self.tid, 0, signal as usize as *mut c_void)
    }

    /// Lets it run up to the beginning or the end of a system call.
    pub(super) fn go_to_syscall(self) -> io::Result<()> {
        request(libc::PTRACE_SYSCALL, self.tid, 0, ptr::null_mut())
    }

    /// Lets it go for good.
    pub(super) fn release(self) {
        // (If it has ended, nothing is to be let go.)
        let _ = request(libc::PTRACE_DETACH, self.tid, 0, ptr::null_mut());
    }

    pub(super) fn registers(self) -> io::Result<user_regs_struct> {
        // SAFETY: all-zero is a valid structure, which the kernel fills in.
        let mut registers: user_regs_struct = unsafe { std::mem::zeroed() };
        request(libc::PTRACE_GETREGS, self.tid, 0, (&raw mut registers).cast())?;
        Ok(registers)
    }

    pub(super) fn set_registers(self, registers: &user_regs_struct) -> io::Result<()> {
        request(libc::PTRACE_SETREGS, self.tid, 0, ptr::from_ref(registers).cast_mut().cast())
    }

    /// The vector state, as the kernel keeps it.
    pub(super) fn vectors(self) -> anyhow::Result<Vec<u8>> {
        let mut bytes = vec![0u8; LARGEST_STATE];
        let mut area = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        request(libc::PTRACE_GETREGSET, self.tid, NT_X86_XSTATE, (&raw mut area).cast())
            .context("can't read a thread's vector state")?;
        bytes.truncate(area.iov_len);
        Ok(bytes)
    }

    pub(super) fn set_vectors(self, state: &mut [u8]) -> io::Result<()> {
        let mut area = libc::iovec { iov_base: state.as_mut_ptr().cast(), iov_len: state.len() };
        request(libc::PTRACE_SETREGSET, self.tid, NT_X86_XSTATE, (&raw mut area).cast())
    }

    /// The signals that it has blocked.
    pub(super) fn blocked(self) -> io::Result<u64> {
        let mut mask = 0u64;
        request(PTRACE_GETSIGMASK, self.tid, SIGNALS_LEN, (&raw mut mask).cast())?;
        Ok(mask)
    }

    pub(super) fn set_blocked(self, mut mask: u64) -> io::Result<()> {
        request(PTRACE_SETSIGMASK, self.tid, SIGNALS_LEN, (&raw mut mask).cast())
    }

    /// The program of its filter of system calls with this number, the latest first; `None` if there are no more.
    ///
    /// # Errors
    /// If the kernel does not show it (to root only), or it is longer than `most`.
    pub(super) fn filter(self, index: usize, most: usize) -> io::Result<Option<Vec<sock_filter>>> {
        let nothing = sock_filter { code: 0, jt: 0, jf: 0, k: 0 };
        let mut program = vec![nothing; most];
        // SAFETY: with no place for it, the kernel only says how long it is.
        let len = unsafe {
            libc::ptrace(PTRACE_SECCOMP_GET_FILTER, self.tid, index, ptr::null_mut::<c_void>())
        };
        if len < 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(libc::ENOENT) { Ok(None) } else { Err(error) };
        }
        if len as usize > most {
            return Err(io::Error::other("a filter of unusual length"));
        }
        // SAFETY: there is room for as many instructions as it has; a filter does not change.
        let len = unsafe {
            libc::ptrace(PTRACE_SECCOMP_GET_FILTER, self.tid, index, program.as_mut_ptr())
        };
        if len < 0 {
            return Err(io::Error::last_os_error());
        }
        program.truncate(len as usize);
        Ok(Some(program))
    }
}
