//! Man pages and completions of a command, from the definitions of its options.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;

/// Writes those of `command` to `directory`, as they lie below a prefix.
///
/// # Errors
///
/// Where a file can't be written.
pub fn generate(mut command: Command, directory: &Path) -> io::Result<()> {
    let name = command.get_name().to_owned();
    let pages = directory.join("share/man/man1");
    fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(command.clone(), &pages)?;
    for (shell, place) in [
        (Shell::Bash, "share/bash-completion/completions"),
        (Shell::Zsh, "share/zsh/site-functions"),
        (Shell::Fish, "share/fish/vendor_completions.d"),
    ] {
        let place = directory.join(place);
        fs::create_dir_all(&place)?;
        let written = clap_complete::generate_to(shell, &mut command, &name, &place)?;
        if shell == Shell::Bash {
            // Found by the command's name.
            fs::rename(written, place.join(&name))?;
        }
    }
    Ok(())
}
