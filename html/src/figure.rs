//! Pictures and tables, as sections put them into the page.

use chase_viz::{Chart, Heading, Sheet, Unit};
use maud::{Markup, PreEscaped, html};

use crate::{Error, Label};

/// Width of pictures where there is room, pixels.
pub(crate) const WIDE: f64 = 1180.0;
/// Where there is not: the page shows one or the other, so that text is never scaled down much.
const NARROW: f64 = 360.0;
/// Tables with more columns have narrower ones.
const MANY: usize = 6;
/// Names of no more characters are not broken into lines.
const SHORT: usize = 20;
/// Longer ones may be broken between their words.
const UNBROKEN: usize = 13;
/// Heading of a column of bars.
pub(crate) const BAR: &str = "";

/// A picture twice, wide and narrow, or once if it is narrow anyway; with what is to be known to read it.
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
            @if marks(wide.svg()) == marks(narrow.svg()) {
                div { (PreEscaped(narrow.svg())) }
            } @else {
                div.wide { (PreEscaped(wide.svg())) }
                div.narrow { (PreEscaped(narrow.svg())) }
            }
            figcaption { (caption) }
        }
    })
}

/// The same for pictures that have a width of their own, and scroll sideways where there is no room for that.
pub(crate) fn scrolling_figure(
    heading: &Heading<'_>,
    caption: &Markup,
    draw: impl Fn(&Sheet<'_>) -> Result<Chart, Error>,
) -> Result<Markup, Error> {
    let picture = |width| draw(&Sheet::inside(*heading, width));
    let (wide, narrow) = (picture(WIDE)?, picture(NARROW)?);
    let scrolling = |class: &str, chart: &Chart| {
        html! {
            div class={ "pan " (class) } role="region" aria-label=(heading.title) tabindex="0" {
                (PreEscaped(chart.svg()))
            }
        }
    };
    Ok(html! {
        figure.graph {
            @if marks(wide.svg()) == marks(narrow.svg()) {
                (scrolling("", &narrow))
            } @else {
                (scrolling("wide", &wide))
                (scrolling("narrow", &narrow))
            }
            figcaption { (caption) }
        }
    })
}

/// What is drawn in a picture: all behind its size and its paper, which have a line each.
fn marks(svg: &str) -> Option<&str> {
    svg.splitn(3, '\n').nth(2)
}

/// A table that scrolls sideways where it must. Columns are headings, and whether numbers are below them.
pub(crate) fn table(name: &str, columns: &[(&str, bool)], rows: &[Vec<Markup>]) -> Markup {
    table_of(if columns.len() > MANY { "many" } else { "" }, name, columns, rows)
}

/// The same with a column of bars.
pub(crate) fn table_of_bars(name: &str, columns: &[(&str, bool)], rows: &[Vec<Markup>]) -> Markup {
    table_of("bars", name, columns, rows)
}

fn table_of(class: &str, name: &str, columns: &[(&str, bool)], rows: &[Vec<Markup>]) -> Markup {
    html! {
        div.scroll role="region" aria-label=(name) tabindex="0" {
            table class=[(!class.is_empty()).then_some(class)] {
                thead { tr {
                    @for (column, is_number) in columns { th class=[number(*is_number)] scope="col" { (column) } }
                } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 {
                                    th class=[number(columns[at].1)] scope="row" { (cell) }
                                } @else if columns[at].0 == BAR {
                                    td.fill { (cell) }
                                } @else {
                                    td class=[number(columns[at].1)] { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The class of a cell, if it has one: pages have thousands.
fn number(is_number: bool) -> Option<&'static str> {
    is_number.then_some("number")
}

/// A part of a bar: its share of the longest bar, its colour, and what it is.
pub(crate) struct BarPart {
    pub(crate) share: f64,
    pub(crate) colour: String,
    pub(crate) title: String,
}

/// A bar. What it says is in the other cells of its row too, so that it need not be read aloud.
pub(crate) fn bar(parts: &[BarPart]) -> Markup {
    html! {
        span.bar aria-hidden="true" {
            @for part in parts.iter().filter(|part| part.share > 0.0) {
                i title=(part.title)
                    style={ "--w:" (format!("{:.2}", part.share * 100.0)) ";--c:" (part.colour) } {}
            }
        }
    }
}

/// A name with the colour that stands for it.
pub(crate) fn entry(colour: &str, text: &Markup) -> Markup {
    html! { span.entry { i.swatch style={ "--c:" (colour) } {} span { (text) } } }
}

/// What colours stand for.
pub(crate) fn legend(entries: &[(String, &str)]) -> Markup {
    html! {
        ul.legend { @for (colour, text) in entries {
            li { i.swatch style={ "--c:" (colour) } {} (text) }
        } }
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
    let is_long = label.as_str().chars().nth(SHORT).is_some();
    let is_whole = label.as_str().chars().nth(UNBROKEN).is_none();
    html! { span.name.long[is_long] title=(label) {
        @if is_whole { (label) } @else {
            @for (at, part) in pieces(label.as_str()).into_iter().enumerate() {
                @if at > 0 { wbr; } (part)
            }
        }
    } }
}

/// Text in which names of C++ and Rust are broken between their parts, where lines are.
pub(crate) fn broken(text: &str) -> Markup {
    html! { @for (at, part) in text.split_inclusive("::").enumerate() { @if at > 0 { wbr; } (part) } }
}

/// Where a name may be broken: after `_` and `::`, and before an offset, whose digits belong together. (Without that it would be broken
/// wherever a column ends, also between two colons.)
fn pieces(name: &str) -> Vec<&str> {
    let (file, offset) = name.split_at(name.rfind("+0x").unwrap_or(name.len()));
    let offset = Some(offset).filter(|offset| !offset.is_empty());
    let scopes = file.split_inclusive("::");
    scopes.flat_map(|scope| scope.split_inclusive('_')).chain(offset).collect()
}

/// `3 threads`, `1 thread`.
pub(crate) fn plural(number: usize, what: &str) -> String {
    chase_viz::plural(number as u64, what)
}

#[cfg(test)]
mod tests {
    use super::{broken, pieces};

    #[test]
    fn names_are_broken_after_words_and_before_offsets() {
        assert_eq!(pieces("pthread_mutex_lock"), ["pthread_", "mutex_", "lock"]);
        assert_eq!(pieces("libopenblas.so.0+0x2381c9"), ["libopenblas.so.0", "+0x2381c9"]);
        assert_eq!(pieces("a_b.so+0x1"), ["a_", "b.so", "+0x1"]);
        assert_eq!(pieces("operator+"), ["operator+"]);
        assert_eq!(
            pieces("std::vector<a::b_c, int>::push_back"),
            ["std::", "vector<a::", "b_", "c, int>::", "push_", "back"]
        );
        assert_eq!(broken("in a::<b>: 1").into_string(), "in a::<wbr>&lt;b&gt;: 1");
    }
}
