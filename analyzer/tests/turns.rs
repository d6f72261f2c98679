//! Who has a word of memory while others wait for it: threads that have a lock in turn, and those of an idle pool that pass on that there is work.

mod pool;
mod process;

use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::syscalls::{BlockedRow, CauseRow, WAKER_THREAD};
use chase_analyzer::{FindingKind, Purpose};
use pool::{MS, Outcome, Pool, US};

const FUTEX: u32 = 202;
const WORKERS: u64 = 4;
const ROUNDS: u64 = 10;

/// A wait from and to these times, ns, that another thread ends.
struct Wait {
    of: ThreadId,
    ended_by: ThreadId,
    word: u64,
    from: u64,
    to: u64,
    context: usize,
}

fn seen(pid: u32, refs: &[Vec<u32>], waits: &[Wait]) -> SyscallsBuilder {
    let mut seen = SyscallsBuilder::new(pid);
    let began_ns = seen.header.began_ns;
    for (cause, wait) in (0..).zip(waits) {
        seen.cause(CauseRow {
            context_ref: refs[wait.of.0 as usize][wait.context],
            tid: pid + wait.of.0,
            number: FUTEX,
            object: wait.word,
            waker_kind: WAKER_THREAD,
            waker: pid + wait.ended_by.0,
            waker_pid: pid,
            waker_began_ns: began_ns,
            waits: 1,
            total_ns: wait.to - wait.from,
            max_ns: wait.to - wait.from,
            ..bytemuck::Zeroable::zeroed()
        });
        let (begin_ns, end_ns) = (began_ns + wait.from, began_ns + wait.to);
        seen.blocked(BlockedRow {
            cause,
            tid: pid + wait.of.0,
            begin_ns,
            woken_ns: end_ns,
            end_ns,
        });
    }
    seen
}

/// Each 40 ms, the main thread ends the wait of one of four threads in this function, and each that has waited has what it waited for so long and
/// then ends the wait of the next one. Each of these threads calls `sem_post` so many times.
fn passed_on(function: &str, has_it_ns: u64, given_back: u64) -> Vec<Purpose> {
    let mut pool = Pool::new();
    let (app, libb) = (pool.process.app, pool.process.libb);
    let slot = pool.process.builder.slot(app, Some(libb), function);
    let post = pool.process.builder.slot(app, Some(libb), "sem_post");
    let main = pool.process.main;
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        let thread = pool.thread("worker", 0x300);
        pool.call(thread, slot, 40 * MS, ROUNDS);
        if given_back > 0 {
            pool.call(thread, post, US, given_back);
        }
        pool.process.builder.timeline(thread).end();
        workers.push(thread);
    }
    let mut waits = Vec::new();
    for round in 0..ROUNDS {
        let mut ended_by = main;
        for (number, &of) in (0..).zip(&workers) {
            let from = round * 40 * MS + if round > 0 { number * has_it_ns + 10 * US } else { 0 };
            let to = (round + 1) * 40 * MS + number * has_it_ns;
            waits.push(Wait { of, ended_by, word: 0x1000, from, to, context: 1 });
            ended_by = of;
        }
    }
    let pid = pool.process.builder.header.pid;
    let outcome = pool.finish_seen(|refs| seen(pid, refs, &waits));
    outcome.watched.causes.iter().map(|row| row.purpose).collect()
}

#[test]
fn who_passes_on_that_there_is_work_has_no_lock() {
    let purposes = passed_on("sem_wait", 20 * US, ROUNDS / 2);
    assert!(purposes.iter().all(|&purpose| purpose == Purpose::Handover), "{purposes:?}");
}

#[test]
fn who_has_it_while_the_next_one_waits_has_a_lock() {
    let purposes = passed_on("sem_wait", 10 * MS, 0);
    assert!(purposes.iter().all(|&purpose| purpose == Purpose::Lock), "{purposes:?}");
}

/// What all give back as often as they take it is not given by anybody else.
#[test]
fn who_gives_it_back_each_time_has_a_lock() {
    let purposes = passed_on("sem_wait", 20 * US, ROUNDS);
    assert!(purposes.iter().all(|&purpose| purpose == Purpose::Lock), "{purposes:?}");
}

/// Who keeps a stream for long may never wait for it.
#[test]
fn what_is_passed_on_inside_of_a_function_is_its_lock() {
    let purposes = passed_on("fputs", 20 * US, 0);
    assert!(purposes.iter().all(|&purpose| purpose == Purpose::Lock), "{purposes:?}");
}

/// Four threads have a mutex in turn, each for 10 ms, and wait meanwhile at a condition until another thread signals it; which waits for as many answers.
fn with_lock(answers: u64) -> Outcome {
    let mut pool = Pool::new();
    let giver = pool.thread("giver", 0x400);
    pool.call(giver, pool.condition, 9 * MS, 40);
    pool.process.builder.timeline(giver).end();
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        let thread = pool.thread("worker", 0x300);
        pool.call(thread, pool.lock, 30 * MS, 10);
        pool.call(thread, pool.condition, 9 * MS, 10);
        pool.process.builder.timeline(thread).end();
        workers.push(thread);
    }
    let mut waits = Vec::new();
    for turn in 0..ROUNDS * WORKERS {
        let thread = |turn: u64| workers[(turn % WORKERS) as usize];
        let (at, of) = (turn * 10 * MS, thread(turn));
        if turn >= WORKERS {
            let (from, ended_by) = (at - 30 * MS, thread(turn - 1));
            waits.push(Wait { of, ended_by, word: 0x1000, from, to: at, context: 1 });
        }
        let to = at + 9 * MS;
        waits.push(Wait { of, ended_by: giver, word: 0x2000, from: at, to, context: 2 });
        if turn < answers {
            waits.push(Wait { of: giver, ended_by: of, word: 0x3000, from: at, to, context: 1 });
        }
    }
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| seen(pid, refs, &waits))
}

fn has_lock(outcome: &Outcome) -> bool {
    let is_lock = |kind: &FindingKind| matches!(kind, FindingKind::SerialisingLock { .. });
    outcome.findings.iter().any(|finding| is_lock(&finding.kind))
}

#[test]
fn who_waits_for_work_with_the_lock_of_the_queue_serialises_nobody() {
    let outcome = with_lock(0);
    assert!(!has_lock(&outcome), "{:#?}", outcome.findings);
}

#[test]
fn who_waits_for_an_answer_with_a_lock_does() {
    let outcome = with_lock(ROUNDS * WORKERS);
    assert!(has_lock(&outcome), "{:#?}", outcome.findings);
}
