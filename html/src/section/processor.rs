//! Where the processor was: rings of objects and the functions that ran in them, by samples.

use chase_viz::{Chart, Group, GroupKind, Heading, Part, Segment, Sheet, Unit, sunburst};
use maud::{Markup, html};

use crate::colours::{Colours, colour};
use crate::figure::{
    BAR, BarPart, bar, entry, figure, name, plural, share, table, table_of_bars, time,
};
use crate::model::{Ran, RanObject};
use crate::{Error, Report};

/// Width of the rings beside their table, pixels.
const RINGS: f64 = 460.0;
/// Functions of the table.
const FUNCTIONS: usize = 50;

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    let Some(ran) = &report.processor else { return Ok(None) };
    let widest = ran.objects.iter().map(|object| object.error_ns).fold(0.0, f64::max);
    let heading = Heading { title: "Processor time by object and function", subtitle: "" };
    let caption = html! {
        "By " (plural(ran.samples as usize, "sample")) " of what ran, whoever called whom. Inside: the executable and libraries, each with "
        "what the kernel did for it" @if ran.user_only { " left out" } ". Outside: their functions. Shares are within "
        (share(widest, ran.on_cpu_ns)) ", with a confidence of 95 %."
        @if ran.not_sampled_ns > 0.0 {
            " No sample tells of " (time(ran.not_sampled_ns))
            @if ran.user_only { ", what the kernel did among it: these are samples of user space" } "."
        }
    };
    let rings = figure(&heading, RINGS, &caption, |sheet| draw(ran, report, sheet))?;
    let colours = Colours::new(report);
    Ok(Some(html! {
        div.beside { (rings) div { (objects(ran, &colours)) } }
        (functions(ran, &colours))
    }))
}

pub(crate) fn draw(ran: &Ran, report: &Report, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    let colours = Colours::new(report);
    let mut segments: Vec<Segment> =
        ran.objects.iter().map(|object| segment(object, &colours)).collect();
    segments.extend(not_sampled(ran));
    Ok(sunburst(sheet, Unit::Nanoseconds, report.header.program.as_str(), &segments)?)
}

fn segment(object: &RanObject, colours: &Colours<'_>) -> Segment {
    let part = |function: &crate::model::RanFunction| Part {
        label: function.name.to_string(),
        value: function.ns,
    };
    let parts = object.functions.iter().map(part).collect();
    Segment { group: colours.object(object), parts, key: None }
}

/// What no sample tells of, so that shares are of all time on the processor, as in tables.
pub(super) fn not_sampled(ran: &Ran) -> Option<Segment> {
    let of_none =
        Group { name: "not sampled".to_owned(), kind: GroupKind::Rest, value: ran.not_sampled_ns };
    (ran.not_sampled_ns > 0.0).then(|| Segment { group: of_none, parts: Vec::new(), key: None })
}

fn objects(ran: &Ran, colours: &Colours<'_>) -> Markup {
    let columns = [("object", false), ("share", true), ("time", true), ("in the kernel", true)];
    let row = |object: &RanObject| {
        let text = html! { (name(&object.name)) @if object.is_application { " (application)" } };
        vec![
            entry(&colour(&colours.object(object)), &text),
            share(object.ns, ran.on_cpu_ns),
            time(object.ns),
            match object.kernel_ns {
                None => html! { "?" },
                Some(kernel_ns) if kernel_ns > 0.0 => share(kernel_ns, ran.on_cpu_ns),
                Some(_) => html! {},
            },
        ]
    };
    let mut rows: Vec<_> = ran.objects.iter().map(row).collect();
    // What the rings show is named here, too.
    rows.extend(not_sampled(ran).map(|Segment { group, .. }| {
        vec![
            entry(&colour(&group), &html! { (group.name) }),
            share(group.value, ran.on_cpu_ns),
            time(group.value),
            html! {},
        ]
    }));
    table("Processor time by object", &columns, &rows)
}

fn functions(ran: &Ran, colours: &Colours<'_>) -> Markup {
    let columns = [
        ("function", false),
        (BAR, false),
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
    let longest = all.first().map_or(1.0, |(_, function)| function.ns.max(1.0));
    let row = |&(object, function): &(&RanObject, &crate::model::RanFunction)| {
        vec![
            name(&function.name),
            bar(&[BarPart {
                share: function.ns / longest,
                colour: colour(&colours.object(object)),
                title: object.name.to_string(),
            }]),
            name(&object.name),
            share(function.ns, ran.on_cpu_ns),
            time(function.ns),
            name(&function.line),
        ]
    };
    let rows: Vec<_> = all.iter().take(FUNCTIONS).map(row).collect();
    html! {
        details open { summary { "The functions that ran longest" }
            (table_of_bars("Functions by processor time", &columns, &rows))
        }
    }
}
