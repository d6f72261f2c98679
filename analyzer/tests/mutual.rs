//! Threads that wait for each other, as a companion sees it.

mod pool;
mod process;

use chase_analyzer::FindingKind;
use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::syscalls::{BlockedRow, CauseRow, WAIT_PREEMPTED, WAKER_THREAD};
use pool::{MS, Outcome, Pool};

const FUTEX: u32 = 202;
const WORKERS: usize = 4;

/// Waits of one worker that another one ended.
struct Waits {
    of: usize,
    ended_by: usize,
    ms: u64,
    longest_ms: u64,
}

/// Workers that each wait at a condition of their own for 300 ms of 400 ms.
struct Scene {
    pool: Pool,
    workers: Vec<ThreadId>,
    /// How long others have the processor of each of them.
    preempted_ms: u64,
}

impl Scene {
    fn new() -> Self {
        let (mut pool, mut workers) = (Pool::new(), Vec::new());
        pool.workers(WORKERS, |pool, _, thread| {
            pool.call(thread, pool.condition, 10 * MS, 30);
            pool.call(thread, pool.lock, 4 * MS, 20);
            pool.call(thread, pool.work, MS, 20);
            workers.push(thread);
        });
        Self { pool, workers, preempted_ms: 0 }
    }

    /// What is found if the waits of workers, by number, were these; and those for a lock that another one has.
    fn finish(self, waits: &[Waits], for_lock: &[Waits]) -> Outcome {
        let pid = self.pool.process.builder.header.pid;
        let (workers, preempted_ms) = (self.workers, self.preempted_ms);
        self.pool.finish_seen(|refs| {
            let mut seen = SyscallsBuilder::new(pid);
            let tid = |number: usize| pid + workers[number].0;
            let context = |number: usize, at: usize| refs[workers[number].0 as usize][1 + at];
            for (waits, is_lock) in
                waits.iter().map(|waits| (waits, false)).chain(for_lock.iter().map(|w| (w, true)))
            {
                let began_ns = seen.header.began_ns;
                seen.cause(CauseRow {
                    context_ref: context(waits.of, usize::from(is_lock)),
                    tid: tid(waits.of),
                    number: FUTEX,
                    object: if is_lock { 0x9000 } else { 0x1000 * (1 + waits.of as u64) },
                    holder: if is_lock { tid(waits.ended_by) } else { 0 },
                    waker_kind: WAKER_THREAD,
                    waker: tid(waits.ended_by),
                    waker_pid: pid,
                    waker_began_ns: began_ns,
                    waits: 20,
                    total_ns: waits.ms * MS,
                    max_ns: waits.longest_ms * MS,
                    ..bytemuck::Zeroable::zeroed()
                });
            }
            for worker in workers.iter().filter(|_| preempted_ms > 0) {
                let (root, tid) = (refs[worker.0 as usize][0], pid + worker.0);
                seen.wait(root, tid, WAIT_PREEMPTED, 1, preempted_ms * MS);
                seen.on_cpu(tid, 100 * MS);
            }
            // (Long waits are known.)
            let (tid, begin_ns) = (tid(waits[0].of), seen.header.began_ns + MS);
            let end_ns = begin_ns + 9 * MS;
            seen.blocked(BlockedRow { cause: 0, tid, begin_ns, woken_ns: end_ns, end_ns });
            seen
        })
    }
}

fn waits(of: usize, ended_by: usize, ms: u64) -> Waits {
    Waits { of, ended_by, ms, longest_ms: ms / 10 }
}

/// Each one waits for the next.
fn in_turn() -> Vec<Waits> {
    (0..WORKERS).map(|of| waits(of, (of + 1) % WORKERS, 300)).collect()
}

fn mutual(outcome: &Outcome) -> Option<&FindingKind> {
    let mut kinds = outcome.findings.iter().map(|finding| &finding.kind);
    kinds.find(|kind| matches!(kind, FindingKind::MutualWaits { .. }))
}

/// One of them runs Ruby at a time, and which of their conditions is for that is not known.
#[test]
fn threads_of_ruby_have_to_wait_for_each_other() {
    let of = |library| {
        let mut scene = Scene::new();
        scene.pool.start_in(library, &scene.workers);
        mutual(&scene.finish(&in_turn(), &[])).is_some()
    };
    assert!(of("/lib/libpool.so.1"));
    assert!(!of("/usr/lib/libruby-3.1.so.3.1") && !of("/usr/bin/ruby3.1"));
}

#[test]
fn threads_that_take_turns_wait_for_each_other() {
    let outcome = Scene::new().finish(&in_turn(), &[]);
    let Some(FindingKind::MutualWaits { wait_ns, all_wait_ns, of_threads, of_lifetime }) =
        mutual(&outcome)
    else {
        panic!("{:#?}", outcome.findings)
    };
    assert_eq!((wait_ns.0, all_wait_ns.0, *of_threads), (300 * MS, 1_200 * MS, WORKERS));
    assert!((of_lifetime - 0.75).abs() < 0.01, "{of_lifetime}");
}

#[test]
fn a_wait_for_a_processor_is_no_life() {
    let turns = || (0..WORKERS).map(|of| waits(of, (of + 1) % WORKERS, 180)).collect::<Vec<_>>();
    let outcome = Scene::new().finish(&turns(), &[]);
    assert!(mutual(&outcome).is_none(), "{:#?}", outcome.findings);
    let crowded = Scene { preempted_ms: 100, ..Scene::new() };
    let outcome = crowded.finish(&turns(), &[]);
    let Some(FindingKind::MutualWaits { of_lifetime, .. }) = mutual(&outcome) else {
        panic!("{:#?}", outcome.findings)
    };
    assert!((of_lifetime - 0.6).abs() < 0.01, "{of_lifetime}");
}

#[test]
fn one_thread_that_wakes_most_others_gives_them_work() {
    let mut all = vec![waits(0, 1, 300)];
    for (of, next) in [(1, 2), (2, 3), (3, 1)] {
        all.push(waits(of, 0, 270));
        all.push(waits(of, next, 30));
    }
    let outcome = Scene::new().finish(&all, &[]);
    assert!(mutual(&outcome).is_none(), "{:#?}", outcome.findings);
}

/// Threads of a pool that has nothing to do for most of the time, and tell each other in the end that all is over.
#[test]
fn one_long_wait_each_is_no_turn() {
    let idle = |waits: Waits| Waits { longest_ms: waits.ms - 40, ..waits };
    let outcome =
        Scene::new().finish(&in_turn().into_iter().map(idle).collect::<Vec<Waits>>(), &[]);
    assert!(mutual(&outcome).is_none(), "{:#?}", outcome.findings);
}

#[test]
fn a_lock_that_they_wait_for_says_it_better() {
    let for_lock: Vec<Waits> =
        (0..WORKERS).map(|of| waits(of, (of + WORKERS - 1) % WORKERS, 70)).collect();
    let outcome = Scene::new().finish(&in_turn(), &for_lock);
    let kinds: Vec<&FindingKind> = outcome.findings.iter().map(|finding| &finding.kind).collect();
    let is_lock = |kind: &&FindingKind| matches!(kind, FindingKind::SerialisingLock { .. });
    assert!(kinds.iter().any(is_lock) && mutual(&outcome).is_none(), "{kinds:#?}");
}
