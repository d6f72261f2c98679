//! Timers that wake threads for nothing, and others that pace their work.

mod pool;
mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::syscalls::{CauseRow, OBJECT_NAME};
use chase_analyzer::{FindingKind, Ns};
use pool::{MS, Pool, US};

const READ: u32 = 0;
const WRITE: u32 = 1;
const EPOLL_WAIT: u32 = 232;

/// What a thread does that waits for 800 ms of a second.
#[derive(Clone, Copy)]
struct Between {
    of: &'static str,
    waits_in: u32,
    waits: u64,
    /// How long it runs, of the 40 ms in which it has the processor: the rest is the kernel's.
    runs_ms: u32,
    reads: u64,
    writes: u64,
}

const TICKS: Between = Between {
    of: "anon_inode:[timerfd]",
    waits_in: EPOLL_WAIT,
    waits: 5_000,
    runs_ms: 4,
    reads: 5_000,
    writes: 0,
};

/// What is told: how often a second, and how long it runs after each wait.
fn told(of: Between) -> Option<(f64, Ns)> {
    let mut pool = Pool::new();
    let (app, liba) = (pool.process.app, pool.process.liba);
    let wait = pool.process.builder.slot(app, Some(liba), "wait_for_it");
    let ticker = pool.thread("ticker", 0x300);
    pool.call(ticker, wait, 800 * MS / of.waits, of.waits);
    pool.call(ticker, pool.work, 200 * MS, 1);
    pool.process.builder.timeline(ticker).end();
    let pid = pool.process.builder.header.pid;
    let code = pool.process.builder.code_address(app, 0x40);
    let outcome = pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        seen.header.sample_hz = 1_000;
        let (tid, context) = (pid + ticker.0, refs[ticker.0 as usize][1]);
        seen.on_cpu(tid, 40 * MS);
        seen.samples(context, tid, code, 10 * of.runs_ms, 10 * (40 - of.runs_ms));
        for (number, calls) in [(of.waits_in, of.waits), (READ, of.reads), (WRITE, of.writes)] {
            seen.syscall(context, tid, number, calls, US);
        }
        let mut name = [0; OBJECT_NAME];
        name[..of.of.len()].copy_from_slice(of.of.as_bytes());
        seen.cause(CauseRow {
            context_ref: context,
            tid,
            number: of.waits_in,
            object: 7,
            name,
            waits: of.waits,
            total_ns: 800 * MS,
            max_ns: 10 * MS,
            ..bytemuck::Zeroable::zeroed()
        });
        seen
    });
    outcome.findings.iter().find_map(|found| match found.kind {
        FindingKind::IdleTimer { waits, per_second, mean_ns, runs_ns } => {
            assert_eq!((waits, mean_ns), (of.waits, 8e8 / of.waits as f64));
            assert_eq!(outcome.api(found.api), Some("wait_for_it"));
            Some((per_second, runs_ns))
        }
        _ => None,
    })
}

#[test]
fn who_is_woken_for_nothing_is_told() {
    let (per_second, runs_ns) = told(TICKS).expect("a finding");
    assert!((per_second - 5_000.0).abs() < 1.0, "{per_second}");
    assert_eq!(runs_ns, Ns(800));
    assert!(told(Between { waits_in: READ, reads: 0, ..TICKS }).is_some());
    // It may find something to do now and then.
    assert!(told(Between { writes: 400, ..TICKS }).is_some());
}

#[test]
fn who_does_something_is_not() {
    assert_eq!(told(Between { runs_ms: 11, ..TICKS }), None);
    assert_eq!(told(Between { writes: 5_000, ..TICKS }), None);
    assert_eq!(told(Between { reads: 10_000, ..TICKS }), None);
    // A tick each millisecond and a half, or of something else.
    assert_eq!(told(Between { waits: 700, reads: 700, runs_ms: 1, ..TICKS }), None);
    assert_eq!(told(Between { of: "anon_inode:[eventfd]", ..TICKS }), None);
}
