//! Many threads and many recordings: the same figures whoever works on them, and one time for all.

mod process;

use std::fs;

use chase_analyzer::recorder::builder::Builder;
use chase_analyzer::recorder::layout::END_EXIT;
use chase_analyzer::recorder::reader::Recording;
use chase_analyzer::{
    Analysis, Groups, Image, Loaded, Ns, Run, Selection, Tails, Unnamed, Workers, load_run, scan,
    scan_all,
};
use process::assert_conserved;

const CONTEXTS: usize = 48;
const SECOND: u64 = 1_000_000_000;

/// A process whose threads do not quite the same, on the machine number `host`.
fn pool(host: u8, threads: usize) -> Builder {
    let mut builder = Builder::new();
    builder.header.boot_id = [host; 16];
    builder.header.pid = 100 + u32::from(host);
    let app = builder.executable("/opt/pool");
    let library = builder.object("/opt/libpool.so");
    // What is called first differs, so that parts number the functions differently.
    let slots: Vec<_> = (0..CONTEXTS)
        .map(|at| {
            builder.slot(app, Some(library), &format!("f{}", (at + host as usize) % CONTEXTS))
        })
        .collect();
    for number in 0..threads as u64 {
        let thread = builder.thread(&format!("worker-{number}"));
        let mut timeline = builder.timeline(thread);
        for (at, &slot) in slots.iter().enumerate() {
            let ticks = 100 + (number * 7_919 + at as u64 * 104_729 + u64::from(host)) % 1_000;
            timeline.calls(slot, ticks, 20).call(slot, ticks * 977);
        }
        timeline.end();
    }
    builder.end(END_EXIT, 0);
    builder
}

fn image(builder: &Builder) -> Image {
    Image::of("pool.chase".into(), Recording::parse(builder.build()).unwrap())
}

/// All figures, as text.
fn figures(images: &[Image], workers: Workers) -> String {
    let analysis = Analysis::new_with(images, Selection::All, workers, &mut |_| {});
    assert_conserved(&analysis);
    let groups = Groups::new(&analysis, &Unnamed);
    let tails = Tails::new_with(images, &analysis, &groups, workers);
    assert!(!tails.rows.is_empty());
    serde_json::to_string(&(&analysis, &groups, &tails.rows)).unwrap()
}

#[test]
fn figures_are_the_same_whoever_works_on_them() {
    // Several parts, of which some are whole images.
    let images = [image(&pool(1, 400)), image(&pool(2, 3)), image(&pool(3, 400))];
    let contexts: usize = images.iter().map(|image| image.recording.context_count()).sum();
    assert!(contexts > 2 * 16_384, "{contexts}");
    let alone = figures(&images, Workers::new(1));
    for workers in [2, 5] {
        assert!(figures(&images, Workers::new(workers)) == alone, "{workers} workers");
    }
}

#[test]
fn parts_add_up_to_what_one_image_has() {
    let analysis = Analysis::new(&[image(&pool(1, 400))], Selection::All);
    assert_eq!((analysis.apis.len(), analysis.contexts.len()), (CONTEXTS, CONTEXTS));
    assert_eq!(analysis.totals.calls, 400 * CONTEXTS as u64 * 21);
    for row in &analysis.apis {
        assert_eq!(row.measures.calls, 400 * 21);
        let by_thread = analysis.threads.iter().flat_map(|thread| &thread.apis);
        let name = |api: u32| &analysis.apis[api as usize].symbol;
        let calls = by_thread.filter(|api| *name(api.api) == row.symbol).map(|api| api.calls);
        assert_eq!(calls.sum::<u64>(), 400 * 21);
    }
}

/// Recordings of `hosts`, each begun a second after the other by the wall clock, all at the same
/// time since their machine's start.
fn fleet(hosts: u8) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for host in 1..=hosts {
        let mut builder = pool(host, 2);
        builder.header.clock_start.realtime_ns += u64::from(host) * SECOND;
        let path = directory.path().join(format!("{host}.chase"));
        fs::write(path, builder.build()).unwrap();
    }
    directory
}

fn together(directory: &tempfile::TempDir) -> Loaded {
    let runs = scan(directory.path()).unwrap().runs;
    load_run(&Run::together(runs).unwrap()).unwrap()
}

#[test]
fn recordings_of_several_machines_have_one_time() {
    let directory = fleet(3);
    let Loaded { images, failures, .. } = together(&directory);
    assert_eq!((images.len(), failures.len()), (3, 0));
    let analysis = Analysis::new(&images, Selection::All);
    let starts: Vec<u64> = analysis.processes.iter().map(|process| process.start_ns.0).collect();
    assert_eq!(starts, [0, SECOND, 2 * SECOND]);
    let last = &analysis.processes[2];
    assert_eq!(analysis.wall_ns, Ns(2 * SECOND + last.wall_ns.0));
    assert!(analysis.threads.iter().all(|thread| {
        let process = &analysis.processes[thread.process];
        thread.start_ns >= process.start_ns
            && thread.end_ns.0 <= process.start_ns.0 + process.wall_ns.0
    }));
    // One program: its functions are the same ones everywhere.
    assert_eq!(analysis.apis.len(), CONTEXTS);
    assert_eq!(Groups::new(&analysis, &Unnamed).rows.len(), 2);
    assert_conserved(&analysis);
}

#[test]
fn one_build_found_by_two_paths_is_one_library() {
    let at = |path: &str, build: u8| {
        let mut builder = Builder::new();
        let app = builder.executable("/opt/app");
        let library = builder.object(path);
        let record = builder.object_mut(library);
        (record.build_id_len, record.build_id[0]) = (4, build);
        let slot = builder.slot(app, Some(library), "work");
        let thread = builder.thread("main");
        builder.timeline(thread).call(slot, SECOND).end();
        image(&builder)
    };
    let images = [at("/lib/libone.so", 1), at("/usr/lib/libone.so", 1), at("/opt/libone.so", 2)];
    for workers in [Workers::new(1), Workers::new(3)] {
        let analysis = Analysis::new_with(&images, Selection::All, workers, &mut |_| {});
        let calls: Vec<_> = (analysis.apis.iter())
            .map(|api| (analysis.objects[api.object as usize].path.as_str(), api.measures.calls))
            .collect();
        assert_eq!(calls, [("/lib/libone.so", 2), ("/opt/libone.so", 1)]);
    }
}

#[test]
fn damaged_recordings_of_a_fleet_are_named() {
    let directory = fleet(20);
    fs::write(directory.path().join("7.chase"), "no recording").unwrap();
    let catalog = scan(directory.path()).unwrap();
    assert_eq!(catalog.failures.len(), 1);
    assert!(catalog.failures[0].path.ends_with("7.chase"));
    // Gone since it was found.
    fs::remove_file(directory.path().join("8.chase")).unwrap();
    let Loaded { images, failures, .. } = load_run(&Run::together(catalog.runs).unwrap()).unwrap();
    assert_eq!(images.len(), 18);
    assert_eq!(failures.len(), 1);
    assert!(failures[0].path.ends_with("8.chase"));
}

#[test]
fn what_is_named_twice_counts_once() {
    let directory = fleet(2);
    let one = directory.path().join("1.chase");
    let catalog = scan_all(&[directory.path().into(), one.clone(), one]).unwrap();
    assert_eq!(catalog.runs.len(), 2);
    assert!(scan_all(&[directory.path().into(), "no/such".into()]).is_err());
}
