//! `chase-report fold`: many recordings in one file.

use std::path::PathBuf;

use chase_analyzer::fold;

use crate::report::default_path;
use crate::terminal::{clean, plural, quantity};

/// Folds what is in these directories; what is there to say.
///
/// # Errors
///
/// If one can't be read or written.
pub(crate) fn text(directories: &[PathBuf]) -> anyhow::Result<String> {
    let default = [default_path()];
    let directories = if directories.is_empty() { &default[..] } else { directories };
    let mut out = String::new();
    for directory in directories {
        let folded = fold(directory)?;
        let shown = clean(&directory.display().to_string()).into_owned();
        out += &match folded.archive {
            None => format!("{shown}: no recordings of ended processes to fold\n"),
            Some(archive) => format!(
                "{} of {} folded into {} of {}\n",
                plural(folded.recordings as u64, "recording"),
                quantity(folded.bytes_before),
                clean(&archive.display().to_string()),
                quantity(folded.bytes),
            ),
        };
    }
    Ok(out)
}
