//! A lock that several groups wait for is told once.

mod pool;
mod process;

use chase_analyzer::FindingKind;
use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::syscalls::{CauseRow, WAKER_THREAD};
use pool::{MS, Outcome, Pool};

const FUTEX: u32 = 202;

/// Two threads of different groups that hold each other up, the first for longer, at these locks.
fn run(locks: [u64; 2]) -> Outcome {
    let mut pool = Pool::new();
    let threads = [("first", 0x300), ("second", 0x400)].map(|(name, routine)| {
        let thread = pool.thread(name, routine);
        pool.call(thread, pool.lock, 50 * MS, 10);
        pool.call(thread, pool.work, 100 * MS, 5);
        pool.process.builder.timeline(thread).end();
        thread
    });
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        let began_ns = seen.header.began_ns;
        for (number, (thread, other)) in
            [(threads[0], threads[1]), (threads[1], threads[0])].into_iter().enumerate()
        {
            seen.cause(CauseRow {
                context_ref: refs[thread.0 as usize][1],
                tid: pid + thread.0,
                number: FUTEX,
                object: locks[number],
                holder: pid + other.0,
                waker_kind: WAKER_THREAD,
                waker: pid + other.0,
                waker_pid: pid,
                waker_began_ns: began_ns,
                waits: 10,
                total_ns: [500, 300][number] * MS,
                max_ns: 60 * MS,
                ..bytemuck::Zeroable::zeroed()
            });
        }
        seen
    })
}

#[test]
fn a_lock_is_told_once() {
    let outcome = run([0x1000; 2]);
    let [finding] = &*outcome.findings else { panic!("{:#?}", outcome.findings) };
    let FindingKind::SerialisingLock { others, .. } = &finding.kind else { panic!("{finding:#?}") };
    let [other] = **others else { panic!("{finding:#?}") };
    let members = |group: u32| &*outcome.groups.rows[group as usize].members;
    assert_eq!((members(finding.group), members(other)), (&[1][..], &[2][..]));
}

#[test]
fn locks_are_told_each() {
    let outcome = run([0x1000, 0x2000]);
    assert_eq!(outcome.findings.len(), 2);
    for finding in &outcome.findings {
        let FindingKind::SerialisingLock { others, .. } = &finding.kind else {
            panic!("{finding:#?}")
        };
        assert!(others.is_empty(), "{finding:#?}");
    }
}
