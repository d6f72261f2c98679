//! System calls of the threads of one group, in one function: whatever is said of calls and of their time is said of the same ones.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::Evidence;
use crate::clock::Ns;
use crate::syscalls::{OfApi, OfThread, SyscallMeasures, SyscallRow};

/// The system calls with one number that the threads of a group make in one function.
pub(super) struct Use<'e> {
    /// The group, by number in `Groups::rows`.
    pub(super) group: u32,
    /// The function, by number in `Analysis::apis`; `None` for own code.
    pub(super) api: Option<u32>,
    /// The number of the system call, and its name.
    pub(super) number: u32,
    pub(super) syscall: &'e str,
    pub(super) calls: u64,
    /// Those of them that failed.
    pub(super) errors: u64,
    /// Bytes that they transferred, where that is known.
    pub(super) bytes: Option<u64>,
    pub(super) total_ns: f64,
    pub(super) cpu_ns: f64,
    /// The time of each thread, and its time on the processor; by number in `Analysis::threads`, longest first.
    pub(super) threads: Vec<(u32, f64, f64)>,
}

impl Use<'_> {
    /// Bytes of a call, on average.
    pub(super) fn mean_bytes(&self) -> Option<f64> {
        Some(self.bytes? as f64 / self.calls.max(1) as f64)
    }

    /// The thread that spends most time on the processor in them.
    pub(super) fn busiest(&self) -> Option<(u32, f64)> {
        let threads = self.threads.iter().map(|&(thread, _, cpu_ns)| (thread, cpu_ns));
        threads.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
    }
}

type Rows<'e> = Vec<(u32, &'e SyscallRow<OfThread>)>;

/// Returns the uses of these system calls. Which thread made which of them in which function is not recorded: where several groups
/// call the function, those that a thread makes anywhere stand for them.
pub(super) fn of_system_calls<'e>(evidence: &Evidence<'e>, numbers: &[u32]) -> Vec<Use<'e>> {
    of_threads(evidence, numbers, &|_, _, _| true)
}

/// Whether the system calls that a thread makes in a function are of interest: those with this number.
pub(super) type Wanted<'a> = &'a dyn Fn(u32, Option<u32>, u32) -> bool;

/// The same for threads whose system calls are of interest.
pub(super) fn of_threads<'e>(
    evidence: &Evidence<'e>,
    numbers: &[u32],
    wanted: Wanted<'_>,
) -> Vec<Use<'e>> {
    let threads: HashMap<(usize, u32), u32> = (0..)
        .zip(&evidence.analysis.threads)
        .map(|(number, row)| ((row.process, row.thread), number))
        .collect();
    let mut by_number: BTreeMap<u32, Rows<'e>> = BTreeMap::new();
    let rows = evidence.analysis.syscalls.by_thread.iter();
    for row in rows.filter(|row| numbers.contains(&row.number)) {
        let thread = row.of.thread.map(|thread| (row.of.process as usize, thread));
        if let Some(&thread) = thread.and_then(|key| threads.get(&key)) {
            by_number.entry(row.number).or_default().push((thread, row));
        }
    }
    let rows = evidence.analysis.syscalls.by_api.iter();
    let rows = rows.filter(|row| {
        row.of.is_recorded && row.measures.calls > 0 && by_number.contains_key(&row.number)
    });
    let rows: Vec<&SyscallRow<OfApi>> = rows.collect();
    let makers = by_number.values().flatten().map(|&(thread, _)| thread).collect();
    let callers = Callers::of(evidence, rows.iter().filter_map(|row| row.of.api), &makers);
    let uses = |row: &&'e SyscallRow<OfApi>| {
        by_group(evidence, row, &by_number[&row.number], &callers, wanted)
    };
    rows.iter().flat_map(uses).collect()
}

/// Which threads call some functions. (A thread's list of functions must be read from its start, and there may be many threads.)
struct Callers(HashMap<u32, HashSet<u32>>);

impl Callers {
    /// Finds those of `threads` that call these functions.
    fn of(
        evidence: &Evidence<'_>,
        apis: impl Iterator<Item = u32>,
        threads: &BTreeSet<u32>,
    ) -> Self {
        let mut callers: HashMap<u32, HashSet<u32>> =
            apis.map(|api| (api, HashSet::new())).collect();
        for &thread in threads {
            let apis = &evidence.analysis.threads[thread as usize].apis;
            for own in apis.iter().filter(|own| own.calls > 0) {
                if let Some(own) = callers.get_mut(&own.api) {
                    own.insert(thread);
                }
            }
        }
        Self(callers)
    }

    /// Whether a thread calls a function; all have own code.
    fn call(&self, thread: u32, api: Option<u32>) -> bool {
        api.is_none_or(|api| self.0.get(&api).is_some_and(|threads| threads.contains(&thread)))
    }
}

/// Whether a thread calls a function; all have own code.
pub(super) fn calls(evidence: &Evidence<'_>, thread: u32, api: Option<u32>) -> bool {
    let apis = &evidence.analysis.threads[thread as usize].apis;
    api.is_none_or(|api| apis.iter().any(|row| row.api == api && row.calls > 0))
}

/// Divides the system calls of a function by group.
fn by_group<'e>(
    evidence: &Evidence<'e>,
    row: &'e SyscallRow<OfApi>,
    of: &Rows<'e>,
    callers: &Callers,
    wanted: Wanted<'_>,
) -> Vec<Use<'e>> {
    let mut groups: BTreeMap<u32, Rows<'e>> = BTreeMap::new();
    let mut is_all = true;
    for &(thread, own) in of.iter().filter(|own| callers.call(own.0, row.of.api)) {
        if !wanted(thread, row.of.api, row.number) {
            is_all = false;
        } else if let Some(&group) = evidence.groups.of_thread.get(thread as usize) {
            groups.entry(group).or_default().push((thread, own));
        }
    }
    is_all &= groups.len() == 1;
    let one = |(group, rows): (u32, Rows<'e>)| use_of(row, group, &rows, is_all);
    groups.into_iter().map(one).collect()
}

/// `is_all`: no other thread calls the function.
fn use_of<'e>(row: &'e SyscallRow<OfApi>, group: u32, rows: &Rows<'e>, is_all: bool) -> Use<'e> {
    let all = &row.measures;
    let sum = |value: fn(&SyscallMeasures) -> u64| {
        let sum =
            rows.iter().fold(0, |sum: u64, (_, row)| sum.saturating_add(value(&row.measures)));
        if is_all { value(all) } else { sum.min(value(all)) }
    };
    let (total_ns, cpu_ns) = (sum(|of| of.total_ns.0), sum(|of| of.cpu_ns.0));
    let own = |&(thread, row): &(u32, &SyscallRow<OfThread>)| {
        let (own, own_cpu) =
            (row.measures.total_ns.0.min(total_ns), row.measures.cpu_ns.0.min(cpu_ns));
        (thread, Ns(own).as_f64(), Ns(own_cpu).as_f64())
    };
    let mut threads: Vec<_> = rows.iter().map(own).collect();
    threads.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    Use {
        group,
        api: row.of.api,
        number: row.number,
        syscall: &row.syscall,
        calls: sum(|of| of.calls),
        errors: sum(|of| of.errors),
        bytes: all.bytes.map(|_| sum(|of| of.bytes.unwrap_or(0))),
        total_ns: Ns(total_ns).as_f64(),
        cpu_ns: Ns(cpu_ns).as_f64(),
        threads,
    }
}
