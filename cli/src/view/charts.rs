//! Charts as files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use chase_analyzer::LibraryKind;
use chase_viz::{Bar, Chart, Heading, Unit};

use super::files::Files;
use crate::report::Report;

/// Functions that get a bar of their own.
const TOP: usize = 25;
/// Width of the PNG files, in pixels.
const PNG_WIDTH: u32 = 1280;

/// Draws all charts into `dir`.
pub(super) fn draw(report: &Report, dir: &Path, top: Option<usize>) -> anyhow::Result<Files> {
    let model = super::html::model(report)?;
    let groups = chase_html::library_groups(&model);
    let subtitle = super::processes::subtitle(report);
    let top = match top {
        None => TOP,
        Some(0) => usize::MAX,
        Some(top) => top,
    };
    let heading = |title| Heading { title, subtitle: &subtitle };
    let pie = chase_viz::pie(&heading("Time by library"), Unit::Nanoseconds, &groups)
        .context("cannot draw the chart of libraries")?;
    let bars = bars(report);
    let bars =
        chase_viz::bars(&heading("Time by function"), Unit::Nanoseconds, &groups, &bars, top)
            .context("cannot draw the chart of functions")?;
    fs::create_dir_all(dir)
        .with_context(|| format!("cannot make the directory {}", dir.display()))?;
    let mut files = save(dir, "libraries", &pie)?;
    files.extend(save(dir, "apis", &bars)?);
    for picture in chase_html::pictures(&model, &subtitle).context("cannot draw the charts")? {
        files.extend(save(dir, &picture.name, &picture.chart)?);
    }
    Ok(Files { files })
}

fn bars(report: &Report) -> Vec<Bar> {
    let libraries = &report.analysis.libraries;
    let group_of = |object| {
        let is_it = |row: &chase_analyzer::LibraryRow| {
            row.kind == LibraryKind::Library && row.object == object
        };
        libraries.iter().position(is_it)
    };
    let apis = report.analysis.apis.iter().enumerate();
    apis.filter_map(|(number, row)| {
        let label = report.names.short(number).to_owned();
        Some(Bar { label, group: group_of(row.object)?, value: row.measures.self_ns.as_f64() })
    })
    .collect()
}

fn save(dir: &Path, name: &str, chart: &Chart) -> anyhow::Result<Vec<PathBuf>> {
    let png = chart.png(PNG_WIDTH).with_context(|| format!("cannot draw {name}.png"))?;
    let svg = chase_html::standalone(chart.svg());
    let files = [(format!("{name}.svg"), svg.as_bytes()), (format!("{name}.png"), &*png)];
    let write = |(name, bytes): (String, &[u8])| {
        let path = dir.join(name);
        super::files::save(&path, bytes)?;
        Ok(path)
    };
    files.into_iter().map(write).collect()
}
