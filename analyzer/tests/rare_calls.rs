//! Calls that seem to be rare and slow: they wait for other threads, or are what their thread is there for.

mod pool;
mod process;

use chase_analyzer::FindingKind;
use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::syscalls::{
    CauseRow, WAIT_PREEMPTED, WAIT_VOLUNTARY, WAKER_THREAD, WAKER_TIME,
};
use pool::{MS, Outcome, Pool, US};

fn is_rare(outcome: &Outcome) -> bool {
    let mut kinds = outcome.findings.iter().map(|finding| &finding.kind);
    kinds.any(|kind| matches!(kind, FindingKind::RareSlowCalls { .. }))
}

/// One of 41 calls takes 600 ms, nearly all of it in a wait in `function` inside that `waker_kind` ends.
fn waits_inside(function: &str, waker_kind: u32) -> Outcome {
    let mut pool = Pool::new();
    let (liba, libb) = (pool.process.liba, pool.process.libb);
    let inner = pool.process.builder.slot(liba, Some(libb), function);
    let thread = pool.thread("first", 0x300);
    let other = pool.thread("second", 0x400);
    let mut timeline = pool.process.builder.timeline(thread);
    timeline.calls(pool.other, 10 * US, 20);
    timeline.enter(pool.other).work(10 * MS).call(inner, 590 * MS).leave();
    timeline.calls(pool.other, 10 * US, 20);
    timeline.calls(pool.work, 40 * MS, 10).end();
    pool.call(other, pool.work, 100 * MS, 10);
    pool.process.builder.timeline(other).end();
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        let is_thread = waker_kind == WAKER_THREAD;
        seen.wait(refs[thread.0 as usize][2], pid + thread.0, WAIT_VOLUNTARY, 1, 590 * MS);
        seen.cause(CauseRow {
            context_ref: refs[thread.0 as usize][2],
            tid: pid + thread.0,
            number: 202,
            object: 0x1000,
            waker_kind,
            waker: if is_thread { pid + other.0 } else { 0 },
            waker_pid: if is_thread { pid } else { 0 },
            waker_began_ns: if is_thread { seen.header.began_ns } else { 0 },
            waits: 1,
            total_ns: 590 * MS,
            max_ns: 590 * MS,
            ..bytemuck::Zeroable::zeroed()
        });
        seen
    })
}

#[test]
fn who_waits_for_another_thread_inside_makes_no_slow_call() {
    for function in ["pthread_cond_wait", "pthread_barrier_wait"] {
        assert!(!is_rare(&waits_inside(function, WAKER_THREAD)), "{function}");
        assert!(is_rare(&waits_inside(function, WAKER_TIME)), "{function}");
    }
}

/// Of the 600 ms that one of 41 calls takes, others have the processor for most: in it, and in one inside.
#[test]
fn who_waits_for_a_processor_inside_makes_no_slow_call() {
    let rare_with = |of_others: u64| {
        let mut pool = Pool::new();
        let (liba, libb) = (pool.process.liba, pool.process.libb);
        let inner = pool.process.builder.slot(liba, Some(libb), "compress");
        let thread = pool.thread("first", 0x300);
        let mut timeline = pool.process.builder.timeline(thread);
        timeline.calls(pool.other, 10 * US, 20);
        timeline.enter(pool.other).work(300 * MS).call(inner, 300 * MS).leave();
        timeline.calls(pool.other, 10 * US, 20);
        timeline.calls(pool.work, 40 * MS, 10).end();
        let pid = pool.process.builder.header.pid;
        is_rare(&pool.finish_seen(|refs| {
            let mut seen = SyscallsBuilder::new(pid);
            for context in [1, 2] {
                let context = refs[thread.0 as usize][context];
                seen.wait(context, pid + thread.0, WAIT_PREEMPTED, 1, of_others);
            }
            seen
        }))
    };
    assert!(rare_with(100 * MS));
    assert!(!rare_with(200 * MS));
}

/// One of 41 calls takes 600 ms of a second, and runs code of the program or of the library.
fn runs(of_program: bool) -> Outcome {
    let mut pool = Pool::new();
    let thread = pool.thread("first", 0x300);
    pool.call(thread, pool.other, 10 * US, 20);
    pool.call(thread, pool.other, 600 * MS, 1);
    pool.call(thread, pool.other, 10 * US, 20);
    pool.call(thread, pool.work, 40 * MS, 10);
    pool.process.builder.timeline(thread).end();
    let object = if of_program { pool.process.app } else { pool.process.liba };
    let code = pool.process.builder.code_address(object, 0x40);
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        seen.header.sample_hz = 1_000;
        seen.on_cpu(pid + thread.0, 1000 * MS);
        seen.samples(refs[thread.0 as usize][1], pid + thread.0, code, 600, 0);
        seen
    })
}

#[test]
fn what_a_thread_is_there_for_is_no_slow_call() {
    assert!(!is_rare(&runs(true)));
    assert!(is_rare(&runs(false)));
}
