//! The companion: another process, which observes by eBPF what system calls are made in which context.
//!
//! The file `companion.session` in the directory of the recordings says which companion listens. The process
//! that holds its lock (`flock`) is the companion, or is starting it. The first process of a run takes the lock, starts a companion
//! as an orphan and passes the lock on to it; other processes wait for the file's contents (`chase_logic::handshake`). A process makes itself
//! known by a handshake, the *hello*: a `prctl` that the kernel refuses and that the companion's program observes
//! (`companion/bpf/shared.h`).

use core::ffi::CStr;

use chase_format::requests;
use chase_format::session::FILE_NAME;

use crate::abi::BASE;
use crate::arch;
use crate::sys;
use chase_logic::config::{Syscalls, Told};
pub(crate) use chase_logic::handshake::Reason;
use chase_logic::handshake::{
    Hold, Patience, Seeker, SessionFile, find as look_for, listening, write_line,
};
use chase_logic::session::STARTING;
use chase_logic::text::{Text, directory_of};

/// The name of the companion's executable.
const NAME: &[u8] = b"/chase-companion";
/// How long a program waits until the companion is ready, or has said why it can't record. Getting ready mostly takes
/// longer; then it watches the programs that start later. With what starting it costs, a program begins at most 10 ms later.
const PATIENCE: Patience = Patience { ms: 9, is_required: false };
/// The same where the program must not run without the companion.
const PATIENCE_REQUIRED: Patience = Patience { ms: 30_000, is_required: true };
/// The same where the program runs: the launcher, which has waited for one, gives up after twice as long. (That one may leave just now.)
const PATIENCE_LATE: Patience = Patience { ms: 5_000, is_required: true };

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
    let patience = match wanted.wish {
        Syscalls::Off => {
            reason.push(b"CHASE_SYSCALLS=off");
            return None;
        }
        Syscalls::Unknown => {
            reason.push(b"CHASE_SYSCALLS must be off, auto or require");
            return None;
        }
        Syscalls::Auto => PATIENCE,
        Syscalls::Require if arch::is_late() => PATIENCE_LATE,
        Syscalls::Require => PATIENCE_REQUIRED,
    };
    // Such a filter may kill the process for an unexpected system call.
    if sys::has_seccomp_filter() {
        reason.push(b"a seccomp filter is in force");
        return None;
    }
    look_for(&wanted, patience, reason)
}

/// The file of the session, open until this is dropped.
pub(crate) struct Open(i32);

impl Open {
    fn new(path: &Text<4096>, more_flags: i32) -> Option<Self> {
        let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_NONBLOCK | more_flags;
        sys::open(path.as_c_str(), flags, 0o600).ok().map(Self)
    }
}

/// Returns the path of a directory's session.
fn path_in(directory: &[u8]) -> Text<4096> {
    let mut path = Text::new();
    path.push(directory).push(b"/").push(FILE_NAME.as_bytes());
    path
}

impl Drop for Open {
    fn drop(&mut self) {
        sys::close(self.0);
    }
}

impl SessionFile for Open {
    type Error = i32;

    fn is_own(&self) -> bool {
        sys::is_own_file(self.0)
    }

    fn lock(&self, how: Hold) -> Result<bool, i32> {
        let how = if how == Hold::Shared { libc::LOCK_SH } else { libc::LOCK_EX };
        match sys::lock_file(self.0, how | libc::LOCK_NB) {
            Ok(()) => Ok(true),
            Err(libc::EWOULDBLOCK) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    fn unlock(&self) {
        let _ = sys::lock_file(self.0, libc::LOCK_UN);
    }

    fn read_start<'a>(&self, buffer: &'a mut [u8]) -> &'a [u8] {
        let len = sys::read_at(self.0, buffer, 0);
        buffer.get(..len).unwrap_or(&[])
    }

    fn write_at(&self, bytes: &[u8], offset: usize) -> Result<(), i32> {
        // A write beyond the file size limit raises a signal.
        if sys::limit(libc::RLIMIT_FSIZE) < 4096 {
            return Err(libc::EFBIG);
        }
        sys::write_at(self.0, bytes, offset)
    }

    fn cut(&self, len: usize) -> Result<(), i32> {
        sys::ftruncate(self.0, len)
    }
}

impl Seeker for Wanted<'_> {
    type File = Open;
    type Answer = Answer;

    fn open(&self, reason: &mut Reason) -> Option<Open> {
        let path = path_in(self.directory);
        let file = Open::new(&path, libc::O_CREAT);
        if file.is_none() {
            reason.push(b"can't open ").push(path.as_bytes());
        }
        file
    }

    fn now_ms(&self) -> u64 {
        sys::clock_ns(libc::CLOCK_MONOTONIC) / 1_000_000
    }

    fn now_s(&self) -> u64 {
        sys::clock_ns(libc::CLOCK_REALTIME) / 1_000_000_000
    }

    fn pause_ms(&self, ms: u64) {
        sys::pause_ms(ms as i32);
    }

    fn start(&self, file: &Open, reason: &mut Reason) -> Option<Answer> {
        start(*self, file, reason)
    }

    fn hear(&self, answer: &Answer, limit_ms: u64, buffer: &mut [u8]) -> Option<usize> {
        sys::is_readable(answer.0, limit_ms as i32).then(|| sys::read_some(answer.0, buffer))
    }

    fn kill(&self, process: i32) {
        sys::kill(process);
    }
}

// ---- starting one -------------------------------------------------------------------------------

/// What a companion answers on: the end of a pipe, closed when this is dropped.
pub(crate) struct Answer(i32);

impl Drop for Answer {
    fn drop(&mut self) {
        sys::close(self.0);
    }
}

/// Starts a companion, and passes it the lock on `lock`. If that is not possible, says why in `reason`.
fn start(wanted: Wanted<'_>, lock: &Open, reason: &mut Reason) -> Option<Answer> {
    let Wanted { directory, library, sample, .. } = wanted;
    let mut path = Text::new();
    if !executable(library, &mut path) {
        reason.push(b"there is no chase-companion beside ").push(library);
        return None;
    }
    if sys::adopts_orphans() {
        reason.push(b"this process would be the companion's parent: start it by hand");
        return None;
    }
    let Ok((read, write)) = sys::pipe() else {
        reason.push(b"no pipe to the companion");
        return None;
    };
    let answer = Answer(read);
    let process = sys::getpid();
    let forked = sys::fork_unnoticed();
    if forked == Ok(0) {
        // If another companion watches this process, it must not watch the new companion.
        say_goodbye();
        if sys::fork_unnoticed() == Ok(0) {
            let mut line = Reason::new();
            line.push(STARTING).push_number(u64::from(sys::getpid()));
            let _ = write_line(lock, line.as_bytes());
            run(&path, directory, sample, process, (write, lock.0));
        }
        sys::exit(0);
    }
    sys::close(write);
    match forked {
        Ok(child) => {
            sys::wait_unnoticed(child);
            Some(answer)
        }
        Err(errno) => {
            reason.push(b"can't fork (errno ").push_number(errno as u64).push(b")");
            None
        }
    }
}

/// Finds the companion's executable: beside the library, in the `bin` beside the library's directory, or one level
/// higher (where the libraries of each architecture have a directory of their own). Returns false if there is none.
fn executable(library: &[u8], path: &mut Text<4096>) -> bool {
    let directory = directory_of(library);
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
    own: u64,
    own_end: u64,
}

unsafe extern "C" {
    /// This library's beginning and end, as defined by the linker.
    static __ehdr_start: u8;
    static _end: u8;
}

/// Excludes this process from recording: a companion that listens in `directory` stops watching it, and discards what
/// it has recorded of it.
pub(crate) fn decline(directory: &[u8]) {
    if sys::has_seccomp_filter() {
        return;
    }
    let session = Open::new(&path_in(directory), 0).and_then(|file| listening(&file));
    if let Some(session) = session {
        greet(session, &Text::new(), Told::Nothing);
        say_goodbye();
    }
}

/// Makes the companion watch all threads that existed before this process's hello, or stop watching them. These are
/// stopped; the calling thread is watched.
pub(crate) fn watch_all(on: bool) {
    if !sys::is_confined() {
        sys::prctl(requests::ATTACHED, usize::from(on));
    }
}

/// Ends the watching of this thread by a companion.
fn say_goodbye() {
    sys::prctl(requests::GOODBYE, 0);
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
            sys::prctl(requests::STARTING, usize::from(is_starting));
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        Self::set(false);
    }
}

/// Tells the companion of `session` where this process keeps its contexts and its recording; an empty path says that
/// it has no recording and wants none. From then on, the companion also reports what is to be `told` of its system calls.
pub(crate) fn greet(session: u64, path: &Text<4096>, told: Told) {
    let hello = Hello {
        version: requests::HELLO_VERSION,
        len: size_of::<Hello>() as u32,
        session,
        tls_offset: arch::context_offset() as i64,
        base: BASE.load(core::sync::atomic::Ordering::Relaxed) as u64,
        // The recording grows in place, so a context outside of its largest size can only come from a broken process.
        mapped: crate::recording::LARGEST as u64,
        path: path.as_c_str().as_ptr() as u64,
        thread_offset: arch::thread_offset() as i64,
        own: &raw const __ehdr_start as u64,
        own_end: &raw const _end as u64,
    };
    sys::prctl(requests::HELLO, &raw const hello as usize);
    if told != Told::Nothing {
        sys::prctl(requests::NARRATE, usize::from(told == Told::CallsAlone));
    }
}
