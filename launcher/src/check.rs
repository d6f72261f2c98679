//! `chase check`: what can and can't be seen of a program, told from its file.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::args::CheckArgs;
use crate::elf::{self, Kind, Program};
use crate::libraries::Libraries;
use crate::{doctor, print};

/// Nothing can be recorded.
const NOTHING: i32 = 1;
/// Interpreters of interpreters; the kernel allows so many.
const DEEPEST_SCRIPT: usize = 5;

/// Says what can be seen of a program. Exit status 1 if nothing can.
pub(crate) fn check(arguments: &CheckArgs) -> anyhow::Result<i32> {
    let (path, program, mut out) = find(arguments.program.as_os_str())?;
    let program = match program {
        Ok(program) => program,
        Err(why) => {
            print(&format!("{out}  no   {why}\n"))?;
            return Ok(NOTHING);
        }
    };
    if let Some((why, advice)) = obstacle(&path, &program) {
        print(&format!("{out}  no   nothing can be recorded: {why}\n       {advice}\n"))?;
        return Ok(NOTHING);
    }
    let file = look_up(arguments.program.as_os_str())?;
    if file.is_file() && !is_executable(&file) {
        print(&format!(
            "{out}  no   it is not executable: chmod +x it, or name the program that runs it\n"
        ))?;
        return Ok(NOTHING);
    }
    let mut row = |mark: &str, text: String| out.push_str(&format!("  {mark:4} {text}\n"));
    row("ok", "dynamically linked, for glibc on x86-64: its calls can be recorded".to_owned());
    row("ok", format!("imports: {}", imports(&program)));
    if program.in_data > 0 {
        row(
            "no",
            format!(
                "{} functions of libraries are in its data, as pointers: calls through them are not seen",
                program.in_data
            ),
        );
    }
    if let Some(sanitizer) = sanitizer(&program) {
        row(
            "note",
            format!(
                "built with {sanitizer}: calls that are bound to its run-time system are left alone"
            ),
        );
    }
    if program.is_go {
        row(
            "note",
            "made by Go: only what it calls by cgo goes through shared libraries".to_owned(),
        );
    }
    let libraries = Libraries::used_by(&path, &program);
    row("ok", libraries.loaded_row(&program));
    row("ok", libraries.opened_row());
    row_of_names(&program, &mut row);
    row(
        "note",
        "not seen: calls inside one object, inlined code, what the linker bound statically"
            .to_owned(),
    );
    for (mark, text) in doctor::companion() {
        row(mark, text);
    }
    out.push_str(&format!("\nRecord it: chase record {}\n", arguments.program.display()));
    print(&out)?;
    Ok(0)
}

fn imports(program: &Program) -> String {
    let calls = match program.called {
        1 => "1 function is called through the PLT, and can be hooked".to_owned(),
        calls => format!("{calls} functions are called through the PLT, and can be hooked"),
    };
    match program.in_got {
        0 => calls,
        got => format!(
            "{calls}; of {got} whose address is in the GOT, those that are only called (that shows when it is loaded; others are left alone, since pointers to them may be compared)"
        ),
    }
}

fn row_of_names(program: &Program, row: &mut impl FnMut(&str, String)) {
    match (program.has_lines, program.has_symbols) {
        (true, _) => row("ok", "has debug information: functions and lines are shown".to_owned()),
        (false, true) => {
            row("note", "has symbols, no debug information: functions are shown, lines are not (compile with -g)".to_owned());
        }
        (false, false) => {
            let by = match &program.build_id {
                Some(id) if program.has_link => format!(
                    "its debug information is in another file (build id {id}): install that, or --debug-dir"
                ),
                Some(id) => format!(
                    "debug information is looked for by build id {id}: install it, or --debug-dir"
                ),
                None => "without a build id, too: keep the unstripped file".to_owned(),
            };
            row("note", format!("stripped: library calls have names, own functions may not; {by}"));
        }
    }
}

fn sanitizer(program: &Program) -> Option<&'static str> {
    let has = |what: &str| {
        program.needed.iter().any(|name| name.starts_with(&format!("lib{what}.")))
            || program.imports.iter().any(|name| name.starts_with(&format!("__{what}_init")))
    };
    [
        ("asan", "AddressSanitizer"),
        ("tsan", "ThreadSanitizer"),
        ("msan", "MemorySanitizer"),
        ("lsan", "LeakSanitizer"),
    ]
    .into_iter()
    .find_map(|(what, name)| has(what).then_some(name))
}

/// Why nothing can be recorded of a program, and what to do.
fn obstacle(path: &Path, program: &Program) -> Option<(String, &'static str)> {
    let Some(interpreter) = &program.interpreter else {
        return Some((
            "it is statically linked".to_owned(),
            "Link it dynamically. Programs that it starts are recorded, if they are not static.",
        ));
    };
    if interpreter.to_string_lossy().contains("ld-musl") {
        return Some((
            "it is for musl".to_owned(),
            "Build it for glibc (target x86_64-unknown-linux-gnu).",
        ));
    }
    if !interpreter.exists() {
        let why = format!("its dynamic linker, {}, is not on this machine", interpreter.display());
        return Some((why, "It does not run here at all."));
    }
    const AS_COPY: &str =
        "Record a copy without the bit or capabilities, as a user who may do what it does.";
    let mode = fs::metadata(path).map_or(0, |metadata| metadata.mode());
    const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
    if mode & SET_ID != 0 && !is_own(path) {
        let why = "it is set-user-id or set-group-id: the dynamic linker preloads nothing that a user names";
        return Some((why.to_owned(), AS_COPY));
    }
    if has_capabilities(path) && !is_root() {
        let why = "it has file capabilities: the dynamic linker preloads nothing that a user names";
        return Some((why.to_owned(), AS_COPY));
    }
    None
}

fn is_root() -> bool {
    // SAFETY: it only asks for a number.
    unsafe { libc::geteuid() == 0 }
}

/// Whether its set-id bits change nothing.
fn is_own(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else { return false };
    // SAFETY: they only ask for numbers.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let mode = metadata.mode();
    (mode & libc::S_ISUID == 0 || metadata.uid() == user)
        && (mode & libc::S_ISGID == 0 || metadata.gid() == group)
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both are C strings, and nothing is written.
    unsafe {
        libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0
    }
}

/// In one clause, why nothing was recorded of a program that was run; `None` if its file does not tell.
pub(crate) fn why_nothing(program: &OsStr) -> Option<String> {
    let (path, program, _) = find(program).ok()?;
    match program {
        Ok(program) => obstacle(&path, &program).map(|(why, _)| why),
        Err(why) => Some(why),
    }
}

/// What a file that can't be started names and is not on this machine: the interpreter of a script, or a dynamic linker.
pub(crate) fn missing(program: &OsStr) -> Option<String> {
    let (needed, what) = match elf::read(Path::new(program)).ok()? {
        Kind::Script(interpreter) => (interpreter, "which its first line names"),
        Kind::Program(program) => (program.interpreter?, "its dynamic linker"),
        Kind::Other(_) => return None,
    };
    (!needed.exists()).then(|| format!("{}, {what}", needed.display()))
}

/// The executable that runs, or why it can't be recorded; and the way to it, for people.
fn find(name: &OsStr) -> anyhow::Result<(PathBuf, Result<Box<Program>, String>, String)> {
    let mut path = look_up(name)?;
    let mut out = format!("{}\n", path.display());
    for _ in 0..DEEPEST_SCRIPT {
        match elf::read(&path)? {
            Kind::Program(program) => return Ok((path, Ok(program), out)),
            Kind::Other(why) => return Ok((path, Err(why.to_owned()), out)),
            Kind::Script(interpreter) => {
                path = look_up(interpreter.as_os_str())?;
                out.push_str(&format!("  a script: what runs is {}\n", path.display()));
            }
        }
    }
    bail!("{}: too many interpreters", path.display())
}

/// Whether anybody may execute this file.
pub(crate) fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The file that a command name stands for.
fn look_up(name: &OsStr) -> anyhow::Result<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    if Path::new(name).is_dir() {
        bail!("{} is a directory", name.display());
    }
    let path: OsString = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| is_executable(file))
        .with_context(|| format!("there is no {} in $PATH", name.display()))
}
