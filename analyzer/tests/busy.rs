//! A machine with other work: what others had of the processor during calls that were not timed belongs to these calls,
//! if it was measured where, and to nobody otherwise.

mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::layout::{OWN_CONTEXT_REF, OffCpuRow, TIMING_ADAPTIVE};
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::recorder::syscalls::{WAIT_PREEMPTED, WAIT_VOLUNTARY};
use chase_analyzer::{Analysis, Measures, Ns, Selection, WaitSource};
use process::{Process, api, assert_conserved};

const MS: u64 = 1_000_000;
/// Calls of a block, of which one is timed, and how long each takes.
const BLOCK: u64 = 8;
const EACH: u64 = 400;

/// A thread that calls `inner` 8,001 times, 8,000 of them with frames and one in eight timed, and is off the CPU for `away`
/// in eight of them, one of which is a sample. Then it runs code of its own.
fn hot_calls(away: u64) -> Process {
    let mut process = Process::new();
    process.builder.header.timing = TIMING_ADAPTIVE;
    let (_, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.call(inner, EACH);
    for block in 0..1_000 {
        match block {
            500 => thread.framed_interrupted(inner, EACH, away, BLOCK),
            _ => thread.framed(inner, EACH, BLOCK),
        };
        let away = if block == 600 { away } else { 0 };
        for _ in 1..BLOCK {
            thread.framed(inner, EACH + away, 0);
        }
    }
    thread.work(MS).end();
    process
}

/// What the scheduler saw of it, in the context of the calls with frames.
fn watched(process: &Process, kind: u32, waits: u64, each_ns: u64) -> Analysis {
    let refs = process.builder.context_refs()[0].clone();
    let mut seen = SyscallsBuilder::new(1000);
    seen.wait(refs[2], 1000, kind, waits, each_ns);
    with_companion(process, &seen)
}

fn with_companion(process: &Process, seen: &SyscallsBuilder) -> Analysis {
    let file = SyscallsFile::parse(seen.build()).unwrap();
    let image = process.image().with_syscalls(Some(file));
    let analysis = Analysis::new(&[image], Selection::All);
    assert_conserved(&analysis);
    assert_eq!(analysis.wait_source(), WaitSource::Scheduler);
    analysis
}

fn inner(analysis: &Analysis) -> &Measures {
    &api(analysis, "inner").measures
}

/// Within a millionth: the mean of samples is no whole number.
fn assert_near(found: Ns, expected: u64) {
    assert!(found.0.abs_diff(expected) <= expected / 1_000_000 + 1, "{found:?}, not {expected}");
}

#[test]
fn preempted_calls_keep_the_time_that_they_ran() {
    let analysis = watched(&hot_calls(2 * MS), WAIT_PREEMPTED, 8, 2 * MS);
    let ran = 8_001 * EACH;
    let measures = inner(&analysis);
    assert_near(measures.self_ns, ran + 16 * MS);
    assert_eq!((measures.preempted_ns, measures.wait_ns), (Some(Ns(16 * MS)), Ns(0)));
    assert_near(analysis.totals.application_ns, MS);
    assert_eq!(analysis.totals.application_preempted_ns, Some(Ns(0)));
    assert_eq!((analysis.totals.overlap_ns, analysis.totals.unattributed_ns), (Ns(0), Ns(0)));
    // How many of them fell into samples was chance.
    let deviation = (8.0 * 4.0 * 0.125 * 0.875_f64).sqrt() * 1e6;
    let found = measures.ci95_ns.as_f64();
    assert!((found / (1.96 * deviation) - 1.0).abs() < 0.05, "{measures:?}");
}

/// If it took no longer than calls sometimes do, samples are scaled up with it.
#[test]
fn short_preemptions_are_in_the_estimate_already() {
    let process = hot_calls(0);
    let analysis = watched(&process, WAIT_PREEMPTED, 8, 10_000);
    assert_near(inner(&analysis).self_ns, 8_001 * EACH);
    assert_eq!(inner(&analysis).preempted_ns, Some(Ns(80_000)));
}

/// Rare waits of calls that are short otherwise.
#[test]
fn calls_that_wait_now_and_then_keep_their_waits() {
    let analysis = watched(&hot_calls(2 * MS), WAIT_VOLUNTARY, 8, 2 * MS);
    let measures = inner(&analysis);
    assert_near(measures.self_ns, 8_001 * EACH + 16 * MS);
    assert_eq!((measures.wait_ns, measures.preempted_ns), (Ns(16 * MS), Some(Ns(0))));
    assert_near(analysis.totals.application_ns, MS);
}

/// Nobody was off the CPU for longer than there was time.
#[test]
fn estimates_grow_no_longer_than_what_is_left() {
    let analysis = watched(&hot_calls(0), WAIT_PREEMPTED, 8, 2 * MS);
    let measures = inner(&analysis);
    assert_near(measures.self_ns, 8_001 * EACH + MS);
    assert_near(measures.preempted_ns.unwrap(), measures.self_ns.0);
    assert_near(analysis.totals.application_ns, 0);
    assert_eq!(analysis.totals.overlap_ns, Ns(0));
}

/// Calls made inside are in the context of those with frames and of those without alike: what happened there is shared out by
/// number.
#[test]
fn calls_keep_the_time_in_which_calls_inside_were_preempted() {
    let mut process = Process::new();
    process.builder.header.timing = TIMING_ADAPTIVE;
    let outer = process.builder.slot(process.app, Some(process.liba), "outer");
    let within = process.builder.slot(process.liba, Some(process.libb), "inner");
    let mut thread = process.builder.timeline(process.main);
    thread.enter(outer).work(EACH).call(within, 400_000).leave();
    for _ in 0..1_000 {
        thread.framed(outer, EACH, BLOCK);
        for _ in 1..BLOCK {
            thread.framed(outer, EACH, 0);
        }
    }
    thread.work(MS).end();
    let refs = process.builder.context_refs()[0].clone();
    let mut seen = SyscallsBuilder::new(1000);
    seen.wait(refs[2], 1000, WAIT_PREEMPTED, 4, 100_000);
    let analysis = with_companion(&process, &seen);
    let measures = inner(&analysis);
    assert_eq!((measures.self_ns, measures.preempted_ns), (Ns(400_000), Some(Ns(400_000))));
    let missing = 400_000 * 7 / 8 * 8_000 / 8_001;
    assert_near(api(&analysis, "outer").measures.self_ns, 8_001 * EACH + missing);
    assert_near(analysis.totals.application_ns, MS - missing);
    assert_eq!(analysis.totals.overlap_ns, Ns(0));
}

/// What chase does when a thread begins and ends is before the thread's record, and after it.
#[test]
fn a_thread_is_off_the_processor_no_longer_than_it_lived() {
    let mut process = Process::new();
    process.builder.timeline(process.main).work(10 * MS).end();
    let mut seen = SyscallsBuilder::new(1000);
    seen.wait(OWN_CONTEXT_REF, 1000, WAIT_PREEMPTED, 2, 20 * MS).on_cpu(1000, 9 * MS);
    let row = with_companion(&process, &seen).threads[0].clone();
    assert_eq!((row.lifetime_ns, row.on_cpu_ns), (Ns(10 * MS), Some(Ns(9 * MS))));
    assert_eq!((row.off_cpu.runnable_ns, row.off_cpu.blocked_ns), (Some(Ns(MS)), Some(Ns(0))));
    // As far as it is in the record, own code did not run then.
    assert_eq!((row.application_ns, row.application_preempted_ns), (Ns(10 * MS), Some(Ns(MS))));
}

/// So it is where it was in its own code then, as far as the companion could see, or nowhere yet.
#[test]
fn nor_was_it_in_own_code_before_it_began_or_after_it_ended() {
    for is_in_own_code in [true, false] {
        let mut process = Process::new();
        process.builder.timeline(process.main).work(10 * MS).end();
        let thread = process.builder.thread_mut(process.main);
        (thread.cpu_ns, thread.cpu_is_final) = (4 * MS, 1);
        let context = if is_in_own_code { process.builder.context_refs()[0][0] } else { 0 };
        let mut seen = SyscallsBuilder::new(1000);
        seen.wait(context, 1000, WAIT_VOLUNTARY, 1, 3 * MS).on_cpu(1000, 4 * MS);
        seen.wait(context, 1000, WAIT_PREEMPTED, 1, 15 * MS);
        let row = with_companion(&process, &seen).threads[0].clone();
        let ns = [row.on_cpu_ns, row.off_cpu.blocked_ns, row.off_cpu.runnable_ns];
        assert_eq!(ns, [Some(Ns(4 * MS)), Some(Ns(MS)), Some(Ns(5 * MS))]);
    }
}

/// Nor does it wait for what it had waited for already when its recording began, as where `chase attach` came then; it may live on.
#[test]
fn what_it_waited_for_before_it_began_is_none_of_its_time() {
    let mut process = Process::new();
    process.builder.timeline(process.main).work(10 * MS);
    let own_code = process.builder.context_refs()[0][0];
    let mut seen = SyscallsBuilder::new(1000);
    seen.wait(0, 1000, WAIT_VOLUNTARY, 1, 1_400 * MS).wait(0, 1000, WAIT_PREEMPTED, 1, 20 * MS);
    seen.wait(own_code, 1000, WAIT_VOLUNTARY, 1, MS).on_cpu(1000, 7 * MS);
    seen.wait(own_code, 1000, WAIT_PREEMPTED, 1, 2 * MS);
    let row = with_companion(&process, &seen).threads[0].clone();
    let ns = [row.on_cpu_ns, row.off_cpu.blocked_ns, row.off_cpu.runnable_ns];
    assert_eq!(ns, [Some(Ns(7 * MS)), Some(Ns(MS)), Some(Ns(2 * MS))]);
    let own = [row.application_wait_ns, row.application_preempted_ns];
    assert_eq!(own, [Some(Ns(MS)), Some(Ns(2 * MS))]);
}

/// Calls that get no frames are off the CPU in the context of their caller. Estimates leave that out, so they can't have taken that time.
#[test]
fn estimates_have_no_time_of_others() {
    let mut process = Process::new();
    process.builder.header.timing = TIMING_ADAPTIVE;
    let (_, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    for _ in 0..100 {
        thread.block(inner, 30, 300);
    }
    thread.work(100_000).end();
    let record = process.builder.thread_mut(process.main);
    (record.cpu_ns, record.cpu_is_final) = (400_000, 1);
    let own_code = process.builder.context_refs()[0][0];
    let mut seen = SyscallsBuilder::new(1000);
    seen.wait(own_code, 1000, WAIT_PREEMPTED, 4, 600_000).on_cpu(1000, 400_000);
    let analysis = with_companion(&process, &seen);
    assert_eq!(api(&analysis, "inner").measures.self_ns, Ns(400_000));
    let totals = &analysis.totals;
    let others = totals.unattributed_ns.0 + totals.application_preempted_ns.expect("known").0;
    assert_eq!((others, totals.overlap_ns), (600_000, Ns(0)));
}

/// Without a companion, threads only know that they were preempted somewhere since their last long call: in their own
/// code, or in calls that nobody timed.
#[test]
fn what_threads_found_out_themselves_is_shared_out_by_time_on_the_cpu() {
    let mut process = Process::new();
    process.builder.header.timing = TIMING_ADAPTIVE;
    let (_, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.work(100_000);
    for _ in 0..100 {
        thread.block(inner, 30, 100);
    }
    // Off the CPU, for as long as it ran.
    thread.work(400_000).end();
    let row = OffCpuRow { times: 4, preempted_ns: 400_000, ..bytemuck::Zeroable::zeroed() };
    process.builder.off_cpu(process.main, 0, row);
    let analysis = process.analysis();
    assert_eq!(analysis.wait_source(), WaitSource::Asked);
    let totals = &analysis.totals;
    assert_eq!(api(&analysis, "inner").measures.self_ns, Ns(300_000));
    assert_eq!(totals.unattributed_ns, Ns(300_000), "of 400,000, as of the time that it ran");
    assert_eq!(totals.application_ns, Ns(200_000));
    assert_eq!(totals.application_preempted_ns, Some(Ns(100_000)));
}
