//! The companion: another process, which observes by eBPF what system calls are made in which context.
//!
//! The file `companion.session` in the directory of the recordings says which companion listens. Whoever holds its
//! lock (`flock`) is the companion, or is starting it. The first process of a run takes the lock, starts a companion
//! as an orphan and passes the lock on to it; other processes wait for the file's contents. A process makes itself
//! known by a handshake, the *hello*: a `prctl` that the kernel refuses and that the companion's program observes
//! (`companion/bpf/shared.h`).

use core::ffi::CStr;

use chase_format::session::{FAILED, FILE_NAME, FIRST_LINE, SAMPLES, SESSION};

use crate::abi::BASE;
use crate::arch;
use crate::sys;
use chase_logic::config::Syscalls;
use chase_logic::session::{STARTING, number, second_line, started_since};
use chase_logic::text::{Text, file_name};

/// Why system calls are not recorded, as text for the user.
pub(crate) type Reason = Text<512>;

/// The name of the companion's executable.
const NAME: &[u8] = b"/chase-companion";
/// How long a program waits until the companion is ready, or has said why it can't record. Getting ready mostly takes
/// longer; then it watches the programs that start later.
const PATIENCE_MS: i32 = 10;
/// The same where the program must not run without the companion.
const PATIENCE_REQUIRED_MS: i32 = 30_000;
/// The reason given for a process that began before the companion was ready.
const NOT_READY: &[u8] =
    b"the companion was still starting when this process began: programs that start in the \
    next seconds are watched (chase record, and CHASE_SYSCALLS=require, wait for it)";
/// Interval at which other processes check whether it is ready.
const PAUSE_MS: i32 = 2;
/// After a failure, processes of the same run don't try again for so long.
const FAILURE_HOLDS_S: u64 = 60;

/// How long the companion stays after its last process has ended.
const LINGER_S: &CStr = c"5";

/// Which companion to look for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The value of `CHASE_SYSCALLS`.
    pub(crate) wish: Syscalls,
    /// The value of `CHASE_SAMPLE`.
    pub(crate) sample: &'a [u8],
    /// The directory of the recordings.
    pub(crate) directory: &'a [u8],
    /// Path of this library.
    pub(crate) library: &'a [u8],
}

/// Finds the session of a companion that listens; starts one if necessary. Where there is none, says why in `reason`.
pub(crate) fn find(wanted: Wanted<'_>, reason: &mut Reason) -> Option<u64> {
    let Wanted { wish, directory, .. } = wanted;
    match wish {
        Syscalls::Off => {
            reason.push(b"CHASE_SYSCALLS=off");
            return None;
        }
        Syscalls::Unknown => {
            reason.push(b"CHASE_SYSCALLS must be off, auto or require");
            return None;
        }
        Syscalls::Auto | Syscalls::Require => {}
    }
    // Such a filter may kill the process for an unexpected system call.
    if sys::has_seccomp_filter() {
        reason.push(b"a seccomp filter is in force");
        return None;
    }
    let mut file = Text::<4096>::new();
    file.push(directory).push(b"/").push(FILE_NAME.as_bytes());
    let mut waited_ms = 0;
    loop {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let Ok(fd) = sys::open(file.as_c_str(), flags, 0o600) else {
            reason.push(b"can't open ").push(file.as_bytes());
            return None;
        };
        let found = ask(wanted, fd, reason);
        sys::close(fd);
        match found {
            Found::Session(session) => return Some(session),
            Found::Nothing => return None,
            Found::Later if waited_ms >= patience_ms(wish) => {
                reason.push(NOT_READY);
                return None;
            }
            Found::Later => {
                sys::pause_ms(PAUSE_MS);
                waited_ms += PAUSE_MS;
            }
        }
    }
}

enum Found {
    Session(u64),
    /// Another process is starting one.
    Later,
    /// There is none; `reason` says why.
    Nothing,
}

fn ask(wanted: Wanted<'_>, fd: i32, reason: &mut Reason) -> Found {
    let mut buffer = [0u8; 640];
    if !sys::is_own_file(fd) {
        reason.push(b"companion.session is no file of this user");
        return Found::Nothing;
    }
    let locked = sys::lock_file(fd, libc::LOCK_EX | libc::LOCK_NB);
    let text = sys::read_start(fd, &mut buffer);
    if !text.is_empty() && !text.starts_with(FIRST_LINE.as_bytes()) {
        reason.push(b"companion.session is a file of another program");
        return Found::Nothing;
    }
    let before = second_line(text);
    let said = before;
    match locked {
        Err(libc::EWOULDBLOCK) if has_samples_alone(said, reason) => Found::Nothing,
        Err(libc::EWOULDBLOCK) => session(said).map_or(Found::Later, Found::Session),
        Err(_) => {
            reason.push(b"can't lock companion.session");
            Found::Nothing
        }
        Ok(()) if wanted.wish == Syscalls::Auto && has_failed(said, reason) => Found::Nothing,
        Ok(()) => {
            match start(wanted, fd, reason) {
                Started::No => return Found::Nothing,
                Started::NotYet if wanted.wish == Syscalls::Auto => {
                    reason.push(NOT_READY);
                    return Found::Nothing;
                }
                Started::NotYet => {
                    reason.push(b"the companion does not get ready");
                }
                Started::Answered => {}
            }
            let mut buffer = [0u8; 640];
            let said = second_line(sys::read_start(fd, &mut buffer));
            if let (true, Some(session)) = (reason.as_bytes().is_empty(), session(said)) {
                return Found::Session(session);
            }
            if reason.as_bytes().is_empty() && has_samples_alone(said, reason) {
                return Found::Nothing;
            }
            if reason.as_bytes().is_empty() {
                reason.push(b"the companion has ended at once");
            }
            // If it hangs, it still has the lock.
            if let Some(process) = started_since(before, said) {
                sys::kill(process);
            }
            let mut line = Reason::new();
            line.push(FAILED.as_bytes()).push_number(now_s()).push(b" ").push(reason.as_bytes());
            write_reason(fd, &line);
            Found::Nothing
        }
    }
}

fn patience_ms(wish: Syscalls) -> i32 {
    if wish == Syscalls::Require { PATIENCE_REQUIRED_MS } else { PATIENCE_MS }
}

fn session(said: &[u8]) -> Option<u64> {
    said.strip_prefix(SESSION.as_bytes()).and_then(number)
}

/// Whether the companion only takes samples; if so, appends its explanation to `reason`.
fn has_samples_alone(said: &[u8], reason: &mut Reason) -> bool {
    let why = said.strip_prefix(SAMPLES.as_bytes());
    reason.push(why.unwrap_or(&[]));
    why.is_some()
}

/// Whether a companion failed to start a short time ago; if so, appends why to `reason`.
fn has_failed(said: &[u8], reason: &mut Reason) -> bool {
    let Some(failure) = said.strip_prefix(FAILED.as_bytes()) else { return false };
    let mut parts = failure.splitn(2, |&byte| byte == b' ');
    let then_s = parts.next().and_then(number).unwrap_or(0);
    let is_recent = now_s().abs_diff(then_s) < FAILURE_HOLDS_S;
    if is_recent {
        reason.push(parts.next().unwrap_or(&[]));
    }
    is_recent
}

fn now_s() -> u64 {
    sys::clock_ns(libc::CLOCK_REALTIME) / 1_000_000_000
}

/// Replaces the second line of the file.
///
/// The first line stays: some file systems (ext4) write a file that was truncated to nothing and written again to the
/// disk at once, and free its blocks the next time, which may take a second.
fn write_reason(fd: i32, line: &Reason) {
    // A write beyond the file size limit raises a signal.
    if sys::limit(libc::RLIMIT_FSIZE) < 4096 {
        return;
    }
    let mut text = Text::<640>::new();
    text.push(FIRST_LINE.as_bytes()).push(b"\n");
    let first = text.as_bytes().len();
    sys::write_at(fd, text.as_bytes(), 0);
    if sys::ftruncate(fd, first).is_ok() {
        text.clear();
        text.push(line.as_bytes()).push(b"\n");
        sys::write_at(fd, text.as_bytes(), first);
    }
}

// ---- starting one -------------------------------------------------------------------------------

/// The outcome of starting a companion.
enum Started {
    /// None was started; there is a `reason`.
    No,
    /// It is still getting ready.
    NotYet,
    /// It is ready, or there is a `reason`.
    Answered,
}

/// Starts a companion, passes it the lock on `lock`, and waits for a limited time until it is ready or has said why
/// it can't record.
fn start(wanted: Wanted<'_>, lock: i32, reason: &mut Reason) -> Started {
    let Wanted { wish, directory, library, sample } = wanted;
    let mut path = Text::new();
    if !executable(library, &mut path) {
        reason.push(b"there is no chase-companion beside ").push(library);
        return Started::No;
    }
    if sys::adopts_orphans() {
        reason.push(b"this process would be the companion's parent: start it by hand");
        return Started::No;
    }
    let Ok((read, write)) = sys::pipe() else {
        reason.push(b"no pipe to the companion");
        return Started::No;
    };
    let process = sys::getpid();
    let mut started = Started::Answered;
    match sys::fork_unnoticed() {
        Ok(0) => {
            // If another companion watches this process, it must not watch the new companion.
            say_goodbye();
            if sys::fork_unnoticed() == Ok(0) {
                let mut line = Reason::new();
                line.push(STARTING).push_number(u64::from(sys::getpid()));
                write_reason(lock, &line);
                run(&path, directory, sample, process, (write, lock));
            }
            sys::exit(0);
        }
        Ok(child) => {
            sys::wait_unnoticed(child);
            sys::close(write);
            if !hear(read, patience_ms(wish), reason) {
                started = Started::NotYet;
            }
        }
        Err(errno) => {
            sys::close(write);
            reason.push(b"can't fork (errno ").push_number(errno as u64).push(b")");
            started = Started::No;
        }
    }
    sys::close(read);
    started
}

/// Reads the companion's answer: either that it is ready, or why it can't record. Returns false if it has not
/// answered in time.
fn hear(read: i32, patience_ms: i32, reason: &mut Reason) -> bool {
    const PREFIX: &[u8] = b"chase: syscalls are not recorded: ";
    let mut buffer = [0u8; 480];
    let mut len = 0;
    while let Some(free) = buffer.get_mut(len..).filter(|free| !free.is_empty()) {
        if !sys::is_readable(read, patience_ms) {
            return false;
        }
        match sys::read_some(read, free) {
            0 => break,
            more => len += more,
        }
        if buffer.get(..len).is_some_and(|text| text.contains(&b'\n')) {
            break;
        }
    }
    let text = buffer.get(..len).unwrap_or(&[]);
    match text.split(|&byte| byte == b'\n').next().unwrap_or(&[]) {
        b"ready" => {}
        line if line.starts_with(SAMPLES.as_bytes()) => {}
        b"" => {
            reason.push(b"the companion did not answer");
        }
        line => {
            reason.push(line.strip_prefix(PREFIX).unwrap_or(line));
        }
    }
    true
}

/// Finds the companion's executable: beside the library, in the `bin` beside the library's directory, or one level
/// higher (where the libraries of each architecture have a directory of their own). Returns false if there is none.
fn executable(library: &[u8], path: &mut Text<4096>) -> bool {
    let directory = library.get(..library.len() - file_name(library).len()).unwrap_or(b"");
    if directory.is_empty() {
        return false;
    }
    [&b"."[..], b"../bin", b"../../bin"].iter().any(|place| {
        path.clear();
        path.push(directory).push(place).push(NAME);
        sys::is_executable(path.as_c_str())
    })
}

/// Becomes the companion. Keeps nothing of the application's but its limits and its user. A companion that only takes
/// samples watches `process` first.
fn run(
    path: &Text<4096>,
    directory: &[u8],
    sample: &[u8],
    process: u32,
    (ready, lock): (i32, i32),
) -> ! {
    const READY: i32 = 3;
    const LOCK: i32 = 4;
    /// Above the descriptors that are set up below.
    const ASIDE: i32 = 10;
    let mut output = Text::<4096>::new();
    output.push(directory);
    let mut watched = Text::<16>::new();
    watched.push_number(u64::from(process));
    // The path may be relative to the application's working directory.
    let place = sys::open(path.as_c_str(), libc::O_PATH, 0);
    let null = sys::open(c"/dev/null", libc::O_RDWR, 0);
    if let (Ok(place), Ok(null)) = (place, null)
        && let (Ok(place), Ok(null), Ok(ready), Ok(lock)) = (
            sys::duplicate_above(place, ASIDE),
            sys::duplicate_above(null, ASIDE),
            sys::duplicate_above(ready, ASIDE),
            sys::duplicate_above(lock, ASIDE),
        )
    {
        sys::start_session();
        sys::chdir(c"/");
        sys::set_signal_mask(0);
        for standard in 0..READY {
            sys::duplicate_to(null, standard);
        }
        sys::duplicate_to(ready, READY);
        sys::duplicate_to(lock, LOCK);
        sys::close_others(LOCK, place);
        let arguments: [&CStr; 11] = [
            c"chase-companion",
            c"--output",
            output.as_c_str(),
            c"--ready-fd",
            c"3",
            c"--lock-fd",
            c"4",
            c"--watch",
            watched.as_c_str(),
            c"--linger",
            LINGER_S,
        ];
        let mut addresses = [0usize; 12];
        for (address, argument) in addresses.iter_mut().zip(arguments) {
            *address = argument.as_ptr() as usize;
        }
        let mut variable = Text::<64>::new();
        variable.push(b"CHASE_SAMPLE=").push(sample);
        let environment = [variable.as_c_str().as_ptr() as usize, 0];
        sys::execute(place, &addresses, &environment);
        sys::write(READY, b"the companion can't be started\n");
    }
    sys::exit(1);
}

// ---- the hello ----------------------------------------------------------------------------------

/// Mirrors `struct hello` in `companion/bpf/shared.h`, which describes it.
#[repr(C)]
struct Hello {
    version: u32,
    len: u32,
    session: u64,
    tls_offset: i64,
    base: u64,
    mapped: u64,
    path: u64,
    thread_offset: i64,
}

const HELLO: usize = u32::from_le_bytes(*b"CHAS") as usize;

/// Excludes this process from recording: a companion that listens in `directory` stops watching it, and discards what
/// it has recorded of it.
pub(crate) fn decline(directory: &[u8]) {
    if sys::has_seccomp_filter() {
        return;
    }
    let mut file = Text::<4096>::new();
    file.push(directory).push(b"/").push(FILE_NAME.as_bytes());
    let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let Ok(fd) = sys::open(file.as_c_str(), flags, 0) else { return };
    let mut buffer = [0u8; 640];
    if sys::is_own_file(fd)
        && sys::lock_file(fd, libc::LOCK_SH | libc::LOCK_NB) == Err(libc::EWOULDBLOCK)
        && let Some(session) = session(second_line(sys::read_start(fd, &mut buffer)))
    {
        greet(session, &Text::new(), false);
        say_goodbye();
    }
    sys::close(fd);
}

/// Makes the companion watch all threads that existed before this process's hello, or stop watching them. These are
/// stopped; the calling thread is watched.
pub(crate) fn watch_all(on: bool) {
    if !sys::is_confined() {
        sys::control(HELLO + 4, usize::from(on));
    }
}

/// Ends the watching of this thread by a companion.
fn say_goodbye() {
    sys::control(HELLO + 1, 0);
}

/// While this value lives, a companion that already watches this thread counts what the thread does as chase's own:
/// in a fork's child, or after an `exec`. A hello ends that, too.
pub(crate) struct Starting;

impl Starting {
    pub(crate) fn begin() -> Self {
        Self::set(true);
        Self
    }

    /// (A filter of system calls may kill the process for an unexpected one.)
    fn set(is_starting: bool) {
        if !sys::has_seccomp_filter() {
            sys::control(HELLO + 2, usize::from(is_starting));
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        Self::set(false);
    }
}

/// Tells the companion of `session` where this process keeps its contexts and its recording; an empty path says that
/// it has no recording and wants none. If it `narrates`, the companion also reports each of its system calls from
/// then on.
pub(crate) fn greet(session: u64, path: &Text<4096>, narrates: bool) {
    let hello = Hello {
        version: 2,
        len: size_of::<Hello>() as u32,
        session,
        tls_offset: arch::context_offset() as i64,
        base: BASE.load(core::sync::atomic::Ordering::Relaxed) as u64,
        // The recording grows in place, so a context outside of its largest size can only come from a broken process.
        mapped: crate::recording::LARGEST as u64,
        path: path.as_c_str().as_ptr() as u64,
        thread_offset: arch::thread_offset() as i64,
    };
    sys::control(HELLO, &raw const hello as usize);
    if narrates {
        sys::control(HELLO + 3, 0);
    }
}
