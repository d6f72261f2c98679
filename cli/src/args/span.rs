//! A part of a run's time.

use std::time::Duration;

use clap::Args;

/// From when to when.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SpanArgs {
    /// From then on, since the start of the run, such as 1.5s or 20ms
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) from: Option<Duration>,
    /// Until then
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) to: Option<Duration>,
}

fn moment(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "a time, as 1.5s or 20ms".to_owned())
}
