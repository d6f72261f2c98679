//! What a machine may lack. A test that can't run says so on standard error, past the capture of
//! the test harness, and passes; or it fails, where what it lacks is a package like any other.

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::release;

/// Says why a test, or a part of it, is skipped.
pub fn skip(what: &str, reason: &str) {
    let _ = writeln!(io::stderr(), "skipped: {what}: {reason}");
}

/// The path of an installed program, or a note that `what` is skipped without it.
#[must_use]
pub fn tool(what: &str, name: &str) -> Option<PathBuf> {
    let found = find(name);
    if found.is_none() {
        skip(what, &format!("{name} is not installed"));
    }
    found
}

/// The path of an installed program.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    // Directories of the system come first: a shell script that picks a version is not the program.
    let system = ["/usr/bin", "/bin", "/usr/sbin"].map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    system
        .into_iter()
        .chain(env::split_paths(&path))
        .map(|dir| dir.join(name))
        .find(|p| release::inside(p.clone()).is_file())
}

/// Whether the user is root, or a note that `what` is skipped without.
#[must_use]
pub fn root(what: &str) -> bool {
    // SAFETY: geteuid has no preconditions.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        skip(what, "only root can do it");
    }
    root
}

/// Whether programs of this machine's `rustc` run with the release: its C library must not be older. If not, a note that `what` is skipped.
#[must_use]
pub fn rust(what: &str) -> bool {
    let is_older = release::glibc_minor() < release::own_glibc_minor();
    if is_older {
        skip(what, "what rustc makes here needs this machine's C library, or a newer one");
    }
    !is_older
}

/// A file that a package installs, or a note that `what` is skipped without it.
#[must_use]
pub fn file(what: &str, candidates: &[&str]) -> Option<PathBuf> {
    let found =
        candidates.iter().map(PathBuf::from).find(|path| release::inside(path.clone()).exists());
    if found.is_none() {
        skip(what, &format!("none of {candidates:?} is there"));
    }
    found
}

/// A file of a Debian package that a test can't do without.
///
/// # Panics
///
/// If it is not there; the message names the package.
pub fn package(package: &str, file: &str) -> PathBuf {
    let path = PathBuf::from(file);
    assert!(
        release::inside(path.clone()).exists(),
        "{file} is missing: apt-get install --no-install-recommends {package}"
    );
    path
}
