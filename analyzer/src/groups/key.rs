//! Which threads belong together.

use std::collections::HashMap;

use serde::Serialize;

use crate::address::CodeAddress;
use crate::analysis::Analysis;
use crate::rows::{ThreadOrigin, ThreadRow};

/// What a report knows of a thread beyond its recording: names from symbol tables, or what a
/// runtime's start routine was given to run.
pub trait Naming {
    /// Name of what the thread runs: its start routine or, where that is a runtime's, the function
    /// behind it. Threads of which it differs are of different groups.
    fn runs(&self, thread: &ThreadRow) -> Option<String>;

    /// Name of the function that created it. Threads of which it differs are of different groups;
    /// where it is not known, the places of the calls decide, as far as they are apart.
    fn created_in(&self, thread: &ThreadRow) -> Option<String>;
}

/// No names: groups are called by object and address.
#[derive(Clone, Copy, Debug)]
pub struct Unnamed;

impl Naming for Unnamed {
    fn runs(&self, _: &ThreadRow) -> Option<String> {
        None
    }

    fn created_in(&self, _: &ThreadRow) -> Option<String> {
        None
    }
}

/// Calls that are no further apart, in bytes of code, may be one call in the source: compilers
/// unroll the loops in which threads are created.
const NEAR: u64 = 256;

/// What sort of threads a group has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupKind {
    /// Main threads of an executable.
    Main,
    /// Main threads of processes that one process forked.
    Forked,
    /// Threads that were created.
    Created,
    /// Threads first seen in mid-life: nothing says what they run.
    Found,
}

/// What the threads of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupKey {
    /// What sort of threads.
    pub kind: GroupKind,
    /// Executable of the process.
    pub executable: String,
    /// The process that forked them, where that makes the group.
    pub parent: Option<usize>,
    /// Where the start routine is.
    pub routine: Option<Place>,
    /// Name of what they run, if it is known.
    pub runs: Option<String>,
    /// The function that created them, if it is known.
    pub created_in: Option<String>,
    /// Where they were created, if the function is not known.
    pub site: Option<Place>,
    /// Their name, with the digits at its end folded to `*`; empty for main threads.
    pub name: String,
}

/// A place in a file, the same in all processes; or an address of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Object and address in its file.
    File(u32, u64),
    /// Process and address there, of code that is in no file.
    Process(usize, u64),
}

/// The group of a thread: the one place that decides it.
#[must_use]
pub fn group_of(analysis: &Analysis, thread: &ThreadRow, naming: &dyn Naming) -> GroupKey {
    let process = &analysis.processes[thread.process];
    let place = |address: Option<CodeAddress>| {
        address.map(|address| match (address.object, address.svma) {
            (Some(object), Some(svma)) => Place::File(object, svma),
            _ => Place::Process(thread.process, address.avma),
        })
    };
    let key = GroupKey {
        kind: GroupKind::Created,
        executable: process.executable.clone(),
        parent: None,
        routine: place(thread.start_routine),
        runs: None,
        created_in: None,
        site: place(thread.creation_site),
        name: folded(&thread.name),
    };
    let main = GroupKey { routine: None, site: None, name: String::new(), ..key.clone() };
    match thread.origin {
        ThreadOrigin::Main if process.forked && process.parent.is_some() => {
            GroupKey { kind: GroupKind::Forked, parent: process.parent, ..main }
        }
        ThreadOrigin::Main => GroupKey { kind: GroupKind::Main, ..main },
        ThreadOrigin::Created => {
            let created_in = thread.creation_site.and_then(|_| naming.created_in(thread));
            let site = key.site.filter(|_| created_in.is_none());
            GroupKey { runs: naming.runs(thread), created_in, site, ..key }
        }
        ThreadOrigin::Found => GroupKey { kind: GroupKind::Found, ..key },
    }
}

/// `worker-12` as `worker-*`: pools number their threads.
fn folded(name: &str) -> String {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() == name.len() { name.to_owned() } else { format!("{stem}*") }
}

/// Groups in order of their first threads, each with its members in order.
pub(super) fn collect(analysis: &Analysis, naming: &dyn Naming) -> Vec<(GroupKey, Vec<u32>)> {
    let mut numbers: HashMap<GroupKey, usize> = HashMap::new();
    let mut groups: Vec<(GroupKey, Vec<u32>)> = Vec::new();
    let mut keys: Vec<GroupKey> =
        analysis.threads.iter().map(|thread| group_of(analysis, thread, naming)).collect();
    join_near_sites(&mut keys);
    for (at, key) in (0..).zip(keys) {
        let number = match numbers.get(&key) {
            Some(&number) => number,
            None => {
                numbers.insert(key.clone(), groups.len());
                groups.push((key, Vec::new()));
                groups.len() - 1
            }
        };
        groups[number].1.push(at);
    }
    groups
}

/// Gives sites that are near each other, and differ in nothing else, the place of the first.
fn join_near_sites(keys: &mut [GroupKey]) {
    let mut sites: HashMap<GroupKey, Vec<u64>> = HashMap::new();
    let without = |key: &GroupKey| match key.site {
        Some(Place::File(object, svma)) => {
            Some((GroupKey { site: Some(Place::File(object, 0)), ..key.clone() }, object, svma))
        }
        _ => None,
    };
    for (key, _, svma) in keys.iter().filter_map(without) {
        sites.entry(key).or_default().push(svma);
    }
    for all in sites.values_mut() {
        all.sort_unstable();
        all.dedup();
    }
    for key in keys {
        let Some((rest, object, svma)) = without(key) else { continue };
        let all = &sites[&rest];
        let at = all.partition_point(|&site| site < svma);
        let chain = (1..=at).rev().take_while(|&at| all[at] - all[at - 1] <= NEAR);
        let first = chain.last().map_or(at, |at| at - 1);
        key.site = Some(Place::File(object, all[first]));
    }
}

/// What a group is called, before it is told apart from others.
pub(super) fn label(analysis: &Analysis, key: &GroupKey, sample: &ThreadRow) -> String {
    let executable = key.executable.rsplit('/').next().unwrap_or_default();
    match key.kind {
        GroupKind::Main => format!("main of {executable}"),
        GroupKind::Forked => format!("forks of {executable}"),
        GroupKind::Found => format!("threads of {executable} not seen to start"),
        GroupKind::Created => match (&key.runs, &sample.start_routine) {
            (Some(name), _) => name.clone(),
            (None, Some(address)) => place_label(analysis, address),
            (None, None) => format!("threads of {executable}"),
        },
    }
}

/// `libfoo.so+0x1234`.
pub(super) fn place_label(analysis: &Analysis, address: &CodeAddress) -> String {
    let object = address.object.and_then(|object| analysis.objects.get(object as usize));
    match (object, address.svma) {
        (Some(object), Some(svma)) => format!("{}+{svma:#x}", object.name),
        _ => format!("{:#x}", address.avma),
    }
}

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn numbers_at_the_end_of_a_name_fold() {
        assert_eq!(folded("worker-12"), "worker-*");
        assert_eq!(folded("pool-1-thread-3"), "pool-1-thread-*");
        assert_eq!(folded("G1 Conc#0"), "G1 Conc#*");
        assert_eq!(folded("redis"), "redis");
        assert_eq!(folded(""), "");
    }
}
