//! System calls and waits: what the companion saw is described, and the figures must say just that.

mod process;

use bytemuck::Zeroable as _;
use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId, errnos};
use chase_analyzer::recorder::layout::{END_EXIT, OWN_CONTEXT_REF, OffCpuRow};
use chase_analyzer::recorder::reader::{Recording, SyscallsFile};
use chase_analyzer::recorder::syscalls::{
    CauseRow, STATE_STOPPED, SyscallsHeader, WAIT_PREEMPTED, WAIT_VOLUNTARY,
};
use chase_analyzer::{
    Analysis, Category, Image, MeasuredOffCpu, Ns, OfApi, Selection, SyscallRow, SyscallsState,
    WaitSource,
};
use process::{Process, api, assert_conserved};

const READ: u32 = 0;
const CLOSE: u32 = 3;
const FUTEX: u32 = 202;
const EXIT_GROUP: u32 = 231;

/// `outer` (10 calls of 1 ms) calls `inner` (400 µs each); a worker calls `inner` alone.
struct Scene {
    process: Process,
    seen: SyscallsBuilder,
    /// Contexts: main's root, outer, inner in outer; worker's root, inner.
    main: Vec<u32>,
    worker: Vec<u32>,
}

impl Scene {
    fn new() -> Self {
        let mut process = Process::new();
        let (outer, inner) = process.slots();
        let mut thread = process.builder.timeline(process.main);
        for _ in 0..10 {
            thread.work(50_000).enter(outer).work(600_000).call(inner, 400_000).leave();
        }
        thread.end();
        let worker = process.builder.thread("worker");
        process.builder.timeline(worker).work(1_000_000).call(inner, 3_000_000).end();
        process.builder.end(END_EXIT, 0);
        let refs = process.builder.context_refs();
        let seen = SyscallsBuilder::new(1000);
        Self { process, seen, main: refs[0].clone(), worker: refs[1].clone() }
    }

    fn image(&self) -> Image {
        let file = SyscallsFile::parse(self.seen.build()).unwrap();
        self.process.image().with_syscalls(Some(file))
    }

    fn analysis(&self) -> Analysis {
        let analysis = Analysis::new(&[self.image()], Selection::All);
        assert_conserved(&analysis);
        analysis
    }
}

fn row_of<'a>(analysis: &'a Analysis, symbol: &str, number: u32) -> &'a SyscallRow<OfApi> {
    let mut rows = analysis.syscalls.by_api.iter();
    rows.find(|row| row.of.symbol == symbol && row.number == number)
        .unwrap_or_else(|| panic!("no row for {symbol} and {number}"))
}

#[test]
fn calls_belong_to_the_innermost_library_call() {
    let mut scene = Scene::new();
    scene.seen.header.cost_inside_ns = 70;
    scene.seen.header.cost_outside_ns = 30;
    let (root, outer, inner) = (scene.main[0], scene.main[1], scene.main[2]);
    let row = scene.seen.syscall(outer, 1000, READ, 20, 1_000);
    row.returned = 4_096;
    row.off_cpu_ns = 5_000;
    // Two rows of one kind add up.
    scene.seen.syscall(inner, 1000, READ, 30, 500);
    scene.seen.syscall(inner, 1000, READ, 10, 2_000);
    let row = scene.seen.syscall(inner, 1000, CLOSE, 6, 100);
    row.errors = 5;
    row.errnos = errnos(&[(9, 4), (4, 1)]);
    scene.seen.syscall(root, 1000, READ, 2, 100);
    scene.seen.syscall(0, 1000, EXIT_GROUP, 1, 50).unfinished = 1;
    scene.seen.syscall(scene.worker[1], 1001, FUTEX, 3, 9_000).unfinished = 1;
    let analysis = scene.analysis();

    let read = row_of(&analysis, "outer", READ);
    assert_eq!((read.measures.calls, read.per_call), (20, Some(2.0)));
    assert_eq!((read.measures.total_ns, read.measures.cpu_ns), (Ns(20_000), Ns(15_000)));
    assert_eq!((read.measures.max_ns, read.measures.bytes), (Ns(1_000), Some(4_096)));
    assert_eq!(read.measures.p50_below_ns, Some(Ns(1_000)), "no more than the longest");
    let nested = read.nested.as_ref().unwrap();
    assert_eq!((nested.calls, nested.per_call, nested.total_ns), (60, Some(6.0), Ns(55_000)));
    // `outer` closes nothing itself; what it calls does.
    let close = row_of(&analysis, "outer", CLOSE);
    assert_eq!((close.measures.calls, close.nested.as_ref().unwrap().calls), (0, 6));

    let read = row_of(&analysis, "inner", READ);
    // Of both threads, `inner` was called 11 times.
    assert_eq!((read.measures.calls, read.of.api_calls), (40, 11));
    assert_eq!(read.measures.total_ns, Ns(30 * 500 + 10 * 2_000));
    // 30 of 40 took 570 ns with their cost: below 1024, less the cost.
    assert_eq!(read.measures.p50_below_ns, Some(Ns(1_024 - 70)));
    let close = row_of(&analysis, "inner", CLOSE);
    assert_eq!(close.measures.bytes, None);
    let errors: Vec<_> =
        close.measures.by_error.iter().map(|error| (error.name.unwrap(), error.count)).collect();
    assert_eq!(errors, [("EBADF", 4), ("EINTR", 1)]);

    // Outside of any library call.
    let outside = row_of(&analysis, "", READ);
    assert_eq!((outside.of.api, outside.measures.calls, outside.per_call), (None, 2, None));
    assert!(outside.nested.is_none());
    assert_eq!(row_of(&analysis, "", EXIT_GROUP).measures.unfinished, 1);

    let syscalls = &analysis.syscalls;
    assert_eq!(syscalls.totals.calls, 20 + 40 + 6 + 2 + 1 + 3);
    assert_eq!(syscalls.tracing_cost_ns, Ns(72 * 100));
    let by_name: Vec<_> =
        syscalls.by_syscall.iter().map(|row| (&*row.syscall, row.measures.calls)).collect();
    assert_eq!(by_name, [("read", 62), ("futex", 3), ("close", 6), ("exit_group", 1)]);
    let io = syscalls.by_category.iter().find(|row| row.category == Category::Io).unwrap();
    assert_eq!(io.measures.calls, 68);
    let library = |name: &str| {
        let rows = syscalls.by_library.iter().filter(move |row| row.of.library == name);
        rows.map(|row| (row.measures.calls, row.nested.as_ref().unwrap().calls)).collect::<Vec<_>>()
    };
    assert_eq!(library("libb.so"), [(40, 40), (3, 3), (6, 6)]);
    assert_eq!(library("liba.so"), [(20, 60), (0, 6)]);
    let threads: Vec<_> = syscalls
        .by_thread
        .iter()
        .map(|row| (row.of.tid, row.of.thread, &*row.of.name, &*row.syscall, row.measures.calls))
        .collect();
    let expected = [
        (1000, Some(0), "app", "read", 62),
        (1001, Some(1), "worker", "futex", 3),
        (1000, Some(0), "app", "close", 6),
        (1000, Some(0), "app", "exit_group", 1),
    ];
    assert_eq!(threads, expected);
    for row in &syscalls.by_context {
        if let Some(context) = row.of.context {
            let api = analysis.contexts[context as usize].api as usize;
            let depth = analysis.contexts[context as usize].depth;
            let symbol = &*analysis.apis[api].symbol;
            let expected = if symbol == "outer" { (0, 20) } else { (1, 40) };
            assert!(row.number != READ || (depth, row.measures.calls) == expected, "{row:?}");
        }
    }
    // The exit is no loss, the futex is.
    assert_eq!(analysis.not_seen.syscalls.unfinished, 1);

    let worker = Analysis::new(&[scene.image()], Selection::Thread(0, 1));
    assert_eq!(worker.syscalls.totals.calls, 3);
    let json = serde_json::to_value(&analysis).unwrap();
    assert_eq!(json["syscalls"]["by_api"][0]["symbol"], "inner");
    assert_eq!(json["syscalls"]["by_api"][0]["category"], "io");
}

/// What watching cost is in no time but own cost; in quantiles it is a share, as nested cost is.
#[test]
fn what_watching_cost_is_subtracted() {
    let mut scene = Scene::new();
    let plain = Analysis::new(&[scene.process.image()], Selection::All);
    scene.seen.header.cost_inside_ns = 60;
    scene.seen.header.cost_outside_ns = 40;
    let (root, outer, inner) = (scene.main[0], scene.main[1], scene.main[2]);
    scene.seen.syscall(outer, 1000, READ, 100, 500);
    scene.seen.syscall(inner, 1000, READ, 300, 500);
    scene.seen.syscall(root, 1000, READ, 20, 500);
    // More than there is beside the calls themselves (of 3 ms, they take 1.8), by a calibration that is one number.
    scene.seen.syscall(scene.worker[1], 1001, READ, 18_000, 100);
    // A child on main's memory takes no time of main's.
    scene.seen.syscall(inner, 4_000, READ, 1_000, 500);
    let analysis = scene.analysis();
    let of = |analysis: &Analysis, symbol| {
        let measures = &api(analysis, symbol).measures;
        (measures.total_ns.0, measures.self_ns.0)
    };
    let (total, own) = of(&plain, "outer");
    assert_eq!(of(&analysis, "outer"), (total - 40_000, own - 10_000));
    let mean = api(&analysis, "outer").measures.mean_ns.unwrap();
    assert_eq!(mean, Ns((total - 40_000) / 10));
    let (total, own) = of(&plain, "inner");
    let worker = 1_200_000;
    assert_eq!(of(&analysis, "inner"), (total - 30_000 - worker, own - 30_000 - worker));
    let main = (&plain.threads[0], &analysis.threads[0]);
    assert_eq!(main.1.application_ns.0, main.0.application_ns.0 - 2_000);
    assert_eq!(main.1.own_cost_ns, Ns(42_000));
    assert_eq!(analysis.syscalls.tracing_cost_ns, Ns((420 + 18_000 + 1_000) * 100));
}

#[test]
fn waits_are_those_of_the_scheduler() {
    let mut scene = Scene::new();
    let (root, outer, inner) = (scene.main[0], scene.main[1], scene.main[2]);
    scene.seen.wait(inner, 1000, WAIT_VOLUNTARY, 10, 300_000);
    scene.seen.wait(inner, 1000, WAIT_PREEMPTED, 10, 50_000);
    scene.seen.wait(outer, 1000, WAIT_PREEMPTED, 1, 200_000);
    scene.seen.wait(root, 1000, WAIT_VOLUNTARY, 1, 100_000);
    scene.seen.wait(0, 1000, WAIT_PREEMPTED, 1, 40_000);
    // A child on main's memory: main does not wait there.
    scene.seen.wait(inner, 4_000, WAIT_VOLUNTARY, 1, 500_000);
    // More than there is: the clocks differ a little.
    scene.seen.wait(scene.worker[1], 1001, WAIT_VOLUNTARY, 1, 3_000_400);
    scene.seen.wait(scene.worker[1], 1001, WAIT_PREEMPTED, 1, 1_000);
    let analysis = scene.analysis();
    assert_eq!(analysis.wait_source(), WaitSource::Scheduler);
    let off_cpu = |symbol| {
        let measures = &api(&analysis, symbol).measures;
        (measures.wait_ns.0, measures.preempted_ns.unwrap().0)
    };
    assert_eq!(off_cpu("outer"), (0, 200_000));
    assert_eq!(off_cpu("inner"), (3_000_000 + 3_000_000, 500_000));
    let main = &analysis.threads[0];
    assert_eq!(
        (main.measures.wait_ns, main.measures.preempted_ns),
        (Ns(3_000_000), Some(Ns(700_000)))
    );
    assert_eq!(main.application_wait_ns, Some(Ns(100_000)));
    assert_eq!(main.application_preempted_ns, Some(Ns(40_000)));
    let worker = &analysis.threads[1];
    assert_eq!(
        (worker.measures.wait_ns, worker.measures.preempted_ns),
        (Ns(3_000_000), Some(Ns(0)))
    );
    // As it was measured, whatever the calls are thought to have taken.
    let measured = |of: MeasuredOffCpu| (of.blocked_ns.unwrap().0, of.runnable_ns.unwrap().0);
    assert_eq!(measured(api(&analysis, "outer").off_cpu), (0, 200_000));
    assert_eq!(measured(api(&analysis, "inner").off_cpu), (6_000_400, 501_000));
    assert_eq!(measured(main.off_cpu), (3_100_000, 740_000));
    assert_eq!(measured(worker.off_cpu), (3_000_400, 1_000));
    let of_libraries = analysis.libraries.iter().map(|row| measured(row.off_cpu));
    let sum = of_libraries.fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
    assert_eq!(sum, (6_100_400, 741_000));
    let totals = &analysis.totals;
    assert_eq!((totals.wait_ns, totals.preempted_ns), (Ns(6_000_000), Some(Ns(700_000))));
    assert_eq!(totals.application_wait_ns, Some(Ns(100_000)));
    let application = analysis.libraries.iter().find(|row| row.name == "app").unwrap();
    assert_eq!(application.measures.wait_ns, Ns(100_000));
    let nested = analysis.contexts.iter().find(|row| row.depth == 1).unwrap();
    assert_eq!(nested.measures.wait_ns, Ns(3_000_000));
}

/// Who has been woken and does not yet run waits for a processor, as who is pushed aside does.
#[test]
fn waits_end_when_the_thread_is_woken() {
    let mut scene = Scene::new();
    let (root, inner) = (scene.main[0], scene.main[2]);
    let woken = |context_ref, waits, each_ns, ready_ns| CauseRow {
        context_ref,
        tid: 1000,
        number: FUTEX,
        waits,
        total_ns: waits * each_ns,
        max_ns: each_ns,
        ready_ns,
        ..CauseRow::zeroed()
    };
    scene.seen.wait(inner, 1000, WAIT_VOLUNTARY, 10, 300_000);
    scene.seen.wait(inner, 1000, WAIT_PREEMPTED, 10, 50_000);
    scene.seen.cause(woken(inner, 8, 300_000, 900_000));
    scene.seen.cause(woken(inner, 2, 300_000, 100_000));
    scene.seen.wait(root, 1000, WAIT_VOLUNTARY, 1, 100_000);
    // More than the wait: no time becomes another twice.
    scene.seen.cause(woken(root, 1, 100_000, 130_000));
    // There is no such wait.
    scene.seen.cause(woken(scene.main[1], 1, 100_000, 50_000));
    let analysis = scene.analysis();
    let measures = &api(&analysis, "inner").measures;
    assert_eq!((measures.wait_ns, measures.preempted_ns), (Ns(2_000_000), Some(Ns(1_500_000))));
    let main = &analysis.threads[0];
    assert_eq!(main.application_wait_ns, Some(Ns(0)));
    assert_eq!(main.application_preempted_ns, Some(Ns(100_000)));
    let measured = |of: MeasuredOffCpu| (of.blocked_ns.unwrap().0, of.runnable_ns.unwrap().0);
    assert_eq!(measured(api(&analysis, "inner").off_cpu), (2_000_000, 1_500_000));
    assert_eq!(measured(main.off_cpu), (2_000_000, 1_600_000));
}

/// A thread that is killed with its process, in a call, waits for a processor until it is gone. It ran in its life for so long.
fn killed_in_a_call(ran_ns: Option<u64>) -> Analysis {
    let mut process = Process::new();
    let (_, inner) = process.slots();
    process.builder.timeline(process.main).work(1_000_000).end();
    let worker = process.builder.thread("worker");
    process.builder.timeline(worker).work(200_000).enter(inner).work(800_000);
    process.builder.end(END_EXIT, 0);
    let refs = process.builder.context_refs()[1].clone();
    let mut seen = SyscallsBuilder::new(1000);
    seen.wait(refs[0], 1001, WAIT_VOLUNTARY, 1, 150_000);
    seen.wait(refs[1], 1001, WAIT_VOLUNTARY, 1, 820_000);
    seen.wait(refs[1], 1001, WAIT_PREEMPTED, 1, 60_000);
    if let Some(ns) = ran_ns {
        seen.on_cpu(1001, ns);
    }
    let file = SyscallsFile::parse(seen.build()).unwrap();
    let image = process.image().with_syscalls(Some(file));
    Analysis::new(&[image], Selection::All)
}

#[test]
fn what_is_after_a_killed_threads_end_is_not_its_time() {
    let analysis = killed_in_a_call(None);
    let worker = analysis.threads.iter().find(|row| row.tid == 1001).unwrap();
    let off_cpu = worker.off_cpu;
    assert_eq!(worker.lifetime_ns, Ns(1_000_000));
    assert_eq!((off_cpu.blocked_ns, off_cpu.runnable_ns), (Some(Ns(970_000)), Some(Ns(30_000))));
    assert_eq!(api(&analysis, "inner").off_cpu, {
        let blocked_ns = Some(Ns(820_000));
        MeasuredOffCpu { blocked_ns, runnable_ns: Some(Ns(30_000)) }
    });
}

/// What it ran is not time that it waited, although it waits for longer than its call takes.
#[test]
fn a_killed_thread_ran_before_it_waited() {
    let analysis = killed_in_a_call(Some(50_000));
    let worker = analysis.threads.iter().find(|row| row.tid == 1001).unwrap();
    let off_cpu = worker.off_cpu;
    assert_eq!(worker.on_cpu_ns, Some(Ns(50_000)));
    assert_eq!((off_cpu.blocked_ns, off_cpu.runnable_ns), (Some(Ns(950_000)), Some(Ns(0))));
}

/// Where no companion was there, threads know themselves; what asking took is their own cost.
#[test]
fn waits_are_those_that_threads_asked_for() {
    let mut scene = Scene::new();
    let main = scene.process.main;
    let row = |blocked_ns, preempted_ns, cost_ticks| OffCpuRow {
        blocked_ns,
        preempted_ns,
        cost_ticks,
        times: 1,
        ..OffCpuRow::default()
    };
    let builder = &mut scene.process.builder;
    builder.off_cpu(main, 1, row(0, 200_000, 0));
    builder.off_cpu(main, 2, row(300_000, 50_000, 0));
    builder.off_cpu(main, 0, row(100_000, 40_000, 0));
    let image = |scene: &Scene| process::image(&scene.process.builder);
    let by_name = Analysis::new(&[image(&scene)], Selection::All);
    assert_eq!(by_name.wait_source(), WaitSource::Name, "one thread did not ask");
    let own_cost = by_name.threads[0].own_cost_ns;

    scene.process.builder.thread_mut(ThreadId(1)).asks = 1;
    scene.process.builder.off_cpu(main, 1, row(0, 0, 7_000));
    let analysis = Analysis::new(&[image(&scene)], Selection::All);
    assert_conserved(&analysis);
    assert_eq!(analysis.wait_source(), WaitSource::Asked);
    let thread = &analysis.threads[0];
    assert_eq!(
        (thread.measures.wait_ns, thread.measures.preempted_ns),
        (Ns(300_000), Some(Ns(250_000)))
    );
    assert_eq!(thread.application_wait_ns, Some(Ns(100_000)));
    assert_eq!(thread.application_preempted_ns, Some(Ns(40_000)));
    assert_eq!(thread.own_cost_ns.0, own_cost.0 + 7_000);
    // A companion that saw all knows better.
    scene.seen.wait(scene.main[1], 1000, WAIT_VOLUNTARY, 1, 1_000);
    let traced = scene.analysis();
    assert_eq!(traced.wait_source(), WaitSource::Scheduler);
    assert_eq!(traced.threads[0].measures.wait_ns, Ns(1_000));
    // One that took samples alone knows nothing of waits.
    scene.seen.header.user_only = 1;
    assert_eq!(scene.analysis().wait_source(), WaitSource::Asked);
}

/// Nobody knows what is missing in a file that is not complete: then waits are told by name.
#[test]
fn an_incomplete_file_is_not_asked_for_waits() {
    let change: [fn(&mut SyscallsHeader); 3] = [
        |header| header.state = STATE_STOPPED,
        |header| header.lost_waits = 1,
        |header| header.state = 0,
    ];
    for change in change {
        let mut scene = Scene::new();
        scene.seen.wait(scene.main[1], 1000, WAIT_VOLUNTARY, 1, 300_000);
        scene.seen.syscall(scene.main[1], 1000, READ, 1, 300_000);
        change(&mut scene.seen.header);
        let analysis = scene.analysis();
        assert_eq!(analysis.wait_source(), WaitSource::Name);
        assert_eq!(analysis.totals.wait_ns, Ns(0));
        assert_eq!(analysis.totals.preempted_ns, None);
        let unknown = MeasuredOffCpu::default();
        assert!(analysis.threads.iter().all(|row| row.off_cpu == unknown));
        assert!(analysis.libraries.iter().all(|row| row.off_cpu == unknown));
        assert_eq!(api(&analysis, "outer").off_cpu, unknown);
        assert_eq!(analysis.syscalls.totals.calls, 1, "what was seen is still there");
        let not_seen = &analysis.not_seen.syscalls;
        assert!(not_seen.stopped.len() == 1 || not_seen.lost_waits == 1);
    }
}

/// The companion counts them for all processes of the run, so the largest count is the latest.
#[test]
fn causes_for_which_there_was_no_room_are_counted() {
    let mut scene = Scene::new();
    scene.seen.wait(scene.main[1], 1000, WAIT_VOLUNTARY, 1, 300_000);
    scene.seen.header.lost_causes = 7;
    let analysis = scene.analysis();
    assert_eq!(analysis.not_seen.syscalls.lost_causes, 7);
    // How long they were is known.
    assert_eq!(analysis.wait_source(), WaitSource::Scheduler);
}

#[test]
fn processes_without_a_file_are_named() {
    let mut scene = Scene::new();
    scene.seen.wait(scene.main[1], 1000, WAIT_VOLUNTARY, 1, 300_000);
    let mut other = scene.process.builder.clone();
    other.header.pid = 2_000;
    let images = [scene.image(), process::image(&other)];
    let analysis = Analysis::new(&images, Selection::All);
    assert_eq!(analysis.wait_source(), WaitSource::Mixed);
    assert_eq!(analysis.not_seen.syscalls.processes_without, [1]);
    assert_eq!(analysis.processes[1].syscalls, SyscallsState::None);
    let alone = Analysis::new(&images[1..], Selection::All);
    assert!(alone.not_seen.syscalls.processes_without.is_empty(), "nothing was looked at");
}

#[test]
fn rows_that_lead_nowhere_are_kept_apart() {
    let mut scene = Scene::new();
    scene.seen.syscall(u32::MAX, 1001, READ, 5, 100);
    scene.seen.syscall(0, 77, 9_999, 2, 100);
    scene.seen.syscall(OWN_CONTEXT_REF, 1001, READ, 40, 100).unfinished = 1;
    let analysis = scene.analysis();
    let nowhere = row_of(&analysis, "", READ);
    assert_eq!((nowhere.measures.calls, nowhere.of.is_recorded), (5, false));
    assert_eq!((analysis.syscalls.own.calls, analysis.syscalls.totals.calls), (40, 7));
    let unknown = row_of(&analysis, "", 9_999);
    assert_eq!((&*unknown.syscall, unknown.category), ("syscall 9999", Category::Other));
    assert_eq!(analysis.not_seen.syscalls.unfinished, 0);
    let rows = &analysis.syscalls.by_thread;
    assert_eq!(rows.iter().find(|row| row.of.tid == 77).unwrap().of.thread, None);
}

#[test]
fn any_place_in_the_file_may_be_damaged() {
    let scene = Scene::new();
    let bytes = chase_analyzer::recorder::builder::syscalls_sample().build();
    let recording = scene.process.builder.build();
    for at in (0..bytes.len()).step_by(2_003) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        let Ok(file) = SyscallsFile::parse(damaged.clone()) else { continue };
        let alone = SyscallsFile::parse(damaged).unwrap();
        let image = Image::of("a.chase".into(), Recording::parse(recording.clone()).unwrap());
        let images = [image.with_syscalls(Some(file)), Image::unrecorded("b".into(), alone)];
        let analysis = Analysis::new(&images, Selection::All);
        assert!(serde_json::to_string(&analysis.syscalls).is_ok());
    }
}

#[test]
fn what_watching_them_took_is_no_time_of_the_objects() {
    let mut scene = Scene::new();
    scene.seen.header.sample_hz = 997;
    scene.seen.header.cost_inside_ns = 70;
    scene.seen.header.cost_outside_ns = 30;
    let outer = scene.main[1];
    scene.seen.syscall(outer, 1000, READ, 20, 1_000);
    scene.seen.on_cpu(1000, 10_000);
    scene.seen.samples(outer, 1000, 0x10, 10, 10);
    let on_cpu = scene.analysis().on_cpu;
    assert_eq!(
        (on_cpu.on_cpu_ns, on_cpu.watching_ns, on_cpu.not_sampled_ns),
        (Ns(10_000), Ns(2_000), Ns(0))
    );
    let time = on_cpu.objects[0].time;
    assert_eq!((time.on_cpu_ns, time.on_cpu_kernel_ns), (Ns(8_000), Some(Ns(3_000))));
}

/// What watching takes was measured when the processor was slower.
#[test]
fn watching_a_call_takes_no_longer_than_the_call() {
    let mut scene = Scene::new();
    scene.seen.header.cost_inside_ns = 400;
    // 74 of them, one much longer than the others: 300 ns each, the cost included.
    let row = scene.seen.syscall(scene.main[1], 1000, READ, 74, 0);
    (row.total_ns, row.max_ns) = (73 * 300 + 5_000, 5_000);
    row.histogram.fill(0);
    (row.histogram[3], row.histogram[7]) = (73, 1);
    let analysis = scene.analysis();
    let measures = &analysis.syscalls.totals;
    assert!(measures.total_ns >= measures.max_ns && measures.max_ns > Ns(4_000), "{measures:?}");
    assert!(measures.total_ns > Ns(74 * 10), "{measures:?}");
}
