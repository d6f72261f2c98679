//! A lock that several groups wait for is told once.

mod pool;
mod process;

use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::recorder::syscalls::{CauseRow, WAKER_THREAD};
use chase_analyzer::{FindingKind, HeldLocks, Image, LockRow, Ns, Purpose, locks};
use pool::{MS, Outcome, Pool};

const FUTEX: u32 = 202;
const MUNMAP: u32 = 11;

/// Two threads of different groups that hold each other up, the first for longer, at these locks.
fn run(locks: [u64; 2]) -> Outcome {
    run_in(FUTEX, locks)
}

/// The same, in this system call.
fn run_in(number: u32, locks: [u64; 2]) -> Outcome {
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
        for (of, (thread, other)) in
            [(threads[0], threads[1]), (threads[1], threads[0])].into_iter().enumerate()
        {
            seen.cause(CauseRow {
                context_ref: refs[thread.0 as usize][1],
                tid: pid + thread.0,
                number,
                object: locks[of],
                holder: if number == FUTEX { pid + other.0 } else { 0 },
                waker_kind: WAKER_THREAD,
                waker: pid + other.0,
                waker_pid: pid,
                waker_began_ns: began_ns,
                waits: 10,
                total_ns: [500, 300][of] * MS,
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

/// The locks for which two processes wait, each at an address of its own, with this operation.
fn locks_of_processes(addresses: [u64; 2], names: [&str; 2], operation: u32) -> Vec<LockRow> {
    let image = |(pid, (address, name)): (u32, (u64, &str))| -> Image {
        let mut pool = Pool::new();
        let main = pool.process.main;
        pool.process.builder.header.pid = pid;
        pool.process.builder.thread_mut(main).tid = pid;
        pool.process.builder.timeline(main).calls(pool.lock, 50 * MS, 10).end();
        let mut seen = SyscallsBuilder::new(pid);
        let mut row = CauseRow {
            context_ref: pool.process.builder.context_refs()[0][1],
            tid: pid,
            number: FUTEX,
            detail: operation,
            object: address,
            waits: 10,
            total_ns: 500 * MS,
            max_ns: 60 * MS,
            ..bytemuck::Zeroable::zeroed()
        };
        // What it is was not found out at the first wait.
        seen.cause(row);
        row.name[..name.len()].copy_from_slice(name.as_bytes());
        seen.cause(row);
        let seen = SyscallsFile::parse(seen.build()).expect("a file");
        pool.process.image().with_syscalls(Some(seen))
    };
    let images = [1_000, 2_000].into_iter().zip(addresses.into_iter().zip(names)).map(image);
    let outcome = pool::outcome(images.collect());
    locks(&outcome.watched.causes, &outcome.analysis, &HeldLocks::default())
}

#[test]
fn processes_share_a_lock_at_whatever_addresses() {
    let (one, another) = ("shared 1:2+0", "shared 1:2+40");
    let shared = locks_of_processes([0x1000, 0x2000], [one; 2], 0);
    let [lock] = &*shared else { panic!("{shared:#?}") };
    assert_eq!((lock.threads, lock.waits, lock.wait_ns), (2, 40, Ns(2000 * MS)));
    // Others are one for each, also at the same address.
    assert_eq!(locks_of_processes([0x1000, 0x2000], [one, another], 0).len(), 2);
    assert_eq!(locks_of_processes([0x1000; 2], ["", ""], 0).len(), 2);
    const PRIVATE: u32 = 128;
    assert_eq!(locks_of_processes([0x1000; 2], ["", ""], PRIVATE).len(), 2);
}

#[test]
fn the_memory_map_is_told_once() {
    let outcome = run_in(MUNMAP, [0; 2]);
    let [finding] = &*outcome.findings else { panic!("{:#?}", outcome.findings) };
    let FindingKind::MemoryMapLock { others, .. } = &finding.kind else { panic!("{finding:#?}") };
    assert_eq!((finding.group == others[0], others.len()), (false, 1));
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

/// A wait of a thread of this process for one word, which another one ends.
fn waited((pid, began_ns): (u32, u64), context_ref: u32, [thread, waker]: [u32; 2]) -> CauseRow {
    CauseRow {
        context_ref,
        tid: pid + thread,
        number: FUTEX,
        object: 0x1000,
        waker_kind: WAKER_THREAD,
        waker: pid + waker,
        waker_pid: pid,
        waker_began_ns: began_ns,
        ..bytemuck::Zeroable::zeroed()
    }
}

/// Three threads that run what a library makes them run, and end each other's waits for one word; and the first thread, which waits for
/// it in `function`. Are there findings about locks?
fn of_team(library: &str, function: &str) -> bool {
    let mut pool = Pool::new();
    let app = pool.process.app;
    let object = pool.process.builder.object(library);
    let routine = pool.process.builder.object_mut(object).bias + 0x1000;
    let slot = pool.process.builder.slot(app, Some(object), function);
    let main = pool.process.main;
    pool.call(main, slot, 100 * MS, 10);
    let threads = [(); 3].map(|()| {
        let thread = pool.process.builder.thread("worker");
        pool.process.builder.thread_mut(thread).start_routine_avma = routine;
        pool.call(thread, pool.work, 100 * MS, 10);
        pool.process.builder.timeline(thread).end();
        thread
    });
    let pid = pool.process.builder.header.pid;
    let outcome = pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        let began_ns = seen.header.began_ns;
        let mut wait = |thread: u32, context: usize, waker: u32| {
            let waited = waited((pid, began_ns), refs[thread as usize][context], [thread, waker]);
            seen.cause(CauseRow { waits: 10, total_ns: 500 * MS, max_ns: 60 * MS, ..waited });
        };
        for number in 0..3 {
            wait(threads[number].0, 0, threads[(number + 1) % 3].0);
        }
        wait(main.0, 1, threads[0].0);
        seen
    });
    let mut kinds = outcome.findings.iter().map(|finding| &finding.kind);
    kinds.any(|kind| matches!(kind, FindingKind::SerialisingLock { .. }))
}

#[test]
fn the_barriers_of_a_team_are_no_locks() {
    assert!(of_team("/lib/libpool.so", "in_turns"));
    for function in ["GOMP_parallel", "GOMP_barrier", "GOMP_loop_end", "GOMP_taskwait"] {
        assert!(!of_team("/lib/libgomp.so.1", function), "{function}");
    }
    assert!(of_team("/lib/libgomp.so.1", "GOMP_critical_start"));
}

/// Threads that wait for a semaphore, twice each.
fn in_semaphore<const N: usize>(pool: &mut Pool, routines: [u64; N]) -> [ThreadId; N] {
    let (app, libb) = (pool.process.app, pool.process.libb);
    let wait = pool.process.builder.slot(app, Some(libb), "sem_wait");
    routines.map(|routine| {
        let thread = pool.thread("worker", routine);
        pool.call(thread, wait, 50 * MS, 2);
        pool.process.builder.timeline(thread).end();
        thread
    })
}

/// Four threads pass a semaphore on: the first one never waits for it, the last one wakes nobody.
#[test]
fn a_semaphore_that_is_passed_on_is_a_lock() {
    let mut pool = Pool::new();
    let threads = in_semaphore(&mut pool, [0x300, 0x301, 0x302, 0x303]);
    let pid = pool.process.builder.header.pid;
    let outcome = pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        let began_ns = seen.header.began_ns;
        for pair in threads.windows(2) {
            let [waker, thread] = [pair[0].0, pair[1].0];
            let waited = waited((pid, began_ns), refs[thread as usize][1], [thread, waker]);
            seen.cause(CauseRow { waits: 1, total_ns: 40 * MS, max_ns: 40 * MS, ..waited });
        }
        seen
    });
    let purposes: Vec<Purpose> = outcome.watched.causes.iter().map(|row| row.purpose).collect();
    assert_eq!(purposes, [Purpose::Lock; 3]);
}

/// Of an idle pool, one thread gives the work, and each that gets some has the next one look for more, in vain: nobody holds anything.
#[test]
fn a_semaphore_by_which_an_idle_pool_gets_work_is_no_lock() {
    let mut pool = Pool::new();
    let main = pool.process.main;
    let threads = in_semaphore(&mut pool, [0x300, 0x301, 0x302]);
    let pid = pool.process.builder.header.pid;
    let outcome = pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        let began_ns = seen.header.began_ns;
        for (at, thread) in threads.iter().enumerate() {
            for waker in [main.0, threads[(at + 1) % 3].0] {
                let context = refs[thread.0 as usize][1];
                let waited = waited((pid, began_ns), context, [thread.0, waker]);
                seen.cause(CauseRow { waits: 20, total_ns: 40 * MS, max_ns: 4 * MS, ..waited });
            }
        }
        seen
    });
    let purposes: Vec<Purpose> = outcome.watched.causes.iter().map(|row| row.purpose).collect();
    assert_eq!(purposes, [Purpose::Handover; 3]);
}
