//! The life of the process: its start, its forks, its end.

mod arguments;
mod auxiliary;
mod directories;
mod follow;
mod fork;
mod memory;
mod roots;

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use chase_format::layout::{
    ChunkKind, END_EXIT, EXTENSION, Header, ORIGIN_EXEC, ORIGIN_FORK, READER_MIN, VERSION,
};

use self::auxiliary::Auxiliary;
use self::directories::make_directories;
pub(crate) use self::fork::notice_fork;
use self::fork::{after_fork_in_child, after_fork_in_parent, before_fork};
use self::memory::{claim_memory, is_to_be_parted};
pub(crate) use self::memory::{knows_its_memory, memory_is_ours};
use crate::calibrate::Cost;
use crate::companion::Starting;
use crate::config::{Config, Syscalls};
use crate::cost::{self, Spent};
use crate::elf::Image;
use crate::recording::Refused;
use crate::signals::SignalsBlocked;
use crate::text::{Text, c_bytes, file_name};
use crate::thread::Origin;
use crate::{arch, calibrate, clock, companion, loading, maps, recording, sampling, sys, thread};

/// Said whether or not the user wants to be told of anything: the run is not what was asked for.
const TIMING_UNKNOWN: &[u8] =
    b"chase: CHASE_TIMING must be adaptive, all or count; all calls are timed\n";
const DEFAULT_OUTPUT: &[u8] = b"chase.data";

/// What is known of the process from its start, for its recording and its children's.
struct Process {
    directory: Text<4096>,
    executable: Text<4096>,
    /// Key and value strings, each ended by NUL.
    meta: Text<8192>,
    cost: Cost,
    first_pair: chase_format::layout::ClockPair,
    config: Config,
    boot_id: [u8; 16],
    /// Start of the process that the recording belongs to, as in its header.
    start: u64,
    /// The companion's session.
    session: Option<u64>,
    /// Where the recording is put, and room to read a file: too large for the stack of a thread
    /// that forks.
    path: Text<4096>,
    buffer: [u8; 1024],
}

struct Shared(UnsafeCell<Process>);
// SAFETY: it is written before there is a second thread, and then only read.
unsafe impl Sync for Shared {}

static PROCESS: Shared = Shared(UnsafeCell::new(Process {
    directory: Text::new(),
    executable: Text::new(),
    meta: Text::new(),
    cost: Cost::NONE,
    first_pair: chase_format::layout::ClockPair { ticks: 0, monotonic_ns: 0, realtime_ns: 0 },
    config: Config::DEFAULT,
    boot_id: [0; 16],
    start: 0,
    session: None,
    path: Text::new(),
    buffer: [0; 1024],
}));

/// The process that the recording belongs to; 0 if there is none.
static OWNER: AtomicU32 = AtomicU32::new(0);

fn process() -> &'static mut Process {
    // SAFETY: see `Shared`.
    unsafe { &mut *PROCESS.0.get() }
}

/// The library's constructor: runs before those of all other objects (`-z initfirst`).
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(i32, *const usize, *const usize) = start;

extern "C" fn start(argument_count: i32, arguments: *const usize, environment: *const usize) {
    if !arguments::are_those_of_glibc(argument_count, arguments, environment) {
        return loading::find_real();
    }
    // SAFETY: the dynamic linker passes what the kernel has put on the stack: the environment ends
    // with null, and behind it is the auxiliary vector.
    let (config, auxiliary) =
        unsafe { (Config::read(environment), Auxiliary::behind(environment)) };
    if auxiliary.secure {
        return loading::find_real();
    }
    let starting = (config.syscalls != Syscalls::Off).then(Starting::begin);
    let spent = Spent::now();
    let this = process();
    this.config = config;
    this.first_pair = {
        clock::choose();
        clock::pair()
    };
    clock::begin(&this.first_pair);
    let mut buffer = [0u8; 4095];
    let executable = sys::read_link(c"/proc/self/exe", &mut buffer);
    let executable =
        if executable.is_empty() { c_bytes(auxiliary.executable_name) } else { executable };
    this.executable.push(executable);
    if !follow::is_wanted(config.follow, executable, argument_count, arguments) {
        if config.syscalls != Syscalls::Off {
            find_directory(this);
            companion::decline(this.directory.as_bytes());
        }
        return loading::find_real();
    }
    let Some(image) = auxiliary.executable_image() else { return };
    roots::hide_own();
    arch::connect_pads();
    if !loading::survey(image, auxiliary.vdso, process().executable.as_bytes(), config) {
        return;
    }
    this.boot_id = boot_id();
    fill_meta(this, argument_count, arguments);
    find_directory(this);
    let mut opened = open_recording(ORIGIN_EXEC);
    if let Err(Refused { errno: libc::ENOENT, .. }) = opened {
        make_directories(&this.directory);
        opened = open_recording(ORIGIN_EXEC);
    }
    if let Err(refused) = opened {
        tell(&config, b"nothing is recorded: ", &refused);
        if config.syscalls == Syscalls::Require {
            sys::exit(1);
        }
        return;
    }
    find_companion(this);
    sampling::choose(config.timing, this.session.is_some());
    // SAFETY: the header is in the first page of the mapping.
    unsafe { (*recording::header()).timing = sampling::mode() };
    thread::watch_ends(loading::find);
    let Some(main) = thread::register(&Origin::MAIN) else { return };
    this.cost = calibrate::measure(main);
    sampling::note_cost(&this.cost, main);
    // SAFETY: the header is in the first page of the mapping, and there is one thread.
    this.cost.tell(unsafe { &mut *recording::header() });
    watch_process();
    loading::hook_all();
    clock::note_latest();
    cost::add_start(spent.with_loading_ns());
    if greet_companion(this) {
        core::mem::forget(starting);
    }
    if config.timing_is_unknown {
        sys::write_stderr(TIMING_UNKNOWN);
    }
    if config.verbose {
        let mut line = Text::<4352>::new();
        line.push(b"chase: recording to ").push(this.path.as_bytes()).push(b"\n");
        sys::write_stderr(line.as_bytes());
    }
}

fn tell(config: &Config, what: &[u8], refused: &Refused) {
    if config.verbose || config.syscalls == Syscalls::Require {
        let mut line = Text::<512>::new();
        line.push(b"chase: ").push(what).push(refused.doing.as_bytes());
        line.push(b" (errno ").push_number(refused.errno as u64).push(b")\n");
        sys::write_stderr(line.as_bytes());
    }
}

/// The executable, and the start of the vDSO, by what the kernel tells of the process.
pub(crate) fn executable() -> Option<(Image, usize)> {
    let auxiliary = Auxiliary::read();
    Some((auxiliary.executable_image()?, auxiliary.vdso))
}

// ---- where to, and what of ----------------------------------------------------------------------

fn fill_meta(this: &mut Process, argument_count: i32, arguments: *const usize) {
    let names = sys::system_names();
    let mut buffer = [0u8; 4096];
    let directory = sys::working_directory(&mut buffer);
    let c_field = |field: &[libc::c_char; 65]| {
        // SAFETY: the kernel ends its names with NUL.
        unsafe { CStr::from_ptr(field.as_ptr()) }.to_bytes()
    };
    let meta = &mut this.meta;
    let mut entry = |key: &[u8], value: &[u8]| {
        meta.push(key).push(b"\0").push(value).push(b"\0");
    };
    entry(b"executable", this.executable.as_bytes());
    entry(b"directory", directory);
    entry(b"host", c_field(&names.nodename));
    entry(b"kernel", c_field(&names.release));
    entry(b"writer", concat!("chase ", env!("CARGO_PKG_VERSION")).as_bytes());
    meta.push(b"command\0");
    for i in 0..argument_count.max(0) as usize {
        // SAFETY: there are as many arguments.
        let argument = c_bytes(unsafe { *arguments.add(i) });
        meta.push(if i > 0 { b"\x1f" } else { b"" }).push(argument);
    }
    meta.push(b"\0");
}

/// The directory for recordings, absolute. A relative one is looked for where the parent writes
/// its recording, so that a run's recordings stay together wherever its processes go.
fn find_directory(this: &mut Process) {
    let output = this.config.output;
    let relative = if output.is_empty() { DEFAULT_OUTPUT } else { output };
    let directory = &mut this.directory;
    if relative.first() == Some(&b'/') {
        directory.push(relative);
        return;
    }
    let (parent, ..) = sys::family();
    let mut maps_path = Text::<32>::new();
    maps_path.push(b"/proc/").push_number(u64::from(parent)).push(b"/maps");
    maps::for_each_line(maps_path.as_c_str(), |line| {
        let Some(path) = recording_in(line) else { return false };
        let name_len = file_name(path).len() + 1;
        let parent_directory = path.get(..path.len().saturating_sub(name_len)).unwrap_or(b"");
        if parent_directory.ends_with(relative) {
            directory.push(parent_directory);
        }
        true
    });
    if directory.as_bytes().is_empty() {
        let mut buffer = [0u8; 4096];
        directory.push(sys::working_directory(&mut buffer)).push(b"/").push(relative);
    }
}

/// The path in a line of `maps`, if it is that of a recording.
fn recording_in(line: &[u8]) -> Option<&[u8]> {
    let path = line.get(line.iter().position(|&byte| byte == b'/')?..)?;
    let stem = file_name(path).strip_suffix(EXTENSION.as_bytes())?;
    stem.ends_with(b".").then_some(path)
}

/// Creates this process's recording, with everything in it that does not depend on what it does.
fn open_recording(origin: u32) -> Result<(), Refused> {
    let this = process();
    let pid = sys::getpid();
    let (parent, group, session) = sys::family();
    let start = clock::pair();
    // SAFETY: all-zero is a valid header.
    let mut header: Header = unsafe { core::mem::zeroed() };
    header.version = VERSION;
    header.reader_min = READER_MIN;
    header.machine = arch::MACHINE;
    header.header_len = size_of::<Header>() as u32;
    header.boot_id = this.boot_id;
    header.pid = pid;
    (header.parent_pid, header.process_group, header.session) = (parent, group, session);
    if origin == ORIGIN_FORK && this.start != 0 {
        // That is who forked, even if it has ended since, or is in another pid namespace.
        (header.parent_pid, header.parent_start) = (OWNER.load(Ordering::Relaxed), this.start);
    }
    this.start = process_start(&mut this.buffer);
    header.process_start = this.start;
    header.origin = origin;
    header.clock_kind = clock::kind();
    // A child's clock has run since its parent's start, which makes its rate known at once.
    header.clock_start = if origin == ORIGIN_FORK { start } else { this.first_pair };
    header.clock_latest = if origin == ORIGIN_FORK { this.first_pair } else { start };
    this.cost.tell(&mut header);
    header.timing = sampling::mode();
    const MOST_IMAGES: u64 = 10_000;
    for number in 0..MOST_IMAGES {
        let path = &mut this.path;
        path.clear();
        path.push(this.directory.as_bytes()).push(b"/").push(file_name(this.executable.as_bytes()));
        path.push(b".").push_number(u64::from(pid));
        if number > 0 {
            path.push(b".").push_number(number);
        }
        path.push(b".").push(EXTENSION.as_bytes());
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
                claim_memory();
                let _signals = SignalsBlocked::new();
                recording::write_chunk(ChunkKind::Meta, this.meta.as_bytes());
                return Ok(());
            }
        }
    }
    Err(Refused { doing: "too many recordings of this process", errno: libc::EEXIST })
}

/// Finds or starts a companion, and notes what came of it.
fn find_companion(this: &mut Process) {
    let wish = this.config.syscalls;
    let mut reason = companion::Reason::new();
    let wanted = companion::Wanted {
        wish,
        sample: this.config.sample,
        directory: this.directory.as_bytes(),
        library: loading::library_path(),
    };
    this.session = companion::find(wanted, &mut reason);
    if this.session.is_none() && !sys::has_seccomp_filter() {
        thread::start_asking();
    }
    let found = if this.session.is_some() { &b"on"[..] } else { reason.as_bytes() };
    // Of the recording, and of those of this process's forks.
    let mut entry = Text::<640>::new();
    entry.push(b"syscalls\0").push(found).push(b"\0");
    this.meta.push(entry.as_bytes());
    {
        let _signals = SignalsBlocked::new();
        recording::write_chunk(ChunkKind::Meta, entry.as_bytes());
    }
    let required = wish == Syscalls::Require;
    if this.session.is_none() && (this.config.verbose || required) {
        let mut line = Text::<640>::new();
        line.push(b"chase: syscalls are not recorded: ").push(reason.as_bytes()).push(b"\n");
        sys::write_stderr(line.as_bytes());
        if required {
            sys::unlink(this.path.as_c_str());
            sys::exit(1);
        }
    }
    // Waiting for the companion is no part of the run.
    this.first_pair = clock::pair();
    let header = recording::header();
    // SAFETY: the header is in the first page of the mapping.
    unsafe {
        ((*header).clock_start, (*header).clock_latest) = (this.first_pair, this.first_pair);
    }
}

/// Shows the companion this process and its recording, if there is one.
fn greet_companion(this: &Process) -> bool {
    let session = this.session.filter(|_| !recording::is_confined());
    session.inspect(|&session| companion::greet(session, &this.path)).is_some()
}

fn boot_id() -> [u8; 16] {
    let mut buffer = [0u8; 64];
    let text = sys::read_file(c"/proc/sys/kernel/random/boot_id", &mut buffer);
    let mut id = [0u8; 16];
    let digits = text.iter().filter_map(|&byte| (byte as char).to_digit(16));
    for (i, digit) in digits.take(32).enumerate() {
        if let Some(byte) = id.get_mut(i / 2) {
            *byte = *byte << 4 | digit as u8;
        }
    }
    id
}

/// Field 22 of `/proc/self/stat`: when the process started, in clock ticks since boot.
fn process_start(buffer: &mut [u8]) -> u64 {
    const FIELDS_AFTER_NAME: usize = 20;
    let stat = sys::read_file(c"/proc/self/stat", buffer);
    // The name is in parentheses and may hold anything, even those.
    let after_name = stat.iter().rposition(|&byte| byte == b')').unwrap_or(0);
    let fields = stat.get(after_name..).unwrap_or(&[]);
    let field = fields.split(|&byte| byte == b' ').nth(FIELDS_AFTER_NAME).unwrap_or(&[]);
    field.iter().fold(0, |number, &byte| number * 10 + u64::from(byte.wrapping_sub(b'0') % 10))
}

// ---- forks --------------------------------------------------------------------------------------

type ExitHandler = unsafe extern "C" fn(i32, *mut c_void);
type OnExit = unsafe extern "C" fn(ExitHandler, *mut c_void) -> i32;
type ForkHandler = unsafe extern "C" fn();
type RegisterAtFork =
    unsafe extern "C" fn(ForkHandler, ForkHandler, ForkHandler, *const c_void) -> i32;

/// Asks the C library to tell of forks and of the exit. Being the first to ask, chase is told of
/// a fork's child before all others, and of the exit after them.
fn watch_process() {
    let (on_exit, at_fork) = (loading::find(c"on_exit"), loading::find(c"__register_atfork"));
    if on_exit != 0 {
        // SAFETY: the function is the C library's, of this type.
        let on_exit: OnExit = unsafe { core::mem::transmute(on_exit) };
        // SAFETY: as above; the handler stays loaded.
        unsafe { on_exit(exited, core::ptr::null_mut()) };
    }
    if at_fork != 0 {
        // SAFETY: the function is the C library's, of this type.
        let at_fork: RegisterAtFork = unsafe { core::mem::transmute(at_fork) };
        // SAFETY: as above; the last argument names the object that the handlers are in.
        unsafe {
            at_fork(
                before_fork,
                after_fork_in_parent,
                after_fork_in_child,
                (&raw const START).cast(),
            )
        };
    }
}

// ---- the end ------------------------------------------------------------------------------------

/// Whether this is the process that the recording belongs to, and no child that shares its memory.
pub(crate) fn is_own() -> bool {
    recording::is_confined() || OWNER.load(Ordering::Relaxed) == sys::getpid()
}

/// The process, or its image, is about to end in this way. A `vfork`'s child is not the process.
pub(crate) fn end(kind: u32, status: i32) {
    let confined = recording::is_confined();
    if !recording::is_open() || !is_own() || recording::end_if_gone(kind, status) {
        return;
    }
    let spent = cost::Start::begin();
    sampling::finish(kind == END_EXIT);
    if let Some(thread) = thread::current() {
        thread.settle_moved();
        if !confined {
            thread.note_name();
            thread.ask_at_end();
            thread.note_cpu();
            recording::note_names();
        }
    }
    if !confined {
        clock::note_latest();
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

/// The last of the exit handlers.
unsafe extern "C" fn exited(status: i32, _: *mut c_void) {
    notice_fork();
    end(END_EXIT, status);
}
