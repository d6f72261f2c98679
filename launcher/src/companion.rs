//! The companion, started before the program, so that the program need not wait for it.

use std::ffi::CString;
use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use chase_format::session::FILE_NAME;

use crate::parts;
use crate::settings::Settings;

/// It may hang; then the program finds out, and says so in its recording.
const PATIENCE_MS: i32 = 3_000;
/// It stays that long after its last process, for the next run.
const LINGER_S: &str = "5";

/// Starts one, unless one is at work, and waits until it is ready. Where that fails, the program's own look for
/// one finds the reason, which is then in the recording.
pub(crate) fn start(settings: &Settings) {
    let Ok(program) = parts::companion() else { return };
    if is_at_work(&settings.output) {
        return;
    }
    let text = |bytes: &[u8]| CString::new(bytes).ok();
    let sample = [b"CHASE_SAMPLE=", settings.sample.as_bytes()].concat();
    let (Some(program), Some(output), Some(sample)) = (
        text(program.as_os_str().as_bytes()),
        text(settings.output.as_os_str().as_bytes()),
        text(&sample),
    ) else {
        return;
    };
    let Some((read, write)) = pipe() else { return };
    let linger = CString::new(LINGER_S).unwrap_or_default();
    let arguments = [
        c"chase-companion".as_ptr(),
        c"--output".as_ptr(),
        output.as_ptr(),
        c"--linger".as_ptr(),
        linger.as_ptr(),
        c"--dismiss".as_ptr(),
        c"--ready-fd".as_ptr(),
        c"3".as_ptr(),
        ptr::null(),
    ];
    let environment = [sample.as_ptr(), ptr::null()];
    // SAFETY: there is one thread, so that the child may do what this process may. It makes only system calls, on
    // memory that was prepared.
    unsafe {
        match libc::fork() {
            -1 => return,
            0 => {
                // Nobody's child, and away from the terminal.
                if libc::setsid() < 0 || libc::fork() != 0 {
                    libc::_exit(0);
                }
                libc::chdir(c"/".as_ptr());
                let aside = libc::fcntl(write.as_raw_fd(), libc::F_DUPFD, 10);
                let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
                let null = libc::fcntl(null, libc::F_DUPFD, 10);
                for standard in 0..3 {
                    libc::dup2(null, standard);
                }
                libc::dup2(aside, 3);
                libc::syscall(libc::SYS_close_range, 4, u32::MAX, 0);
                libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
                libc::_exit(1);
            }
            child => {
                libc::waitpid(child, ptr::null_mut(), 0);
            }
        }
    }
    drop(write);
    let mut poll = libc::pollfd { fd: read.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the kernel fills in the structure.
    if unsafe { libc::poll(&raw mut poll, 1, PATIENCE_MS) } > 0 {
        // Ready, or why not, or its end: nothing is left to wait for.
        let _ = BufReader::new(File::from(read)).read_line(&mut String::new());
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
