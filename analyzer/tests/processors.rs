//! More threads than processors.

mod pool;
mod process;

use chase_analyzer::FindingKind;
use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::syscalls::WAIT_PREEMPTED;
use pool::{MS, Outcome, Pool};

/// Four threads want two processors for a second each, and have none for half of it, in this function.
fn wanting_in(function: &str) -> Outcome {
    let mut pool = Pool::new();
    let (app, libb) = (pool.process.app, pool.process.libb);
    let slot = pool.process.builder.slot(app, Some(libb), function);
    pool.workers(4, |pool, _, thread| {
        pool.call(thread, slot, 500 * MS, 1);
        pool.call(thread, pool.work, 500 * MS, 1);
    });
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        seen.header.processors = 2;
        for number in 1..=4_u32 {
            let (tid, context) = (pid + number, refs[number as usize][1]);
            seen.on_cpu(tid, 500 * MS).wait(context, tid, WAIT_PREEMPTED, 1, 500 * MS);
        }
        seen
    })
}

#[test]
fn who_gives_the_processor_up_does_not_want_it() {
    let are_too_many = |function: &str| {
        let outcome = wanting_in(function);
        let is_one = |kind: &FindingKind| matches!(kind, FindingKind::TooManyThreads { .. });
        outcome.findings.iter().any(|finding| is_one(&finding.kind))
    };
    assert!(are_too_many("compute"));
    assert!(!are_too_many("sched_yield"));
}
