//! What threads waited for, and who ended that, as the kernel saw it: where, for which lock or file, who held it, who woke them
//! doing what.

mod path_wait;
mod purpose;
mod resolve;

use std::collections::{BTreeMap, HashMap};

use chase_recorder::layout::OWN_CONTEXT_REF;
use serde::Serialize;

use crate::address::CodeAddress;
use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::groups::{Groups, ThreadSpan, Unnamed};
use crate::image::Image;

pub use path_wait::PathWait;
pub(crate) use purpose::ALLOCATOR;
pub use purpose::Purpose;
pub(crate) use resolve::Run;

/// Holders and wakers that are told of a row.
const TOLD: usize = 4;

/// Names of what addresses are; symbols are no matter of this crate.
pub trait NamingPlaces {
    /// Functions that the call before this return address is in, what was inlined there first.
    fn functions(&self, process: usize, site: &CodeAddress) -> Vec<String>;

    /// The variable that has this address.
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

/// Waits of a group of threads, in one call at one place, for one thing.
#[derive(Clone, Debug, Serialize)]
pub struct CauseRow {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// The API, by number in [`Analysis::apis`]; `None` for the threads' own code.
    pub api: Option<u32>,
    /// Return address of the call; `None` where it is not known.
    pub site: Option<CodeAddress>,
    /// A process that addresses of this row are of, by number in [`Analysis::processes`].
    #[serde(skip)]
    pub process: usize,
    /// The system call that they waited in, if it was one.
    pub syscall: Option<u32>,
    /// What for.
    pub object: WaitObject,
    /// What it means to wait there.
    pub purpose: Purpose,
    /// Waits.
    pub waits: u64,
    /// Their time, until the threads ran again.
    pub wait_ns: Ns,
    /// The longest.
    pub max_ns: Ns,
    /// The part of the time in which the threads had been woken already.
    pub ready_ns: Ns,
    /// Threads that waited.
    pub threads: usize,
    /// How long each of them did, longest first.
    #[serde(skip)]
    pub by_thread: Vec<ThreadSpan>,
    /// Who owned the mutex meanwhile, longest first; of very many some are left out.
    pub holders: Vec<Party>,
    /// Who ended the waits, longest first; of very many some are left out.
    pub wakers: Vec<Party>,
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum WaitObject {
    /// A lock, a condition, or whatever else is made of a futex, at this address.
    Memory(CodeAddress),
    /// A file, a connection, a pipe.
    File {
        /// Its path or its ends; empty if it was closed before that could be seen.
        name: String,
    },
    /// Not known, or nothing but time.
    None,
}

/// Who held what others waited for, or ended their waits.
#[derive(Clone, Debug, Serialize)]
pub struct Party {
    /// Who that is.
    pub kind: PartyKind,
    /// The group of threads, by number in [`Groups::rows`], where it is of a process of the run.
    pub group: Option<u32>,
    /// Name of another process or thread.
    pub name: String,
    /// The API that it was in, by number in [`Analysis::apis`].
    pub api: Option<u32>,
    /// Return address of that call.
    pub site: Option<CodeAddress>,
    /// A process that the address is of.
    #[serde(skip)]
    pub process: usize,
    /// Waits.
    pub waits: u64,
    /// Their time.
    pub wait_ns: Ns,
    /// Threads that it was, by number in [`Analysis::threads`], with these times; longest first.
    #[serde(skip)]
    pub by_thread: Vec<ThreadSpan>,
}

/// Who may end a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PartyKind {
    /// A thread of the run.
    Thread,
    /// Another process.
    Process,
    /// A thread of the kernel's.
    Kernel,
    /// An interrupt: of a device, of the network, of a timer.
    Interrupt,
    /// Nobody: they had waited as long as they would at most.
    Time,
    /// Not known.
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

/// Longest first.
fn spans(by_thread: BTreeMap<u32, u64>) -> Vec<ThreadSpan> {
    let mut spans: Vec<ThreadSpan> =
        by_thread.into_iter().map(|(thread, ns)| ThreadSpan { thread, ns: Ns(ns) }).collect();
    spans.sort_by_key(|span| (std::cmp::Reverse(span.ns), span.thread));
    spans
}

/// All causes of waits, longest first; empty where no companion has seen them. `images` are those of `analysis`.
#[must_use]
pub fn causes(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
    naming: &dyn NamingPlaces,
) -> Vec<CauseRow> {
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
    purpose::find_locks(&mut rows);
    rows
}

/// `process` is one that addresses in files are of.
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
    parties.truncate(TOLD);
    parties
}
