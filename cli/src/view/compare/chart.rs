//! What a call's time is spent on, before and after, as stacked bars.

use std::path::Path;

use anyhow::{Context as _, bail};
use chase_analyzer::{ApiName, Parts};
use chase_viz::{Group, GroupKind, Heading, Sheet, StackRow, Unit, stacked};

use super::function;
use crate::compare::Compared;

/// Functions that are drawn.
pub(super) const TOP: usize = 12;
/// Width of a PNG file, in pixels.
const PNG_WIDTH: u32 = 1280;

/// Draws into a file whose name ends in `.svg` or `.png`.
pub(super) fn draw(compared: &Compared, path: &Path, top: usize) -> anyhow::Result<()> {
    let kind = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if !matches!(kind, "svg" | "png") {
        bail!("--chart {}: the name must end in .svg or .png", path.display());
    }
    let series = [
        "its own code",
        "system calls, on the CPU",
        "waiting",
        "preempted",
        "library calls inside",
    ]
    .map(|name| Group { name: name.to_owned(), kind: GroupKind::Library, value: 1.0 });
    let mut rows = Vec::new();
    for row in compared.comparison.apis.iter().take(top) {
        let sides = [("A", &row.before, row.parts.0), ("B", &row.after, row.parts.1)];
        for (letter, name, parts) in sides {
            if let (Some(name), Some(parts)) = (name, parts) {
                rows.push(StackRow { label: label(letter, name), values: values(&parts) });
            }
        }
    }
    let command = &compared.before.command;
    let subtitle = match &compared.after {
        Some(after) if after.command != *command => format!("A: {command}; B: {}", after.command),
        _ => command.clone(),
    };
    let heading = Heading { title: "Time per call", subtitle: &subtitle };
    let chart = stacked(&Sheet::alone(heading), Unit::Nanoseconds, &series, &rows)
        .context("cannot draw the chart")?;
    let bytes = match kind {
        "png" => chart.png(PNG_WIDTH).context("cannot draw the chart")?,
        _ => chart.svg().as_bytes().to_vec(),
    };
    crate::view::files::save(path, &bytes)
}

fn label(letter: &str, name: &ApiName) -> String {
    format!("{letter}: {} ({})", function(name), name.library)
}

fn values(parts: &Parts) -> Vec<f64> {
    let Parts { code_ns, syscalls_ns, wait_ns, preempted_ns, nested_ns } = *parts;
    vec![code_ns, syscalls_ns, wait_ns, preempted_ns, nested_ns]
}
