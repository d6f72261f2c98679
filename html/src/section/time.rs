//! Where the time went: rings of libraries and their functions, and a way into each library; by the wall's clock, and, where
//! samples were taken, by the processor's.

use chase_viz::{Chart, Group, Heading, Part, Segment, Sheet, Unit, sunburst};
use maud::{Markup, html};

use super::clock::{Clock, by_clocks};
use crate::colours::library_groups as groups;
use crate::figure::{
    about, count, count_about, figure, name, plural, share, table, time, time_about, time_if,
};
use crate::model::{Estimates, Function, Library};
use crate::{Error, Report};

/// Libraries that can be looked into.
const PANELS: usize = 10;
/// Rows of a table of functions; all are among the rows at the end of the page.
const FUNCTIONS: usize = 40;
/// Width of the rings beside their table, pixels.
const RINGS: f64 = 460.0;

impl Clock {
    fn library_ns(self, library: &Library) -> f64 {
        if self == Self::Cpu { library.on_cpu_ns } else { library.self_ns }
    }

    fn function_ns(self, function: &Function) -> f64 {
        if self == Self::Cpu { function.on_cpu_ns } else { function.self_ns }
    }
}

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    if report.header.whole_ns <= 0.0 {
        return Ok(None);
    }
    let all = by_clocks(report, |clock| {
        let title = match clock {
            Clock::Cpu => "Processor time by library and function called",
            Clock::Wall => "Time by library and function",
        };
        let caption = html! {
            @match clock {
                Clock::Cpu => {
                    "Inside: processor time during calls of libraries, and in no call, by samples. Outside: the functions "
                    "that were called. What ran, whoever called it, is under Processor. "
                }
                Clock::Wall => {
                    "Inside: libraries by self time, and the application’s own time, with nothing around it. "
                    "Outside: their functions. "
                }
            }
            "Choose a library to go into it."
            @if clock == Clock::Wall && report.header.estimates != Estimates::None {
                " Times of functions that were called very often are estimates: ~, and how sure they are, in the "
                "tables."
            }
        };
        let heading = Heading { title, subtitle: "" };
        let rings = figure(&heading, RINGS, &caption, |sheet| draw_by(report, clock, sheet))?;
        Ok(html! { div.beside { (rings) div { (libraries(report, clock)) } } })
    })?;
    let mut panels = Vec::new();
    let kinds = groups(report);
    for (number, library) in inside(report) {
        let body = by_clocks(report, |clock| panel(report, clock, library, &kinds[number]))?;
        panels.push((number, library, body));
    }
    Ok(Some(html! {
        div.panels data-panels="" {
            div.panel #time-all {
                h3.quiet tabindex="-1" { "All libraries" }
                (all)
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
    draw_by(report, Clock::Wall, sheet)
}

fn draw_by(report: &Report, clock: Clock, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    let keys: Vec<usize> = inside(report).map(|(number, _)| number).collect();
    let segment = |(number, (library, group)): (usize, (&Library, Group))| Segment {
        group: Group { value: clock.library_ns(library), ..group },
        parts: parts(clock, library),
        key: keys.contains(&number).then(|| format!("time-{number}")),
    };
    let mut segments: Vec<Segment> =
        report.libraries.iter().zip(groups(report)).enumerate().map(segment).collect();
    if clock == Clock::Cpu {
        segments.extend(report.processor.as_ref().and_then(super::processor::not_sampled));
    }
    let name = report.header.program.as_str();
    Ok(sunburst(sheet, Unit::Nanoseconds, name, &segments)?)
}

/// The functions of a library as parts of its slice.
fn parts(clock: Clock, library: &Library) -> Vec<Part> {
    let part = |function: &&Function| Part {
        label: function.name.to_string(),
        value: clock.function_ns(function),
    };
    functions(clock, library).iter().map(part).collect()
}

/// The functions of a library, the longest first.
fn functions(clock: Clock, library: &Library) -> Vec<&Function> {
    let mut functions: Vec<&Function> = library.functions.iter().collect();
    if clock == Clock::Cpu {
        functions.sort_by(|a, b| b.on_cpu_ns.total_cmp(&a.on_cpu_ns));
    }
    functions
}

/// Libraries that have a panel of their own.
fn inside(report: &Report) -> impl Iterator<Item = (usize, &Library)> {
    let with_functions = |(_, library): &(usize, &Library)| !library.functions.is_empty();
    report.libraries.iter().enumerate().filter(with_functions).take(PANELS)
}

fn libraries(report: &Report, clock: Clock) -> Markup {
    let time_of = if clock == Clock::Cpu { "processor" } else { "self" };
    let columns = [
        ("library", false),
        ("share", true),
        (time_of, true),
        ("calls", true),
        ("functions", true),
    ];
    let links: Vec<usize> = inside(report).map(|(number, _)| number).collect();
    let colours = chase_viz::colours(&groups(report));
    let row = |(number, library): (usize, &Library)| {
        let swatch = html! { i.swatch style={ "--c:" (colours[number]) } {} };
        let text = html! {
            (name(&library.name)) @if library.is_application { " (application)" }
        };
        let (part, own) = match (clock, &report.processor) {
            // That no sample found it does not say that it took no time.
            (Clock::Cpu, Some(_)) if library.on_cpu_ns <= 0.0 => (html! {}, html! {}),
            (Clock::Cpu, Some(ran)) => {
                (share(library.on_cpu_ns, ran.on_cpu_ns), time(library.on_cpu_ns))
            }
            _ => (
                about(
                    library.self_error_ns.is_some(),
                    &share(library.self_ns, report.header.whole_ns),
                ),
                time_about(library.self_ns, library.self_error_ns),
            ),
        };
        let is_called = !library.is_application && library.calls > 0;
        vec![
            html! { span.entry {
                (swatch)
                @if links.contains(&number) { a href={ "#time-" (number) } { (text) } }
                @else { span { (text) } }
            } },
            part,
            own,
            html! { @if is_called { (count_about(library.calls, library.calls_error)) } },
            html! { @if is_called { (count(library.functions.len() as u64)) } },
        ]
    };
    // What the processor was in without any call has nothing to show by the wall's clock.
    let is_seen = |(_, library): &(usize, &Library)| {
        clock.library_ns(library) > 0.0 || !library.is_application && library.calls > 0
    };
    let mut shown: Vec<_> = report.libraries.iter().enumerate().filter(is_seen).collect();
    if clock == Clock::Cpu {
        shown.sort_by(|(_, a), (_, b)| b.on_cpu_ns.total_cmp(&a.on_cpu_ns));
    }
    let rows: Vec<_> = shown.into_iter().map(row).collect();
    table("Time by library", &columns, &rows)
}

/// The functions of one library.
fn panel(report: &Report, clock: Clock, library: &Library, group: &Group) -> Result<Markup, Error> {
    let segments = [Segment {
        group: Group { value: clock.library_ns(library), ..group.clone() },
        parts: parts(clock, library),
        key: None,
    }];
    let title = match clock {
        Clock::Cpu => "Functions by processor time",
        Clock::Wall => "Functions by self time",
    };
    let heading = Heading { title, subtitle: library.name.as_str() };
    let caption = html! {
        (plural(library.functions.len(), "function"))
        @if clock == Clock::Cpu { " by processor time during their calls." } @else { " by self time." }
    };
    let rings = figure(&heading, RINGS, &caption, |sheet| {
        Ok(sunburst(sheet, Unit::Nanoseconds, library.name.as_str(), &segments)?)
    })?;
    let has_cpu = report.processor.is_some();
    let mut columns = vec![("function", false), ("share", true)];
    if has_cpu {
        columns.push(("processor", true));
    }
    columns.extend([
        ("self", true),
        ("total", true),
        ("calls", true),
        ("p50", true),
        ("p99.9", true),
    ]);
    let row = |function: &&Function| {
        let is_estimate = function.self_error_ns.is_some();
        let part = share(clock.function_ns(function), clock.library_ns(library));
        let mut row = vec![name(&function.name), about(clock == Clock::Wall && is_estimate, &part)];
        if has_cpu {
            row.push(html! { @if function.on_cpu_ns > 0.0 { (time(function.on_cpu_ns)) } });
        }
        row.extend([
            time_about(function.self_ns, function.self_error_ns),
            about(is_estimate, &time(function.total_ns)),
            count_about(function.calls, function.calls_error),
            time_if(function.p50_ns),
            time_if(function.p999_ns),
        ]);
        row
    };
    let rows: Vec<_> = functions(clock, library).iter().take(FUNCTIONS).map(row).collect();
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
