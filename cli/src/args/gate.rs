//! Limits for figures.

use std::path::PathBuf;

use clap::Args;

use super::condition::Condition;

/// Conditions, and where their verdicts go.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct GateArgs {
    /// Exit with status 3 if this is so: 'lib:libz.so*.on_cpu > 30%', 'wait:mutex > 10%', 'fn:malloc.calls > 1000', or, with
    /// `compare`, of what changed: 'lib:libz.so*.on_cpu > +5%'; may be repeated (docs/gate.md)
    #[arg(long, value_name = "CONDITION", global = true)]
    pub(crate) fail_if: Vec<Condition>,
    /// Where an estimate is too rough to tell, fail as well
    #[arg(long, global = true, requires = "fail_if")]
    pub(crate) fail_if_unclear: bool,
    /// Write the verdicts to a file, too: as JUnit's XML if its name ends in .xml, otherwise as JSON
    #[arg(long, value_name = "FILE", global = true, requires = "fail_if")]
    pub(crate) verdicts: Option<PathBuf>,
}
