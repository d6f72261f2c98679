//! Causes of waits whose functions' names don't tell: whether a semaphore is a lock, hands something over, or is how a thread of Python
//! tells that it has ended; and what a runtime calls `futex` itself for, which the place tells.

use std::collections::{BTreeMap, HashMap, HashSet};

use chase_recorder::layout::OWN_CONTEXT_REF;
use chase_recorder::reader::SyscallsFile;
use chase_recorder::syscalls::CauseRow as Recorded;

use super::purpose::Taking;
use super::shared_words::FUTEX;
use super::{LockKey, NamingPlaces, Purpose, Run, Turns, add, lock_key};
use crate::analysis::Analysis;
use crate::blocking::Cause;
use crate::groups::{Groups, Unnamed};
use crate::image::Image;
use crate::object_causes::ObjectCauses;
use crate::wait_causes::{futex_in, futex_outside, of_wait};

/// Where a thread waits: an API, or its own code, and the thread; by number.
type Place = (Option<u32>, u32);

/// Whether an API's name does not tell what it waits for.
fn in_semaphore(analysis: &Analysis, api: u32) -> bool {
    let api = analysis.apis.get(api as usize);
    api.is_some_and(|api| api.symbol.starts_with("sem_"))
}

/// Whether waits of a thread in an API, or in its own code, may be for anything, since it calls `futex` itself there.
fn is_raw(analysis: &Analysis, (api, thread): Place) -> bool {
    let futex = match api {
        Some(api) => analysis.apis.get(api as usize).map(futex_in),
        None => {
            let row = analysis.threads.get(thread as usize);
            row.map(|row| futex_outside(row, &analysis.processes, &analysis.objects))
        }
    };
    futex == Some(Cause::Other)
}

/// The places of a process in which threads call `futex` themselves.
fn raw_places(
    run: &Run<'_>,
    process: usize,
    file: &SyscallsFile,
    analysis: &Analysis,
) -> HashSet<Place> {
    let futexes =
        file.causes().filter(|row| row.number == FUTEX && row.context_ref != OWN_CONTEXT_REF);
    let place = |row: Recorded| {
        let (thread, api) = run.place(process, row.context_ref, row.tid);
        Some((api, thread?)).filter(|&place| is_raw(analysis, place))
    };
    futexes.filter_map(place).collect()
}

/// Whether there are waits of which no function's name tells what they are for. Most runs have none, and no symbols need to be read then.
pub(crate) fn are_untold(images: &[Image], analysis: &Analysis) -> bool {
    if (0..analysis.apis.len() as u32).any(|api| in_semaphore(analysis, api)) {
        return true;
    }
    let groups = Groups { rows: Vec::new(), of_thread: Vec::new() };
    let run = Run::new(images, analysis, &groups, &Unnamed);
    let mut files =
        images.iter().enumerate().filter_map(|(at, image)| Some((at, image.syscalls.as_ref()?)));
    files.any(|(process, file)| !raw_places(&run, process, file, analysis).is_empty())
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
        let raw = raw_places(&run, process, file, analysis);
        for row in file.causes().filter(|row| row.context_ref != OWN_CONTEXT_REF) {
            let (Some(thread), api) = run.place(process, row.context_ref, row.tid) else {
                continue;
            };
            let object = match api {
                _ if raw.contains(&(api, thread)) => object_of_raw(&run, process, &row, api),
                Some(api) if in_semaphore(analysis, api) => object(&run, process, &row, Some(api)),
                _ => continue,
            };
            if let Object::Word(key) = &object {
                let taking = words.entry(key.clone()).or_default();
                taking.waiting.insert(thread);
                if let Some(ending) = run.waker(&row).1 {
                    taking.end(ending, row.total_ns);
                }
            }
            waits.push(((api, thread), row.total_ns.saturating_sub(row.ready_ns), object));
        }
    }
    let is_lock = |(key, taking): (LockKey, Taking)| {
        let is_lock = taking.is_lock(&key, turns, analysis);
        (key, is_lock)
    };
    let locks: HashMap<LockKey, bool> = words.into_iter().map(is_lock).collect();
    let mut sums: HashMap<Place, (u64, BTreeMap<Cause, u64>)> = HashMap::new();
    for (place, ns, object) in waits {
        let (all, told) = sums.entry(place).or_default();
        add(all, ns);
        let cause = match object {
            Object::Told(cause) => Some(cause),
            Object::Word(key) if locks[&key] => Some(Cause::Lock),
            Object::Word(_) => Some(Cause::Condition),
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

/// What is waited for in such a place.
enum Object {
    /// Something that the wait itself tells.
    Told(Cause),
    /// A semaphore, or another word that is handed over.
    Word(LockKey),
    Unknown,
}

fn object(run: &Run<'_>, process: usize, row: &Recorded, api: Option<u32>) -> Object {
    if run.is_join(process, row) {
        return Object::Told(Cause::Join);
    }
    if row.number != FUTEX {
        return Object::Unknown;
    }
    let object = run.object(process, row, api);
    lock_key(&object, run.process_of(process, row, &object)).map_or(Object::Unknown, Object::Word)
}

/// The same where a thread calls `futex` itself.
fn object_of_raw(run: &Run<'_>, process: usize, row: &Recorded, api: Option<u32>) -> Object {
    match run.wait(process, row, api).purpose {
        Purpose::MemoryMap => Object::Told(Cause::Lock),
        Purpose::Stopped => Object::Told(Cause::Other),
        _ if row.number != FUTEX => Object::Told(of_wait(row.number, false, Cause::Other)),
        Purpose::Handover => match object(run, process, row, api) {
            Object::Unknown => Object::Told(Cause::Condition),
            object => object,
        },
        purpose => Object::Told(purpose.of_word()),
    }
}
