//! The system calls that functions make.

use chase_viz::{Chart, Group, GroupKind, Sheet, StackRow, Unit, stacked};
use maud::{Markup, html};

use crate::colours::Colours;
use crate::figure::{BAR, BarPart, bar, count, name, plural, ratio, table, table_of_bars, time};
use crate::model::{ApiSyscalls, Syscall};
use crate::{Error, Label, Report};

/// Functions that get a bar.
const BARS: usize = 20;

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    if report.syscalls.is_empty() {
        return Ok(None);
    }
    Ok(Some(html! {
        p.note {
            "Time in the system calls that a function makes itself, from entry to return. "
            "A system call belongs to the innermost library call that its thread is in."
        }
        (bars(report))
        details.folded {
            summary { "Each system call of each function" }
            (numbers(report))
        }
        @if report.more_syscalls > 0 {
            p.note {
                "… and " (plural(report.more_syscalls, "more function")) ": System calls in "
                a href="#rows" { "All rows" } "."
            }
        }
    }))
}

pub(crate) fn draw(report: &Report, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    // The category with most time first.
    let mut categories: Vec<(&Label, f64)> = Vec::new();
    for syscall in report.syscalls.iter().take(BARS).flat_map(|api| &api.syscalls) {
        match categories.iter_mut().find(|(known, _)| **known == syscall.category) {
            Some((_, ns)) => *ns += syscall.total_ns,
            None => categories.push((&syscall.category, syscall.total_ns)),
        }
    }
    categories.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let series = |(name, _): &(&Label, f64)| Group {
        name: name.to_string(),
        kind: GroupKind::Rest,
        value: 0.0,
    };
    // Categories are neither libraries nor what threads do: they are shades.
    let mut series: Vec<Group> = categories.iter().map(series).collect();
    for (number, category) in series.iter_mut().enumerate() {
        category.kind = GroupKind::Shade(number);
    }
    let row = |api: &ApiSyscalls| {
        let of = |(category, _): &(&Label, f64)| {
            api.syscalls.iter().filter(|s| s.category == **category).map(|s| s.total_ns).sum()
        };
        let library = match api.library.as_str() {
            "" => String::new(),
            library => format!(" ({library})"),
        };
        StackRow {
            label: format!("{}{library}", api.function),
            values: categories.iter().map(of).collect(),
        }
    };
    let rows: Vec<StackRow> = report.syscalls.iter().take(BARS).map(row).collect();
    Ok(stacked(sheet, Unit::Nanoseconds, &series, &rows)?)
}

/// The functions, each with a bar.
fn bars(report: &Report) -> Markup {
    let columns =
        [("function", false), (BAR, false), ("time", true), ("calls", true), ("most in", false)];
    let total = |api: &ApiSyscalls| api.syscalls.iter().map(|s| s.total_ns).sum::<f64>();
    let longest = report.syscalls.iter().map(total).fold(1.0, f64::max);
    let colours = Colours::new(report);
    let row = |api: &ApiSyscalls| {
        let calls: u64 = api.syscalls.iter().map(|syscall| syscall.count).sum();
        let most = api.syscalls.iter().max_by(|a, b| a.total_ns.total_cmp(&b.total_ns));
        let most = most.map(|most| format!("{}, {}", most.name, share_text(most, total(api))));
        vec![
            html! { (name(&api.function))
            @if !api.library.as_str().is_empty() { " " span.note { (api.library) } } },
            bar(&[BarPart {
                share: total(api) / longest,
                colour: colours.named(&api.library),
                title: api.library.to_string(),
            }]),
            time(total(api)),
            count(calls),
            html! { (most.unwrap_or_default()) },
        ]
    };
    let rows: Vec<_> = report.syscalls.iter().map(row).collect();
    table_of_bars("Time in system calls by function", &columns, &rows)
}

fn share_text(syscall: &Syscall, total_ns: f64) -> String {
    chase_viz::share(syscall.total_ns, total_ns)
}

fn numbers(report: &Report) -> Markup {
    let columns = [
        ("function", false),
        ("system call", false),
        ("category", false),
        ("count", true),
        ("per call", true),
        ("total", true),
        ("longest", true),
        ("bytes", true),
        ("errors", false),
    ];
    let row = |(api, syscall): (&ApiSyscalls, &Syscall)| {
        let per_call = api.calls.filter(|&calls| calls > 0);
        let per_call = per_call.map(|calls| syscall.count as f64 / calls as f64);
        vec![
            name(&api.function),
            html! { (syscall.name) },
            html! { span.words { (syscall.category) } },
            count(syscall.count),
            html! { @if let Some(per_call) = per_call { (ratio(per_call)) } },
            time(syscall.total_ns),
            time(syscall.max_ns),
            html! { @if let Some(bytes) = syscall.bytes { (count(bytes)) } },
            errors(syscall),
        ]
    };
    let all = report.syscalls.iter().flat_map(|api| api.syscalls.iter().map(move |s| (api, s)));
    let mut all: Vec<_> = all.collect();
    all.sort_by(|(_, a), (_, b)| b.total_ns.total_cmp(&a.total_ns));
    let rows: Vec<_> = all.into_iter().map(row).collect();
    table("System calls by function", &columns, &rows)
}

fn errors(syscall: &Syscall) -> Markup {
    let error = |(error, times): &(Label, u64)| {
        format!("{error} {}", chase_viz::quantity(*times as f64, Unit::Count("")))
    };
    let errors: Vec<String> = syscall.errors.iter().map(error).collect();
    html! { @if !errors.is_empty() { (name(&Label::from(errors.join(", ")))) } }
}
