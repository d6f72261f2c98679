//! `cargo xtask package --try`: the Debian package in the smallest systems of two of Debian's releases, by `debootstrap`: it installs,
//! records and reports as root and as an ordinary user, and leaves nothing behind.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::install;
use crate::run::{Outcome, root, run, say};

/// What is done there.
const SCRIPT: &str = include_str!("try_package.sh");
const SUITES: [&str; 2] = ["bullseye", "bookworm"];

/// Packs what is in `built`, or builds it, and tries the package.
pub(crate) fn try_package(built: Option<&Path>) -> Outcome {
    install::package(built)?;
    let place = root().join("target/package");
    SUITES.iter().try_for_each(|suite| try_in(suite, &place))
}

fn try_in(suite: &str, place: &Path) -> Outcome {
    let system = place.join(suite);
    if !system.join("etc/debian_version").is_file() {
        say(&format!("Installing Debian's smallest system ({suite})"));
        run(Command::new("debootstrap")
            .args(["--variant=minbase", "--include=libcap2-bin", suite])
            .arg(&system))?;
    }
    let name = format!("{}_{}_amd64.deb", install::PACKAGE, env!("CARGO_PKG_VERSION"));
    let failed = |error: std::io::Error| error.to_string();
    fs::copy(place.join(&name), system.join("opt").join(&name)).map_err(failed)?;
    fs::write(system.join("opt/try_package.sh"), SCRIPT).map_err(failed)?;
    say(&format!("Trying the package in {suite}"));
    // What is mounted there goes with the last process.
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "chroot"]).arg(&system);
    command.args(["sh", "/opt/try_package.sh"]).arg(format!("/opt/{name}"));
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    run(&mut command)
}
