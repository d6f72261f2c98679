//! Threads that are started for pieces of work that are too small for it.

mod pool;
mod process;
mod waits;

use chase_analyzer::recorder::builder::{SlotId, ThreadId};
use chase_analyzer::{Finding, FindingKind, Ns};
use pool::{MS, Outcome, Pool, US};
use waits::Wait;

const MAIN: ThreadId = ThreadId(0);

/// So many threads, each of which works for some time.
struct Started {
    pool: Pool,
    create: SlotId,
    threads: Vec<ThreadId>,
}

impl Started {
    fn new(count: usize, works_ns: u64, creator: impl Fn(usize) -> u32) -> Self {
        let mut pool = Pool::new();
        let (app, liba) = (pool.process.app, pool.process.liba);
        let create = pool.process.builder.slot(app, Some(liba), "pthread_create");
        let mut threads = Vec::new();
        for number in 0..count {
            let thread = pool.thread("task", 0x100);
            pool.process.builder.thread_mut(thread).creator = creator(number);
            pool.process.builder.timeline(thread).work(works_ns).end();
            threads.push(thread);
        }
        Self { pool, create, threads }
    }

    /// The main thread starts them by calls of 8 µs, and waits for each as long.
    fn by_main(count: usize, works_ns: u64, joined_ns: u64) -> Self {
        let mut started = Self::new(count, works_ns, |_| 0);
        started.pool.call(MAIN, started.create, 8 * US, count as u64);
        if joined_ns > 0 {
            let join = started.pool.join;
            started.pool.call(MAIN, join, joined_ns, count as u64);
        }
        started
    }
}

fn short(outcome: &Outcome) -> Option<&Finding> {
    let is_short = |finding: &&Finding| matches!(finding.kind, FindingKind::ShortThreads { .. });
    outcome.findings.iter().find(is_short)
}

/// What a finding says that starting a thread takes, and waiting for it, within what quantiles are right to.
fn takes(outcome: &Outcome, made_ns: u64, awaited_ns: u64) -> &Finding {
    let finding = short(outcome).unwrap_or_else(|| panic!("{:#?}", outcome.findings));
    let FindingKind::ShortThreads { made_ns: made, awaited_ns: awaited, .. } = finding.kind else {
        panic!()
    };
    let is_about = |ns: Ns, about: u64| ns.0.abs_diff(about) <= about / 10;
    assert!(is_about(made, made_ns) && is_about(awaited, awaited_ns), "{finding:#?}");
    finding
}

#[test]
fn a_thread_for_each_task() {
    let outcome = Started::by_main(200, 10 * US, 30 * US).pool.finish();
    let finding = takes(&outcome, 8 * US, 20 * US);
    let FindingKind::ShortThreads { threads, lifetime_ns, useful_ns, .. } = finding.kind else {
        panic!()
    };
    assert_eq!((threads, lifetime_ns, useful_ns), (200, Ns(10 * US), Ns(10 * US)));
    assert_eq!(outcome.groups.rows[finding.group as usize].threads, 200);
    // Who starts them gains.
    assert_eq!((&*finding.threads, outcome.api(finding.api)), (&[0][..], Some("pthread_create")));
    assert!(finding.saves_ns.0.abs_diff(200 * 28 * US) < 400 * US, "{finding:#?}");
}

#[test]
fn a_start_that_takes_longer_now_and_then_is_one_of_them() {
    let mut started = Started::new(200, 10 * US, |_| 0);
    let (create, join) = (started.create, started.pool.join);
    started.pool.call(MAIN, create, 10 * MS, 1);
    started.pool.call(MAIN, create, 8 * US, 199);
    started.pool.call(MAIN, join, 30 * US, 200);
    let outcome = started.pool.finish();
    assert!(short(&outcome).is_some() && outcome.findings.len() == 1, "{:#?}", outcome.findings);
}

#[test]
fn they_are_few_or_large_enough_or_of_no_matter() {
    // 50 of them; each works for 300 µs; nobody waits for their ends, and each works for three times as long as its start takes.
    for (count, works_ns, joined_ns) in
        [(50, 10 * US, 30 * US), (200, 300 * US, 340 * US), (200, 25 * US, 0)]
    {
        let outcome = Started::by_main(count, works_ns, joined_ns).pool.finish();
        assert!(short(&outcome).is_none(), "{works_ns}: {:#?}", outcome.findings);
    }
    // The same threads in a run of which they are a small part.
    let mut started = Started::by_main(200, 10 * US, 30 * US);
    started.pool.process.builder.timeline(MAIN).work(1000 * MS);
    assert!(short(&started.pool.finish()).is_none());
}

#[test]
fn what_others_have_of_the_processor_meanwhile_is_not_its_fault() {
    // Until the end of a thread is seen, others run for 300 µs.
    let outcome = Started::by_main(200, 10 * US, 300 * US).pool.finish();
    takes(&outcome, 8 * US, 32 * US);
}

#[test]
fn threads_that_are_not_joined_tell_that_they_are_done() {
    let mut started = Started::by_main(200, 10 * US, 0);
    // (In other calls than those by which threads are joined.)
    let condition = started.pool.condition;
    started.pool.call(MAIN, condition, 50 * US, 200);
    let pid = started.pool.process.builder.header.pid;
    let wait = |(at, &thread): (u64, &ThreadId)| {
        let ended_by = Some(thread);
        Wait { of: MAIN, from: at, to: at + 1, ended_by, is_lock: false }
    };
    let waits: Vec<Wait> = (0..10).zip(&started.threads).map(wait).collect();
    let outcome = started.pool.finish_seen(|refs| {
        waits::seen(pid, &waits, |wait| refs[wait.of.0 as usize].last().copied().unwrap_or(0))
    });
    // 10 ms for 200 threads of 10 µs, but no more than four times what it takes to start one.
    takes(&outcome, 8 * US, 32 * US);
}

#[test]
fn threads_that_start_each_other() {
    // Each starts the next one.
    let mut started = Started::new(400, 10 * US, |number| number as u32);
    let (create, threads) = (started.create, started.threads.clone());
    for &thread in &threads[..399] {
        started.pool.call(thread, create, 8 * US, 1);
    }
    started.pool.process.builder.timeline(MAIN).work(20 * MS);
    let outcome = started.pool.finish();
    let finding = takes(&outcome, 8 * US, 0);
    // Who gains most starts one; all of them are what the run loses.
    assert!(finding.saves_ns.0.abs_diff(400 * 8 * US) < 400 * US, "{finding:#?}");
}
