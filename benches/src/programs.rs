//! Compiling the programs that are measured.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A source file of `benches/programs`.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name)
}

/// Runs gcc in `directory`, optimising, with `arguments`.
pub(crate) fn gcc<S: AsRef<OsStr>>(directory: &Path, arguments: &[S]) -> Result<()> {
    let all: Vec<&OsStr> =
        std::iter::once(OsStr::new("-O2")).chain(arguments.iter().map(AsRef::as_ref)).collect();
    compile("gcc", directory, &all)
}

/// Runs any compiler in `directory`.
pub(crate) fn compile<S: AsRef<OsStr>>(
    compiler: &str,
    directory: &Path,
    arguments: &[S],
) -> Result<()> {
    let mut command = Command::new(compiler);
    command.args(arguments).current_dir(directory);
    let output =
        command.output().with_context(|| format!("{compiler} can't build what is measured"))?;
    if !output.status.success() {
        bail!("{compiler} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// The C library that this program uses, and those that it starts.
pub(crate) fn libc() -> Result<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").context("reading what is mapped")?;
    let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let mut libraries = path.map(Path::new).filter(|path| path.ends_with("libc.so.6"));
    libraries.next().map(Path::to_owned).context("there is no libc.so.6 in this program")
}
