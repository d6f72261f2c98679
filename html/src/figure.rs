//! Pictures and tables, as sections put them into the page.

use chase_viz::{Chart, Group, GroupKind, Heading, Sheet, Unit};
use maud::{Markup, PreEscaped, html};

use crate::model::{Library, Report};
use crate::{Error, Label};

/// Width of pictures where there is room, pixels.
pub(crate) const WIDE: f64 = 960.0;
/// Where there is not: the page shows one or the other, so that text is never scaled down much.
const NARROW: f64 = 360.0;

/// A picture twice, wide and narrow, with what is to be known to read it.
pub(crate) fn figure(
    heading: &Heading<'_>,
    wide: f64,
    caption: &Markup,
    draw: impl Fn(&Sheet<'_>) -> Result<Chart, Error>,
) -> Result<Markup, Error> {
    let picture = |width| draw(&Sheet::inside(*heading, width));
    let (wide, narrow) = (picture(wide)?, picture(NARROW)?);
    Ok(html! {
        figure {
            div.wide { (PreEscaped(wide.svg())) }
            div.narrow { (PreEscaped(narrow.svg())) }
            figcaption { (caption) }
        }
    })
}

/// A table that scrolls sideways where it must.
pub(crate) fn table(name: &str, columns: &[(&str, bool)], rows: &[Vec<Markup>]) -> Markup {
    html! {
        div.scroll role="region" aria-label=(name) tabindex="0" {
            table {
                thead { tr {
                    @for (column, is_number) in columns { th.number[*is_number] scope="col" { (column) } }
                } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 {
                                    th.number[columns[at].1] scope="row" { (cell) }
                                } @else {
                                    td.number[columns[at].1] { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A duration.
pub(crate) fn time(ns: f64) -> Markup {
    html! { (chase_viz::quantity(ns, Unit::Nanoseconds)) }
}

/// A duration that may be an estimate, with its error, as a part of it; where that is as much as itself,
/// only what it is at most.
pub(crate) fn time_about(ns: f64, error_ns: Option<f64>) -> Markup {
    match error_ns {
        Some(error) if error > 0.0 && error >= ns => html! { "≤ " (time(ns + error)) },
        Some(error) => html! { "~" (time(ns)) (plus_minus(error / ns)) },
        None => time(ns),
    }
}

/// The same of a number of things.
pub(crate) fn count_about(number: u64, error: Option<f64>) -> Markup {
    match error {
        Some(error) => html! { "~" (count(number)) (plus_minus(error / number as f64)) },
        None => count(number),
    }
}

/// A figure that is an estimate, if it is.
pub(crate) fn about(is_estimate: bool, figure: &Markup) -> Markup {
    html! { @if is_estimate && !figure.0.is_empty() { "~" } (figure) }
}

fn plus_minus(part: f64) -> Markup {
    html! { @if part >= 0.0005 { " ± " (chase_viz::share(part, 1.0)) } }
}

/// A duration, or nothing where there is none.
pub(crate) fn time_if(ns: Option<f64>) -> Markup {
    ns.map_or_else(|| html! {}, time)
}

/// A number of things.
pub(crate) fn count(number: u64) -> Markup {
    html! { (chase_viz::quantity(number as f64, Unit::Count(""))) }
}

/// How many for each, also of what is rare.
pub(crate) fn ratio(value: f64) -> Markup {
    match value {
        0.0 => html! { "0" },
        value if value < 0.001 => html! { "<0.001" },
        value if value < 0.0995 => html! { (format!("{value:.3}")) },
        value => html! { (chase_viz::quantity(value, Unit::Count(""))) },
    }
}

/// `part` of `whole`.
pub(crate) fn share(part: f64, whole: f64) -> Markup {
    html! { (chase_viz::share(part, whole)) }
}

/// A name, cut by the style sheet where it is long, and whole in its tooltip.
pub(crate) fn name(label: &Label) -> Markup {
    html! { span.name title=(label) { (label) } }
}

/// `3 threads`, `1 thread`.
pub(crate) fn plural(number: usize, what: &str) -> String {
    chase_viz::plural(number as u64, what)
}

/// What charts call the libraries of the report; all of them, so that each has its colour.
pub(crate) fn groups(report: &Report) -> Vec<Group> {
    report.libraries.iter().map(group).collect()
}

fn group(library: &Library) -> Group {
    Group {
        name: library.name.to_string(),
        kind: if library.is_application { GroupKind::Application } else { GroupKind::Library },
        value: library.self_ns,
    }
}
