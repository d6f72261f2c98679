use super::*;
use crate::trace::{TraceFunction, TraceProcess, TraceSample};

fn call(function: u32, start_ns: u64, end_ns: u64, depth: u16) -> TraceCall {
    TraceCall { function, start_ns, end_ns, depth, is_open: false }
}

fn trace() -> Trace {
    let function =
        |name: &str, library: &str| TraceFunction { name: name.into(), library: library.into() };
    let main = TraceThread {
        tid: 10,
        is_main: true,
        name: "app".into(),
        start_ns: 100,
        end_ns: 900,
        // The second ends with the first, and one inside begins where the one before ends.
        calls: vec![
            call(0, 200, 600, 0),
            call(1, 300, 400, 1),
            call(1, 400, 603, 1),
            call(2, 700, 700, 0),
        ],
        marks: vec![(650, "half".into())],
        syscalls: vec![
            TraceSyscall {
                call: "read(3, \"x\", 1)".into(),
                result: "1".into(),
                start_ns: 210,
                end_ns: Some(260),
            },
            TraceSyscall {
                call: "exit_group(0)".into(),
                result: "?".into(),
                start_ns: 890,
                end_ns: None,
            },
        ],
        ..TraceThread::default()
    };
    let wait = TraceWait {
        what: "a lock".into(),
        start_ns: 250,
        woken_ns: 500,
        end_ns: 550,
        waker: Some((0, 0)),
    };
    let worker = TraceThread {
        tid: 11,
        name: "worker".into(),
        start_ns: 150,
        end_ns: 800,
        calls: vec![TraceCall { is_open: true, ..call(2, 240, 800, 0) }],
        waits: vec![wait],
        samples: vec![
            TraceSample { at_ns: 160, stack: 0, stands_for: 1, is_in_kernel: false },
            TraceSample { at_ns: 220, stack: 1, stands_for: 2, is_in_kernel: true },
        ],
        ..TraceThread::default()
    };
    Trace {
        title: "app".into(),
        realtime_ns: 1_000,
        sample_hz: 997,
        stacks: vec![vec![0, 1], vec![2]],
        functions: vec![
            function("read", "libc"),
            function("crc32", "libz"),
            function("wait", "libc"),
        ],
        processes: vec![TraceProcess {
            pid: 10,
            name: "app".into(),
            command: vec!["./app".into()],
            start_ns: 100,
            end_ns: 900,
            threads: vec![main, worker],
        }],
    }
}

fn packets() -> Vec<Packet> {
    TraceMessage::decode(&*perfetto(&trace())).expect("a trace").packet
}

fn events() -> Vec<(u64, TrackEvent)> {
    packets()
        .into_iter()
        .filter_map(|packet| Some((packet.timestamp?, packet.track_event?)))
        .collect()
}

/// Each end closes what began last on its track, nothing stays open, and times go up.
#[test]
fn slices_nest() {
    let mut open: std::collections::HashMap<u64, Vec<u64>> = std::collections::HashMap::new();
    let mut before = 0;
    let mut total = 0;
    for (at, event) in events() {
        assert!(at >= before, "{at} after {before}");
        before = at;
        let stack = open.entry(event.track_uuid.unwrap()).or_default();
        match event.r#type {
            Some(SLICE_BEGIN) => stack.push(at),
            Some(SLICE_END) => total += at - stack.pop().expect("something is open"),
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty));
    // 400, 100, 200 cut to what it is in, 0, 560, the wait's 300, and the system calls' 50 and 10 up to the thread's end.
    assert_eq!(total, 400 + 100 + 200 + 560 + 300 + 50 + 10);
}

#[test]
fn names_and_categories_are_known_before_they_are_used() {
    let packets = packets();
    let data = packets.iter().find_map(|packet| packet.interned_data.as_ref()).unwrap();
    let name = |all: &[Interned], iid: u64| {
        let of = all.iter().find(|one| one.iid == Some(iid)).expect("a name");
        of.name.clone().unwrap()
    };
    let called: Vec<(String, String)> = events()
        .iter()
        .filter_map(|(_, event)| {
            let function = name(&data.event_names, event.name_iid?);
            Some((function, name(&data.event_categories, event.category_iids[0])))
        })
        .collect();
    let expected = [
        ("read", "libc"),
        ("wait", "libc"),
        ("crc32", "libz"),
        ("crc32", "libz"),
        ("wait", "libc"),
    ];
    assert_eq!(called, expected.map(|(function, library)| (function.into(), library.into())));
}

#[test]
fn a_flow_leads_from_the_waker_to_the_wait() {
    let events = events();
    let from: Vec<_> = events.iter().filter(|(_, event)| !event.flow_ids.is_empty()).collect();
    let to: Vec<_> =
        events.iter().filter(|(_, event)| !event.terminating_flow_ids.is_empty()).collect();
    assert_eq!((from.len(), to.len()), (1, 1));
    assert_eq!(from[0].1.flow_ids, to[0].1.terminating_flow_ids);
    assert_eq!((from[0].0, from[0].1.track_uuid), (500, Some(thread_track(0, 0))));
    assert_eq!((to[0].0, to[0].1.track_uuid), (550, Some(thread_track(0, 1) + 1)));
}

#[test]
fn system_calls_have_their_arguments() {
    let track = thread_track(0, 0) + SYSCALLS;
    let of_track = events().into_iter().filter(|(_, event)| event.track_uuid == Some(track));
    let begun: Vec<_> = of_track.filter(|(_, event)| event.name.is_some()).collect();
    let texts = |event: &TrackEvent| {
        let all = event.debug_annotations.iter();
        all.filter_map(|annotation| annotation.string_value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(begun[0].1.name.as_deref(), Some("read"));
    assert_eq!(texts(&begun[0].1), ["read(3, \"x\", 1)", "1"]);
    assert_eq!((begun.len(), begun[1].0), (2, 890));
}

#[test]
fn tracks_say_whose_they_are() {
    let descriptors: Vec<TrackDescriptor> =
        packets().into_iter().filter_map(|packet| packet.track_descriptor).collect();
    let thread = |tid: i32| {
        let is_it = |d: &&TrackDescriptor| d.thread.as_ref().is_some_and(|t| t.tid == Some(tid));
        descriptors.iter().find(is_it).expect("the thread")
    };
    let process = descriptors.iter().find(|d| d.process.is_some()).expect("the process");
    assert_eq!(thread(11).parent_uuid, process.uuid);
    assert_eq!(thread(11).thread.as_ref().unwrap().thread_name.as_deref(), Some("worker"));
}

#[test]
fn threads_that_wait_are_not_counted() {
    let values: Vec<(u64, i64)> = events()
        .iter()
        .filter(|(_, event)| event.track_uuid == Some(2))
        .filter_map(|(at, event)| Some((*at, event.counter_value?)))
        .collect();
    assert_eq!(values, [(100, 1), (150, 2), (250, 1), (550, 2), (800, 1), (900, 0)]);
}

#[test]
fn samples_have_the_functions_that_were_open() {
    let packets = packets();
    let data = packets.iter().find_map(|packet| {
        packet.interned_data.as_ref().filter(|data| !data.callstacks.is_empty())
    });
    let data = data.expect("stacks");
    let text = |all: &[Interned], iid: u64| {
        all.iter().find(|one| one.iid == Some(iid)).expect("a text").name.clone().unwrap()
    };
    let frame = |iid: &u64| {
        let frame = data.frames.iter().find(|frame| frame.iid == Some(*iid)).expect("a frame");
        let mapping =
            data.mappings.iter().find(|one| one.iid == frame.mapping_id).expect("a mapping");
        let function = text(&data.function_names, frame.function_name_id.unwrap());
        format!("{function} {}", text(&data.mapping_paths, mapping.path_string_ids[0]))
    };
    let stack = |iid: u64| {
        let stack = data.callstacks.iter().find(|stack| stack.iid == Some(iid)).expect("a stack");
        stack.frame_ids.iter().map(frame).collect::<Vec<_>>().join(", ")
    };
    let found: Vec<_> = packets
        .iter()
        .filter_map(|packet| {
            let sample = packet.perf_sample?;
            let of = (packet.timestamp?, sample.pid?, sample.tid?);
            Some((of, stack(sample.callstack_iid?), sample.cpu_mode?, sample.timebase_count?))
        })
        .collect();
    let expected = [
        ((160, 10, 11), "read libc, crc32 libz".to_owned(), 2, 1),
        ((220, 10, 11), "wait libc".to_owned(), 1, 3),
    ];
    assert_eq!(found, expected);
}
