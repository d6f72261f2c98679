//! Who has a word of memory while others wait for it: threads that have a lock in turn, and those of an idle pool that pass on that there is work.

mod pool;
mod process;

use chase_analyzer::recorder::builder::{Builder, SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::layout::ORIGIN_EXEC;
use chase_analyzer::recorder::reader::{Recording, SyscallsFile};
use chase_analyzer::recorder::syscalls::{BlockedRow, CauseRow, WAKER_THREAD};
use chase_analyzer::{FindingKind, Image, Purpose};
use pool::{MS, Outcome, Pool, US};

const READ: u32 = 0;
const WRITE: u32 = 1;
const FUTEX: u32 = 202;
const WORKERS: u64 = 4;
const ROUNDS: u64 = 10;

/// A wait from and to these times, ns, that another thread ends; at a word, or at a pipe.
struct Wait {
    of: ThreadId,
    ended_by: ThreadId,
    /// The same, if it is the first one of another process: its id, and when that was first seen.
    process: Option<(u32, u64)>,
    number: u32,
    word: u64,
    from: u64,
    to: u64,
    context: usize,
}

fn seen(pid: u32, refs: &[Vec<u32>], waits: &[Wait]) -> SyscallsBuilder {
    let mut seen = SyscallsBuilder::new(pid);
    let began_ns = seen.header.began_ns;
    for (cause, wait) in (0..).zip(waits) {
        let mut row = CauseRow {
            context_ref: refs[wait.of.0 as usize][wait.context],
            tid: pid + wait.of.0,
            number: wait.number,
            object: wait.word,
            waker_kind: WAKER_THREAD,
            waker: wait.process.map_or(pid + wait.ended_by.0, |(pid, _)| pid),
            waker_pid: wait.process.map_or(pid, |(pid, _)| pid),
            waker_began_ns: wait.process.map_or(began_ns, |(_, began_ns)| began_ns),
            waits: 1,
            total_ns: wait.to - wait.from,
            max_ns: wait.to - wait.from,
            ..bytemuck::Zeroable::zeroed()
        };
        if wait.number != FUTEX {
            row.name[..6].copy_from_slice(b"pipe 5");
        }
        seen.cause(row);
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
            waits.push(Wait {
                of,
                ended_by,
                process: None,
                number: FUTEX,
                word: 0x1000,
                from,
                to,
                context: 1,
            });
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

/// A process that another one has started at this time, and that was seen since then; its id is this.
fn started(pid: u32, at_ns: u64) -> (Image, (u32, u64)) {
    let mut builder = Builder::new();
    builder.header.pid = pid;
    builder.header.origin = ORIGIN_EXEC;
    builder.header.clock_start.ticks += at_ns;
    builder.header.clock_start.monotonic_ns += at_ns;
    builder.header.clock_start.realtime_ns += at_ns;
    let app = builder.executable("/bin/sort");
    let slot = builder.slot(app, None, "work");
    let main = builder.thread("sort");
    builder.timeline(main).call(slot, 9 * MS).end();
    let recording = Recording::parse(builder.build()).expect("a recording");
    let mut seen = SyscallsBuilder::new(pid);
    seen.header.began_ns += at_ns;
    let known_as = (pid, seen.header.began_ns);
    let seen = SyscallsFile::parse(seen.build()).expect("a file");
    let image = Image::of(format!("sort-{pid}.chase").into(), recording);
    let mut image = image.with_syscalls(Some(seen));
    image.parent = Some(0);
    (image, known_as)
}

/// Four threads have a mutex in turn, each for 10 ms, and wait meanwhile at a condition until another thread signals it; which waits for as many answers.
fn with_lock(answers: u64) -> Outcome {
    with_lock_in(FUTEX, answers, None)
}

/// The same where they wait in this system call; for a process started for that, since so long before they wait for it, if it is one.
fn with_lock_in(number: u32, answers: u64, before_ns: Option<u64>) -> Outcome {
    let mut pool = Pool::new();
    let giver = pool.thread("giver", 0x400);
    // (It has nothing to do where processes do it.)
    pool.call(giver, pool.condition, 9 * MS, if before_ns.is_some() { 1 } else { 40 });
    pool.process.builder.timeline(giver).end();
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        let thread = pool.thread("worker", 0x300);
        pool.call(thread, pool.lock, 30 * MS, 10);
        pool.call(thread, pool.condition, 9 * MS, 10);
        pool.process.builder.timeline(thread).end();
        workers.push(thread);
    }
    let pid = pool.process.builder.header.pid;
    let for_it = |of, ended_by, word, (from, to): (u64, u64), context| Wait {
        of,
        ended_by,
        process: None,
        number: FUTEX,
        word,
        from,
        to,
        context,
    };
    let (mut waits, mut children) = (Vec::new(), Vec::new());
    for turn in 0..ROUNDS * WORKERS {
        let thread = |turn: u64| workers[(turn % WORKERS) as usize];
        let (at, of) = (turn * 10 * MS, thread(turn));
        if turn >= WORKERS {
            let (from, ended_by) = (at - 30 * MS, thread(turn - 1));
            waits.push(for_it(of, ended_by, 0x1000, (from, at), 1));
        }
        let to = at + 9 * MS;
        let child =
            before_ns.map(|ns| started(pid + 100 + turn as u32, (at + MS).saturating_sub(ns)));
        let process = child.as_ref().map(|(_, known_as)| *known_as);
        children.extend(child.map(|(image, _)| image));
        let wait = for_it(of, giver, 0x2000, (at + MS, to), 2);
        waits.push(Wait { number, process, ..wait });
        if turn < answers {
            waits.push(for_it(giver, of, 0x3000, (at, to), 1));
        }
    }
    if before_ns.is_some() {
        let (main, last) = (pool.process.main, workers[workers.len() - 1]);
        waits.push(for_it(main, last, 0x4000, (MS, 389 * MS), 1));
    }
    pool.finish_beside(children, |refs| seen(pid, refs, &waits))
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

#[test]
fn who_waits_for_room_with_a_lock_has_work() {
    let outcome = with_lock_in(READ, 0, None);
    assert!(!has_lock(&outcome), "{:#?}", outcome.findings);
    let outcome = with_lock_in(WRITE, 0, None);
    assert!(has_lock(&outcome), "{:#?}", outcome.findings);
}

#[test]
fn who_waits_with_a_lock_for_what_it_has_started_a_process_for_has_work() {
    let outcome = with_lock_in(READ, 0, Some(MS / 2));
    assert!(has_lock(&outcome), "{:#?}", outcome.findings);
    // Without the lock, the four would start these processes at once.
    let saves = outcome.findings[0].run_saves_ns.map(|saves| saves.0);
    assert!(saves.is_some_and(|saves| saves >= 200 * MS), "{saves:?}");
    // Those that were there before give it work.
    let outcome = with_lock_in(READ, 0, Some(400 * MS));
    assert!(!has_lock(&outcome), "{:#?}", outcome.findings);
}
