//! Which part of a run is recorded: from when on, and how long.

use std::ffi::OsStr;
use std::time::Duration;

use crate::args::{RecordArgs, duration, signal};
use crate::config_file::ConfigFile;
use crate::settings::checked;

/// Which part of the run is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    /// So long after the start.
    pub(crate) delay: Option<Duration>,
    /// When chase gets this signal; the next one ends it.
    pub(crate) start_on: Option<i32>,
    /// So long.
    pub(crate) duration: Option<Duration>,
}

impl Part {
    /// Whether that is the whole run.
    pub(crate) fn is_whole(&self) -> bool {
        !self.begins_later() && self.duration.is_none()
    }

    pub(crate) fn begins_later(&self) -> bool {
        self.delay.is_some() || self.start_on.is_some()
    }
}

/// What is asked for, from the command line, the environment and the file, in this order.
///
/// # Errors
/// When a variable or the file says what is not known.
pub(crate) fn wanted(arguments: &RecordArgs, file: &ConfigFile) -> anyhow::Result<Part> {
    Ok(Part {
        delay: chosen(arguments.delay, "CHASE_DELAY", file.delay.as_deref(), duration)?,
        start_on: chosen(arguments.start_on, "CHASE_START_ON", file.start_on.as_deref(), signal)?,
        duration: chosen(arguments.duration, "CHASE_DURATION", file.duration.as_deref(), duration)?,
    })
}

fn chosen<T>(
    typed: Option<T>,
    variable: &str,
    file: Option<&str>,
    read: impl Fn(&str) -> Result<T, String>,
) -> anyhow::Result<Option<T>> {
    let set = std::env::var_os(variable).filter(|value| !value.is_empty());
    match (typed, set, file) {
        (Some(typed), ..) => Ok(Some(typed)),
        (None, Some(set), _) => checked(variable, &set, read),
        (None, None, Some(text)) => checked(variable, OsStr::new(text), read),
        (None, None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Part;

    #[test]
    fn a_part_is_what_anything_limits() {
        assert!(Part::default().is_whole());
        let second = Some(Duration::from_secs(1));
        assert!(!Part { duration: second, ..Part::default() }.is_whole());
        assert!(Part { delay: second, ..Part::default() }.begins_later());
        assert!(Part { start_on: Some(10), ..Part::default() }.begins_later());
    }
}
