//! Work that is divided unevenly, and what the run would gain at most without what findings are about.

mod pool;
mod process;
mod waits;

use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::recorder::syscalls::{BlockedRow, CauseRow, NO_CAUSE, WAKER_TIME};
use chase_analyzer::{Finding, FindingKind, Image, Ns};
use pool::{MS, Outcome, Pool};
use waits::Wait;

const MAIN: ThreadId = ThreadId(0);
const EPOLL_WAIT: u32 = 232;

fn wait(of: ThreadId, from: u64, to: u64, ended_by: ThreadId) -> Wait {
    Wait { of, from, to, ended_by: Some(ended_by), is_lock: false }
}

/// Three workers that live for 100 ms, and what was seen of them; the first thread waits for the worker that is given.
fn outcome(waits: impl FnOnce(&[ThreadId]) -> Vec<Wait>) -> Outcome {
    outcome_of([100; 3], 0, waits)
}

/// The same for workers that live for so many ms each; the first thread works for `first_works` ms before it waits for their ends.
fn outcome_of(
    lives: [u64; 3],
    first_works: u64,
    waits: impl FnOnce(&[ThreadId]) -> Vec<Wait>,
) -> Outcome {
    let (mut pool, mut workers) = (Pool::new(), Vec::new());
    pool.process.builder.timeline(MAIN).work(first_works * MS);
    pool.workers(3, |pool, number, thread| {
        worker(pool, thread, lives[number]);
        workers.push(thread);
    });
    let waits = waits(&workers);
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| seen(pid, refs, &waits))
}

fn worker(pool: &mut Pool, thread: ThreadId, lives: u64) {
    pool.process.builder.timeline(thread).call(pool.condition, MS).call(pool.lock, MS);
    pool.process.builder.timeline(thread).work((lives - 2) * MS);
}

fn seen(pid: u32, refs: &[Vec<u32>], waits: &[Wait]) -> SyscallsBuilder {
    waits::seen(pid, waits, |wait| match wait.of {
        MAIN => refs[0].last().copied().unwrap_or_default(),
        of => refs[of.0 as usize][1 + usize::from(wait.is_lock)],
    })
}

fn uneven(outcome: &Outcome) -> Option<&Finding> {
    let is_uneven = |finding: &&Finding| matches!(finding.kind, FindingKind::UnevenWork { .. });
    outcome.findings.iter().find(is_uneven)
}

#[test]
fn a_thread_that_works_alone_while_the_others_are_parked() {
    let outcome = outcome(|workers| {
        let [a, b, c] = *workers else { panic!() };
        vec![wait(b, 20, 99, a), wait(c, 20, 99, a), wait(MAIN, 1, 100, a)]
    });
    let finding = uneven(&outcome).expect("a finding");
    let FindingKind::UnevenWork { alone_ns, batches, parked, of_threads, .. } = finding.kind else {
        panic!()
    };
    assert_eq!((alone_ns, batches, parked, of_threads), (Ns(79 * MS), 1, 2, 3));
    // A third of that is left, if all three share it.
    assert!(finding.saves_ns.0.abs_diff(79 * MS * 2 / 3) <= 1, "{:?}", finding.saves_ns);
    assert_eq!(finding.threads.len(), 1);
}

/// One of them runs Ruby at a time.
#[test]
fn threads_of_ruby_share_no_work() {
    let of = |library| {
        let (mut pool, mut workers) = (Pool::new(), Vec::new());
        pool.workers(3, |pool, _, thread| {
            worker(pool, thread, 100);
            workers.push(thread);
        });
        pool.start_in(library, &workers);
        let [a, b, c] = *workers else { panic!() };
        let waits = [wait(b, 20, 99, a), wait(c, 20, 99, a), wait(MAIN, 1, 100, a)];
        let pid = pool.process.builder.header.pid;
        uneven(&pool.finish_seen(|refs| seen(pid, refs, &waits))).is_some()
    };
    assert!(of("/lib/libpool.so.1") && !of("/usr/lib/libruby-3.1.so.3.1"));
}

#[test]
fn who_waits_in_an_event_loop_does_not_work() {
    // One waits for events, and another one for work, from 20 ms on; the third one as well, or it works on.
    let of = |works_on: bool| {
        let (mut pool, mut workers) = (Pool::new(), Vec::new());
        pool.workers(3, |pool, _, thread| {
            worker(pool, thread, 100);
            workers.push(thread);
        });
        let [a, b, c] = *workers else { panic!() };
        let mut waits = vec![wait(b, 20, 99, a), wait(MAIN, 1, 100, a)];
        waits.extend((!works_on).then(|| wait(c, 20, 99, a)));
        let looping = if works_on { c } else { a };
        let pid = pool.process.builder.header.pid;
        pool.finish_seen(|refs| {
            let mut seen = seen(pid, refs, &waits);
            let (cause, tid) = (waits.len() as u32, pid + looping.0);
            let began_ns = seen.header.began_ns;
            let (begin_ns, end_ns) = (began_ns + 20 * MS, began_ns + 99 * MS);
            seen.cause(CauseRow {
                context_ref: refs[looping.0 as usize][1],
                tid,
                number: EPOLL_WAIT,
                waker_kind: WAKER_TIME,
                waits: 1,
                total_ns: 79 * MS,
                max_ns: 79 * MS,
                ..bytemuck::Zeroable::zeroed()
            });
            seen.blocked(BlockedRow { cause, tid, begin_ns, woken_ns: 0, end_ns });
            seen
        })
    };
    let outcome = of(false);
    assert!(uneven(&outcome).is_none(), "{:#?}", outcome.findings);
    let outcome = of(true);
    let finding = uneven(&outcome).unwrap_or_else(|| panic!("{:#?}", outcome.findings));
    let FindingKind::UnevenWork { alone_ns, parked, .. } = finding.kind else { panic!() };
    assert_eq!((alone_ns, parked), (Ns(79 * MS), 1));
}

#[test]
fn who_is_parked_until_the_end_works_no_more() {
    // The last waits are longer than the lives, and one thread ends while another still works.
    let outcome = outcome_of([100, 100, 50], 100, |workers| {
        let [a, b, c] = *workers else { panic!() };
        let mut waits =
            [(a, 60), (b, 20), (c, 20)].map(|(of, from)| wait(of, from, 150, MAIN)).to_vec();
        waits.push(wait(MAIN, 1, 100, a));
        waits
    });
    let finding = uneven(&outcome).expect("a finding");
    let FindingKind::UnevenWork { all_ns, alone_ns, batches, parked, .. } = finding.kind else {
        panic!()
    };
    // Nobody works from 60 ms on: that is no part of a batch.
    assert_eq!((all_ns, alone_ns, batches), (Ns(59 * MS), Ns(40 * MS), 1));
    assert_eq!(parked, 2, "until one of them ends");
}

#[test]
fn workers_of_two_processes_share_no_work() {
    let image = |pid: u32, waits: &[Wait]| -> Image {
        let mut pool = Pool::new();
        pool.process.builder.header.pid = pid;
        pool.process.builder.thread_mut(MAIN).tid = pid;
        pool.workers(1, |pool, _, thread| worker(pool, thread, 100));
        let join = pool.join;
        pool.process.builder.timeline(MAIN).call(join, 100 * MS).end();
        let seen = seen(pid, &pool.process.builder.context_refs(), waits).build();
        let seen = SyscallsFile::parse(seen).expect("a file");
        pool.process.image().with_syscalls(Some(seen))
    };
    let only = ThreadId(1);
    let busy = image(1_000, &[wait(MAIN, 1, 100, only)]);
    let parked = image(2_000, &[wait(only, 20, 99, MAIN)]);
    let outcome = pool::outcome(vec![busy, parked]);
    let is_worker = |label: &str| !label.contains("main");
    let workers = outcome.groups.rows.iter().filter(|row| is_worker(&row.label));
    assert_eq!(workers.map(|row| row.threads).collect::<Vec<_>>(), [2], "one group of both");
    assert!(uneven(&outcome).is_none(), "{:#?}", outcome.findings);
}

#[test]
fn nobody_waits_for_a_thread_that_works_alone() {
    let outcome = outcome(|workers| {
        let [a, b, c] = *workers else { panic!() };
        vec![wait(b, 20, 99, a), wait(c, 20, 99, a)]
    });
    assert!(uneven(&outcome).is_none(), "{:#?}", outcome.findings);
}

#[test]
fn jobs_that_come_one_at_a_time_are_not_uneven() {
    let outcome = outcome(|workers| {
        let [a, b, c] = *workers else { panic!() };
        // Each works for a third of the time, and the next one then.
        let mut waits = vec![wait(MAIN, 1, 100, a)];
        waits.extend([wait(a, 34, 99, MAIN), wait(b, 1, 34, MAIN), wait(b, 67, 99, MAIN)]);
        waits.push(wait(c, 1, 67, MAIN));
        waits
    });
    assert!(uneven(&outcome).is_none(), "{:#?}", outcome.findings);
}

#[test]
fn who_waits_for_a_lock_is_not_parked() {
    let outcome = outcome(|workers| {
        let [a, b, c] = *workers else { panic!() };
        let lock = |of| Wait { is_lock: true, ..wait(of, 20, 99, a) };
        vec![lock(b), lock(c), wait(MAIN, 1, 100, a)]
    });
    assert!(uneven(&outcome).is_none(), "{:#?}", outcome.findings);
    // The run gains no more than the thread that waits longest; here nothing, since the one that has the lock works on.
    let lock = outcome
        .findings
        .iter()
        .find(|finding| matches!(finding.kind, FindingKind::SerialisingLock { .. }));
    let lock = lock.expect("a lock");
    let of_run = lock.run_saves_ns.expect("what the run gains");
    assert!(of_run <= lock.saves_ns && of_run.0 < MS, "{lock:#?}");
}

/// Three workers that live for 100 ms, of which the first has a lock that the others wait for; it has no processor for a while.
fn lock_of_a_thread_without_processor(from: u64, to: u64) -> Outcome {
    let (mut pool, mut workers) = (Pool::new(), Vec::new());
    pool.workers(3, |pool, _, thread| {
        worker(pool, thread, 100);
        workers.push(thread);
    });
    let [a, b, c] = *workers else { panic!() };
    let lock = |of| Wait { is_lock: true, ..wait(of, 20, 80, a) };
    let waits = [lock(b), lock(c), wait(MAIN, 1, 100, a)];
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = seen(pid, refs, &waits);
        let began_ns = seen.header.began_ns;
        let (begin_ns, end_ns) = (began_ns + from * MS, began_ns + to * MS);
        let (cause, tid) = (NO_CAUSE, pid + a.0);
        seen.blocked(BlockedRow { cause, tid, begin_ns, woken_ns: 0, end_ns });
        seen
    })
}

#[test]
fn a_lock_whose_holder_has_no_processor_is_not_what_others_wait_for() {
    let is_lock = |finding: &Finding| matches!(finding.kind, FindingKind::SerialisingLock { .. });
    let outcome = lock_of_a_thread_without_processor(21, 79);
    assert!(!outcome.findings.iter().any(is_lock), "{:#?}", outcome.findings);
    // It holds the lock for long without that, too.
    let outcome = lock_of_a_thread_without_processor(21, 50);
    assert!(outcome.findings.iter().any(is_lock), "{:#?}", outcome.findings);
}

#[test]
fn who_waits_for_a_stage_that_is_at_work_does_not_wait_for_more_of_the_same_work() {
    // The others wait for room in a queue, say, that another thread takes from.
    let found = |stage_waits: bool| {
        let (mut pool, mut workers) = (Pool::new(), Vec::new());
        pool.workers(3, |pool, _, thread| {
            worker(pool, thread, 100);
            workers.push(thread);
        });
        let stage = pool.thread("stage", 0x300);
        worker(&mut pool, stage, 100);
        pool.process.builder.timeline(stage).end();
        let [a, b, c] = *workers else { panic!() };
        let mut waits = vec![wait(b, 20, 99, stage), wait(c, 20, 99, stage), wait(MAIN, 1, 100, a)];
        if stage_waits {
            waits.push(wait(stage, 10, 98, a));
        }
        let pid = pool.process.builder.header.pid;
        let outcome = pool.finish_seen(|refs| seen(pid, refs, &waits));
        uneven(&outcome).is_some()
    };
    assert!(!found(false));
    // One that only passes on what there is to do waits itself.
    assert!(found(true));
}

/// Rounds of three threads, of which one ends late; and a fourth that begins shortly before that, and for which the first thread waits, if `by_late`
/// is false.
fn rounds_of_threads(rounds: u64, by_late: bool) -> Outcome {
    let (mut pool, mut waits) = (Pool::new(), Vec::new());
    for round in 0..rounds {
        let mut thread = |from: u64, lives: u64| {
            let thread = pool.thread("worker", 0x100);
            let start = &mut pool.process.builder.thread_mut(thread).start_ticks;
            *start += (50 * round + from) * MS;
            worker(&mut pool, thread, lives);
            pool.process.builder.timeline(thread).end();
            thread
        };
        let late = thread(0, 40);
        thread(0, 10);
        thread(0, 10);
        let ended_by = if by_late { late } else { thread(38, 3) };
        waits.push(wait(MAIN, 50 * round + 1, 50 * round + 40, ended_by));
    }
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| seen(pid, refs, &waits))
}

#[test]
fn rounds_of_threads_of_which_one_ends_late() {
    let outcome = rounds_of_threads(4, true);
    let finding = uneven(&outcome).expect("a finding");
    let FindingKind::UnevenWork { alone_ns, batches, parked, .. } = finding.kind else { panic!() };
    assert_eq!((alone_ns, batches, parked), (Ns(4 * 30 * MS), 4, 2));
    assert!(finding.blame.is_none(), "they wait for nothing, but have ended: {finding:#?}");
    // Of a single round, it is said that one ends last.
    let outcome = rounds_of_threads(1, true);
    assert!(uneven(&outcome).is_none(), "{:#?}", outcome.findings);
    // It serves a connection, and nobody waits for its end.
    let outcome = rounds_of_threads(4, false);
    assert!(uneven(&outcome).is_none(), "{:#?}", outcome.findings);
}
