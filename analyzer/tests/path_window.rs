//! What a thread ran in a part of the run, by samples of that part.

use chase_analyzer::recorder::builder::{Builder, SyscallsBuilder};
use chase_analyzer::recorder::layout::END_EXIT;
use chase_analyzer::recorder::reader::{Recording, SyscallsFile};
use chase_analyzer::recorder::syscalls::{BlockedRow, CauseRow, WAKER_TIME};
use chase_analyzer::{Analysis, Doing, Groups, Image, Ns, Selection, Unnamed, critical_path};

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
