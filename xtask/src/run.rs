//! Running commands, saying which.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Instant;

/// What went wrong, in words for a person.
pub(crate) type Outcome = Result<(), String>;

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// What was built before, and is to be used as it is: a library, with the commands beside it.
fn given() -> Option<PathBuf> {
    let library = std::env::var_os("CHASE_LIB").filter(|library| !library.is_empty())?;
    // Commands are run in directories of their own.
    std::path::absolute(library).ok()
}

/// The preloaded library and the report, as built by [`build`], or as `CHASE_LIB` says.
pub(crate) fn library() -> PathBuf {
    given().unwrap_or_else(|| root().join("target/release/libchase.so"))
}

/// See [`library`].
pub(crate) fn launcher() -> PathBuf {
    library().with_file_name("chase")
}

/// See [`library`].
pub(crate) fn report() -> PathBuf {
    library().with_file_name("chase-report")
}

/// Says what is about to be done, and how long after the first.
pub(crate) fn say(what: &str) {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    let seconds = FIRST.elapsed().as_secs();
    println!("\n==> {}:{:02} {what}", seconds / 60, seconds % 60);
}

/// `cargo` with these arguments, in the repository.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command, shown as it would be typed, and fails if it does.
pub(crate) fn run(command: &mut Command) -> Outcome {
    println!("    {}", shown(command));
    let status =
        command.status().map_err(|error| format!("can't run {}: {error}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", shown(command))) }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let mut line = String::new();
    for (name, value) in command.get_envs() {
        line += &format!("{}={} ", name.display(), value.unwrap_or_default().display());
    }
    line + &words.map(|word| word.display().to_string()).collect::<Vec<_>>().join(" ")
}

/// Builds what a user runs: the library, the report, the companion; unless `CHASE_LIB` says what to use.
pub(crate) fn build() -> Outcome {
    if let Some(library) = given() {
        say(&format!("Using {}, as CHASE_LIB says", library.display()));
        let is_there = library.is_file();
        return is_there.then_some(()).ok_or_else(|| "CHASE_LIB: there is no such file".to_owned());
    }
    say("Building libchase.so, chase, chase-report and chase-companion (release)");
    let packages =
        ["-p", "chase-hook", "-p", "chase-cli", "-p", "chase-companion", "-p", "chase-launcher"];
    run(cargo(["build", "--release"]).args(packages))
}
