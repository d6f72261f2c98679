//! A part of the run: `chase record` with `--delay`, `--start-on`, `--duration`.
//!
//! Where the recording is to begin later, the program is started without the library, and runs as it would without chase until chase
//! comes into it, as `chase attach` does: into the program and whatever it has started by then. Where a call begins
//! it, the library does so by itself. Where it is to end sooner, chase leaves all processes that are recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::args::StartOn;
use crate::attach::{self, Came};
use crate::clock::monotonic;
use crate::part::Part;
use crate::settings::Settings;
use crate::{companion, say};

/// Looks for further processes, which a recorded one has started meanwhile.
const ROUNDS: u32 = 20;
/// How often chase looks whether a call has begun the recording.
const PAUSE: Duration = Duration::from_millis(20);

/// Where the recording stands.
enum State {
    /// It begins at a time, or when a signal comes.
    Before(Option<Instant>),
    /// A call begins it: whether that has come is looked at next at this time.
    Awaiting(Instant),
    /// It ends at a time, if it does.
    During(Option<Instant>),
    Over,
}

/// The part of the run that is recorded.
pub(crate) struct Window<'a> {
    part: Part,
    settings: &'a Settings,
    /// Recordings that are none of this run.
    before: Vec<PathBuf>,
    state: State,
    has_begun: bool,
    /// Whether any process was recorded from then on.
    has_come: bool,
}

impl<'a> Window<'a> {
    pub(crate) fn new(part: Part, settings: &'a Settings) -> Self {
        let before = if part.is_whole() { Vec::new() } else { recordings(&settings.output) };
        let has_begun = !part.begins_later();
        Self { part, settings, before, state: State::Over, has_begun, has_come: has_begun }
    }

    /// The program is started now. Gives what the library is told of it, for processes that start when it is over: `NAME=value`.
    pub(crate) fn open(&mut self) -> Option<String> {
        let at = |time: Option<Duration>| time.map(|time| Instant::now() + time);
        let part = &self.part;
        self.state = match part {
            _ if part.begins_later() => State::Before(at(part.delay)),
            _ if part.is_whole() => State::Over,
            _ if part.first_call().is_some() => State::Awaiting(Instant::now()),
            _ => State::During(at(part.duration)),
        };
        let begins_at_once = !part.begins_later() && part.first_call().is_none();
        let until = monotonic() + part.duration.filter(|_| begins_at_once)?;
        Some(format!("CHASE_UNTIL={}", until.as_nanos()))
    }

    /// When [`Window::step`] is to be called.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.state {
            State::Before(at) | State::During(at) => at,
            State::Awaiting(at) => Some(at),
            State::Over => None,
        }
    }

    /// Whether this signal, which another process has sent to chase, is meant for it.
    pub(crate) fn takes(&mut self, program: i32, signal: i32) -> bool {
        if self.part.start_on != Some(StartOn::Signal(signal)) {
            return false;
        }
        self.go_on(program);
        true
    }

    /// Does what is due by now.
    pub(crate) fn step(&mut self, program: i32) {
        if self.due().is_some_and(|due| due <= Instant::now()) {
            self.go_on(program);
        }
    }

    fn go_on(&mut self, program: i32) {
        match self.state {
            State::Before(_) => self.begin(program),
            State::Awaiting(_) => self.look_for_call(),
            State::During(_) => self.end(),
            State::Over => {}
        }
    }

    /// Comes into the program, and into what it has started.
    fn begin(&mut self, program: i32) {
        self.has_begun = true;
        companion::start_as(self.settings, None);
        let mut seen = Vec::new();
        for _ in 0..ROUNDS {
            let new: Vec<i32> =
                family(program).into_iter().filter(|pid| !seen.contains(pid)).collect();
            if new.is_empty() {
                break;
            }
            for pid in new {
                seen.push(pid);
                match attach::come(pid, self.settings) {
                    Ok(Came::Recording | Came::Already) => self.has_come = true,
                    Ok(Came::Gone) => {}
                    Err(error) => say(&format!("chase: not recorded: {error:#}\n")),
                }
            }
        }
        self.state = State::During(self.part.duration.map(|duration| Instant::now() + duration));
    }

    /// Looks whether the call has come: then a process has a recording.
    fn look_for_call(&mut self) {
        let recordings = recordings(&self.settings.output);
        let now = Instant::now();
        self.state = match recordings.iter().any(|path| !self.before.contains(path)) {
            true => State::During(self.part.duration.map(|duration| now + duration)),
            false => State::Awaiting(now + PAUSE),
        };
    }

    /// Leaves all processes that are recorded.
    fn end(&mut self) {
        self.state = State::Over;
        let mut tried = Vec::new();
        for _ in 0..ROUNDS {
            let of_run = recordings(&self.settings.output);
            let of_run = of_run.iter().filter(|path| !self.before.contains(path));
            let new: Vec<i32> = of_run
                .filter_map(|path| recorded_process(path))
                .filter(|pid| !tried.contains(pid))
                .collect();
            if new.is_empty() {
                break;
            }
            for pid in new {
                tried.push(pid);
                if let Err(error) = attach::go(pid) {
                    say(&format!("chase: {error:#}\n"));
                }
            }
        }
    }

    /// Why nothing was recorded, if that is why.
    pub(crate) fn why_nothing(&self) -> Option<String> {
        if let Some(call) = self.part.first_call() {
            return Some(format!(
                "perhaps {call} was not called through an import of an object that was loaded at the start \
                 (calls inside one object, such as those of a program's own functions, are not seen)"
            ));
        }
        let why = match self.part {
            _ if self.has_come => return None,
            _ if self.has_begun => "the program had ended when the recording began".to_owned(),
            Part { delay: Some(delay), .. } => {
                format!("the program ended before the recording began (--delay {delay:?})")
            }
            _ => "the program ended before the signal came that begins the recording (--start-on)"
                .to_owned(),
        };
        Some(why)
    }
}

/// A process and those that it has started, with those that these have started.
fn family(program: i32) -> Vec<i32> {
    let mut found = vec![program];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        next += 1;
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
    }
    found
}

fn recordings(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|it| it == "chase")).collect()
}

/// The process that writes a recording, if it lives: one of this number that has mapped a file of this name. (By which way the process
/// came to its directory, by `..`, links, or in a root of its own, the kernel's list doesn't tell.)
fn recorded_process(path: &Path) -> Option<i32> {
    let name = path.file_stem()?.to_str()?;
    let end = format!("/{}", path.file_name()?.to_str()?);
    let has_mapped = |pid: &i32| {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        maps.lines().any(|line| line.ends_with(&end))
    };
    name.split('.').filter_map(|part| part.parse().ok()).find(has_mapped)
}
