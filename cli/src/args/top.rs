//! What `top` takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

pub(super) const EXAMPLES: &str = "\
Examples:
  chase top 4711                       a process that is being recorded, and what it has started
  chase top                            the newest run in chase.data
  chase top 4711 --once                one picture as text: needs no terminal
  chase top 4711 --once --json         the same for programs (docs/json.md)
  chase top 4711 --once --by waits     one table of it

A process is recorded if it was started by `chase record`, or after `chase attach`.

Keys: 1 to 6 or Tab choose a table, arrows a row, Enter looks into it, Esc goes back; s and S sort by the next or the previous
column, r the other way round; / shows only names with some text in them, t switches between the last seconds and
all, p or Space pauses, + and - change how often it looks, ? explains, q ends.";

/// A live view.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// A process, a recording, or a directory of recordings, whose newest run is shown [default: $CHASE_OUTPUT, or
    /// chase.data]
    #[arg(value_name = "PID|RECORDING")]
    pub(crate) what: Option<PathBuf>,
    /// One picture, as text; of a run that goes on, after --window
    #[arg(long)]
    pub(crate) once: bool,
    /// How often it looks; less often where a look takes more than a tenth of that
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub(crate) interval: Duration,
    /// Over which time rates are [default: 5s; 1s with --once]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) window: Option<Duration>,
    /// The table to begin with; with --once, the only one
    #[arg(long, value_name = "TABLE", value_enum)]
    pub(crate) by: Option<TopTable>,
}

/// A table of `top`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopTable {
    #[default]
    Libraries,
    Functions,
    Threads,
    Waits,
    Syscalls,
    Processes,
}

fn time(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_millis(100);
    let time = humantime::parse_duration(text).map_err(|_| "a time, as 2s or 500ms".to_owned())?;
    if time < LEAST { Err("at least 100ms".to_owned()) } else { Ok(time) }
}
