//! The life of the process: its recording, its forks, its end.

mod fork;
mod title;

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use chase_format::layout::{
    ChunkKind, ClockPair, END_EXEC, END_EXIT, Header, ORIGIN_FORK, PAGE, READER_MIN,
    READER_MIN_OF_SITES, VERSION,
};

use self::fork::{after_fork_in_child, after_fork_in_parent, before_fork};
pub(crate) use self::fork::{catch_up, notice_fork};
use crate::lock::{Fork, Held, Lock};
use crate::recording::Refused;
use crate::sampling::Cost;
use crate::signals::SignalsBlocked;
use crate::{
    arch, clock, companion, cost, fork_word, loading, marks, recording, sampling, sites, sys,
    thread,
};
use chase_logic::config::Told;
use chase_logic::proc::process_start;
use chase_logic::recordings::set_path;
use chase_logic::text::Text;

/// What is known of the process since its start, for its recording and those of its children.
pub(crate) struct Process {
    pub(crate) directory: Text<4096>,
    pub(crate) executable: Text<4096>,
    /// Key and value strings, each terminated by NUL.
    pub(crate) meta: Text<8192>,
    pub(crate) cost: Cost,
    pub(crate) first_pair: ClockPair,
    /// Whether its forks are not recorded (`CHASE_FOLLOW`).
    pub(crate) forks_are_left_out: bool,
    pub(crate) boot_id: [u8; 16],
    /// The start time of the process that owns the recording, as in its header.
    start: u64,
    /// What is recorded of single system calls.
    pub(crate) told: Told,
    /// The companion's session.
    pub(crate) session: Option<u64>,
    /// The recording's path, and a buffer for reading files: too large for the stack of a thread that forks.
    pub(crate) path: Text<4096>,
    buffer: [u8; 1024],
}

impl Process {
    /// Clears what is known of the process before another recording of the same process image.
    pub(crate) fn forget(&mut self) {
        self.directory.clear();
        self.executable.clear();
        self.meta.clear();
        self.session = None;
    }

    /// Adds an entry to what is stored of the process in its recordings.
    pub(crate) fn note(&mut self, key: &[u8], value: &[u8]) {
        self.meta.push(key).push(b"\0").push(value).push(b"\0");
    }

    /// The same, also in the recording that is open.
    pub(crate) fn note_in_recording(&mut self, key: &[u8], value: &[u8]) {
        let before = self.meta.as_bytes().len();
        self.note(key, value);
        let _signals = SignalsBlocked::new();
        let entry = self.meta.as_bytes().get(before..).unwrap_or(&[]);
        recording::write_chunk(ChunkKind::Meta, entry);
    }
}

// (All zero, so that a process gets pages of it as it uses them, and no copies of the file's.)
static PROCESS: Lock<Process> = Lock::new(Process {
    directory: Text::new(),
    executable: Text::new(),
    meta: Text::new(),
    cost: Cost::NONE,
    first_pair: ClockPair { ticks: 0, monotonic_ns: 0, realtime_ns: 0 },
    forks_are_left_out: false,
    boot_id: [0; 16],
    start: 0,
    told: Told::Nothing,
    session: None,
    path: Text::new(),
    buffer: [0; 1024],
});

/// The process that owns the recording; 0 if there is none.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Locks and returns the process's data. Held during the start, and while a fork's child gets its recording.
pub(crate) fn hold() -> Held<'static, Process> {
    PROCESS.hold()
}

/// Gets the pages of the process's data in one go, which takes less time than a fault for each.
pub(crate) fn populate() {
    let (start, end) = (&raw const PROCESS as usize, (&raw const PROCESS).wrapping_add(1) as usize);
    let start = start & !(PAGE - 1);
    let len = end.next_multiple_of(PAGE) - start;
    // (Older kernels can't: then there are faults.)
    let _ = sys::advise(ptr::with_exposed_provenance_mut(start), len, sys::MADV_POPULATE_WRITE);
}

/// Handles the lock in a fork, which waits until chase has started in the process, or has left it.
fn fork(moment: Fork) {
    PROCESS.fork(moment);
}

/// Creates this process's recording, with everything that does not depend on what the process does.
pub(crate) fn open_recording(this: &mut Process, origin: u32) -> Result<(), Refused> {
    let pid = sys::getpid();
    let (parent, group, session) = sys::family();
    // (After an exec, the process's first pair is a moment old.)
    let start = if origin == ORIGIN_FORK { clock::pair() } else { this.first_pair };
    // SAFETY: all-zero is a valid header.
    let mut header: Header = unsafe { core::mem::zeroed() };
    header.version = VERSION;
    header.reader_min = if sites::are_on() { READER_MIN_OF_SITES } else { READER_MIN };
    header.machine = arch::MACHINE;
    header.header_len = size_of::<Header>() as u32;
    header.boot_id = this.boot_id;
    header.pid = pid;
    (header.parent_pid, header.process_group, header.session) = (parent, group, session);
    if origin == ORIGIN_FORK && this.start != 0 {
        // The parent is the process that forked, even if it has ended since, or is in another pid namespace.
        (header.parent_pid, header.parent_start) = (OWNER.load(Ordering::Relaxed), this.start);
    }
    this.start = process_start(sys::read_file(c"/proc/self/stat", &mut this.buffer));
    header.process_start = this.start;
    header.origin = origin;
    header.clock_kind = clock::kind();
    // A child's clock has run since its parent's start, so its rate is known at once.
    (header.clock_start, header.clock_latest) = (start, this.first_pair);
    this.cost.put_into(&mut header);
    header.timing = sampling::mode();
    header.condition_words = recording::condition_words();
    const MOST_IMAGES: u64 = 10_000;
    for number in 0..MOST_IMAGES {
        let path = &mut this.path;
        let (directory, executable) = (this.directory.as_bytes(), this.executable.as_bytes());
        set_path(path, directory, executable, pid, number);
        if path.is_cut() {
            return Err(Refused {
                doing: "the recording's path is too long",
                errno: libc::ENAMETOOLONG,
            });
        }
        match recording::create(path, &header) {
            Err(Refused { errno: libc::EEXIST, .. }) => {}
            Err(refused) => return Err(refused),
            Ok(()) => {
                OWNER.store(pid, Ordering::Relaxed);
                fork_word::claim();
                thread::renew_events();
                let _signals = SignalsBlocked::new();
                marks::renew();
                sites::renew();
                recording::write_chunk(ChunkKind::Meta, this.meta.as_bytes());
                return Ok(());
            }
        }
    }
    Err(Refused { doing: "too many recordings of this process", errno: libc::EEXIST })
}

/// Tells the companion of this process and its recording. Returns false if there is no companion.
pub(crate) fn greet_companion(this: &Process) -> bool {
    let session = this.session.filter(|_| !sys::is_confined());
    session.inspect(|&session| companion::greet(session, &this.path, this.told)).is_some()
}

type ExitHandler = unsafe extern "C" fn(i32, *mut c_void);
type OnExit = unsafe extern "C" fn(ExitHandler, *mut c_void) -> i32;
type ForkHandler = unsafe extern "C" fn();
type RegisterAtFork =
    unsafe extern "C" fn(ForkHandler, ForkHandler, ForkHandler, *const c_void) -> i32;

/// Registers handlers of forks and of the exit. As the first to be registered, chase's handlers run before all others
/// in a fork's child, and after all others at the exit.
pub(crate) fn watch_process() {
    let own = (&raw const PROCESS).cast();
    // SAFETY: the functions are the C library's, of these types. The handlers stay loaded; the last argument names the
    // object that they are in.
    unsafe {
        if let Some(on_exit) = loading::function::<OnExit>(c"on_exit", None) {
            on_exit(exited, ptr::null_mut());
        }
        if let Some(at_fork) = loading::function::<RegisterAtFork>(c"__register_atfork", None) {
            at_fork(before_fork, after_fork_in_parent, after_fork_in_child, own);
        }
    }
}

/// Called before the process gives up the right to some system calls: the recording makes none from here on.
/// `without_clock`: it may give up reading the clock, too.
pub(crate) fn confine(without_clock: bool) {
    if !recording::is_open() {
        // None begins any more, either.
        sys::confine();
        return;
    }
    if !sys::is_confined() {
        recording::note_latest();
    }
    if without_clock {
        clock::freeze();
    }
    let _signals = SignalsBlocked::new();
    // With this held, no thread is changing GOT entries.
    let _patching = loading::hold();
    recording::confine();
}

/// Marks this memory as this process's, which has no recording yet.
pub(crate) fn claim() {
    OWNER.store(sys::getpid(), Ordering::Relaxed);
    fork_word::claim();
}

/// Whether this process owns the recording, rather than being a child that shares its memory.
pub(crate) fn is_own() -> bool {
    sys::is_confined() || OWNER.load(Ordering::Relaxed) == sys::getpid()
}

/// Completes the recording before the process, or its image, ends in this way. A child of `vfork` is not the process.
pub(crate) fn end(kind: u32, status: i32) {
    let confined = sys::is_confined();
    if !recording::is_open() || !is_own() || recording::end_if_gone(kind, status) {
        return;
    }
    let spent = cost::Start::begin();
    sampling::finish(kind == END_EXIT);
    if let Some(thread) = thread::current() {
        thread.subtract_moved_calls();
        if !confined {
            thread.note_name();
            thread.ask_between();
            thread.note_cpu();
            recording::note_names();
        }
    }
    if !confined && kind != END_EXEC {
        title::record();
    }
    if !confined {
        recording::note_latest();
    }
    let header = recording::header();
    // SAFETY: the header is in the first page of the mapping.
    unsafe {
        (*header).end_status = status;
        (*header).end_ticks = clock::now();
        AtomicU32::from_ptr(&raw mut (*header).end_kind).store(kind, Ordering::Release);
    }
    if !confined {
        recording::trim();
        drop(spent);
        cost::note_process();
    }
}

/// The exit handler that runs last.
unsafe extern "C" fn exited(status: i32, _: *mut c_void) {
    notice_fork();
    end(END_EXIT, status);
}
