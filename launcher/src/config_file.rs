//! `chase.toml`: options for `chase record` that are always wanted, in this directory, else in the user's configuration.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use serde::Deserialize;

use crate::args::{Syscalls, Timing, duration, events, sample, size, start_on};

const NAME: &str = "chase.toml";

/// The options by the names that they have on the command line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ConfigFile {
    pub(crate) output: Option<PathBuf>,
    pub(crate) timing: Option<String>,
    pub(crate) syscalls: Option<String>,
    pub(crate) sample: Option<Sample>,
    pub(crate) events: Option<List>,
    pub(crate) narrate: Option<bool>,
    pub(crate) sites: Option<bool>,
    pub(crate) delay: Option<String>,
    pub(crate) start_on: Option<String>,
    pub(crate) duration: Option<String>,
    pub(crate) max_size: Option<String>,
    pub(crate) libs: Option<List>,
    pub(crate) exclude: Option<List>,
    pub(crate) internal: Option<List>,
    pub(crate) follow: Option<List>,
    pub(crate) threads: Option<List>,
    pub(crate) quiet: Option<bool>,
    pub(crate) verbose: Option<bool>,
}

/// `sample = 997` or `sample = "off"`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Sample {
    Hz(u32),
    Word(String),
}

/// One item, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum List {
    One(String),
    Many(Vec<String>),
}

impl List {
    pub(crate) fn joined(&self) -> String {
        match self {
            Self::One(item) => item.clone(),
            Self::Many(items) => items.join(","),
        }
    }
}

impl ConfigFile {
    /// Reads the first file that is there; nothing if none is.
    ///
    /// # Errors
    /// When it can't be read, or says what is not known.
    pub(crate) fn find() -> anyhow::Result<Self> {
        for path in [Some(PathBuf::from(NAME)), of_user()].into_iter().flatten() {
            match std::fs::read_to_string(&path) {
                Ok(text) => return Self::parse(&text).with_context(|| path.display().to_string()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                // Where $HOME is another user's (`sudo -u`), nobody knows whether a file is there, and it is not this user's.
                Err(error)
                    if error.kind() == std::io::ErrorKind::PermissionDenied
                        && path.symlink_metadata().is_err() => {}
                Err(error) => return Err(error).with_context(|| path.display().to_string()),
            }
        }
        Ok(Self::default())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let this: Self = toml::from_str(text)?;
        let bad = |key: &str, why: String| anyhow::anyhow!("{key}: {why}");
        if let Some(word) = &this.timing {
            Timing::from_str(word, false)
                .map_err(|_| bad("timing", "adaptive, all or count".into()))?;
        }
        if let Some(word) = &this.syscalls {
            Syscalls::from_str(word, false)
                .map_err(|_| bad("syscalls", "auto, off or require".into()))?;
        }
        let (sampled, kept) = (this.sample_text(), this.events.as_ref().map(List::joined));
        type Read = fn(&str) -> Result<(), String>;
        let read: [(&str, Option<&str>, Read); 6] = [
            ("max-size", this.max_size.as_deref(), |text| size(text).map(drop)),
            ("sample", sampled.as_deref(), |text| sample(text).map(drop)),
            ("events", kept.as_deref(), |text| events(text).map(drop)),
            ("delay", this.delay.as_deref(), |text| duration(text).map(drop)),
            ("start-on", this.start_on.as_deref(), |text| start_on(text).map(drop)),
            ("duration", this.duration.as_deref(), |text| duration(text).map(drop)),
        ];
        for (key, text, read) in read {
            text.map_or(Ok(()), read).map_err(|why| bad(key, why))?;
        }
        Ok(this)
    }

    pub(crate) fn sample_text(&self) -> Option<String> {
        self.sample.as_ref().map(|sample| match sample {
            Sample::Hz(hz) => hz.to_string(),
            Sample::Word(word) => word.clone(),
        })
    }
}

/// `$XDG_CONFIG_HOME/chase/chase.toml`, by default in `~/.config`.
fn of_user() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let config = set("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.or_else(|| Some(Path::new(&set("HOME")?).join(".config")))?;
    Some(config.join("chase").join(NAME))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::ConfigFile;
    use crate::args::Cli;

    /// Options of `chase record` that are for one run, and not for a file.
    const NOT_IN_A_FILE: [&str; 2] = ["print-env", "help"];

    #[test]
    fn every_option_of_record_is_a_key() {
        let mut command = Cli::command();
        command.build();
        let record = command.find_subcommand("record").expect("a command");
        for option in record.get_arguments().filter_map(|argument| argument.get_long()) {
            // (No key takes a date.)
            let error = ConfigFile::parse(&format!("{option} = 1979-05-27")).expect_err("no value");
            let is_unknown = format!("{error:#}").contains("unknown field");
            assert_eq!(is_unknown, NOT_IN_A_FILE.contains(&option), "{option}: {error:#}");
        }
    }

    #[test]
    fn options_have_the_names_of_the_command_line() {
        let text = "timing = \"all\"\nexclude = [\":free\", \"libz*\"]\nfollow = \"none\"\nsample = 99\n\
            events = [\"slow:1ms\", \"64MB\"]\nnarrate = true\nsites = false\n";
        let file = ConfigFile::parse(text).expect("valid");
        assert_eq!(file.timing.as_deref(), Some("all"));
        assert_eq!(file.exclude.as_ref().map(super::List::joined).as_deref(), Some(":free,libz*"));
        assert_eq!(file.follow.as_ref().map(super::List::joined).as_deref(), Some("none"));
        assert_eq!(file.sample_text().as_deref(), Some("99"));
        assert_eq!(file.events.as_ref().map(super::List::joined).as_deref(), Some("slow:1ms,64MB"));
        assert_eq!((file.narrate, file.sites), (Some(true), Some(false)));
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        for text in [
            "timings = \"all\"",
            "timing = \"some\"",
            "sample = 0",
            "max-size = \"1\"",
            "events = [\"slow\", \"soon\"]",
            "delay = \"soon\"",
            "start-on = \"KILL\"",
            "duration = \"long\"",
        ] {
            let error = format!("{:#}", ConfigFile::parse(text).expect_err(text));
            let key = text.split(' ').next().expect("a key");
            assert!(error.contains(key) && !error.contains("CHASE_"), "{error}");
        }
    }
}
