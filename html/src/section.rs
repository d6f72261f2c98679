//! The sections of the page, a file each. Each is handed the report, and gives nothing where the
//! report has nothing for it.

mod blocked;
mod calls;
mod compare;
mod findings;
mod flame;
mod header;
mod libraries;
mod overview;
mod processor;
mod rows;
mod syscalls;
mod tail;
mod threads;
mod time;
mod timeline;

use maud::Markup;

use crate::section_id::SectionId;
use crate::{Error, Report};

pub(crate) use blocked::draw as draw_blocked;
pub(crate) use calls::draw as draw_calls;
pub(crate) use compare::{draw as draw_compare, has_parts};
pub(crate) use flame::svg as flame_svg;
pub(crate) use header::render as header;
pub(crate) use libraries::draw as draw_libraries;
pub(crate) use overview::render as overview;
pub(crate) use processor::draw as draw_processor;
pub(crate) use syscalls::draw as draw_syscalls;
pub(crate) use tail::draw as draw_tail;
pub(crate) use threads::{
    draw as draw_group, draw_all as draw_groups, has_several as has_several_groups,
    worth_showing as groups_worth_showing,
};
pub(crate) use time::draw as draw_time;

/// A section.
pub(crate) struct Section {
    pub(crate) id: SectionId,
    pub(crate) title: &'static str,
    pub(crate) render: fn(&Report) -> Result<Option<Markup>, Error>,
}

/// In the order of the page.
pub(crate) const SECTIONS: &[Section] = &[
    Section { id: SectionId::Compare, title: "What changed", render: compare::render },
    Section { id: SectionId::Timeline, title: "Timeline", render: timeline::render },
    Section { id: SectionId::Processor, title: "Processor", render: processor::render },
    Section { id: SectionId::Blocked, title: "Waits, locks and objects", render: blocked::render },
    Section { id: SectionId::Threads, title: "Threads", render: threads::render },
    Section { id: SectionId::Time, title: "Time by calls", render: time::render },
    Section { id: SectionId::Libraries, title: "Running and waiting", render: libraries::render },
    Section { id: SectionId::Tail, title: "Tail latency", render: tail::render },
    Section { id: SectionId::Syscalls, title: "System calls", render: syscalls::render },
    Section { id: SectionId::Calls, title: "Calls between libraries", render: calls::render },
    Section { id: SectionId::Flame, title: "Flame graph", render: flame::render },
    Section { id: SectionId::Rows, title: "All rows", render: rows::render },
];
