//! Parts and their wholes: estimates are no longer than what there was, own code is where threads are at home, and what
//! chase cost is what was measured of it.

mod process;

use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::layout::{END_EXIT, ORIGIN_FORK, TIMING_ADAPTIVE};
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::recorder::syscalls::{BlockedRow, CauseRow, WAKER_THREAD, WAKER_TIME};
use chase_analyzer::{
    Analysis, Groups, LibraryKind, LibraryRow, Ns, PathWait, Selection, Unnamed, Without,
    critical_path, what_if,
};
use process::{Process, api, assert_conserved};

fn library<'a>(analysis: &'a Analysis, kind: LibraryKind, name: &str) -> Option<&'a LibraryRow> {
    analysis.libraries.iter().find(|row| row.kind == kind && row.name == name)
}

/// A thread that ends after so many ticks, whatever its calls are estimated to have taken.
fn cut(mut process: Process, ticks: u64) -> Analysis {
    let start = process.builder.header.clock_start.ticks;
    process.builder.thread_mut(process.main).end_ticks = start + ticks;
    process.analysis()
}

#[test]
fn estimates_take_no_longer_than_the_thread_lived() {
    let mut process = Process::new();
    process.builder.header.timing = TIMING_ADAPTIVE;
    let (_, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    // The one that was timed took long, and stands for a hundred.
    thread.work(100).calls(inner, 40, 50).block(inner, 4_000, 100).end();
    let analysis = cut(process, 42_100);
    let measures = &api(&analysis, "inner").measures;
    assert_eq!(measures.self_ns, Ns(42_100), "certain are 2,000 of it");
    assert!(measures.estimated && measures.ci95_ns <= Ns(42_100), "{measures:?}");
    assert_eq!((analysis.totals.overlap_ns, analysis.totals.application_ns), (Ns(0), Ns(0)));
}

#[test]
fn estimates_take_no_longer_than_the_call_that_they_are_in() {
    let mut process = Process::new();
    process.builder.header.timing = TIMING_ADAPTIVE;
    let (outer, inner) = process.slots();
    let mut thread = process.builder.timeline(process.main);
    thread.work(1_000).enter(outer).work(500).block(inner, 4_000, 100);
    // These are shorter than the one that was timed.
    thread.rest(inner, 10, 100).leave().work(1_000).end();
    let analysis = process.analysis();
    let self_ns = |symbol| api(&analysis, symbol).measures.self_ns;
    assert_eq!((self_ns("inner"), self_ns("outer")), (Ns(400_000 + 1_000 + 500), Ns(0)));
    let totals = &analysis.totals;
    assert_eq!((totals.application_ns, totals.overlap_ns), (Ns(2_000), Ns(0)));
}

/// Workers whose start routine is in a library: their own code is that library's.
#[test]
fn own_code_of_a_librarys_threads_is_the_librarys() {
    let mut process = Process::new();
    let (outer, _) = process.slots();
    process.builder.timeline(process.main).work(1_000).call(outer, 500).end();
    let worker = process.builder.thread("worker");
    let routine = process.builder.code_address(process.libb, 0x40);
    process.builder.thread_mut(worker).start_routine_avma = routine;
    process.builder.timeline(worker).work(7_000).end();
    let analysis = process.analysis();
    let row = library(&analysis, LibraryKind::Library, "libb.so").expect("a row");
    assert_eq!(
        (row.measures.self_ns, row.own_code_ns, row.measures.calls),
        (Ns(7_000), Ns(7_000), 0)
    );
    let app = library(&analysis, LibraryKind::Application, "app").expect("a row");
    assert_eq!((app.measures.self_ns, app.own_code_ns), (Ns(1_000), Ns(1_000)));
    let objects: Vec<_> = analysis
        .threads
        .iter()
        .map(|row| &*analysis.objects[row.own_object as usize].name)
        .collect();
    assert_eq!(objects, ["app", "libb.so"]);
}

/// A thread of a runtime's runs what it was given: the first word of its argument says whose that is.
#[test]
fn own_code_of_a_runtimes_threads_is_that_of_what_they_run() {
    let mut process = Process::new();
    let runtime = process.builder.object("/lib/libstdc++.so.6");
    let routine = process.builder.code_address(runtime, 0x40);
    let of_app = process.builder.code_address(process.app, 0x80);
    let of_library = process.builder.code_address(process.liba, 0x80);
    process.builder.timeline(process.main).work(1_000).end();
    let mut thread = |word: Option<u64>, work: u64| -> ThreadId {
        let thread = process.builder.thread("worker");
        process.builder.thread_mut(thread).start_routine_avma = routine;
        if let Some(word) = word {
            let origin = process.builder.origin_mut(thread);
            (origin.words[0], origin.word_count) = (word, 1);
        }
        process.builder.timeline(thread).work(work).end();
        thread
    };
    thread(Some(of_app), 10);
    thread(Some(of_library), 200);
    thread(Some(7), 3_000);
    thread(None, 40_000);
    let analysis = process.analysis();
    let own = |kind, name| library(&analysis, kind, name).map(|row| row.own_code_ns.0);
    assert_eq!(own(LibraryKind::Application, "app"), Some(1_000 + 10 + 3_000));
    assert_eq!(own(LibraryKind::Library, "liba.so"), Some(200));
    assert_eq!(own(LibraryKind::Library, "libstdc++.so.6"), Some(40_000));
}

/// Half of the time others had the processor. What of that fell into calls that were not timed looks like own code.
#[test]
fn what_others_took_of_the_processor_is_not_the_applications() {
    let scene = |cpu_ns: u64| {
        let mut process = Process::new();
        process.builder.header.timing = TIMING_ADAPTIVE;
        let (_, inner) = process.slots();
        let mut thread = process.builder.timeline(process.main);
        thread.work(1_000);
        for _ in 0..100 {
            thread.block(inner, 40, 100);
        }
        // As many ticks again, of which the samples know nothing.
        thread.work(400_000 + 1_000).end();
        process.builder.thread_mut(process.main).cpu_ns = cpu_ns;
        process.builder.thread_mut(process.main).cpu_is_final = 1;
        process.analysis()
    };
    let quiet = scene(802_000);
    assert_eq!(quiet.totals.application_ns, Ns(402_000));
    assert_eq!(quiet.totals.unattributed_ns, Ns(0));
    let busy = scene(401_000);
    let row = library(&busy, LibraryKind::Unattributed, "[not attributed]").expect("a row");
    assert_eq!((row.measures.self_ns, busy.totals.unattributed_ns), (Ns(400_000), Ns(400_000)));
    assert_eq!(busy.totals.application_ns, Ns(2_000));
    assert_eq!(api(&busy, "inner").measures.self_ns, Ns(400_000));
    assert_eq!(busy.threads[0].on_cpu_ns, Some(Ns(401_000)));
    assert!(busy.threads[0].conservation_error() < 0.01);
}

/// What chase took is of no use to the program, and what the companion took is beside it.
#[test]
fn what_chase_cost_is_stated_by_processor_time() {
    let mut process = Process::new();
    let (outer, _) = process.slots();
    process.builder.timeline(process.main).work(1_000_000).call(outer, 500_000).end();
    process.builder.thread_mut(process.main).slow_ticks = 10_000;
    process.builder.header.cpu_ns = 2_500_000;
    process.builder.header.cost_start_ns = 900_000;
    process.builder.header.cost_later_ticks = 90_000;
    process.builder.end(END_EXIT, 0);
    let mut seen = SyscallsBuilder::new(1000);
    seen.header.companion_cpu_ns = 750_000;
    let image = process.image().with_syscalls(Some(SyscallsFile::parse(seen.build()).unwrap()));
    let analysis = Analysis::new(&[image], Selection::All);
    assert_conserved(&analysis);
    let overhead = analysis.overhead;
    assert_eq!((overhead.calls_ns, overhead.beside_calls_ns), (Ns(0), Ns(1_000_000)));
    assert_eq!((overhead.companion_ns, overhead.without_ns), (Ns(750_000), Ns(1_500_000)));
    assert_eq!(overhead.inside_ns(), Ns(1_000_000));
    assert!((overhead.share() - 1.0 / 1.5).abs() < 1e-9, "{}", overhead.share());
    // Where its end was not seen, its threads' own clocks tell; without these, its processor time is unknown, and so is what part of it
    // chase took.
    process.builder.header.end_kind = 0;
    let overhead = process.analysis().overhead;
    assert_eq!((overhead.without_ns, overhead.share()), (Ns(0), 0.0));
    assert_eq!(overhead.inside_ns(), Ns(1_000_000));
    process.builder.thread_mut(process.main).cpu_ns = 1_200_000;
    process.builder.thread_mut(process.main).cpu_is_final = 1;
    assert_eq!(process.analysis().overhead.without_ns, Ns(200_000));
}

/// A process that was attached to had run before: that is no part of what was recorded.
#[test]
fn what_ran_before_it_was_recorded_is_not_counted() {
    let mut process = Process::new();
    process.builder.timeline(process.main).work(2_000_000).end();
    process.builder.header.cpu_ns = 9_000_000;
    process.builder.header.cost_start_ns = 100_000;
    process.builder.meta("attached", "1 threads, 0 in calls").meta("ran before", "7000000");
    process.builder.end(END_EXIT, 0);
    assert_eq!(process.analysis().overhead.without_ns, Ns(2_000_000 - 100_000));
    // A second time, after a pause.
    let both = [process.image(), process.image()];
    let overhead = Analysis::new(&both, Selection::All).overhead;
    assert_eq!(overhead.without_ns, Ns(2 * (2_000_000 - 100_000)));
    // What a fork's child has of that is its parent's.
    process.builder.header.origin = ORIGIN_FORK;
    process.builder.header.cpu_ns = 3_000_000;
    let child = process.image();
    assert!(!child.began_late());
    assert_eq!(child.ran_before(), Ns(0));
}

/// Threads that never called a library have no record; the companion has seen them run.
#[test]
fn threads_without_a_record_are_told() {
    let mut process = Process::new();
    process.builder.timeline(process.main).work(2_000_000).end();
    process.builder.end(END_EXIT, 0);
    let pid = process.builder.header.pid;
    let mut seen = SyscallsBuilder::new(pid);
    let main = process.image().recording.threads().next().expect("a thread").record().tid;
    seen.on_cpu(main, 2_000_000).on_cpu(pid + 70, 3_000_000).on_cpu(pid + 71, 10_000);
    let file = || Some(SyscallsFile::parse(seen.build()).unwrap());
    let analysis = Analysis::new(&[process.image().with_syscalls(file())], Selection::All);
    let not_seen = &analysis.not_seen.syscalls;
    assert_eq!((not_seen.silent_threads, not_seen.silent_threads_ns), (1, Ns(3_000_000)));
    // Where chase came later, that is no news.
    process.builder.meta("attached", "3 threads, 0 in calls");
    let analysis = Analysis::new(&[process.image().with_syscalls(file())], Selection::All);
    assert_eq!(analysis.not_seen.syscalls.silent_threads, 0);
}

/// A program that ends by a system call of its own, as Go's do, tells of no end; the companion has seen it.
#[test]
fn an_end_that_only_the_kernel_saw_is_the_end() {
    let mut process = Process::new();
    process.builder.timeline(process.main).work(1_000_000);
    process.builder.header.end_kind = 0;
    let began_ns = process.builder.header.clock_start.monotonic_ns;
    let scene = |ended_ns: u64, written_ns: u64| {
        let mut seen = SyscallsBuilder::new(1000);
        (seen.header.ended_ns, seen.header.written_ns) = (ended_ns, written_ns);
        let file = SyscallsFile::parse(seen.build()).unwrap();
        let analysis = Analysis::new(&[process.image().with_syscalls(Some(file))], Selection::All);
        (analysis.processes[0].wall_ns, analysis.processes[0].end_is_estimate)
    };
    let (before, is_estimate) = scene(0, began_ns + 9_000_000);
    assert!(is_estimate && before < Ns(8_000_000), "{before:?}");
    let (wall_ns, is_estimate) = scene(began_ns + 8_000_000, began_ns + 9_000_000);
    assert_eq!((wall_ns, is_estimate), (Ns(8_000_000), false));
    // One that was written before it came is none.
    assert_eq!(scene(began_ns + 8_000_000, began_ns + 7_000_000).0, before);
}

/// Threads that wait, and are woken by others, at any times whatever, also at such as can't be: the path leads without gaps from
/// the end of the run to its start, and its parts add up to it.
#[test]
fn a_critical_path_is_as_long_as_its_run() {
    const THREADS: u32 = 4;
    let mut state = 1_u64;
    let mut below = |limit: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let mut with_path = 0;
    for _ in 0..300 {
        let mut process = Process::new();
        let (_, inner) = process.slots();
        process.builder.timeline(process.main).work(10_000_000).call(inner, 10).end();
        for _ in 1..THREADS {
            let worker = process.builder.thread("worker");
            process.builder.thread_mut(worker).creator = below(2) as u32;
            process.builder.timeline(worker).work(1 + below(20_000_000)).end();
        }
        process.builder.end(END_EXIT, 0);
        let recording = process.builder.build();
        let recording = chase_analyzer::recorder::reader::Recording::parse(&recording).unwrap();
        let tids: Vec<u32> = recording.threads().map(|thread| thread.record().tid).collect();
        let tid = |number: u64| tids[number as usize % tids.len()];
        let mut seen = SyscallsBuilder::new(1000);
        let began_ns = seen.header.began_ns;
        for cause in 0..below(30) as u32 {
            let own = tid(below(4));
            let is_woken = below(3) > 0;
            seen.cause(CauseRow {
                tid: own,
                number: 202,
                waker_kind: if is_woken { WAKER_THREAD } else { WAKER_TIME },
                waker: tid(below(4)),
                waker_pid: 1000,
                waker_began_ns: began_ns,
                waits: 1,
                ..bytemuck::Zeroable::zeroed()
            });
            let begin_ns = began_ns + below(20_000_000);
            let end_ns = begin_ns + 1_000_000 + below(5_000_000);
            let woken_ns = if is_woken { begin_ns + below(7_000_000) } else { 0 };
            seen.blocked(BlockedRow { cause, tid: own, begin_ns, woken_ns, end_ns });
        }
        let file = SyscallsFile::parse(seen.build()).unwrap();
        let images = [process.image().with_syscalls(Some(file))];
        let analysis = Analysis::new(&images, Selection::All);
        let groups = Groups::new(&analysis, &Unnamed);
        let Some(path) = critical_path(&images, &analysis, &groups, &Unnamed, None) else {
            continue;
        };
        with_path += 1;
        let mut at = analysis.wall_ns;
        for step in &path.steps {
            assert!(step.end_ns == at && step.begin_ns < at, "{step:?} does not end at {at:?}");
            at = step.begin_ns;
        }
        assert_eq!(at, Ns(0));
        let parts: u64 = path.parts.iter().map(|part| part.ns.0).sum();
        assert_eq!(parts, analysis.wall_ns.0);
        let shares: f64 = path.parts.iter().map(|part| part.share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        // The part of it in a window is as long as the window, and has the same steps there.
        let from = Ns(below(analysis.wall_ns.0));
        let to = Ns(from.0 + 1 + below(analysis.wall_ns.0 - from.0));
        let window = Some((from, to));
        let part = critical_path(&images, &analysis, &groups, &Unnamed, window).unwrap();
        let mut at = to;
        for step in &part.steps {
            assert!(step.end_ns == at && step.begin_ns < at, "{step:?} does not end at {at:?}");
            at = step.begin_ns;
            let is_in = |all: &&chase_analyzer::PathStep| {
                all.begin_ns <= step.begin_ns && step.end_ns <= all.end_ns
            };
            let all = path.steps.iter().find(is_in).expect("a step of the whole path");
            assert!(all.thread == step.thread && all.doing == step.doing, "{step:?} of {all:?}");
        }
        assert_eq!(at, from);
        let parts: u64 = part.parts.iter().map(|part| part.ns.0).sum();
        assert_eq!(parts, to.0 - from.0);
        // Replayed as it was, it takes as long; without some waits no longer, and its path has no gaps either.
        let replay = |wait: &dyn Fn(&PathWait) -> bool| {
            let without = Without { wait, time: &|_| Ns(0), thread: &|_| false };
            what_if(&images, &analysis, &groups, &Unnamed, &without).unwrap()
        };
        assert_eq!(replay(&|_| false).saves_at_most_ns, Ns(0));
        let shorter = replay(&|wait| wait.purpose != chase_analyzer::Purpose::Sleep);
        assert!(shorter.at_least_ns <= analysis.wall_ns);
        let mut at = shorter.at_least_ns;
        for step in &shorter.steps {
            assert!(step.end_ns == at && step.begin_ns < at, "{step:?} does not end at {at:?}");
            at = step.begin_ns;
        }
        assert_eq!(at, Ns(0));
    }
    assert!(with_path > 100, "{with_path}");
}
