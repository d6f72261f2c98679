//! Thread groups: how alike their threads are, as thread × library.

use chase_viz::{Cell, Chart, Heading, HeatRow, Sheet, Unit, heat, quantity};
use maud::{Markup, html};

use crate::figure::{WIDE, figure, name, plural, table, time};
use crate::model::{Member, Outlier, ThreadGroup, WaitSource};
use crate::{Error, Report};

/// Groups with a picture.
const PICTURES: usize = 8;
/// Threads beyond this are put together, but for outliers.
const ROWS: usize = 64;
/// Rows of what was put together.
const BINS: usize = 32;
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
        (groups(report))
        @if more > 0 { p.note { "… and " (plural(more, "more group")) "." } }
        @if let Some(all) = all { (all) }
        @for picture in &pictures { (picture) }
    }))
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
    let heading = Heading { title: "Thread group × library", subtitle: "share of their lives" };
    let caption = html! {
        "What part of their lives the threads of each group spent in each library, and in the "
        "application’s own code."
        @if report.groups.len() > BINS { " The groups with most time." }
    };
    figure(&heading, WIDE, &caption, |sheet| draw_all(report, sheet))
}

pub(crate) fn draw_all(report: &Report, sheet: &Sheet<'_>) -> Result<Chart, Error> {
    let Some(first) = report.groups.first() else { return Ok(heat(sheet, &[], &[], ("", ""))?) };
    let columns = columns(report, first);
    let row = |group: &ThreadGroup| {
        let lifetime: f64 = group.members.iter().map(|member| member.lifetime_ns).sum();
        let cell = |column: usize| {
            let time = |member: &Member| f64::from(member.in_libraries_ns[column]);
            let time: f64 = group.members.iter().map(time).sum();
            let share = if lifetime > 0.0 { (time / lifetime).min(1.0) } else { 0.0 };
            self::cell(share, time)
        };
        HeatRow {
            label: group.name.to_string(),
            marked: false,
            cells: (0..columns.len()).map(cell).collect(),
        }
    };
    let rows: Vec<HeatRow> = report.groups.iter().take(BINS).map(row).collect();
    Ok(heat(sheet, &columns, &rows, ("0 %", "100 % of their lives"))?)
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
    let heading = Heading { title: &title, subtitle: "share of each thread’s life by library" };
    let caption = html! {
        "What part of its life each thread spent in each library, and in the application’s own code. "
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
    let mut rows: Vec<HeatRow> = apart.iter().map(|&member| row(group, &[member], true)).collect();
    if group.members.len() <= ROWS {
        rows = (0..group.members.len()).map(|m| row(group, &[m], is_outlier(m))).collect();
    } else {
        let mut rest = rest;
        let widest = widest(group, &rest);
        let share = |&member: &usize| group.members[member].share(widest);
        rest.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.cmp(b)));
        rows.extend(rest.chunks(rest.len().div_ceil(BINS)).map(|bin| row(group, bin, false)));
    }
    Ok(heat(sheet, &columns, &rows, ("0 %", "100 % of its life"))?)
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
        let shares = || members.iter().map(|&member| group.members[member].share(column));
        let mean = shares().sum::<f64>() / members.len().max(1) as f64;
        shares().map(|share| (share - mean).powi(2)).sum::<f64>()
    };
    let columns = 0..group.libraries.len();
    columns.max_by(|&a, &b| variance(a).total_cmp(&variance(b)).then(b.cmp(&a))).unwrap_or(0)
}

/// A thread, or the mean of several.
fn row(group: &ThreadGroup, members: &[usize], marked: bool) -> HeatRow {
    let cell_of = |column: usize| {
        let shares = members.iter().map(|&member| group.members[member].share(column));
        let mean = shares.sum::<f64>() / members.len().max(1) as f64;
        let lives = members
            .iter()
            .map(|&member| group.members[member].lifetime_ns * group.members[member].share(column));
        let time = lives.sum::<f64>() / members.len().max(1) as f64;
        cell(mean, time)
    };
    let label = match members {
        [only] => group.members[*only].name.to_string(),
        several => plural(several.len(), "thread"),
    };
    HeatRow { label, marked, cells: (0..group.libraries.len()).map(cell_of).collect() }
}

/// A share of a life, and the time.
fn cell(share: f64, ns: f64) -> Cell {
    let text = match share * 100.0 {
        percent if percent < 0.05 => String::new(),
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    };
    let detail = format!("{:.2} %, {}", share * 100.0, quantity(ns, Unit::Nanoseconds));
    Cell { part: share, text, detail }
}
