//! Samples of what ran: the tables must say where the processor was, and add up.

mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::layout::END_EXIT;
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::{Analysis, LibraryKind, LibraryRow, Selection, SyscallsState};
use process::{Process, api, assert_conserved};

/// A call of `outer`, and what samples say of it.
struct Scene {
    process: Process,
    seen: SyscallsBuilder,
    outer: u32,
    root: u32,
}

impl Scene {
    fn new() -> Self {
        let mut process = Process::new();
        let (outer, _) = process.slots();
        process.builder.timeline(process.main).enter(outer).work(8_000_000).leave().end();
        process.builder.end(END_EXIT, 0);
        let refs = process.builder.context_refs()[0].clone();
        let mut seen = SyscallsBuilder::new(1000);
        seen.header.sample_hz = 1_000;
        Self { process, seen, outer: refs[1], root: refs[0] }
    }

    fn analysis(&self) -> Analysis {
        let file = SyscallsFile::parse(self.seen.build()).unwrap();
        let image = self.process.image().with_syscalls(Some(file));
        let analysis = Analysis::new(&[image], Selection::All);
        assert_conserved(&analysis);
        assert_adds_up(&analysis);
        analysis
    }
}

/// Parts never exceed the whole.
fn assert_adds_up(analysis: &Analysis) {
    let on_cpu = &analysis.on_cpu;
    let objects: u64 = on_cpu.objects.iter().map(|row| row.time.on_cpu_ns.0).sum();
    let all = on_cpu.on_cpu_ns.0;
    assert!((objects + on_cpu.not_sampled_ns.0).abs_diff(all) <= on_cpu.objects.len() as u64);
    let addresses: u64 = on_cpu.addresses.iter().map(|row| row.time.on_cpu_ns.0).sum();
    assert!(addresses.abs_diff(objects) <= on_cpu.addresses.len() as u64);
    for row in &on_cpu.objects {
        assert!(row.time.on_cpu_kernel_ns.is_none_or(|ns| ns <= row.time.on_cpu_ns), "{row:?}");
    }
    for thread in &analysis.threads {
        // (What a program runs before it is recorded is in the sums alone.)
        assert!(thread.on_cpu_ns.is_none_or(|ns| ns <= thread.lifetime_ns), "{thread:?}");
    }
    for (number, api) in (0..).zip(&analysis.apis) {
        let of_threads = on_cpu.of_threads.iter().filter(|row| row.api == Some(number));
        let of_threads: u64 = of_threads.map(|row| row.ns.0).sum();
        let all = api.on_cpu.map_or(0, |on_cpu| on_cpu.time.on_cpu_ns.0);
        assert!(of_threads <= all + on_cpu.of_threads.len() as u64, "{} {of_threads}", api.symbol);
    }
    let libraries: u64 =
        analysis.libraries.iter().filter_map(|row| row.on_cpu).map(|time| time.on_cpu_ns.0).sum();
    assert!(libraries.abs_diff(objects) <= on_cpu.objects.len() as u64);
}

fn library<'a>(analysis: &'a Analysis, name: &str) -> &'a LibraryRow {
    let mut rows = analysis.libraries.iter().filter(|row| row.name == name);
    rows.next().unwrap_or_else(|| panic!("no row for {name}"))
}

#[test]
fn what_is_called_back_runs_in_its_own_object() {
    let mut scene = Scene::new();
    let app = scene.process.builder.code_address(scene.process.app, 0x40);
    let liba = scene.process.builder.code_address(scene.process.liba, 0x80);
    // In the call of `outer`: mostly the application, called back.
    scene.seen.samples(scene.outer, 1000, app, 600, 0);
    scene.seen.samples(scene.outer, 1000, app + 8, 100, 50);
    scene.seen.samples(scene.outer, 1000, liba, 40, 10);
    // A library that nobody ever called, and generated code, outside of calls.
    scene.seen.mapping(0x7000_0000, 0x7001_0000, "/lib/libplug.so (deleted)");
    scene.seen.mapping(0x7100_0000, 0x7101_0000, "");
    scene.seen.samples(scene.root, 1000, 0x7000_1000, 150, 0);
    scene.seen.samples(scene.root, 1000, 0x7100_1000, 40, 0);
    scene.seen.samples(0, 1000, 0x10, 10, 0);
    scene.seen.on_cpu(1000, 2_000_000_000);
    let analysis = scene.analysis();
    assert_eq!((analysis.on_cpu.samples, analysis.on_cpu.on_cpu_ns.0), (1_000, 2_000_000_000));
    let time = |name| library(&analysis, name).on_cpu.unwrap();
    assert_eq!(
        (time("app").on_cpu_ns.0, time("app").on_cpu_kernel_ns.unwrap().0),
        (1_500_000_000, 100_000_000)
    );
    assert_eq!(library(&analysis, "app").kind, LibraryKind::Application);
    assert_eq!(time("liba.so").on_cpu_ns.0, 100_000_000);
    assert_eq!(time("libplug.so").on_cpu_ns.0, 300_000_000);
    assert_eq!(library(&analysis, "libplug.so").measures.calls, 0);
    assert_eq!(time("[generated code]").on_cpu_ns.0, 80_000_000);
    assert_eq!(time("(unknown)").on_cpu_ns.0, 20_000_000);
    // 750 of 1,000: 0.7222 to 0.7758.
    let half = time("app").on_cpu_ci95_ns.0 as f64 / 2e9;
    assert!((half - 0.0268).abs() < 0.0002, "{half}");
    let outer = api(&analysis, "outer").on_cpu.unwrap();
    assert_eq!(outer.time.samples, 800);
    assert_eq!(outer.on_cpu_application_ns.0, 1_500_000_000);
    assert_eq!(outer.on_cpu_inside_ns.0, 100_000_000);
    assert_eq!(outer.on_cpu_elsewhere_ns.0, 0);
    // The first row is where the processor was most.
    assert_eq!(analysis.libraries[0].name, "app");
}

/// Functions are numbered in the order of their tables, which is not that in which they were first called.
#[test]
fn what_threads_ran_is_of_the_same_functions_as_all_that_ran() {
    let mut scene = Scene::new();
    let mut process = Process::new();
    let (first, _) = process.slots();
    let second = process.builder.slot(process.app, Some(process.liba), "longer");
    let mut timeline = process.builder.timeline(process.main);
    timeline.enter(first).work(1_000_000).leave();
    timeline.enter(second).work(8_000_000).leave().end();
    process.builder.end(END_EXIT, 0);
    let longer = process.builder.context_refs()[0][2];
    let liba = process.builder.code_address(process.liba, 0x80);
    scene.process = process;
    scene.seen.samples(longer, 1000, liba, 8, 0);
    scene.seen.on_cpu(1000, 9_000_000);
    let analysis = scene.analysis();
    let [row] = &analysis.on_cpu.of_threads[..] else { panic!("{:?}", analysis.on_cpu) };
    assert_eq!(analysis.apis[row.api.unwrap() as usize].symbol, "longer");
}

/// Samples have an address, but no time: of two libraries that were at the same place one after the other, it may be either.
#[test]
fn what_one_library_ran_is_not_told_as_that_of_the_next_one_at_its_place() {
    let mut scene = Scene::new();
    let builder = &mut scene.process.builder;
    let [first, next, again] =
        ["/lib/first.so", "/lib/next.so", "/lib/again.so"].map(|path| builder.object(path));
    builder.object_mut(next).bias = builder.object_mut(first).bias;
    // Unloaded, and loaded anew where it was.
    let anew = builder.object("/lib/again.so");
    builder.object_mut(anew).bias = builder.object_mut(again).bias;
    let either = builder.code_address(first, 0x40);
    let same = builder.code_address(again, 0x40);
    scene.seen.samples(scene.root, 1000, either, 10, 0);
    scene.seen.samples(scene.root, 1000, same, 20, 0);
    // Files that were mapped without the dynamic linker.
    for path in ["/opt/one.bin", "/opt/two.bin"] {
        scene.seen.mapping(0x7000_0000, 0x7001_0000, path);
    }
    scene.seen.samples(scene.root, 1000, 0x7000_1000, 10, 0);
    scene.seen.on_cpu(1000, 40_000_000);
    let analysis = scene.analysis();
    let time = |name| library(&analysis, name).on_cpu.unwrap().on_cpu_ns.0;
    assert_eq!(time("[one of several libraries]"), 20_000_000);
    assert_eq!(time("again.so"), 20_000_000);
    let has_samples = |row: &LibraryRow| row.on_cpu.is_some_and(|time| time.samples > 0);
    let named: Vec<&str> =
        analysis.libraries.iter().filter(|row| has_samples(row)).map(|row| &*row.name).collect();
    assert!(named.len() == 2, "{named:?}");
}

#[test]
fn short_threads_are_told_together() {
    let mut scene = Scene::new();
    let app = scene.process.builder.code_address(scene.process.app, 0x40);
    let liba = scene.process.builder.code_address(scene.process.liba, 0x80);
    scene.seen.samples(scene.root, 1000, app, 20, 0);
    scene.seen.on_cpu(1000, 40_000_000);
    // Of 30 threads of 1 ms, 10 have a sample.
    for thread in 0..30 {
        scene.seen.on_cpu(2000 + thread, 1_000_000);
        if thread % 3 == 0 {
            scene.seen.samples(0, 2000 + thread, liba, 1, 0);
        }
    }
    let analysis = scene.analysis();
    assert_eq!(library(&analysis, "liba.so").on_cpu.unwrap().on_cpu_ns.0, 30_000_000);
    assert_eq!(library(&analysis, "app").on_cpu.unwrap().on_cpu_ns.0, 40_000_000);
    assert_eq!(analysis.on_cpu.not_sampled_ns.0, 0);
}

#[test]
fn without_samples_nothing_is_claimed() {
    let mut scene = Scene::new();
    scene.seen.header.sample_hz = 0;
    scene.seen.on_cpu(1000, 5_000_000);
    let analysis = scene.analysis();
    assert_eq!(analysis.on_cpu.not_sampled_ns.0, 5_000_000);
    assert!(analysis.libraries.iter().all(|row| row.on_cpu.is_none()));
    assert!(analysis.apis.iter().all(|row| row.on_cpu.is_none()));
}

/// Each sample stands for the time between two strokes of the clock, and nobody knows what the kernel did for whom.
#[test]
fn without_privilege_time_in_the_kernel_is_in_no_object() {
    let mut scene = Scene::new();
    scene.seen.header.user_only = 1;
    let app = scene.process.builder.code_address(scene.process.app, 0x40);
    scene.seen.samples(0, 1000, app, 600, 0);
    // What the companion read last, and what the thread itself said in the end.
    scene.seen.on_cpu(1000, 900_000_000);
    let main = scene.process.main;
    scene.process.builder.thread_mut(main).asks = 1;
    scene.process.builder.thread_mut(main).cpu_ns = 1_000_000_000;
    let analysis = scene.analysis();
    let on_cpu = &analysis.on_cpu;
    assert!(on_cpu.user_only);
    assert_eq!((on_cpu.on_cpu_ns.0, on_cpu.not_sampled_ns.0), (1_000_000_000, 400_000_000));
    let time = library(&analysis, "app").on_cpu.unwrap();
    assert_eq!((time.on_cpu_ns.0, time.on_cpu_kernel_ns), (600_000_000, None));
    assert_eq!(analysis.processes[0].syscalls, SyscallsState::None);
    // It lived for less: what is beyond that came before it was recorded.
    let thread = &analysis.threads[0];
    assert_eq!(thread.on_cpu_ns, Some(thread.lifetime_ns));
    // The clock may have struck more often than it should.
    scene.seen.samples(0, 1000, app + 8, 600, 0);
    let on_cpu = scene.analysis().on_cpu;
    assert_eq!((on_cpu.on_cpu_ns.0, on_cpu.not_sampled_ns.0), (1_000_000_000, 0));
}

#[test]
fn a_row_that_was_taken_from_below_zero_is_made_good_by_the_threads_other_row() {
    let mut scene = Scene::new();
    scene.seen.on_cpu(1000, 0_u64.wrapping_sub(3_000));
    scene.seen.on_cpu(1000, 40_003_000);
    assert_eq!(scene.analysis().on_cpu.on_cpu_ns.0, 40_000_000);
}

/// Where `/lib` is a link, the kernel names the same file otherwise than the dynamic linker does.
#[test]
fn a_library_is_the_same_by_both_of_its_paths() {
    let mut scene = Scene::new();
    let liba = scene.process.builder.code_address(scene.process.liba, 0x80);
    scene.seen.mapping(0x7000_0000, 0x7001_0000, "/usr/lib/liba.so");
    scene.seen.samples(scene.root, 1000, 0x7000_1000, 30, 0);
    scene.seen.samples(scene.outer, 1000, liba, 10, 0);
    scene.seen.on_cpu(1000, 40_000_000);
    let analysis = scene.analysis();
    let rows: Vec<_> = analysis.libraries.iter().filter(|row| row.name == "liba.so").collect();
    let [row] = rows[..] else { panic!("{rows:#?}") };
    assert_eq!((row.on_cpu.unwrap().samples, row.measures.calls), (40, 1));
}
