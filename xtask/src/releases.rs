//! `cargo xtask releases`: the programs of the tests with the compilers and the C libraries of other releases.

use std::path::Path;
use std::process::Command;

use crate::run::{Outcome, build, cargo, library, root, run, say};

/// Debian's, oldest first: glibc 2.31, 2.36, 2.41, and the newest.
const RELEASES: [&str; 4] = ["bullseye", "bookworm", "trixie", "sid"];
const MIRROR: &str = "http://deb.debian.org/debian";
/// What programs are made with there.
const PACKAGES: &str = "gcc,g++,clang,lld,libc6-dev,perl-base";
/// Suites whose programs need no more than that, and are started by a `Trial`. What a release lacks, tests ask of
/// `tests/src/release.rs`.
const SUITES: [&str; 17] = [
    "arguments",
    "bindings",
    "built",
    "control_flow",
    "crowded",
    "environment",
    "events",
    "findings",
    "functions",
    "limits",
    "loading",
    "mappings",
    "process_life",
    "sampling",
    "threads",
    "torture",
    "values",
];

/// Runs the suites with each release, or with one. Root is wanted, `debootstrap`, and 1.2 gigabytes for each, in
/// `target/releases`.
pub(crate) fn releases(only: Option<&str>) -> Outcome {
    build()?;
    let wanted = RELEASES.iter().filter(|release| only.is_none_or(|only| only == **release));
    let mut failed = Vec::new();
    for release in wanted {
        say(&format!("Programs of {release}"));
        let place = root().join("target/releases").join(release);
        if !place.join("usr/bin/clang++").exists() {
            make(release, &place)?;
        }
        if test(&place).is_err() {
            failed.push(*release);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("differences with {}", failed.join(", "))) }
}

/// Installs a release.
fn make(release: &str, place: &Path) -> Outcome {
    let _ = std::fs::remove_dir_all(place);
    let packages = format!("--include={PACKAGES}");
    let mut command = Command::new("debootstrap");
    run(command.args(["--variant=minbase", &packages, release]).arg(place).arg(MIRROR))
}

/// The tests are here, what they start is there; both see the same files in the places that tests write to. (Where nothing is
/// mounted on the root directory, chase creates no directories.)
fn test(place: &Path) -> Outcome {
    const ENTER: &str = r#"root=$1; repository=$2; shift 2
mount --bind "$root" "$root" || exit 1
for directory in /proc /dev /sys /tmp "$repository"; do
    mkdir -p "$root$directory" && mount --rbind "$directory" "$root$directory" || exit 1
done
exec "$@""#;
    let tests = cargo(["test", "-p", "chase-tests", "--no-fail-fast"]);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", ENTER, "sh"]).arg(place).arg(root());
    command.arg(tests.get_program()).args(tests.get_args()).current_dir(root());
    command.args(SUITES.iter().flat_map(|suite| ["--test", suite]));
    run(command.env("CHASE_LIB", library()).env("CHASE_TESTS_ROOT", place))
}
