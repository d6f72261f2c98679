//! Tail latency: how slow the slowest calls are.

use chase_viz::{Chart, Curve, Heading, Sheet, Unit, percentiles};
use maud::{Markup, html};

use crate::colours::Colours;
use crate::figure::{WIDE, about, count, figure, name, table, time};
use crate::model::{Tail, TailCurve};
use crate::{Error, Label, Report};

/// Functions that get a curve.
const CURVES: usize = 6;

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    if report.tails.is_empty() {
        return Ok(None);
    }
    let heading =
        Heading { title: "Quantiles of durations", subtitle: "logarithmic in 1/(1 − q)" };
    let caption = html! {
        "From p90 on, each step to the right has a tenth of the calls of the one before; the last point of a curve "
        "is its longest call. Durations of single calls, with what they call inside: service times. A "
        "curve that climbs steeply at the right has a tail. Curves have the colours of their libraries."
        @if report.tails.iter().any(|tail| tail.sampled) {
            " Of functions that were called very often only some calls were timed: the longest of all is not "
            "known (≥ is that of the timed ones), nor are quantiles that too few of them tell."
        }
        @if report.tails.iter().any(|tail| tail.before.is_some()) { " Dashed: before." }
    };
    let picture = figure(&heading, WIDE, &caption, |sheet| draw(report, sheet))?;
    Ok(Some(html! { (picture) (numbers(report)) }))
}

pub(crate) fn draw(report: &Report, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    let mut curves = Vec::new();
    let colours = Colours::new(report);
    for tail in report.tails.iter().take(CURVES) {
        let curve = |label: String, of: &TailCurve, dashed| Curve {
            label,
            kind: colours.named_kind(&tail.library),
            dashed,
            points: of.points.clone(),
        };
        let name = label(report, tail);
        if let Some(before) = &tail.before {
            curves.push(curve(format!("{name}, before"), before, true));
        }
        curves.push(curve(name, &tail.now, false));
    }
    Ok(percentiles(sheet, Unit::Nanoseconds, &curves)?)
}

/// The function; with its group where several groups call it.
fn label(report: &Report, tail: &Tail) -> String {
    let is_other = |other: &&Tail| other.function == tail.function && other.group != tail.group;
    if report.tails.iter().take(CURVES).any(|other| is_other(&other)) {
        format!("{} in {}", tail.function, tail.group)
    } else {
        tail.function.to_string()
    }
}

fn numbers(report: &Report) -> Markup {
    let has = |is: fn(&Tail) -> bool| report.tails.iter().any(is);
    let (has_share, has_holder) =
        (has(|t| t.share_above_p99.is_some()), has(|t| t.held_by.is_some()));
    let has_groups = report.tails.iter().any(|tail| tail.group != report.tails[0].group);
    let mut columns = vec![("function", false), ("library", false)];
    if has_groups {
        columns.push(("thread group", false));
    }
    columns.extend([
        ("calls", true),
        ("p50", true),
        ("p90", true),
        ("p99", true),
        ("p99.9", true),
        ("p99.99", true),
        ("longest", true),
        ("p99.9 / p50", true),
    ]);
    if has_share {
        columns.push(("time above p99", true));
    }
    if has_holder {
        columns.push(("calls above p99", false));
    }
    let has_syscalls = has(|tail| !tail.syscalls.as_str().is_empty());
    if has_syscalls {
        columns.push(("longest system calls", false));
    }
    let row = |tail: &Tail| {
        let at = |inverse: f64| {
            let found = tail.now.points.iter().find(|&&(known, _)| known == inverse);
            found.filter(|_| inverse <= tail.calls as f64).map(|&(_, ns)| ns)
        };
        let shown = |ns: Option<f64>| html! { @if let Some(ns) = ns { (time(ns)) } };
        let mut row = vec![name(&tail.function), name(&tail.library)];
        if has_groups {
            row.push(name(&tail.group));
        }
        row.extend([
            count(tail.calls),
            shown(at(2.0)),
            shown(at(10.0)),
            shown(at(100.0)),
            shown(at(1000.0)),
            shown(at(10_000.0)),
            html! { @if tail.sampled { "≥ " } (time(tail.longest_ns)) },
            html! { @if let Some(ratio) = tail.ratio.filter(|_| at(1000.0).is_some()) { (chase_viz::quantity(ratio, Unit::Count(""))) } },
        ]);
        if has_share {
            let share = tail.share_above_p99.map(|share| format!("{:.1} %", share * 100.0));
            row.push(about(tail.sampled, &html! { (share.unwrap_or_default()) }));
        }
        if has_holder {
            let sign = if tail.sampled { "~" } else { "" };
            let holder = tail.held_by.as_ref().map(|it| Label::from(format!("{sign}{it}")));
            row.push(holder.map_or_else(|| html! {}, |it| name(&it)));
        }
        if has_syscalls {
            row.push(name(&tail.syscalls));
        }
        row
    };
    let rows: Vec<_> = report.tails.iter().map(row).collect();
    table("Quantiles by function", &columns, &rows)
}
