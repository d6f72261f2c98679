//! By what the rows of a table are sorted.

use clap::{Args, ValueEnum};

/// The order of a table.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct SortArg {
    /// Rows by this column, the largest first; by name from A on
    #[arg(long, value_name = "COLUMN", value_enum)]
    pub(crate) sort: Option<Sort>,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    #[value(name = "self")]
    Own,
    Total,
    Wait,
    Calls,
    P50,
    P99,
    #[value(name = "p99.9")]
    P999,
    Max,
    Name,
}
