//! Threads that sleep for each thing that they are handed, and others that sleep as often.

mod pool;
mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::syscalls::{BlockedRow, CauseRow, WAKER_THREAD, WAKER_TIME};
use chase_analyzer::{Finding, FindingKind, Ns};
use pool::{MS, Outcome, Pool, US};

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
    /// Whether it does the work of its life, 100 ms, at the end, instead of sleeping until then.
    works_last: bool,
    /// Other threads of its kind, which sleep as often, for 300 µs, and wait for the other one's things.
    quick: u32,
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
    for number in 0..of.quick {
        let quick = pool.thread(&format!("quick-{number}"), 0x300);
        pool.call(quick, sleep, 300 * US, SLEEPS);
        pool.call(quick, pool.condition, 4 * MS, SLEEPS);
        pool.process.builder.timeline(quick).end();
    }
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        let (of_sleeper, of_other) = (&refs[sleeper.0 as usize], &refs[other.0 as usize]);
        let began_ns = seen.header.began_ns;
        seen.on_cpu(pid + sleeper.0, 20 * MS);
        seen.on_cpu(pid + other.0, 100 * MS);
        let mut sleep = |context_ref: u32, tid: u32, each_ns: u64| {
            seen.syscall(context_ref, tid, NANOSLEEP, SLEEPS, each_ns);
            seen.cause(CauseRow {
                context_ref,
                tid,
                number: NANOSLEEP,
                waker_kind: WAKER_TIME,
                waits: SLEEPS,
                total_ns: SLEEPS * each_ns,
                max_ns: each_ns + MS,
                ..bytemuck::Zeroable::zeroed()
            });
        };
        sleep(of_sleeper[1], pid + sleeper.0, 4 * MS);
        for quick in other.0 + 1..=other.0 + of.quick {
            sleep(refs[quick as usize][1], pid + quick, 300 * US);
        }
        let first_ns = began_ns + if of.works_last { MS } else { 101 * MS };
        for number in 0..SLEEPS {
            let begin_ns = first_ns + number * 4 * MS;
            let (tid, end_ns) = (pid + sleeper.0, begin_ns + 4 * MS);
            seen.blocked(BlockedRow { cause: 0, tid, begin_ns, woken_ns: 0, end_ns });
        }
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
        let first_quick = other.0 + 1;
        let (sleeper, other) = (pid + sleeper.0, pid + other.0);
        for quick in first_quick..first_quick + of.quick {
            let context = refs[quick as usize][2];
            wait((context, pid + quick), (of_other[1], other), SLEEPS, 800, 0);
        }
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
    works_last: false,
    quick: 0,
};
const GROWING: Between = Between { waits: 0, waits_ms: 0, after_ms: 600, ..FULL };

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
fn of_threads_that_each_have_a_queue_one_is_waited_for() {
    let outcome = run(Between { quick: 2, ..FULL });
    let finding = found(&outcome).unwrap_or_else(|| panic!("{:#?}", outcome.findings));
    let FindingKind::SleepingStage { sleeps, slept_ns, .. } = finding.kind else {
        panic!("{finding:#?}")
    };
    assert_eq!((sleeps, slept_ns), (SLEEPS, Ns(800 * MS)));
    let names = finding.threads.iter().map(|&one| &*outcome.analysis.threads[one as usize].name);
    assert_eq!(names.collect::<Vec<_>>(), ["sleeper"]);
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
    // It works on when they have ended, and does not sleep.
    assert!(found(&run(Between { works_last: true, ..FULL })).is_none());
    assert!(found(&run(Between { works_last: true, after_ms: 90, ..FULL })).is_none());
    // It waits for answers, or for what comes.
    assert!(found(&run(Between { answers: SLEEPS, ..FULL })).is_none());
    assert!(found(&run(Between { answers: SLEEPS, ..GROWING })).is_none());
    // Hardly ever waited for.
    assert!(found(&run(Between { waits: 20, signals: 20, ..FULL })).is_none());
    // As many things are handed over as it sleeps for, or it has nothing to do with them.
    assert!(found(&run(Between { signals: 2 * SLEEPS, ..GROWING })).is_none());
    assert!(found(&run(Between { signals: 1, ..GROWING })).is_none());
}
