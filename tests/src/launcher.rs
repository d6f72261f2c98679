//! `chase`, as the tests start it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::trial::libchase;

/// The program, beside the library.
///
/// # Panics
///
/// If it is not there.
#[must_use]
pub fn chase() -> PathBuf {
    let path = libchase().with_file_name("chase");
    assert!(path.is_file(), "{} is missing: cargo build --release", path.display());
    path
}

/// `chase record`, in `directory`, with nothing set.
#[must_use]
pub fn record(directory: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(chase());
    command.arg("record").args(options).current_dir(directory).env_remove("LD_PRELOAD");
    command.env("XDG_CONFIG_HOME", directory.join("config"));
    for name in [
        "OUTPUT", "TIMING", "SYSCALLS", "SAMPLE", "LIBS", "EXCLUDE", "FOLLOW", "VERBOSE", "DELAY",
        "DURATION", "START_ON", "MAX_SIZE",
    ] {
        command.env_remove(format!("CHASE_{name}"));
    }
    command
}
