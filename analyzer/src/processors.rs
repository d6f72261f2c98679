//! How many processors the threads of a run may use: those of the machine, those that they may run on, and what control groups leave
//! them.

use std::collections::HashMap;

use crate::analysis::Analysis;
use crate::clock::Ns;
use crate::image::Image;
use crate::rows::ThreadRow;

/// So much of the time on processors is nearly all of it.
const NEARLY_ALL: f64 = 0.9;

/// As far as a companion observed it.
#[derive(Clone, Debug, Default)]
pub struct Processors {
    /// The number of processors of the machine, if known.
    pub(crate) of_machine: Option<u64>,
    /// Those that threads may run on, by number in [`Analysis::threads`], as far as known.
    of_threads: HashMap<u32, Allowed>,
    /// Whether that is known of nearly all that ran. (Threads that live shortly are not asked.)
    are_known: bool,
    /// The limit that was reached most.
    pub(crate) quota: Option<Quota>,
}

/// Processors that a thread may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Allowed {
    pub(crate) count: u64,
    /// The lowest number of these.
    first: u16,
}

/// The limit of a control group, and how often it was reached.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    /// How many processors it allows at once.
    pub(crate) processors: f64,
    /// Periods in which the group ran.
    pub(crate) periods: u64,
    /// Those of them in which it had to wait for the next.
    pub(crate) spent_periods: u64,
    /// How long it had to wait, summed over processors.
    pub(crate) waited_ns: u64,
    /// The end of its path.
    pub(crate) group: String,
}

impl Processors {
    pub(crate) fn new(images: &[Image], analysis: &Analysis) -> Self {
        let files = || images.iter().filter_map(|image| image.syscalls.as_ref());
        let of_machine = files().map(|file| file.header().processors).max();
        let mut by_id: HashMap<(usize, u32), Allowed> = HashMap::new();
        for (process, image) in images.iter().enumerate() {
            for row in image.syscalls.iter().flat_map(|file| file.on_cpu()) {
                let (count, first) = (u64::from(row.processors), row.first_processor);
                if count > 0 {
                    by_id.insert((process, row.tid), Allowed { count, first });
                }
            }
        }
        let allowed = |row: &ThreadRow| by_id.get(&(row.process, row.tid)).copied();
        let threads = (0..).zip(&analysis.threads);
        let of_threads = threads.filter_map(|(number, row)| Some((number, allowed(row)?)));
        let ran = |row: &ThreadRow| row.on_cpu_ns.map_or(0.0, Ns::as_f64);
        let all: f64 = analysis.threads.iter().map(ran).sum();
        let known: f64 =
            analysis.threads.iter().filter(|row| allowed(row).is_some()).map(ran).sum();
        Self {
            are_known: known >= NEARLY_ALL * all,
            of_machine: of_machine.filter(|&processors| processors > 0),
            of_threads: of_threads.collect(),
            quota: files()
                .filter_map(|file| Quota::of(file.header()))
                .max_by_key(|quota| (quota.waited_ns, quota.spent_periods)),
        }
    }

    /// Returns the number of processors that the run may use: fewer than the machine has if all of its threads may only run on the same
    /// ones. `None` if that is unknown.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        let mut sets = self.of_threads.values();
        let first = sets.next();
        let common = first.filter(|&first| self.are_known && sets.all(|other| other == first));
        match (self.of_machine, common) {
            (Some(machine), Some(common)) => Some(machine.min(common.count)),
            (machine, _) => machine,
        }
    }

    /// Returns the sets of fewer processors than the run may use that some threads may only run on, with these threads.
    pub(crate) fn fewer(&self) -> Vec<(Allowed, Vec<u32>)> {
        let most = self.count().unwrap_or(0);
        let mut sets: Vec<(Allowed, u32)> = self
            .of_threads
            .iter()
            .filter(|(_, allowed)| allowed.count < most)
            .map(|(&thread, &allowed)| (allowed, thread))
            .collect();
        sets.sort_unstable();
        let of_one = sets.chunk_by(|a, b| a.0 == b.0);
        of_one.map(|set| (set[0].0, set.iter().map(|&(_, thread)| thread).collect())).collect()
    }
}

impl Quota {
    /// Returns `None` if the process is under no limit.
    fn of(header: &chase_recorder::syscalls::SyscallsHeader) -> Option<Self> {
        let group = header.quota_group.split(|&byte| byte == 0).next().unwrap_or(&[]);
        (header.quota > 0).then(|| Self {
            processors: header.quota as f64 / 1000.0,
            periods: header.quota_periods,
            spent_periods: header.quota_spent_periods,
            waited_ns: header.quota_waited_ns,
            group: String::from_utf8_lossy(group).into_owned(),
        })
    }

    /// The part of the periods in which the group had to wait for the next.
    pub(crate) fn spent(&self) -> f64 {
        self.spent_periods as f64 / self.periods.max(1) as f64
    }
}
