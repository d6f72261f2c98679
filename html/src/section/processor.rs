//! Where the processor was: rings of objects and the functions that ran in them, by samples.

use chase_viz::{Chart, Group, GroupKind, Heading, Part, Segment, Sheet, Unit, sunburst};
use maud::{Markup, html};

use crate::figure::{figure, name, share, table, time};
use crate::model::{Ran, RanObject};
use crate::{Error, Report};

/// Width of the rings beside their table, pixels.
const RINGS: f64 = 540.0;
/// Functions of the table.
const FUNCTIONS: usize = 25;

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    let Some(ran) = &report.processor else { return Ok(None) };
    let widest = ran.objects.iter().map(|object| object.error_ns).fold(0.0, f64::max);
    let heading = Heading { title: "Processor time by object and function", subtitle: "" };
    let caption = html! {
        "By " (ran.samples) " samples of what ran, whoever called whom. Inside: the executable and libraries, each with "
        "what the kernel did for it" @if ran.user_only { " left out" } ". Outside: their functions. Shares are within "
        (share(widest, ran.on_cpu_ns)) ", with a confidence of 95 %."
        @if ran.not_sampled_ns > 0.0 {
            " No sample tells of " (time(ran.not_sampled_ns))
            @if ran.user_only { ", what the kernel did among it: these are samples of user space" } "."
        }
    };
    let rings = figure(&heading, RINGS, &caption, |sheet| draw(ran, report, sheet))?;
    Ok(Some(html! { div.beside { (rings) (objects(ran)) } (functions(ran)) }))
}

pub(crate) fn draw(ran: &Ran, report: &Report, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    let segments: Vec<Segment> = ran.objects.iter().map(segment).collect();
    Ok(sunburst(sheet, Unit::Nanoseconds, report.header.program.as_str(), &segments)?)
}

fn segment(object: &RanObject) -> Segment {
    let part = |function: &crate::model::RanFunction| Part {
        label: function.name.to_string(),
        value: function.ns,
    };
    Segment { group: group(object), parts: object.functions.iter().map(part).collect(), key: None }
}

fn group(object: &RanObject) -> Group {
    let kind = if object.is_application { GroupKind::Application } else { GroupKind::Library };
    Group { name: object.name.to_string(), kind, value: object.ns }
}

fn objects(ran: &Ran) -> Markup {
    let columns = [("object", false), ("share", true), ("time", true), ("in the kernel", true)];
    let colours = chase_viz::colours(&ran.objects.iter().map(group).collect::<Vec<_>>());
    let row = |(number, object): (usize, &RanObject)| {
        vec![
            html! { span.entry {
                i.swatch style={ "--c:" (colours[number]) } {}
                span { (name(&object.name)) @if object.is_application { " (application)" } }
            } },
            share(object.ns, ran.on_cpu_ns),
            time(object.ns),
            match object.kernel_ns {
                None => html! { "?" },
                Some(kernel_ns) if kernel_ns > 0.0 => share(kernel_ns, ran.on_cpu_ns),
                Some(_) => html! {},
            },
        ]
    };
    let rows: Vec<_> = ran.objects.iter().enumerate().map(row).collect();
    table("Processor time by object", &columns, &rows)
}

fn functions(ran: &Ran) -> Markup {
    let columns = [
        ("function", false),
        ("object", false),
        ("share", true),
        ("time", true),
        ("hottest line", false),
    ];
    let mut all: Vec<_> = ran
        .objects
        .iter()
        .flat_map(|object| object.functions.iter().map(move |function| (object, function)))
        .collect();
    all.sort_by(|(_, a), (_, b)| b.ns.total_cmp(&a.ns));
    let row = |&(object, function): &(&RanObject, &crate::model::RanFunction)| {
        vec![
            name(&function.name),
            name(&object.name),
            share(function.ns, ran.on_cpu_ns),
            time(function.ns),
            name(&function.line),
        ]
    };
    let rows: Vec<_> = all.iter().take(FUNCTIONS).map(row).collect();
    html! {
        details open { summary { "The functions that ran longest" }
            (table("Functions by processor time", &columns, &rows))
        }
    }
}
