//! A shell in a terminal, as a user has one.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::launcher::chase;

/// A terminal and a shell in it, with job control.
pub struct Session {
    child: std::process::Child,
    terminal: fs::File,
    seen: String,
}

impl Session {
    /// With `directory` as the working directory, and `$CHASE` for the command.
    ///
    /// # Panics
    /// If there is no pseudo-terminal, or no bash.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        use std::os::fd::{AsRawFd, FromRawFd};
        let (mut master, mut slave) = (0, 0);
        let null = std::ptr::null_mut();
        // SAFETY: it fills in both numbers; the rest may be null.
        let opened = unsafe {
            libc::openpty(&raw mut master, &raw mut slave, null, null.cast(), null.cast())
        };
        assert_eq!(opened, 0, "a pseudo-terminal");
        // SAFETY: both are ours.
        let (terminal, slave) =
            unsafe { (fs::File::from_raw_fd(master), fs::File::from_raw_fd(slave)) };
        // The shell must not keep its own terminal open.
        // SAFETY: it changes a flag of our descriptor.
        unsafe { libc::fcntl(terminal.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        let number = slave.as_raw_fd();
        let mut shell = Command::new("bash");
        shell.args(["--norc", "--noprofile", "-i"]).current_dir(directory).env("PS1", "> ");
        shell
            .env("TERM", "dumb")
            .env("HISTFILE", "")
            .env("CHASE", chase())
            .env_remove("LD_PRELOAD");
        shell.env("XDG_CONFIG_HOME", directory);
        let other = || Stdio::from(slave.try_clone().expect("a copy"));
        shell.stdin(other()).stdout(other()).stderr(other());
        // SAFETY: it calls what may be called after a fork.
        unsafe {
            shell.pre_exec(move || {
                libc::setsid();
                libc::ioctl(number, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = shell.spawn().expect("bash");
        // SAFETY: it changes flags of our descriptor.
        unsafe { libc::fcntl(terminal.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        Self { child, terminal, seen: String::new() }
    }

    /// Types.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn send(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).expect("takes keys");
    }

    /// What was written since the last time, as it came; after a while, nothing.
    pub fn output(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.seen).into_bytes();
        let mut buffer = [0; 4096];
        match self.terminal.read(&mut buffer) {
            Ok(len) => bytes.extend(&buffer[..len]),
            Err(_) => sleep(Duration::from_millis(10)),
        }
        bytes
    }

    /// Reads until `wanted` is there, and forgets what comes before its end.
    ///
    /// # Panics
    /// If it does not come within 20 s.
    pub fn expect(&mut self, wanted: &str) -> String {
        let start = Instant::now();
        loop {
            if let Some(at) = self.seen.find(wanted) {
                let rest = self.seen.split_off(at + wanted.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let mut buffer = [0; 4096];
            match self.terminal.read(&mut buffer) {
                Ok(len) => self.seen.push_str(&String::from_utf8_lossy(&buffer[..len])),
                Err(_) => sleep(Duration::from_millis(10)),
            }
            let waited = start.elapsed();
            assert!(waited < Duration::from_secs(20), "no {wanted:?} in {:?}", self.seen);
        }
    }

    /// Takes the terminal away; whether what runs in place of the shell ends.
    ///
    /// # Panics
    /// If that can't be asked.
    pub fn hang_up(&mut self) -> bool {
        self.terminal = fs::File::open("/dev/null").expect("there");
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            if self.child.try_wait().expect("our child").is_some() {
                return true;
            }
            sleep(Duration::from_millis(10));
        }
        false
    }

    /// The process that the shell runs now.
    ///
    /// # Panics
    /// If it is not one.
    #[must_use]
    pub fn job(&self) -> u32 {
        let shell = self.child.id();
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
        let children = children.expect("the shell's children");
        children.trim().parse().unwrap_or_else(|_| panic!("one process: {children:?}"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What it started ends with its terminal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
