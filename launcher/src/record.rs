//! `chase record`.

use std::ffi::{CString, OsString};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::{Context, ensure};
use chase_format::layout::EXTENSION;

use crate::args::RecordArgs;
use crate::child::{self, Ended};
use crate::config_file::ConfigFile;
use crate::settings::Settings;
use crate::summary::{brief, next, quoted};
use crate::window::Window;
use crate::{check, companion, killed, part, parts, print, say, standard_error_was_open};

/// Runs the program; gives its exit status, or does not return where a signal killed it.
pub(crate) fn record(arguments: &RecordArgs) -> anyhow::Result<i32> {
    let file = ConfigFile::find()?;
    let settings = Settings::new(&arguments.recording, &file)?;
    let part = part::wanted(arguments, &file)?;
    let mut variables = settings.variables.clone();
    let preload = preload()?;
    if part.begins_later() {
        variables.clear();
    } else {
        variables.extend(
            part.first_call().map(|call| ("CHASE_START_ON", format!("call:{call}").into())),
        );
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
    fs::create_dir_all(&settings.output).with_context(|| {
        format!("can't create {} (-o names another directory)", settings.output.display())
    })?;
    let begins_later = part.begins_later();
    let prepare = |process: i32| {
        if !begins_later {
            companion::start(&settings, process);
        }
    };
    if settings.quiet && part.is_whole() {
        prepare(std::process::id() as i32);
        return Ok(child::become_it(&arguments.command, &variables));
    }
    let since = SystemTime::now();
    let mut window = Window::new(part, &settings);
    // (Its time begins with the program, not while a companion is started.)
    let prepare = |process: i32| {
        prepare(process);
        window.open()
    };
    let child = child::start(&arguments.command, &variables, prepare)?;
    let (pid, child) = match child {
        child::Started::Running(pid) => (pid, child::wait(pid, &mut window)?),
        child::Started::Failed(status) => return Ok(status),
    };
    if let Ended::Signal(signal) = child {
        let end = own_end(pid);
        for name in recordings(&settings.output).filter(|name| name.ends_with(&end)) {
            // Where it can't be noted, the end was not seen.
            let _ = killed::note(&settings.output.join(name), pid, since, signal);
        }
    }
    // The library says itself why it does not let the program begin.
    let was_refused = settings.requires_companion
        && matches!(child, Ended::Status(1))
        && !recordings(&settings.output).any(|name| name.ends_with(&own_end(pid)));
    // Who closed standard error before has another file there, perhaps.
    if standard_error_was_open() && !settings.quiet && !was_refused {
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
            let is_folded = fold(settings);
            let place = place(settings, pid, is_folded);
            text + &place + &next(settings)
        }
        // Such as where the program's limits are too narrow for the report.
        Err(why) if recordings(&settings.output).any(|name| name.ends_with(&own_end(pid))) => {
            format!("chase: there is no summary: {why}\n")
                + &place(settings, pid, false)
                + &next(settings)
        }
        Err(why) => {
            let why = check::why_nothing(&command[0])
                .or_else(|| window.why_nothing())
                .or_else(|| why_no_place(&settings.output))
                .or_else(|| why_no_room(&settings.output))
                .or_else(|| why_not_followed(settings))
                .unwrap_or(why);
            format!("chase: nothing was recorded in {shown}: {why}\n")
        }
    };
    say(&text);
}

/// Says so where the directory is gone, or nothing may be written there.
fn why_no_place(output: &Path) -> Option<String> {
    let path = CString::new(output.as_os_str().as_bytes()).ok()?;
    // SAFETY: the path ends with null.
    if unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) } == 0 {
        return None;
    }
    let why = match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::ENOENT) => "it is gone",
        Some(libc::EACCES) => "you may not write there",
        Some(libc::EROFS) => "its file system may not be written to",
        _ => return None,
    };
    Some(format!("{why}; name another directory with -o"))
}

/// Says so where only some programs were to be recorded.
fn why_not_followed(settings: &Settings) -> Option<String> {
    let (_, globs) = settings.variables.iter().find(|(name, _)| *name == "CHASE_FOLLOW")?;
    let globs = globs.to_str().filter(|globs| !["all", "none"].contains(globs))?;
    Some(format!(
        "no program that was started matches --follow {globs} (a glob is for the name of the executable or script, with a slash in it \
         for the executable's path, with a space for the command line)"
    ))
}

/// Says so where a disk is too full for a recording, which needs some hundred kilobytes.
fn why_no_room(output: &Path) -> Option<String> {
    const LITTLE: u64 = 1 << 20;
    let path = CString::new(output.as_os_str().as_bytes()).ok()?;
    let mut told = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with null, and there is room for what is told.
    if unsafe { libc::statvfs(path.as_ptr(), told.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call succeeded.
    let told = unsafe { told.assume_init() };
    let free = told.f_bavail * told.f_frsize;
    (free < LITTLE).then(|| {
        let kilobytes = free >> 10;
        format!(
            "its disk has {kilobytes} kB left; free space there, or name another directory with -o"
        )
    })
}

/// Has the recordings of a run of many processes put into one file. Whether that was done.
fn fold(settings: &Settings) -> bool {
    const MANY: usize = 50;
    if recordings(&settings.output).take(MANY + 1).count() <= MANY {
        return false;
    }
    let Ok(report) = parts::report() else { return false };
    let mut command = Command::new(report);
    command.arg("fold").arg(&settings.output).stdin(Stdio::null()).stdout(Stdio::null());
    // What it can't do it says on standard error, and all recordings are there still.
    command.env_remove("LD_PRELOAD").status().is_ok_and(|status| status.success())
}

/// The names of the recordings in a directory.
fn recordings(directory: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(&format!(".{EXTENSION}")))
}

/// How the names of the recordings of a process end.
fn own_end(pid: i32) -> String {
    format!(".{pid}.{EXTENSION}")
}

/// Where the recording of the process is.
fn place(settings: &Settings, pid: i32, is_folded: bool) -> String {
    let end = own_end(pid);
    // Where the first program is not recorded (`--follow`), those that it started are there.
    let name = recordings(&settings.output).find(|name| name.ends_with(&end)).unwrap_or_default();
    let how = if is_folded { ", in one file for all processes that have ended" } else { "" };
    let place = match name.is_empty() {
        true => settings.shown_output.clone(),
        false => settings.shown_output.join(name),
    };
    format!("Recorded in {}{how}\n", place.display())
}
