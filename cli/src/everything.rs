//! All that can be shown of a recording, one after the other: for tests and fuzzers, which give damaged ones to it.

use std::path::Path;

use clap::{CommandFactory, Parser, ValueEnum};

use crate::args::{Cli, CompareArgs, ExportFormat, GraphFormat, SyscallsBy, View};
use crate::compare::Compared;
use crate::report::Report;
use crate::{terminal, top, view};

/// Views that show no single run, have one form, or write files: what of them can be shown is named below.
const OTHERS: [&str; 8] =
    ["brief", "charts", "compare", "export", "fold", "generate", "html", "top"];

/// Shows every view of the recording at `path` as text, JSON and CSV, every export, the page and, if `with_pictures`, the
/// charts. Files are written into the directory `output`. `shown` gets each command line and what it prints, or why it can't.
///
/// # Errors
///
/// If the recording can't be read.
pub fn show_everything(
    path: &Path,
    output: &Path,
    with_pictures: bool,
    mut shown: impl FnMut(&[String], anyhow::Result<String>),
) -> anyhow::Result<()> {
    let report = Report::read(&Cli::try_parse_from(["chase-report"])?, vec![path.into()])?;
    let mut show = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let text = one(&words, path, &report);
        shown(&words, text);
    };
    let command = Cli::command();
    let views = command.get_subcommands().map(clap::Command::get_name);
    for view in views.filter(|view| !OTHERS.contains(view)) {
        for form in [&[view][..], &[view, "--json"], &[view, "--csv"]] {
            show(form);
        }
    }
    for form in [&[][..], &["--json"], &["--csv"]] {
        show(form);
    }
    show(&["brief"]);
    show(&["threads", "--groups"]);
    for table in names(SyscallsBy::value_variants()) {
        show(&["syscalls", "--by", &table]);
    }
    for format in names(GraphFormat::value_variants()) {
        show(&["graph", "--format", &format]);
        show(&["components", "--graph", &format]);
    }
    let file = output.join("exported").display().to_string();
    for format in names(ExportFormat::value_variants()) {
        show(&["export", "--format", &format, "--output", &file]);
    }
    let page = output.join("page.html").display().to_string();
    show(&["html", "--force", "--output", &page]);
    if with_pictures {
        show(&["charts", "--output", &output.join("charts").display().to_string()]);
    }
    for form in [&["compare"][..], &["compare", "--json"], &["compare", "--csv"]] {
        show(form);
    }
    for form in [&["top"][..], &["top", "--json"]] {
        show(form);
    }
    Ok(())
}

/// What a command line prints of a recording; what compares, compares it with itself.
fn one(words: &[String], path: &Path, report: &Report) -> anyhow::Result<String> {
    let program = "chase-report".to_owned();
    let cli = Cli::try_parse_from(std::iter::once(&program).chain(words))?;
    let terminal = terminal::Terminal { width: Some(100), colour: false };
    match &cli.view {
        Some(View::Compare(_)) => {
            let paths = vec![path.to_owned(); 2];
            let arguments = CompareArgs { paths, ..CompareArgs::default() };
            let compared = Compared::open(&arguments, &cli.source)?;
            view::compare::show(&cli, &arguments, &compared, terminal)
        }
        Some(View::Top(_)) => top::once(&cli, path, terminal),
        _ => view::show(&cli, report, terminal),
    }
}

fn names<T: ValueEnum>(all: &[T]) -> Vec<String> {
    let values = all.iter().filter_map(ValueEnum::to_possible_value);
    values.map(|value| value.get_name().to_owned()).collect()
}
