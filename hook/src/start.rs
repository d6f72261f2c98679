//! The start of the process.

mod arguments;
mod directories;
mod follow;
mod roots;

use core::ffi::CStr;

use chase_format::layout::{ChunkKind, EXTENSION, ORIGIN_EXEC};

use self::directories::make_directories;
use crate::arch::find_words;
use crate::companion::Starting;
use crate::cost::{self, Spent};
use crate::elf::Auxiliary;
use crate::process::{self, Process, greet_companion, open_recording, watch_process};
use crate::recording::Refused;
use crate::signals::SignalsBlocked;
use crate::thread::Origin;
use crate::thread_life::watch_ends;
use crate::{
    calibrate, clock, companion, loading, maps, pages, recording, sampling, stubs, sys, thread,
};
use chase_logic::config::{Config, Syscalls};
use chase_logic::text::{Text, c_bytes, file_name};

/// Said whether or not the user wants to be told of anything: the run is not what was asked for.
const TIMING_UNKNOWN: &[u8] =
    b"chase: CHASE_TIMING must be adaptive, all or count; all calls are timed\n";
const NO_ROOM: &[u8] =
    b"chase: nothing is recorded: the dynamic linker has no room for it, as in programs with LD_AUDIT set\n";
const DEFAULT_OUTPUT: &[u8] = b"chase.data";

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
    if !find_words() {
        if config.verbose {
            sys::write_stderr(NO_ROOM);
        }
        return loading::find_real();
    }
    let starting = (config.syscalls != Syscalls::Off).then(Starting::begin);
    let spent = Spent::now();
    let this = &mut *process::hold();
    this.first_pair = {
        clock::choose();
        clock::pair()
    };
    clock::begin(&this.first_pair);
    let mut buffer = [0u8; 4095];
    let executable = sys::read_link(c"/proc/self/exe", &mut buffer);
    let executable =
        if executable.is_empty() { c_bytes(auxiliary.executable_name) } else { executable };
    let executable = pages::keep(executable);
    this.executable.push(executable);
    if !follow::is_wanted(config.follow, executable, argument_count, arguments) {
        if config.syscalls != Syscalls::Off {
            find_directory(this, config.output);
            companion::decline(this.directory.as_bytes());
        }
        return loading::find_real();
    }
    this.forks_are_followed = follow::forks_are_wanted(config.follow);
    let Some(image) = auxiliary.executable_image() else { return };
    roots::hide_own();
    stubs::connect_pads();
    if !loading::survey(image, auxiliary.vdso, executable, config) {
        return;
    }
    this.boot_id = boot_id();
    fill_meta(this, argument_count, arguments);
    find_directory(this, config.output);
    let mut opened = open_recording(this, ORIGIN_EXEC);
    if let Err(Refused { errno: libc::ENOENT, .. }) = opened {
        make_directories(&this.directory);
        opened = open_recording(this, ORIGIN_EXEC);
    }
    if let Err(refused) = opened {
        say_refused(&config, &refused);
        if config.syscalls == Syscalls::Require {
            sys::exit(1);
        }
        return;
    }
    find_companion(this, &config);
    // Before the thread has a record, so that all of its recorded life is watched. What is done here is chase's own.
    let is_watched = greet_companion(this);
    if is_watched {
        core::mem::forget(starting);
    }
    let _own = is_watched.then(Starting::begin);
    sampling::choose(config.timing, this.session.is_some());
    // SAFETY: the header is in the first page of the mapping.
    unsafe { (*recording::header()).timing = sampling::mode() };
    watch_ends(loading::find);
    let Some(main) = thread::register(&Origin::MAIN) else { return };
    this.cost = calibrate::measure(main);
    sampling::note_cost(&this.cost, main);
    // SAFETY: the header is in the first page of the mapping, and there is one thread.
    this.cost.put_into(unsafe { &mut *recording::header() });
    watch_process();
    loading::hook_all();
    recording::note_latest();
    cost::add_start(spent.with_loading_ns());
    if config.timing_is_unknown {
        sys::write_stderr(TIMING_UNKNOWN);
    }
    if config.verbose {
        let mut line = Text::<4352>::new();
        line.push(b"chase: recording to ").push(this.path.as_bytes()).push(b"\n");
        sys::write_stderr(line.as_bytes());
    }
}

fn say_refused(config: &Config, refused: &Refused) {
    if config.verbose || config.syscalls == Syscalls::Require {
        let mut line = Text::<512>::new();
        line.push(b"chase: nothing is recorded: ").push(refused.doing.as_bytes());
        line.push(b" (errno ").push_number(refused.errno as u64).push(b")\n");
        sys::write_stderr(line.as_bytes());
    }
}

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
fn find_directory(this: &mut Process, output: &[u8]) {
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

/// Finds or starts a companion, and notes what came of it.
fn find_companion(this: &mut Process, config: &Config) {
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
    // Of the recording, and of those of this process's forks.
    let mut entry = Text::<640>::new();
    entry.push(b"syscalls\0").push(found).push(b"\0");
    this.meta.push(entry.as_bytes());
    {
        let _signals = SignalsBlocked::new();
        recording::write_chunk(ChunkKind::Meta, entry.as_bytes());
    }
    let required = wish == Syscalls::Require;
    if this.session.is_none() && (config.verbose || required) {
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
