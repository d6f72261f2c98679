//! A process image: its recording, its clock, and how it ended.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;

use chase_recorder::layout::{
    END_ABORT, END_DETACHED, END_EXEC, END_EXIT, END_IMMEDIATE, END_NONE, Header, ORIGIN_FORK,
    THREAD_ENDED, TIMING_COUNT, ThreadRecord,
};
use chase_recorder::reader::{Recording, SyscallsFile, Thread};
use chase_recorder::syscalls::{STATE_COMPLETE, STATE_STOPPED};
use serde::Serialize;

use crate::blocking::cause_of;
use crate::clock::{Clock, Ns, Ticks};
use crate::{liveness, roles, scripts, unrecorded};

/// Other threads may begin calls while one ends the process; calls later than this after the recorded end show that
/// the process went on (after an exec that failed).
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
    /// `_exit` and similar.
    ImmediateExit {
        /// The status given.
        status: i32,
    },
    /// It was replaced by exec.
    Exec,
    /// `abort`.
    Abort,
    /// Chase has left the process, which went on running.
    Detached,
    /// It is running.
    Running,
    /// No end was seen: it was killed, or ended by a system call of its own (or is running on another machine).
    Killed {
        /// The signal that killed it, where who started it has told.
        #[serde(skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
    /// Only its system calls were recorded, which don't tell.
    Unknown,
}

/// What is known from elsewhere about the end of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Liveness {
    Gone,
    RunsAt(Ns),
    ReplacedAt(Ns),
}

/// One process image.
#[derive(Debug)]
pub struct Image {
    /// The file of its recording.
    pub path: PathBuf,
    /// The recording; only a made-up header if there is nothing but `syscalls`.
    pub recording: Recording<'static>,
    /// The companion's file about it.
    pub syscalls: Option<Box<SyscallsFile<'static>>>,
    /// Whether there is a recording.
    pub is_recorded: bool,
    /// The image that it was forked from or replaced, by index among the images of the run.
    pub parent: Option<usize>,
    /// Its clock.
    pub clock: Clock,
    /// How it ended.
    pub ending: Ending,
    /// When it ended, or the latest time about which anything is known.
    pub end: Ticks,
    /// Whether `end` is only the time of the latest trace, and the true end is later.
    pub end_is_estimate: bool,
    /// The present title of a running process.
    pub(crate) title_now: Option<String>,
}

impl Image {
    /// Makes an image of a recording whose process is known to be gone.
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
        let runs = ending == Ending::Running;
        let title_now = runs.then(|| liveness::title(recording.header())).flatten();
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
            title_now,
        }
    }

    /// Makes an image of a process that has only a `.syscalls` file.
    #[must_use]
    pub fn unrecorded(path: PathBuf, file: SyscallsFile<'static>) -> Self {
        let recording = Recording::empty(unrecorded::header(file.header()));
        let mut image = Self::of(path, recording);
        image.ending = Ending::Unknown;
        image.end_is_estimate = file.header().state != STATE_COMPLETE;
        image.is_recorded = false;
        image.with_syscalls(Some(file))
    }

    /// Adds the companion's file.
    #[must_use]
    pub fn with_syscalls(mut self, syscalls: Option<SyscallsFile<'static>>) -> Self {
        let ended_ns = syscalls.as_ref().and_then(|file| {
            let header = file.header();
            let is_whole = header.state == STATE_COMPLETE && header.ended_ns <= header.written_ns;
            Some(header.ended_ns).filter(|&ended_ns| is_whole && ended_ns > 0)
        });
        // The kernel has seen an end that the process could not record.
        if let (Ending::Killed { .. }, true, Some(ended_ns)) =
            (self.ending, self.is_recorded, ended_ns)
        {
            self.end = self.end.max(self.clock.ticks_at(Ns(ended_ns)));
            self.end_is_estimate = false;
        }
        Self { syscalls: syscalls.map(Box::new), ..self }
    }

    /// Returns what is known of its system calls.
    #[must_use]
    pub fn syscalls_state(&self) -> SyscallsState {
        // Samples alone don't count.
        let traced = self.syscalls.as_ref().filter(|file| file.header().user_only == 0);
        match traced.map(|file| file.header().state) {
            None => SyscallsState::None,
            Some(STATE_COMPLETE) => SyscallsState::Complete,
            Some(STATE_STOPPED) => SyscallsState::Stopped,
            Some(_) => SyscallsState::Open,
        }
    }

    /// Returns when it started.
    #[must_use]
    pub fn start(&self) -> Ticks {
        Ticks(self.recording.header().clock_start.ticks)
    }

    /// Returns start and end of a thread, within those of the process.
    #[must_use]
    pub fn lifetime(&self, thread: &ThreadRecord) -> (Ticks, Ticks) {
        let start = if thread.start_ticks == 0 { self.start() } else { Ticks(thread.start_ticks) };
        let end = match thread.state {
            THREAD_ENDED => Ticks(thread.end_ticks),
            // It was stopped for the process to be detached from, and the others perhaps somewhat later.
            _ if thread.end_ticks != 0 => Ticks(thread.end_ticks).min(self.end),
            _ => self.end,
        };
        (start, end.max(start))
    }

    /// Returns the path of the executable: from the meta data, or else the name of the recording's file.
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

    /// Returns the name of the program: of the script, if an interpreter runs one; else that it was started as.
    #[must_use]
    pub fn program(&self) -> String {
        let script = scripts::script(&self.executable(), &self.command());
        script.filter(|name| is_name(name)).unwrap_or_else(|| self.started_as())
    }

    /// Returns the name that the executable was started as. One file may be several programs, by different names of links.
    #[must_use]
    pub fn started_as(&self) -> String {
        let executed_as = self.recording.meta_value("executed as").unwrap_or_default();
        let file =
            if executed_as.is_empty() { self.executable() } else { executed_as.into_owned() };
        started_as(&file, &self.command())
    }

    /// Whether the process ran for a while before it was recorded. (A fork's child has what its parent's recording says, and was
    /// recorded from its start.)
    #[must_use]
    pub fn began_late(&self) -> bool {
        let is_said = |key: &&str| self.recording.meta_value(key).is_some();
        self.recording.header().origin != ORIGIN_FORK
            && ["attached", "begun on"].iter().any(is_said)
    }

    /// Whether calls were only counted, and not timed, but for those of special functions.
    #[must_use]
    pub fn only_counts(&self) -> bool {
        self.is_recorded && self.recording.header().timing == TIMING_COUNT
    }

    /// Returns the processor time that the process took before it was recorded.
    #[must_use]
    pub fn ran_before(&self) -> Ns {
        let told = self.recording.meta_value("ran before").filter(|_| self.began_late());
        Ns(told.and_then(|ns| ns.parse().ok()).unwrap_or(0))
    }

    /// Returns the role of the process by its title: the title at its end or, while it runs here, the present one.
    #[must_use]
    pub fn role(&self) -> Option<String> {
        let title = self.recording.meta_value("title").map(Cow::into_owned);
        let title = title.or_else(|| self.title_now.clone());
        // The command of a fork child may be the title of its parent.
        let command = || self.command().first().cloned();
        roles::role(&title.or_else(command)?)
    }

    /// Returns the arguments of the command, beginning with the program's name.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        let command = self.recording.meta_value("command").unwrap_or_default();
        command.split('\x1f').filter(|_| !command.is_empty()).map(str::to_owned).collect()
    }
}

/// The name in a command or, where that is a title or unknown, of the executable.
pub(crate) fn started_as(executable: &str, command: &[String]) -> String {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    // Login shells have a dash before the name; some programs use it as a title.
    let called = command.first().map(|path| name(path.trim_start_matches('-')));
    called.filter(|name| is_name(name)).unwrap_or_else(|| name(executable))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains([' ', ':', '\t', '\n', '\x1b'])
}

fn ending(recording: &Recording<'_>, clock: &Clock, liveness: Liveness) -> (Ending, Ticks, bool) {
    let header = recording.header();
    let latest_call = Ticks(recording.latest_start());
    let grace = ENDING_NS / clock.ns_per_tick();
    let end_is_valid =
        header.end_ticks != 0 && latest_call.0 as f64 <= header.end_ticks as f64 + grace;
    let status = header.end_status;
    let ending = match header.end_kind {
        END_EXIT if end_is_valid => Ending::Exit { status },
        END_IMMEDIATE if end_is_valid => Ending::ImmediateExit { status },
        END_EXEC if end_is_valid => Ending::Exec,
        END_ABORT if end_is_valid => Ending::Abort,
        END_DETACHED if header.end_ticks != 0 => Ending::Detached,
        _ => match liveness {
            Liveness::Gone => Ending::Killed { signal: killed_by(header) },
            Liveness::RunsAt(_) => Ending::Running,
            Liveness::ReplacedAt(_) => Ending::Exec,
        },
    };
    let latest = || latest_call.max(latest_trace(recording, clock));
    match (ending, liveness) {
        (Ending::Running, Liveness::RunsAt(now)) => {
            (ending, clock.ticks_at(now).max(latest()), true)
        }
        (Ending::Exec, Liveness::ReplacedAt(next)) if !end_is_valid => {
            (ending, clock.ticks_at(next).max(latest()), true)
        }
        (Ending::Killed { .. }, _) => (ending, latest(), true),
        (Ending::Detached, _) => (ending, Ticks(header.end_ticks), false),
        _ => (ending, Ticks(header.end_ticks).max(latest_call), false),
    }
}

fn killed_by(header: &Header) -> Option<i32> {
    Some(header.end_status).filter(|&signal| header.end_kind == END_NONE && signal > 0)
}

/// Returns the time of the latest trace other than the beginning of a call.
fn latest_trace(recording: &Recording<'_>, clock: &Clock) -> Ticks {
    let header = recording.header();
    let threads = recording.threads().flat_map(|thread| {
        let record = thread.record();
        // What it says of its time off the CPU is over: the call that was the latest to begin has ended since.
        let off_ns = thread.off_cpu().fold(0u64, |sum, row| {
            sum.saturating_add(row.blocked_ns).saturating_add(row.preempted_ns)
        });
        let off_ticks = (off_ns as f64 / clock.ns_per_tick()).ceil() as u64;
        let seen = record.start_ticks.saturating_add(off_ticks).max(ended_calls(recording, thread));
        [seen, if record.state == THREAD_ENDED { record.end_ticks } else { 0 }]
    });
    let clock = [header.clock_start.ticks, header.clock_latest.ticks, header.end_ticks];
    Ticks(threads.chain(clock).max().unwrap_or_default())
}

/// Returns a time at which calls of a thread had ended, in ticks: 0 if nothing is known of any.
///
/// When a call ended is not recorded, but how long it took is: of a single one, that gives its end. Waits of a thread follow each other, so
/// together they end no earlier than if they had begun with the thread. (Calls that switch between coroutines do not.)
fn ended_calls(recording: &Recording<'_>, thread: Thread<'_>) -> u64 {
    let start = thread.record().start_ticks;
    let mut waits_in: HashMap<u32, bool> = HashMap::new();
    // By context: whether it is a wait, or was called in one.
    let mut in_wait: Vec<bool> = Vec::new();
    let (mut latest, mut waited) = (0, 0_u64);
    for context in thread.contexts() {
        let waits = *waits_in.entry(context.slot()).or_insert_with(|| {
            let slot = recording.slot(context.slot());
            slot.is_some_and(|slot| cause_of(&slot.name()).is_some())
        });
        let called_in_wait =
            context.caller.and_then(|caller| in_wait.get(caller as usize)) == Some(&true);
        in_wait.push(called_in_wait || waits);
        let node = context.node();
        if context.is_sampled() || context.is_inherited() || node.total_ticks == 0 {
            continue;
        }
        if context.calls() == 1 {
            latest = latest.max(node.last_start_ticks.saturating_add(node.total_ticks));
        }
        if waits && !called_in_wait {
            waited = waited.saturating_add(node.total_ticks);
        }
    }
    latest.max(if waited > 0 { start.saturating_add(waited) } else { 0 })
}

/// What is known of the system calls of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SyscallsState {
    /// Nothing.
    None,
    /// All of them.
    Complete,
    /// System calls up to some time: the process is running, or the companion was killed.
    Open,
    /// System calls up to some time: the companion stopped before the process ended.
    Stopped,
}
