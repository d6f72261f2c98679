//! Compiling the programs that are measured.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A source file of `benches/programs`.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name)
}

/// Runs gcc in `directory`, optimising, with `arguments`.
pub(crate) fn gcc<S: AsRef<std::ffi::OsStr>>(directory: &Path, arguments: &[S]) -> Result<()> {
    let gcc = Command::new("gcc")
        .arg("-O2")
        .args(arguments)
        .current_dir(directory)
        .output()
        .context("starting gcc; it is needed to build what is measured")?;
    if !gcc.status.success() {
        bail!("gcc failed: {}", String::from_utf8_lossy(&gcc.stderr).trim());
    }
    Ok(())
}
