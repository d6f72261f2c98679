//! Functions that run what their caller gave them: a finding is about that, and not about the function that only lasts as long.

mod pool;
mod process;
mod waits;

use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::syscalls::{CauseRow, WAIT_PREEMPTED, WAIT_VOLUNTARY, WAKER_THREAD};
use chase_analyzer::{FindingKind, Ns};
use pool::{MS, Outcome, Pool, US};
use waits::Wait;

/// Where the samples of the slow thread's calls are: the function of the program, or the library's own.
enum Runs {
    CalledBack,
    Library,
}

/// Adds 100 samples of thread `tid` in the context `context`.
fn sampled(seen: &mut SyscallsBuilder, tid: u32, context: u32, [app, liba]: [u64; 2], runs: &Runs) {
    let (most, few) = match runs {
        Runs::CalledBack => (app, liba),
        Runs::Library => (liba, app),
    };
    seen.header.sample_hz = 1_000;
    seen.samples(context, tid, most, 60, 0);
    seen.samples(context, tid, most + 8, 20, 0);
    seen.samples(context, tid, few, 20, 0);
}

/// Of five threads, each of which calls `work` once, one takes ten times as long.
fn a_slow_thread(runs: &Runs) -> Outcome {
    let mut pool = Pool::new();
    pool.workers(5, |pool, number, thread| {
        pool.call(thread, pool.work, if number == 2 { 500 * MS } else { 50 * MS }, 1);
    });
    let (pid, builder) = (pool.process.builder.header.pid, &pool.process.builder);
    let [app, liba] =
        [pool.process.app, pool.process.liba].map(|id| builder.code_address(id, 0x40));
    pool.finish_seen(|refs| {
        let mut seen = waits::seen(pid, &[], |_| 0);
        sampled(&mut seen, pid + 3, refs[3][1], [app, liba], runs);
        seen.on_cpu(pid + 3, 500 * MS);
        seen
    })
}

#[test]
fn a_slow_call_is_the_function_that_it_calls_back() {
    let outcome = a_slow_thread(&Runs::CalledBack);
    let kind = outcome.only(Some("work"), &[3], 450 * MS);
    assert!(matches!(kind, FindingKind::SlowThreads { .. }), "{kind:?}");
    let at = outcome.findings[0].called_back.expect("what is called back") as usize;
    let one = &outcome.watched.called_back[at];
    let object = one.ran[0].address.object.expect("an object");
    assert_eq!(outcome.analysis.objects[object as usize].name, "app");
    // What the library ran itself is not called back.
    assert_eq!(one.ran.iter().map(|row| row.samples).collect::<Vec<_>>(), [60, 20]);
}

#[test]
fn a_slow_call_that_mostly_runs_the_library_is_the_librarys() {
    let outcome = a_slow_thread(&Runs::Library);
    outcome.only(Some("work"), &[3], 450 * MS);
    assert_eq!(outcome.findings[0].called_back, None);
}

/// Two threads share tasks, which `work` calls back; the last one takes much longer, and the other thread waits meanwhile.
fn a_long_task(runs: &Runs) -> Outcome {
    let (mut pool, mut workers) = (Pool::new(), Vec::new());
    pool.process.builder.timeline(ThreadId(0)).work(MS);
    pool.workers(2, |pool, number, thread| {
        pool.call(thread, pool.work, 5 * MS, 30);
        match number {
            0 => pool.call(thread, pool.work, 800 * MS, 1),
            _ => pool.call(thread, pool.condition, 800 * MS, 1),
        }
        workers.push(thread);
    });
    let (pid, builder) = (pool.process.builder.header.pid, &pool.process.builder);
    let [app, liba] =
        [pool.process.app, pool.process.liba].map(|id| builder.code_address(id, 0x40));
    let ended_by = Some(workers[0]);
    let waits = [(workers[1], 151), (ThreadId(0), 2)].map(|(of, from)| Wait {
        of,
        from,
        to: 949,
        ended_by,
        is_lock: false,
    });
    pool.finish_seen(|refs| {
        let mut seen = waits::seen(pid, &waits, |wait| match wait.of {
            ThreadId(0) => refs[0].last().copied().unwrap_or_default(),
            of => refs[of.0 as usize][2],
        });
        sampled(&mut seen, pid + 1, refs[1][1], [app, liba], runs);
        seen.on_cpu(pid + 1, 950 * MS);
        seen
    })
}

#[test]
fn a_long_task_is_not_said_to_be_a_slow_call_too() {
    let is_slow = |outcome: &Outcome| {
        let mut kinds = outcome.findings.iter().map(|finding| &finding.kind);
        kinds.any(|kind| matches!(kind, FindingKind::RareSlowCalls { .. }))
    };
    let is_uneven = |outcome: &Outcome| {
        let mut kinds = outcome.findings.iter().map(|finding| &finding.kind);
        kinds.any(|kind| matches!(kind, FindingKind::UnevenWork { .. }))
    };
    let [called_back, library] = [Runs::CalledBack, Runs::Library].map(|runs| a_long_task(&runs));
    assert!(is_uneven(&called_back) && is_uneven(&library), "{:#?}", called_back.findings);
    assert!(!is_slow(&called_back), "{:#?}", called_back.findings);
    assert!(is_slow(&library), "{:#?}", library.findings);
}

/// Of a call that takes long on a busy machine, part is a wait for another thread, and part that others have the processor.
fn slow_calls(waited: u64, preempted: u64) -> Outcome {
    let mut pool = Pool::new();
    let main = pool.process.main;
    pool.call(main, pool.work, 100 * US, 2_000);
    pool.call(main, pool.work, 200 * MS, 1);
    pool.call(main, pool.work, 100 * US, 2_000);
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        let began = seen.header.began_ns;
        let context = refs[0][1];
        seen.cause(CauseRow {
            context_ref: context,
            tid: pid,
            number: 202,
            object: 0x9000,
            holder: pid,
            waker_kind: WAKER_THREAD,
            waker: pid,
            waker_pid: pid,
            waker_began_ns: began,
            waits: 1,
            total_ns: waited,
            max_ns: waited,
            ..bytemuck::Zeroable::zeroed()
        });
        seen.wait(context, pid, WAIT_VOLUNTARY, 1, waited);
        seen.wait(context, pid, WAIT_PREEMPTED, 1, preempted);
        seen
    })
}

#[test]
fn a_call_that_others_kept_waiting_is_not_slow_for_whatever_reasons() {
    let is_slow = |outcome: Outcome| {
        let mut kinds = outcome.findings.into_iter().map(|finding| finding.kind);
        kinds.any(|kind| matches!(kind, FindingKind::RareSlowCalls { max_ns: Ns(_), .. }))
    };
    assert!(is_slow(slow_calls(20 * MS, 20 * MS)));
    // Neither is half of it.
    assert!(!is_slow(slow_calls(80 * MS, 80 * MS)));
}
