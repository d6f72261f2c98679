//! One process image: its recording, its clock, and how it ended.

use std::path::PathBuf;

use chase_recorder::layout::{
    END_ABORT, END_DETACHED, END_EXEC, END_EXIT, END_IMMEDIATE, THREAD_ENDED, ThreadRecord,
};
use chase_recorder::reader::{Recording, SyscallsFile};
use chase_recorder::syscalls::{STATE_COMPLETE, STATE_STOPPED};
use serde::Serialize;

use crate::clock::{Clock, Ns, Ticks};
use crate::pages::Pages;
use crate::unrecorded;

/// Other threads may begin calls while one ends the process; calls later than this after the
/// recorded end show that the process went on (an exec that failed).
const ENDING_NS: f64 = 10e6;

/// How a process image ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Ending {
    /// `exit`, or a return from `main`.
    Exit {
        /// The status given.
        status: i32,
    },
    /// `_exit` and its kin.
    ImmediateExit {
        /// The status given.
        status: i32,
    },
    /// Replaced by exec.
    Exec,
    /// `abort`.
    Abort,
    /// Chase has left the process, which went on.
    Detached,
    /// It runs.
    Running,
    /// No end was seen: it was killed, or ended by a system call of its own (or runs on another machine).
    Killed,
    /// Only its system calls were seen, which don't tell.
    Unknown,
}

/// What the system and other recordings say about a process that doesn't say itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Liveness {
    Gone,
    RunsAt(Ns),
    ReplacedAt(Ns),
}

/// One process image.
#[derive(Debug)]
pub struct Image {
    /// Its file.
    pub path: PathBuf,
    /// What was recorded; nothing but a header, made up, if only `syscalls` tells of it.
    pub recording: Recording<'static>,
    /// What the companion wrote of it.
    pub syscalls: Option<SyscallsFile<'static>>,
    /// Whether there is a recording.
    pub is_recorded: bool,
    /// The image that it came from, by place among the images of the run.
    pub parent: Option<usize>,
    /// Its clock.
    pub clock: Clock,
    /// How it ended.
    pub ending: Ending,
    /// When it ended, or up to when something is known of it.
    pub end: Ticks,
    /// Whether `end` is only the latest moment that left a trace, and the true end is later.
    pub end_is_estimate: bool,
    /// Where the recording's bytes are.
    pub(crate) pages: Pages,
}

impl Image {
    /// A recording by itself, of a process that is known to be gone.
    #[must_use]
    pub fn of(path: PathBuf, recording: Recording<'static>) -> Self {
        let clock = Clock::new(recording.header());
        Self::new(path, recording, clock, Liveness::Gone)
    }

    pub(crate) fn new(
        path: PathBuf,
        recording: Recording<'static>,
        clock: Clock,
        liveness: Liveness,
    ) -> Self {
        let (ending, end, end_is_estimate) = ending(&recording, &clock, liveness);
        let end = end.max(Ticks(recording.header().clock_start.ticks));
        Self {
            path,
            recording,
            syscalls: None,
            is_recorded: true,
            parent: None,
            clock,
            ending,
            end,
            end_is_estimate,
            pages: Pages::Own,
        }
    }

    /// A process of which there is no recording but a `.syscalls` file.
    #[must_use]
    pub fn unrecorded(path: PathBuf, file: SyscallsFile<'static>) -> Self {
        let recording = Recording::empty(unrecorded::header(file.header()));
        let mut image = Self::of(path, recording);
        image.ending = Ending::Unknown;
        image.end_is_estimate = file.header().state != STATE_COMPLETE;
        image.is_recorded = false;
        image.with_syscalls(Some(file))
    }

    /// The same with what the companion wrote of it.
    #[must_use]
    pub fn with_syscalls(self, syscalls: Option<SyscallsFile<'static>>) -> Self {
        Self { syscalls, ..self }
    }

    /// What is known of its system calls.
    #[must_use]
    pub fn syscalls_state(&self) -> SyscallsState {
        // Samples alone are none.
        let traced = self.syscalls.as_ref().filter(|file| file.header().user_only == 0);
        match traced.map(|file| file.header().state) {
            None => SyscallsState::None,
            Some(STATE_COMPLETE) => SyscallsState::Complete,
            Some(STATE_STOPPED) => SyscallsState::Stopped,
            Some(_) => SyscallsState::Open,
        }
    }

    /// When it started.
    #[must_use]
    pub fn start(&self) -> Ticks {
        Ticks(self.recording.header().clock_start.ticks)
    }

    /// Start and end of a thread: its own, within those of the process.
    #[must_use]
    pub fn lifetime(&self, thread: &ThreadRecord) -> (Ticks, Ticks) {
        let start = if thread.start_ticks == 0 { self.start() } else { Ticks(thread.start_ticks) };
        let end = match thread.state {
            THREAD_ENDED => Ticks(thread.end_ticks),
            _ => self.end,
        };
        (start, end.max(start))
    }

    /// Path of the executable: from the meta data, or the name of the file as a last resort.
    #[must_use]
    pub fn executable(&self) -> String {
        if let (false, Some(file)) = (self.is_recorded, &self.syscalls) {
            return file.name().into_owned();
        }
        match self.recording.meta_value("executable") {
            Some(path) if !path.is_empty() => path.into_owned(),
            _ => self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    /// What the program was started as. One file may be several programs, by the names of links to it.
    #[must_use]
    pub fn program(&self) -> String {
        let command = self.command();
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        // Shells that are told to be a login shell have a dash before the name; some programs make a title of it.
        let called = command.first().map(|path| name(path.trim_start_matches('-')));
        let is_name =
            |name: &String| !name.is_empty() && !name.contains([' ', ':', '\t', '\n', '\x1b']);
        called.filter(is_name).unwrap_or_else(|| name(&self.executable()))
    }

    /// The arguments of the command, the program's name first.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        let command = self.recording.meta_value("command").unwrap_or_default();
        command.split('\x1f').filter(|_| !command.is_empty()).map(str::to_owned).collect()
    }
}

fn ending(recording: &Recording<'_>, clock: &Clock, liveness: Liveness) -> (Ending, Ticks, bool) {
    let header = recording.header();
    let latest_call = Ticks(recording.latest_start());
    let grace = ENDING_NS / clock.ns_per_tick();
    let told = header.end_ticks != 0 && latest_call.0 as f64 <= header.end_ticks as f64 + grace;
    let status = header.end_status;
    let ending = match header.end_kind {
        END_EXIT if told => Ending::Exit { status },
        END_IMMEDIATE if told => Ending::ImmediateExit { status },
        END_EXEC if told => Ending::Exec,
        END_ABORT if told => Ending::Abort,
        END_DETACHED if header.end_ticks != 0 => Ending::Detached,
        _ => match liveness {
            Liveness::Gone => Ending::Killed,
            Liveness::RunsAt(_) => Ending::Running,
            Liveness::ReplacedAt(_) => Ending::Exec,
        },
    };
    let latest = latest_call.max(latest_trace(recording));
    match (ending, liveness) {
        (Ending::Running, Liveness::RunsAt(now)) => (ending, clock.ticks_at(now).max(latest), true),
        (Ending::Exec, Liveness::ReplacedAt(next)) if !told => {
            (ending, clock.ticks_at(next).max(latest), true)
        }
        (Ending::Killed, _) => (ending, latest, true),
        (Ending::Detached, _) => (ending, Ticks(header.end_ticks), false),
        _ => (ending, Ticks(header.end_ticks).max(latest_call), false),
    }
}

/// The latest moment other than a call that left a trace.
fn latest_trace(recording: &Recording<'_>) -> Ticks {
    let header = recording.header();
    let threads = recording.threads().flat_map(|thread| {
        let record = thread.record();
        [record.start_ticks, if record.state == THREAD_ENDED { record.end_ticks } else { 0 }]
    });
    let clock = [header.clock_start.ticks, header.clock_latest.ticks, header.end_ticks];
    Ticks(threads.chain(clock).max().unwrap_or_default())
}

/// What is known of the system calls of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SyscallsState {
    /// Nothing.
    None,
    /// All of them.
    Complete,
    /// Those up to some moment: the process runs, or the companion was killed.
    Open,
    /// Those up to some moment: the companion stopped before the process ended.
    Stopped,
}
