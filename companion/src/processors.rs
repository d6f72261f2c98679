//! How many processors threads may use: those that they may run on, and the share of time that their control groups leave them.
//!
//! A control group's limit is a time in each period: `cpu.max`, or `cpu.cfs_quota_us` in the older hierarchy. Once its threads have used
//! that up, all of them wait for the next period, on however many processors. `cpu.stat` counts how often that happened.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use chase_format::syscalls::{QUOTA_GROUP, SyscallsHeader};
use rustix::thread::{CpuSet, Pid, sched_getaffinity};

/// The processors that a thread may run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// How many.
    pub processors: u16,
    /// The lowest number of these.
    pub first: u16,
}

impl Allowed {
    /// Asks for those of a thread; `None` if it has ended, or there are more than can be asked for.
    #[must_use]
    pub fn of(thread: u32) -> Option<Self> {
        let set = sched_getaffinity(Some(Pid::from_raw(thread as i32)?)).ok()?;
        let first = (0..CpuSet::MAX_CPU).find(|&number| set.is_set(number))?;
        Some(Self { processors: u16::try_from(set.count()).ok()?, first: first as u16 })
    }
}

/// The control groups that limit processes.
#[derive(Debug, Default)]
pub struct ControlGroups {
    /// Read when first needed.
    hierarchies: Option<Vec<Hierarchy>>,
    /// By what `/proc/PID/cgroup` says, as of this round.
    known: HashMap<Vec<u8>, Option<Rc<Limit>>>,
}

/// Where control groups with limits of processor time are.
#[derive(Debug)]
struct Hierarchy {
    /// Whether it is the unified one (version 2).
    is_unified: bool,
    /// The group whose directory is at `place`.
    root: PathBuf,
    place: PathBuf,
}

/// The limit of a control group.
#[derive(Debug)]
struct Limit {
    group: PathBuf,
    directory: PathBuf,
    thousandths: u64,
}

/// The limit of a process, and how it has been used before.
#[derive(Debug)]
pub struct Quota {
    limit: Rc<Limit>,
    before: Use,
}

/// How often, and how long, a group had to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Use {
    periods: u64,
    spent_periods: u64,
    waited_ns: u64,
}

impl ControlGroups {
    /// Returns the tightest limit that a process is under; `None` if there is none, or the process has ended.
    pub fn quota_of(&mut self, process: u32) -> Option<Quota> {
        let text = fs::read(format!("/proc/{process}/cgroup")).ok()?;
        let limit = match self.known.get(&text) {
            Some(limit) => limit.clone(),
            None => {
                let hierarchies = self.hierarchies.get_or_insert_with(|| {
                    hierarchies(&fs::read("/proc/self/mountinfo").unwrap_or_default())
                });
                let limit = tightest(hierarchies, &text).map(Rc::new);
                self.known.insert(text, limit.clone());
                limit
            }
        }?;
        let before = limit.used()?;
        Some(Quota { limit, before })
    }

    /// Ends a round: limits may change, and groups be made anew.
    pub fn forget(&mut self) {
        self.known.clear();
    }
}

impl Quota {
    /// Writes the limit, and how it has been used since.
    pub fn describe(&self, header: &mut SyscallsHeader) {
        // (The group may be gone already.)
        let Some(now) = self.limit.used() else { return };
        header.quota = self.limit.thousandths;
        header.quota_periods = now.periods.saturating_sub(self.before.periods);
        header.quota_spent_periods = now.spent_periods.saturating_sub(self.before.spent_periods);
        header.quota_waited_ns = now.waited_ns.saturating_sub(self.before.waited_ns);
        header.quota_group = end_of(self.limit.group.as_os_str().as_bytes());
    }
}

impl Limit {
    fn used(&self) -> Option<Use> {
        Some(parse_stat(&fs::read_to_string(self.directory.join("cpu.stat")).ok()?))
    }
}

/// Returns the end of a path that fits, with a NUL behind it.
fn end_of(path: &[u8]) -> [u8; QUOTA_GROUP] {
    let mut text = [0; QUOTA_GROUP];
    let end = &path[path.len().saturating_sub(QUOTA_GROUP - 1)..];
    text[..end.len()].copy_from_slice(end);
    text
}

/// Finds the hierarchies in `/proc/self/mountinfo`.
fn hierarchies(mounts: &[u8]) -> Vec<Hierarchy> {
    let text = String::from_utf8_lossy(mounts);
    let one = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, place) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1)?);
        let is_unified = kind == "cgroup2";
        let is_wanted = is_unified || kind == "cgroup" && options.split(',').any(|it| it == "cpu");
        is_wanted.then(|| Hierarchy { is_unified, root: root.into(), place: place.into() })
    };
    text.lines().filter_map(one).collect()
}

/// Finds the tightest limit of the groups that `/proc/PID/cgroup` names, and those above them.
fn tightest(hierarchies: &[Hierarchy], text: &[u8]) -> Option<Limit> {
    let mut found: Option<Limit> = None;
    for line in text.split(|&byte| byte == b'\n') {
        let mut fields = line.splitn(3, |&byte| byte == b':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let is_unified = controllers.is_empty();
        if !is_unified && !controllers.split(|&byte| byte == b',').any(|it| it == b"cpu") {
            continue;
        }
        let group = Path::new(OsStr::from_bytes(group));
        for hierarchy in hierarchies.iter().filter(|one| one.is_unified == is_unified) {
            let Ok(below) = group.strip_prefix(&hierarchy.root) else { continue };
            if below.starts_with("..") {
                // Out of what can be seen here.
                continue;
            }
            for at in below.ancestors() {
                let directory = hierarchy.place.join(at);
                let Some(thousandths) = limit_in(&directory) else { continue };
                if found.as_ref().is_none_or(|found| thousandths < found.thousandths) {
                    found = Some(Limit { group: hierarchy.root.join(at), directory, thousandths });
                }
            }
        }
    }
    found
}

/// Reads the limit of the group in a directory, in thousandths of a processor.
fn limit_in(directory: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text.split_once(' ')?;
            (number(quota)?, number(period)?)
        }
        // (-1: no limit.)
        None => (number(&read("cpu.cfs_quota_us")?)?, number(&read("cpu.cfs_period_us")?)?),
    };
    quota.checked_mul(1000)?.checked_div(period).filter(|&thousandths| thousandths > 0)
}

/// Parses a `cpu.stat`, of either version.
fn parse_stat(text: &str) -> Use {
    let mut used = Use::default();
    for (name, value) in text.lines().filter_map(|line| line.split_once(' ')) {
        let Ok(value) = value.trim().parse::<u64>() else { continue };
        match name {
            "nr_periods" => used.periods = value,
            "nr_throttled" => used.spent_periods = value,
            "throttled_time" => used.waited_ns = value,
            "throttled_usec" => used.waited_ns = value.saturating_mul(1000),
            _ => {}
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Allowed, Use, hierarchies, parse_stat, tightest};

    #[test]
    fn this_thread_may_run_somewhere() {
        assert!(Allowed::of(std::process::id()).expect("it lives").processors > 0);
        assert_eq!(Allowed::of(u32::MAX >> 1), None);
    }

    #[test]
    fn hierarchies_are_found() {
        let mounts = b"29 23 0:25 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n\
            30 24 0:27 /docker/1 /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
            31 24 0:28 / /sys/fs/cgroup/cpuset rw shared:10 - cgroup cgroup rw,cpuset\n\
            22 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
        let found = hierarchies(mounts);
        let places: Vec<_> = found.iter().map(|one| one.place.to_string_lossy()).collect();
        assert_eq!(places, ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu,cpuacct"]);
        assert_eq!(found.iter().map(|one| one.is_unified).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn the_tightest_limit_counts() {
        let place = tempfile::TempDir::new().expect("a directory");
        let inner = place.path().join("pod/app");
        fs::create_dir_all(&inner).expect("made");
        fs::write(inner.join("cpu.max"), "max 100000\n").expect("written");
        fs::write(place.path().join("pod/cpu.max"), "150000 100000\n").expect("written");
        let mounts = format!("29 23 0:25 / {} rw - cgroup2 cgroup2 rw\n", place.path().display());
        let all = hierarchies(mounts.as_bytes());
        let found = tightest(&all, b"0::/pod/app\n").expect("limited");
        assert_eq!((found.thousandths, found.group.to_str()), (1500, Some("/pod")));
        fs::write(inner.join("cpu.max"), "5000 10000\n").expect("written");
        let found = tightest(&all, b"5:memory:/x\n0::/pod/app\n").expect("limited");
        assert_eq!((found.thousandths, found.group.to_str()), (500, Some("/pod/app")));
        assert!(tightest(&all, b"0::/\n").is_none());
        assert!(tightest(&all, b"0::/../..\n").is_none());
    }

    #[test]
    fn the_older_hierarchy_has_limits_too() {
        let place = tempfile::TempDir::new().expect("a directory");
        let write =
            |name: &str, text: &str| fs::write(place.path().join(name), text).expect("written");
        write("cpu.cfs_quota_us", "-1\n");
        write("cpu.cfs_period_us", "100000\n");
        let mounts = format!(
            "30 24 0:27 /docker/1 {} rw - cgroup cgroup rw,cpu,cpuacct\n",
            place.path().display()
        );
        let all = hierarchies(mounts.as_bytes());
        let text = b"4:cpuacct,cpu:/docker/1\n3:cpuset:/docker/1\n";
        assert!(tightest(&all, text).is_none());
        write("cpu.cfs_quota_us", "25000\n");
        assert_eq!(tightest(&all, text).expect("limited").thousandths, 250);
        assert!(tightest(&all, b"4:cpuacct,cpu:/docker/2\n").is_none());
    }

    #[test]
    fn both_kinds_of_stat_are_read() {
        let expected = Use { periods: 20, spent_periods: 19, waited_ns: 1_500_000_000 };
        let older = "nr_periods 20\nnr_throttled 19\nthrottled_time 1500000000\n";
        assert_eq!(parse_stat(older), expected);
        let newer = "usage_usec 9\nnr_periods 20\nnr_throttled 19\nthrottled_usec 1500000\n";
        assert_eq!(parse_stat(newer), expected);
    }
}
