//! What a sound recording gives back.

use chase_recorder::builder::{Builder, sample};
use chase_recorder::layout::{ARGUMENT_ITEMS, ArgumentPair, NONE, SlotClass, argument_bucket};
use chase_recorder::reader::Recording;

#[test]
fn all_that_was_described_is_read() {
    let bytes = sample().build();
    let recording = Recording::parse(&bytes).unwrap();
    assert_eq!(recording.problems(), []);
    assert_eq!(recording.meta_value("command").unwrap(), "app\x1f--level\x1f9");
    assert_eq!(recording.meta_value("executable").unwrap(), "/usr/bin/app");

    let libz = recording.object(2).unwrap();
    assert_eq!((libz.path(), libz.soname()), ("/usr/lib/libz.so.1".into(), "libz.so.1".into()));
    assert_eq!(libz.build_id(), [0xde, 0xad, 0xbe, 0xef]);
    assert_eq!(libz.segments().next().unwrap().flags, 5);
    let slot = libz.slots().next().unwrap();
    assert_eq!((slot.name(), slot.version()), ("malloc".into(), "GLIBC_2.2.5".into()));
    assert_eq!((slot.importer, slot.record().provider), (2, 1));
    assert_eq!(recording.slot(slot.number).unwrap().name(), "malloc");
    assert_eq!(recording.slot(2).unwrap().class(), SlotClass::Counted);
    assert!(recording.slot(1_000).is_none());
    assert!(recording.object(4).is_none());

    let threads: Vec<_> = recording.threads().collect();
    assert_eq!(threads.len(), 6);
    assert_eq!((threads[0].name(), threads[1].name()), ("app".into(), "worker".into()));
    assert_eq!((threads[0].record().creator, threads[1].record().creator), (NONE, 0));
    let malloc = threads[0].contexts().next().unwrap();
    assert_eq!((malloc.caller, malloc.node().calls), (None, 1_000));
    assert_eq!(malloc.histogram().count(), 1_000);
    assert_eq!(malloc.histogram().max(), 60, "the call and the hook's share of it");
}

/// In short rows and in long ones, which stand beside the short one that they have taken the place of.
#[test]
fn arguments_are_read_from_rows_of_either_length() {
    let mut builder = Builder::new();
    let app = builder.executable("app");
    let (few, many) = (builder.slot(app, None, "few"), builder.slot(app, None, "many"));
    let main = builder.thread("main");
    builder.timeline(main).call(few, 10).call(many, 20);
    let calls = |count| -> Vec<ArgumentPair> {
        (1..=count).map(|value| ArgumentPair { value, ticks: 3 * value }).collect()
    };
    builder.arguments(main, 1, ARGUMENT_ITEMS, &calls(3)).arguments(main, 2, 0, &calls(100));
    let bytes = builder.build();
    let recording = Recording::parse(&bytes).unwrap();
    let thread = recording.threads().next().unwrap();
    let rows: Vec<_> = thread.arguments().collect();
    let refs: Vec<u32> = thread.contexts().map(|context| context.reference).collect();
    assert_eq!(rows.iter().map(|row| row.node_ref).collect::<Vec<_>>(), refs);
    assert_eq!((rows[0].calls, rows[0].sum, rows[0].max, rows[0].meaning), (3, 6, 3, 1));
    assert_eq!((rows[0].buckets[1], rows[0].buckets[2], rows[0].pairs.len()), (1, 2, 3));
    assert_eq!((rows[1].calls, rows[1].weight, rows[1].sum), (100, 100, 5050));
    assert_eq!((rows[1].buckets[argument_bucket(64)], rows[1].pairs.len()), (37, 16));
    assert!(rows[1].pairs.iter().all(|pair| pair.ticks == 3 * pair.value));
}

#[test]
fn bytes_need_no_alignment() {
    let bytes = sample().build();
    for shift in 1..8 {
        let mut shifted = vec![0; shift];
        shifted.extend_from_slice(&bytes);
        let recording = Recording::parse(&shifted[shift..]).unwrap();
        assert_eq!(recording.problems(), []);
        assert_eq!(recording.context_count(), Recording::parse(&bytes).unwrap().context_count());
    }
}

#[test]
fn folded_recursion_leads_to_the_ancestor() {
    let mut builder = Builder::new();
    builder.depth_limit = 2;
    let app = builder.executable("app");
    let (a, b) = (builder.slot(app, None, "a"), builder.slot(app, None, "b"));
    let main = builder.thread("main");
    let mut thread = builder.timeline(main);
    // a, b, then a again: folded into the first; its callee b is the b below that.
    thread.enter(a).enter(b).enter(a).enter(b).leave().leave().leave().leave();
    let bytes = builder.build();
    let recording = Recording::parse(&bytes).unwrap();
    let contexts: Vec<_> = recording.threads().next().unwrap().contexts().collect();
    let shape: Vec<_> =
        contexts.iter().map(|c| (c.slot(), c.caller, c.scope, c.node().calls)).collect();
    assert_eq!(shape, [(0, None, 0, 1), (1, Some(0), 1, 2), (0, Some(1), 0, 1)]);
}

#[test]
fn calls_inherited_by_fork_fold_with_calls_of_their_slot() {
    let mut builder = Builder::new();
    builder.depth_limit = 0;
    let app = builder.executable("app");
    let slot = builder.slot(app, None, "a");
    let main = builder.thread("main");
    builder.timeline(main).inherit(slot).enter(slot).leave();
    let bytes = builder.build();
    let recording = Recording::parse(&bytes).unwrap();
    let contexts: Vec<_> = recording.threads().next().unwrap().contexts().collect();
    let shape: Vec<_> =
        contexts.iter().map(|c| (c.slot(), c.is_inherited(), c.scope, c.node().calls)).collect();
    assert_eq!(shape, [(0, true, 0, 0), (0, false, 0, 1)]);
}

#[test]
fn trees_may_span_many_chunks() {
    let mut builder = Builder::new();
    builder.node_chunk_len = 4096;
    let app = builder.executable("app");
    let slots: Vec<_> =
        (0..1_000).map(|number| builder.slot(app, None, &format!("f{number}"))).collect();
    let main = builder.thread("main");
    let mut thread = builder.timeline(main);
    for &slot in &slots {
        thread.call(slot, 100);
    }
    let bytes = builder.build();
    let recording = Recording::parse(&bytes).unwrap();
    assert_eq!(recording.problems(), []);
    assert_eq!(recording.context_count(), 1_000);
    for (context, number) in recording.threads().next().unwrap().contexts().zip(0..) {
        assert_eq!(recording.slot(context.slot()).unwrap().name(), format!("f{number}"));
        assert_eq!(context.histogram().count(), 1);
    }
}

#[test]
fn an_object_loaded_again_keeps_its_slots() {
    let mut builder = Builder::new();
    let app = builder.executable("app");
    let slot = builder.slot(app, None, "first");
    let main = builder.thread("main");
    builder.timeline(main).call(slot, 10);
    let mut again = builder.clone();
    again.object_mut(app).bias += 0x1000;
    // The second load's chunk, put behind the first recording.
    let (mut bytes, second) = (builder.build(), again.build());
    let chunk = 2 * 4096..3 * 4096;
    bytes.extend_from_slice(&second[chunk]);
    let committed = bytes.len() as u64;
    let at = std::mem::offset_of!(chase_recorder::layout::Header, committed);
    bytes[at..at + 8].copy_from_slice(&committed.to_le_bytes());

    let recording = Recording::parse(&bytes).unwrap();
    assert_eq!(recording.problems(), []);
    assert_eq!(recording.objects().len(), 2);
    assert_eq!(recording.object(0).unwrap().record().bias, again.object_mut(app).bias);
    assert_eq!(recording.slot(0).unwrap().name(), "first");
}
