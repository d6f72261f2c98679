//! The start of the process.

mod arguments;
mod directories;
mod first_call;
mod follow;
mod late;
mod leaving;
mod roots;

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering};

use chase_format::boot;
use chase_format::layout::{ORIGIN_EXEC, TIMING_ALL, TIMING_COUNT};

use self::directories::make_directories;
use crate::arch::{find_words, is_late};
use crate::auxiliary::Auxiliary;
use crate::companion::Starting;
use crate::cost::{self, Spent};
use crate::process::{self, Process, greet_companion, open_recording, watch_process};
use crate::recording::Refused;
use crate::signals::SignalsBlocked;
use crate::slots::keep_originals;
use crate::thread::{Origin, Thread, want_events};
use crate::thread_life::{forget_choices, leave_out_unwanted, release, watch_ends};
use crate::{
    calibrate, clock, companion, loading, pages, recording, sampling, sites, stack, stubs, sys,
    thread,
};
use chase_logic::config::{Config, Syscalls};
use chase_logic::events::{Events, Kept};
use chase_logic::recordings::{directory_led_to, is_recording};
use chase_logic::text::{Text, c_bytes};

/// Bytes that a long command line leaves to the entries that are added after it.
const LATER_META: usize = 1024;

const NO_ROOM: &[u8] =
    b"chase: nothing is recorded: the dynamic linker has no room for it, as in programs with LD_AUDIT set\n";
const DEFAULT_OUTPUT: &[u8] = b"chase.data";

/// The library's constructor, which runs before those of all other objects (`-z initfirst`).
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(i32, *const usize, *const usize) = start;

extern "C" fn start(argument_count: i32, arguments: *const usize, environment: *const usize) {
    let is_room = find_words();
    // (In a running process, the arguments may have been moved, so nothing behind them can be relied on.)
    if late::is_to_wait() {
        return;
    }
    if !arguments::are_those_of_glibc(argument_count, arguments, environment) {
        return loading::find_real(&Auxiliary::read());
    }
    // SAFETY: the dynamic linker passes what the kernel has put on the stack: the environment ends with null, and is
    // followed by the auxiliary vector.
    let (config, auxiliary) =
        unsafe { (Config::read(environment), Auxiliary::behind(environment)) };
    if auxiliary.secure {
        return loading::find_real(&auxiliary);
    }
    stack::note_end(auxiliary.executable_name);
    if !is_room {
        if config.verbose {
            sys::write_stderr(NO_ROOM);
        }
        return loading::find_real(&auxiliary);
    }
    if config.until_ns != 0 {
        if sys::clock_ns(libc::CLOCK_MONOTONIC) >= config.until_ns {
            return loading::find_real(&auxiliary);
        }
        late::may_be_left();
    }
    let starting = (config.syscalls != Syscalls::Off).then(Starting::begin);
    let spent = Spent::now();
    process::populate();
    let this = &mut *process::hold();
    begin_clock(this);
    let executable = find_executable(this, &auxiliary);
    // SAFETY: these are the arguments that the dynamic linker passes.
    let arguments = || unsafe { arguments::each(argument_count, arguments) };
    if !follow::is_wanted(config.follow, executable, arguments()) {
        if config.syscalls != Syscalls::Off && find_directory(this, config.output).is_ok() {
            companion::decline(this.directory.as_bytes());
        }
        return loading::find_real(&auxiliary);
    }
    this.forks_are_left_out = !follow::forks_are_wanted(config.follow);
    let Some(image) = auxiliary.executable_image() else { return };
    roots::hide_own();
    stubs::connect_pads();
    if (config.until_ns != 0 || config.begins_with_call()) && !keep_originals() {
        return;
    }
    if !loading::find_objects(image, auxiliary.vdso, executable, config) {
        return;
    }
    if config.begins_with_call() {
        late::may_be_left();
        return first_call::wait(&config);
    }
    fill_meta(this, arguments());
    let own = match open(this, &config) {
        Ok(own) => own,
        Err(refused) => {
            say_refused(&config, &refused);
            // (It has done nothing yet.)
            if config.syscalls == Syscalls::Require {
                sys::exit(1);
            }
            return;
        }
    };
    if own.is_some() {
        core::mem::forget(starting);
    }
    watch_ends();
    let Some(main) = thread::register(&Origin::MAIN) else { return };
    calibrate::prepare();
    watch_process();
    loading::hook_all();
    // (No call of the program's has been made yet.)
    measure_cost(this, main);
    leave_out_unwanted(main, &Origin::MAIN);
    recording::note_latest();
    cost::add_start(spent.with_loading_ns());
    // What came before was chase's work, and not the program's.
    main.begin_life();
    say_recording(&config, this);
}

fn say_recording(config: &Config, this: &Process) {
    config.not_understood().for_each(sys::write_stderr);
    if config.verbose {
        for part in [b"chase: recording to ", this.path.as_bytes(), b"\n"] {
            sys::write_stderr(part);
        }
    }
}

/// Sets up which events are recorded, and stores that in the recording.
fn keep_events(this: &mut Process, events: &Events, max_size: u64) {
    // Events must not use up the room that the sums of all calls need.
    let share = if max_size == 0 { u64::MAX } else { max_size / 4 };
    let bytes = events.bytes.min(share);
    if events.kept != Kept::Off {
        want_events(events, bytes);
    }
    this.note_in_recording(b"events", events.described(bytes).as_bytes());
}

/// How far the process was prepared by attaching to it, which may fail halfway and be tried again.
static STAGE: AtomicU32 = AtomicU32::new(0);
/// The objects are known.
const FOUND: u32 = 1;
/// Ends of threads and of the process will be noticed.
const WATCHED: u32 = 2;
/// Entries were hooked, and may have been restored since.
const HOOKED: u32 = 3;

/// Begins to record a process that runs already, perhaps one that chase has left before. Called by a thread that is
/// not the program's, while the program's threads are stopped.
///
/// # Errors
/// Returns the reason why nothing is recorded.
fn begin_late(config: Config, auxiliary: Auxiliary) -> Result<(), Refused> {
    let cannot = |doing| Refused { doing, errno: 0 };
    if recording::is_open() {
        return Err(cannot("it is recorded already"));
    }
    stack::note_end(auxiliary.executable_name);
    let spent = Spent::now();
    let this = &mut *process::hold();
    let stage = STAGE.load(Ordering::Relaxed);
    this.forget();
    let executable = find_executable(this, &auxiliary);
    this.forks_are_left_out = !follow::forks_are_wanted(config.follow);
    if stage < FOUND {
        let image =
            auxiliary.executable_image().ok_or(cannot("its program headers are not there"))?;
        roots::hide_own();
        stubs::connect_pads();
        if !keep_originals() {
            return Err(Refused { doing: "no memory", errno: libc::ENOMEM });
        }
        if !loading::find_objects(image, auxiliary.vdso, executable, config) {
            this.forget();
            return Err(cannot(
                "its C library is not glibc, or another copy of libchase.so is loaded",
            ));
        }
        STAGE.store(FOUND, Ordering::Relaxed);
    } else {
        loading::set_config(config);
        forget_choices();
        if !config.arguments {
            crate::arguments::forget();
        }
    }
    let own = open_late(this, &config, b"attached", config.attached)?;
    // (This thread does nothing but chase's work, up to its end.)
    core::mem::forget(own);
    if stage < WATCHED {
        watch_ends();
        watch_process();
        STAGE.store(WATCHED, Ordering::Relaxed);
    }
    // The calling thread is recorded for the time that this takes.
    let Some(helper) = thread::register(&Origin::FOUND) else {
        recording::close();
        return Err(cannot("no memory"));
    };
    thread::expect_several(helper);
    measure_cost(this, helper);
    if stage < HOOKED {
        loading::hook_all();
        STAGE.store(HOOKED, Ordering::Relaxed);
    } else {
        loading::hook_again()
    }
    recording::note_latest();
    cost::add_start(spent.with_loading_ns());
    helper.vanish();
    let _signals = SignalsBlocked::new();
    release(helper);
    Ok(())
}

/// Opens the recording of a process that has run for a while, as [`open`] does. `key` and `value` say how that came, for the
/// recording.
fn open_late(
    this: &mut Process,
    config: &Config,
    key: &[u8],
    value: &[u8],
) -> Result<Option<Starting>, Refused> {
    begin_clock(this);
    let mut buffer = [0u8; 4096];
    let command = sys::read_file(c"/proc/self/cmdline", &mut buffer);
    let command = command.strip_suffix(b"\0").unwrap_or(command);
    fill_meta(this, command.split(|&byte| byte == 0));
    this.note(key, value);
    // (The command line may be a title by now.)
    this.note(b"executed as", c_bytes(stack::executable_name()));
    let mut ran_ns = Text::<24>::new();
    ran_ns.push_number(sys::clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID));
    this.note(b"ran before", ran_ns.as_bytes());
    let own = open(this, config)?;
    if own.is_some() {
        companion::watch_all(true);
    }
    Ok(own)
}

/// Opens the recording, finds a companion, and decides how calls are timed. If a companion watches the process, what this
/// thread does counts as chase's own as long as the result lives.
fn open(this: &mut Process, config: &Config) -> Result<Option<Starting>, Refused> {
    find_directory(this, config.output)?;
    recording::limit_to(if config.max_size == 0 { u64::MAX } else { config.max_size });
    open_in_directory(this, config)?;
    this.told = config.told();
    find_companion(this, config)?;
    // This comes before the thread has a record, so that all of its recorded life is watched.
    let own = greet_companion(this).then(Starting::begin);
    choose_timing(this, config);
    Ok(own)
}

fn begin_clock(this: &mut Process) {
    clock::choose();
    this.first_pair = clock::pair();
    clock::begin(&this.first_pair);
}

fn find_executable(this: &mut Process, auxiliary: &Auxiliary) -> &'static [u8] {
    let mut buffer = [0u8; 4095];
    let executable = sys::read_link(c"/proc/self/exe", &mut buffer);
    let executable =
        if executable.is_empty() { c_bytes(auxiliary.executable_name) } else { executable };
    let executable = pages::keep(executable);
    this.executable.push(executable);
    executable
}

fn open_in_directory(this: &mut Process, config: &Config) -> Result<(), Refused> {
    sites::tell_apart(config.sites);
    let opened = open_recording(this, ORIGIN_EXEC);
    if !matches!(opened, Err(Refused { errno: libc::ENOENT, .. })) {
        return opened;
    }
    make_directories(&this.directory);
    open_recording(this, ORIGIN_EXEC)
}

fn choose_timing(this: &mut Process, config: &Config) {
    let times_all = config.events.kept == Kept::All || config.sites;
    let timing = if times_all { TIMING_ALL } else { config.timing };
    sampling::choose(timing, this.session.is_some());
    let are_noted = config.arguments && timing != TIMING_COUNT;
    crate::arguments::note(are_noted);
    // (A filter may forbid the system call that copies them, or kill for it.)
    crate::thread::record_texts(are_noted && !sys::has_seccomp_filter());
    keep_events(this, &config.events, config.max_size);
    // SAFETY: the header is in the first page of the mapping.
    unsafe { (*recording::header()).timing = sampling::mode() };
}

/// Measures on this thread what a call costs, while no other thread is recorded.
fn measure_cost(this: &mut Process, thread: &Thread) {
    this.cost = calibrate::measure(thread);
    thread.discard_events();
    sampling::note_cost(&this.cost, thread);
    // SAFETY: the header is in the first page of the mapping, and nobody else writes it.
    this.cost.put_into(unsafe { &mut *recording::header() });
}

fn say_refused(config: &Config, refused: &Refused) {
    let is_said = refused.doing.is_empty();
    if !is_said && (config.verbose || config.syscalls == Syscalls::Require) {
        let mut line = Text::<512>::new();
        line.push(b"chase: nothing is recorded: ").push(refused.doing.as_bytes());
        line.push(b" (errno ").push_number(refused.errno as u64).push(b")\n");
        sys::write_stderr(line.as_bytes());
    }
}

/// Stores what is known of the process from its start on. `command`: its command line.
fn fill_meta<'a>(this: &mut Process, command: impl Iterator<Item = &'a [u8]>) {
    this.boot_id = boot_id();
    let names = sys::system_names();
    let mut buffer = [0u8; 4096];
    let directory = sys::working_directory(&mut buffer);
    let c_field = |field: &[libc::c_char; 65]| {
        // SAFETY: the kernel ends its names with NUL.
        unsafe { CStr::from_ptr(field.as_ptr()) }.to_bytes()
    };
    this.meta.push(b"executable\0").push(this.executable.as_bytes()).push(b"\0");
    this.note(b"directory", directory);
    this.note(b"host", c_field(&names.nodename));
    this.note(b"kernel", c_field(&names.release));
    this.meta.push(b"writer\0chase ").push(chase_version::VERSION.as_bytes()).push(b"\0");
    this.meta.push(b"command\0").push_joined(command, b"\x1f", LATER_META);
    this.meta.push(b"\0");
}

/// Determines the absolute path of the directory for recordings. A relative one is first looked for where the parent
/// writes its recording, so that a run's recordings stay together whatever its processes' working directories.
fn find_directory(this: &mut Process, output: &[u8]) -> Result<(), Refused> {
    let relative = if output.is_empty() { DEFAULT_OUTPUT } else { output };
    let directory = &mut this.directory;
    if relative.first() == Some(&b'/') {
        directory.push(relative);
        return Ok(());
    }
    follow::parent_maps(|path| {
        let is_found = is_recording(path);
        if let Some(found) = directory_led_to(path, relative).filter(|_| is_found) {
            directory.push(found);
        }
        is_found
    });
    if directory.as_bytes().is_empty() {
        let mut buffer = [0u8; 4096];
        let current = sys::working_directory(&mut buffer);
        if current.is_empty() {
            // (Not in the root directory, where nobody would look for it.)
            let doing = "CHASE_OUTPUT is relative, and the working directory has no path";
            return Err(Refused { doing, errno: libc::ENOENT });
        }
        directory.push(current).push(b"/").push(relative);
    }
    Ok(())
}

/// Finds or starts a companion, and stores the outcome in the recording.
///
/// # Errors
/// If there is none, and one is required: there is no recording then. What becomes of the process is the caller's affair: it may have
/// run for a while.
fn find_companion(this: &mut Process, config: &Config) -> Result<(), Refused> {
    let wish = config.syscalls;
    let mut reason = companion::Reason::new();
    let wanted = companion::Wanted {
        wish,
        sample: config.sample,
        directory: this.directory.as_bytes(),
        library: loading::library_path(),
    };
    this.session = companion::find(wanted, &mut reason);
    if this.session.is_none() && wish != Syscalls::Off && !sys::has_seccomp_filter() {
        thread::start_asking();
    }
    let found = if this.session.is_some() { &b"on"[..] } else { reason.as_bytes() };
    this.note_in_recording(b"syscalls", found);
    let required = wish == Syscalls::Require;
    // (Standard error of a process that is attached to is not ours: the launcher says it.)
    if this.session.is_none() && (config.verbose || required) && !is_late() {
        let mut line = Text::<640>::new();
        line.push(b"chase: syscalls are not recorded: ").push(reason.as_bytes()).push(b"\n");
        sys::write_stderr(line.as_bytes());
    }
    if this.session.is_none() && required {
        sys::unlink(this.path.as_c_str());
        recording::close();
        let mut why = Text::<640>::new();
        if is_late() {
            why.push(b"no system calls: ").push(reason.as_bytes());
        }
        let doing = core::str::from_utf8(pages::keep(why.as_bytes())).unwrap_or("");
        return Err(Refused { doing, errno: 0 });
    }
    // The time spent waiting for the companion is not part of the run.
    this.first_pair = clock::pair();
    let header = recording::header();
    // SAFETY: the header is in the first page of the mapping.
    unsafe {
        ((*header).clock_start, (*header).clock_latest) = (this.first_pair, this.first_pair);
    }
    Ok(())
}

fn boot_id() -> [u8; 16] {
    let mut buffer = [0u8; 64];
    boot::parse(sys::read_file(boot::FILE, &mut buffer))
}
