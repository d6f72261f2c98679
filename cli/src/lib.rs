//! `chase-report`: shows where a program's time went, library by library.
//!
//! The analyzer computes the figures, the symbolizer finds functions and source lines, viz draws
//! the charts. This program finds out what was asked for, and lays it out.

mod args;
mod causes;
mod companion;
mod compare;
mod event_loops;
mod everything;
mod fold;
mod gate;
mod machine;
mod names;
mod places;
mod progress;
mod report;
mod routines;
mod sentences;
mod stacks;
mod terminal;
mod thread_functions;
mod top;
mod trace;
mod uneven;
mod view;

use std::io::{IsTerminal, Write, stdout};
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use anyhow::Context;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Cli, Colour, Usage, View};
pub use everything::show_everything;
use report::Report;
use terminal::{Pager, Terminal, clean};

/// The program: reads its arguments, prints what they ask for, and gives the status to exit with.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.output.json && cli.output.csv {
        // Options of different levels can't be declared to conflict.
        let message = "--json and --csv exclude each other";
        Cli::command().error(ErrorKind::ArgumentConflict, message).exit();
    }
    match run(&cli) {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(gate::FAILED),
        Err(error) => {
            let message = format!("chase-report: {}\n", clean(&format!("{error:#}")));
            // Where standard error is closed too, nobody is left to tell.
            let _ = std::io::stderr().lock().write_all(message.as_bytes());
            if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Shows what was asked for; whether a condition of `--fail-if` is met.
fn run(cli: &Cli) -> anyhow::Result<bool> {
    let gate = &cli.gate;
    let mut is_failed = false;
    if !gate.fail_if.is_empty() {
        gate::may_be_asked(cli)?;
    }
    let text = match &cli.view {
        Some(View::Generate { directory }) => {
            chase_manual::generate(Cli::command(), directory)?;
            return Ok(false);
        }
        Some(View::Top(arguments)) => {
            top::show(cli, arguments, terminal(cli))?;
            return Ok(false);
        }
        Some(View::Fold { directories }) => fold::text(directories)?,
        Some(View::Compare(arguments)) => {
            let compared = compare::Compared::open(arguments, &cli.source)?;
            if let Some(after) = compared.after.as_ref().filter(|_| !gate.fail_if.is_empty()) {
                is_failed = gate::is_failed(gate, Some(&compared.before.runs), &after.runs)?;
            }
            view::compare::show(cli, arguments, &compared, terminal(cli))?
        }
        _ => {
            // The process ends soon: to take apart what was read of very many recordings would take longer.
            let report = ManuallyDrop::new(Report::open(cli)?);
            if !gate.fail_if.is_empty() {
                is_failed = gate::is_failed(gate, None, std::slice::from_ref(&report.analysis))?;
            }
            view::show(cli, &report, terminal(cli))?
        }
    };
    let for_people = !cli.output.json && !cli.output.csv && stdout().is_terminal();
    let pager = if for_people && !cli.output.no_pager { Pager::Auto } else { Pager::Off };
    terminal::print(&text, pager).context("cannot write to standard output")?;
    Ok(is_failed)
}

fn terminal(cli: &Cli) -> Terminal {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let colour = match cli.output.color {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => stdout().is_terminal() && !is_set("NO_COLOR") && !dumb,
    };
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = columns.filter(|&columns| columns > 0).or_else(|| {
        let size = stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        size.map(|(width, _)| usize::from(width.0))
    });
    Terminal { width, colour }
}
