//! Calls that were only counted: what was in them, and what in own code, is nobody's.

mod pool;
mod process;

use bytemuck::Zeroable as _;
use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::layout::{END_EXIT, TIMING_ADAPTIVE, TIMING_COUNT};
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::recorder::syscalls::{CauseRow, WAIT_VOLUNTARY, WAKER_THREAD};
use chase_analyzer::{
    Analysis, FindingKind, Groups, LibraryKind, Ns, Selection, Unnamed, WaitCause, blocked,
};
use pool::{MS, Outcome, Pool};
use process::{Process, api};

const FUTEX: u32 = 202;
const NANOSLEEP: u32 = 35;

#[test]
fn what_is_outside_of_timed_calls_is_nobodys() {
    let mut process = Process::new();
    process.builder.header.timing = TIMING_COUNT;
    let (app, liba) = (process.app, process.liba);
    let [special, counted] =
        ["special", "counted"].map(|name| process.builder.slot(app, Some(liba), name));
    let mut thread = process.builder.timeline(process.main);
    thread.work(1_000).call(special, 500).rest(counted, 40, 100).work(200).end();
    let analysis = process.analysis();
    assert!(analysis.only_counts() && analysis.processes[0].only_counts);
    let totals = &analysis.totals;
    assert_eq!((totals.application_ns, totals.unattributed_ns), (Ns(0), Ns(5_200)));
    assert_eq!(totals.library_ns, Ns(500));
    let row = |kind| analysis.libraries.iter().find(|row| row.kind == kind).expect("a row");
    let nobodys = &row(LibraryKind::Unattributed).measures;
    assert_eq!((nobodys.self_ns, nobodys.estimated), (Ns(5_200), false));
    assert_eq!(row(LibraryKind::Application).measures.self_ns, Ns(0));
    // What one call took says nothing of the hundred that were not timed.
    let library = &row(LibraryKind::Library).measures;
    assert_eq!((library.calls, library.untimed, library.p50_ns), (101, 100, None));
    assert!(api(&analysis, "special").measures.p50_ns.is_some());
    // Useful time is known all the same.
    assert_eq!(Groups::new(&analysis, &Unnamed).rows[0].useful_ns, Ns(5_700));
}

/// Four threads that make calls of 1 ms, one of them three times as many.
fn one_calls_more(timing: u32) -> Outcome {
    let mut pool = Pool::new();
    pool.process.builder.header.timing = timing;
    pool.workers(4, |pool, number, thread| {
        let calls = if number == 3 { 90 } else { 30 };
        let work = pool.work;
        let mut timeline = pool.process.builder.timeline(thread);
        match timing {
            TIMING_COUNT => timeline.rest(work, MS, calls),
            _ => timeline.work(u64::from(calls) * MS),
        };
    });
    pool.finish()
}

#[test]
fn no_thread_is_slow_in_its_own_code_where_calls_were_counted() {
    let slow = |outcome: &Outcome| {
        let is_slow = |kind: &FindingKind| matches!(kind, FindingKind::SlowThreads { .. });
        outcome.findings.iter().any(|finding| is_slow(&finding.kind))
    };
    assert!(slow(&one_calls_more(TIMING_ADAPTIVE)));
    let outcome = one_calls_more(TIMING_COUNT);
    assert!(outcome.findings.is_empty(), "{:#?}", outcome.findings);
    // That their load differs is so in any case.
    assert!(outcome.group(4).comparison.load_balance < 0.6);
}

/// Threads that wait outside of calls: the first by a futex, the second for time.
fn waiting(timing: u32) -> Analysis {
    let mut process = Process::new();
    process.builder.header.timing = timing;
    let threads: [ThreadId; 2] = [(); 2].map(|()| {
        let thread = process.builder.thread("worker");
        process.builder.timeline(thread).work(100 * MS).end();
        thread
    });
    process.builder.timeline(process.main).work(100 * MS).end();
    process.builder.end(END_EXIT, 0);
    let refs = process.builder.context_refs();
    let mut seen = SyscallsBuilder::new(1000);
    for (thread, number) in threads.into_iter().zip([FUTEX, NANOSLEEP]) {
        let (tid, root) = (1000 + thread.0, refs[thread.0 as usize][0]);
        seen.syscall(root, tid, number, 1, 99 * MS).off_cpu_ns = 99 * MS;
        seen.wait(root, tid, WAIT_VOLUNTARY, 1, 99 * MS);
    }
    let file = SyscallsFile::parse(seen.build()).unwrap();
    Analysis::new(&[process.image().with_syscalls(Some(file))], Selection::All)
}

#[test]
fn a_futex_is_no_lock_where_calls_were_counted() {
    let analysis = waiting(TIMING_COUNT);
    let totals = &analysis.totals;
    assert_eq!(totals.unattributed_wait_ns, Ns(198 * MS));
    assert_eq!(totals.application_wait_ns, Some(Ns(0)));
    let found = blocked(&analysis);
    let rows: Vec<_> =
        found.rows.iter().map(|row| (row.cause, row.api, row.wait_ns.0 / MS)).collect();
    assert_eq!(rows, [(WaitCause::Sleep, None, 99), (WaitCause::Other, None, 99)]);
    // Who may wait for a lock is not idle for sure.
    assert_eq!(found.idle_threads(), 0);
    let groups = Groups::new(&analysis, &Unnamed);
    let waited: u64 = groups.rows.iter().map(|row| row.wait_ns.0).sum();
    assert_eq!(waited, 198 * MS);
    assert_eq!(blocked(&waiting(TIMING_ADAPTIVE)).idle_threads(), 2);
}

/// Three threads that end each other's waits for one word, in turn: a lock, or a barrier in a call that was counted.
#[test]
fn who_ends_whose_waits_makes_no_lock_where_calls_were_counted() {
    let purposes = |timing| {
        let mut pool = Pool::new();
        pool.process.builder.header.timing = timing;
        pool.workers(3, |pool, _, thread| {
            pool.process.builder.timeline(thread).work(100 * MS);
        });
        let outcome = pool.finish_seen(|refs| {
            let mut seen = SyscallsBuilder::new(1000);
            let began_ns = seen.header.began_ns;
            for thread in 1..4_u32 {
                seen.cause(CauseRow {
                    context_ref: refs[thread as usize][0],
                    tid: 1000 + thread,
                    number: FUTEX,
                    object: 0x9000,
                    waker_kind: WAKER_THREAD,
                    waker: 1001 + thread % 3,
                    waker_pid: 1000,
                    waker_began_ns: began_ns,
                    waits: 1,
                    total_ns: 50 * MS,
                    max_ns: 50 * MS,
                    ..CauseRow::zeroed()
                });
            }
            seen
        });
        let rows = &outcome.watched.causes;
        assert!(!rows.is_empty());
        rows.iter().filter(|row| row.purpose.is_lock()).count()
    };
    assert_eq!(purposes(TIMING_ADAPTIVE), 1);
    assert_eq!(purposes(TIMING_COUNT), 0);
}
