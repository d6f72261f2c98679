//! The frame around the sections.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::model::Estimates;
use crate::section::SECTIONS;
use crate::{Error, Report, assets};

/// The page may use what is in it, and fetch nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data:; base-uri 'none'; form-action 'none'";

/// The page, as HTML.
///
/// # Errors
///
/// [`Error`] where a picture can't be drawn.
pub fn page(report: &Report) -> Result<String, Error> {
    let mut sections = Vec::new();
    for section in SECTIONS {
        if let Some(body) = (section.render)(report)? {
            sections.push((section, body));
        }
    }
    let header = &report.header;
    let overview = crate::section::overview(report)?;
    let has_findings = overview.0.contains("id=\"findings\"");
    let page: Markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (header.program) " – chase" }
                style { (PreEscaped(assets::style())) }
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                (crate::section::header(report))
                div.bar-top {
                    nav.contents aria-label="Sections" {
                        ul {
                            @if has_findings { li { a href="#findings" { "Findings" } } }
                            @for (section, _) in &sections {
                                li { a href={ "#" (section.id.anchor()) } title=(section.title) { (section.short) } }
                            }
                        }
                    }
                    @if report.processor.is_some() { (clocks()) }
                    @if report.timeline.is_some() {
                        div #window-chip .of-window { span {} button type="button" { "Whole run" } }
                    }
                    form.filter role="search" hidden {
                        input #filter type="search" autocomplete="off" spellcheck="false"
                            aria-label="Filter the page" placeholder="Filter: library, function, thread  ( / )";
                    }
                }
                main #content {
                    (overview)
                    @for (section, body) in &sections {
                        section id=(section.id.anchor()) aria-labelledby={ (section.id.anchor()) "-title" } {
                            h2 id={ (section.id.anchor()) "-title" } { (section.title) (section.window.heading(report)) }
                            (section.window.body(report, body))
                        }
                    }
                }
                footer { p {
                    "Times are service times of calls, free of what recording cost. "
                    "Quantiles are within 6.25 %; " (sureness(header.estimates))
                } }
                script type="module" { (PreEscaped(assets::script())) }
            }
        }
    };
    Ok(page.into_string())
}

/// Which time is shown where both are known.
fn clocks() -> Markup {
    html! {
        fieldset.choice data-choice="clock" hidden {
            legend.hidden { "Time" }
            label { input type="radio" name="clock" value="cpu" checked; "CPU" }
            label { input type="radio" name="clock" value="wall"; "Wall" }
        }
    }
}

/// What is exact, and what the marks of the rest say.
fn sureness(estimates: Estimates) -> &'static str {
    match estimates {
        Estimates::None => {
            "counts are exact. Times of very short calls vary by some nanoseconds each, as reading the clock does."
        }
        Estimates::Times => {
            "counts are exact. ~ an estimate: of hot, short, even calls only some were timed, each for a block \
             of calls; ± its 95 % confidence interval, with that of reading the clock, ≤ the end of that where it is all that \
             is known, ≥ the longest that was timed. CHASE_TIMING=all times every call."
        }
        Estimates::Calls => {
            "counts without ~ are exact. ~ an estimate: of hot, short, even calls only some were timed, each for a \
             block of calls; where the end of a process, or its start as a fork, was not seen, its latest or first \
             calls are missing; ± its 95 % confidence interval, with that of reading the clock, ≤ the end of that where it is \
             all that is known, ≥ the longest that was timed."
        }
    }
}
