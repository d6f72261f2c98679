//! Waiting for the end of a recording: a signal, the time, or the process's end.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;
use std::time::{Duration, Instant};

use anyhow::Context;

/// Why it is over.
pub(super) enum Over {
    /// A signal to chase, or the time.
    Asked,
    /// The process has ended.
    Ended,
}

/// The signals that end a recording. They wait until [`Signals::wait`].
pub(super) struct Signals {
    file: File,
}

impl Signals {
    pub(super) fn hold() -> Self {
        // SAFETY: the set is initialised by the C library, and the new descriptor is nobody else's.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
            let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC);
            Self { file: File::from_raw_fd(fd) }
        }
    }

    /// Waits for one, for the process's end, or so long.
    pub(super) fn wait(&self, pid: i32, duration: Option<Duration>) -> anyhow::Result<Over> {
        // SAFETY: it takes two numbers.
        let process = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        if process < 0 {
            return Ok(Over::Ended);
        }
        // SAFETY: the new descriptor is nobody else's.
        let process = unsafe { File::from_raw_fd(process as i32) };
        let until = duration.map(|duration| Instant::now() + duration);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let left_ms =
                left.map_or(-1, |left| i32::try_from(left.as_millis()).unwrap_or(i32::MAX));
            let watched = |file: &File| libc::pollfd {
                fd: file.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            let mut files = [watched(&self.file), watched(&process)];
            // SAFETY: there are two of them, which the kernel fills in.
            let found = unsafe { libc::poll(files.as_mut_ptr(), 2, left_ms) };
            if found < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return Err(io::Error::last_os_error()).context("can't wait for the process");
            }
            if files[1].revents != 0 {
                return Ok(Over::Ended);
            }
            if found > 0 || left.is_some_and(|left| left.is_zero()) {
                return Ok(Over::Asked);
            }
        }
    }
}
