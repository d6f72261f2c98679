//! Which recordings belong together: a run is everything that one command started.

use std::collections::HashMap;
use std::path::PathBuf;

use chase_recorder::layout::{END_NONE, Header, ORIGIN_EXEC};

use crate::clock::{Clock, Ns, Ticks};
use crate::error::Failure;
use crate::fold::Files;
use crate::liveness::is_running;
use crate::unrecorded;

/// By how much the end of a process and the start of its child may seem to be reversed.
const SLACK_NS: u64 = 10_000_000;

/// The result of [`scan`](crate::scan).
#[derive(Debug)]
pub struct Catalog {
    /// The runs, newest first; never empty, except for [`scan_since`](crate::scan_since).
    pub runs: Vec<Run>,
    /// Files that are no recordings, or can't be read.
    pub failures: Vec<Failure>,
}

/// The process images that one command started, by start time; the first is the command's own.
#[derive(Clone, Debug)]
pub struct Run {
    /// Never empty.
    pub members: Vec<Member>,
}

impl Run {
    /// Returns the image that the run began with.
    #[must_use]
    pub fn root(&self) -> &Member {
        &self.members[0]
    }

    /// Combines several runs, such as those of a program on many machines; returns `None` if there are none. They are
    /// given newest first, as in a [`Catalog`].
    #[must_use]
    pub fn together(runs: Vec<Self>) -> Option<Self> {
        let mut members = Vec::new();
        for run in runs.into_iter().rev() {
            let before = members.len();
            members.extend(run.members.into_iter().map(|member| Member {
                parent: member.parent.map(|(parent, link)| (before + parent, link)),
                ..member
            }));
        }
        (!members.is_empty()).then_some(Self { members })
    }

    /// Returns the start in ns since 1970.
    #[must_use]
    pub fn start_realtime(&self) -> Ns {
        Ns(self.root().header.clock_start.realtime_ns)
    }
}

/// One recording of a run.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its file.
    pub path: PathBuf,
    /// Its header.
    pub header: Header,
    /// The member that it was forked from or replaced, by index, and which of the two.
    pub parent: Option<(usize, Link)>,
    /// The files from an archive, if it was folded; `path` is then that of the archive with the name in it.
    pub(crate) folded: Option<Files>,
}

/// What makes two images members of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The same process, which replaced its image.
    Exec,
    /// A child of the process.
    Child,
    /// Only the same session and process group, and started while the run's first process lived: some process in
    /// between was not recorded.
    Group,
}

/// A recording that was found, in a file of its own or in an archive.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    pub(crate) folded: Option<Files>,
}

type Boot = [u8; 16];

/// Groups recordings into runs, newest first.
pub(crate) fn group(mut found: Vec<Found>) -> Vec<Run> {
    sort_by_start(&mut found);
    let mut grouping = Grouping::default();
    for one in found {
        grouping.add(one);
    }
    let mut runs = grouping.runs;
    // Runs begin with their first processes, so they are in the order of their starts.
    runs.reverse();
    runs
}

/// Within a boot by the monotonic clock, which can't be set; across boots by the wall clock.
fn sort_by_start(found: &mut [Found]) {
    let mut boots: HashMap<Boot, u64> = HashMap::new();
    for Found { header, .. } in found.iter() {
        let start = header.clock_start;
        let boot = start.realtime_ns.saturating_sub(start.monotonic_ns);
        boots.entry(header.boot_id).and_modify(|first| *first = boot.min(*first)).or_insert(boot);
    }
    found.sort_by_key(|Found { header, .. }| {
        boots[&header.boot_id].saturating_add(header.clock_start.monotonic_ns)
    });
}

#[derive(Default)]
struct Grouping {
    runs: Vec<Run>,
    /// The latest image of each process id: its run and its index there. Processes in different pid namespaces may
    /// have the same id.
    latest: HashMap<(Boot, u32), (usize, usize)>,
    /// The latest image of each process, by its id and start time.
    processes: HashMap<(Boot, u32, u64), (usize, usize)>,
    /// The latest run of each session and process group.
    groups: HashMap<(Boot, u32, u32), usize>,
}

impl Grouping {
    fn add(&mut self, Found { path, header, folded }: Found) {
        let origin = self.origin(&header);
        let run = match origin {
            Some((run, _, _)) => run,
            None => {
                self.runs.push(Run { members: Vec::new() });
                self.runs.len() - 1
            }
        };
        let members = &mut self.runs[run].members;
        let place = members.len();
        let parent = origin.map(|(_, parent, link)| (parent, link));
        members.push(Member { path, header, parent, folded });
        self.latest.insert((header.boot_id, header.pid), (run, place));
        self.processes.insert((header.boot_id, header.pid, header.process_start), (run, place));
        self.groups.insert((header.boot_id, header.session, header.process_group), run);
    }

    /// Returns the run and the member that an image was forked from or replaced.
    fn origin(&self, header: &Header) -> Option<(usize, usize, Link)> {
        let start = Ns(header.clock_start.monotonic_ns);
        let process =
            |pid, start| self.processes.get(&(header.boot_id, pid, start)).filter(|_| start != 0);
        if header.origin == ORIGIN_EXEC
            && let Some(&(run, member)) = process(header.pid, header.process_start)
        {
            return Some((run, member, Link::Exec));
        }
        if let Some(&(run, member)) = process(header.parent_pid, header.parent_start) {
            return Some((run, member, Link::Child));
        }
        if unrecorded::is_exec(header) {
            // Only the process id shows that it is the same process.
            let same_process = self.latest.get(&(header.boot_id, header.pid))?;
            return Some((same_process.0, same_process.1, Link::Exec));
        }
        let parent = self.latest.get(&(header.boot_id, header.parent_pid));
        if let Some(&(run, member)) = parent.filter(|&&at| lives_at(self.member(at), start)) {
            return Some((run, member, Link::Child));
        }
        let group = (header.boot_id, header.session, header.process_group);
        let run = match self.groups.get(&group) {
            Some(&run) => run,
            // Without a recording, the group is unknown: it is added to the latest run under way.
            None if unrecorded::is_header_of(header) => self.runs.len().checked_sub(1)?,
            None => return None,
        };
        // The process may have replaced its image: the latest image knows when it ended.
        let root = self.runs[run].root();
        let &last = self.latest.get(&(root.header.boot_id, root.header.pid))?;
        let lived = last.0 == run && outlived(self.member(last), start);
        lived.then_some((run, 0, Link::Group))
    }

    fn member(&self, (run, place): (usize, usize)) -> &Member {
        &self.runs[run].members[place]
    }
}

/// Whether the process is not known to have ended by then.
fn lives_at(member: &Member, moment: Ns) -> bool {
    end_of(member).is_none_or(|end| end.0.saturating_add(SLACK_NS) >= moment.0)
}

/// Whether the process is known to have still been alive.
fn outlived(member: &Member, moment: Ns) -> bool {
    let latest = Ns(member.header.clock_latest.monotonic_ns);
    end_of(member).unwrap_or(latest) >= moment || is_running(&member.header)
}

fn end_of(member: &Member) -> Option<Ns> {
    let header = &member.header;
    // For a process without a recording, only the time is known.
    let is_known = header.end_kind != END_NONE || header.end_ticks != 0;
    is_known.then(|| Clock::new(header).monotonic(Ticks(header.end_ticks)))
}
