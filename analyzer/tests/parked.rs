//! Locks of `parking_lot`: each thread waits for them at a word of its own.

mod pool;
mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::recorder::syscalls::{BlockedRow, CauseRow, WAKER_THREAD};
use chase_analyzer::{
    Analysis, CodeAddress, FindingKind, Groups, HeldLocks, Lane, NamingPlaces, Ns, Purpose,
    Selection, Tails, Unnamed, WaitCause, WaitObject, Watched, findings, locks, object_causes,
    timeline,
};
use pool::{MS, Pool};

const WORKERS: usize = 4;

/// Each place is in these functions.
struct In(&'static [&'static str]);

impl NamingPlaces for In {
    fn functions(&self, _: usize, _: &CodeAddress) -> Vec<String> {
        self.0.iter().map(|&name| name.to_owned()).collect()
    }

    fn variable(&self, _: usize, _: &CodeAddress) -> Option<String> {
        None
    }
}

/// What is said of waits: their purpose; the locks, with the time and the number of threads that waited; what a finding about a lock
/// saves.
struct Said {
    purpose: Purpose,
    /// What the tables by function say.
    causes: Vec<(WaitCause, f64)>,
    /// And the timeline, of each thread.
    spans: Vec<WaitCause>,
    locks: Vec<(WaitObject, Ns, usize)>,
    found: Option<(Ns, FindingKind)>,
}

/// Four threads wait for 20, 30, 40 and 50 ms, each for a word of its own that the next one changes, in these functions.
fn wait_in(functions: &'static [&'static str]) -> Said {
    let (mut pool, mut workers) = (Pool::new(), Vec::new());
    let syscall = pool.process.builder.slot(pool.process.app, Some(pool.process.libb), "syscall");
    pool.workers(WORKERS, |pool, _, thread| {
        pool.process.builder.timeline(thread).call(syscall, 60 * MS);
        workers.push(thread);
    });
    let builder = &mut pool.process.builder;
    let site = builder.code_address(pool.process.app, 0x40);
    let now = builder.now_ticks() - builder.header.clock_start.ticks;
    builder.timeline(pool.process.main).call(pool.join, now).end();
    let (pid, refs) = (builder.header.pid, builder.context_refs());
    let mut seen = SyscallsBuilder::new(pid);
    let began = seen.header.began_ns;
    for (number, &thread) in (0..).zip(&workers) {
        let ns = (20 + 10 * number) * MS;
        seen.cause(CauseRow {
            context_ref: refs[thread.0 as usize][1],
            tid: pid + thread.0,
            number: 202,
            site,
            object: 0x7000_0000 + 0x1_0000 * number,
            waker_kind: WAKER_THREAD,
            waker: pid + workers[(number as usize + 1) % WORKERS].0,
            waker_pid: pid,
            waker_began_ns: began,
            waits: 1,
            total_ns: ns,
            max_ns: ns,
            ..bytemuck::Zeroable::zeroed()
        });
        let (cause, tid, end_ns) = (number as u32, pid + thread.0, began + ns);
        seen.blocked(BlockedRow { cause, tid, begin_ns: began, woken_ns: end_ns, end_ns });
    }
    let seen = SyscallsFile::parse(seen.build()).expect("a file");
    let images = [pool.process.image().with_syscalls(Some(seen))];
    let mut analysis = Analysis::new(&images, Selection::All);
    let told = object_causes(&images, &analysis, &In(functions));
    analysis.set_object_causes(told);
    let groups = Groups::new(&analysis, &Unnamed);
    let tails = Tails::new(&images, &analysis, &groups);
    let watched = Watched::new(&images, &analysis, &groups, &In(functions));
    let held = HeldLocks::new(&images, &analysis, &groups, &In(functions));
    let found = findings(&analysis, &groups, &tails, &watched).into_iter();
    let mut found = found.map(|finding| (finding.saves_ns, finding.kind));
    let locks = locks(&watched.causes, &analysis, &held);
    let syscall = watched.causes[0].api.expect("a call");
    let timeline = timeline(&images, &analysis, &groups);
    let of_lane = |lane: &Lane| -> Vec<WaitCause> {
        lane.blocked.iter().map(|span| span.is_for(&analysis, lane.thread as u32)).collect()
    };
    Said {
        causes: analysis.parts_of_waits(Some(syscall), watched.causes[0].by_thread[0].thread),
        spans: timeline.lanes.iter().flat_map(of_lane).collect(),
        purpose: watched.causes[0].purpose,
        locks: locks.into_iter().map(|row| (row.object, row.wait_ns, row.threads)).collect(),
        found: found.find(|(_, kind)| matches!(kind, FindingKind::SerialisingLock { .. })),
    }
}

#[test]
fn words_of_single_threads_are_one_lock() {
    let Said { purpose, locks, found, .. } = wait_in(&[
        "parking_lot_core::thread_parker::imp::ThreadParker::futex_wait",
        "parking_lot::raw_mutex::RawMutex::lock_slow",
    ]);
    assert_eq!(purpose, Purpose::Lock);
    let [(WaitObject::Parked(_), Ns(wait_ns), WORKERS)] = *locks else { panic!("{locks:?}") };
    assert_eq!(wait_ns, 140 * MS);
    let Some((saves_ns, FindingKind::SerialisingLock { all_wait_ns, .. })) = found else {
        panic!("{found:?}")
    };
    // The thread that gains most has waited for 50 ms.
    assert_eq!((saves_ns, all_wait_ns), (Ns(50 * MS), Ns(140 * MS)));
}

#[test]
fn who_reads_and_who_writes_is_told() {
    let purpose = |slow: &'static [&'static str]| wait_in(slow).purpose;
    assert_eq!(
        purpose(&["parking_lot::raw_rwlock::RawRwLock::lock_shared_slow"]),
        Purpose::ReadLock
    );
    let writes = purpose(&["parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow"]);
    assert_eq!(writes, Purpose::WriteLock);
}

/// Rust's own lock has two words, and who writes waits at the second one.
#[test]
fn who_writes_waits_for_the_same_lock_as_who_reads() {
    let words = |function: &'static [&'static str]| -> Vec<u64> {
        let word = |(object, ..): (WaitObject, Ns, usize)| match object {
            WaitObject::Memory(at) => at.avma,
            object => panic!("{object:?}"),
        };
        let mut words: Vec<u64> = wait_in(function).locks.into_iter().map(word).collect();
        words.sort_unstable();
        words
    };
    let read = words(&["std::sys::sync::rwlock::futex::RwLock::read_contended"]);
    let written = words(&["std::sys::sync::rwlock::futex::RwLock::write_contended"]);
    assert_eq!(written.iter().map(|at| at + 4).collect::<Vec<u64>>(), read);
}

#[test]
fn other_words_are_locks_of_their_own() {
    let Said { locks, .. } = wait_in(&["std::sys::sync::mutex::futex::Mutex::lock_contended"]);
    assert_eq!(locks.len(), WORKERS, "{locks:?}");
    // A condition is no lock, and there may be several at one place.
    let Said { purpose, locks, .. } =
        wait_in(&["parking_lot::condvar::Condvar::wait_until_internal"]);
    assert_eq!((purpose, locks.len()), (Purpose::Condition, 0));
}

/// The tables and the timeline say what these waits are for, which the system call does not.
#[test]
fn a_futex_is_for_what_the_place_tells() {
    let all_say = |functions: &'static [&'static str], cause: WaitCause| {
        let Said { causes, spans, .. } = wait_in(functions);
        assert_eq!((causes, spans), (vec![(cause, 1.0)], vec![cause; WORKERS]), "{functions:?}");
    };
    all_say(&["std::sys::sync::condvar::futex::Condvar::wait"], WaitCause::Condition);
    all_say(&["std::thread::park"], WaitCause::Condition);
    all_say(&["std::sys::sync::mutex::futex::Mutex::lock_contended"], WaitCause::Lock);
    // Each word is one thread's, and others change it: that is no lock, whatever it is.
    all_say(&["of_my_runtime"], WaitCause::Condition);
}
