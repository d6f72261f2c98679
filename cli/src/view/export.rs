//! Exports: the calling contexts in formats of other tools. `docs/exports.md` says what opens them.

use std::io::{IsTerminal, Write, stdout};
use std::path::Path;

use anyhow::{Context, bail};
use chase_export::Moment;

use super::files::save;
use super::html::profiles;
use super::{Show, tree};
use crate::args::{ApiFilter, ExportFormat, GroupFilter, LibFilter, ThreadFilter};
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::stacks;
use crate::terminal::clean_json;
use crate::trace;

/// Writes to `output`, or gives what is to be printed.
pub(super) fn write(
    report: &Report,
    format: ExportFormat,
    output: Option<&Path>,
) -> anyhow::Result<String> {
    let text = match format {
        ExportFormat::Folded => {
            chase_export::folded(&stacks::from_analysis(&report.analysis, &report.names))
        }
        ExportFormat::Speedscope => clean_json(speedscope(report)?),
        ExportFormat::Pprof => return pprof(report, output),
        ExportFormat::Perfetto => {
            let bytes = chase_export::perfetto(&trace::from_report(report));
            return put(&bytes, output, "a Perfetto trace", "app.pftrace");
        }
        ExportFormat::Firefox => clean_json(chase_export::firefox(&trace::from_report(report))?),
        ExportFormat::Csv => {
            let tables = contexts(report)?;
            tables.first().map_or_else(|| Ok(String::new()), machine::csv)?
        }
        ExportFormat::Json => {
            let mut tables = super::summary::Summary.tables(report, usize::MAX)?;
            tables.extend(contexts(report)?);
            clean_json(machine::json(report, "export", tables)?)
        }
    };
    match output {
        Some(path) => save(path, text.as_bytes()).map(|()| String::new()),
        None => Ok(text),
    }
}

fn contexts(report: &Report) -> anyhow::Result<Vec<Rows>> {
    let (lib, api) = (&LibFilter::default(), &ApiFilter::default());
    let (thread, group) = (&ThreadFilter::default(), &GroupFilter::default());
    tree::Tree { lib, api, thread, group }.tables(report, usize::MAX)
}

fn speedscope(report: &Report) -> anyhow::Result<String> {
    let program = report.analysis.processes.first();
    let program = program.map_or("", |process| &*process.program);
    let exporter = format!("chase-report {}", chase_version::VERSION);
    let profiles = profiles(report);
    Ok(chase_export::speedscope(program, &exporter, &profiles)?)
}

fn pprof(report: &Report, output: Option<&Path>) -> anyhow::Result<String> {
    let start = report.loaded.images.first();
    let moment = Moment {
        start_ns: start.map_or(0, |image| image.recording.header().clock_start.realtime_ns),
        duration_ns: report.analysis.span_ns.0,
    };
    let comment = format!("recorded by chase: {}", report.path.display());
    let stacks = stacks::from_analysis(&report.analysis, &report.names);
    let bytes = chase_export::pprof(&stacks, moment, &comment)?;
    put(&bytes, output, "a pprof profile", "app.pb.gz")
}

/// Writes what is no text: to a file, or to another program.
fn put(bytes: &[u8], output: Option<&Path>, what: &str, example: &str) -> anyhow::Result<String> {
    match output {
        Some(path) => save(path, bytes)?,
        None if stdout().is_terminal() => {
            bail!("{what} is not text: give it a file with -o, such as -o {example}")
        }
        None => stdout().lock().write_all(bytes).context("cannot write to standard output")?,
    }
    Ok(String::new())
}
