//! `chase attach`: a process that runs already.
//!
//! The library is loaded by a thread of its own in the process ([`work`]), which a stopped thread is made to start
//! ([`calls`]); the others are stopped for the time that takes, where they hold nothing ([`stopped`], [`places`]), so
//! that no fork copies a lock that is held. It is a copy, in a file without a name, that waits to be told and takes little
//! thread-local storage ([`library`]). It stays when chase leaves: calls may return through it.

mod calls;
mod filters;
mod helper;
mod library;
mod memory;
mod objects;
mod places;
mod process;
mod resume;
mod stopped;
mod trace;
mod unwind;
mod wait;
mod work;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use chase_format::layout::EXTENSION;

use self::library::Library;
use self::process::Process;
use self::wait::{Over, Signals};
use self::work::{Done, Prepared, Task};
use crate::args::AttachArgs;
use crate::config_file::ConfigFile;
use crate::settings::Settings;
use crate::{companion, parts, say, summary};

/// Tries to leave, a while apart.
const TRIES: u32 = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// Records a process for a while; exit status 0.
pub(crate) fn attach(arguments: &AttachArgs) -> anyhow::Result<i32> {
    let process = Process::find(arguments.pid)?;
    if arguments.leave {
        left_at_last(&process, |done| say(&left(&process, done)))?;
        return Ok(0);
    }
    let settings = Settings::new(&arguments.recording, &ConfigFile::find()?)?;
    let library = Library::read(&parts::library()?)?;
    let is_new = !settings.output.exists();
    fs::create_dir_all(&settings.output).with_context(|| {
        format!("can't create {} (-o names another directory)", settings.output.display())
    })?;
    process.give_directory(&settings.output, is_new)?;
    // SAFETY: it only asks for a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    companion::start_as(&settings, Some(process.owner).filter(|it| is_root && it.user != 0));
    // From here on, they end the recording.
    let signals = Signals::hold();
    let before = recordings(&settings.output, process.own_pid);
    let done = traced(&process, |prepared| {
        let attachment = prepared.attachment()?;
        if let Some(there) = attachment {
            ensure!(
                !there.is_preloaded,
                "it was started with chase, and records itself: chase top {}",
                process.pid
            );
            ensure!(
                !there.is_recording,
                "it is recorded already (chase attach --leave {} ends that)",
                process.pid
            );
        }
        prepared.carry_out(&Task::Attach(&library, variables(&settings)))
    });
    // (Whatever failed then, that is why.)
    ensure!(done.is_ok() || process.is_there(), process.why_ended());
    let done = done
        .with_context(|| format!("process {} ({}) can't be recorded", process.pid, process.name))?;
    let recording = recordings(&settings.output, process.own_pid)
        .into_iter()
        .find(|path| !before.contains(path));
    if !settings.quiet {
        say(&began(&process, &done, arguments.duration));
    }
    let over = signals.wait(process.pid, arguments.duration)?;
    if matches!(over, Over::Ended) {
        say(&format!("chase: process {} has ended\n", process.pid));
    } else {
        left_at_last(&process, |done| {
            if !settings.quiet {
                say(&left(&process, done));
            }
        })?;
    }
    if !settings.quiet
        && let Some(recording) = recording
    {
        summary::summarise_recording(&settings, &recording);
    }
    Ok(0)
}

/// What came of [`come`].
pub(crate) enum Came {
    /// It is recorded from now on.
    Recording,
    /// It was recorded already.
    Already,
    /// It has ended.
    Gone,
}

/// Comes into a process of a run, for its recording to begin.
///
/// # Errors
/// If it can't be recorded, with the reason.
pub(crate) fn come(pid: i32, settings: &Settings) -> anyhow::Result<Came> {
    let process = match Process::find(pid) {
        Err(_) if !process::is_there(pid) => return Ok(Came::Gone),
        found => found?,
    };
    let library = Library::read(&parts::library()?)?;
    match process.give_directory(&settings.output, false) {
        Err(_) if !process.is_there() => return Ok(Came::Gone),
        given => given?,
    }
    let mut came = Came::Recording;
    let done = traced(&process, |prepared| {
        if prepared.attachment()?.is_some_and(|there| there.is_recording) {
            came = Came::Already;
            return Ok(Done::nothing());
        }
        prepared.carry_out(&Task::Attach(&library, variables(settings)))
    });
    match done {
        Err(_) if !process.is_there() => Ok(Came::Gone),
        Err(error) => Err(error.context(format!("process {pid} ({})", process.name))),
        Ok(_) => Ok(came),
    }
}

/// Ends the recording of a process of a run.
///
/// # Errors
/// If it goes on, with the reason.
pub(crate) fn go(pid: i32) -> anyhow::Result<()> {
    match Process::find(pid) {
        Err(_) if !process::is_there(pid) => Ok(()),
        found => left_at_last(&found?, |_| {}),
    }
}

/// Why there is nothing to leave.
#[derive(Debug)]
struct NotRecorded;

impl std::fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it is not recorded")
    }
}

impl std::error::Error for NotRecorded {}

/// Ends the recording, leaves all entries as they were, and reports what came of it.
fn left_at_last(process: &Process, report: impl Fn(&Done)) -> anyhow::Result<()> {
    let mut tries = 0;
    loop {
        let done = traced(process, |prepared| {
            let there = prepared.attachment()?.ok_or(NotRecorded)?;
            ensure!(there.is_recording, NotRecorded);
            if !there.may_be_left {
                bail!("it was started with chase, which stays to its end");
            }
            prepared.carry_out(&Task::Detach)
        });
        tries += 1;
        match done {
            Ok(done) => {
                report(&done);
                return Ok(());
            }
            Err(_) if !process.is_there() => return Ok(()),
            // Nothing is there to be tried again.
            Err(error) if error.is::<NotRecorded>() => {
                return Err(error.context(format!("process {} ({})", process.pid, process.name)));
            }
            Err(error) if tries >= TRIES => {
                return Err(error.context(format!(
                    "chase can't leave process {} ({}), which goes on being recorded (chase attach --leave {0} tries again)",
                    process.pid, process.name
                )));
            }
            Err(_) => std::thread::sleep(BETWEEN_TRIES),
        }
    }
}

/// Does something to the process in a thread that then ends, so that nothing stays stopped, whatever happens.
fn traced(
    process: &Process,
    work: impl FnOnce(&Prepared) -> anyhow::Result<Done> + Send,
) -> anyhow::Result<Done> {
    let run = || work(&Prepared::new(process)?);
    let result = std::thread::scope(|scope| scope.spawn(run).join());
    result.unwrap_or_else(|_| bail!("an internal error"))
}

/// What the library is told.
fn variables(settings: &Settings) -> Vec<String> {
    let shown = |(name, value): &(&str, std::ffi::OsString)| {
        format!("{name}={}", String::from_utf8_lossy(value.as_bytes()))
    };
    settings.variables.iter().filter(|(name, _)| *name != "CHASE_VERBOSE").map(shown).collect()
}

fn began(process: &Process, done: &Done, duration: Option<Duration>) -> String {
    let Done { threads, under_way, stopped, .. } = done;
    let end = match duration {
        Some(duration) => format!("for {} s", duration.as_secs_f64()),
        None => "until Ctrl-C".to_owned(),
    };
    format!(
        "chase: recording process {} ({}), {threads} {}, {end}; calls under way in {under_way} of them are not seen. It stood still for {:.1} ms.\n",
        process.pid,
        process.name,
        if *threads == 1 { "thread" } else { "threads" },
        stopped.as_secs_f64() * 1e3
    )
}

fn left(process: &Process, done: &Done) -> String {
    let mut counts = done.said.split(' ');
    let entries = counts.next().unwrap_or("?");
    let inside: u64 = counts.next().and_then(|count| count.parse().ok()).unwrap_or(0);
    let stays = match inside {
        0 => "its library stays mapped, unused".to_owned(),
        1 => "1 thread is inside a call that returns through chase's code, which stays mapped"
            .to_owned(),
        _ => format!(
            "{inside} threads are inside calls that return through chase's code, which stays mapped"
        ),
    };
    format!(
        "chase: left process {}: {entries} entries are as they were; {stays}. It stood still for {:.1} ms.\n",
        process.pid,
        done.stopped.as_secs_f64() * 1e3
    )
}

/// The recordings of a process in a directory.
fn recordings(directory: &Path, pid: i32) -> Vec<PathBuf> {
    let is_its = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(&format!(".{EXTENSION}")) else { return false };
        stem.split('.').any(|part| part == pid.to_string())
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_its).collect()
}
