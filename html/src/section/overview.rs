//! The first screen: where the time goes, what is waited for, what stands out.

use chase_viz::{Heading, Segment, Sheet, State, Unit, quantity, state_colour, sunburst};
use maud::{Markup, html};

use super::{Window, findings, libraries, processor};
use crate::colours::{Colours, cause_colour, cause_words, colour};
use crate::figure::{
    BAR, BarPart, about, bar, entry, figure, name, plural, share, table_of_bars, time, time_about,
};
use crate::model::{BlockedIn, Library, Life, Ran, RanObject, WaitSource};
use crate::{Error, Report};

/// Libraries and waits that are shown; the sections below have all.
const ROWS: usize = 6;
/// What the cards show of a window.
const LIBRARIES: Window = Window::Follows(&["libraries"]);
const WAITS: Window = Window::Follows(&["waits"]);
/// From this part of the threads' time on, waiting for a processor is worth a word,
const SCARCE: f64 = 0.1;
/// if the run itself uses less than this part of the processors.
const UNUSED: f64 = 0.7;
/// Names beside a pie.
const NAMED: usize = 10;
/// Width of a pie, pixels.
const PIE: f64 = 360.0;

pub(crate) fn render(report: &Report) -> Result<Markup, Error> {
    let colours = Colours::new(report);
    let has_calls = report.header.whole_ns > 0.0;
    let by_wall = if has_calls { Some(by_wall(report, &colours)?) } else { None };
    let by_cpu = report.processor.as_ref().map(|ran| by_cpu(report, ran, &colours)).transpose()?;
    let has_waits = !report.groups.is_empty() || !report.blocked.rows.is_empty();
    Ok(html! {
        (of_all_threads(report))
        div.first {
            @if has_waits && !report.findings.is_empty() { (findings::render(report)) }
            @if by_wall.is_some() || by_cpu.is_some() {
                section id="where" class="card" aria-labelledby="where-title" {
                    div.card-head {
                        h2 #where-title { "Where the time goes, by library" (LIBRARIES.heading(report)) }
                        (shapes())
                    }
                    (LIBRARIES.body(report, &html! {
                        @if let Some(by_cpu) = by_cpu { div.of-cpu { (by_cpu) } }
                        @if let Some(by_wall) = by_wall { div.of-wall { (by_wall) } }
                    }))
                }
            }
            @if has_waits {
                section id="waits" class="card" aria-labelledby="waits-title" {
                    h2 #waits-title {
                        @if report.blocked.idle.as_str().is_empty() { "What threads wait for" }
                        @else { "What threads with work wait for" }
                        (WAITS.heading(report))
                    }
                    (WAITS.body(report, &waits(report)))
                }
                @if report.findings.is_empty() { (findings::render(report)) }
            }
        }
    })
}

/// What the time of all threads went to, in one bar; without the waits of idle threads, of which there may be any number.
fn of_all_threads(report: &Report) -> Markup {
    let lives = || report.groups.iter().flat_map(|group| &group.members).map(|member| &member.life);
    let sum = |of: fn(&Life) -> f64| lives().map(of).sum::<f64>();
    let mut parts = vec![
        (
            state_colour(State::Running),
            running_words(report).to_owned(),
            sum(|life| life.running_ns),
        ),
        (
            state_colour(State::Runnable),
            "waiting for a processor".to_owned(),
            sum(|life| life.runnable_ns),
        ),
    ];
    for row in &report.blocked.rows {
        let words = format!("waiting for {}", cause_words(row.cause));
        match parts.iter_mut().find(|(_, known, _)| *known == words) {
            Some((_, _, ns)) => *ns += row.ns,
            None => parts.push((cause_colour(row.cause), words, row.ns)),
        }
    }
    let whole: f64 = parts.iter().map(|(_, _, ns)| ns).sum();
    let idle_ns = report.blocked.idle_ns;
    parts.retain(|(_, _, ns)| *ns > 0.0);
    if whole <= 0.0 {
        return html! {};
    }
    let part = |(colour, words, ns): &(String, String, f64)| BarPart {
        share: ns / whole,
        colour: colour.clone(),
        title: format!("{words} {}", quantity(*ns, Unit::Nanoseconds)),
    };
    html! {
        section.summary aria-labelledby="summary-title" {
            h2 #summary-title { "What the threads did" (Window::No.heading(report)) }
            (bar(&parts.iter().map(part).collect::<Vec<_>>()))
            ul.legend { @for (colour, words, ns) in &parts {
                li { i.swatch style={ "--c:" (colour) } {} span { (words) " " b { (share(*ns, whole)) } " " (time(*ns)) } }
            } }
            p.note {
                (plural(report.header.threads, "thread"))
                @if idle_ns > 0.0 { ", without the " b { (time(idle_ns)) } " that idle ones waited" }
                @if report.is_measured() { "; a wait lasts until its thread is woken, and running is with what recording cost" }
                "."
                @if let Some(load) = others(report, &parts, whole) { " " (load) }
                @if !report.is_measured() { " Much of what they were not seen to wait for may be waits: " (not_asked(report)) "." }
            }
        }
    }
}

/// What to know where threads wait for processors, of which the run uses few on average.
fn others(report: &Report, parts: &[(String, String, f64)], whole: f64) -> Option<String> {
    let of = |state| parts.iter().find(|(colour, ..)| *colour == state_colour(state));
    let running = of(State::Running).map_or(0.0, |(.., ns)| *ns);
    let queued = of(State::Runnable).map(|(.., ns)| *ns)?;
    let wall = report.timeline.as_ref().map(|timeline| timeline.end_ns)?;
    let processors = report.header.processors? as f64;
    let used = running / wall.max(1.0);
    let is_known = report.is_measured() && !report.processor.as_ref().is_some_and(|r| r.user_only);
    if !is_known || queued < SCARCE * whole || used > UNUSED * processors {
        return None;
    }
    Some(format!(
        "Threads waited for processors, though this run did not use the {processors} that there are most of the time: it was crowded for a part \
         of it, it may use fewer of them, or other programs had them."
    ))
}

/// What threads do when they are not known to wait.
pub(super) fn running_words(report: &Report) -> &'static str {
    if report.is_measured() { "running" } else { "not seen to wait" }
}

/// Why not all is measured.
pub(super) fn not_asked(report: &Report) -> &'static str {
    match report.waits {
        WaitSource::Mixed | WaitSource::Scheduler => "the scheduler was not asked by all threads",
        _ => "what the scheduler did was not recorded, or is known only after the program's end",
    }
}

/// Bars or a pie.
fn shapes() -> Markup {
    html! {
        fieldset.choice.of-run data-choice="shape" hidden {
            legend.hidden { "Shape" }
            label { input type="radio" name="shape" value="bars" checked; "Bars" }
            label { input type="radio" name="shape" value="pie"; "Pie" }
        }
    }
}

/// Bars and a pie of the same.
fn both(bars: &Markup, title: &str, segments: &[Segment]) -> Result<Markup, Error> {
    let heading = Heading { title, subtitle: "" };
    let draw = |sheet: &Sheet<'_>| Ok(sunburst(sheet, Unit::Nanoseconds, "", segments)?);
    let pie = figure(&heading, PIE, &html! {}, draw)?;
    let whole: f64 = segments.iter().map(|segment| segment.group.value).sum();
    let mut largest: Vec<&Segment> = segments.iter().collect();
    largest.sort_by(|a, b| b.group.value.total_cmp(&a.group.value));
    Ok(html! {
        div.as-bars { (bars) }
        div.as-pie {
            (pie)
            ul.legend {
                @for Segment { group, .. } in largest.iter().take(NAMED) {
                    li { i.swatch style={ "--c:" (colour(group)) } {} span { (group.name) " " (share(group.value, whole)) } }
                }
                @if largest.len() > NAMED { li { "and " (largest.len() - NAMED) " more" } }
            }
        }
    })
}

fn by_cpu(report: &Report, ran: &Ran, colours: &Colours<'_>) -> Result<Markup, Error> {
    let longest = ran.objects.iter().map(|object| object.ns).fold(1.0, f64::max);
    let longest = longest.max(ran.not_sampled_ns);
    let row = |object: &RanObject| {
        let colour = colour(&colours.object(object));
        let title = format!("{} {}", object.name, quantity(object.ns, Unit::Nanoseconds));
        let text = html! { (name(&object.name)) @if object.is_application { " (application)" } };
        vec![
            entry(&colour, &text),
            bar(&[BarPart { share: object.ns / longest, colour, title }]),
            share(object.ns, ran.on_cpu_ns),
            time(object.ns),
        ]
    };
    let columns = [("library", false), (BAR, false), ("share", true), ("processor", true)];
    let mut rows: Vec<_> = ran.objects.iter().take(ROWS).map(row).collect();
    // (Shares are of all time.)
    let not_sampled = processor::not_sampled(ran);
    rows.extend(not_sampled.iter().map(|Segment { group, .. }| {
        let (colour, part) = (colour(group), group.value / longest);
        let title = format!("{} {}", group.name, quantity(group.value, Unit::Nanoseconds));
        vec![
            entry(&colour, &html! { (group.name) }),
            bar(&[BarPart { share: part.min(1.0), colour: colour.clone(), title }]),
            share(group.value, ran.on_cpu_ns),
            time(group.value),
        ]
    }));
    let bars = table_of_bars("Processor time by library", &columns, &rows);
    let segment = |object: &RanObject| Segment {
        group: colours.object(object),
        parts: Vec::new(),
        key: None,
    };
    let mut segments: Vec<Segment> = ran.objects.iter().map(segment).collect();
    segments.extend(not_sampled);
    let body = both(&bars, "Processor time by library", &segments)?;
    let widest = ran.objects.iter().map(|object| object.error_ns).fold(0.0, f64::max);
    Ok(html! {
        (body)
        p.note {
            (time(ran.on_cpu_ns)) " on the processor"
            @if ran.unwatched > 0 { ", without that of " (plural(ran.unwatched, "unwatched process")) }
            @else if report.header.processes.len() > 1 { ", of all processes" }
            ", by " (plural(ran.samples as usize, "sample")) ", within " span.words { (share(widest, ran.on_cpu_ns)) } ". "
            (more(ran.objects.len(), "objects", "processor"))
        }
    })
}

fn by_wall(report: &Report, colours: &Colours<'_>) -> Result<Markup, Error> {
    let longest = report.libraries.iter().map(|library| library.self_ns).fold(1.0, f64::max);
    let row = |library: &Library| {
        let own = colours.library(library);
        let part = |ns: f64, colour: String, what: &str| BarPart {
            share: ns / longest,
            colour,
            title: format!("{what} {}", quantity(ns, Unit::Nanoseconds)),
        };
        let mut parts = vec![part(libraries::running(library), colour(&own), "running")];
        let preempted = library.preempted_ns.unwrap_or(0.0);
        parts.push(part(preempted, state_colour(State::Runnable), "waiting for a processor"));
        parts.extend(library.waiting.iter().map(|waiting| {
            let what = format!("waiting for {}", cause_words(waiting.cause));
            part(waiting.ns, cause_colour(waiting.cause), &what)
        }));
        let text = html! { (name(&library.name)) @if library.is_application { " (application)" } };
        let is_estimate = library.self_error_ns.is_some();
        vec![
            entry(&colour(&own), &text),
            bar(&parts),
            about(is_estimate, &share(library.self_ns, report.header.whole_ns)),
            time_about(library.self_ns, library.self_error_ns),
        ]
    };
    let columns = [("library", false), (BAR, false), ("share", true), ("self", true)];
    let mut libraries: Vec<&Library> =
        report.libraries.iter().filter(|l| l.self_ns > 0.0).collect();
    libraries.sort_by(|a, b| b.self_ns.total_cmp(&a.self_ns));
    let rows: Vec<_> = libraries.iter().take(ROWS).map(|library| row(library)).collect();
    let bars = table_of_bars("Wall time by library", &columns, &rows);
    let segment = |library: &Library| Segment {
        group: colours.library(library),
        parts: Vec::new(),
        key: None,
    };
    let segments: Vec<Segment> = libraries.iter().map(|library| segment(library)).collect();
    let body = both(&bars, "Wall time by library", &segments)?;
    Ok(html! {
        (body)
        p.note {
            "Wall time of all threads, by the library called last: running in its colour, then waiting. "
            (more(libraries.len(), "libraries", "time"))
        }
    })
}

fn more(all: usize, what: &str, section: &str) -> Markup {
    html! {
        @if all > ROWS {
            a href={ "#" (section) } { "All " (all) " " (what) }
        } @else {
            a href={ "#" (section) } { "By function" }
        }
    }
}

fn waits(report: &Report) -> Markup {
    let blocked = &report.blocked;
    let longest = blocked.rows.iter().map(|row| row.ns).fold(1.0, f64::max);
    let whole: f64 = blocked.rows.iter().map(|row| row.ns).sum();
    let row = |row: &BlockedIn| {
        let colour = cause_colour(row.cause);
        let words = cause_words(row.cause);
        let title = format!("{words} {}", quantity(row.ns, Unit::Nanoseconds));
        vec![
            entry(&colour, &html! { (words) " " span.note { (name(&row.function)) } }),
            bar(&[BarPart { share: row.ns / longest, colour, title }]),
            share(row.ns, whole),
            time(row.ns),
            html! { (row.threads) },
        ]
    };
    let columns =
        [("for", false), (BAR, false), ("share", true), ("blocked", true), ("threads", true)];
    let rows: Vec<_> = blocked.rows.iter().take(ROWS).map(row).collect();
    html! {
        @if rows.is_empty() {
            p { "They were not seen to wait for anything." }
        } @else {
            (table_of_bars("Waits", &columns, &rows))
        }
        p.note {
            @if !blocked.idle.as_str().is_empty() { (blocked.idle) ", not counted here. " }
            @if let Some(runnable) = &blocked.runnable { "Waiting for a processor, which is not among it: " (runnable) ". " }
            @if report.waits == WaitSource::Name && !rows.is_empty() { "Told by the names of functions: a guess. " }
            @if !rows.is_empty() { a href="#blocked" { "Who waits where, and who ends it" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Header, Timeline};

    /// Of eight processors, in a second.
    fn of_eight() -> Report {
        Report {
            header: Header { processors: Some(8), ..Header::default() },
            timeline: Some(Timeline { end_ns: 1e9, ..Timeline::default() }),
            ..Report::default()
        }
    }

    fn said(report: &Report, running_ns: f64, queued_ns: f64) -> Option<String> {
        let parts = [(State::Running, running_ns), (State::Runnable, queued_ns)];
        let parts = parts.map(|(state, ns)| (state_colour(state), String::new(), ns));
        others(report, &parts, running_ns + queued_ns)
    }

    #[test]
    fn a_run_that_waits_for_processors_and_uses_few_is_told_so() {
        let report = of_eight();
        let told = said(&report, 2e9, 1e9).expect("a sentence");
        assert!(told.contains("did not use the 8 that there are most of the time"), "{told}");
        // It has most of them, or hardly waits.
        assert_eq!(said(&report, 7.5e9, 4e9), None);
        assert_eq!(said(&report, 2e9, 1e8), None);
        // Without the number of processors, or the length of the run, or with samples that lack the kernel.
        let unknown = Report { header: Header::default(), ..of_eight() };
        assert_eq!(said(&unknown, 2e9, 1e9), None);
        let unknown = Report { timeline: None, ..of_eight() };
        assert_eq!(said(&unknown, 2e9, 1e9), None);
        let processor = Some(Ran { user_only: true, ..Ran::default() });
        assert_eq!(said(&Report { processor, ..of_eight() }, 2e9, 1e9), None);
    }
}
