//! `cargo xtask many`: real runs of very many processes, from source packages.

use std::process::{Command, Stdio};

use crate::run::{Outcome, run, say};
use crate::suites::sources::source;
use crate::{packages, test};

/// What git is built without: its tests of these are others, and they would have to be installed.
const WITHOUT: [&str; 6] =
    ["NO_CURL=1", "NO_EXPAT=1", "NO_GETTEXT=1", "NO_OPENSSL=1", "NO_PYTHON=1", "NO_TCLTK=1"];
/// A package that is configured and built.
const PACKAGE: &str = "sed";

/// With every so many of git's tests.
pub(crate) fn many(every: &str) -> Outcome {
    packages::install_suite("git")?;
    say("Building git");
    let git = source("git")?;
    let mut make = Command::new("make");
    make.arg("-j2").args(WITHOUT).current_dir(&git).stdout(Stdio::null());
    run(&mut make)?;
    let package = source(PACKAGE)?;
    let (git, package) = (git.display().to_string(), package.display().to_string());
    test::bench(&["--only", "many", "--git", &git, "--package", &package, "--every", every])
}
