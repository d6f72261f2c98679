//! `cargo xtask picture`: the picture of the page in the README, of a program that is beside it.

use std::process::Command;

use crate::packages;
use crate::run::{Outcome, build, launcher, report, root, run, say};

pub(crate) fn picture() -> Outcome {
    build()?;
    packages::install_browser_tests();
    let (directory, pictures) = (root().join("target/picture"), root().join("docs/pictures"));
    std::fs::create_dir_all(&directory)
        .map_err(|error| format!("can't make {}: {error}", directory.display()))?;
    // A run that is there already would be on the page too.
    let _ = std::fs::remove_dir_all(directory.join("chase.data"));
    let (recording, page) = (directory.join("chase.data"), directory.join("page.html"));
    say("Recording the example");
    run(Command::new(launcher())
        .args(["record", "-o"])
        .arg(&recording)
        .args(["--", "/usr/bin/python3", "example.py"])
        .current_dir(&pictures))?;
    run(Command::new(report()).arg("html").arg(&recording).args(["--force", "-o"]).arg(&page))?;
    say("Taking the picture");
    run(Command::new("node")
        .arg("picture.mjs")
        .arg(&page)
        .arg(pictures.join("page.png"))
        .current_dir(root().join("cli/tests/browser")))
}
