//! What only a companion observes, with names: why threads wait, and which files they use.

use std::collections::{BTreeMap, HashMap};

use chase_recorder::layout::OWN_CONTEXT_REF;
use serde::Serialize;

use crate::analysis::Analysis;
use crate::called_back::{CalledBack, called_back};
use crate::causes::{CauseRow, NamingPlaces, Run, causes};
use crate::ends::{LateThread, late_threads};
use crate::event_loops::{EventLoop, event_loops};
use crate::groups::Groups;
use crate::image::Image;
use crate::long_waits::{OffCpuTimes, long_waits};
use crate::processors::Processors;
use crate::slow_start::{SlowStart, slow_starts};
use crate::turns::TurnsAt;
use crate::uneven::{UnevenWork, uneven_work};

/// Empty if the run was not observed by a companion.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Why threads waited, longest first.
    pub causes: Vec<CauseRow>,
    /// Of connections that are one row there, each by itself.
    pub(crate) connections: Vec<CauseRow>,
    /// Files by the samples in system calls on them, most first.
    pub files: Vec<FileUse>,
    /// Event loops of threads, those first that are held up longest.
    pub event_loops: Vec<EventLoop>,
    /// Work that was divided unevenly over the threads of a group.
    pub uneven: Vec<UnevenWork>,
    /// Threads that end long after others that were started with them.
    pub late: Vec<LateThread>,
    /// Libraries that take their time before the program runs, the slowest first. Their calls are known without a companion, too.
    pub slow_starts: Vec<SlowStart>,
    /// What functions of libraries call back, where that takes most of the time of their calls.
    pub called_back: Vec<CalledBack>,
    /// The long times off the CPU by thread of the analysis; `None` if there are none, or if some are missing.
    pub(crate) times: Option<Vec<OffCpuTimes>>,
    /// How many processors the threads may use.
    pub processors: Processors,
}

/// How often threads of a group were sampled in a system call on a file.
#[derive(Clone, Debug, Serialize)]
pub struct FileUse {
    /// The group, by number in [`Groups::rows`].
    pub group: u32,
    /// The API, by number in [`Analysis::apis`]; `None` for the threads' own code.
    pub api: Option<u32>,
    /// Number of the system call.
    pub syscall: u32,
    /// What kind of file.
    pub kind: FileKind,
    /// Its name without the directory; empty if it has none.
    pub name: String,
    /// The number of samples.
    pub samples: u64,
    /// The part of them in the file that has most: others may have the same name in other directories.
    pub of_one: u64,
    /// The same by thread and file: several may have one name, or none.
    #[serde(skip)]
    pub(crate) by_thread: Vec<FileSamples>,
}

/// How often one thread was sampled in a system call on one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileSamples {
    /// The thread, by number in [`Analysis::threads`].
    pub(crate) thread: u32,
    /// Inode number.
    pub(crate) inode: u64,
    /// The number of samples.
    pub(crate) samples: u64,
}

/// Kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A terminal or another device.
    Device,
    /// Something else, for example what events are read from.
    Other,
}

impl FileKind {
    fn from_mode(mode: u32) -> Self {
        match mode & 0o170_000 {
            0o100_000 => Self::File,
            0o010_000 => Self::Pipe,
            0o140_000 => Self::Socket,
            0o020_000 | 0o060_000 => Self::Device,
            _ => Self::Other,
        }
    }
}

impl Watched {
    /// Returns what was observed of `images`, which are those of `analysis`.
    #[must_use]
    pub fn new(
        images: &[Image],
        analysis: &Analysis,
        groups: &Groups,
        naming: &dyn NamingPlaces,
    ) -> Self {
        let times = long_waits(images, analysis, groups, naming);
        let (causes, connections) = causes(images, analysis, groups, naming, &TurnsAt::new(&times));
        let files = images.iter().filter_map(|image| image.syscalls.as_ref());
        let is_lost = files.map(|file| file.header().lost_blocked).any(|lost| lost > 0);
        let has_waits = |own: &OffCpuTimes| !own.waits.is_empty();
        let late = late_threads(images, analysis, groups, naming, &times);
        let event_loops = event_loops(images, analysis, groups, naming, &times);
        let processors = Processors::new(images, analysis);
        let count = processors.count();
        let uneven = uneven_work(images, analysis, groups, naming, &causes, &times, count);
        Self {
            causes,
            connections,
            files: files_used(images, analysis, groups, naming),
            event_loops,
            uneven,
            late,
            slow_starts: slow_starts(images, analysis, groups),
            called_back: called_back(images, analysis, groups),
            times: Some(times).filter(|times| !is_lost && times.iter().any(has_waits)),
            processors,
        }
    }
}

/// Samples by thread and inode number.
type ByFile = BTreeMap<(u32, u64), u64>;

/// Those of all threads in the file that has most of them; numbers of files are those of the process.
fn of_one_file(analysis: &Analysis, of: &ByFile) -> u64 {
    let mut sums: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    for (&(thread, inode), samples) in of {
        let sum = sums.entry((analysis.threads[thread as usize].process, inode)).or_default();
        *sum = sum.saturating_add(*samples);
    }
    sums.into_values().max().unwrap_or(0)
}

fn files_used(
    images: &[Image],
    analysis: &Analysis,
    groups: &Groups,
    naming: &dyn NamingPlaces,
) -> Vec<FileUse> {
    let run = Run::new(images, analysis, groups, naming);
    let mut sums: HashMap<(u32, Option<u32>, u32, FileKind, String), ByFile> = HashMap::new();
    for (process, image) in images.iter().enumerate() {
        let rows = image.syscalls.iter().flat_map(|file| file.files());
        for row in rows.filter(|row| row.context_ref != OWN_CONTEXT_REF) {
            let (Some(thread), api) = run.place(process, row.context_ref, row.tid) else {
                continue;
            };
            let Some(&group) = groups.of_thread.get(thread as usize) else { continue };
            let name = row.name.split(|&byte| byte == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            let key = (group, api, row.number, FileKind::from_mode(row.mode), name);
            let sum = sums.entry(key).or_default().entry((thread, row.inode)).or_default();
            *sum = sum.saturating_add(row.samples);
        }
    }
    let mut rows: Vec<FileUse> = sums
        .into_iter()
        .map(|((group, api, syscall, kind, name), of)| FileUse {
            group,
            api,
            syscall,
            kind,
            name,
            of_one: of_one_file(analysis, &of),
            samples: of.values().fold(0, |sum: u64, &more| sum.saturating_add(more)),
            by_thread: of
                .into_iter()
                .map(|((thread, inode), samples)| FileSamples { thread, inode, samples })
                .collect(),
        })
        .collect();
    rows.sort_by(|a, b| {
        let key = |row: &FileUse| (row.group, row.api, row.syscall, row.kind, row.name.clone());
        b.samples.cmp(&a.samples).then_with(|| key(a).cmp(&key(b)))
    });
    rows
}
