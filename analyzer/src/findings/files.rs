//! The files that threads wait for, by name.

use std::collections::{BTreeMap, HashMap};

use super::joint::Joint;
use super::{Blame, Evidence};
use crate::causes::{CauseRow, Purpose, WaitObject};
use crate::clock::Ns;
use crate::watched::{FileKind, FileUse};

/// With so many of the samples, it is the file of nearly all calls.
const NEARLY_ALL: f64 = 0.9;

/// Waits for files.
#[derive(Default)]
pub(super) struct Files {
    /// How long each is waited for, longest first. Closed ones have no name.
    pub(super) by_name: Vec<(String, Ns)>,
}

impl Files {
    /// Adds up waits by file. The same file may be known by its path, and by its name alone where the path could not be read.
    pub(super) fn from_waits<'a>(rows: impl Iterator<Item = &'a CauseRow>) -> Self {
        let mut by_name: Vec<(String, Ns)> = Vec::new();
        for row in rows {
            let WaitObject::File { name } = &row.object else { continue };
            match by_name.iter_mut().find(|(known, _)| is_same(known, name)) {
                Some((known, ns)) => {
                    ns.0 = ns.0.saturating_add(row.wait_ns.0);
                    if name.len() > known.len() {
                        known.clone_from(name);
                    }
                }
                None => by_name.push((name.clone(), row.wait_ns)),
            }
        }
        by_name.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Self { by_name }
    }

    /// The part of the waits that the first one has.
    pub(super) fn of_first(&self) -> Option<f64> {
        let all: f64 = self.by_name.iter().map(|(_, ns)| ns.as_f64()).sum();
        let first = self.by_name.first()?.1.as_f64();
        (all > 0.0).then(|| first / all)
    }
}

fn is_same(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let is_name = !short.is_empty() && !short.contains('/');
    a == b || is_name && long.rsplit('/').next() == Some(short)
}

/// Describes a finding about a file, with where it is used, if threads waited there.
pub(super) fn of_file(
    evidence: &Evidence<'_>,
    (group, api): (u32, Option<u32>),
    file: Option<&FileUse>,
    wanted: impl Fn(&CauseRow) -> bool,
) -> Option<Blame> {
    let rows = evidence.causes_of(group).filter(|row| row.api == api && wanted(row));
    let waited: Joint<'_> = rows.collect();
    let blame = waited.blame();
    if file.is_none() && blame.is_none() {
        return None;
    }
    let blame = blame.unwrap_or_default();
    // If threads waited for it, its path is known.
    let first = Files::from_waits(waited.rows.iter().copied()).by_name.into_iter().next();
    let named = first.filter(|(name, _)| file.is_none_or(|file| is_it(file, name)));
    Some(Blame {
        object: named.map(|(name, _)| WaitObject::File { name }),
        file: file.map(|file| file.name.clone()),
        api,
        holder: None,
        waker: None,
        ..blame
    })
}

/// Whether what is waited for may be the file that samples showed.
fn is_it(file: &FileUse, name: &str) -> bool {
    match file.kind {
        FileKind::File => name.rsplit('/').next() == Some(&*file.name),
        FileKind::Pipe => {
            let inode = name.strip_prefix("pipe ").and_then(|inode| inode.parse().ok());
            inode.is_some_and(|inode: u64| file.by_thread.iter().any(|one| one.inode == inode))
        }
        FileKind::Socket => name.starts_with("socket "),
        FileKind::Device | FileKind::Other => false,
    }
}

/// Whether it is a wait in one of these system calls, for a file, a pipe or a connection.
pub(super) fn is_transfer(row: &CauseRow, numbers: &[u32]) -> bool {
    let is_file = matches!(row.purpose, Purpose::File | Purpose::Handover | Purpose::Network);
    is_file && row.syscall.is_some_and(|number| numbers.contains(&number))
}

/// By thread, function and system call: the samples on each kind of file.
pub(super) struct Sampled {
    kinds: HashMap<(u32, Option<u32>, u32), BTreeMap<FileKind, u64>>,
}

impl Sampled {
    pub(super) fn new(evidence: &Evidence<'_>) -> Self {
        let mut kinds: HashMap<_, BTreeMap<FileKind, u64>> = HashMap::new();
        for file in &evidence.watched.files {
            for one in &file.by_thread {
                let key = (one.thread, file.api, file.syscall);
                let sum = kinds.entry(key).or_default().entry(file.kind).or_default();
                *sum = sum.saturating_add(one.samples);
            }
        }
        Self { kinds }
    }

    /// Whether a thread makes nearly all of these system calls on files of this kind. Of what was never sampled, nothing is known.
    pub(super) fn is_of(
        &self,
        thread: u32,
        api: Option<u32>,
        syscall: u32,
        kind: FileKind,
    ) -> bool {
        self.kinds.get(&(thread, api, syscall)).is_some_and(|kinds| {
            let all: f64 = kinds.values().map(|&samples| samples as f64).sum();
            kinds.get(&kind).is_some_and(|&samples| samples as f64 >= NEARLY_ALL * all)
        })
    }
}

/// Returns the file on which threads make nearly all of these system calls in a function, if it is a single one, and whether they are
/// known to be several.
pub(super) fn only_one<'e>(
    evidence: &Evidence<'e>,
    (threads, api, syscall): (&[u32], Option<u32>, u32),
    kind: FileKind,
) -> (Option<&'e FileUse>, bool) {
    let mut samples: BTreeMap<(usize, u64), f64> = BTreeMap::new();
    for (at, file) in evidence.watched.files.iter().enumerate() {
        if (file.api, file.syscall, file.kind) == (api, syscall, kind) {
            for one in file.by_thread.iter().filter(|one| threads.contains(&one.thread)) {
                *samples.entry((at, one.inode)).or_default() += one.samples as f64;
            }
        }
    }
    let all: f64 = samples.values().sum();
    let most = samples.iter().max_by(|a, b| a.1.total_cmp(b.1));
    let only = most.filter(|&(_, &most)| most >= NEARLY_ALL * all);
    (only.map(|(&(at, _), _)| &evidence.watched.files[at]), most.is_some() && only.is_none())
}

/// Returns the file for which a group was sampled most in these system calls.
pub(super) fn most_used<'e>(
    evidence: &Evidence<'e>,
    group: u32,
    numbers: &[u32],
) -> Option<&'e FileUse> {
    let mut files = evidence.watched.files.iter();
    files.find(|file| file.group == group && numbers.contains(&file.syscall))
}
