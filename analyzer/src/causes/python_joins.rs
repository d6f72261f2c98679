//! Waits for the end of a thread of Python.
//!
//! CPython joins by a lock of the thread, which is released when the thread is about to end. That is a semaphore, like any lock of the
//! program. But a thread releases it once, and then ends; and where the compiler has put what releases other locks elsewhere, each thread
//! does so once at that place. Every thread also releases another lock, for whoever waits for its start: so where these places are one,
//! most threads release two locks there, and nothing is said to be a join.

use std::collections::{HashMap, HashSet};

use chase_recorder::syscalls::{CauseRow as Recorded, NO_CAUSE, WAKER_THREAD};

use crate::common_time::CommonTime;
use crate::image::Image;
use crate::spans::{Span, common_ns};

/// The function of CPython that releases a lock, and those of the program's locks, into which it may be inlined.
const RELEASES: &str = "PyThread_release_lock";
const OF_PROGRAM: &[&str] = &["lock_PyThread_release_lock", "lock_release", "rlock_release"];
/// After the lock is released, a thread hardly runs: most end within this time, not counting that in which it is held up: others have the
/// processor, or the interpreter's lock.
const MOST_END_WITHIN_NS: u64 = 1_000_000;
/// The others, which are held up where nobody sees it, as by the host of a virtual machine, end within this time.
const ENDS_WITHIN_NS: u64 = 50_000_000;

/// What is known of a process.
pub(super) trait Known {
    /// The function that a thread waits in.
    fn symbol(&self, process: usize, row: &Recorded) -> Option<&str>;
    /// The functions at a return address, what was inlined first.
    fn functions(&self, process: usize, avma: u64) -> Vec<String>;
    /// When a thread ended.
    fn end_ns(&self, process: usize, tid: u32) -> Option<u64>;
}

/// Who waited for which word of memory, until which thread woke it.
pub(super) type Join = (u32, u64, u32);

pub(super) fn join(row: &Recorded) -> Join {
    (row.tid, row.object, row.waker)
}

/// Finds the joins among the long waits of a process. Times are put on the clock of the run, which starts at `start`.
pub(super) fn find(
    run: &dyn Known,
    image: (usize, &Image),
    (time, start): (&CommonTime, u64),
) -> HashSet<Join> {
    let (process, image) = image;
    let Some(file) = &image.syscalls else { return HashSet::new() };
    let causes: Vec<Recorded> = file.causes().collect();
    let in_semaphore = |row: &Recorded| {
        row.waker_kind == WAKER_THREAD
            && row.waker_site != 0
            && run.symbol(process, row).is_some_and(|symbol| symbol.starts_with("sem_"))
    };
    let mut by_place: HashMap<u64, HashMap<u32, u64>> = HashMap::new();
    for row in causes.iter().filter(|row| in_semaphore(row)) {
        let waits = by_place.entry(row.waker_site).or_default().entry(row.waker).or_default();
        *waits = waits.saturating_add(row.waits);
    }
    let releases_once = |(site, wakers): (u64, HashMap<u32, u64>)| {
        let is_once = || {
            let functions = run.functions(process, site);
            functions.iter().any(|name| name == RELEASES)
                && !functions.iter().any(|name| OF_PROGRAM.contains(&&**name))
        };
        (wakers.values().all(|&waits| waits == 1) && is_once()).then_some(site)
    };
    let places: HashSet<u64> = by_place.into_iter().filter_map(releases_once).collect();
    let since = |ns: u64| time.of_monotonic(image, ns).0.saturating_sub(start);
    let mut held_up: HashMap<u32, Vec<Span>> = HashMap::new();
    for long in file.blocked() {
        let row = causes.get(long.cause as usize).filter(|row| row.tid == long.tid);
        // Waits for the interpreter's lock, or for another thread to take it, are by a condition.
        let is_for_interpreter = |row: &Recorded| {
            run.symbol(process, row).is_some_and(|symbol| symbol.starts_with("pthread_cond_"))
        };
        let from = match row {
            Some(row) if is_for_interpreter(row) => long.begin_ns,
            Some(_) if long.woken_ns != 0 => long.woken_ns,
            None if long.cause == NO_CAUSE => long.begin_ns,
            _ => continue,
        };
        held_up.entry(long.tid).or_default().push((since(from), since(long.end_ns)));
    }
    held_up.values_mut().for_each(|spans| spans.sort_unstable());
    let mut released: HashMap<u64, Vec<(Join, u64)>> = HashMap::new();
    for long in file.blocked() {
        let row = causes.get(long.cause as usize).filter(|row| row.tid == long.tid);
        let row = row.filter(|row| places.contains(&row.waker_site) && in_semaphore(row));
        let Some(row) = row.filter(|_| long.woken_ns != 0) else { continue };
        let woken_ns = since(long.woken_ns);
        let left_ns = match run.end_ns(process, row.waker) {
            Some(end) if end >= woken_ns => {
                let spans = held_up.get(&row.waker).map_or(&[][..], Vec::as_slice);
                (end - woken_ns).saturating_sub(common_ns(spans, (woken_ns, end)))
            }
            _ => u64::MAX,
        };
        released.entry(row.waker_site).or_default().push((join(row), left_ns));
    }
    released.into_values().flat_map(ending).collect()
}

/// Returns the joins among what was released at one place, each with what was left for the thread to do, in ns: all whose threads ended
/// soon, where most did so at once.
fn ending(released: Vec<(Join, u64)>) -> Vec<Join> {
    let within = |most_ns| released.iter().filter(move |(_, left_ns)| *left_ns <= most_ns);
    if 2 * within(MOST_END_WITHIN_NS).count() <= released.len() {
        return Vec::new();
    }
    within(ENDS_WITHIN_NS).map(|(join, _)| *join).collect()
}

#[cfg(test)]
mod tests {
    use super::ending;

    const AT_ONCE: u64 = 30_000;
    const DELAYED: u64 = 7_000_000;
    const MUCH_LATER: u64 = 400_000_000;

    fn joins(left_ns: &[u64]) -> usize {
        let released = left_ns.iter().enumerate().map(|(n, ns)| ((1, 2, n as u32), *ns));
        ending(released.collect()).len()
    }

    #[test]
    fn a_thread_may_be_delayed_on_its_way_to_its_end() {
        assert_eq!(joins(&[AT_ONCE, DELAYED, AT_ONCE]), 3);
    }

    #[test]
    fn where_most_go_on_are_no_joins() {
        assert_eq!(joins(&[AT_ONCE, DELAYED]), 0);
        assert_eq!(joins(&[MUCH_LATER, DELAYED, AT_ONCE]), 0);
        assert_eq!(joins(&[AT_ONCE]), 1);
        assert_eq!(joins(&[DELAYED]), 0);
    }

    #[test]
    fn who_goes_on_for_long_is_not_joined() {
        assert_eq!(joins(&[AT_ONCE, AT_ONCE, MUCH_LATER]), 2);
    }
}
