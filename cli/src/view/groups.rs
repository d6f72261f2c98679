//! Thread groups: how evenly they share work, and which threads differ.

use anyhow::bail;
use chase_analyzer::{CodeAddress, GroupPart, GroupRow, Outlier, PartLevel, Why};
use serde_json::{Map, Value, json};

use super::{Show, approximate, left_out, legend, share, waiting};
use crate::args::{GroupFilter, matches};
use crate::machine::{self, Rows};
use crate::places::AddressKind;
use crate::report::Report;
use crate::sentences;
use crate::terminal::{Align, Look, Table, Terminal, clean, count, elapsed, percent, plural};

/// Differing threads that a group names to people.
const OUTLIERS: usize = 3;

/// `threads --groups`.
pub(super) struct OnlyGroups<'a> {
    pub(super) group: &'a GroupFilter,
}

/// Groups that the filter lets pass, with their numbers.
///
/// # Errors
///
/// If it asks for groups that are not there.
pub(super) fn rows<'r>(
    report: &'r Report,
    filter: &GroupFilter,
) -> anyhow::Result<Vec<(u32, &'r GroupRow)>> {
    let all = &report.groups().rows;
    let rows: Vec<_> =
        (0..).zip(all).filter(|(_, row)| matches(&filter.groups, &[&row.label])).collect();
    if rows.is_empty() && !all.is_empty() {
        let labels: Vec<&str> = all.iter().map(|row| &*row.label).take(10).collect();
        bail!("no thread group of that name; there are: {}", labels.join(", "));
    }
    Ok(rows)
}

/// Which groups the filter lets pass, by number.
pub(super) fn chosen(report: &Report, filter: &GroupFilter) -> anyhow::Result<Vec<bool>> {
    let mut chosen = vec![false; report.groups().rows.len()];
    for (number, _) in rows(report, filter)? {
        chosen[number as usize] = true;
    }
    Ok(chosen)
}

impl Show for OnlyGroups<'_> {
    const NAME: &'static str = "threads";

    fn text(&self, report: &Report, terminal: Terminal, top: usize) -> anyhow::Result<String> {
        Ok(text(report, self.group, terminal, top)? + &legend(terminal, &terms(report)))
    }

    fn tables(&self, report: &Report, top: usize) -> anyhow::Result<Vec<Rows>> {
        Ok(vec![json_rows(report, self.group, top)?])
    }
}

/// The table and what differs within groups, without a legend.
pub(super) fn text(
    report: &Report,
    filter: &GroupFilter,
    terminal: Terminal,
    top: usize,
) -> anyhow::Result<String> {
    let rows = rows(report, filter)?;
    let mut table = Table::new([
        ("Group", Align::Name),
        ("threads", Align::Number),
        ("at once", Align::Number),
        ("shortest", Align::Number),
        ("median", Align::Number),
        ("longest", Align::Number),
        ("useful", Align::Number),
        ("waiting", Align::Number),
        ("imb", Align::Number),
        ("imb %", Align::Number),
        ("LB", Align::Number),
        ("PE", Align::Number),
    ])
    .may_drop(["at once", "shortest", "longest", "imb", "waiting"]);
    for (_, row) in rows.iter().take(top) {
        let several = |text: String| if row.threads > 1 { text } else { String::new() };
        table.row([
            (&*row.label).into(),
            row.threads.to_string().into(),
            several(row.concurrency.to_string()).into(),
            several(elapsed(row.lifetime.min_ns.0)).into(),
            elapsed(row.lifetime.median_ns.0).into(),
            several(elapsed(row.lifetime.max_ns.0)).into(),
            share(report, row.useful_ns).into(),
            share(report, row.wait_ns).into(),
            several(elapsed(row.comparison.imbalance_ns.0)).into(),
            several(percent(row.comparison.imbalance)).into(),
            several(format!("{:.2}", row.comparison.load_balance)).into(),
            format!("{:.2}", row.comparison.parallel_efficiency).into(),
        ]);
    }
    let mut out = table.render(terminal);
    out.push_str(&left_out(rows.len(), top, "groups"));
    for (_, row) in rows.iter().take(top) {
        out.push_str(&details(report, row, terminal));
    }
    Ok(out)
}

/// Differing threads and sub-groups of a group.
fn details(report: &Report, row: &GroupRow, terminal: Terminal) -> String {
    let mut lines = Vec::new();
    for outlier in row.outliers.iter().take(OUTLIERS) {
        lines.extend(describe(report, outlier));
    }
    if row.outliers.len() > OUTLIERS {
        lines.push(format!("… and {} more that differ", row.outliers.len() - OUTLIERS));
    }
    for part in &row.parts {
        let who = match (part.level, &part.created_in) {
            (PartLevel::Name, _) => format!("called “{}”", part.name),
            (PartLevel::CreationSite, Some(function)) => format!("created in {function}"),
            (PartLevel::CreationSite, None) => format!("created {}", created_at(report, part)),
        };
        lines.push(format!(
            "{} {who}: {} useful, {} waiting",
            plural(part.threads as u64, "thread"),
            elapsed(part.useful_ns.0),
            elapsed(part.wait_ns.0),
        ));
    }
    for part in &row.sub_groups {
        let apis = part
            .apis
            .iter()
            .map(|&(api, share)| format!("{} {}", function(report, api), percent(share)));
        let apis: Vec<String> = apis.collect();
        lines.push(format!("{} threads alike: {}", part.members.len(), apis.join(", ")));
    }
    if row.as_rates {
        lines.push("ended together: compared by rate, not by time".to_owned());
    } else if row.unlike_lifetimes && row.threads > 1 {
        lines.push(format!(
            "unlike lifetimes: shortest {}, longest {}",
            sentences::thread(report, row.lifetime.min_thread),
            sentences::thread(report, row.lifetime.max_thread)
        ));
    }
    if lines.is_empty() {
        return String::new();
    }
    let heading = terminal.paint(Look::Strong, &clean(&row.label));
    let width = terminal.width.unwrap_or(usize::MAX);
    let fitting = |line: &String| super::wrap(super::words(&clean(line)), 2, 4, width);
    let lines: String = lines.iter().map(|line| format!("  {}\n", fitting(line))).collect();
    format!("\n{heading}\n{lines}")
}

/// `at app+0x1234`.
fn created_at(report: &Report, part: &GroupPart) -> String {
    match part.creation_site {
        Some(CodeAddress { object: Some(object), svma: Some(svma), .. }) => {
            format!("at {}+{svma:#x}", report.names.object(object))
        }
        _ => "elsewhere".to_owned(),
    }
}

fn describe(report: &Report, outlier: &Outlier) -> Option<String> {
    let api = outlier.apis.first()?;
    let more = if api.excess_ns > 0 { "more" } else { "less" };
    Some(format!(
        "{}: {} in {}, the median thread {}: {} {more}{}",
        sentences::thread(report, outlier.thread),
        elapsed(api.useful_ns.0),
        function(report, api.api),
        elapsed(api.median_ns.0),
        elapsed(api.excess_ns.unsigned_abs()),
        api.why.map_or_else(String::new, why),
    ))
}

/// ` (calls × 3.0, size × 1.0, time each × 1.1)`.
fn why(why: Why) -> String {
    let times =
        |ratio: f64| if ratio < 10.0 { format!("{ratio:.1}") } else { format!("{ratio:.0}") };
    let size =
        why.argument_ratio.map_or_else(String::new, |ratio| format!("size × {}, ", times(ratio)));
    format!(" (calls × {}, {size}time each × {})", times(why.calls_ratio), times(why.each_ratio))
}

fn function(report: &Report, api: Option<u32>) -> String {
    api.map_or_else(|| "own code".to_owned(), |api| report.names.short(api as usize).to_owned())
}

/// The table of the summary.
pub(super) fn brief(report: &Report, top: usize) -> Table {
    let mut table = Table::new([
        ("Thread group", Align::Name),
        ("threads", Align::Number),
        ("lifetime", Align::Number),
        ("application", Align::Number),
        ("library", Align::Number),
        (waiting::heading(report), Align::Number),
        ("LB", Align::Number),
        ("calls", Align::Number),
    ])
    .may_drop(["application", waiting::heading(report)]);
    for row in report.groups().rows.iter().take(top) {
        let thread = |&at: &u32| report.analysis.threads.get(at as usize);
        let estimated =
            row.members.iter().filter_map(thread).any(|thread| thread.measures.calls_estimated);
        let several = |text: String| if row.threads > 1 { text } else { String::new() };
        table.row([
            (&*row.label).into(),
            count(row.threads as u64).into(),
            elapsed(row.lifetime.median_ns.0).into(),
            share(report, row.application_ns).into(),
            share(report, row.library_ns).into(),
            share(report, row.wait_ns).into(),
            several(format!("{:.2}", row.comparison.load_balance)).into(),
            if row.calls == 0 {
                "".into()
            } else {
                approximate(estimated, count(row.calls)).into()
            },
        ]);
    }
    table
}

/// What the columns mean, but for that of waits.
const LEGEND: &[(&str, &str)] = &[
    ("at once", "most threads of the group that lived at one time"),
    ("median", "of their lifetimes, between the shortest and the longest"),
    ("useful", "their time without waits, as a share of application time and all library calls"),
    ("imb, imb %", "imbalance of useful time: max − mean, and (max − mean) / max · N / (N − 1)"),
    LB,
    ("PE", "parallel efficiency: mean useful time / the group's wall time"),
];

pub(super) const LB: (&str, &str) =
    ("LB", "load balance: mean / max of useful time (without waits); 0.8 and more is good");

/// All that is known of groups.
pub(super) fn json_rows(report: &Report, filter: &GroupFilter, top: usize) -> anyhow::Result<Rows> {
    let rows = rows(report, filter)?.into_iter().take(top);
    let rows = rows.map(|(_, row)| json_row(report, row)).collect::<anyhow::Result<_>>()?;
    let columns = [
        "label",
        "kind",
        "executable",
        "name",
        "threads",
        "concurrency",
        "wall_ns",
        "lifetime_ns",
        "application_ns",
        "library_ns",
        "wait_ns",
        "calls",
        "lifetime.min_ns",
        "lifetime.median_ns",
        "lifetime.max_ns",
        "lifetime.min_tid",
        "lifetime.max_tid",
        "useful.min_ns",
        "useful.median_ns",
        "useful.max_ns",
        "useful.min_tid",
        "useful.max_tid",
        "imbalance_ns",
        "imbalance",
        "load_balance",
        "parallel_efficiency",
        "as_rates",
        "unlike_lifetimes",
        "start_routine.function",
        "start_routine.object",
        "creation_site.function",
        "creation_site.object",
    ];
    Ok(Rows { name: "groups", columns: columns.into(), rows })
}

fn json_row(report: &Report, row: &GroupRow) -> anyhow::Result<Map<String, Value>> {
    let process = row.members.first().map_or(0, |&at| report.analysis.threads[at as usize].process);
    let place = |address: &Option<CodeAddress>, kind| match address {
        Some(address) => {
            serde_json::to_value(report.places.find(report.files(), process, address, kind))
        }
        None => Ok(Value::Null),
    };
    let members: Vec<Value> = row.members.iter().map(|&at| tid(report, at)).collect();
    let mut map = machine::row(
        row,
        [
            ("start_routine", place(&row.start_routine, AddressKind::Function)?),
            ("creation_site", place(&row.creation_site, AddressKind::ReturnAddress)?),
            ("members", members.into()),
        ],
    )?;
    for value in map.values_mut() {
        name_threads(report, value);
    }
    Ok(map)
}

/// Thread numbers of the analysis as `tid`s, wherever they are.
pub(super) fn name_threads(report: &Report, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (field, name) in
                [("thread", "tid"), ("min_thread", "min_tid"), ("max_thread", "max_tid")]
            {
                if let Some(number) = map.remove(field).as_ref().and_then(Value::as_u64) {
                    map.insert(name.to_owned(), tid(report, number as u32));
                }
            }
            if let Some(Value::Array(members)) = map.get_mut("members") {
                for member in members {
                    *member = member.as_u64().map_or(json!(null), |at| tid(report, at as u32));
                }
            }
            map.values_mut().for_each(|value| name_threads(report, value));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| name_threads(report, value)),
        _ => {}
    }
}

fn tid(report: &Report, number: u32) -> Value {
    report.analysis.threads.get(number as usize).map(|row| row.tid).into()
}

/// What the columns of groups mean.
pub(super) fn terms(report: &Report) -> Vec<(&'static str, &'static str)> {
    let mut terms = LEGEND.to_vec();
    terms.push(("waiting", waiting::of_groups(report)));
    terms
}
