//! `chase record`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{IsTerminal, stderr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::{Context, ensure};
use chase_format::layout::EXTENSION;

use crate::args::RecordArgs;
use crate::child::{self, Ended};
use crate::config_file::ConfigFile;
use crate::settings::{self, DEFAULT_OUTPUT, Settings};
use crate::window::Window;
use crate::{check, companion, parts, print, say};

/// Runs the program; gives its exit status, or does not return where a signal killed it.
pub(crate) fn record(arguments: &RecordArgs) -> anyhow::Result<i32> {
    let file = ConfigFile::find()?;
    let settings = Settings::new(&arguments.recording, &file)?;
    let part = settings::part(arguments, &file)?;
    let mut variables = settings.variables.clone();
    let preload = preload()?;
    if part.begins_later() {
        variables.clear();
    } else {
        variables.push(("LD_PRELOAD", preload));
    }
    if arguments.print_env {
        ensure!(
            part.is_whole(),
            "a part of a run (--delay, --start-on, --duration) takes chase beside the program: no variable does that; \
             chase attach does"
        );
        print(&shown(&variables, &arguments.command))?;
        return Ok(0);
    }
    fs::create_dir_all(&settings.output)
        .with_context(|| format!("can't create {}", settings.output.display()))?;
    if settings.wants_companion && !part.begins_later() {
        companion::start(&settings);
    }
    if settings.quiet && part.is_whole() {
        return Ok(child::become_it(&arguments.command, &variables));
    }
    let since = SystemTime::now();
    let mut window = Window::new(part, &settings);
    variables.extend(window.variable());
    let child = child::start(&arguments.command, &variables)?;
    let (pid, child) = match child {
        child::Started::Running(pid) => (pid, child::wait(pid, &mut window)?),
        child::Started::Failed(status) => return Ok(status),
    };
    // Who closed standard error before has another file there, perhaps.
    if child::standard_error_was_open() && !settings.quiet {
        summarise(&settings, pid, since, &arguments.command, &window);
    }
    Ok(match child {
        Ended::Status(status) => status,
        Ended::Signal(signal) => child::die_likewise(signal),
    })
}

/// Ours first: the others' calls are to be seen.
fn preload() -> anyhow::Result<OsString> {
    let mut preload = parts::library()?.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    Ok(preload)
}

/// The command that does the same, for a shell.
fn shown(variables: &[(&str, OsString)], command: &[OsString]) -> String {
    let set = variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    let words = command.iter().map(|word| quoted(word));
    set.chain(words).collect::<Vec<_>>().join(" ") + "\n"
}

/// A word for a shell.
fn quoted(word: &OsStr) -> String {
    let bytes = shlex::bytes::try_quote(word.as_bytes()).unwrap_or_else(|_| word.as_bytes().into());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What came of it, on standard error.
fn summarise(
    settings: &Settings,
    pid: i32,
    since: SystemTime,
    command: &[OsString],
    window: &Window,
) {
    let shown = settings.shown_output.display();
    let text = match brief(settings, pid, since) {
        Ok(text) => {
            fold(settings);
            text + &place(settings, pid) + &next(settings)
        }
        Err(why) => {
            let why =
                window.why_nothing().or_else(|| check::why_nothing(&command[0])).unwrap_or(why);
            format!("chase: nothing was recorded in {shown}: {why}\n")
        }
    };
    say(&text);
}

/// Has the recordings of a run of very many processes put into one file.
fn fold(settings: &Settings) {
    const MANY: usize = 1_000;
    let is_recording = |entry: &fs::DirEntry| {
        entry.path().extension().is_some_and(|extension| extension == EXTENSION)
    };
    let entries = fs::read_dir(&settings.output).into_iter().flatten().flatten();
    if entries.filter(is_recording).take(MANY + 1).count() <= MANY {
        return;
    }
    let Ok(report) = parts::report() else { return };
    let mut command = Command::new(report);
    command.arg("fold").arg(&settings.output).stdin(Stdio::null()).stdout(Stdio::null());
    // What it can't do it says on standard error, and all recordings are there still.
    let _ = command.env_remove("LD_PRELOAD").status();
}

/// Where the recording of the process is.
fn place(settings: &Settings, pid: i32) -> String {
    let is_its = |name: &str| name.ends_with(&format!(".{pid}.{EXTENSION}"));
    let entries = fs::read_dir(&settings.output).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    // Where the first program is not recorded (`--follow`), those that it started are there.
    let name = names.find(|name| is_its(name)).unwrap_or_default();
    format!("Recorded in {}\n", settings.shown_output.join(name).display())
}

/// What to type next, with this program as it was typed.
fn next(settings: &Settings) -> String {
    let own = std::env::args_os().next().unwrap_or_else(|| "chase".into());
    let mut words = vec![own, "report".into()];
    if settings.shown_output != Path::new(DEFAULT_OUTPUT) {
        words.push(settings.shown_output.clone().into());
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("Next: {}    (html makes a page of it; --help has more)\n", words.join(" "))
}

/// The same of one recording.
pub(crate) fn summarise_recording(settings: &Settings, recording: &Path) {
    let name = recording.file_name().unwrap_or_default();
    let shown = settings.shown_output.join(name);
    say(&match shown_brief(&[], &shown) {
        Ok(text) => format!("{text}Recorded in {}\n{}", shown.display(), next(settings)),
        Err(why) => format!("chase: {}: {why}\n", shown.display()),
    });
}

/// The summary, by `chase-report`; or why there is none.
fn brief(settings: &Settings, pid: i32, since: SystemTime) -> Result<String, String> {
    let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // SAFETY: it only asks for a number.
    let session = unsafe { libc::getsid(0) };
    let launched = format!("{pid},{session},{}", since.as_nanos());
    shown_brief(&["--launched", &launched], &settings.shown_output)
}

fn shown_brief(which: &[&str], place: &Path) -> Result<String, String> {
    let report = parts::report().map_err(|error| format!("{error:#}"))?;
    let mut command = Command::new(report);
    command.args(["brief", "--no-pager"]).args(which);
    command.arg(place).stdin(Stdio::null()).env_remove("LD_PRELOAD");
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if stderr().is_terminal() && !plain {
        command.args(["--color", "always"]);
    }
    if let Some(columns) = columns() {
        command.env("COLUMNS", columns.to_string());
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.trim().trim_start_matches("chase-report: ").to_owned())
}

/// Width of the terminal that standard error is.
fn columns() -> Option<u16> {
    // SAFETY: all-zero is a valid structure, which the kernel fills in.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let found = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (found == 0 && size.ws_col > 0).then_some(size.ws_col)
}
