//! Man pages and completions, from the same definitions as the command line.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;

/// Writes them to `directory`, as they lie below a prefix.
pub(crate) fn generate(directory: &Path) -> anyhow::Result<i32> {
    let pages = directory.join("share/man/man1");
    fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(Cli::command(), &pages)?;
    for (shell, place) in [
        (Shell::Bash, "share/bash-completion/completions"),
        (Shell::Zsh, "share/zsh/site-functions"),
        (Shell::Fish, "share/fish/vendor_completions.d"),
    ] {
        let place = directory.join(place);
        fs::create_dir_all(&place)?;
        let written = clap_complete::generate_to(shell, &mut Cli::command(), "chase", &place)?;
        if shell == Shell::Bash {
            // Found by the command's name.
            fs::rename(written, place.join("chase"))?;
        }
    }
    Ok(0)
}
