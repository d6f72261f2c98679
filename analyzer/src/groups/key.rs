//! Which threads belong together.

use std::collections::HashMap;

use serde::Serialize;

use crate::address::CodeAddress;
use crate::analysis::Analysis;
use crate::rows::{ThreadOrigin, ThreadRow};

/// What a report knows of a thread beyond its recording: names from symbol tables, or what a runtime's start routine
/// was given to run.
pub trait Naming {
    /// Returns the name of what the thread runs: its start routine or, if that is a runtime's, the function that it
    /// was given. Threads with different names are in different groups. `None` of a thread that was found in a runtime's start routine, if it is
    /// not known what it was given.
    fn runs(&self, thread: &ThreadRow) -> Option<String>;

    /// Returns the code of what the thread runs, if other functions have the same name: closures. Threads with different
    /// code are in different groups.
    fn closure(&self, _: &ThreadRow) -> Option<Closure> {
        None
    }

    /// Whether it is one of the threads that a scheduler of a runtime has its tasks run by, whichever is free: how these differ tells nothing of
    /// the work.
    fn takes_any_task(&self, _: &ThreadRow) -> bool {
        false
    }

    /// Returns the name of the function that created the thread. It doesn't define groups, but may define parts of
    /// one.
    fn created_in(&self, thread: &ThreadRow) -> Option<String>;
}

/// A function whose name others have, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closure {
    /// Address of its code in the file that it is in.
    pub svma: u64,
    /// Its source file and line, if known: `pool.rs:42`.
    pub source: Option<String>,
    /// Whether that is in the program; otherwise it is in a library that is part of it, such as where Rust's calls the closure.
    pub is_in_program: bool,
}

/// No names: groups are labelled by object and address.
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

/// The kind of threads in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupKind {
    /// Main threads of an executable.
    Main,
    /// Main threads of processes forked by one process.
    Forked,
    /// Threads that were created: either that was seen, or what they run is known.
    Created,
    /// Threads whose creation was not seen, and of which it is not known what they run.
    Found,
}

/// What the threads of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupKey {
    /// The kind of threads.
    pub kind: GroupKind,
    /// Executable of the process.
    pub executable: String,
    /// The name that it was started as.
    pub program: String,
    /// The role of the process by its title, for main threads of processes that set one.
    pub role: Option<String>,
    /// The process that forked them, if that defines the group.
    pub parent: Option<usize>,
    /// The place of the start routine.
    pub routine: Option<Place>,
    /// Name of what they run, if known.
    pub runs: Option<String>,
    /// The address of its code in its file, if others have that name, too.
    pub closure: Option<u64>,
    /// Their name, with digits at its end folded to `*`, if nothing else tells what they run; otherwise empty.
    pub name: String,
}

/// A place in a file, which is the same in all processes; or an address of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Object and address in its file.
    File(u32, u64),
    /// Process and address there, for code that is in no file.
    Process(usize, u64),
}

/// Returns the group of a thread. This is the only place that decides it.
#[must_use]
pub fn group_of(analysis: &Analysis, thread: &ThreadRow, naming: &dyn Naming) -> GroupKey {
    let process = &analysis.processes[thread.process];
    let key = GroupKey {
        kind: GroupKind::Created,
        executable: process.executable.clone(),
        program: process.program.clone(),
        role: None,
        parent: None,
        routine: place_of(thread.process, thread.start_routine),
        runs: None,
        closure: None,
        name: String::new(),
    };
    let main = GroupKey { routine: None, role: process.role.clone(), ..key.clone() };
    match thread.origin {
        ThreadOrigin::Main if process.forked && process.parent.is_some() => {
            GroupKey { kind: GroupKind::Forked, parent: process.parent, ..main }
        }
        ThreadOrigin::Main => GroupKey { kind: GroupKind::Main, ..main },
        ThreadOrigin::Created | ThreadOrigin::Found => {
            let runs = naming.runs(thread);
            if thread.origin == ThreadOrigin::Found && runs.is_none() {
                return GroupKey { kind: GroupKind::Found, name: folded(&thread.name), ..key };
            }
            let is_known = runs.is_some() || key.routine.is_some();
            let name = if is_known { String::new() } else { folded(&thread.name) };
            let closure = naming.closure(thread).map(|closure| closure.svma);
            GroupKey { runs, closure, name, ..key }
        }
    }
}

/// Makes an address comparable between processes, if it is in a file.
pub(super) fn place_of(process: usize, address: Option<CodeAddress>) -> Option<Place> {
    address.map(|address| match (address.object, address.svma) {
        (Some(object), Some(svma)) => Place::File(object, svma),
        _ => Place::Process(process, address.avma),
    })
}

/// Folds digits at the end of a name: `worker-12` becomes `worker-*`, since pools number their threads.
pub(super) fn folded(name: &str) -> String {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() == name.len() { name.to_owned() } else { format!("{stem}*") }
}

/// Returns groups in order of their first threads, each with its members in order.
pub(super) fn collect(analysis: &Analysis, naming: &dyn Naming) -> Vec<(GroupKey, Vec<u32>)> {
    let mut numbers: HashMap<GroupKey, usize> = HashMap::new();
    let mut groups: Vec<(GroupKey, Vec<u32>)> = Vec::new();
    let keys = analysis.threads.iter().map(|thread| group_of(analysis, thread, naming));
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

/// Returns the label of a group, which may not be unique yet.
pub(super) fn label(analysis: &Analysis, key: &GroupKey, sample: &ThreadRow) -> String {
    let executable = &key.program;
    if let Some(role) = &key.role {
        return role.clone();
    }
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

/// Formats a place: `libfoo.so+0x1234`.
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
