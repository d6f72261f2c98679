//! Where the time went: rings of libraries and their functions, and a way into each library.

use chase_viz::{Chart, Group, Heading, Part, Segment, Sheet, Unit, sunburst};
use maud::{Markup, html};

use crate::colours::library_groups as groups;
use crate::figure::{
    about, count, count_about, figure, name, plural, share, table, time, time_about, time_if,
};
use crate::model::{Estimates, Function, Library};
use crate::{Error, Report};

/// Libraries that can be looked into.
const PANELS: usize = 16;
/// Rows of a table of functions; all are among the rows at the end of the page.
const FUNCTIONS: usize = 40;
/// Width of the rings beside their table, pixels.
const RINGS: f64 = 460.0;

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    if report.header.whole_ns <= 0.0 {
        return Ok(None);
    }
    let heading = Heading { title: "Time by library and function", subtitle: "" };
    let caption = html! {
        "Inside: libraries by self time, and the application’s own time, with nothing around it. "
        "Outside: their functions. Choose a library to go into it."
        @if report.header.estimates != Estimates::None {
            " Times of functions that were called very often are estimates: ~, and how sure they are, in the "
            "tables."
        }
    };
    let rings = figure(&heading, RINGS, &caption, |sheet| draw(report, sheet))?;
    let mut panels = Vec::new();
    let all = groups(report);
    for (number, library) in inside(report) {
        panels.push((number, library, panel(library, &all[number])?));
    }
    Ok(Some(html! {
        div.panels data-panels="" {
            div.panel #time-all {
                h3.quiet tabindex="-1" { "All libraries" }
                div.beside { (rings) (libraries(report)) }
            }
            @for (number, library, body) in &panels {
                div.panel id={ "time-" (number) } {
                    nav.crumbs aria-label="Path" {
                        a href="#time-all" { "All libraries" } " › "
                        span aria-current="page" { (library.name) }
                    }
                    h3 tabindex="-1" { (library.name) }
                    (body)
                }
            }
        }
    }))
}

pub(crate) fn draw(report: &Report, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    let keys: Vec<usize> = inside(report).map(|(number, _)| number).collect();
    let segment = |(number, (library, group)): (usize, (&Library, Group))| Segment {
        group,
        parts: library.functions.iter().map(part).collect(),
        key: keys.contains(&number).then(|| format!("time-{number}")),
    };
    let segments: Vec<Segment> =
        report.libraries.iter().zip(groups(report)).enumerate().map(segment).collect();
    let name = report.header.program.as_str();
    Ok(sunburst(sheet, Unit::Nanoseconds, name, &segments)?)
}

fn part(function: &Function) -> Part {
    Part { label: function.name.to_string(), value: function.self_ns }
}

/// Libraries that have a panel of their own.
fn inside(report: &Report) -> impl Iterator<Item = (usize, &Library)> {
    let with_functions = |(_, library): &(usize, &Library)| !library.functions.is_empty();
    report.libraries.iter().enumerate().filter(with_functions).take(PANELS)
}

fn libraries(report: &Report) -> Markup {
    let columns =
        [("library", false), ("share", true), ("self", true), ("calls", true), ("functions", true)];
    let links: Vec<usize> = inside(report).map(|(number, _)| number).collect();
    let colours = chase_viz::colours(&groups(report));
    let row = |(number, library): (usize, &Library)| {
        let swatch = html! { i.swatch style={ "--c:" (colours[number]) } {} };
        let text = html! {
            (name(&library.name)) @if library.is_application { " (application)" }
        };
        vec![
            html! { span.entry {
                (swatch)
                @if links.contains(&number) { a href={ "#time-" (number) } { (text) } }
                @else { span { (text) } }
            } },
            about(library.self_error_ns.is_some(), &share(library.self_ns, report.header.whole_ns)),
            time_about(library.self_ns, library.self_error_ns),
            if library.is_application {
                html! {}
            } else {
                count_about(library.calls, library.calls_error)
            },
            if library.is_application {
                html! {}
            } else {
                count(library.functions.len() as u64)
            },
        ]
    };
    // What the processor was in without any call has nothing to show here.
    let is_seen = |(_, library): &(usize, &Library)| library.self_ns > 0.0 || library.calls > 0;
    let rows: Vec<_> = report.libraries.iter().enumerate().filter(is_seen).map(row).collect();
    table("Time by library", &columns, &rows)
}

/// The functions of one library.
fn panel(library: &Library, group: &Group) -> Result<Markup, Error> {
    let segments = [Segment {
        group: group.clone(),
        parts: library.functions.iter().map(part).collect(),
        key: None,
    }];
    let heading = Heading { title: "Functions by self time", subtitle: library.name.as_str() };
    let caption = html! { (plural(library.functions.len(), "function")) " by self time." };
    let rings = figure(&heading, RINGS, &caption, |sheet| {
        Ok(sunburst(sheet, Unit::Nanoseconds, library.name.as_str(), &segments)?)
    })?;
    let columns = [
        ("function", false),
        ("share", true),
        ("self", true),
        ("total", true),
        ("calls", true),
        ("p50", true),
        ("p99.9", true),
    ];
    let row = |function: &Function| {
        let is_estimate = function.self_error_ns.is_some();
        vec![
            name(&function.name),
            about(is_estimate, &share(function.self_ns, library.self_ns)),
            time_about(function.self_ns, function.self_error_ns),
            about(is_estimate, &time(function.total_ns)),
            count_about(function.calls, function.calls_error),
            time_if(function.p50_ns),
            time_if(function.p999_ns),
        ]
    };
    let rows: Vec<_> = library.functions.iter().take(FUNCTIONS).map(row).collect();
    let more = library.functions.len().saturating_sub(FUNCTIONS);
    Ok(html! {
        div.beside {
            (rings)
            div {
                (table(&format!("Functions of {}", library.name), &columns, &rows))
                @if more > 0 {
                    p.note { "… and " (more) " more: see " a href="#rows" { "All rows" } "." }
                }
            }
        }
    })
}
