//! Whether threads that wait for another one wait for what it does.

mod pool;
mod process;

use chase_analyzer::FindingKind;
use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::layout::NONE;
use chase_analyzer::recorder::syscalls::{CauseRow, WAKER_INTERRUPT, WAKER_THREAD};
use pool::{MS, Outcome, Pool};

const FUTEX: u32 = 202;
const EPOLL_WAIT: u32 = 232;
const FDATASYNC: u32 = 75;
const RECVFROM: u32 = 45;
const WAIT4: u32 = 61;

/// What waits for a thread that works for a second.
struct Consumers {
    count: usize,
    /// The system call in which they wait.
    number: u32,
    waits: u64,
    max_ms: u64,
    /// How long each uses the processor.
    cpu_ms: u64,
    /// How many threads work.
    producers: usize,
    /// How often the thread waits for an answer of the first of them.
    answers: u64,
    /// How long the thread waits for nobody of the run, or for the disk.
    outside: Option<(u32, u64)>,
    /// Whether the thread has created them.
    are_its_own: bool,
    /// Whether the thread is the first of its process.
    is_first: bool,
    /// Whether nobody saw who created them, as of a process that was attached to.
    are_found: bool,
    /// If they are threads of a Java virtual machine, their name.
    of_jvm: Option<&'static str>,
}

const PIPE: Consumers = Consumers {
    count: 1,
    number: FUTEX,
    waits: 60,
    max_ms: 20,
    cpu_ms: 100,
    producers: 1,
    answers: 0,
    outside: None,
    are_its_own: false,
    is_first: false,
    are_found: false,
    of_jvm: None,
};

/// A thread that works for a second, and consumers that wait for it during nine tenths of it: in so many waits each, the longest of
/// which takes `max_ms`.
fn consumers(count: usize, waits: u64, max_ms: u64) -> Outcome {
    run(&Consumers { count, waits, max_ms, ..PIPE })
}

fn run(of: &Consumers) -> Outcome {
    let mut pool = Pool::new();
    let mut producers = Vec::new();
    let other = pool.thread("other", 0x400);
    pool.process.builder.timeline(other).end();
    for _ in 0..of.producers {
        if of.is_first {
            producers.push(pool.process.main);
            continue;
        }
        let producer = pool.thread("producer", 0x300);
        pool.call(producer, pool.work, 10 * MS, 100);
        pool.process.builder.timeline(producer).end();
        producers.push(producer);
    }
    let producer = producers[0];
    let mut threads = Vec::new();
    pool.workers(of.count, |pool, _, thread| {
        pool.call(thread, pool.condition, 900 * MS / of.waits, of.waits);
        pool.call(thread, pool.work, MS, 100);
        pool.process.builder.thread_mut(thread).creator = match of {
            Consumers { are_its_own: true, .. } => producer.0,
            Consumers { are_found: true, .. } => NONE,
            _ => other.0,
        };
        threads.push(thread);
    });
    if let Some(name) = of.of_jvm {
        pool.start_in("/usr/lib/jvm/lib/server/libjvm.so", &threads);
        for &thread in &threads {
            pool.process.builder.thread_mut(thread).name[..name.len()]
                .copy_from_slice(name.as_bytes());
        }
    }
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        let began_ns = seen.header.began_ns;
        for producer in &producers {
            seen.on_cpu(pid + producer.0, 1000 * MS - of.outside.map_or(0, |(_, ms)| ms * MS));
        }
        let wait = |of: ThreadId, by: Option<ThreadId>, number, ms: u64| CauseRow {
            context_ref: refs[of.0 as usize][1],
            tid: pid + of.0,
            number,
            object: 0x1000,
            waker_kind: by.map_or(WAKER_INTERRUPT, |_| WAKER_THREAD),
            waker: by.map_or(0, |by| pid + by.0),
            waker_pid: by.map_or(0, |_| pid),
            waker_began_ns: by.map_or(0, |_| began_ns),
            waits: 1,
            total_ns: ms * MS,
            max_ns: ms * MS,
            ..bytemuck::Zeroable::zeroed()
        };
        for &thread in &threads {
            seen.on_cpu(pid + thread.0, of.cpu_ms * MS);
            let (count, waits) = (of.producers as u64, of.waits / of.producers as u64);
            for &producer in &producers {
                let row = wait(thread, Some(producer), of.number, 900 / count);
                seen.cause(CauseRow { waits, max_ns: of.max_ms * MS, ..row });
            }
        }
        if of.answers > 0 {
            let row = wait(producer, Some(threads[0]), FUTEX, 100);
            seen.cause(CauseRow { waits: of.answers, max_ns: MS, object: 0x2000, ..row });
        }
        if let Some((number, ms)) = of.outside {
            seen.cause(CauseRow { object: 0, ..wait(producer, None, number, ms) });
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

/// A compiler, or a collector of garbage, that has nothing to do is not starved. A program's own thread may be.
#[test]
fn threads_that_a_java_machine_makes_for_itself_are_no_stages() {
    let of_jvm = |name| is_limited(&run(&Consumers { of_jvm: Some(name), ..PIPE }));
    assert!(!of_jvm("C2 CompilerThre") && !of_jvm("GC Thread#0"));
    assert!(of_jvm("Thread-0"));
}

#[test]
fn even_waits_are_a_limit_however_few_each_thread_has() {
    assert!(is_limited(&consumers(4, 6, 200)));
    assert!(is_limited(&consumers(1, 60, 20)));
    // A start that took long, and all others as ever.
    assert!(is_limited(&consumers(4, 60, 300)));
}

/// The shares of its life that limiting stages wait themselves.
fn own_waits(outcome: &Outcome) -> Vec<f64> {
    let stages = outcome.findings.iter().filter_map(|finding| match finding.kind {
        FindingKind::LimitingStage { own_wait, .. } => Some(own_wait),
        _ => None,
    });
    stages.collect()
}

#[test]
fn who_hardly_works_is_limited_if_it_gets_one_thing_after_the_other() {
    let light = Consumers { cpu_ms: 2, ..PIPE };
    assert!(is_limited(&run(&light)));
    assert!(is_limited(&run(&Consumers { count: 3, ..light })));
    // A helper is told now and then,
    assert!(!is_limited(&run(&Consumers { waits: 20, ..light })));
    // answers,
    assert!(!is_limited(&run(&Consumers { answers: 50, ..light })));
    assert!(is_limited(&run(&Consumers { answers: 5, ..light })));
    // or has been created for it.
    assert!(!is_limited(&run(&Consumers { are_its_own: true, ..light })));
}

#[test]
fn an_event_loop_is_limited_by_the_one_thread_that_feeds_it() {
    let event_loop = Consumers { number: EPOLL_WAIT, ..PIPE };
    assert!(is_limited(&run(&event_loop)));
    assert!(is_limited(&run(&Consumers { cpu_ms: 2, ..event_loop })));
    // A server answers,
    assert!(!is_limited(&run(&Consumers { answers: 50, ..event_loop })));
    // has several clients,
    assert!(!is_limited(&run(&Consumers { producers: 2, ..event_loop })));
    assert!(is_limited(&run(&Consumers { producers: 2, ..PIPE })));
    // or has been created to do what is rare.
    assert!(!is_limited(&run(&Consumers { are_its_own: true, ..event_loop })));
}

#[test]
fn threads_that_chase_has_found_may_be_of_the_first_one() {
    let light = Consumers { cpu_ms: 2, is_first: true, ..PIPE };
    assert!(is_limited(&run(&light)));
    assert!(!is_limited(&run(&Consumers { are_found: true, ..light })));
    assert!(is_limited(&run(&Consumers { are_found: true, is_first: false, ..light })));
}

#[test]
fn a_pool_of_its_own_is_limited_if_it_does_much() {
    let own = Consumers { are_its_own: true, count: 2, ..PIPE };
    assert!(!is_limited(&run(&own)));
    assert!(is_limited(&run(&Consumers { cpu_ms: 300, ..own })));
    assert!(is_limited(&run(&Consumers { count: 1, ..own })));
}

#[test]
fn who_waits_most_of_its_life_limits_nobody_by_work() {
    let [share] = *own_waits(&run(&PIPE)) else { panic!("a stage") };
    assert!(share.abs() < 1e-9, "{share}");
    let outside = |number, ms| run(&Consumers { outside: Some((number, ms)), ..PIPE });
    assert_eq!(own_waits(&outside(RECVFROM, 600)), []);
    let [share] = *own_waits(&outside(RECVFROM, 300)) else { panic!("a stage") };
    assert!((share - 0.3).abs() < 0.01, "{share}");
    // What it waits for the end of a process is said like all else that it waits.
    let [share] = *own_waits(&outside(WAIT4, 300)) else { panic!("a stage") };
    assert!((share - 0.3).abs() < 0.01, "{share}");
    // The disk works for it.
    let [share] = *own_waits(&outside(FDATASYNC, 600)) else { panic!("a stage") };
    assert!((share - 0.6).abs() < 0.01, "{share}");
}
