//! Threads: what the life of each was made of, their groups, and how alike the threads of a group are.

use std::cmp::Ordering;

use chase_viz::{State, Unit, quantity, state_colour};
use maud::{Markup, html};

use super::heat;
use super::overview::{not_asked, running_words};
use crate::figure::{BAR, BarPart, bar, count, legend, name, plural, table, table_of_bars, time};
use crate::model::{Life, Member, ThreadGroup, WaitSource};
use crate::{Error, Report};

/// Threads with a bar.
const BARS: usize = 200;
/// Rows of the table of groups.
const TABLE: usize = 40;

pub(super) fn render(report: &Report) -> Result<Option<Markup>, Error> {
    if report.groups.is_empty() {
        return Ok(None);
    }
    let mut pictures = Vec::new();
    for group in heat::worth_showing(report) {
        pictures.push(heat::of_group(report, group)?);
    }
    let more = report.groups.len().saturating_sub(TABLE);
    let all = if heat::has_several(report) { Some(heat::of_groups(report)?) } else { None };
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
    let threads: usize = report.groups.iter().map(|group| group.members.len()).sum();
    let states = [
        (state_colour(State::Running), running_words(report)),
        (state_colour(State::Runnable), "waiting for a processor"),
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
        @if !report.is_measured() {
            p.note { "Much of what they were not seen to wait for may be waits: " (not_asked(report)) "." }
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
        columns.extend([(BAR, false), (running_words(report), true)]);
    }
    if has_life {
        columns.push((BAR, false));
        if !has_cpu {
            columns.push((running_words(report), true));
        }
        columns.extend([("waiting for a processor", true), ("blocked", true)]);
    }
    columns.extend([("life", true), ("calls", true), ("group", false)]);
    let row = |(group, member): &(&ThreadGroup, &Member)| {
        let Life { running_ns, runnable_ns, blocked_ns, .. } = member.life;
        let part = |ns: f64, longest: f64, state, what: &str| BarPart {
            share: ns / longest,
            colour: state_colour(state),
            title: format!("{what} {}", quantity(ns, Unit::Nanoseconds)),
        };
        let running = |longest| part(running_ns, longest, State::Running, running_words(report));
        let mut row = vec![name(&member.name)];
        if has_cpu {
            row.extend([bar(&[running(longest_running)]), time(running_ns)]);
        }
        if has_life {
            row.push(bar(&[
                running(longest_life),
                part(runnable_ns, longest_life, State::Runnable, "waiting for a processor"),
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
        columns.extend([("load balance", true), ("efficiency", true), ("imbalance", true)]);
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
                "Load balance (LB): mean / max of useful time; from 0.8 on it is fine. Parallel "
                "efficiency (PE): mean useful time / wall time of the group. Imbalance: (max − mean) / "
                "max · N / (N − 1), and what the slowest thread has beyond the mean."
            }
        }
    }
}
