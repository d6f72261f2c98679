//! Where the other parts of chase are: beside this program, as they are built or unpacked, or where an installation puts
//! them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Directories for the library, from that of this program.
const LIBRARY: [&str; 4] = [".", "../lib", "../lib/chase", "../lib/x86_64-linux-gnu"];
/// And for programs.
const PROGRAMS: [&str; 1] = ["."];

/// The library that is preloaded.
pub(crate) fn library() -> anyhow::Result<PathBuf> {
    let path = find("libchase.so", &LIBRARY)?;
    let text = path.to_str().unwrap_or(" ");
    if text.contains([' ', ':']) {
        // ld.so(8): items of LD_PRELOAD are separated by spaces or colons, and there is no escape.
        bail!(
            "{}: the dynamic linker can't preload a file whose path has a space or a colon in it",
            path.display()
        );
    }
    Ok(path)
}

/// What watches system calls.
pub(crate) fn companion() -> anyhow::Result<PathBuf> {
    find("chase-companion", &PROGRAMS)
}

/// What shows recordings.
pub(crate) fn report() -> anyhow::Result<PathBuf> {
    find("chase-report", &PROGRAMS)
}

fn find(name: &str, places: &[&str]) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("can't tell where chase is")?;
    let directory = own.parent().unwrap_or(Path::new("/"));
    let found = places.iter().map(|place| directory.join(place).join(name)).find(|at| at.is_file());
    let Some(found) = found else {
        bail!("there is no {name} in {}, nor where an installation has it", directory.display());
    };
    found.canonicalize().with_context(|| found.display().to_string())
}
