//! Processes that one process has forked, and the one of them that works longer than the others.

mod pool;
mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::layout::{END_EXEC, END_EXIT, ORIGIN_FORK};
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::recorder::syscalls::{
    BlockedRow, CauseRow, WAIT_VOLUNTARY, WAKER_THREAD, WAKER_TIME,
};
use chase_analyzer::{Finding, FindingKind, Image, Ns};
use pool::{MS, Outcome, Pool, outcome};

const READ: u32 = 0;
const POLL: u32 = 7;
const NANOSLEEP: u32 = 35;
const WAIT4: u32 = 61;
const FUTEX: u32 = 202;
const PARENT: u32 = 1_000;

/// A wait in a system call, from and to in ms, and the process that ended it.
#[derive(Clone, Copy)]
struct Seen {
    from: u64,
    to: u64,
    number: u32,
    by: Option<u32>,
}

/// A process that lives for so many ms, all of it in a function; a fork if it is not the parent.
fn image(pid: u32, life: (u64, u32), function: &str, waits: &[Seen]) -> Image {
    image_beside(pid, life, function, waits, 0)
}

/// The same where another thread of the process works for so many ms.
fn image_beside(
    pid: u32,
    (lives, ending): (u64, u32),
    function: &str,
    waits: &[Seen],
    works: u64,
) -> Image {
    let mut pool = Pool::new();
    let (app, liba) = (pool.process.app, pool.process.liba);
    let slot = pool.process.builder.slot(app, Some(liba), function);
    let main = pool.process.main;
    pool.process.builder.header.pid = pid;
    pool.process.builder.thread_mut(main).tid = pid;
    pool.process.builder.timeline(main).call(slot, lives * MS).end();
    if works > 0 {
        let thread = pool.thread("server", 0x100);
        pool.process.builder.timeline(thread).work(works * MS).end();
    }
    pool.process.builder.end(ending, 0);
    if pid != PARENT {
        pool.process.builder.header.parent_pid = PARENT;
        pool.process.builder.header.origin = ORIGIN_FORK;
    }
    let context_ref = pool.process.builder.context_refs()[0].last().copied().unwrap_or_default();
    let mut file = SyscallsBuilder::new(pid);
    file.header.processors = 4;
    for (cause, wait) in (0..).zip(waits) {
        let ns = (wait.to - wait.from) * MS;
        let mut row = CauseRow {
            context_ref,
            tid: pid,
            number: wait.number,
            object: if wait.number == NANOSLEEP { 0 } else { 0x1000 },
            waker_kind: if wait.by.is_some() { WAKER_THREAD } else { WAKER_TIME },
            waker: wait.by.unwrap_or(0),
            waker_pid: wait.by.unwrap_or(0),
            waker_began_ns: file.header.began_ns,
            waits: 1,
            total_ns: ns,
            max_ns: ns,
            ..bytemuck::Zeroable::zeroed()
        };
        if matches!(wait.number, READ | POLL) {
            row.name[..6].copy_from_slice(b"pipe 5");
        }
        file.cause(row);
        file.wait(context_ref, pid, WAIT_VOLUNTARY, 1, ns);
        let (begin_ns, end_ns) =
            (file.header.began_ns + wait.from * MS, file.header.began_ns + wait.to * MS);
        let woken_ns = if wait.by.is_some() { end_ns } else { 0 };
        file.blocked(BlockedRow { cause, tid: pid, begin_ns, woken_ns, end_ns });
    }
    let file = SyscallsFile::parse(file.build()).expect("a file");
    let mut image = pool.process.image().with_syscalls(Some(file));
    image.parent = (pid != PARENT).then_some(0);
    image
}

/// Three forks that sleep for all their lives, and their parent, which waits for the first one.
fn slept(lives: [u64; 3], endings: [u32; 3], waits_in: u32) -> Outcome {
    let by = Some(PARENT + 1);
    let waits = [Seen { from: 1, to: lives[0], number: waits_in, by }];
    let mut images = vec![image(PARENT, (lives[0] + 10, END_EXIT), "wait", &waits)];
    for ((pid, lives), ending) in (PARENT + 1..).zip(lives).zip(endings) {
        let sleep = Seen { from: 0, to: lives, number: NANOSLEEP, by: None };
        images.push(image(pid, (lives, ending), "usleep", &[sleep]));
    }
    outcome(images)
}

fn found(outcome: &Outcome, is_wanted: fn(&FindingKind) -> bool) -> Option<&Finding> {
    outcome.findings.iter().find(|finding| is_wanted(&finding.kind))
}

fn is_last(kind: &FindingKind) -> bool {
    matches!(kind, FindingKind::LastToEnd { .. })
}

fn is_uneven(kind: &FindingKind) -> bool {
    matches!(kind, FindingKind::UnevenWork { .. })
}

#[test]
fn one_ends_long_after_the_others() {
    for waits_in in [WAIT4, POLL, READ] {
        let outcome = slept([500, 60, 90], [END_EXIT; 3], waits_in);
        let last = found(&outcome, is_last);
        let last = last.unwrap_or_else(|| panic!("{waits_in}: {:#?}", outcome.findings));
        assert!(last.saves_ns.0.abs_diff(410 * MS) < MS, "{last:#?}");
        let [thread] = *last.threads else { panic!("{last:#?}") };
        assert_eq!(outcome.analysis.threads[thread as usize].tid, PARENT + 1);
        let late = &outcome.watched.late[0];
        assert!(late.is_process && late.others.len() == 2, "{late:#?}");
        assert_eq!(late.waits[0].ns, Ns(410 * MS));
    }
}

#[test]
fn they_end_together_or_as_other_programs_or_nobody_waits() {
    for (lives, endings, waits_in) in [
        ([500, 480, 470], [END_EXIT; 3], WAIT4),
        // Two of three are what the program does.
        ([500, 490, 60], [END_EXIT; 3], WAIT4),
        // One went on as another program.
        ([500, 60, 90], [END_EXIT, END_EXEC, END_EXIT], WAIT4),
        // The parent sleeps.
        ([500, 60, 90], [END_EXIT; 3], NANOSLEEP),
    ] {
        let outcome = slept(lives, endings, waits_in);
        let last = found(&outcome, is_last);
        assert!(last.is_none(), "{lives:?} {endings:?} {waits_in}: {last:#?}");
    }
}

/// A pool of three that live for as long as their parent: one works, the others have nothing to do from some time on.
fn pooled(parked_from: u64, waits_in: u32, by: u32) -> Outcome {
    pooled_beside(parked_from, waits_in, by, 0)
}

/// The same where another thread of each of the others works for so many ms.
fn pooled_beside(parked_from: u64, waits_in: u32, by: u32, works: u64) -> Outcome {
    let waits = [Seen { from: 1, to: 199, number: waits_in, by: Some(by) }];
    let mut images = vec![image(PARENT, (200, END_EXIT), "read", &waits)];
    images.push(image(PARENT + 1, (200, END_EXIT), "work", &[]));
    for pid in [PARENT + 2, PARENT + 3] {
        let by = Some(PARENT);
        let parked = Seen { from: parked_from, to: 199, number: FUTEX, by };
        images.push(image_beside(pid, (200, END_EXIT), "sem_wait", &[parked], works));
    }
    outcome(images)
}

#[test]
fn one_of_a_pool_works_while_the_others_have_nothing_to_do() {
    for waits_in in [READ, POLL] {
        let outcome = pooled(50, waits_in, PARENT + 1);
        let uneven = found(&outcome, is_uneven);
        let uneven = uneven.unwrap_or_else(|| panic!("{waits_in}: {:#?}", outcome.findings));
        let FindingKind::UnevenWork { alone_ns, parked, of_threads, waiting, .. } = uneven.kind
        else {
            panic!()
        };
        assert_eq!((alone_ns, parked, of_threads), (Ns(149 * MS), 2, 3));
        assert_eq!(outcome.groups.rows[waiting as usize].label, "main of app");
        let [thread] = *uneven.threads else { panic!("{uneven:#?}") };
        assert_eq!(outcome.analysis.threads[thread as usize].tid, PARENT + 1);
        let one = &outcome.watched.uneven[0];
        assert_eq!(outcome.analysis.processes[one.process].pid, PARENT + 1);
    }
}

#[test]
fn all_of_a_pool_work_or_nobody_waits_for_them() {
    // They work until shortly before the end.
    assert!(found(&pooled(190, READ, PARENT + 1), is_uneven).is_none());
    // The parent waits for somebody else.
    assert!(found(&pooled(50, READ, 7), is_uneven).is_none());
    assert!(found(&pooled(50, POLL, 7), is_uneven).is_none());
}

#[test]
fn a_process_whose_other_threads_work_is_not_idle() {
    assert!(found(&pooled_beside(50, READ, PARENT + 1, 190), is_uneven).is_none());
    // They are done before.
    assert!(found(&pooled_beside(50, READ, PARENT + 1, 60), is_uneven).is_some());
}

/// Two forks: one works all the time, the other one mostly waits for a semaphore that `by` posts; and where the first one waits shortly.
fn fed(by: u32, first_waits: bool) -> Outcome {
    let parent = Seen { from: 1, to: 199, number: WAIT4, by: Some(PARENT + 1) };
    let first = Seen { from: 1, to: 4, number: FUTEX, by: Some(PARENT) };
    let first: &[Seen] = if first_waits { &[first] } else { &[] };
    let second = Seen { from: 50, to: 199, number: FUTEX, by: Some(by) };
    outcome(vec![
        image(PARENT, (200, END_EXIT), "wait", &[parent]),
        image(PARENT + 1, (200, END_EXIT), "sem_wait", first),
        image(PARENT + 2, (200, END_EXIT), "sem_wait", &[second]),
    ])
}

#[test]
fn who_feeds_another_process_shares_no_work_with_it() {
    let outcome = fed(PARENT + 1, false);
    assert!(found(&outcome, is_uneven).is_none(), "{:#?}", outcome.findings);
    // Both get their work from the parent; or it is passed on, and the first one waits for more at the same semaphore.
    assert!(found(&fed(PARENT, false), is_uneven).is_some());
    assert!(found(&fed(PARENT + 1, true), is_uneven).is_some());
}
