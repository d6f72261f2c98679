//! Causes of waits in semaphores: their functions' names don't tell whether one is a lock, hands something over, or is how a thread of
//! Python tells that it has ended.

use std::collections::{BTreeMap, HashMap};

use chase_recorder::layout::OWN_CONTEXT_REF;
use chase_recorder::syscalls::CauseRow as Recorded;

use super::purpose::Taking;
use super::shared_words::FUTEX;
use super::{LockKey, NamingPlaces, Run, Turns, add, lock_key};
use crate::analysis::Analysis;
use crate::blocking::Cause;
use crate::groups::Groups;
use crate::image::Image;
use crate::object_causes::ObjectCauses;

/// Whether an API's name does not tell what it waits for.
fn in_semaphore(analysis: &Analysis, api: u32) -> bool {
    let api = analysis.apis.get(api as usize);
    api.is_some_and(|api| api.symbol.starts_with("sem_"))
}

/// Whether there are functions whose name does not tell what they wait for. Most runs have none, and no symbols need to be read then.
pub(crate) fn has_semaphores(analysis: &Analysis) -> bool {
    (0..analysis.apis.len() as u32).any(|api| in_semaphore(analysis, api))
}

/// Finds what waits are for, in such functions.
pub(crate) fn object_causes(
    images: &[Image],
    analysis: &Analysis,
    naming: &dyn NamingPlaces,
    turns: &dyn Turns,
) -> ObjectCauses {
    let groups = Groups { rows: Vec::new(), of_thread: Vec::new() };
    let run = Run::new(images, analysis, &groups, naming);
    let mut waits = Vec::new();
    let mut words: HashMap<LockKey, Taking> = HashMap::new();
    for (process, image) in images.iter().enumerate() {
        let Some(file) = &image.syscalls else { continue };
        for row in file.causes().filter(|row| row.context_ref != OWN_CONTEXT_REF) {
            let (Some(thread), Some(api)) = run.place(process, row.context_ref, row.tid) else {
                continue;
            };
            if !in_semaphore(analysis, api) {
                continue;
            }
            let object = object(&run, process, &row, api);
            if let Object::Word(key) = &object {
                let taking = words.entry(key.clone()).or_default();
                taking.waiting.insert(thread);
                if let Some(ending) = run.waker(&row).1 {
                    taking.end(ending, row.total_ns);
                }
            }
            waits.push(((api, thread), row.total_ns, object));
        }
    }
    let is_lock = |(key, taking): (LockKey, Taking)| {
        let is_lock = taking.is_lock(&key, turns, analysis);
        (key, is_lock)
    };
    let locks: HashMap<LockKey, bool> = words.into_iter().map(is_lock).collect();
    let mut sums: HashMap<(u32, u32), (u64, BTreeMap<Cause, u64>)> = HashMap::new();
    for (place, ns, object) in waits {
        let (all, told) = sums.entry(place).or_default();
        add(all, ns);
        let cause = match object {
            Object::Thread => Some(Cause::Join),
            Object::Word(key) => (!locks[&key]).then_some(Cause::Condition),
            Object::Unknown => None,
        };
        if let Some(cause) = cause {
            add(told.entry(cause).or_default(), ns);
        }
    }
    let part = |(all, told): (u64, BTreeMap<Cause, u64>)| {
        told.into_iter().map(|(cause, ns)| (cause, ns as f64 / all.max(1) as f64)).collect()
    };
    let told = sums.into_iter().filter(|(_, (_, told))| told.values().any(|&ns| ns > 0));
    ObjectCauses(told.map(|(place, sums)| (place, part(sums))).collect())
}

/// What is waited for in a semaphore.
enum Object {
    /// The end of a thread of Python.
    Thread,
    /// The semaphore.
    Word(LockKey),
    Unknown,
}

fn object(run: &Run<'_>, process: usize, row: &Recorded, api: u32) -> Object {
    if run.is_join(process, row) {
        return Object::Thread;
    }
    if row.number != FUTEX {
        return Object::Unknown;
    }
    let object = run.object(process, row, Some(api));
    lock_key(&object, run.process_of(process, row, &object)).map_or(Object::Unknown, Object::Word)
}
