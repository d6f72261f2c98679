//! `chase top`: what a process does now.
//!
//! A look reads the recording, which the process writes in place, and analyses it as every report does. What happened in
//! the last seconds is the difference of two looks, [`Analysis::since`](chase_analyzer::Analysis::since), so that its
//! tables are made like those of a whole run.

mod head;
mod listing;
mod live;
mod once;
mod place;
mod screen;
mod state;
mod tables;
mod target;
#[cfg(test)]
mod tests;
mod watch;

use std::io::{IsTerminal, stdin, stdout};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;

use crate::args::{Cli, TopArgs, TopTable, Usage};
use crate::places::Places;
use crate::terminal::{self, Pager, Terminal};
use target::Target;
use watch::{Look, Watch};

/// Rates are over so long.
const WINDOW: Duration = Duration::from_secs(5);
/// The same, where somebody waits for it.
const WINDOW_OF_ONE: Duration = Duration::from_secs(1);

/// Shows it until `q`, or once.
///
/// # Errors
/// If there is no recording, or no terminal.
pub(crate) fn show(cli: &Cli, arguments: &TopArgs, terminal: Terminal) -> anyhow::Result<()> {
    if cli.output.csv {
        return Err(Usage("top has several tables: --json".to_owned()).into());
    }
    let is_once = arguments.once || cli.output.json;
    let is_terminal = stdout().is_terminal() && stdin().is_terminal();
    if !is_once && !is_terminal {
        return Err(
            Usage("top needs a terminal; --once shows one picture without".to_owned()).into()
        );
    }
    let window = arguments.window.unwrap_or(if is_once { WINDOW_OF_ONE } else { WINDOW });
    let target = Target::find(arguments.what.as_deref())?;
    let mut watch = Watch::new(target, window, Places::new(cli.source.debug_dir.clone()));
    watch.choose(cli.source.process);
    let mut look = watch.look()?;
    if !is_once {
        return live::show(&mut watch, look, arguments.by.unwrap_or_default(), arguments.interval);
    }
    if look.is_running {
        sleep(window);
        look = watch.look()?;
    }
    let text = picture(cli, &look, arguments.by, terminal)?;
    terminal::print(&text, Pager::Off).context("cannot write to standard output")
}

/// One picture of a run that has ended, or is taken to have.
///
/// # Errors
/// If there is no recording.
pub(crate) fn once(cli: &Cli, path: &Path, terminal: Terminal) -> anyhow::Result<String> {
    let places = Places::new(cli.source.debug_dir.clone());
    let mut watch = Watch::new(Target::find(Some(path))?, WINDOW_OF_ONE, places);
    picture(cli, &watch.look()?, None, terminal)
}

fn picture(
    cli: &Cli,
    look: &Look,
    table: Option<TopTable>,
    terminal: Terminal,
) -> anyhow::Result<String> {
    match cli.output.json {
        true => once::json(look),
        false => Ok(once::text(look, table, terminal, cli.output.top)),
    }
}
