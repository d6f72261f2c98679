//! Threads that were started together, and the one that ends long after the others.

mod pool;
mod process;
mod waits;

use chase_analyzer::recorder::builder::ThreadId;
use chase_analyzer::{Finding, FindingKind, Ns};
use pool::{MS, Outcome, Pool};
use waits::Wait;

const MAIN: ThreadId = ThreadId(0);

/// The first thread starts one for each routine, which lives for so many ms, and waits for the second one from the first ms on; `more`
/// are other waits.
fn started(
    threads: &[(u64, u64)],
    more: impl FnOnce(&[ThreadId]) -> Vec<Wait>,
) -> (Outcome, Vec<ThreadId>) {
    let mut pool = Pool::new();
    let mut started = Vec::new();
    for &(routine, lives) in threads {
        let thread = pool.thread("load", routine);
        pool.process.builder.thread_mut(thread).creator = 0;
        pool.process.builder.timeline(thread).call(pool.condition, MS);
        pool.process.builder.timeline(thread).work((lives - 1) * MS).end();
        started.push(thread);
    }
    let until = threads[1].1;
    let mut waits = more(&started);
    waits.push(Wait { of: MAIN, from: 1, to: until, ended_by: Some(started[1]), is_lock: false });
    let pid = pool.process.builder.header.pid;
    let outcome = pool.finish_seen(|refs| {
        waits::seen(pid, &waits, |wait| refs[wait.of.0 as usize].last().copied().unwrap_or(0))
    });
    (outcome, started)
}

fn last(outcome: &Outcome) -> Option<&Finding> {
    let is_last = |finding: &&Finding| matches!(finding.kind, FindingKind::LastToEnd { .. });
    outcome.findings.iter().find(is_last)
}

#[test]
fn the_last_of_threads_that_do_different_things() {
    let (outcome, threads) = started(&[(0x100, 60), (0x200, 500), (0x300, 90)], |_| Vec::new());
    let finding = last(&outcome).unwrap_or_else(|| panic!("{:#?}", outcome.findings));
    let FindingKind::LastToEnd { lifetime_ns, median_ns, of_threads } = finding.kind else {
        panic!()
    };
    let is_about = |ns: Ns, ms: u64| ns.0.abs_diff(ms * MS) < MS;
    assert!(is_about(lifetime_ns, 500) && is_about(median_ns, 75), "{finding:#?}");
    assert_eq!(of_threads, 3);
    assert!(is_about(finding.saves_ns, 410), "{finding:#?}");
    let tid = outcome.analysis.threads[finding.threads[0] as usize].tid;
    assert_eq!(tid, outcome.analysis.processes[0].pid + threads[1].0);
}

#[test]
fn what_it_waits_for_meanwhile_is_known() {
    let (outcome, _) = started(&[(0x100, 60), (0x200, 500), (0x300, 90)], |threads| {
        // Before the others end, it waits for something else.
        vec![
            Wait { of: threads[1], from: 5, to: 80, ended_by: None, is_lock: false },
            Wait { of: threads[1], from: 100, to: 490, ended_by: None, is_lock: false },
        ]
    });
    let late = &outcome.watched.late[0];
    assert_eq!((late.others.len(), late.is_group), (2, false));
    assert_eq!(late.waits.iter().map(|row| row.ns.0).sum::<u64>(), 390 * MS);
    assert!(last(&outcome).is_some(), "{:#?}", outcome.findings);
}

#[test]
fn one_thread_that_is_the_program_is_no_news() {
    // Nobody beside it; two that were started long after it; two that hardly did anything; several that end late.
    for threads in [
        &[(0x100, 60), (0x200, 500)][..],
        &[(0x100, 2), (0x200, 500), (0x300, 2)],
        &[(0x100, 450), (0x200, 500), (0x300, 90)],
    ] {
        let (outcome, _) = started(threads, |_| Vec::new());
        assert!(last(&outcome).is_none(), "{threads:?}: {:#?}", outcome.findings);
    }
    // It waits for what others have to do.
    let (outcome, _) = started(&[(0x100, 60), (0x200, 500), (0x300, 90)], |threads| {
        let ended_by = Some(MAIN);
        vec![Wait { of: threads[1], from: 100, to: 450, ended_by, is_lock: false }]
    });
    assert!(last(&outcome).is_none(), "{:#?}", outcome.findings);
}
