//! Thread groups: how alike their threads are, as thread × library.

use std::cmp::Ordering;

use chase_viz::{
    Cell, Chart, Heading, HeatRow, Sheet, State, Unit, heat, quantity, share, state_colour,
};
use maud::{Markup, html};

use crate::figure::{
    BAR, BarPart, WIDE, bar, count, figure, legend, name, plural, table, table_of_bars, time,
};
use crate::model::{Life, Member, Outlier, ThreadGroup, WaitSource};
use crate::{Error, Report};

/// Threads with a bar.
const BARS: usize = 200;
/// Groups with a picture.
const PICTURES: usize = 8;
/// Threads beyond this are put together, but for outliers.
const ROWS: usize = 64;
/// Rows of what was put together.
const BINS: usize = 32;
/// What is less than this part of the longest is not written into its cell.
const LEAST_TEXT: f64 = 0.001;
/// Rows of the table of groups.
const TABLE: usize = 40;

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    if report.groups.is_empty() {
        return Ok(None);
    }
    let mut pictures = Vec::new();
    for group in worth_showing(report) {
        pictures.push(picture(report, group)?);
    }
    let more = report.groups.len().saturating_sub(TABLE);
    let all = if has_several(report) { Some(overview(report)?) } else { None };
    Ok(Some(html! {
        (bars(report))
        h3 { "Groups" }
        (groups(report))
        @if more > 0 { p.note { "… and " (plural(more, "more group")) "." } }
        @if let Some(all) = all { (all) }
        @for picture in &pictures { (picture) }
    }))
}

/// What each thread's life was made of: with the switch of clocks two tables, by time on the processor and by life, otherwise both
/// in one.
fn bars(report: &Report) -> Markup {
    let members = report.groups.iter().flat_map(|group| &group.members);
    let (threads, is_measured) =
        (members.clone().count(), members.clone().all(|member| member.life.is_measured));
    let states = [
        (state_colour(State::Running), "running"),
        (state_colour(State::Runnable), "runnable: waiting for a processor"),
        (state_colour(State::Blocked), "blocked"),
    ];
    html! {
        @if report.processor.is_some() {
            div.of-cpu { (lives(report, Bars::Cpu)) }
            div.of-wall { (legend(&states)) (lives(report, Bars::Life)) }
        } @else {
            p.note { "On the left, time on the processor beside the thread that has most of it; on the right, the whole life." }
            (legend(&states))
            (lives(report, Bars::Both))
        }
        @if threads > BARS { p.note { "… and " (threads - BARS) " more that ran less: Threads in " a href="#rows" { "All rows" } "." } }
        @if !is_measured {
            p.note { "The scheduler was not asked: running is what is neither known nor measured to be waiting." }
        }
    }
}

/// Which bars threads have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bars {
    Cpu,
    Life,
    Both,
}

/// The threads, the one that ran longest first, or that lived longest where only that is shown.
fn lives(report: &Report, bars: Bars) -> Markup {
    let mut all: Vec<(&ThreadGroup, &Member)> = report
        .groups
        .iter()
        .flat_map(|g| g.members.iter().map(move |member| (g, member)))
        .collect();
    let whole = |life: &Life| life.running_ns + life.runnable_ns + life.blocked_ns;
    all.sort_by(|(_, a), (_, b)| {
        let (a, b) = (&a.life, &b.life);
        let lived =
            if bars == Bars::Life { whole(b).total_cmp(&whole(a)) } else { Ordering::Equal };
        lived
            .then(b.running_ns.total_cmp(&a.running_ns))
            .then(b.blocked_ns.total_cmp(&a.blocked_ns))
    });
    all.truncate(BARS);
    let longest = |of: &dyn Fn(&Life) -> f64| {
        all.iter().map(|(_, member)| of(&member.life)).fold(1.0, f64::max)
    };
    let (longest_running, longest_life) = (longest(&|life| life.running_ns), longest(&whole));
    let (has_cpu, has_life) = (bars != Bars::Life, bars != Bars::Cpu);
    let mut columns = vec![("thread", false)];
    if has_cpu {
        columns.extend([(BAR, false), ("running", true)]);
    }
    if has_life {
        columns.push((BAR, false));
        if !has_cpu {
            columns.push(("running", true));
        }
        columns.extend([("runnable", true), ("blocked", true)]);
    }
    columns.extend([("life", true), ("calls", true), ("group", false)]);
    let row = |(group, member): &(&ThreadGroup, &Member)| {
        let Life { running_ns, runnable_ns, blocked_ns, .. } = member.life;
        let part = |ns: f64, longest: f64, state, what: &str| BarPart {
            share: ns / longest,
            colour: state_colour(state),
            title: format!("{what} {}", quantity(ns, Unit::Nanoseconds)),
        };
        let running = |longest| part(running_ns, longest, State::Running, "running");
        let mut row = vec![name(&member.name)];
        if has_cpu {
            row.extend([bar(&[running(longest_running)]), time(running_ns)]);
        }
        if has_life {
            row.push(bar(&[
                running(longest_life),
                part(runnable_ns, longest_life, State::Runnable, "runnable"),
                part(blocked_ns, longest_life, State::Blocked, "blocked"),
            ]));
            if !has_cpu {
                row.push(time(running_ns));
            }
            row.extend([time(runnable_ns), time(blocked_ns)]);
        }
        row.extend([time(member.lifetime_ns), count(member.calls), name(&group.name)]);
        row
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    let title = match bars {
        Bars::Life => "Threads by their lives",
        Bars::Cpu | Bars::Both => "Threads by time on the processor",
    };
    table_of_bars(title, &columns, &rows)
}

/// Groups that have a picture of their own: those of several threads, and one that is alone.
pub(crate) fn worth_showing(report: &Report) -> impl Iterator<Item = &ThreadGroup> {
    let wanted = |group: &&ThreadGroup| group.members.len() > 1 || !has_several(report);
    report.groups.iter().filter(wanted).take(PICTURES)
}

/// Whether groups can be compared with each other.
pub(crate) fn has_several(report: &Report) -> bool {
    report.groups.len() > 1
}

/// Group × library.
fn overview(report: &Report) -> Result<Markup, Error> {
    let heading = Heading { title: "Thread group × library", subtitle: "time of their threads" };
    let caption = html! {
        "How long the threads of each group were in each library, and in the application’s own code, "
        "waits included: all threads of the group together."
        @if report.groups.len() > BINS { " The groups with most time." }
    };
    figure(&heading, WIDE, &caption, |sheet| draw_all(report, sheet))
}

pub(crate) fn draw_all(report: &Report, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    let Some(first) = report.groups.first() else { return Ok(heat(sheet, &[], &[], ("", ""))?) };
    let columns = columns(report, first);
    let time = |group: &ThreadGroup, column: usize| -> f64 {
        group.members.iter().map(|member| member.time(column)).sum()
    };
    let shown = &report.groups[..report.groups.len().min(BINS)];
    let used = used(shown.iter().flat_map(|group| &group.members), columns.len());
    let all = shown.iter().flat_map(|g| (0..columns.len()).map(move |column| time(g, column)));
    let most = all.fold(0.0, f64::max);
    let row = |group: &ThreadGroup| {
        let lifetime: f64 = group.members.iter().map(|member| member.lifetime_ns).sum();
        HeatRow {
            label: group.name.to_string(),
            marked: false,
            cells: used.iter().map(|&at| cell(time(group, at), most, lifetime)).collect(),
        }
    };
    let rows: Vec<HeatRow> = shown.iter().map(row).collect();
    let columns: Vec<String> = used.iter().map(|&at| columns[at].clone()).collect();
    Ok(heat(sheet, &columns, &rows, ("none", &quantity(most, Unit::Nanoseconds)))?)
}

fn groups(report: &Report) -> Markup {
    let has_balance = report.groups.iter().any(|group| group.balance.is_some());
    let mut columns = vec![
        ("group", false),
        ("threads", true),
        ("longest life", true),
        ("useful", true),
        ("waiting", true),
    ];
    if has_balance {
        columns.extend([("LB", true), ("PE", true), ("imbalance", true)]);
    }
    let has_outliers = report.groups.iter().any(|group| !group.outliers.is_empty());
    if has_outliers {
        columns.push(("outliers", true));
    }
    let row = |group: &ThreadGroup| {
        let longest = group.members.iter().map(|member| member.lifetime_ns).fold(0.0, f64::max);
        let mut row = vec![
            name(&group.name),
            html! { (group.members.len()) },
            time(longest),
            time(group.useful_ns),
            time(group.wait_ns),
        ];
        if has_balance {
            row.push(html! { @if let Some(balance) = group.balance { (format!("{:.2}", balance.load_balance)) } });
            row.push(html! { @if let Some(balance) = group.balance { (format!("{:.2}", balance.parallel_efficiency)) } });
            row.push(html! { @if let Some(balance) = group.balance {
                (format!("{:.1} %, ", balance.imbalance * 100.0)) (time(balance.imbalance_ns))
            } });
        }
        if has_outliers {
            row.push(html! { @if !group.outliers.is_empty() { (group.outliers.len()) } });
        }
        row
    };
    let rows: Vec<_> = report.groups.iter().take(TABLE).map(row).collect();
    html! {
        (table("Thread groups", &columns, &rows))
        p.note {
            "Useful: time of all threads without waits"
            @if report.waits == WaitSource::Name { " (told by the names of functions known to wait)" }
            ". "
            @if has_balance {
                "LB: load balance, mean / max of useful time; from 0.8 on it is fine. PE: parallel "
                "efficiency, mean useful time / wall time of the group. Imbalance: (max − mean) / max "
                "· N / (N − 1), and what the slowest thread has beyond the mean."
            }
        }
    }
}

fn picture(report: &Report, group: &ThreadGroup) -> Result<Markup, Error> {
    let title = format!("{}: {}", group.name, plural(group.members.len(), "thread"));
    let heading = Heading { title: &title, subtitle: "time of each thread by library" };
    let caption = html! {
        "How long each thread was in each library, and in the application’s own code, waits included; "
        "shares of its life are in the tooltips. "
        @if group.members.len() > ROWS {
            "Threads are sorted by their part in the library in which they differ most, and put "
            "together: each row is a mean. Outliers have rows of their own. "
        }
        @if !group.outliers.is_empty() {
            "Outliers are in bold: in some function further than 3.5 robust standard deviations from "
            "the median."
        }
    };
    let chart = figure(&heading, WIDE, &caption, |sheet| draw(report, group, sheet))?;
    Ok(html! {
        h3 { (title) }
        (chart)
        @if !group.outliers.is_empty() {
            ul.outliers { @for outlier in &group.outliers {
                @if let Some(member) = group.members.get(outlier.member) {
                    li { b { (member.name) } ": " (outlier.reason) }
                }
            } }
        }
        @if let Some(note) = &group.note { p.note { (note) } }
        @if group.sub_groups.len() > 1 {
            p { "Kinds of behaviour within the group: "
                @for (at, kind) in group.sub_groups.iter().enumerate() {
                    @if at > 0 { "; " } (kind.name) " (" (plural(kind.threads, "thread")) ")"
                } "."
            }
        }
    })
}

pub(crate) fn draw(
    report: &Report,
    group: &ThreadGroup,
    sheet: &Sheet<'_>,
) -> Result<Chart, Error> {
    let columns = columns(report, group);
    let is_outlier = |member: usize| group.outliers.iter().any(|o: &Outlier| o.member == member);
    let (apart, rest): (Vec<usize>, Vec<usize>) =
        (0..group.members.len()).partition(|&member| is_outlier(member));
    let all = group.members.iter().flat_map(|member| &member.in_libraries_ns);
    let most = f64::from(all.copied().fold(0.0, f32::max));
    let used = used(group.members.iter(), columns.len());
    let row = |members: &[usize], marked| row(group, members, &used, most, marked);
    let mut rows: Vec<HeatRow> = apart.iter().map(|&member| row(&[member], true)).collect();
    if group.members.len() <= ROWS {
        rows = (0..group.members.len()).map(|m| row(&[m], is_outlier(m))).collect();
    } else {
        let mut rest = rest;
        let widest = widest(group, &rest);
        let time = |&member: &usize| group.members[member].time(widest);
        rest.sort_by(|a, b| time(b).total_cmp(&time(a)).then(a.cmp(b)));
        rows.extend(rest.chunks(rest.len().div_ceil(BINS)).map(|bin| row(bin, false)));
    }
    let columns: Vec<String> = used.iter().map(|&at| columns[at].clone()).collect();
    Ok(heat(sheet, &columns, &rows, ("none", &quantity(most, Unit::Nanoseconds)))?)
}

/// The columns in which any of the threads has something.
fn used<'g>(members: impl Iterator<Item = &'g Member> + Clone, columns: usize) -> Vec<usize> {
    let is_used = |&column: &usize| members.clone().any(|member| member.time(column) > 0.0);
    (0..columns).filter(is_used).collect()
}

/// What the columns of a group are called.
fn columns(report: &Report, group: &ThreadGroup) -> Vec<String> {
    let column = |&library: &usize| match report.libraries.get(library) {
        Some(library) if library.is_application => format!("{} (application)", library.name),
        Some(library) => library.name.to_string(),
        None => String::new(),
    };
    group.libraries.iter().map(column).collect()
}

/// The column in which members differ most, by variance.
fn widest(group: &ThreadGroup, members: &[usize]) -> usize {
    let variance = |column: usize| {
        let times = || members.iter().map(|&member| group.members[member].time(column));
        let mean = times().sum::<f64>() / members.len().max(1) as f64;
        times().map(|time| (time - mean).powi(2)).sum::<f64>()
    };
    let columns = 0..group.libraries.len();
    columns.max_by(|&a, &b| variance(a).total_cmp(&variance(b)).then(b.cmp(&a))).unwrap_or(0)
}

/// A thread, or the mean of several; `most_ns` is the darkest shade.
fn row(
    group: &ThreadGroup,
    members: &[usize],
    columns: &[usize],
    most_ns: f64,
    marked: bool,
) -> HeatRow {
    let mean = |of: &dyn Fn(&Member) -> f64| {
        let sum: f64 = members.iter().map(|&member| of(&group.members[member])).sum();
        sum / members.len().max(1) as f64
    };
    let lifetime = mean(&|member| member.lifetime_ns);
    let cell_of = |column| cell(mean(&|member| member.time(column)), most_ns, lifetime);
    let label = match members {
        [only] => group.members[*only].name.to_string(),
        several => plural(several.len(), "thread"),
    };
    HeatRow { label, marked, cells: columns.iter().copied().map(cell_of).collect() }
}

/// A time, shaded by its part of the longest, and its share of a life.
fn cell(ns: f64, most_ns: f64, lifetime_ns: f64) -> Cell {
    let part = if most_ns > 0.0 { (ns / most_ns).min(1.0) } else { 0.0 };
    let time = quantity(ns, Unit::Nanoseconds);
    let detail = format!("{time}, {} of life", share(ns.min(lifetime_ns), lifetime_ns));
    let text = if part < LEAST_TEXT { String::new() } else { time };
    Cell { part, text, detail }
}
