//! The companion: another process, which sees by eBPF what system calls are made in which context.
//!
//! The file `companion.session` in the directory of the recordings says which one listens: who holds
//! its lock (`flock`) is the companion, or starts it. The first process of a run takes the lock,
//! starts a companion as nobody's child and hands the lock on to it; others wait for what the file
//! will say. A hello is a `prctl` that the kernel refuses and the companion's program sees
//! (`companion/bpf/shared.h`).

use core::ffi::CStr;

use crate::arch;
use crate::config::Syscalls;
use crate::sys;
use crate::text::{Text, file_name};

/// Why system calls are not recorded, for people.
pub(crate) type Reason = Text<512>;

/// Name of the companion's executable.
const NAME: &[u8] = b"/chase-companion";
/// How long it may take to get ready; a program waits that long to start.
const PATIENCE_MS: i32 = 3_000;
/// Where the program is not to run without it.
const PATIENCE_REQUIRED_MS: i32 = 30_000;
/// Others look so often whether it is.
const PAUSE_MS: i32 = 3;
/// A failure is not tried again by the processes of the same run: for so long.
const FAILURE_HOLDS_S: u64 = 60;

const FILE: &[u8] = b"/companion.session";
/// The first line of the file; the second begins with one of the words below.
const FIRST_LINE: &[u8] = b"chase companion 1";
/// The process that becomes the companion.
const STARTING: &[u8] = b"starting ";
/// The number that goes into the hello.
const SESSION: &[u8] = b"session ";
/// When, and why.
const FAILED: &[u8] = b"failed ";

/// Which companion is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Whether one is.
    pub(crate) wish: Syscalls,
    /// What `CHASE_SAMPLE` says.
    pub(crate) sample: &'a [u8],
    /// Where the recordings are.
    pub(crate) directory: &'a [u8],
    /// Path of this library.
    pub(crate) library: &'a [u8],
}

/// The session of a companion that listens; it is started if need be. Where there is none, `reason` is given.
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
    // It may kill for a call that it does not expect.
    if sys::has_seccomp_filter() {
        reason.push(b"a seccomp filter is in force");
        return None;
    }
    let mut file = Text::<4096>::new();
    file.push(directory).push(FILE);
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
                reason.push(b"the companion does not get ready");
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
    /// Somebody is starting one.
    Later,
    /// The reason is given.
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
    if !text.is_empty() && !text.starts_with(FIRST_LINE) {
        reason.push(b"companion.session is no file of chase's");
        return Found::Nothing;
    }
    let said = second_line(text);
    match locked {
        Err(libc::EWOULDBLOCK) => session(said).map_or(Found::Later, Found::Session),
        Err(_) => {
            reason.push(b"can't lock companion.session");
            Found::Nothing
        }
        Ok(()) if wanted.wish == Syscalls::Auto && has_failed(said, reason) => Found::Nothing,
        Ok(()) if !start(wanted, fd, reason) => Found::Nothing,
        Ok(()) => {
            let said = second_line(sys::read_start(fd, &mut buffer));
            if let (true, Some(session)) = (reason.as_bytes().is_empty(), session(said)) {
                return Found::Session(session);
            }
            if reason.as_bytes().is_empty() {
                reason.push(b"the companion has ended at once");
            }
            // It has the lock too, if it hangs.
            if let Some(process) = said.strip_prefix(STARTING).and_then(number) {
                sys::kill(process as i32);
            }
            let mut line = Reason::new();
            line.push(FAILED).push_number(now_s()).push(b" ").push(reason.as_bytes());
            say(fd, &line);
            Found::Nothing
        }
    }
}

fn patience_ms(wish: Syscalls) -> i32 {
    if wish == Syscalls::Require { PATIENCE_REQUIRED_MS } else { PATIENCE_MS }
}

/// What the file says; nothing while somebody writes it.
fn second_line(text: &[u8]) -> &[u8] {
    let mut lines = text.split(|&byte| byte == b'\n').skip(1);
    // Behind the end of the last line, there is an empty piece.
    lines.next().filter(|_| lines.next().is_some()).unwrap_or(&[])
}

fn session(said: &[u8]) -> Option<u64> {
    said.strip_prefix(SESSION).and_then(number)
}

/// Whether one failed to start a short time ago, and why.
fn has_failed(said: &[u8], reason: &mut Reason) -> bool {
    let Some(failure) = said.strip_prefix(FAILED) else { return false };
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

fn number(digits: &[u8]) -> Option<u64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// Makes this the second line of the file.
///
/// The first stays: a file that was emptied and written again is written to the disk at once by
/// some file systems (ext4), and its blocks are freed the next time, which may take a second.
fn say(fd: i32, line: &Reason) {
    // Beyond the limit of a file's size a write raises a signal.
    if sys::limit(libc::RLIMIT_FSIZE) < 4096 {
        return;
    }
    let mut text = Text::<640>::new();
    text.push(FIRST_LINE).push(b"\n");
    let first = text.as_bytes().len();
    sys::write_at(fd, text.as_bytes(), 0);
    if sys::ftruncate(fd, first).is_ok() {
        text.clear();
        text.push(line.as_bytes()).push(b"\n");
        sys::write_at(fd, text.as_bytes(), first);
    }
}

// ---- starting one -------------------------------------------------------------------------------

/// Starts a companion, which gets the lock of `lock`, and waits until it is ready or has said why
/// not: then there is a `reason`. False if none was started.
fn start(wanted: Wanted<'_>, lock: i32, reason: &mut Reason) -> bool {
    let Wanted { wish, directory, library, sample } = wanted;
    let mut path = Text::new();
    if !executable(library, &mut path) {
        reason.push(b"there is no chase-companion beside ").push(library);
        return false;
    }
    if !sys::may_load_programs() && !sys::has_file_capabilities(path.as_c_str()) {
        reason.push(b"no privilege: be root, or setcap cap_bpf,cap_perfmon+ep ");
        reason.push(path.as_bytes());
        return false;
    }
    if sys::adopts_orphans() {
        reason.push(b"this process would be the companion's parent: start it by hand");
        return false;
    }
    let Ok((read, write)) = sys::pipe() else {
        reason.push(b"no pipe to the companion");
        return false;
    };
    let forked = sys::fork_unnoticed();
    match forked {
        Ok(0) => {
            // Where another companion watches this run, it is not to watch that one.
            say_goodbye();
            if sys::fork_unnoticed() == Ok(0) {
                let mut line = Reason::new();
                line.push(STARTING).push_number(u64::from(sys::getpid()));
                say(lock, &line);
                run(&path, directory, sample, write, lock);
            }
            sys::exit(0);
        }
        Ok(child) => {
            sys::wait_unnoticed(child);
            sys::close(write);
            hear(read, patience_ms(wish), reason);
        }
        Err(errno) => {
            sys::close(write);
            reason.push(b"can't fork (errno ").push_number(errno as u64).push(b")");
        }
    }
    sys::close(read);
    forked.is_ok()
}

/// What the companion says: nothing else than that it is ready, or why not.
fn hear(read: i32, patience_ms: i32, reason: &mut Reason) {
    const PREFIX: &[u8] = b"chase: syscalls are not recorded: ";
    let mut buffer = [0u8; 480];
    let mut len = 0;
    while let Some(free) = buffer.get_mut(len..).filter(|free| !free.is_empty()) {
        if !sys::is_readable(read, patience_ms) {
            break;
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
        b"" => {
            reason.push(b"the companion did not answer");
        }
        line => {
            reason.push(line.strip_prefix(PREFIX).unwrap_or(line));
        }
    }
}

/// The companion's executable: beside the library, or in the `bin` beside its directory.
fn executable(library: &[u8], path: &mut Text<4096>) -> bool {
    let directory = library.get(..library.len() - file_name(library).len()).unwrap_or(b"");
    [&b"."[..], b"../bin"].iter().any(|place| {
        path.clear();
        path.push(directory).push(place).push(NAME);
        sys::is_executable(path.as_c_str())
    })
}

/// Becomes the companion, with nothing of the application's but its limits and its user.
fn run(path: &Text<4096>, directory: &[u8], sample: &[u8], ready: i32, lock: i32) -> ! {
    const READY: i32 = 3;
    const LOCK: i32 = 4;
    /// Above the descriptors that are set up.
    const ASIDE: i32 = 10;
    let mut output = Text::<4096>::new();
    output.push(directory);
    // The path may be relative to where the application is.
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
        let arguments: [&CStr; 7] = [
            c"chase-companion",
            c"--output",
            output.as_c_str(),
            c"--ready-fd",
            c"3",
            c"--lock-fd",
            c"4",
        ];
        let mut addresses = [0usize; 8];
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

/// As `struct hello` in `companion/bpf/shared.h`, which describes it.
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

/// No companion watches this thread any more.
fn say_goodbye() {
    sys::control(HELLO + 1, 0);
}

/// Tells the companion of `session` where this process keeps its contexts and its recording.
pub(crate) fn greet(session: u64, path: &Text<4096>) {
    let hello = Hello {
        version: 2,
        len: size_of::<Hello>() as u32,
        session,
        tls_offset: arch::context_offset() as i64,
        base: arch::BASE.load(core::sync::atomic::Ordering::Relaxed) as u64,
        // It grows where it is, and a context that is not in it can only come from a broken process.
        mapped: crate::recording::LARGEST as u64,
        path: path.as_c_str().as_ptr() as u64,
        thread_offset: arch::thread_offset() as i64,
    };
    sys::control(HELLO, &raw const hello as usize);
}
