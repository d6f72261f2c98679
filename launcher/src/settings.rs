//! What is to be recorded, from the command line, the environment and the file, in this order.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;

use crate::args::{self, RecordingArgs, Syscalls, Timing, size};
use crate::config_file::ConfigFile;

/// As `libchase.so` has it.
pub(crate) const DEFAULT_OUTPUT: &str = "chase.data";

/// What `chase record` does.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Where recordings go, absolute.
    pub(crate) output: PathBuf,
    /// The same as the user knows it.
    pub(crate) shown_output: PathBuf,
    /// Variables for the program, without `LD_PRELOAD`.
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// Whether a companion is wanted at all.
    pub(crate) wants_companion: bool,
    /// Whether the program is not started without one.
    pub(crate) requires_companion: bool,
    /// Whether each system call is to be told.
    pub(crate) narrates: bool,
    /// What `CHASE_SAMPLE` will be.
    pub(crate) sample: OsString,
    /// No summary.
    pub(crate) quiet: bool,
}

impl Settings {
    /// # Errors
    /// When the file is wrong, or the working directory is gone.
    pub(crate) fn new(arguments: &RecordingArgs, file: &ConfigFile) -> anyhow::Result<Self> {
        let joined = |list: &[String]| (!list.is_empty()).then(|| list.join(","));
        let of_file =
            |list: &Option<crate::config_file::List>| list.as_ref().map(|list| list.joined());
        let switch = |is_on: bool| is_on.then(|| "1".to_owned());
        let mut variables = Vec::new();
        let mut choose = |name, typed: Option<String>, file: Option<String>| {
            let set = || std::env::var_os(name).filter(|value| !value.is_empty());
            let value = typed.map(OsString::from).or_else(set).or(file.map(OsString::from));
            if let Some(value) = &value {
                variables.push((name, value.clone()));
            }
            value.unwrap_or_default()
        };
        let timing = choose("CHASE_TIMING", arguments.timing.map(name), file.timing.clone());
        checked("CHASE_TIMING", &timing, word::<Timing>)?;
        let syscalls =
            choose("CHASE_SYSCALLS", arguments.syscalls.map(name), file.syscalls.clone());
        let sample = choose("CHASE_SAMPLE", arguments.sample.clone(), file.sample_text());
        // (As the library has it, 0 is off and 1 is auto.)
        let is_number = |text: &str| matches!(text, "0" | "1");
        let of_syscalls =
            |text: &str| if is_number(text) { Ok(()) } else { word::<Syscalls>(text) };
        checked("CHASE_SYSCALLS", &syscalls, of_syscalls)?;
        checked("CHASE_SAMPLE", &sample, args::sample)?;
        let events = choose("CHASE_EVENTS", arguments.events.clone(), of_file(&file.events));
        checked("CHASE_EVENTS", &events, args::events)?;
        let narrate =
            choose("CHASE_NARRATE", switch(arguments.narrate), switch(file.narrate == Some(true)));
        choose("CHASE_SITES", switch(arguments.sites), switch(file.sites == Some(true)));
        let max_size = choose("CHASE_MAX_SIZE", arguments.max_size.clone(), file.max_size.clone());
        checked("CHASE_MAX_SIZE", &max_size, size)?;
        choose("CHASE_LIBS", joined(&arguments.libs), of_file(&file.libs));
        choose("CHASE_EXCLUDE", joined(&arguments.exclude), of_file(&file.exclude));
        choose("CHASE_INTERNAL", joined(&arguments.internal), of_file(&file.internal));
        choose("CHASE_FOLLOW", joined(&arguments.follow), of_file(&file.follow));
        choose("CHASE_THREADS", joined(&arguments.threads), of_file(&file.threads));
        choose("CHASE_VERBOSE", switch(arguments.verbose), switch(file.verbose == Some(true)));
        let set = std::env::var_os("CHASE_OUTPUT").filter(|value| !value.is_empty());
        let shown_output = arguments.output.clone().or(set.map(PathBuf::from));
        let shown_output = shown_output.or_else(|| file.output.clone());
        let shown_output = shown_output.unwrap_or_else(|| Path::new(DEFAULT_OUTPUT).to_owned());
        let output = std::path::absolute(&shown_output)
            .with_context(|| format!("can't tell where {} is", shown_output.display()))?;
        variables.push(("CHASE_OUTPUT", output.clone().into_os_string()));
        Ok(Self {
            output,
            shown_output,
            variables,
            requires_companion: syscalls == "require",
            wants_companion: syscalls != "off" && syscalls != "0",
            // (As the library has it.)
            narrates: !narrate.is_empty() && narrate != "0",
            sample,
            quiet: arguments.quiet || file.quiet == Some(true),
        })
    }
}

/// What a value says; nothing if it is empty.
pub(crate) fn checked<T>(
    variable: &str,
    value: &OsStr,
    read: impl Fn(&str) -> Result<T, String>,
) -> anyhow::Result<Option<T>> {
    let text = value.to_string_lossy();
    if text.is_empty() {
        return Ok(None);
    }
    read(&text).map(Some).map_err(|why| anyhow::anyhow!("{variable}={text}: {why}"))
}

/// Whether it is a word for a value.
fn word<T: ValueEnum>(text: &str) -> Result<(), String> {
    let words: Vec<String> = T::value_variants().iter().cloned().map(name).collect();
    match words.iter().any(|word| word == text) {
        true => Ok(()),
        false => Err(format!("one of {}", words.join(", "))),
    }
}

/// The word for a value.
fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
