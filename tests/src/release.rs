//! Another release of a distribution, whose compiler makes the programs and whose C library they run with, while the tests
//! themselves are here: its root directory is in `CHASE_TESTS_ROOT`, and has this machine's `/tmp` and the repository in their
//! places (`cargo xtask releases`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Its root directory, if there is one.
#[must_use]
pub fn root() -> Option<PathBuf> {
    std::env::var_os("CHASE_TESTS_ROOT").map(PathBuf::from)
}

/// The command that starts another one there, in this directory; empty if it is started here.
pub(crate) fn entry(directory: &Path) -> Vec<OsString> {
    let Some(root) = root() else { return Vec::new() };
    let words = ["chroot".as_ref(), root.as_os_str(), "env".as_ref(), "-C".as_ref()];
    words.into_iter().chain([directory.as_os_str()]).map(OsString::from).collect()
}

/// Where a file of the release is from here.
pub(crate) fn inside(path: PathBuf) -> PathBuf {
    match root() {
        Some(root) => root.join(path.strip_prefix("/").unwrap_or(&path)),
        None => path,
    }
}
