//! How a thread goes on in a system call that a stop has ended.
//!
//! Most the kernel goes on with by itself. Some fail instead, and are begun again. Some say that they have done a part: the thread does
//! the rest in code of the library ([`Rests`]), which is then in the process, and the program sees one system call.

use std::mem;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{c_int, c_long, user_regs_struct};

use super::memory::Memory;

/// Length of a `syscall` instruction.
pub(super) const SYSCALL_LEN: u64 = 2;
/// What is no system call, where the kernel keeps the number of the one that a thread is in.
const NO_SYSCALL: u64 = u64::MAX;
/// A failed one of these is not to be begun again: the descriptor is closed.
const CLOSING: [c_long; 3] = [libc::SYS_close, libc::SYS_dup2, libc::SYS_dup3];
/// As many buffers as the kernel takes at once.
const MOST_BUFFERS: u64 = 1024;

/// Where, in the library's code, threads do the rest of a system call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rests {
    pub(super) of_buffer: u64,
    pub(super) of_file: u64,
    pub(super) of_buffers: u64,
    pub(super) end: u64,
}

impl Rests {
    pub(super) fn range(&self) -> Range<u64> {
        self.of_buffer..self.end
    }
}

/// The registers with which a thread is to go on that was stopped where these are; `None` if the kernel sees to it. `rests` is
/// what the library has for that, if it is there. No signal may wait that is to end the system call.
pub(super) fn resumed(
    registers: &user_regs_struct,
    rests: Option<&Rests>,
    pid: i32,
    memory: &Memory,
) -> Option<user_regs_struct> {
    let number = registers.orig_rax as c_long;
    if number < 0 {
        return None;
    }
    let mut resumed = *registers;
    resumed.rax = registers.orig_rax;
    resumed.orig_rax = NO_SYSCALL;
    if registers.rax as i64 == -i64::from(libc::EINTR) && !CLOSING.contains(&number) {
        resumed.rip -= SYSCALL_LEN;
        return Some(resumed);
    }
    let code = rest(registers, rests?, memory)?;
    let is_cut_short = descriptor(pid, registers.rdi as c_int)
        .is_some_and(|descriptor| does_all(&descriptor, number, registers.r10 as c_int));
    resumed.rcx = registers.rip;
    resumed.r11 = registers.rax;
    resumed.rip = code;
    is_cut_short.then_some(resumed)
}

/// Which code does the rest, if less was done than was asked for.
fn rest(registers: &user_regs_struct, rests: &Rests, memory: &Memory) -> Option<u64> {
    let (code, wanted) = match registers.orig_rax as c_long {
        libc::SYS_write | libc::SYS_sendto | libc::SYS_recvfrom => (rests.of_buffer, registers.rdx),
        libc::SYS_sendfile => (rests.of_file, registers.r10),
        libc::SYS_writev if registers.rdx <= MOST_BUFFERS => {
            let buffers = memory.read(registers.rsi, registers.rdx as usize * 16);
            let lengths = buffers.as_chunks::<16>().0.iter();
            let lengths =
                lengths.map(|buffer| u64::from_le_bytes(*buffer.last_chunk().expect("8 of 16")));
            (rests.of_buffers, lengths.fold(0, u64::saturating_add))
        }
        _ => return None,
    };
    let done = registers.rax as i64;
    (code != 0 && done > 0 && (done as u64) < wanted).then_some(code)
}

/// A descriptor of the process, as one of our own.
fn descriptor(pid: i32, number: c_int) -> Option<OwnedFd> {
    // SAFETY: these make new descriptors, which are nobody else's.
    let own = |fd: c_long| (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as c_int) });
    // SAFETY: as above.
    let process = own(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: as above.
    own(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) })
}

/// Whether a system call with this descriptor, and these flags if it has any, waits until it has done all.
fn does_all(descriptor: &OwnedFd, number: c_long, flags: c_int) -> bool {
    let fd = descriptor.as_raw_fd();
    // SAFETY: the kernel fills in the structure; all-zero is a valid one.
    let (is_known, status, mode) = unsafe {
        let mut stat: libc::stat = mem::zeroed();
        let is_known = libc::fstat(fd, &raw mut stat) == 0;
        (is_known, libc::fcntl(fd, libc::F_GETFL), stat.st_mode & libc::S_IFMT)
    };
    if !is_known || status < 0 || status & libc::O_NONBLOCK != 0 {
        return false;
    }
    match number {
        libc::SYS_recvfrom => {
            let wanted = libc::MSG_WAITALL;
            let others = libc::MSG_DONTWAIT | libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_ERRQUEUE;
            flags & (wanted | others) == wanted && is_stream(fd)
        }
        libc::SYS_sendto => flags & libc::MSG_DONTWAIT == 0 && is_stream(fd),
        // A file is full where that did less.
        _ => {
            mode == libc::S_IFIFO
                || mode == libc::S_IFCHR
                || mode == libc::S_IFSOCK && is_stream(fd)
        }
    }
}

fn is_stream(fd: c_int) -> bool {
    let (mut kind, mut len): (c_int, libc::socklen_t) = (0, 4);
    // SAFETY: the kernel fills in the number.
    let found = unsafe {
        let kind: *mut c_int = &raw mut kind;
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_TYPE, kind.cast(), &raw mut len)
    };
    found == 0 && kind == libc::SOCK_STREAM
}
