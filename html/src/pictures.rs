//! The pictures of the page, one by one.

use chase_viz::{Chart, Heading, Sheet};

use crate::assets;
use crate::section;
use crate::{Error, Report};

/// Width of flame graphs, pixels.
const FLAME: usize = 1280;

/// A picture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// What a file of it may be called, without extension.
    pub name: String,
    /// The picture.
    pub chart: Chart,
}

/// A picture as a file of its own, which follows the light or dark theme as those of the page do.
#[must_use]
pub fn standalone(svg: &str) -> String {
    // Behind the start tag.
    let start = svg.find("<svg").and_then(|at| Some(at + svg[at..].find('>')? + 1));
    let Some((start, rest)) = start.map(|at| svg.split_at(at)) else { return svg.to_owned() };
    // Flame graphs are another program's, and have colours of their own.
    let style = match rest.contains("id=\"background\"") {
        true => section::FLAME_IN_THE_DARK.to_owned(),
        false => assets::dark_pictures(),
    };
    format!("{start}\n<style>\n{style}</style>{rest}")
}

/// All pictures that the report has something for. `subtitle` says of what run they are.
///
/// # Errors
///
/// [`Error`] where one can't be drawn.
pub fn pictures(report: &Report, subtitle: &str) -> Result<Vec<Picture>, Error> {
    let mut pictures = Vec::new();
    let mut add = |name: &str, title: &str, draw: &dyn Fn(&Sheet<'_>) -> Result<Chart, Error>| {
        let chart = draw(&Sheet::alone(Heading { title, subtitle }))?;
        pictures.push(Picture { name: name.to_owned(), chart });
        Ok::<(), Error>(())
    };
    if let Some(ran) = &report.processor {
        add("processor", "Processor time by object and function", &|s| {
            section::draw_processor(ran, report, s)
        })?;
    }
    if !report.blocked.rows.is_empty() {
        add("blocked", "Blocked by cause and function", &|s| section::draw_blocked(report, s))?;
    }
    if let Some(found) = report.waits_for_whom.as_ref().filter(|found| !found.waits.is_empty()) {
        add("wait-graph", "Who waits for whom", &|s| section::draw_waits_for(found, s))?;
    }
    if report.header.whole_ns > 0.0 {
        add("sunburst", "Time by library and function", &|s| section::draw_time(report, s))?;
        add("running-and-waiting", "What the time of each library is made of", &|s| {
            section::draw_libraries(report, s)
        })?;
    }
    if section::has_several_groups(report) {
        add("groups", "Thread group × library", &|s| section::draw_groups(report, s))?;
    }
    for (number, group) in (1..).zip(section::groups_worth_showing(report)) {
        let title = format!("{}: thread × library", group.name);
        add(&format!("threads-{number}"), &title, &|s| section::draw_group(report, group, s))?;
    }
    if !report.tails.is_empty() {
        add("tail", "Quantiles of durations", &|s| section::draw_tail(report, s))?;
    }
    if !report.syscalls.is_empty() {
        add("syscalls", "Time in system calls", &|s| section::draw_syscalls(report, s))?;
    }
    if !report.edges.is_empty() {
        add("calls", "Calls between libraries: self time", &|s| section::draw_calls(report, s))?;
    }
    if let Some(parts) = report.parts.as_ref().filter(|parts| !parts.diagram.nodes.is_empty()) {
        add("components", "Components of the run", &|s| section::draw_components(parts, s))?;
    }
    if let Some(comparison) = report.comparison.as_ref().filter(|found| section::has_parts(found)) {
        add("compare", "Self time, before and now", &|s| section::draw_compare(comparison, s))?;
    }
    for (number, flame) in report.flames.iter().enumerate() {
        if let Some(svg) = section::flame_svg(report, flame, Some(FLAME))? {
            let name = if number == 0 { "flame".to_owned() } else { format!("flame-{number}") };
            pictures.push(Picture { name, chart: Chart::of_svg(svg)? });
        }
    }
    Ok(pictures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_pictures_follow_the_theme_with_colours_of_their_own() {
        let svg = standalone(
            "<?xml version=\"1.0\"?>\n<svg width=\"1\">\n<rect fill=\"#FFFFFF\"/></svg>\n",
        );
        let (start, rest) = svg.split_once("<style>").expect("a style");
        let (style, marks) = rest.split_once("</style>").expect("its end");
        assert!(start.ends_with("<svg width=\"1\">\n"), "{start}");
        assert_eq!(marks, "\n<rect fill=\"#FFFFFF\"/></svg>\n");
        assert!(
            style.starts_with("\n@media screen and (prefers-color-scheme: dark) {\n"),
            "{style}"
        );
        assert!(style.contains("\n  [fill=\"#FFFFFF\"] { fill: #1b1e23; }\n"), "{style}");
        assert!(style.contains("\n  [fill=\"#912108\"] { fill: #c9482a; }\n"), "{style}");
        // A file has none of the page's variables, and is no element of it.
        assert!(
            !style.contains("var(") && !style.contains("figure") && !style.contains("--c"),
            "{style}"
        );
        assert_eq!(style.matches('{').count(), style.matches('}').count());
        assert_eq!(standalone("nothing"), "nothing");
    }
}
