//! Another release of a distribution, whose compiler makes the programs and whose C library they run with, while the tests
//! themselves are here: its root directory is in `CHASE_TESTS_ROOT`, and has this machine's `/tmp` and the repository in their
//! places (`cargo xtask releases`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Says which version it is of.
const HEADER: &str = "/usr/include/features.h";

/// Its root directory, if there is one.
#[must_use]
pub fn root() -> Option<PathBuf> {
    std::env::var_os("CHASE_TESTS_ROOT").map(PathBuf::from)
}

/// The minor version of the C library that programs are made for: of glibc 2.31, 31.
///
/// # Panics
///
/// If its headers are not there.
#[must_use]
pub fn glibc_minor() -> u32 {
    minor_of(&inside(HEADER.into()))
}

/// The same of this machine's.
pub(crate) fn own_glibc_minor() -> u32 {
    minor_of(Path::new(HEADER))
}

fn minor_of(header: &Path) -> u32 {
    let text = std::fs::read_to_string(header).expect("the C library's headers");
    let line = text.lines().find_map(|line| line.strip_prefix("#define\t__GLIBC_MINOR__\t"));
    line.and_then(|minor| minor.trim().parse().ok()).expect("the C library's version")
}

/// Whether the C library tells debuggers, and so chase, of namespaces that `dlmopen` makes.
#[must_use]
pub fn lists_namespaces() -> bool {
    glibc_minor() >= 35
}

/// Whether the C library has `_Fork`.
#[must_use]
pub fn has_fork_without_handlers() -> bool {
    glibc_minor() >= 34
}

/// Whether the C library reads packed relocations (`DT_RELR`).
#[must_use]
pub fn reads_packed_relocations() -> bool {
    glibc_minor() >= 36
}

/// Whether libpthread is a library of its own, which calls others by name, and describes its data in no section that is loaded.
#[must_use]
pub fn has_libpthread() -> bool {
    glibc_minor() < 34
}

/// The version of the compiler there: of GCC 16.2, 16.
///
/// # Panics
///
/// If it can't be run.
#[must_use]
pub fn gcc_major() -> u32 {
    let version = match root() {
        Some(root) => Command::new("chroot").arg(root).args(["gcc", "-dumpversion"]).output(),
        None => Command::new("gcc").arg("-dumpversion").output(),
    };
    let version = String::from_utf8(version.expect("run gcc").stdout).expect("text");
    version.trim().split('.').next().and_then(|major| major.parse().ok()).expect("a version")
}

/// The command that starts another one there, in this directory; empty if it is started here.
pub(crate) fn entry(directory: &Path) -> Vec<OsString> {
    let Some(root) = root() else { return Vec::new() };
    let words = ["chroot".as_ref(), root.as_os_str(), "env".as_ref(), "-C".as_ref()];
    words.into_iter().chain([directory.as_os_str()]).map(OsString::from).collect()
}

/// Where a file of the release is from here.
#[must_use]
pub fn inside(path: PathBuf) -> PathBuf {
    match root() {
        Some(root) => root.join(path.strip_prefix("/").unwrap_or(&path)),
        None => path,
    }
}
