//! What threads waited for, and who ended the wait, as observed by the kernel: where, for which lock or file, who
//! held it, and what the thread that woke them was doing.

mod connections;
mod of_objects;
mod path_wait;
mod purpose;
mod python_joins;
mod resolve;
mod shared_words;

use std::collections::{BTreeMap, HashMap};

use chase_recorder::layout::OWN_CONTEXT_REF;
use serde::Serialize;

use crate::address::CodeAddress;
use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::groups::{Groups, ThreadSpan, Unnamed};
use crate::image::Image;

pub use connections::{Connection, Connections};
pub(crate) use connections::{Ends, ends};
pub(crate) use of_objects::{are_untold, object_causes};
pub use path_wait::PathWait;
pub(crate) use purpose::ALLOCATOR;
pub use purpose::Purpose;
pub(crate) use resolve::Run;

/// The maximum number of holders and of wakers in a row.
const MOST_PARTIES: usize = 4;

/// Names for addresses; this crate doesn't read symbols.
pub trait NamingPlaces {
    /// Returns the functions that contain the call before this return address, what was inlined there first.
    fn functions(&self, process: usize, site: &CodeAddress) -> Vec<String>;

    /// Returns the variable at this address.
    fn variable(&self, process: usize, address: &CodeAddress) -> Option<String>;
}

impl NamingPlaces for Unnamed {
    fn functions(&self, _: usize, _: &CodeAddress) -> Vec<String> {
        Vec::new()
    }

    fn variable(&self, _: usize, _: &CodeAddress) -> Option<String> {
        None
    }
}

/// Waits of a group of threads for one thing, in one call at one place.
#[derive(Clone, Debug, Serialize)]
pub struct CauseRow {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// The API, by number in [`Analysis::apis`]; `None` for the threads' own code.
    pub api: Option<u32>,
    /// Return address of the call; `None` if unknown.
    pub site: Option<CodeAddress>,
    /// A process in which the addresses of this row are valid, by number in [`Analysis::processes`].
    #[serde(skip)]
    pub process: usize,
    /// The system call in which they waited, if it was one.
    pub syscall: Option<u32>,
    /// What they waited for.
    pub object: WaitObject,
    /// What a wait there means.
    pub purpose: Purpose,
    /// The number of waits.
    pub waits: u64,
    /// The number of library calls that had to wait for this futex, each counted once however often it waited; 0 for
    /// other waits, and where a companion of an older version watched.
    pub calls: u64,
    /// Their total time, until the threads ran again.
    pub wait_ns: Ns,
    /// The longest.
    pub max_ns: Ns,
    /// The part of the time after the threads had been woken.
    pub ready_ns: Ns,
    /// The number of threads that waited.
    pub threads: usize,
    /// How long each thread waited, longest first.
    #[serde(skip)]
    pub by_thread: Vec<ThreadSpan>,
    /// Who owned the mutex meanwhile, longest first; of very many, some are left out.
    pub holders: Vec<Party>,
    /// Who ended the waits, longest first; of very many, some are left out.
    pub wakers: Vec<Party>,
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum WaitObject {
    /// A lock, a condition, or anything else made of a futex, at this address.
    Memory(CodeAddress),
    /// A lock whose threads wait each at a word of its own, so that its address is not known: by the place in the code where they
    /// wait. Locks of one kind that are waited for at one place are told as one.
    Parked(CodeAddress),
    /// A file, a connection, a pipe.
    File {
        /// Its path or its ends; empty if it was closed before these were read.
        name: String,
    },
    /// Several connections of a server, or to one.
    Connections(Connections),
    /// Unknown, or only time.
    None,
}

/// Who held what others waited for, or ended their waits.
#[derive(Clone, Debug, Serialize)]
pub struct Party {
    /// What kind of party it is.
    pub kind: PartyKind,
    /// The group of threads, by number in [`Groups::rows`], if it belongs to a process of the run.
    pub group: Option<u32>,
    /// Name of another process or thread.
    pub name: String,
    /// The API that it was in, by number in [`Analysis::apis`].
    pub api: Option<u32>,
    /// Return address of that call.
    pub site: Option<CodeAddress>,
    /// A process in which the address is valid.
    #[serde(skip)]
    pub process: usize,
    /// The number of waits.
    pub waits: u64,
    /// Their total time.
    pub wait_ns: Ns,
    /// The threads, by number in [`Analysis::threads`], and their times; longest first.
    #[serde(skip)]
    pub by_thread: Vec<ThreadSpan>,
}

/// Who can end a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PartyKind {
    /// A thread of the run.
    Thread,
    /// Another process.
    Process,
    /// A kernel thread.
    Kernel,
    /// An interrupt: of a device, the network, or a timer.
    Interrupt,
    /// Nobody: the waits timed out.
    Time,
    /// Unknown.
    Unknown,
}

type Key = (u32, Option<u32>, Option<CodeAddress>, Option<u32>, WaitObject, Purpose, Option<usize>);
type PartyKey = (PartyKind, Option<u32>, Option<u32>, Option<CodeAddress>, String, Option<usize>);

#[derive(Default)]
struct PartySums {
    waits: u64,
    wait_ns: u64,
    by_thread: BTreeMap<u32, u64>,
}

#[derive(Default)]
struct Sums {
    process: usize,
    waits: u64,
    calls: u64,
    wait_ns: u64,
    max_ns: u64,
    ready_ns: u64,
    by_thread: BTreeMap<u32, u64>,
    holders: HashMap<PartyKey, PartySums>,
    wakers: HashMap<PartyKey, PartySums>,
}

fn add(sum: &mut u64, value: u64) {
    *sum = sum.saturating_add(value);
}

/// Returns the spans, longest first.
fn spans(by_thread: BTreeMap<u32, u64>) -> Vec<ThreadSpan> {
    let mut spans: Vec<ThreadSpan> =
        by_thread.into_iter().map(|(thread, ns)| ThreadSpan { thread, ns: Ns(ns) }).collect();
    spans.sort_by_key(|span| (std::cmp::Reverse(span.ns), span.thread));
    spans
}

/// Who had a word of memory while others waited for it.
pub(crate) trait Turns {
    /// The part of the time of waits for a word in which a thread had it for which `is_one` is true; `None` if no long wait was seen. The
    /// time until who has got it runs is nobody's.
    fn part_of(&self, word: &LockKey, is_one: &dyn Fn(u32) -> bool) -> Option<f64>;
}

/// Returns all causes of waits, longest first; none if no companion observed them. `images` are those of `analysis`, `turns` those at words of
/// memory.
///
/// Connections that differ only in a port are one row there; the second list has those one by one.
pub(crate) fn causes(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
    naming: &dyn NamingPlaces,
    turns: &dyn Turns,
) -> (Vec<CauseRow>, Vec<CauseRow>) {
    let run = Run::new(images, analysis, groups, naming);
    let mut sums: HashMap<Key, Sums> = HashMap::new();
    for (process, image) in images.iter().enumerate() {
        let Some(file) = &image.syscalls else { continue };
        for row in file.causes() {
            if row.context_ref != OWN_CONTEXT_REF {
                run.add(process, &row, &mut sums);
            }
        }
    }
    let connections = connections::fold(&mut sums);
    (rows(sums, analysis, turns), rows(connections, analysis, turns))
}

/// The longest first.
fn rows(
    sums: impl IntoIterator<Item = (Key, Sums)>,
    analysis: &Analysis,
    turns: &dyn Turns,
) -> Vec<CauseRow> {
    let mut rows: Vec<CauseRow> = sums
        .into_iter()
        .map(|((group, api, site, syscall, object, purpose, _), sums)| CauseRow {
            group,
            api,
            site,
            process: sums.process,
            syscall,
            object,
            purpose,
            waits: sums.waits,
            calls: sums.calls,
            wait_ns: Ns(sums.wait_ns),
            max_ns: Ns(sums.max_ns),
            ready_ns: Ns(sums.ready_ns),
            threads: sums.by_thread.len(),
            by_thread: spans(sums.by_thread),
            holders: parties(sums.holders, sums.process),
            wakers: parties(sums.wakers, sums.process),
        })
        .collect();
    let address = |site: Option<CodeAddress>| site.map(|site| site.avma);
    rows.sort_by(|a, b| {
        let key =
            |row: &CauseRow| (row.group, row.api, address(row.site), row.syscall, row.process);
        (b.wait_ns, key(a)).cmp(&(a.wait_ns, key(b)))
    });
    purpose::find_locks(&mut rows, analysis, turns);
    rows
}

/// `process` is one in which addresses in files are valid.
fn parties(of: HashMap<PartyKey, PartySums>, process: usize) -> Vec<Party> {
    let mut parties: Vec<Party> = of
        .into_iter()
        .map(|((kind, group, api, site, name, own), sums)| Party {
            kind,
            group,
            name,
            api,
            site,
            process: own.unwrap_or(process),
            waits: sums.waits,
            wait_ns: Ns(sums.wait_ns),
            by_thread: spans(sums.by_thread),
        })
        .collect();
    let address = |site: Option<CodeAddress>| site.map(|site| site.avma);
    parties.sort_by(|a, b| {
        (b.wait_ns, a.kind, a.group, a.api, address(a.site), &a.name).cmp(&(
            a.wait_ns,
            b.kind,
            b.group,
            b.api,
            address(b.site),
            &b.name,
        ))
    });
    parties.truncate(MOST_PARTIES);
    parties
}

/// Which lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockKey {
    /// A word of memory: its object and address, and the process where it is in no file; the first of those that share it.
    Word(Option<u32>, u64, Option<usize>),
    /// A file that processes lock (`flock`, `fcntl`), by its path.
    File(String),
}

/// The key of what is waited for, if it is in memory, or a file with a name.
#[must_use]
pub fn lock_key(object: &WaitObject, process: usize) -> Option<LockKey> {
    match object {
        WaitObject::Memory(at) | WaitObject::Parked(at) => {
            let address = at.svma.unwrap_or(at.avma);
            Some(LockKey::Word(at.object, address, at.svma.is_none().then_some(process)))
        }
        WaitObject::File { name } if !name.is_empty() => Some(LockKey::File(name.clone())),
        WaitObject::File { .. } | WaitObject::Connections(_) | WaitObject::None => None,
    }
}
