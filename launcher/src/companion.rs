//! The companion, started before the program, so that the program need not wait for it.

use std::ffi::CString;
use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use chase_format::session::{AUTO, DISMISS, FILE_NAME, SAMPLES, idle_since, sampling};

use crate::settings::Settings;
use crate::{parts, say, standard_error_was_open};

/// It may hang; then the program finds out, and says so in its recording.
const PATIENCE_MS: i32 = 3_000;
/// Where nothing is to be recorded without it.
const PATIENCE_REQUIRED_MS: i32 = 30_000;
/// How the answer begins of one that records nothing.
const NOT_RECORDED: &str = "chase: syscalls are not recorded: ";
/// Within that time it does.
const LAST_ROUNDS: Duration = Duration::from_millis(500);
/// It stays that long after its last process, for the next run.
const LINGER_S: &str = "5";

/// Starts one, unless one is at work or none is wanted, and waits until it is ready. Where that fails, the program's own look
/// for one finds the reason, which is then in the recording; whoever asked for a narration, which there won't be, is told now.
/// `process` is to become the program: where only samples can be taken, it is watched from now on, with all that it starts.
pub(crate) fn start(settings: &Settings, process: i32) {
    start_for(settings, None, Some(process));
}

/// A user and a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// The same for processes of another user, if this one is root: a companion watches those of its own user, and it is looked for in a
/// file of that user's.
pub(crate) fn start_as(settings: &Settings, owner: Option<Owner>) {
    start_for(settings, owner, None);
}

fn start_for(settings: &Settings, owner: Option<Owner>, process: Option<i32>) {
    // (Before files are opened that may get its number.)
    let may_say = standard_error_was_open() && !settings.quiet;
    let missing = match settings.wants_companion {
        true => started(settings, owner, process),
        false => Some("CHASE_SYSCALLS=off".to_owned()),
    };
    // Where a companion is required, the library says so.
    if settings.narrates
        && may_say
        && !settings.requires_companion
        && let Some(why) = missing
    {
        say(&format!("chase: no narration: system calls can't be told one by one: {why}\n"));
    }
}

/// Why system calls won't be recorded, as far as that is known.
fn started(settings: &Settings, owner: Option<Owner>, process: Option<i32>) -> Option<String> {
    let program = match parts::companion() {
        Ok(program) => program,
        Err(error) => return Some(format!("{error:#}")),
    };
    dismiss_unlike(settings);
    if is_at_work(&settings.output) {
        // The second line says what it does.
        let text = fs::read_to_string(settings.output.join(FILE_NAME)).ok()?;
        return missing(text.lines().nth(1)?);
    }
    let text = |bytes: &[u8]| CString::new(bytes).ok();
    let sample = [b"CHASE_SAMPLE=", settings.sample.as_bytes()].concat();
    let (Some(program), Some(output), Some(sample)) = (
        text(program.as_os_str().as_bytes()),
        text(settings.output.as_os_str().as_bytes()),
        text(&sample),
    ) else {
        return None;
    };
    let (read, write) = pipe()?;
    let linger = CString::new(LINGER_S).unwrap_or_default();
    let watched = CString::new(process.unwrap_or(0).to_string()).unwrap_or_default();
    let mut arguments = vec![
        c"chase-companion".as_ptr(),
        c"--output".as_ptr(),
        output.as_ptr(),
        c"--linger".as_ptr(),
        linger.as_ptr(),
        c"--dismiss".as_ptr(),
        c"--ready-fd".as_ptr(),
        c"3".as_ptr(),
    ];
    if process.is_some() {
        arguments.extend([c"--watch".as_ptr(), watched.as_ptr()]);
    }
    arguments.push(ptr::null());
    let environment = [sample.as_ptr(), ptr::null()];
    // (Another user may not get to where it is, perhaps.)
    // SAFETY: the path ends with NUL.
    let file = unsafe { libc::open(program.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    // SAFETY: there is one thread, so that the child may do what this process may. It makes only system calls, on
    // memory that was prepared.
    unsafe {
        match libc::fork() {
            -1 => return None,
            0 => {
                // Nobody's child, and away from the terminal.
                if libc::setsid() < 0 || libc::fork() != 0 {
                    libc::_exit(0);
                }
                libc::chdir(c"/".as_ptr());
                let aside = libc::fcntl(write.as_raw_fd(), libc::F_DUPFD, 10);
                let file = libc::fcntl(file, libc::F_DUPFD, 10);
                let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
                let null = libc::fcntl(null, libc::F_DUPFD, 10);
                for standard in 0..3 {
                    libc::dup2(null, standard);
                }
                libc::dup2(aside, 3);
                let (arguments, environment) = (arguments.as_ptr(), environment.as_ptr());
                match owner {
                    Some(owner) if become_user(owner) => {
                        let itself = libc::AT_EMPTY_PATH;
                        libc::dup3(file, 4, libc::O_CLOEXEC);
                        libc::syscall(libc::SYS_close_range, 5, u32::MAX, 0);
                        let name = c"".as_ptr();
                        libc::syscall(libc::SYS_execveat, 4, name, arguments, environment, itself);
                    }
                    Some(_) => {}
                    None => {
                        libc::syscall(libc::SYS_close_range, 4, u32::MAX, 0);
                        libc::execve(program.as_ptr(), arguments, environment);
                    }
                }
                libc::_exit(1);
            }
            child => {
                libc::waitpid(child, ptr::null_mut(), 0);
            }
        }
    }
    drop(write);
    // SAFETY: it was opened above.
    unsafe { libc::close(file) };
    let mut poll = libc::pollfd { fd: read.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let patience = if settings.requires_companion { PATIENCE_REQUIRED_MS } else { PATIENCE_MS };
    // SAFETY: the kernel fills in the structure.
    if unsafe { libc::poll(&raw mut poll, 1, patience) } <= 0 {
        return None;
    }
    // Ready, or why not; nothing if it has ended without a word.
    let mut line = String::new();
    let _ = BufReader::new(File::from(read)).read_line(&mut line);
    missing(line.trim_end())
}

/// Why a companion that says this records no system calls; `None` if it does.
fn missing(said: &str) -> Option<String> {
    let prefixes = [SAMPLES, NOT_RECORDED];
    prefixes.iter().find_map(|prefix| said.strip_prefix(prefix)).map(str::to_owned)
}

/// Gives up being root, but for what watching takes: `CAP_PERFMON` and `CAP_BPF`. Makes only system calls.
///
/// # Safety
/// The process has one thread.
unsafe fn become_user(Owner { user, group }: Owner) -> bool {
    const VERSION_3: u32 = 0x2008_0522;
    const PERFMON: u32 = 38;
    const BPF: u32 = 39;
    // Capabilities from 32 on are in the second half: those in force, those permitted, those that a program is started with.
    let high = (1 << (PERFMON - 32)) | (1 << (BPF - 32));
    let sets: [[u32; 3]; 2] = [[0; 3], [high; 3]];
    let header = [VERSION_3, 0];
    // SAFETY: the arguments are as the kernel wants them.
    unsafe {
        if libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0
            || libc::setgroups(0, ptr::null()) != 0
            || libc::setresgid(group, group, group) != 0
            || libc::setresuid(user, user, user) != 0
        {
            return false;
        }
        // A file that gives the two itself needs none of this; without both, it says what is missing.
        libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr());
        for capability in [PERFMON, BPF] {
            libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, capability, 0, 0);
        }
        true
    }
}

/// A companion that stayed for a next run may take other samples than this one is to have, or none; and one that can only take samples
/// would miss the start of this run. If it has nothing else to do, it is asked to end; otherwise whoever wants other samples is told.
fn dismiss_unlike(settings: &Settings) {
    if !is_at_work(&settings.output) {
        return;
    }
    let text = fs::read(settings.output.join(FILE_NAME)).unwrap_or_default();
    let wish = settings.sample.to_str().filter(|wish| !wish.is_empty()).unwrap_or(AUTO);
    let is_limited = text
        .split(|&byte| byte == b'\n')
        .nth(1)
        .is_some_and(|line| line.starts_with(SAMPLES.as_bytes()));
    let Some((process, other)) = sampling(&text) else { return };
    if other == wish && !is_limited {
        return;
    }
    // SAFETY: it ends when it has nothing to watch; that it is the companion, the lock says.
    if idle_since(&text).is_some() && unsafe { libc::kill(process, DISMISS) } == 0 {
        let begun = Instant::now();
        while is_at_work(&settings.output) && begun.elapsed() < LAST_ROUNDS {
            sleep(Duration::from_millis(5));
        }
    }
    let is_told = other != wish && standard_error_was_open() && !settings.quiet;
    if is_told && is_at_work(&settings.output) {
        let output = settings.shown_output.display();
        say(&format!(
            "chase: samples are taken as for what is recorded in {output} already (--sample {other}), not as this run is to have them \
             (--sample {wish}): -o another directory\n"
        ));
    }
}

/// Whether a companion listens in `directory`.
fn is_at_work(directory: &Path) -> bool {
    let Ok(file) = File::open(directory.join(FILE_NAME)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn pipe() -> Option<(OwnedFd, OwnedFd)> {
    let (read, write) = std::io::pipe().ok()?;
    Some((read.into(), write.into()))
}
