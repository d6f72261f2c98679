//! Which part of a run is recorded: from when on, and how long.

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::ensure;

use crate::args::{RecordArgs, StartOn, duration, start_on};
use crate::config_file::ConfigFile;
use crate::settings::checked;

/// Which part of the run is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// So long after the start.
    pub(crate) delay: Option<Duration>,
    /// When chase gets a signal; the next one ends it. Or when a function is called.
    pub(crate) start_on: Option<StartOn>,
    /// So long.
    pub(crate) duration: Option<Duration>,
}

impl Part {
    /// The function whose first call begins the recording, if that is what does.
    pub(crate) fn first_call(&self) -> Option<&str> {
        match &self.start_on {
            Some(StartOn::Call(name)) => Some(name),
            _ => None,
        }
    }

    /// Whether chase has nothing to do while the program runs: the library records all, or begins by itself.
    pub(crate) fn is_whole(&self) -> bool {
        !self.begins_later() && self.duration.is_none()
    }

    /// Whether the program is started without the library.
    pub(crate) fn begins_later(&self) -> bool {
        self.delay.is_some() || matches!(self.start_on, Some(StartOn::Signal(_)))
    }
}

/// What is asked for, from the command line, the environment and the file, in this order.
///
/// # Errors
/// When a variable or the file says what is not known.
pub(crate) fn wanted(arguments: &RecordArgs, file: &ConfigFile) -> anyhow::Result<Part> {
    let typed = arguments.start_on.clone();
    let part = Part {
        delay: chosen(arguments.delay, "CHASE_DELAY", file.delay.as_deref(), duration)?,
        start_on: chosen(typed, "CHASE_START_ON", file.start_on.as_deref(), start_on)?,
        duration: chosen(arguments.duration, "CHASE_DURATION", file.duration.as_deref(), duration)?,
    };
    ensure!(
        part.delay.is_none() || part.first_call().is_none(),
        "a recording begins after a time (--delay) or with a call (--start-on call:...): choose one"
    );
    Ok(part)
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
    use crate::args::StartOn;

    #[test]
    fn a_part_is_what_anything_limits() {
        assert!(Part::default().is_whole());
        let second = Some(Duration::from_secs(1));
        assert!(!Part { duration: second, ..Part::default() }.is_whole());
        assert!(Part { delay: second, ..Part::default() }.begins_later());
        let signal = Some(StartOn::Signal(10));
        assert!(Part { start_on: signal, ..Part::default() }.begins_later());
        let call = Part { start_on: Some(StartOn::Call("f".to_owned())), ..Part::default() };
        assert!(!call.begins_later() && call.is_whole() && call.first_call() == Some("f"));
    }
}
