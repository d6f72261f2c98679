//! Thread groups as the page shows them.

use std::collections::HashMap;

use chase_analyzer::{
    Analysis, GroupPart, GroupRow, LibraryKind, Ns, Outlier as Differs, PartLevel,
    SubGroup as Alike, ThreadRow,
};
use chase_viz::{Unit, quantity};

use super::{Balance, Figures, Life, Member, Names, Outlier, SubGroup, ThreadGroup};
use crate::Label;

/// Libraries that get a column; the application is one of them. Of objects that ran, as many.
const COLUMNS: usize = 9;
/// Outliers that are named.
const OUTLIERS: usize = 12;

pub(super) fn thread_groups(figures: Figures<'_>, names: &dyn Names) -> Vec<ThreadGroup> {
    let columns = Columns::new(figures.analysis);
    figures.groups.rows.iter().map(|row| columns.group(row, names)).collect()
}

/// Name and number of a thread.
pub(super) fn thread_name(thread: &ThreadRow) -> String {
    match &*thread.name {
        "" => format!("thread {}", thread.tid),
        name => format!("{name} {}", thread.tid),
    }
}

/// The libraries that groups are shown by.
struct Columns<'a> {
    analysis: &'a Analysis,
    libraries: Vec<usize>,
    /// Column of each API.
    of_api: Vec<Option<usize>>,
    application: Option<usize>,
    /// Time of each thread, by process and number, in each of the objects that ran longest.
    on_cpu: HashMap<(usize, u32), Vec<f32>>,
}

impl<'a> Columns<'a> {
    fn new(analysis: &'a Analysis) -> Self {
        let rows = &analysis.libraries;
        let is_application = |row: usize| rows[row].kind == LibraryKind::Application;
        let mut libraries: Vec<usize> = (0..rows.len()).take(COLUMNS).collect();
        if let Some(first) = (0..rows.len()).find(|&row| is_application(row)) {
            // All applications share the column of the first one, which is shown in any case.
            libraries.retain(|&row| row == first || !is_application(row));
            if !libraries.contains(&first) {
                libraries.insert(0, first);
            }
        }
        let application = libraries.iter().position(|&row| is_application(row));
        let on_cpu = on_cpu(analysis);
        let mut columns = Self { analysis, of_api: Vec::new(), application, libraries, on_cpu };
        let of_api = analysis.apis.iter().map(|api| columns.column_of(api.object)).collect();
        columns.of_api = of_api;
        columns
    }

    fn column_of(&self, object: u32) -> Option<usize> {
        let rows = &self.analysis.libraries;
        let is_it =
            |&row: &usize| rows[row].kind == LibraryKind::Library && rows[row].object == object;
        self.libraries.iter().position(is_it)
    }

    fn group(&self, row: &GroupRow, names: &dyn Names) -> ThreadGroup {
        let members = row.members.iter().map(|&thread| self.member(thread)).collect();
        let comparison = &row.comparison;
        ThreadGroup {
            name: Label::from(&row.label),
            members,
            libraries: self.libraries.clone(),
            useful_ns: row.useful_ns.as_f64(),
            wait_ns: row.wait_ns.as_f64(),
            balance: (row.threads > 1).then(|| Balance {
                load_balance: comparison.load_balance,
                imbalance: comparison.imbalance,
                imbalance_ns: comparison.imbalance_ns.as_f64(),
                parallel_efficiency: comparison.parallel_efficiency,
            }),
            outliers: outliers(row, names),
            sub_groups: match *row.parts {
                [] => row.sub_groups.iter().map(|part| sub_group(part, names)).collect(),
                _ => row.parts.iter().map(part).collect(),
            },
            note: note(row).map(Label::from),
        }
    }

    fn member(&self, thread: u32) -> Member {
        let thread = &self.analysis.threads[thread as usize];
        let on_cpu = self.on_cpu.get(&(thread.process, thread.thread)).cloned().unwrap_or_default();
        let mut in_libraries_ns = vec![0.0; self.libraries.len()];
        let own_column = match self.analysis.objects[thread.own_object as usize].executable {
            true => self.application,
            false => self.column_of(thread.own_object),
        };
        if let Some(column) = own_column {
            in_libraries_ns[column] = thread.application_ns.as_f64() as f32;
        }
        for api in &thread.apis {
            if let Some(Some(column)) = self.of_api.get(api.api as usize) {
                in_libraries_ns[*column] += api.self_ns.as_f64() as f32;
            }
        }
        Member {
            name: Label::from(thread_name(thread)),
            lifetime_ns: thread.lifetime_ns.as_f64(),
            life: life(thread),
            calls: thread.measures.calls,
            in_libraries_ns,
            on_cpu_ns: at_most(on_cpu, thread.on_cpu_ns),
        }
    }
}

/// Time on the processor of each thread that has samples, in the objects that ran longest, in their order.
fn on_cpu(analysis: &Analysis) -> HashMap<(usize, u32), Vec<f32>> {
    let objects = &analysis.on_cpu.objects[..analysis.on_cpu.objects.len().min(COLUMNS)];
    let mut times: HashMap<(usize, u32), Vec<f32>> = HashMap::new();
    for row in &analysis.on_cpu.of_threads {
        let Some(column) = objects.iter().position(|object| object.object == row.object) else {
            continue;
        };
        let thread = (row.process as usize, row.thread);
        let of_thread = times.entry(thread).or_insert_with(|| vec![0.0; objects.len()]);
        of_thread[column] += row.ns.as_f64() as f32;
    }
    times
}

/// Times that are together no more than that. Of a thread with few samples each stands for as much as those of all such threads
/// do in the mean, which may be more than this one has run.
fn at_most(mut times: Vec<f32>, most: Option<Ns>) -> Vec<f32> {
    let sum: f32 = times.iter().sum();
    if let Some(most) = most.map(|most| most.as_f64() as f32).filter(|&most| most < sum) {
        times.iter_mut().for_each(|time| *time *= most / sum);
    }
    times
}

/// As the scheduler has measured it, or as far as it is known of the calls.
fn life(thread: &ThreadRow) -> Life {
    let off_cpu = &thread.off_cpu;
    if let (Some(running), Some(blocked)) = (thread.on_cpu_ns, off_cpu.blocked_ns) {
        return Life {
            running_ns: running.as_f64(),
            runnable_ns: off_cpu.runnable_ns.map_or(0.0, |ns| ns.as_f64()),
            blocked_ns: blocked.as_f64(),
            is_measured: true,
        };
    }
    let of = |own: Option<Ns>, calls: Ns| own.map_or(0.0, |ns| ns.as_f64()) + calls.as_f64();
    let measures = &thread.measures;
    let blocked_ns = of(thread.outside_wait_ns(), measures.wait_ns);
    let runnable_ns = of(thread.outside_preempted_ns(), measures.preempted_ns.unwrap_or_default());
    let outside_ns = thread.application_ns.as_f64() + thread.unattributed_ns.as_f64();
    let all = outside_ns + measures.self_ns.as_f64();
    let running_ns = (all - blocked_ns - runnable_ns).max(0.0);
    Life { running_ns, runnable_ns, blocked_ns, is_measured: false }
}

fn outliers(row: &GroupRow, names: &dyn Names) -> Vec<Outlier> {
    let outlier = |differs: &Differs| {
        let member = row.members.iter().position(|&member| member == differs.thread)?;
        Some(Outlier { member, reason: reason(differs, names).into() })
    };
    row.outliers.iter().take(OUTLIERS).filter_map(outlier).collect()
}

fn reason(differs: &Differs, names: &dyn Names) -> String {
    let time = |ns: f64| quantity(ns, Unit::Nanoseconds);
    let Some(api) = differs.apis.first() else {
        let (useful, median) = (differs.useful_ns.as_f64(), differs.median_ns.as_f64());
        return format!("{}, the median thread {}", time(useful), time(median));
    };
    format!(
        "{} in {}, the median thread {}: {} {}",
        time(api.useful_ns.as_f64()),
        place(api.api, names),
        time(api.median_ns.as_f64()),
        time(api.excess_ns.unsigned_abs() as f64),
        if api.excess_ns > 0 { "more" } else { "less" },
    )
}

fn sub_group(part: &Alike, names: &dyn Names) -> SubGroup {
    let share = |&(api, share): &(Option<u32>, f64)| {
        format!("{} {:.0} %", place(api, names), share * 100.0)
    };
    let shares: Vec<String> = part.apis.iter().map(share).collect();
    SubGroup { name: shares.join(", ").into(), threads: part.members.len() }
}

/// What tells threads of a group apart, and goes with what they do.
fn part(part: &GroupPart) -> SubGroup {
    let name = match (part.level, &part.created_in) {
        (PartLevel::Name, _) => format!("called “{}”", part.name),
        (PartLevel::CreationSite, Some(function)) => format!("created in {function}"),
        (PartLevel::CreationSite, None) => "created at a place of their own".to_owned(),
    };
    SubGroup { name: name.into(), threads: part.threads }
}

fn place(api: Option<u32>, names: &dyn Names) -> &str {
    api.map_or("own code", |api| names.function(api as usize))
}

fn note(row: &GroupRow) -> Option<&'static str> {
    if row.as_rates {
        Some("Its threads ended together: they are compared by rate, not by time.")
    } else if row.unlike_lifetimes && row.threads > 1 {
        Some("Its threads have unlike lifetimes: the longest is more than twice the shortest.")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_ran_is_no_more_than_it_has_run() {
        assert_eq!(at_most(vec![3.0, 1.0], Some(Ns(2))), [1.5, 0.5]);
        assert_eq!(at_most(vec![3.0, 1.0], Some(Ns(5))), [3.0, 1.0]);
        assert_eq!(at_most(vec![3.0, 1.0], None), [3.0, 1.0]);
        assert!(at_most(Vec::new(), Some(Ns(0))).is_empty());
    }
}
