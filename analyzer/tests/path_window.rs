//! What a thread ran in a part of the run, by samples of that part; and what it waited for.

use chase_analyzer::recorder::builder::{Builder, SyscallsBuilder};
use chase_analyzer::recorder::layout::END_EXIT;
use chase_analyzer::recorder::reader::{Recording, SyscallsFile};
use chase_analyzer::recorder::syscalls::{
    BlockedRow, CauseRow, OBJECT_NAME, WAKER_INTERRUPT, WAKER_TIME,
};
use chase_analyzer::{
    Analysis, Doing, Groups, Image, Ns, Selection, Unnamed, WaitObject, critical_path,
};

const MS: u64 = 1_000_000;

/// The times of what a thread runs between two moments, in ms, by object; it runs its own code for 40 ms and a library's for 40,
/// a sample every `every` ms, and sleeps at last.
fn ran(every: u64, from: u64, to: u64) -> Vec<(String, u64)> {
    ran_with_samples_in(2, every, from, to)
}

/// The same, with samples in the first `parts` alone.
fn ran_with_samples_in(parts: usize, every: u64, from: u64, to: u64) -> Vec<(String, u64)> {
    let mut builder = Builder::new();
    let app = builder.executable("/usr/bin/app");
    let libz = builder.object("/usr/lib/libz.so.1");
    let crc32 = builder.slot(app, Some(libz), "crc32");
    let main = builder.thread("app");
    builder.timeline(main).work(40 * MS).call(crc32, 40 * MS).work(20 * MS).end();
    builder.end(END_EXIT, 0);
    let places = [
        (0, builder.code_address(app, 16)),
        (builder.context_refs()[0][1], builder.code_address(libz, 16)),
    ];
    let mut seen = SyscallsBuilder::new(1000);
    seen.header.sample_hz = 1_000 / every;
    seen.on_cpu(1000, 80 * MS);
    let began_ns = seen.header.began_ns;
    for (place, (context, address)) in (0..).zip(places).take(parts) {
        seen.samples(context, 1000, address, (40 / every) as u32, 0);
        for at in (place * 40..(place + 1) * 40).step_by(every as usize) {
            seen.timed_sample(at * MS);
        }
    }
    seen.cause(CauseRow {
        tid: 1000,
        number: 35,
        waker_kind: WAKER_TIME,
        waits: 1,
        total_ns: 20 * MS,
        ..bytemuck::Zeroable::zeroed()
    });
    let (begin_ns, end_ns) = (began_ns + 80 * MS, began_ns + 100 * MS);
    seen.blocked(BlockedRow { cause: 0, tid: 1000, begin_ns, woken_ns: 0, end_ns });
    let recording = Recording::parse(builder.build()).expect("a recording");
    let file = SyscallsFile::parse(seen.build()).expect("a file");
    let images = [Image::of("app.1000.chase".into(), recording).with_syscalls(Some(file))];
    let analysis = Analysis::new(&images, Selection::All);
    let groups = Groups::new(&analysis, &Unnamed);
    let window = Some((Ns(from * MS), Ns(to * MS)));
    let path = critical_path(&images, &analysis, &groups, &Unnamed, window).expect("a path");
    let runs = path.parts.iter().filter(|part| part.doing == Doing::Running);
    let mut found: Vec<_> = runs
        .map(|part| {
            let object = part.runs.expect("known").object;
            (analysis.objects[object as usize].name.clone(), part.ns.0 / MS)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn a_part_with_samples_has_what_these_found() {
    let of = |app: u64, libz: u64| {
        let parts = [("app", app), ("libz.so.1", libz)];
        parts
            .into_iter()
            .filter(|part| part.1 > 0)
            .map(|(name, ms)| (name.to_owned(), ms))
            .collect()
    };
    let expected: Vec<Vec<(String, u64)>> = vec![of(40, 40), of(20, 0), of(0, 20), of(10, 20)];
    let found = [(0, 80), (10, 30), (45, 65), (30, 60)].map(|(from, to)| ran(1, from, to));
    assert_eq!(found.to_vec(), expected);
}

/// Fewer than ten samples would tell little: it is divided as the whole life.
#[test]
fn a_part_with_few_samples_is_divided_as_the_whole_life() {
    let halves = [("app".to_owned(), 10), ("libz.so.1".to_owned(), 10)];
    assert_eq!(ran(4, 10, 30), halves);
}

/// So would as few of the whole life: what calls took is known better.
#[test]
fn a_life_with_few_samples_is_divided_by_its_calls() {
    // (60 ms outside of calls, with those at the end, and 40 ms in them.)
    let parts = [("app".to_owned(), 48), ("libz.so.1".to_owned(), 32)];
    assert_eq!(ran_with_samples_in(1, 16, 0, 80), parts);
}

/// A client that makes a connection for each request had a part for each of them.
#[test]
fn connections_that_differ_in_a_port_are_one_part() {
    let mut builder = Builder::new();
    builder.executable("/usr/bin/app");
    let main = builder.thread("app");
    builder.timeline(main).work(100 * MS).end();
    builder.end(END_EXIT, 0);
    let mut seen = SyscallsBuilder::new(1000);
    let began_ns = seen.header.began_ns;
    let to = |port: u64| format!("socket 10.0.0.1:{port} to 10.0.0.2:80");
    let waits = [(to(40_001), 10), (to(40_002), 20), ("pipe 7".to_owned(), 5), (to(40_003), 30)];
    let mut at = began_ns;
    for (cause, (of, ms)) in (0..).zip(&waits) {
        let mut name = [0; OBJECT_NAME];
        name[..of.len()].copy_from_slice(of.as_bytes());
        seen.cause(CauseRow {
            tid: 1000,
            object: 1 + u64::from(cause),
            name,
            waker_kind: WAKER_INTERRUPT,
            waits: 1,
            total_ns: ms * MS,
            ..bytemuck::Zeroable::zeroed()
        });
        let (begin_ns, end_ns) = (at, at + ms * MS);
        seen.blocked(BlockedRow { cause, tid: 1000, begin_ns, woken_ns: 0, end_ns });
        at = end_ns;
    }
    let recording = Recording::parse(builder.build()).expect("a recording");
    let file = SyscallsFile::parse(seen.build()).expect("a file");
    let images = [Image::of("app.1000.chase".into(), recording).with_syscalls(Some(file))];
    let analysis = Analysis::new(&images, Selection::All);
    let groups = Groups::new(&analysis, &Unnamed);
    let path = critical_path(&images, &analysis, &groups, &Unnamed, None).expect("a path");
    let waits = path.parts.iter().filter_map(|part| match &part.doing {
        Doing::Waiting(wait) => Some((&wait.object, part.ns.0 / MS, part.steps)),
        _ => None,
    });
    let waits: Vec<_> = waits.collect();
    let [(WaitObject::Connections(of), 60, 3), (WaitObject::File { .. }, 5, 1)] = &*waits else {
        panic!("{waits:?}")
    };
    assert_eq!((&*of.address, of.accepted, of.number), ("10.0.0.2:80", false, 3));
    assert_eq!(of.longest[0].name, to(40_003));
    // Each step still says which.
    assert_eq!(path.steps.len(), 5);
}
