//! Standard output, through a pager where a person looks at it.

use std::io::{self, ErrorKind, Write};
use std::process::{Command, Stdio};

/// Whether long text goes through a pager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pager {
    /// `$PAGER`, or `less -FRX`.
    Auto,
    /// Straight to standard output.
    Off,
}

/// Prints `text`. A reader that stops reading (`| head`, `q` in the pager) is no error.
pub(crate) fn print(text: &str, pager: Pager) -> io::Result<()> {
    let result = match pager {
        Pager::Auto => page(text),
        Pager::Off => io::stdout().lock().write_all(text.as_bytes()),
    };
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn page(text: &str) -> io::Result<()> {
    let command = std::env::var("PAGER").unwrap_or_else(|_| "less -FRX".to_owned());
    if command.trim().is_empty() || command.trim() == "cat" {
        return io::stdout().lock().write_all(text.as_bytes());
    }
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(&command).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // As git does, so that a bare `PAGER=less` shows colours and leaves short text alone.
        shell.env("LESS", "FRX");
    }
    let mut child = shell.spawn()?;
    let written = child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(text.as_bytes()));
    // The shell answers 127 where there is no such pager; nothing was shown then.
    if child.wait()?.code() == Some(127) {
        return io::stdout().lock().write_all(text.as_bytes());
    }
    written
}
