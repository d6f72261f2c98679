//! Whether threads that wait for another one wait for what it does.

mod pool;
mod process;

use chase_analyzer::FindingKind;
use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::syscalls::{CauseRow, WAKER_THREAD};
use pool::{MS, Outcome, Pool};

const FUTEX: u32 = 202;

/// A thread that works for a second, and consumers that wait for it during nine tenths of it: in so many waits each, the longest of
/// which takes `max_ms`.
fn consumers(count: usize, waits: u64, max_ms: u64) -> Outcome {
    let mut pool = Pool::new();
    let producer = pool.thread("producer", 0x300);
    pool.call(producer, pool.work, 10 * MS, 100);
    pool.process.builder.timeline(producer).end();
    let mut threads = Vec::new();
    pool.workers(count, |pool, _, thread| {
        pool.call(thread, pool.condition, 900 * MS / waits, waits);
        pool.call(thread, pool.work, MS, 100);
        threads.push(thread);
    });
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        let began_ns = seen.header.began_ns;
        seen.on_cpu(pid + producer.0, 1000 * MS);
        for thread in threads {
            seen.on_cpu(pid + thread.0, 100 * MS);
            seen.cause(CauseRow {
                context_ref: refs[thread.0 as usize][1],
                tid: pid + thread.0,
                number: FUTEX,
                object: 0x1000,
                waker_kind: WAKER_THREAD,
                waker: pid + producer.0,
                waker_pid: pid,
                waker_began_ns: began_ns,
                waits,
                total_ns: 900 * MS,
                max_ns: max_ms * MS,
                ..bytemuck::Zeroable::zeroed()
            });
        }
        seen
    })
}

fn is_limited(outcome: &Outcome) -> bool {
    let mut kinds = outcome.findings.iter().map(|finding| &finding.kind);
    kinds.any(|kind| matches!(kind, FindingKind::LimitingStage { .. }))
}

#[test]
fn one_long_wait_of_each_thread_is_no_limit() {
    // Each gets something to do now and then, and waits for more for half of its life at a time.
    assert!(!is_limited(&consumers(4, 6, 500)));
    // One thread of one has no more than one long wait.
    assert!(!is_limited(&consumers(1, 12, 500)));
}

#[test]
fn even_waits_are_a_limit_however_few_each_thread_has() {
    assert!(is_limited(&consumers(4, 6, 200)));
    assert!(is_limited(&consumers(1, 60, 20)));
    // A start that took long, and all others as ever.
    assert!(is_limited(&consumers(4, 60, 300)));
}
