//! `chase`: starts a program with `libchase.so` in it, and says at the end what came of it.
//!
//! The program is to behave as if it had been started by itself: [`child`] says how. What is asked for ([`args`],
//! [`config_file`]) goes to the library as variables in the program's environment alone ([`settings`]).
//!
//! There is no `main` of Rust's: before that, the standard library would ignore SIGPIPE and open descriptors that
//! are closed, and the program would inherit both.
#![cfg_attr(not(test), no_main)]
#![cfg_attr(test, allow(dead_code, reason = "the harness has a main of its own"))]

mod args;
mod attach;
mod check;
mod child;
mod clock;
mod companion;
mod config_file;
mod doctor;
mod elf;
mod killed;
mod libraries;
mod part;
mod parts;
mod record;
mod settings;
mod summary;
mod window;

use std::ffi::{OsString, c_char, c_int};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Cli, Task};

/// Exit status where it is chase that failed, as with `env` and `timeout`.
pub(crate) const OWN_FAILURE: i32 = 125;

#[cfg_attr(not(test), unsafe(export_name = "main"))]
extern "C" fn run(_: c_int, _: *const *const c_char) -> c_int {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    let result = match cli.task {
        Task::Record(arguments) => record::record(&arguments),
        Task::Attach(arguments) => attach::attach(&arguments),
        Task::Check(arguments) => check::check(&arguments),
        Task::Doctor => doctor::doctor(),
        Task::Report { arguments } => report(arguments),
        Task::Top { arguments } => report([vec!["top".into()], arguments].concat()),
        Task::Generate { directory } => {
            chase_manual::generate(Cli::command(), &directory).map(|()| 0).map_err(Into::into)
        }
    };
    result.unwrap_or_else(|error| {
        say(&format!("chase: {error:#}\n"));
        OWN_FAILURE
    })
}

/// Wrong usage, or help that was asked for.
fn explain(error: &clap::Error) -> c_int {
    // Where nobody can be told, the status has to do.
    let _ = error.print();
    let first = std::env::args().nth(1).unwrap_or_default();
    if error.kind() == ErrorKind::InvalidSubcommand && is_program(&first) {
        say(&format!("\nTo record a program: chase record {first} ...\n"));
    }
    let _ = std::io::stdout().flush();
    error.exit_code()
}

/// Whether a shell would find a program of that name.
fn is_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    name.contains('/') || std::env::split_paths(&path).any(|place| place.join(name).is_file())
}

/// `chase report …` is `chase-report …`, and `chase top …` is `chase-report top …`.
fn report(arguments: Vec<OsString>) -> anyhow::Result<i32> {
    let program = parts::report()?;
    Err(Command::new(&program).args(arguments).exec())
        .map_err(|error| anyhow::anyhow!("can't start {}: {error}", program.display()))
}

/// Whether standard error was open at the start.
pub(crate) fn standard_error_was_open() -> bool {
    static WAS_OPEN: OnceLock<bool> = OnceLock::new();
    // SAFETY: it only asks for flags.
    *WAS_OPEN.get_or_init(|| unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_GETFD) } >= 0)
}

/// Writes to standard error.
pub(crate) fn say(text: &str) {
    // Where standard error is closed, nobody is left to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Writes to standard output, now: nothing does so at the end.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
