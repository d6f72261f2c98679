//! Threads that look again and again whether there is something to do, and others that pace their work.

mod pool;
mod process;

use chase_analyzer::FindingKind;
use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::syscalls::{CauseRow, WAKER_THREAD, WAKER_TIME};
use pool::{MS, Outcome, Pool};

const NANOSLEEP: u32 = 35;
const SENDTO: u32 = 44;
const READ: u32 = 0;
const WRITE: u32 = 1;
const FUTEX: u32 = 202;
const WAITS: u64 = 200;

/// What a thread does that sleeps 200 times, for four fifths of a second in all.
#[derive(Clone, Copy)]
struct Between {
    cpu_ms: u64,
    sends: u64,
    reads: u64,
    /// How many waits of a thread of another group it ends.
    wakes: u64,
    /// Another thread waits for so long for a lock that it has while it sleeps.
    locked_ms: u64,
    /// That is a lock for readers and writers, which the other one writes.
    is_shared: bool,
    /// The sleeper waits for this word now and then, which the other one changes, and the other one for 400 ms for the sleeper, at 0x1000.
    word: Option<u64>,
    /// The other one is of the same group, and sleeps for so long, as often.
    peer_ms: Option<u64>,
    /// The other one waits for so long for room for what it writes, until the sleeper reads.
    room_ms: u64,
}

fn run(of: Between) -> Outcome {
    let mut pool = Pool::new();
    let sleep = pool.process.builder.slot(pool.process.app, Some(pool.process.liba), "nanosleep");
    let sleeper = pool.thread("sleeper", 0x300);
    pool.call(sleeper, sleep, 800 * MS / WAITS, WAITS);
    pool.call(sleeper, pool.work, 100 * MS, 1);
    if of.is_shared {
        let read = pool.process.builder.slot(
            pool.process.app,
            Some(pool.process.liba),
            "pthread_rwlock_rdlock",
        );
        pool.call(sleeper, read, 1, WAITS);
    }
    pool.process.builder.timeline(sleeper).end();
    let other = pool.thread("other", if of.peer_ms.is_some() { 0x300 } else { 0x400 });
    let name = if of.is_shared { "pthread_rwlock_wrlock" } else { "pthread_mutex_lock" };
    let lock = pool.process.builder.slot(pool.process.app, Some(pool.process.liba), name);
    pool.call(other, lock, 450 * MS, 1);
    pool.call(other, pool.condition, 450 * MS, 1);
    pool.process.builder.timeline(other).end();
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        let began_ns = seen.header.began_ns;
        let of_sleeper = refs[sleeper.0 as usize][1];
        seen.on_cpu(pid + sleeper.0, of.cpu_ms * MS);
        seen.syscall(of_sleeper, pid + sleeper.0, SENDTO, of.sends, 1_000);
        seen.syscall(of_sleeper, pid + sleeper.0, READ, of.reads, 1_000);
        seen.cause(CauseRow {
            context_ref: of_sleeper,
            tid: pid + sleeper.0,
            number: NANOSLEEP,
            waker_kind: WAKER_TIME,
            waits: WAITS,
            total_ns: 800 * MS,
            max_ns: 10 * MS,
            ..bytemuck::Zeroable::zeroed()
        });
        if let Some(ms @ 1..) = of.peer_ms {
            seen.cause(CauseRow {
                context_ref: refs[other.0 as usize][1],
                tid: pid + other.0,
                number: NANOSLEEP,
                waker_kind: WAKER_TIME,
                waits: WAITS,
                total_ns: ms * MS,
                max_ns: ms * MS / WAITS,
                ..bytemuck::Zeroable::zeroed()
            });
        }
        if of.room_ms > 0 {
            let mut row = CauseRow {
                tid: pid + other.0,
                number: WRITE,
                waker_kind: WAKER_THREAD,
                waker: pid + sleeper.0,
                waker_pid: pid,
                waker_began_ns: began_ns,
                waits: WAITS / 3,
                total_ns: of.room_ms * MS,
                max_ns: 10 * MS,
                ..bytemuck::Zeroable::zeroed()
            };
            row.name[..6].copy_from_slice(b"pipe 5");
            seen.cause(row);
        }
        let mut wait = |context: usize, waits: u64, ms: u64, object: u64, owner: ThreadId| {
            seen.cause(CauseRow {
                context_ref: refs[other.0 as usize][context],
                tid: pid + other.0,
                number: FUTEX,
                object,
                holder: if of.is_shared { 0 } else { pid + owner.0 },
                waker_kind: WAKER_THREAD,
                waker: pid + owner.0,
                waker_pid: pid,
                waker_began_ns: began_ns,
                holder_context_ref: of_sleeper,
                waker_context_ref: of_sleeper,
                waits,
                total_ns: ms * MS,
                max_ns: ms * MS / waits,
                ..bytemuck::Zeroable::zeroed()
            });
        };
        if of.locked_ms > 0 {
            wait(1, WAITS / 4, of.locked_ms, 0x1000, sleeper);
        }
        if of.wakes > 0 {
            wait(2, of.wakes, 100, 0x2000, sleeper);
        }
        if let Some(object) = of.word {
            let tids = [pid + other.0, pid + sleeper.0];
            for (at, object, total_ns) in [(0, 0x1000, 400 * MS), (1, object, 10 * MS)] {
                seen.cause(CauseRow {
                    tid: tids[at],
                    number: FUTEX,
                    object,
                    waker_kind: WAKER_THREAD,
                    waker: tids[1 - at],
                    waker_pid: pid,
                    waker_began_ns: began_ns,
                    waits: WAITS / 10,
                    total_ns,
                    max_ns: total_ns / 10,
                    ..bytemuck::Zeroable::zeroed()
                });
            }
        }
        seen
    })
}

fn polls(of: Between) -> bool {
    let found = run(of).findings;
    found.iter().any(|finding| matches!(finding.kind, FindingKind::Polling { .. }))
}

const LOOKS: Between = Between {
    cpu_ms: 10,
    sends: 0,
    reads: 0,
    wakes: 0,
    locked_ms: 0,
    is_shared: false,
    word: None,
    peer_ms: None,
    room_ms: 0,
};

#[test]
fn who_looks_and_sleeps_again_polls() {
    assert!(polls(LOOKS));
    // It may read what it looks at, and find something now and then.
    assert!(polls(Between { reads: WAITS, ..LOOKS }));
    assert!(polls(Between { sends: WAITS / 4, wakes: WAITS / 4, ..LOOKS }));
    // A program that takes a while to start has used the processor before.
    assert!(polls(Between { cpu_ms: 150, ..LOOKS }));
}

#[test]
fn who_does_something_after_each_sleep_paces_it() {
    assert!(!polls(Between { sends: WAITS, ..LOOKS }));
    assert!(!polls(Between { wakes: WAITS, ..LOOKS }));
    assert!(!polls(Between { cpu_ms: 300, ..LOOKS }));
}

#[test]
fn who_sleeps_while_others_wait_for_room_does_not_poll() {
    let slow = Between { reads: WAITS, room_ms: 600, ..LOOKS };
    assert!(!polls(slow));
    // Now and then, there is no room.
    assert!(polls(Between { room_ms: 100, ..slow }));
}

#[test]
fn who_sleeps_with_a_lock_does_not_poll() {
    let kinds = |of: Between| -> Vec<FindingKind> {
        run(of).findings.into_iter().map(|finding| finding.kind).collect()
    };
    let locked = Between { locked_ms: 400, ..LOOKS };
    let found = kinds(locked);
    assert!(matches!(*found, [FindingKind::SerialisingLock { .. }]), "{found:#?}");
    let found = kinds(Between { is_shared: true, ..locked });
    assert!(matches!(*found, [FindingKind::StarvedWriter { .. }]), "{found:#?}");
}

#[test]
fn who_waits_at_one_of_two_words_beside_each_other_sleeps_with_a_lock() {
    assert!(!polls(Between { word: Some(0x0ffc), ..LOOKS }));
    assert!(!polls(Between { word: Some(0x1004), ..LOOKS }));
    assert!(polls(Between { word: Some(0x1010), ..LOOKS }));
}

#[test]
fn threads_that_meet_after_each_sleep_do_not_poll() {
    let alone = Between { peer_ms: Some(0), ..LOOKS };
    assert!(polls(alone));
    // Each time, it ends a wait of the other one.
    assert!(!polls(Between { wakes: WAITS, ..alone }));
    // Both sleep, but they do so for less than half of their lives.
    assert!(polls(Between { peer_ms: Some(700), ..LOOKS }));
    assert!(!polls(Between { peer_ms: Some(50), ..LOOKS }));
}
