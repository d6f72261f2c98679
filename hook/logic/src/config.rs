//! The environment variables, read once at the start. `docs/environment.md` describes them.

use chase_format::layout::{TIMING_ADAPTIVE, TIMING_ALL, TIMING_COUNT};
use chase_format::session::MOST_SAMPLES;

use crate::events::{Events, size};
use crate::session::number;
use crate::text::{c_bytes, file_name, glob, matches_item};

/// What is said of values that are not known, whatever messages the user wants: the run is not what was asked for.
const TIMING_UNKNOWN: &[u8] =
    b"chase: CHASE_TIMING must be adaptive, all or count; all calls are timed\n";
const EVENTS_UNKNOWN: &[u8] =
    b"chase: CHASE_EVENTS must be off, slow, slow:TIME, all, all=OBJECT:FUNCTION, a size like \
    64MB, first or last, or several of these with commas; what is not known of it is ignored\n";
const MAX_SIZE_UNKNOWN: &[u8] =
    b"chase: CHASE_MAX_SIZE must be a size like 64MB; the recording has no limit\n";
const SAMPLE_UNKNOWN: &[u8] =
    b"chase: CHASE_SAMPLE must be off, or samples per second, from 1 to 10000; it is ignored\n";
const LIST_UNKNOWN: &[u8] = b"chase: CHASE_LIBS, CHASE_EXCLUDE, CHASE_INTERNAL, CHASE_FOLLOW and \
    CHASE_THREADS are names with commas between; what names nothing is ignored\n";
const MOST: u64 = MOST_SAMPLES as u64;

/// What the environment asks for.
#[derive(Clone, Copy)]
pub struct Config {
    /// `CHASE_OUTPUT`: the directory for recordings, empty for the default.
    pub output: &'static [u8],
    /// `CHASE_LIBS`: if not empty, only calls that match a pattern in it are recorded.
    libs: &'static [u8],
    /// `CHASE_EXCLUDE`: calls that match a pattern in it are not recorded.
    exclude: &'static [u8],
    /// `CHASE_INTERNAL`: objects whose calls to themselves are recorded, too.
    internal: &'static [u8],
    /// `CHASE_FOLLOW`: which of the programs that are started are recorded; see `start/follow.rs` in the hook.
    pub follow: &'static [u8],
    /// `CHASE_THREADS`: which threads are recorded, empty for all.
    pub threads: &'static [u8],
    /// The first call of which function begins the recording: what follows `call:` in `CHASE_START_ON`; empty if it begins at the
    /// program's start.
    pub start_on: &'static [u8],
    /// `CHASE_TIMING`: which calls are timed, `TIMING_*`.
    pub timing: u32,
    /// Whether its value is unknown.
    timing_is_unknown: bool,
    /// `CHASE_SYSCALLS`: whether to look for a companion.
    pub syscalls: Syscalls,
    /// `CHASE_SAMPLE`, which the companion interprets; empty for its default.
    pub sample: &'static [u8],
    /// Whether its value is unknown.
    sample_is_unknown: bool,
    /// Whether a list has commas and no names.
    list_is_unknown: bool,
    /// `CHASE_ARGUMENTS`: whether arguments that say how much work a call does are recorded.
    pub arguments: bool,
    /// `CHASE_SITES`: whether contexts are told apart by the places of calls, too.
    pub sites: bool,
    /// `CHASE_NARRATE`: whether the companion records each single system call.
    pub narrate: bool,
    /// `CHASE_EVENTS`: which single calls are recorded as events.
    pub events: Events,
    /// `CHASE_MAX_SIZE`: the maximum length of a process's recording in bytes; 0: no limit.
    pub max_size: u64,
    /// Whether its value is unknown.
    max_size_is_unknown: bool,
    /// `CHASE_UNTIL`: when `chase record` will end the recording, in ns of `CLOCK_MONOTONIC`; 0: never.
    pub until_ns: u64,
    /// `CHASE_ATTACHED`: when, and by whom, the process was attached to, for the recording; empty if it was not.
    pub attached: &'static [u8],
    /// `CHASE_VERBOSE`: whether to print where the recording is written, or why there is none.
    pub verbose: bool,
}

/// The values of `CHASE_SYSCALLS`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Syscalls {
    /// System calls are not recorded.
    Off,
    /// They are recorded if possible.
    Auto,
    /// They are recorded, or the program does not start.
    Require,
    /// An unknown value.
    Unknown,
}

impl Syscalls {
    fn read(value: &[u8]) -> Self {
        match value {
            b"off" | b"0" => Self::Off,
            b"auto" | b"" => Self::Auto,
            b"require" => Self::Require,
            _ => Self::Unknown,
        }
    }
}

/// What the companion reports of single system calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// Nothing.
    Nothing,
    /// All, but not what programs are started with (`CHASE_ARGUMENTS=off`).
    CallsAlone,
    /// All.
    All,
}

impl Config {
    /// The values for an empty environment.
    pub const DEFAULT: Self = Self {
        output: b"",
        libs: b"",
        exclude: b"",
        internal: b"",
        follow: b"",
        threads: b"",
        start_on: b"",
        timing: TIMING_ADAPTIVE,
        timing_is_unknown: false,
        syscalls: Syscalls::Auto,
        sample: b"",
        sample_is_unknown: false,
        list_is_unknown: false,
        arguments: true,
        sites: false,
        narrate: false,
        events: Events::DEFAULT,
        max_size: 0,
        max_size_is_unknown: false,
        until_ns: 0,
        attached: b"",
        verbose: false,
    };

    /// Reads the environment at `environment`, an array of strings that ends with null.
    ///
    /// # Safety
    /// It is the process's own, as made by the kernel.
    pub unsafe fn read(environment: *const usize) -> Self {
        let mut config = Self::DEFAULT;
        let mut at = environment;
        // SAFETY: the array ends with null, beyond which nothing is read.
        while let variable @ 1.. = unsafe { *at } {
            config.set(c_bytes(variable));
            at = at.wrapping_add(1);
        }
        config
    }

    /// Reads variables that arrive after the start, each of which ends with NUL.
    pub fn read_late(variables: &'static [u8]) -> Self {
        let mut config = Self::DEFAULT;
        variables.split(|&byte| byte == 0).for_each(|variable| config.set(variable));
        config
    }

    /// Takes over the value of `variable` (`NAME=VALUE`) if it is one of chase's.
    fn set(&mut self, variable: &'static [u8]) {
        let value = |name: &[u8]| variable.strip_prefix(name)?.strip_prefix(b"=");
        if let Some(value) = value(b"CHASE_OUTPUT") {
            self.output = value;
        } else if let Some(value) = value(b"CHASE_LIBS") {
            self.libs = self.list(value);
        } else if let Some(value) = value(b"CHASE_EXCLUDE") {
            self.exclude = self.list(value);
        } else if let Some(value) = value(b"CHASE_INTERNAL") {
            self.internal = self.list(value);
        } else if let Some(value) = value(b"CHASE_FOLLOW") {
            self.follow = self.list(value);
        } else if let Some(value) = value(b"CHASE_THREADS") {
            self.threads = self.list(value);
        } else if let Some(value) = value(b"CHASE_START_ON") {
            // (Signals are for `chase record`.)
            self.start_on = value.strip_prefix(b"call:").unwrap_or(b"");
        } else if let Some(value) = value(b"CHASE_TIMING") {
            (self.timing, self.timing_is_unknown) = timing(value);
        } else if let Some(value) = value(b"CHASE_SYSCALLS") {
            self.syscalls = Syscalls::read(value);
        } else if let Some(value) = value(b"CHASE_SAMPLE") {
            let is_known = matches!(value, b"" | b"off") || matches!(number(value), Some(1..=MOST));
            self.sample = if is_known { value } else { b"" };
            self.sample_is_unknown = !is_known;
        } else if let Some(value) = value(b"CHASE_ARGUMENTS") {
            self.arguments = !matches!(value, b"off" | b"0");
        } else if let Some(value) = value(b"CHASE_SITES") {
            self.sites = !matches!(value, b"" | b"0" | b"off");
        } else if let Some(value) = value(b"CHASE_NARRATE") {
            self.narrate = !matches!(value, b"" | b"0");
        } else if let Some(value) = value(b"CHASE_EVENTS") {
            self.events = Events::read(value);
        } else if let Some(value) = value(b"CHASE_MAX_SIZE") {
            self.max_size = size(value).unwrap_or(0);
            self.max_size_is_unknown = !value.is_empty() && self.max_size == 0;
        } else if let Some(value) = value(b"CHASE_UNTIL") {
            self.until_ns = number(value).unwrap_or(0);
        } else if let Some(value) = value(b"CHASE_ATTACHED") {
            self.attached = value;
        } else if let Some(value) = value(b"CHASE_VERBOSE") {
            self.verbose = !matches!(value, b"" | b"0");
        }
    }

    /// Takes over a list; one that names nothing is none.
    fn list(&mut self, value: &'static [u8]) -> &'static [u8] {
        if value.iter().any(|&byte| byte != b',') {
            return value;
        }
        self.list_is_unknown |= !value.is_empty();
        b""
    }

    /// Returns what is to be said of values that are not known.
    pub fn not_understood(&self) -> impl Iterator<Item = &'static [u8]> {
        let messages = [
            (self.timing_is_unknown, TIMING_UNKNOWN),
            (self.events.is_unknown, EVENTS_UNKNOWN),
            (self.max_size_is_unknown, MAX_SIZE_UNKNOWN),
            (self.sample_is_unknown, SAMPLE_UNKNOWN),
            (self.list_is_unknown, LIST_UNKNOWN),
        ];
        messages.into_iter().filter_map(|(is_unknown, message)| is_unknown.then_some(message))
    }

    /// Returns what the companion is to report of single system calls.
    #[must_use]
    pub fn told(&self) -> Told {
        match (self.narrate, self.arguments) {
            (false, _) => Told::Nothing,
            (true, false) => Told::CallsAlone,
            (true, true) => Told::All,
        }
    }

    /// Whether some calls are excluded from recording.
    pub fn filters(&self) -> bool {
        !self.libs.is_empty() || !self.exclude.is_empty()
    }

    /// Whether calls of `api` in the object `provider` (soname, or a path) are recorded.
    pub fn wants(&self, provider: &[u8], api: &[u8]) -> bool {
        (self.libs.is_empty() || matches(self.libs, provider, api))
            && !matches(self.exclude, provider, api)
    }

    /// Whether a call begins the recording.
    pub fn begins_with_call(&self) -> bool {
        !self.start_on.is_empty()
    }

    /// Whether a call of a function of this name may begin the recording, whatever object it is in.
    pub fn may_begin_with(&self, api: &[u8]) -> bool {
        let function = self.start_on.rsplit(|&byte| byte == b':').next().unwrap_or(b"");
        self.begins_with_call() && glob(function, api)
    }

    /// Whether a call of `api` in the object `provider` (soname, or a path) begins the recording: `FUNCTION` or
    /// `OBJECT:FUNCTION`, which are globs.
    pub fn begins_with(&self, provider: &[u8], api: &[u8]) -> bool {
        if self.start_on.contains(&b':') {
            matches_item(self.start_on, provider, api)
        } else {
            self.begins_with_call() && glob(self.start_on, api)
        }
    }

    /// Whether a thread is recorded whose start routine is in the object `object` (soname, or a path) and has this name, which is
    /// empty if it is not known. An item of the list is a glob for either; `OBJECT:ROUTINE` for both.
    pub fn wants_thread(list: &[u8], object: &[u8], routine: &[u8]) -> bool {
        list.split(|&byte| byte == b',').filter(|item| !item.is_empty()).any(|item| {
            if item.contains(&b':') {
                matches_item(item, object, routine)
            } else {
                glob(item, file_name(object)) || !routine.is_empty() && glob(item, routine)
            }
        })
    }

    /// Whether calls of an object (soname, or a path) to itself are recorded.
    pub fn wants_internal(&self, object: &[u8]) -> bool {
        matches(self.internal, object, b"")
    }
}

/// Parses `CHASE_TIMING`. Also returns whether the value is unknown: then it is taken for `all`, so that nothing is
/// estimated.
fn timing(value: &[u8]) -> (u32, bool) {
    match value {
        b"adaptive" | b"" => (TIMING_ADAPTIVE, false),
        b"count" => (TIMING_COUNT, false),
        _ => (TIMING_ALL, value != b"all"),
    }
}

/// Whether an item of the comma-separated list matches: the globs `OBJECT`, `OBJECT:API` or `:API`.
fn matches(list: &[u8], object: &[u8], api: &[u8]) -> bool {
    let mut items = list.split(|&byte| byte == b',').filter(|item| !item.is_empty());
    items.any(|item| matches_item(item, object, api))
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;

    use super::*;

    fn read(variables: &[&'static CStr]) -> Config {
        let mut environment: std::vec::Vec<usize> =
            variables.iter().map(|variable| variable.as_ptr().expose_provenance()).collect();
        environment.push(0);
        // SAFETY: it ends with null.
        unsafe { Config::read(environment.as_ptr()) }
    }

    #[test]
    fn an_empty_environment_asks_for_the_defaults() {
        let config = read(&[c"PATH=/bin", c"CHASE", c"CHASE_OUTPUTS=x"]);
        assert!(config.output.is_empty() && !config.filters() && !config.verbose);
        assert_eq!(config.timing, TIMING_ADAPTIVE);
        assert!(config.syscalls == Syscalls::Auto && config.arguments);
        assert!(!read(&[c"CHASE_ARGUMENTS=off"]).arguments);
        assert!(!config.sites && read(&[c"CHASE_SITES=1"]).sites);
    }

    #[test]
    fn no_setting_is_lost_behind_many_others() {
        let mut variables = b"OTHER=1\0".repeat(100);
        variables.extend(b"CHASE_TIMING=count\0CHASE_VERBOSE=1\0");
        let config = Config::read_late(variables.leak());
        assert!(config.timing == TIMING_COUNT && config.verbose && config.output.is_empty());
    }

    #[test]
    fn what_is_not_known_estimates_nothing() {
        let config = read(&[c"CHASE_TIMING=sometimes", c"CHASE_SYSCALLS=maybe"]);
        assert_eq!(config.timing, TIMING_ALL);
        assert!(config.not_understood().eq([TIMING_UNKNOWN]));
        let other = read(&[c"CHASE_EVENTS=maybe", c"CHASE_MAX_SIZE=1"]);
        assert!(other.not_understood().eq([EVENTS_UNKNOWN, MAX_SIZE_UNKNOWN]));
        let lists = read(&[c"CHASE_SAMPLE=zzz", c"CHASE_LIBS=,,", c"CHASE_FOLLOW="]);
        assert!(lists.not_understood().eq([SAMPLE_UNKNOWN, LIST_UNKNOWN]));
        assert!(lists.sample.is_empty() && !lists.filters() && lists.follow.is_empty());
        let known =
            [c"CHASE_SAMPLE=off", c"CHASE_SAMPLE=10000", c"CHASE_SAMPLE=", c"CHASE_LIBS=,a"];
        assert_eq!(read(&known).not_understood().count(), 0);
        assert_eq!(read(&[c"CHASE_SAMPLE=10001"]).not_understood().count(), 1);
        assert_eq!(Config::DEFAULT.not_understood().count(), 0);
        assert!(config.syscalls == Syscalls::Unknown);
        assert_eq!(read(&[c"CHASE_TIMING=count"]).timing, TIMING_COUNT);
    }

    #[test]
    fn what_programs_are_started_with_is_told_like_other_arguments() {
        let told = |variables: &[&'static CStr]| read(variables).told();
        assert_eq!(told(&[c"CHASE_ARGUMENTS=off"]), Told::Nothing);
        assert_eq!(told(&[c"CHASE_NARRATE=1"]), Told::All);
        assert_eq!(told(&[c"CHASE_NARRATE=1", c"CHASE_ARGUMENTS=off"]), Told::CallsAlone);
    }

    #[test]
    fn a_size_has_a_unit() {
        assert_eq!(read(&[c"CHASE_MAX_SIZE=64MB"]).max_size, 64 << 20);
        for text in [c"CHASE_MAX_SIZE=64", c"CHASE_MAX_SIZE=much", c"CHASE_MAX_SIZE=0MB"] {
            let config = read(&[text]);
            assert!(config.max_size == 0 && config.max_size_is_unknown);
        }
    }

    #[test]
    fn threads_are_chosen_by_the_object_or_name_of_their_start_routine() {
        let list = b"work*,libpool.so*,app:main";
        let wanted: [(&[u8], &[u8]); 4] = [
            (b"/usr/bin/app", b"worker"),
            (b"/usr/lib/libpool.so.1", b"run"),
            (b"libpool.so.1", b""),
            (b"/usr/bin/app", b"main"),
        ];
        assert!(wanted.iter().all(|(object, name)| Config::wants_thread(list, object, name)));
        for (object, name) in [(&b"app"[..], &b"reader"[..]), (b"app", b""), (b"other", b"main")] {
            assert!(!Config::wants_thread(list, object, name), "{}", name.escape_ascii());
        }
    }

    #[test]
    fn a_call_may_begin_the_recording() {
        let begins = |text, object: &[u8], name: &[u8]| read(&[text]).begins_with(object, name);
        assert!(begins(c"CHASE_START_ON=call:deflate*", b"libz.so.1", b"deflateInit_"));
        assert!(begins(c"CHASE_START_ON=call:libz*:deflate", b"/lib/libz.so.1", b"deflate"));
        assert!(begins(c"CHASE_START_ON=call::deflate", b"libz.so.1", b"deflate"));
        assert!(!begins(c"CHASE_START_ON=call:libm*:deflate", b"libz.so.1", b"deflate"));
        assert!(!begins(c"CHASE_START_ON=call:deflate", b"libz.so.1", b"deflateInit_"));
        assert!(read(&[c"CHASE_START_ON=call:libz*:deflate"]).may_begin_with(b"deflate"));
        let signal = read(&[c"CHASE_START_ON=USR1"]);
        assert!(!signal.begins_with_call() && !signal.may_begin_with(b"USR1"));
    }

    #[test]
    fn calls_are_chosen_by_object_and_function() {
        let config =
            read(&[c"CHASE_LIBS=libz.so*,libc.so.6:str*,:mem?py", c"CHASE_EXCLUDE=:strlen"]);
        assert!(config.filters());
        let wanted: [(&[u8], &[u8]); 4] = [
            (b"/usr/lib/libz.so.1", b"deflate"),
            (b"libc.so.6", b"strcmp"),
            (b"libc.so.6", b"memcpy"),
            (b"other.so", b"memcpy"),
        ];
        assert!(wanted.iter().all(|(object, api)| config.wants(object, api)));
        assert!(!config.wants(b"libc.so.6", b"strlen"));
        assert!(!config.wants(b"libm.so.6", b"sin"));
    }
}
