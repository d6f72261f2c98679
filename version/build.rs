//! Finds out which commit a release build is of. Without a repository, the version is the number alone.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CHASE_VERSION");
    let number = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let given = env::var("CHASE_VERSION").ok().filter(|given| !given.is_empty());
    // (Other builds are for trying things: they aren't made anew for each commit.)
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let version = given.unwrap_or_else(|| match is_release.then(commit).flatten() {
        // The files may have been changed since; that is not looked at before each build.
        Some(commit) => format!("{number} ({commit} or later)"),
        None => number,
    });
    println!("cargo::rustc-env=CHASE_VERSION={version}");
}

/// The newest commit. Another one is looked for when the repository's head has moved.
fn commit() -> Option<String> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let root = root.parent()?.canonicalize().ok()?;
    // A copy without a repository may be inside another project's.
    if Path::new(&git(&root, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    let head = git(&root, &["rev-parse", "--symbolic-full-name", "HEAD"])?;
    // The log of the head has a line for each move. Where none is kept, the branch is in a file, mostly of its own.
    for name in ["HEAD", "logs/HEAD", head.as_str(), "packed-refs"] {
        let path = root.join(git(&root, &["rev-parse", "--git-path", name])?);
        // What is missing would count as changed each time.
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&root, &["rev-parse", "--short=12", "HEAD"])
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
