//! What changed since other runs.

use chase_viz::{
    Chart, Group, GroupKind, Heading, Sheet, StackRow, State, Unit, quantity, stacked,
};
use maud::{Markup, html};

use crate::colours::series;
use crate::figure::{WIDE, figure, name, plural, table};
use crate::model::{Change, Comparison, FunctionChange, SelfParts, Verdict};
use crate::{Error, Report};

/// Functions that get a pair of bars.
const BARS: usize = 12;

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    let Some(comparison) = &report.comparison else { return Ok(None) };
    let heading = Heading { title: "Self time", subtitle: "before and now" };
    let caption = html! {
        "What self time was spent on, of the functions whose self time changed most: that may be for "
        "more calls or for longer ones. Verdicts are about the time per call."
    };
    let picture = if has_parts(comparison) {
        Some(figure(&heading, WIDE, &caption, |sheet| draw(comparison, sheet))?)
    } else {
        None
    };
    let is_clear =
        |row: &&FunctionChange| !matches!(row.verdict, Verdict::NoClearChange | Verdict::TooFew);
    let clear = comparison.functions.iter().filter(is_clear).count();
    Ok(Some(html! {
        p { "Before: " b { (comparison.before) } ". Now: " b { (comparison.now) } "." }
        @for note in &comparison.notes { p.note { (note) } }
        @if clear == 0 { p { "Of no function did the time per call clearly change." } }
        (totals(comparison))
        @if let Some(picture) = picture { (picture) }
        (functions(comparison))
        @if comparison.more_functions > 0 {
            p.note { "… and " (plural(comparison.more_functions, "more function")) " that changed less." }
        }
    }))
}

/// Whether there is a picture.
pub(crate) fn has_parts(comparison: &Comparison) -> bool {
    comparison.functions.iter().take(BARS).any(|row| row.parts.iter().any(Option::is_some))
}

pub(crate) fn draw(comparison: &Comparison, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    let parts = [
        series("own code", State::Running),
        Group { kind: GroupKind::Shade(2), ..series("system calls", State::Running) },
        series("waiting", State::Blocked),
        series("preempted", State::Runnable),
    ];
    let mut rows = Vec::new();
    for row in comparison.functions.iter().take(BARS) {
        for (side, parts) in ["before", "now"].into_iter().zip(row.parts) {
            let Some(parts) = parts else { continue };
            let SelfParts { code_ns, syscalls_ns, wait_ns, preempted_ns } = parts;
            let values = vec![code_ns, syscalls_ns, wait_ns, preempted_ns];
            rows.push(StackRow { label: format!("{}, {side}", row.function), values });
        }
    }
    Ok(stacked(sheet, Unit::Nanoseconds, &parts, &rows)?)
}

fn totals(comparison: &Comparison) -> Markup {
    let has_p = comparison.totals.iter().any(|change| change.p.is_some());
    let mut columns =
        vec![("whole run", false), ("before", true), ("now", true), ("difference", true)];
    if has_p {
        columns.push(("p", true));
    }
    let row = |change: &Change| {
        let mut row = vec![html! { span.words { (change.measure) } }];
        row.extend(cells_of(change, has_p));
        row
    };
    table("Whole runs", &columns, &comparison.totals.iter().map(row).collect::<Vec<_>>())
}

/// Before, now, the difference, and how probable that is by chance.
fn cells_of(change: &Change, has_p: bool) -> Vec<Markup> {
    let mut cells = vec![
        html! { (shown(change, change.before)) },
        html! { (shown(change, change.now)) },
        html! { (difference(change)) },
    ];
    if has_p {
        cells.push(html! { @if let Some(p) = change.p { (probability(p)) } });
    }
    cells
}

/// The difference, and below it what it is of.
fn in_short(change: &Change) -> Markup {
    let [before, now] = [change.before, change.now].map(|value| shown(change, value));
    html! {
        (difference(change))
        @if change.before.is_some() || change.now.is_some() {
            " " span.note { (before) " → " (now) }
        }
    }
}

fn functions(comparison: &Comparison) -> Markup {
    let Some(first) = comparison.functions.first() else { return html! {} };
    // Of figures that nobody has, no columns.
    let has = |at: usize| {
        let has = |row: &FunctionChange| {
            row.figures.get(at).is_some_and(|f| f.before.is_some() || f.now.is_some())
        };
        comparison.functions.iter().any(has)
    };
    let figures: Vec<usize> = (0..first.figures.len()).filter(|&at| has(at)).collect();
    let has_p =
        comparison.functions.iter().any(|row| row.figures.first().is_some_and(|f| f.p.is_some()));
    let mut columns = vec![
        ("function".to_owned(), false),
        ("library".to_owned(), false),
        ("verdict".to_owned(), false),
    ];
    for (place, &at) in figures.iter().enumerate() {
        columns.push((first.figures[at].measure.to_string(), true));
        if place == 0 && has_p {
            columns.push(("p".to_owned(), true));
        }
    }
    let row = |row: &FunctionChange| {
        let mut cells = vec![
            name(&row.function),
            name(&row.library),
            html! { span.words { (words(row.verdict)) } },
        ];
        for (place, &at) in figures.iter().enumerate() {
            let Some(change) = row.figures.get(at) else { continue };
            cells.push(in_short(change));
            if place == 0 && has_p {
                cells.push(html! { @if let Some(p) = change.p { (probability(p)) } });
            }
        }
        cells
    };
    let rows: Vec<_> = comparison.functions.iter().map(row).collect();
    let columns: Vec<(&str, bool)> =
        columns.iter().map(|(name, number)| (&**name, *number)).collect();
    html! {
        p.note { "In each column the difference, and what was before and is now." }
        (table("Functions before and now", &columns, &rows))
    }
}

fn shown(change: &Change, value: Option<f64>) -> String {
    let unit = if change.is_time { Unit::Nanoseconds } else { Unit::Count("") };
    value.map_or_else(String::new, |value| quantity(value, unit))
}

fn difference(change: &Change) -> String {
    match (change.before, change.now) {
        (Some(before), Some(now)) if before == now => "=".to_owned(),
        (Some(before), Some(now)) if before > 0.0 && now >= before * 2.0 => {
            format!("×{}", quantity(now / before, Unit::Count("")))
        }
        (Some(before), Some(now)) if before > 0.0 => {
            format!("{:+.1} %", (now / before - 1.0) * 100.0).replace('-', "−")
        }
        _ => String::new(),
    }
}

fn probability(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "slower",
        Verdict::Faster => "faster",
        Verdict::NoClearChange => "no clear change",
        Verdict::TooFew => "too few to tell",
        Verdict::OnlyBefore => "only before",
        Verdict::OnlyAfter => "only now",
    }
}
