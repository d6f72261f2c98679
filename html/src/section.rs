//! The sections of the page, a file each. Each is handed the report, and gives nothing where the
//! report has nothing for it.

mod blocked;
mod calls;
mod clock;
mod compare;
mod components;
mod findings;
mod flame;
mod header;
mod heat;
mod libraries;
mod overview;
mod processor;
mod rows;
mod syscalls;
mod tail;
mod threads;
mod time;
mod timeline;
mod waits_for;

use maud::{Markup, html};

use crate::section_id::SectionId;
use crate::{Error, Report};

pub(crate) use blocked::draw as draw_blocked;
pub(crate) use calls::draw as draw_calls;
pub(crate) use compare::{draw as draw_compare, has_parts};
pub(crate) use components::draw as draw_components;
pub(crate) use flame::{DARK as FLAME_IN_THE_DARK, svg as flame_svg};
pub(crate) use header::render as header;
pub(crate) use heat::{
    draw as draw_group, draw_all as draw_groups, has_several as has_several_groups,
    worth_showing as groups_worth_showing,
};
pub(crate) use libraries::draw as draw_libraries;
pub(crate) use overview::render as overview;
pub(crate) use processor::draw as draw_processor;
pub(crate) use syscalls::draw as draw_syscalls;
pub(crate) use tail::draw as draw_tail;
pub(crate) use time::draw as draw_time;
pub(crate) use waits_for::draw as draw_waits_for;

/// A section.
pub(crate) struct Section {
    pub(crate) id: SectionId,
    pub(crate) title: &'static str,
    /// What the contents at the top call it, in a word.
    pub(crate) short: &'static str,
    pub(crate) window: Window,
    pub(crate) render: fn(&Report) -> Result<Option<Markup>, Error>,
}

/// What a section shows while a window of the timeline is chosen.
#[derive(Clone, Copy)]
pub(crate) enum Window {
    /// The whole run still: what it rests on has no times.
    No,
    /// It is about the window itself.
    Itself,
    /// Other tables, which the script fills: functions of `assets/script/following.mjs`.
    Follows(&'static [&'static str]),
    /// The same, from samples; the whole run still if these have no times.
    FollowsSamples(&'static [&'static str]),
}

impl Window {
    /// What the heading says then, if there is a timeline.
    pub(crate) fn heading(self, report: &Report) -> Markup {
        let words = match self {
            Self::Itself => return html! {},
            _ if self.tables(report).is_some() => "in the window",
            _ => "whole run",
        };
        html! { @if has_timeline(report) { span.scope.of-window { (words) } } }
    }

    /// What is shown of the whole run, and the places for what is shown of a window.
    pub(crate) fn body(self, report: &Report, body: &Markup) -> Markup {
        match self.tables(report) {
            Some(tables) => html! {
                div.of-run { (body) }
                div.of-window { @for table in tables { div data-follows=(table) {} } }
            },
            None => html! { (body) },
        }
    }

    /// The tables that the script fills.
    fn tables(self, report: &Report) -> Option<&'static [&'static str]> {
        let timeline = report.timeline.as_ref().filter(|timeline| timeline.end_ns > 0.0)?;
        match self {
            Self::Follows(tables) => Some(tables),
            Self::FollowsSamples(tables) => (!timeline.ran_places.is_empty()).then_some(tables),
            Self::No | Self::Itself => None,
        }
    }
}

fn has_timeline(report: &Report) -> bool {
    report.timeline.as_ref().is_some_and(|timeline| timeline.end_ns > 0.0)
}

/// In the order of the page.
pub(crate) const SECTIONS: &[Section] = &[
    Section {
        id: SectionId::Compare,
        title: "What changed",
        short: "Changes",
        window: Window::No,
        render: compare::render,
    },
    Section {
        id: SectionId::Timeline,
        title: "Timeline",
        short: "Timeline",
        window: Window::Itself,
        render: timeline::render,
    },
    Section {
        id: SectionId::Processor,
        title: "Processor",
        short: "Processor",
        window: Window::FollowsSamples(&["processor", "ran"]),
        render: processor::render,
    },
    Section {
        id: SectionId::Blocked,
        title: "Waits, locks and objects",
        short: "Waits",
        window: Window::Follows(&["waits", "single"]),
        render: blocked::render,
    },
    Section {
        id: SectionId::WaitGraph,
        title: "Who waits for whom",
        short: "Who waits",
        window: Window::No,
        render: waits_for::render,
    },
    Section {
        id: SectionId::Threads,
        title: "Threads",
        short: "Threads",
        window: Window::Follows(&["threads", "shades"]),
        render: threads::render,
    },
    Section {
        id: SectionId::Time,
        title: "Time by calls",
        short: "Calls",
        window: Window::Follows(&["libraries", "functions"]),
        render: time::render,
    },
    Section {
        id: SectionId::Libraries,
        title: "Running and waiting",
        short: "Libraries",
        window: Window::Follows(&["libraries"]),
        render: libraries::render,
    },
    Section {
        id: SectionId::Tail,
        title: "Tail latency",
        short: "Tails",
        window: Window::No,
        render: tail::render,
    },
    Section {
        id: SectionId::Syscalls,
        title: "System calls",
        short: "System calls",
        window: Window::No,
        render: syscalls::render,
    },
    Section {
        id: SectionId::Calls,
        title: "Calls between libraries",
        short: "Callers",
        window: Window::No,
        render: calls::render,
    },
    Section {
        id: SectionId::Flame,
        title: "Flame graph",
        short: "Flames",
        window: Window::No,
        render: flame::render,
    },
    Section {
        id: SectionId::Components,
        title: "Components",
        short: "Components",
        window: Window::No,
        render: components::render,
    },
    Section {
        id: SectionId::Rows,
        title: "All rows",
        short: "All rows",
        window: Window::No,
        render: rows::render,
    },
];
