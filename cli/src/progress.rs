//! How far reading and analysing has come: on standard error, if that is a terminal, and if it
//! takes more than a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter waits need no bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// Steps of the bar.
const STEPS: u64 = 1000;

/// A bar that appears when it is needed.
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    shown: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg:9} {wide_bar} {percent:>3} % {eta}") {
            bar.set_style(style);
        }
        Self { bar, start: Instant::now(), shown: false }
    }

    /// `what` is done up to `part`, a fraction of all.
    pub(crate) fn show(&mut self, what: &'static str, part: f64) {
        if !self.shown && self.start.elapsed() >= PATIENCE {
            // It draws nothing where standard error is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = true;
        }
        self.bar.set_message(what);
        self.bar.set_position((part * STEPS as f64) as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
