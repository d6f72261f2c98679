//! Having a stopped thread make calls, as if nothing had happened to it.
//!
//! It keeps all its registers and its red zone; signals wait meanwhile. A call is made by a `call` instruction, so that a
//! shadow stack stays right, and is over when the thread makes a system call that there is none of. (A trap would do, but
//! the kernel takes a handler for traps from the program that has one blocked.) At the end the thread stops as it was stopped
//! before, so that the kernel goes on with a system call that it was in.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use chase_format::requests::{NO_CALL, STARTING};
use libc::{c_long, user_regs_struct};

use super::trace::{Stop, Thread};

/// Behind the call: its result goes where the kernel shows it, and the system call.
pub(super) const CALL: [u8; 12] = [
    0xff, 0xd0, // call *%rax
    0x48, 0x89, 0xc7, // mov %rax, %rdi
    0xb8, 0xff, 0xff, 0xff, 0x00, // NO_CALL: mov $0xffffff, %eax
    0x0f, 0x05, // syscall
];
const RED_ZONE: u64 = 128;
/// What calls may need.
pub(super) const STACK: u64 = 16 << 10;
/// Errors of system calls are above this.
const LAST_ERROR: i64 = -4096;

/// A thread that makes calls for us.
pub(super) struct Caller {
    thread: Thread,
    before: user_regs_struct,
    vectors: Vec<u8>,
    blocked: u64,
    /// Address of a `syscall` instruction.
    syscall: u64,
    is_over: bool,
}

impl Caller {
    /// The thread has stopped because it was interrupted.
    pub(super) fn begin(thread: Thread, syscall: u64) -> anyhow::Result<Self> {
        let before = thread.registers().context("can't read a thread's registers")?;
        let vectors = thread.vectors()?;
        let blocked = thread.blocked().context("can't read a thread's signal mask")?;
        thread.set_blocked(u64::MAX).context("can't block a thread's signals")?;
        let this = Self { thread, before, vectors, blocked, syscall, is_over: false };
        this.works_for_us(true);
        Ok(this)
    }

    /// Tells a companion that traces the thread, or does by now, whether what it does is ours. (The kernel knows no such request.)
    pub(super) fn works_for_us(&self, is_so: bool) {
        let request = u64::from(STARTING);
        let _ = self.syscall(libc::SYS_prctl, [request, u64::from(is_so), 0, 0, 0, 0]);
    }

    /// Makes a system call that waits for nothing.
    pub(super) fn syscall(&self, number: c_long, arguments: [u64; 6]) -> anyhow::Result<u64> {
        let mut registers = self.before;
        registers.rip = self.syscall;
        registers.rax = number as u64;
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        (registers.rdi, registers.rsi, registers.rdx) = (rdi, rsi, rdx);
        (registers.r10, registers.r8, registers.r9) = (r10, r8, r9);
        registers.orig_rax = u64::MAX;
        self.thread.set_registers(&registers)?;
        self.to_syscall(Duration::from_secs(2))?;
        self.to_syscall(Duration::from_secs(2))?;
        let result = self.thread.registers()?.rax as i64;
        if (LAST_ERROR..0).contains(&result) {
            return Err(std::io::Error::from_raw_os_error(-result as i32))
                .with_context(|| format!("system call {number}"));
        }
        Ok(result as u64)
    }

    /// Calls a function; [`CALL`] is at `code`.
    pub(super) fn call(
        &self,
        code: u64,
        function: u64,
        arguments: [u64; 4],
    ) -> anyhow::Result<u64> {
        let mut registers = self.before;
        registers.rip = code;
        registers.rax = function;
        let [rdi, rsi, rdx, rcx] = arguments;
        (registers.rdi, registers.rsi, registers.rdx, registers.rcx) = (rdi, rsi, rdx, rcx);
        registers.rsp = (registers.rsp - RED_ZONE) & !0x3f;
        registers.eflags &= !0x400;
        registers.orig_rax = u64::MAX;
        self.thread.set_registers(&registers)?;
        loop {
            self.to_syscall(Duration::from_secs(2)).context("what was called does not return")?;
            let now = self.thread.registers()?;
            if now.orig_rax == u64::from(NO_CALL) {
                let result = now.rdi;
                self.to_syscall(Duration::from_secs(2))?;
                return Ok(result);
            }
        }
    }

    fn to_syscall(&self, patience: Duration) -> anyhow::Result<()> {
        self.thread.go_to_syscall()?;
        match self.thread.wait(patience)? {
            Stop::Syscall => Ok(()),
            Stop::Gone => bail!("the process has ended"),
            stop => bail!("thread {} stopped in between ({stop:?})", self.thread.tid),
        }
    }

    /// The thread is as it was.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.restore()
    }

    fn restore(&mut self) -> anyhow::Result<()> {
        self.is_over = true;
        self.works_for_us(false);
        // Where the kernel looks whether a system call is to go on: only after such a stop.
        self.thread.interrupt()?;
        self.thread.go_on(0)?;
        let stop = self.thread.wait(Duration::from_secs(2))?;
        ensure!(stop == Stop::Interrupted, "thread {} stopped in between", self.thread.tid);
        self.thread.set_vectors(&mut self.vectors)?;
        self.thread.set_registers(&self.before)?;
        self.thread.set_blocked(self.blocked)?;
        Ok(())
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // A call that does not return waits for something, and is given up; what it was to do is not done.
        if self.thread.registers().is_err() {
            let _ = self.thread.interrupt();
            let _ = self.thread.wait(Duration::from_secs(2));
            let _ = self.thread.set_vectors(&mut self.vectors);
            let _ = self.thread.set_registers(&self.before);
            let _ = self.thread.set_blocked(self.blocked);
            self.is_over = true;
            return;
        }
        let _ = self.restore();
    }
}
