//! `chase record` in a terminal: keys, jobs, and the shell's word on them.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use chase_tests::launcher::chase;
use tempfile::TempDir;

/// A terminal and a shell in it, with job control.
struct Session {
    child: std::process::Child,
    terminal: fs::File,
    seen: String,
}

impl Session {
    fn new(directory: &Path) -> Self {
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

    fn send(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).expect("takes keys");
    }

    /// Reads until `wanted` is there, and forgets what comes before its end.
    fn expect(&mut self, wanted: &str) -> String {
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
}

impl Drop for Session {
    fn drop(&mut self) {
        // What it started ends with its terminal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_of_the_terminal_are_the_programs() {
    let scratch = TempDir::new().expect("a directory");
    let mut session = Session::new(scratch.path());
    // The words that are looked for are not in what is typed, which the terminal shows too.
    session.send("$CHASE record -- sh -c 'trap \"echo caught; exit 5\" INT; echo u\"\"p; while :; do sleep 0.05; done'; echo status=$?\n");
    session.expect("up\r\n");
    session.send("\x03");
    session.expect("caught\r\n");
    session.expect("Recorded in");
    session.expect("status=5");

    // By default it kills: the shell sees a job that was, and gives up the line.
    session.send("$CHASE record -- sleep 30\n");
    sleep(Duration::from_millis(500));
    session.send("\x03");
    session.expect("Recorded in");
    session.send("echo status=$?\n");
    session.expect("status=130");
}

#[test]
fn jobs_stop_and_go_on() {
    let scratch = TempDir::new().expect("a directory");
    let mut session = Session::new(scratch.path());
    session.send("$CHASE record -- sh -c 'echo u\"\"p; read line; echo got=$line; exit 4'\n");
    session.expect("up\r\n");
    for _ in 0..2 {
        session.send("\x1a");
        session.expect("Stopped");
        session.send("jobs; echo free=$?\n");
        session.expect("free=0");
        session.send("fg\n");
        session.expect("sh -c");
        sleep(Duration::from_millis(100));
    }
    session.send("word\n");
    session.expect("got=word");
    session.expect("Recorded in");
    session.send("echo status=$?\n");
    session.expect("status=4");
}

/// A stop that the terminal has nothing to do with.
#[test]
fn stops_when_the_program_stops() {
    let scratch = TempDir::new().expect("a directory");
    let mut session = Session::new(scratch.path());
    session.send("$CHASE record -- sh -c 'kill -STOP $$; echo o\"\"n; exit 6'\n");
    session.expect("Stopped");
    session.send("fg\n");
    session.expect("on\r\n");
    session.expect("Recorded in");
    session.send("echo status=$?\n");
    session.expect("status=6");
}
