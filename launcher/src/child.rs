//! The program, which is to behave as if it had been started by itself.
//!
//! It has chase's descriptors, signals and process group. What the terminal sends (Ctrl-C, Ctrl-Z, its end, its new
//! size) it gets itself, being in the group, and chase takes no notice. What other processes send to chase
//! is passed on. When it stops, chase stops in the same way, so that a shell sees that the job has; the shell's SIGCONT
//! is for the group again. When it ends, chase does so in the same way, without a core dump of its own.
//!
//! While the program runs, chase has all signals blocked that can be, and waits for them one by one.

use std::ffi::{CString, OsStr, OsString, c_char, c_int};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{mem, ptr};

use anyhow::Context;

use crate::window::Window;
use crate::{check, say, standard_error_was_open};

/// As shells have it.
const NOT_FOUND: i32 = 127;
const NOT_STARTED: i32 = 126;
/// Within this time, a SIGCONT for a whole process group has reached all of it.
const ALL_CONTINUE: Duration = Duration::from_millis(20);

/// What came of a start.
pub(crate) enum Started {
    /// The process.
    Running(c_int),
    /// Nothing; that was said, and this is to be chase's exit status.
    Failed(i32),
}

/// How the program ended.
pub(crate) enum Ended {
    Status(i32),
    Signal(c_int),
}

/// Words and environment of a program, for the kernel.
struct Image {
    words: Vec<CString>,
    environment: Vec<CString>,
}

impl Image {
    fn new(command: &[OsString], variables: &[(&str, OsString)]) -> Self {
        // Neither arguments nor variables that a process got have NUL in them.
        let text = |bytes: &[u8]| CString::new(bytes).unwrap_or_default();
        let entry =
            |name: &OsStr, value: &OsStr| text(&[name.as_bytes(), b"=", value.as_bytes()].concat());
        let is_set = |name: &OsStr| variables.iter().any(|(set, _)| *set == name);
        let kept = std::env::vars_os().filter(|(name, _)| !is_set(name));
        let kept = kept.map(|(name, value)| entry(&name, &value));
        let set = variables.iter().map(|(name, value)| entry(OsStr::new(name), value));
        Self {
            words: command.iter().map(|word| text(word.as_bytes())).collect(),
            environment: kept.chain(set).collect(),
        }
    }

    /// Sets one more variable: `NAME=value`, or nothing.
    fn set(&mut self, variable: Vec<u8>) {
        let Some(end) = variable.iter().position(|&byte| byte == b'=') else { return };
        self.environment.retain(|entry| !entry.as_bytes().starts_with(&variable[..=end]));
        self.environment.extend(CString::new(variable));
    }

    /// Becomes the program; returns why not.
    fn execute(&self) -> io::Error {
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
        };
        let (words, environment) = (pointers(&self.words), pointers(&self.environment));
        // SAFETY: both arrays end with null.
        unsafe { libc::execvpe(words[0], words.as_ptr(), environment.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// Says why a program was not started, and gives the exit status for that.
fn not_started(command: &[OsString], error: &io::Error) -> i32 {
    let program = Path::new(&command[0]);
    let is_here = program.components().count() == 1 && program.is_file();
    let is_path = program.display().to_string().contains('/');
    let hint = match error.kind() {
        io::ErrorKind::NotFound if is_here => format!("; did you mean ./{}?", program.display()),
        io::ErrorKind::NotFound if !is_path => "; it is not in $PATH".to_owned(),
        // The kernel says the same of a file that is there, and needs another one.
        io::ErrorKind::NotFound => check::missing(&command[0])
            .map_or_else(String::new, |what| format!("; it is there, but not {what}")),
        io::ErrorKind::PermissionDenied if program.is_dir() => "; it is a directory".to_owned(),
        io::ErrorKind::PermissionDenied if is_path && !check::is_executable(program) => {
            "; it is not executable: chmod +x it, or name the program that runs it before it"
                .to_owned()
        }
        _ => String::new(),
    };
    say(&format!("chase: can't start {}: {error}{hint}\n", program.display()));
    if error.raw_os_error() == Some(libc::ENOENT) { NOT_FOUND } else { NOT_STARTED }
}

/// Runs the program in chase's place. Returns only where that fails, with the exit status.
pub(crate) fn become_it(command: &[OsString], variables: &[(&str, OsString)]) -> i32 {
    let error = Image::new(command, variables).execute();
    not_started(command, &error)
}

/// Starts the program. From then on, this process takes signals only in [`wait`]. `prepare` is called with the process before it becomes
/// the program, and may give a variable, `NAME=value`, that is known only then.
pub(crate) fn start(
    command: &[OsString],
    variables: &[(&str, OsString)],
    prepare: impl FnOnce(c_int) -> Option<String>,
) -> anyhow::Result<Started> {
    standard_error_was_open();
    let mut image = Image::new(command, variables);
    // Closed by exec, or written to if that fails.
    let (failed, failure) = io::pipe().context("no pipe")?;
    // Closed when all is prepared, behind a variable.
    let (mut prepared, mut preparing) = io::pipe().context("no pipe")?;
    let mut mask = empty_set();
    // SAFETY: the sets are initialised, and the C library fills in the old one. All-zero is a valid `sigaction`.
    let on_child = unsafe {
        libc::sigprocmask(libc::SIG_BLOCK, &raw const *ours(), &raw mut mask);
        // If it were ignored, the program's end would not be told.
        let mut before: libc::sigaction = mem::zeroed();
        let mut default: libc::sigaction = mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(libc::SIGCHLD, &raw const default, &raw mut before);
        before
    };
    // SAFETY: there is one thread.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: what was there before is put back.
        unsafe {
            libc::sigaction(libc::SIGCHLD, &raw const on_child, ptr::null_mut());
            libc::sigprocmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut());
        }
        drop(preparing);
        let mut variable = Vec::new();
        let _ = io::Read::read_to_end(&mut prepared, &mut variable);
        drop(prepared);
        image.set(variable);
        let errno = image.execute().raw_os_error().unwrap_or(libc::ENOEXEC).to_ne_bytes();
        // SAFETY: the bytes live until the end.
        unsafe {
            libc::write(failure.as_raw_fd(), errno.as_ptr().cast(), errno.len());
            libc::_exit(NOT_STARTED)
        }
    }
    if pid < 0 {
        return Err(io::Error::last_os_error()).context("can't fork");
    }
    drop(failure);
    if let Some(variable) = prepare(pid) {
        io::Write::write_all(&mut preparing, variable.as_bytes()).context("no pipe")?;
    }
    drop((preparing, prepared));
    let mut errno = [0; 4];
    if io::Read::read_exact(&mut { failed }, &mut errno).is_ok() {
        let status = not_started(command, &io::Error::from_raw_os_error(i32::from_ne_bytes(errno)));
        // SAFETY: it is our child, which ends.
        unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
        return Ok(Started::Failed(status));
    }
    Ok(Started::Running(pid))
}

fn empty_set() -> libc::sigset_t {
    // SAFETY: the C library fills it in.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        set
    }
}

/// The signals that are waited for: all but those that a fault of chase's own would raise, and those that can't be blocked.
fn ours() -> Box<libc::sigset_t> {
    let mut set = Box::new(empty_set());
    let faults =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];
    // SAFETY: the set is initialised.
    unsafe {
        libc::sigfillset(&raw mut *set);
        for signal in faults {
            libc::sigdelset(&raw mut *set, signal);
        }
    }
    set
}

/// Waits for the program's end.
pub(crate) fn wait(pid: c_int, window: &mut Window) -> anyhow::Result<Ended> {
    let ours = ours();
    loop {
        // SAFETY: all-zero is a valid structure, which the C library fills in.
        let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
        let left = window.due().map(|due| due.saturating_duration_since(Instant::now()));
        let left = left.map(|left| libc::timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        });
        let left = left.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the set is initialised; without a time, it waits for ever.
        let signal = unsafe { libc::sigtimedwait(&raw const *ours, &raw mut info, left) };
        match signal {
            // The time is over; and a stop and SIGCONT interrupt it.
            -1 => {}
            libc::SIGCHLD => {}
            libc::SIGCONT => {}
            signal if is_sent(pid, &info) && window.takes(pid, signal) => {}
            signal => pass_on(pid, signal, &info),
        }
        window.step(pid);
        // Signals of one number are merged: whichever it was, one look tells.
        while let Some(change) = poll(pid).context("can't wait for the program")? {
            match change {
                Change::Ended(ended) => return Ok(ended),
                Change::Stopped(signal) => stop_likewise(pid, signal),
            }
        }
    }
}

/// Whether another process than the program sent a signal.
fn is_sent(pid: c_int, info: &libc::siginfo_t) -> bool {
    // SAFETY: the field is there for signals that processes send.
    info.si_code <= 0 && unsafe { info.si_pid() } != pid
}

/// What other processes sent is passed on; the kernel, for the terminal, sends it to the whole group. The program's
/// own (as by `kill 0`) reach it without us.
fn pass_on(pid: c_int, signal: c_int, info: &libc::siginfo_t) {
    if !is_sent(pid, info) {
        return;
    }
    // SAFETY: the program has not been waited for, so the number is still its own.
    unsafe {
        if info.si_code == libc::SI_QUEUE {
            libc::sigqueue(pid, signal, info.si_value());
        } else {
            libc::kill(pid, signal);
        }
    }
}

enum Change {
    Ended(Ended),
    Stopped(c_int),
}

fn poll(pid: c_int) -> io::Result<Option<Change>> {
    let mut status = 0;
    // SAFETY: the kernel fills in the status.
    match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG | libc::WUNTRACED) } {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ if libc::WIFSTOPPED(status) => Ok(Some(Change::Stopped(libc::WSTOPSIG(status)))),
        _ if libc::WIFSIGNALED(status) => {
            Ok(Some(Change::Ended(Ended::Signal(libc::WTERMSIG(status)))))
        }
        _ => Ok(Some(Change::Ended(Ended::Status(libc::WEXITSTATUS(status))))),
    }
}

/// Stops as the program has, until somebody lets the job go on.
fn stop_likewise(pid: c_int, signal: c_int) {
    if !is_stopped(pid) {
        return;
    }
    reset_to_default(signal);
    // Mostly both are told to go on.
    std::thread::sleep(ALL_CONTINUE);
    if is_stopped(pid) {
        // SAFETY: the program has not been waited for, so the number is still its own.
        unsafe { libc::kill(pid, libc::SIGCONT) };
    }
}

/// Whether the process is stopped, by its state in `/proc/PID/stat`.
fn is_stopped(pid: c_int) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before it is in parentheses and may hold anything.
    let end = stat.iter().rposition(|&byte| byte == b')').unwrap_or(0);
    stat.get(end + 2) == Some(&b'T')
}

/// Lets a signal do to this process what it does by default.
fn reset_to_default(signal: c_int) {
    let mut only = empty_set();
    // SAFETY: the sets are initialised, all-zero is a valid `sigaction`, and nothing is handled.
    unsafe {
        libc::sigaddset(&raw mut only, signal);
        let mut default: libc::sigaction = mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        let mut before: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, &raw const default, &raw mut before);
        libc::raise(signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const only, ptr::null_mut());
        // Here it stops, and goes on.
        libc::sigprocmask(libc::SIG_BLOCK, &raw const only, ptr::null_mut());
        libc::sigaction(signal, &raw const before, ptr::null_mut());
    }
}

/// Ends by the signal that ended the program; gives the exit status that shells show for it, should it not.
pub(crate) fn die_likewise(signal: c_int) -> i32 {
    const SIGNALLED: i32 = 128;
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it changes settings of this process, which is about to end.
    unsafe {
        // The core dump is the program's. A limit alone does not keep from a handler of core dumps.
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
    }
    reset_to_default(signal);
    SIGNALLED + signal
}
