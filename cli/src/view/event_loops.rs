//! Turns of event loops.

use chase_analyzer::{EventLoop, HeldUp};
use serde_json::{Map, Value, json};

use crate::event_loops;
use crate::machine::{self, Rows};
use crate::report::Report;
use crate::sentences;
use crate::terminal::{Align, Table, count, elapsed};

/// The most functions and waits of a loop in JSON.
const MOST: usize = 10;

pub(super) const HELD_UP: (&str, &str) = (
    "held up",
    "turns (from the end of a wait for descriptors to the next wait) of 20 ms or more, and 20 times the usual one, while something else was ready; without time in which others had the processor",
);

/// Loops that were held up, longest first.
pub(super) fn table(report: &Report, loops: &[&EventLoop], top: usize) -> Table {
    let mut table = Table::new([
        ("Event loop", Align::Name),
        ("Group", Align::Name),
        ("turns", Align::Number),
        ("usual", Align::Number),
        ("held up", Align::Number),
        ("time", Align::Number),
        ("longest", Align::Number),
        ("ready", Align::Number),
        ("ran", Align::Name),
        ("waited in", Align::Name),
    ])
    .may_drop(["ready", "Group"]);
    for one in loops.iter().take(top) {
        let longest = one.held_up.iter().map(HeldUp::own_ns).max().unwrap_or_default();
        let ready = one.held_up.iter().map(|turn| turn.ready).max().unwrap_or_default();
        let ran = event_loops::ran(report, one).into_iter().next();
        table.row([
            sentences::thread(report, one.thread).into(),
            (&*report.groups().rows[one.group as usize].label).into(),
            count(one.turns).into(),
            format!("<{}", elapsed(one.usual_ns.0)).into(),
            count(one.held_up.len() as u64).into(),
            elapsed(one.held_up_ns(HeldUp::own_ns).0).into(),
            elapsed(longest.0).into(),
            count(u64::from(ready)).into(),
            ran.map(|ran| ran.name).unwrap_or_default().into(),
            one.waits.first().map(|row| event_loops::wait(report, row)).unwrap_or_default().into(),
        ]);
    }
    table
}

/// All loops, with the turns that held them up.
pub(super) fn rows(report: &Report, loops: &[&EventLoop], top: usize) -> anyhow::Result<Rows> {
    let row = |one: &&EventLoop| -> anyhow::Result<Map<String, Value>> {
        let ran: Vec<Value> = event_loops::ran(report, one)
            .iter()
            .take(MOST)
            .map(|ran| json!({ "function": ran.name, "samples": ran.samples, "share": ran.share }))
            .collect();
        let waits: Vec<Value> = one
            .waits
            .iter()
            .take(MOST)
            .map(|row| json!({ "wait": event_loops::wait(report, row), "wait_ns": row.ns }))
            .collect();
        let clients: Vec<Value> = one
            .clients
            .iter()
            .map(|client| {
                let group = &*report.groups().rows[client.group as usize].label;
                json!({ "group": group, "threads": client.threads, "wait_ns": client.wait_ns })
            })
            .collect();
        let thread = &report.analysis.threads[one.thread as usize];
        machine::row(
            *one,
            [
                ("group", Value::from(&*report.groups().rows[one.group as usize].label)),
                ("tid", Value::from(thread.tid)),
                ("function", one.api.map(|api| report.names.full(api as usize)).into()),
                ("times_held_up", Value::from(one.held_up.len())),
                ("held_up_ns", serde_json::to_value(one.held_up_ns(HeldUp::own_ns))?),
                ("clients", clients.into()),
                ("ran", ran.into()),
                ("waits", waits.into()),
            ],
        )
    };
    let rows = loops.iter().take(top).map(row).collect::<anyhow::Result<_>>()?;
    let columns = [
        "group",
        "tid",
        "function",
        "turns",
        "usual_ns",
        "max_ns",
        "total_ns",
        "blocked_ns",
        "preempted_ns",
        "waited_ns",
        "times_held_up",
        "held_up_ns",
        "not_kept",
    ];
    Ok(Rows { name: "event_loops", columns: columns.into(), rows })
}
