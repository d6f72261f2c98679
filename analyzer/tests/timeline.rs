//! The timeline of processes whose every moment is known.

use chase_analyzer::{Analysis, Groups, Image, Ns, Selection, Timeline, Unnamed, timeline};
use chase_recorder::builder::{Builder, SyscallsBuilder};
use chase_recorder::layout::END_EXIT;
use chase_recorder::reader::{Recording, SyscallsFile};
use chase_recorder::syscalls::{BlockedRow, NO_CAUSE, TimedSampleRow};

fn timeline_of(builder: &Builder) -> (Timeline, Analysis) {
    of_seen(builder, None)
}

fn of_seen(builder: &Builder, seen: Option<&SyscallsBuilder>) -> (Timeline, Analysis) {
    let recording = Recording::parse(builder.build()).expect("a recording");
    let seen = seen.map(|seen| SyscallsFile::parse(seen.build()).expect("a file"));
    let images = [Image::of("app.1000.chase".into(), recording).with_syscalls(seen)];
    let analysis = Analysis::new(&images, Selection::All);
    let groups = Groups::new(&analysis, &Unnamed);
    (timeline(&images, &analysis, &groups), analysis)
}

/// Start, length and depth of the calls of a lane, by name.
fn calls(timeline: &Timeline, analysis: &Analysis, lane: usize) -> Vec<(String, u64, u64, u16)> {
    let name = |api: u32| analysis.apis[api as usize].symbol.clone();
    let calls = timeline.lanes[lane].calls.iter();
    calls.map(|call| (name(call.api), call.start_ns.0, call.ns.0, call.depth)).collect()
}

#[test]
fn calls_are_where_and_in_what_they_were() {
    let mut builder = Builder::new();
    builder.event_limit = Some(100);
    builder.meta("events", "100 ns, last 8388608 bytes");
    let app = builder.executable("/usr/bin/app");
    let libz = builder.object("/usr/lib/libz.so.1");
    let outer = builder.slot(app, Some(libz), "compress");
    let inner = builder.slot(libz, Some(app), "alloc");
    let main = builder.thread("app");
    let mut thread = builder.timeline(main);
    thread.work(50).enter(outer).work(10).call(inner, 200).call(inner, 99).call(inner, 100).leave();
    thread.mark("half").work(5).call(outer, 150).mark("end").mark("half").end();
    builder.end(END_EXIT, 0);
    let (timeline, analysis) = timeline_of(&builder);
    let expected = [
        ("compress", 50, 409, 0),
        ("alloc", 60, 200, 1),
        ("alloc", 359, 100, 1),
        ("compress", 464, 150, 0),
    ];
    let expected: Vec<_> =
        expected.map(|(name, start, ns, depth)| (name.to_owned(), start, ns, depth)).into();
    assert_eq!(calls(&timeline, &analysis, 0), expected);
    let marks: Vec<_> = timeline.lanes[0]
        .marks
        .iter()
        .map(|mark| (mark.at_ns.0, &*timeline.marks[mark.name as usize]))
        .collect();
    assert_eq!(marks, [(459, "half"), (614, "end"), (614, "half")]);
    assert_eq!((timeline.end_ns, timeline.limit_ns), (Ns(614), Some(Ns(100))));
    assert!(timeline.lanes[0].calls.iter().all(|call| !call.is_open));
}

#[test]
fn a_call_that_did_not_return_lasts_to_the_end() {
    let mut builder = Builder::new();
    builder.event_limit = Some(1_000);
    let app = builder.executable("/usr/bin/app");
    let libc = builder.object("/usr/lib/libc.so.6");
    let wait = builder.slot(app, Some(libc), "pthread_cond_wait");
    let main = builder.thread("app");
    builder.timeline(main).work(5_000).end();
    let worker = builder.thread("worker");
    builder.timeline(worker).work(100).call(wait, 10).work(100).enter(wait).work(4_000);
    builder.end(END_EXIT, 0);
    let (timeline, analysis) = timeline_of(&builder);
    assert_eq!(calls(&timeline, &analysis, 1), [("pthread_cond_wait".to_owned(), 210, 4_790, 0)]);
    assert!(timeline.lanes[1].calls[0].is_open);
}

#[test]
fn threads_without_events_have_lanes() {
    let mut builder = Builder::new();
    let app = builder.executable("/usr/bin/app");
    let libz = builder.object("/usr/lib/libz.so.1");
    let crc32 = builder.slot(app, Some(libz), "crc32");
    let main = builder.thread("app");
    builder.timeline(main).call(crc32, 1_000_000).end();
    builder.end(END_EXIT, 0);
    let (timeline, _) = timeline_of(&builder);
    assert_eq!(timeline.lanes.len(), 1);
    assert!(timeline.lanes[0].calls.is_empty() && timeline.limit_ns.is_none());
    assert_eq!(timeline.lanes[0].end_ns, Ns(1_000_000));
}

#[test]
fn a_thread_has_no_processor_within_its_life_only() {
    const MS: u64 = 1_000_000;
    let mut builder = Builder::new();
    builder.executable("/usr/bin/app");
    let main = builder.thread("app");
    builder.timeline(main).work(100 * MS).end();
    let worker = builder.thread("worker");
    builder.thread_mut(worker).start_ticks += 5 * MS;
    builder.timeline(worker).work(45 * MS).end();
    builder.end(END_EXIT, 0);
    let mut seen = SyscallsBuilder::new(1000);
    let began_ns = seen.header.began_ns;
    // Within its life of 5 to 50 ms, across its beginning, across its end, and after that.
    for (from, to) in [(20, 30), (2, 8), (45, 80), (60, 70)] {
        let (begin_ns, end_ns) = (began_ns + from * MS, began_ns + to * MS);
        let row = BlockedRow { cause: NO_CAUSE, tid: 1001, begin_ns, woken_ns: begin_ns, end_ns };
        seen.blocked(row);
    }
    seen.header.lost_preempted = 3;
    let (timeline, _) = of_seen(&builder, Some(&seen));
    assert_eq!(timeline.lost_preempted, 3);
    let spans = |lane: usize| -> Vec<(u64, u64)> {
        let spans = timeline.lanes[lane].preempted.iter();
        spans.map(|span| (span.start_ns.0 / MS, span.ns.0 / MS)).collect()
    };
    assert_eq!((spans(0), spans(1)), (vec![], vec![(5, 3), (20, 10), (45, 5)]));
    assert!(timeline.lanes.iter().all(|lane| lane.blocked.is_empty()));
}

/// Samples in three places: in the executable, in a library within a call, and in memory that belongs to no file.
#[test]
fn samples_are_in_the_lanes_of_their_threads() {
    const MS: u64 = 1_000_000;
    let mut builder = Builder::new();
    let app = builder.executable("/usr/bin/app");
    let libz = builder.object("/usr/lib/libz.so.1");
    let crc32 = builder.slot(app, Some(libz), "crc32");
    let main = builder.thread("app");
    let mut thread = builder.timeline(main);
    thread.work(MS).call(crc32, 50 * MS).work(49 * MS).end();
    builder.end(END_EXIT, 0);
    let (in_app, in_libz) = (builder.code_address(app, 16), builder.code_address(libz, 32));
    let in_call = builder.context_refs()[0][1];
    let mut seen = SyscallsBuilder::new(1000);
    seen.header.sample_hz = 997;
    seen.on_cpu(1000, 100 * MS);
    seen.samples(0, 1000, in_app, 2, 0).timed_sample(70 * MS).timed_sample(500 * MS);
    seen.samples(in_call, 1000, in_libz, 3, 0).timed_sample(20 * MS).timed_sample(10 * MS);
    seen.samples(0, 1000, 0x10, 1, 0).timed_sample(90 * MS);
    seen.mapping(0, 0x1000, "");
    // One that was thinned out, in the kernel, and one of a row that there is not.
    let at_ns = seen.header.began_ns + 30 * MS;
    seen.timed_samples.push(TimedSampleRow { at_ns, row: 1, stands_for: 4, in_kernel: 1 });
    seen.timed_samples.push(TimedSampleRow { at_ns, row: 9, stands_for: 1, in_kernel: 0 });
    let (timeline, analysis) = of_seen(&builder, Some(&seen));
    let found: Vec<_> = timeline.lanes[0]
        .samples
        .iter()
        .map(|found| {
            let sample = found.sample;
            let api = sample.api.map(|api| &*analysis.apis[api as usize].symbol);
            assert_eq!(found.context.is_some(), api.is_some());
            let object = &*analysis.objects[sample.object as usize].name;
            (sample.at_ns.0 / MS, object, api, sample.stands_for, sample.is_in_kernel)
        })
        .collect();
    // That of half a second was taken after the thread's end.
    let expected = [
        (10, "libz.so.1", Some("crc32"), 1, false),
        (20, "libz.so.1", Some("crc32"), 1, false),
        (30, "libz.so.1", Some("crc32"), 4, true),
        (70, "app", None, 1, false),
        (90, "[generated code]", None, 1, false),
    ];
    assert_eq!(found, expected);
}
