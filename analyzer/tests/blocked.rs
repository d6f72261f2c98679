//! What threads are blocked by: the idle ones are told apart.

mod process;

use bytemuck::Zeroable as _;
use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::layout::END_EXIT;
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::recorder::syscalls::{
    CauseRow, NO_SYSCALL, WAIT_PREEMPTED, WAIT_VOLUNTARY, WAKER_INTERRUPT, WAKER_THREAD,
};
use chase_analyzer::{
    Analysis, BlockedSpan, Groups, Ns, Selection, SpanCause, Unnamed, WaitCause, blocked,
};
use process::Process;

const MS: u64 = 1_000_000;

/// Threads that call one function each: how long, and how long they run before and after.
fn threads(of: &[(&str, u64, u64)]) -> Process {
    let mut process = Process::new();
    let (app, liba) = (process.app, process.liba);
    for (number, &(symbol, waits, works)) in of.iter().enumerate() {
        let slot = process.builder.slot(app, Some(liba), symbol);
        let thread = process.builder.thread(&format!("thread {number}"));
        process.builder.timeline(thread).work(works).call(slot, waits).end();
    }
    process.builder.timeline(process.main).work(100 * MS).end();
    process.builder.end(END_EXIT, 0);
    process
}

fn rows(analysis: &Analysis) -> Vec<(&str, u64, usize)> {
    let name = |api: Option<u32>| api.map_or("", |api| &*analysis.apis[api as usize].symbol);
    let rows = blocked(analysis).rows;
    rows.iter().map(|row| (name(row.api), row.wait_ns.0 / MS, row.threads)).collect()
}

/// Where nobody has work for half of the run, what all wait for is what the run is about.
#[test]
fn nobody_is_idle_where_nobody_works() {
    let mut process = Process::new();
    let (app, liba) = (process.app, process.liba);
    let [wait, sync] =
        ["epoll_wait", "fdatasync"].map(|name| process.builder.slot(app, Some(liba), name));
    process.builder.timeline(process.main).work(MS).call(wait, 97 * MS).call(sync, 2 * MS).end();
    process.builder.end(END_EXIT, 0);
    let analysis = process.analysis();
    let found = blocked(&analysis);
    assert_eq!((found.idle_threads(), found.threads), (0, 1));
    // Each function has its own waits.
    assert_eq!(rows(&analysis), [("epoll_wait", 97, 1), ("fdatasync", 2, 1)]);
}

#[test]
fn threads_that_only_wait_for_work_are_idle() {
    let analysis = threads(&[
        ("pthread_cond_wait", 99 * MS, MS),
        ("pthread_cond_wait", 99 * MS, MS),
        ("epoll_wait", 99 * MS, MS),
        ("sem_wait", 99 * MS, MS),
        // It has something to do half of the time.
        ("pthread_cond_wait", 50 * MS, 50 * MS),
        // All day, but something is to be done.
        ("pthread_mutex_lock", 99 * MS, MS),
        ("fsync", 98 * MS, 2 * MS),
    ])
    .analysis();
    let found = blocked(&analysis);
    let expected = [("pthread_mutex_lock", 99, 1), ("fsync", 98, 1), ("pthread_cond_wait", 50, 1)];
    assert_eq!(rows(&analysis), expected);
    assert_eq!((found.threads, found.wait_ns), (3, Ns(247 * MS)));
    assert_eq!(found.rows[0].cause, WaitCause::Lock);
    assert_eq!(analysis.threads[found.rows[0].max.thread as usize].name, "thread 5");
    assert_eq!(found.idle_threads(), 4);
    assert_eq!((found.idle[0].threads, found.idle[0].wait_ns), (2, Ns(198 * MS)));
    // All waits are in one of the two.
    let all: u64 = analysis.threads.iter().map(|row| row.measures.wait_ns.0).sum();
    let idle: u64 = found.idle.iter().map(|row| row.wait_ns.0).sum();
    assert_eq!(found.wait_ns.0 + idle, all);
    assert!(found.runnable.is_none(), "nobody measured it");
}

#[test]
fn a_group_is_idle_if_all_of_its_threads_are() {
    let (idle, busy) = (("sem_wait", 99 * MS, MS), ("sem_wait", 50 * MS, 50 * MS));
    let mut process = threads(&[idle, idle, idle, busy]);
    let app = process.builder.object_mut(process.app).bias;
    for (thread, routine) in [(1, 0x1100), (2, 0x1100), (3, 0x1200), (4, 0x1200)] {
        process.builder.thread_mut(ThreadId(thread)).start_routine_avma = app + routine;
    }
    let analysis = process.analysis();
    let groups = Groups::new(&analysis, &Unnamed);
    let is_idle = blocked(&analysis).idle_groups(&groups);
    assert_eq!(is_idle.len(), 3);
    let of_thread = |thread: usize| is_idle[groups.of_thread[thread] as usize];
    assert_eq!([0, 1, 2, 3, 4].map(of_thread), [false, true, true, false, false]);
}

#[test]
fn the_scheduler_knows_of_waits_without_a_name() {
    let process = threads(&[("syscall", 99 * MS, MS), ("read", 99 * MS, MS)]);
    let refs = process.builder.context_refs().to_vec();
    let tids: Vec<u32> = process.analysis().threads.iter().map(|row| row.tid).collect();
    let mut seen = SyscallsBuilder::new(tids[0]);
    seen.wait(refs[1][1], tids[1], WAIT_VOLUNTARY, 1, 99 * MS);
    seen.wait(refs[2][1], tids[2], WAIT_VOLUNTARY, 1, 90 * MS);
    seen.wait(refs[2][1], tids[2], WAIT_PREEMPTED, 1, 9 * MS);
    seen.on_cpu(tids[2], MS);
    seen.on_cpu(tids[0], 100 * MS);
    let file = SyscallsFile::parse(seen.build()).unwrap();
    let analysis = Analysis::new(&[process.image().with_syscalls(Some(file))], Selection::All);
    let found = blocked(&analysis);
    assert_eq!(rows(&analysis), [("read", 90, 1)]);
    assert_eq!(found.idle_threads(), 1);
    let runnable = found.runnable.expect("9 ms of 110");
    assert_eq!((runnable.runnable_ns, runnable.threads), (Ns(9 * MS), 1));
    assert!((runnable.of_wanted - 9.0 / 110.0).abs() < 1e-9, "{runnable:?}");
}

/// On a busy machine threads that have nothing to do wait for a processor, once they are woken, before they do that again. One that
/// is pushed aside has something to do.
#[test]
fn who_waits_for_a_processor_is_no_less_idle() {
    let process = threads(&[("sem_wait", 99 * MS, MS)]);
    let refs = process.builder.context_refs().to_vec();
    let tid = process.analysis().threads[1].tid;
    let idle = |waits: u64, ready: u64, pushed_aside: u64| {
        let mut seen = SyscallsBuilder::new(process.analysis().threads[0].tid);
        seen.wait(refs[1][1], tid, WAIT_VOLUNTARY, 1, (waits + ready) * MS);
        seen.wait(refs[1][1], tid, WAIT_PREEMPTED, 1, pushed_aside * MS);
        seen.cause(CauseRow {
            context_ref: refs[1][1],
            tid,
            waits: 1,
            total_ns: (waits + ready) * MS,
            max_ns: (waits + ready) * MS,
            ready_ns: ready * MS,
            ..CauseRow::zeroed()
        });
        let file = SyscallsFile::parse(seen.build()).unwrap();
        let image = process.image().with_syscalls(Some(file));
        blocked(&Analysis::new(&[image], Selection::All)).idle_threads()
    };
    assert_eq!(idle(70, 29, 0), 1);
    assert_eq!(idle(70, 0, 29), 0);
}

#[test]
fn waiting_for_a_processor_is_told_where_it_matters() {
    let process = threads(&[]);
    let tid = process.analysis().threads[0].tid;
    let root = process.builder.context_refs()[0][0];
    for (runnable, matters) in [(MS, false), (3 * MS, true)] {
        let mut seen = SyscallsBuilder::new(tid);
        seen.wait(root, tid, WAIT_PREEMPTED, 1, runnable);
        seen.on_cpu(tid, 100 * MS - runnable);
        let file = SyscallsFile::parse(seen.build()).unwrap();
        let image = process.image().with_syscalls(Some(file));
        let analysis = Analysis::new(&[image], Selection::All);
        assert_eq!(blocked(&analysis).runnable.is_some(), matters, "{runnable}");
    }
}

/// In a program that uses OpenMP, only the threads of its runtime wait at barriers in their own code.
#[test]
fn own_code_waits_for_what_each_thread_waits_for() {
    const FUTEX: u32 = 202;
    let mut process = Process::new();
    let runtime = process.builder.object("/lib/libgomp.so.1");
    let own = process.builder.code_address(process.app, 0x40);
    let of_team = process.builder.code_address(runtime, 0x40);
    let threads = [own, of_team].map(|routine| {
        let thread = process.builder.thread("worker");
        process.builder.thread_mut(thread).start_routine_avma = routine;
        process.builder.timeline(thread).work(100 * MS).end();
        thread
    });
    process.builder.timeline(process.main).work(100 * MS).end();
    process.builder.end(END_EXIT, 0);
    let refs = process.builder.context_refs();
    let mut seen = SyscallsBuilder::new(1000);
    for thread in threads {
        let (tid, root) = (1000 + thread.0, refs[thread.0 as usize][0]);
        seen.syscall(root, tid, FUTEX, 10, 5 * MS).off_cpu_ns = 50 * MS;
        seen.wait(root, tid, WAIT_VOLUNTARY, 10, 5 * MS);
    }
    let file = SyscallsFile::parse(seen.build()).unwrap();
    let image = process.image().with_syscalls(Some(file));
    let analysis = Analysis::new(&[image], Selection::All);
    let mut causes: Vec<_> =
        blocked(&analysis).rows.iter().map(|row| (row.cause, row.wait_ns.0 / MS)).collect();
    causes.sort();
    assert_eq!(causes, [(WaitCause::Barrier, 50), (WaitCause::Other, 50)]);
    let groups = Groups::new(&analysis, &Unnamed);
    let mut causes: Vec<_> = chase_analyzer::waits(&analysis, &groups)
        .iter()
        .map(|row| (row.cause, row.wait_ns.0 / MS))
        .collect();
    causes.sort();
    assert_eq!(causes, [(WaitCause::Barrier, 50), (WaitCause::Other, 50)]);
}

/// Own code waits for different things, and each is counted as what it is. The timeline has the same cause for each wait.
#[test]
fn each_wait_in_own_code_is_for_what_it_is_for() {
    let (pages, child, ended, own_futex) = (NO_SYSCALL, 58, 61, 202);
    let waits = [(pages, 40), (child, 20), (ended, 10), (own_futex, 5)];
    let mut process = Process::new();
    process.builder.timeline(process.main).work(100 * MS).end();
    process.builder.end(END_EXIT, 0);
    let tid = process.analysis().threads[0].tid;
    let root = process.builder.context_refs()[0][0];
    let mut seen = SyscallsBuilder::new(tid);
    seen.wait(root, tid, WAIT_VOLUNTARY, 1, 75 * MS);
    for (number, ms) in waits {
        // Most of what a system call is off the processor may be that others have it.
        if number == own_futex {
            seen.syscall(root, tid, number, 1, 95 * MS).off_cpu_ns = 95 * MS;
        }
        let cause = CauseRow { context_ref: root, tid, number, waits: 1, ..CauseRow::zeroed() };
        seen.cause(CauseRow { total_ns: ms * MS, max_ns: ms * MS, ..cause });
    }
    let file = SyscallsFile::parse(seen.build()).unwrap();
    let analysis = Analysis::new(&[process.image().with_syscalls(Some(file))], Selection::All);
    let expected = [(WaitCause::Page, 40), (WaitCause::Join, 30), (WaitCause::Other, 5)];
    both_tables_have(&analysis, &expected);
    let one_by_one = [WaitCause::Page, WaitCause::Join, WaitCause::Join, WaitCause::Other];
    for ((number, _), cause) in waits.into_iter().zip(one_by_one) {
        let kind = if number == pages { SpanCause::File } else { SpanCause::Other };
        assert_eq!(span(number, None, kind).is_for(&analysis, 0), cause, "{number}");
    }
    // Outside of system calls it is a page, or the thread was stopped.
    let stopped = span(NO_SYSCALL, None, SpanCause::Other);
    assert_eq!(stopped.is_for(&analysis, 0), WaitCause::Other);
}

/// What blocks threads, and what groups wait for, are these causes, with so many ms each.
fn both_tables_have(analysis: &Analysis, expected: &[(WaitCause, u64)]) {
    let found = blocked(analysis);
    let found: Vec<_> = found.rows.iter().map(|row| (row.cause, row.wait_ns.0 / MS)).collect();
    assert_eq!(found, expected);
    let groups = Groups::new(analysis, &Unnamed);
    let rows = chase_analyzer::waits(analysis, &groups);
    let rows: Vec<_> = rows.iter().map(|row| (row.cause, row.wait_ns.0 / MS)).collect();
    assert_eq!(rows, expected);
}

fn span(number: u32, api: Option<u32>, cause: SpanCause) -> BlockedSpan {
    BlockedSpan {
        start_ns: Ns(0),
        ns: Ns(MS),
        ready_ns: Ns(0),
        cause,
        syscall: (number != NO_SYSCALL).then_some(number),
        api,
        waker: None,
        waker_api: None,
        waker_name: String::new(),
        site: None,
        process: 0,
        waker_site: None,
    }
}

/// A function whose name tells nothing waits for different things, too: each thread's waits there are counted as what they are, and the
/// timeline has the same causes. What a thread of the process ends while the map of its memory is changed is a lock.
#[test]
fn each_wait_in_a_function_is_for_what_it_is_for() {
    let (mprotect, pread) = (10, 17);
    let process = threads(&[("compress", 90 * MS, 10 * MS), ("compress", 90 * MS, 10 * MS)]);
    let refs = process.builder.context_refs().to_vec();
    let tids: Vec<u32> = process.analysis().threads.iter().map(|row| row.tid).collect();
    let mut seen = SyscallsBuilder::new(tids[0]);
    let (pid, began_ns) = (seen.header.pid, seen.header.began_ns);
    let waits = [
        (1, NO_SYSCALL, 40, WAKER_INTERRUPT),
        (1, pread, 30, WAKER_INTERRUPT),
        (2, mprotect, 20, WAKER_THREAD),
        (2, mprotect, 5, WAKER_INTERRUPT),
    ];
    for (thread, number, ms, waker_kind) in waits {
        let (context_ref, tid) = (refs[thread][1], tids[thread]);
        seen.wait(context_ref, tid, WAIT_VOLUNTARY, 1, ms * MS);
        seen.cause(CauseRow {
            context_ref,
            tid,
            number,
            waker_kind,
            waker: tids[0],
            waker_pid: pid,
            waker_began_ns: began_ns,
            waits: 1,
            total_ns: ms * MS,
            max_ns: ms * MS,
            ..CauseRow::zeroed()
        });
    }
    let file = SyscallsFile::parse(seen.build()).unwrap();
    let analysis = Analysis::new(&[process.image().with_syscalls(Some(file))], Selection::All);
    let expected =
        [(WaitCause::Page, 40), (WaitCause::Io, 30), (WaitCause::Lock, 20), (WaitCause::Other, 5)];
    both_tables_have(&analysis, &expected);
    let api = analysis.apis.iter().position(|row| row.symbol == "compress").unwrap() as u32;
    let parts = analysis.parts_of_all_waits(api).into_iter();
    let parts: Vec<_> = parts.map(|(cause, part)| (cause, (part * 95.0).round() as u64)).collect();
    assert_eq!(parts, expected);
    for ((_, number, _, waker_kind), (cause, _)) in waits.into_iter().zip(expected) {
        let by_threads = waker_kind == WAKER_THREAD;
        let kind = match number {
            _ if by_threads => SpanCause::Threads,
            NO_SYSCALL => SpanCause::File,
            _ => SpanCause::Other,
        };
        assert_eq!(span(number, Some(api), kind).is_for(&analysis, 1), cause, "{number}");
    }
}
