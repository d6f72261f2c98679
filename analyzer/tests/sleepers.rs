//! Threads that sleep for each thing that they are handed, and others that sleep as often.

mod pool;
mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::syscalls::{CauseRow, WAKER_THREAD, WAKER_TIME};
use chase_analyzer::{Finding, FindingKind, Ns};
use pool::{MS, Outcome, Pool};

const NANOSLEEP: u32 = 35;
const FUTEX: u32 = 202;
const SLEEPS: u64 = 200;

/// What the two threads do: one sleeps 200 times 4 ms, and takes a lock as often; the other hands something over.
#[derive(Clone, Copy)]
struct Between {
    /// How often the other one signals.
    signals: u64,
    /// How often, and how long in all, it waits until the sleeper ends that.
    waits: u64,
    waits_ms: u64,
    /// How long the other one waits for a lock that the sleeper has.
    locked_ms: u64,
    /// How often the sleeper waits for the other one.
    answers: u64,
    /// How long the sleeper lives after the other one has ended.
    after_ms: u64,
}

fn run(of: Between) -> Outcome {
    let mut pool = Pool::new();
    let sleep = pool.process.builder.slot(pool.process.app, Some(pool.process.liba), "nanosleep");
    let sleeper = pool.thread("sleeper", 0x300);
    pool.call(sleeper, sleep, 800 * MS / SLEEPS, SLEEPS);
    pool.call(sleeper, pool.condition, 1, 1);
    pool.call(sleeper, pool.lock, 1, SLEEPS);
    pool.call(sleeper, pool.work, 100 * MS, 1);
    pool.process.builder.timeline(sleeper).end();
    let other = pool.thread("other", 0x400);
    pool.call(other, pool.condition, of.waits_ms.max(1) * MS, 1);
    pool.call(other, pool.signal, 1, of.signals);
    pool.call(other, pool.lock, of.locked_ms * MS, 1);
    let rest = 900 - of.after_ms - of.waits_ms.max(1) - of.locked_ms;
    pool.call(other, pool.work, rest * MS, 1);
    pool.process.builder.timeline(other).end();
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        let (of_sleeper, of_other) = (&refs[sleeper.0 as usize], &refs[other.0 as usize]);
        let began_ns = seen.header.began_ns;
        seen.on_cpu(pid + sleeper.0, 20 * MS);
        seen.on_cpu(pid + other.0, 100 * MS);
        seen.cause(CauseRow {
            context_ref: of_sleeper[1],
            tid: pid + sleeper.0,
            number: NANOSLEEP,
            waker_kind: WAKER_TIME,
            waits: SLEEPS,
            total_ns: 800 * MS,
            max_ns: 5 * MS,
            ..bytemuck::Zeroable::zeroed()
        });
        let mut wait = |of: (u32, u32), by: (u32, u32), waits: u64, ms: u64, holder: u32| {
            if waits == 0 {
                return;
            }
            seen.cause(CauseRow {
                context_ref: of.0,
                tid: of.1,
                number: FUTEX,
                object: 0x2000 + u64::from(of.1) + 0x1000 * u64::from(holder),
                holder,
                waker_kind: WAKER_THREAD,
                waker: by.1,
                waker_pid: pid,
                waker_began_ns: began_ns,
                waker_context_ref: by.0,
                waits,
                total_ns: ms * MS,
                max_ns: ms * MS / waits,
                ..bytemuck::Zeroable::zeroed()
            });
        };
        let (sleeper, other) = (pid + sleeper.0, pid + other.0);
        wait((of_other[3], other), (of_sleeper[1], sleeper), of.locked_ms, of.locked_ms, sleeper);
        wait((of_other[1], other), (of_sleeper[1], sleeper), of.waits, of.waits_ms, 0);
        wait((of_sleeper[2], sleeper), (of_other[1], other), of.answers, 10, 0);
        seen
    })
}

fn found(outcome: &Outcome) -> Option<&Finding> {
    let mut found = outcome.findings.iter();
    found.find(|finding| matches!(finding.kind, FindingKind::SleepingStage { .. }))
}

const FULL: Between = Between {
    signals: SLEEPS,
    waits: SLEEPS - 8,
    waits_ms: 700,
    locked_ms: 0,
    answers: 0,
    after_ms: 30,
};
const GROWING: Between =
    Between { signals: SLEEPS, waits: 0, waits_ms: 0, locked_ms: 0, answers: 0, after_ms: 600 };

#[test]
fn others_wait_for_who_sleeps_for_each_item() {
    let outcome = run(FULL);
    let finding = found(&outcome).unwrap_or_else(|| panic!("{:#?}", outcome.findings));
    let FindingKind::SleepingStage { sleeps, slept_ns, all_wait_ns, .. } = finding.kind else {
        panic!("{finding:#?}")
    };
    assert_eq!((sleeps, slept_ns, all_wait_ns), (SLEEPS, Ns(800 * MS), Ns(700 * MS)));
    assert_eq!((finding.saves_ns.0 / MS, outcome.api(finding.api)), (730, Some("nanosleep")));
    // The lock of the queue between them is a part of that.
    let locked = run(Between { waits_ms: 500, locked_ms: 150, ..FULL });
    assert!(found(&locked).is_some(), "{:#?}", locked.findings);
    let is_lock = |other: &Finding| matches!(other.kind, FindingKind::SerialisingLock { .. });
    assert!(!locked.findings.iter().any(is_lock), "{:#?}", locked.findings);
    // It does not poll.
    assert!(
        !outcome.findings.iter().any(|other| matches!(other.kind, FindingKind::Polling { .. }))
    );
}

#[test]
fn what_is_handed_over_piles_up() {
    let outcome = run(GROWING);
    let finding = found(&outcome).unwrap_or_else(|| panic!("{:#?}", outcome.findings));
    let FindingKind::SleepingStage { all_wait_ns, sleeps_on_ns, .. } = finding.kind else {
        panic!("{finding:#?}")
    };
    assert_eq!((all_wait_ns, sleeps_on_ns.0 / MS), (Ns(0), 600));
    assert_eq!(finding.saves_ns.0 / MS, 600);
}

#[test]
fn who_paces_others_or_refreshes_something_does_not_sleep_for_items() {
    // Those that wait for it end when it does, or within a sleep: they are paced.
    assert!(found(&run(Between { after_ms: 0, ..FULL })).is_none());
    assert!(found(&run(Between { after_ms: 4, ..FULL })).is_none());
    // It waits for answers, or for what comes.
    assert!(found(&run(Between { answers: SLEEPS, ..FULL })).is_none());
    assert!(found(&run(Between { answers: SLEEPS, ..GROWING })).is_none());
    // Hardly ever waited for.
    assert!(found(&run(Between { waits: 20, signals: 20, ..FULL })).is_none());
    // As many things are handed over as it sleeps for, or it has nothing to do with them.
    assert!(found(&run(Between { signals: 2 * SLEEPS, ..GROWING })).is_none());
    assert!(found(&run(Between { signals: 1, ..GROWING })).is_none());
}
