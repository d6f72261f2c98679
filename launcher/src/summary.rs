//! The summary at the end of a recording, which `chase-report` writes, and what to type next.

use std::ffi::OsStr;
use std::io::{IsTerminal, stderr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use crate::settings::{DEFAULT_OUTPUT, Settings};
use crate::{parts, say};

/// A word for a shell.
pub(crate) fn quoted(word: &OsStr) -> String {
    let bytes = shlex::bytes::try_quote(word.as_bytes()).unwrap_or_else(|_| word.as_bytes().into());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What to type next, with this program as it was typed.
pub(crate) fn next(settings: &Settings) -> String {
    let own = std::env::args_os().next().unwrap_or_else(|| "chase".into());
    let mut words = vec![own, "report".into()];
    if settings.shown_output != Path::new(DEFAULT_OUTPUT) {
        words.push(settings.shown_output.clone().into());
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("Next: {}    (html makes a page of it; --help has more)\n", words.join(" "))
}

/// The summary of one recording, on standard error.
pub(crate) fn summarise_recording(settings: &Settings, recording: &Path) {
    let name = recording.file_name().unwrap_or_default();
    let shown = settings.shown_output.join(name);
    say(&match shown_brief(&[], &shown) {
        Ok(text) => format!("{text}Recorded in {}\n{}", shown.display(), next(settings)),
        Err(why) => format!("chase: {}: {why}\n", shown.display()),
    });
}

/// The summary, by `chase-report`; or why there is none.
pub(crate) fn brief(settings: &Settings, pid: i32, since: SystemTime) -> Result<String, String> {
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
