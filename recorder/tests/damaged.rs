//! Cut, damaged and foreign bytes: an error or what can be saved, never a panic.

use std::mem::offset_of;
use std::time::{Duration, Instant};

use chase_damage::Random;
use chase_recorder::builder::sample;
use chase_recorder::layout::{
    ChunkHeader, ChunkKind, Header, Node, PAGE, SAMPLED, SAMPLES_SLOT, Samples, THREAD_FREE,
    ThreadRecord, UNIT, VERSION,
};
use chase_recorder::reader::{Error, Problem, Recording};

/// Reads all there is, and checks what is promised of any bytes.
fn walk(bytes: &[u8]) -> Option<usize> {
    let recording = Recording::parse(bytes).ok()?;
    let mut read = recording.meta().count();
    for object in recording.objects() {
        read += object.path().len() + object.soname().len() + object.build_id().len();
        read += object.segments().count();
        read += object.slots().map(|slot| slot.name().len() + slot.version().len()).sum::<usize>();
    }
    for thread in recording.threads() {
        read += thread.name().len();
        if let Some(origin) = thread.origin() {
            assert_eq!(origin.record().thread, thread.record().index);
            read += origin.stack().len() + origin.words().len() + origin.inner_words().len();
            read += origin.python_function().map_or(0, |name| name.len());
            read += origin.python_thread_name().map_or(0, |name| name.len());
        }
        for (context, number) in thread.contexts().zip(0..) {
            assert_eq!(context.number, number);
            assert!(context.caller.is_none_or(|caller| caller < number));
            assert!(context.scope <= number);
            read += recording.slot(context.slot()).map_or(0, |slot| slot.name().len());
            read += context.histogram().buckets().count();
            read += context.samples().map_or(0, |samples| samples.begun as usize);
            assert!(context.samples().is_none() || context.is_sampled());
        }
    }
    let problems = recording.problems().iter().map(|problem| problem.to_string().len());
    Some(read + problems.sum::<usize>())
}

fn patched(bytes: &[u8], at: usize, with: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes
}

fn problems(bytes: &[u8]) -> Vec<Problem> {
    Recording::parse(bytes).expect("readable in part").problems().to_vec()
}

/// Places of the chunks of one kind.
fn chunks(bytes: &[u8], kind: ChunkKind) -> Vec<usize> {
    (PAGE..bytes.len())
        .step_by(PAGE)
        .filter(|&at| bytes[at..at + 8] == [*b"CHNK", (kind as u32).to_le_bytes()].concat())
        .collect()
}

#[test]
fn foreign_bytes_are_named() {
    let error = Recording::parse(b"\x7fELF\x02\x01\x01".as_slice()).unwrap_err();
    assert!(error.to_string().contains(r#"begins with "\x7fELF"#), "{error}");
    assert_eq!(Recording::parse([0; 4096].as_slice()).unwrap_err(), Error::NeverBegun);
    let empty = Recording::parse([].as_slice()).unwrap_err();
    // A full disk leaves such files, and recording again does not help then.
    for error in [&Error::NeverBegun, &empty] {
        assert!(error.to_string().contains("free space"), "{error}");
    }
    assert_eq!(empty, Error::NoBytes);
    let cut = &sample().build()[..200];
    assert_eq!(
        Recording::parse(cut).unwrap_err(),
        Error::TooShort { len: 200, expected: size_of::<Header>() }
    );
}

#[test]
fn later_versions_and_other_machines_are_refused() {
    let bytes = sample().build();
    let reader_min = VERSION + 1;
    let later = patched(&bytes, offset_of!(Header, reader_min), &reader_min.to_le_bytes());
    let error = Recording::parse(&later).unwrap_err();
    assert_eq!(error, Error::LaterVersion { version: VERSION, reader_min });
    assert!(error.to_string().contains("update chase"), "{error}");
    let other = patched(&bytes, offset_of!(Header, machine), &183_u32.to_le_bytes());
    assert_eq!(Recording::parse(&other).unwrap_err(), Error::OtherMachine { machine: 183 });
    // A later writer whose files this reader understands.
    let newer = patched(&bytes, offset_of!(Header, version), &9_u32.to_le_bytes());
    assert_eq!(problems(&newer), []);
}

#[test]
fn a_cut_file_gives_what_is_left() {
    let bytes = sample().build();
    let whole = Recording::parse(&bytes).unwrap().context_count();
    for len in size_of::<Header>()..bytes.len() {
        if !len.is_multiple_of(PAGE) && !len.is_multiple_of(37) {
            continue;
        }
        walk(&bytes[..len]).expect("the header is there");
        let problems = problems(&bytes[..len]);
        let committed = bytes.len() as u64;
        assert_eq!(problems[0], Problem::Truncated { len: len as u64, committed }, "{len}");
    }
    // Behind the trees are texts, events, marks and creations.
    let cut = Recording::parse(&bytes[..bytes.len() - 9 * PAGE]).unwrap();
    assert_eq!(cut.threads().len(), 6, "thread records come before the trees");
    assert!(cut.context_count() < whole && cut.context_count() > 0);
}

#[test]
fn reading_goes_on_after_a_bad_chunk() {
    let bytes = sample().build();
    let object = chunks(&bytes, ChunkKind::Object)[1];
    let damaged = patched(&bytes, object, b"JUNK");
    let expected = Problem::NotAChunk { offset: object as u64, len: PAGE as u64 };
    assert_eq!(problems(&damaged), [expected]);
    let recording = Recording::parse(&damaged).unwrap();
    assert_eq!(recording.objects().len(), 3);
    assert_eq!(recording.threads().len(), 6);

    let at = object + offset_of!(ChunkHeader, len);
    for len in [0, 1, 4095, 4097, u64::MAX] {
        let damaged = patched(&bytes, at, &len.to_le_bytes());
        let found = problems(&damaged);
        assert!(matches!(found[0], Problem::ChunkLength { found, .. } if found == len));
        assert_eq!(Recording::parse(&damaged).unwrap().objects().len(), 4);
    }
}

#[test]
fn chunks_of_later_kinds_are_passed_over() {
    let bytes = sample().build();
    let meta = chunks(&bytes, ChunkKind::Meta)[0];
    let newer = patched(&bytes, meta + offset_of!(ChunkHeader, kind), &99_u32.to_le_bytes());
    assert_eq!(problems(&newer), []);
    assert_eq!(Recording::parse(&newer).unwrap().meta().count(), 0);
}

#[test]
fn a_tree_without_its_thread_is_kept() {
    let bytes = sample().build();
    let threads = chunks(&bytes, ChunkKind::Threads)[0];
    let damaged = patched(&bytes, threads, b"JUNK");
    let recording = Recording::parse(&damaged).unwrap();
    assert!(recording.problems().contains(&Problem::ThreadMissing { thread: 0 }));
    let whole = Recording::parse(&bytes).unwrap().context_count();
    assert_eq!(recording.context_count(), whole);
}

#[test]
fn a_thread_that_had_not_begun_is_not_missing() {
    let mut recording = sample();
    let before = Recording::parse(recording.build()).unwrap().threads().len();
    // It has a root already, and its record does not say that it has begun.
    let thread = recording.thread("early");
    recording.thread_mut(thread).state = THREAD_FREE;
    let recording = Recording::parse(recording.build()).unwrap();
    assert_eq!(recording.problems(), []);
    assert_eq!(recording.threads().len(), before);
}

#[test]
fn a_thread_number_is_used_once() {
    let bytes = sample().build();
    let threads = chunks(&bytes, ChunkKind::Threads)[0];
    let second = threads + 2 * UNIT;
    let twice = patched(&bytes, second + offset_of!(ThreadRecord, index), &0_u32.to_le_bytes());
    let expected =
        Problem::ThreadRecord { offset: second as u64, what: "a number in use,", found: 0 };
    assert!(problems(&twice).contains(&expected), "{:?}", problems(&twice));
    let bad = patched(&bytes, second + offset_of!(ThreadRecord, state), &77_u32.to_le_bytes());
    let expected = Problem::ThreadRecord { offset: second as u64, what: "state", found: 77 };
    assert!(problems(&bad).contains(&expected));
}

#[test]
fn contexts_that_call_each_other_in_a_circle_are_cut() {
    let bytes = sample().build();
    let chunk = chunks(&bytes, ChunkKind::Nodes)[0];
    // The root comes first; make the first two contexts each other's callers.
    let (first, second) = (chunk + 2 * UNIT, chunk + 3 * UNIT);
    let parent = offset_of!(Node, parent_ref);
    let reference = |at: usize| ((at / UNIT) as u32).to_le_bytes();
    let circle = patched(&bytes, first + parent, &reference(second));
    let circle = patched(&circle, second + parent, &reference(first));
    assert_eq!(problems(&circle), [Problem::Orphans { thread: 0, count: 1 }]);
    let own = patched(&bytes, first + parent, &reference(first));
    assert_eq!(problems(&own), [Problem::Orphans { thread: 0, count: 1 }]);
    for damaged in [circle, own] {
        walk(&damaged);
        let whole = Recording::parse(&bytes).unwrap().context_count();
        assert_eq!(Recording::parse(&damaged).unwrap().context_count(), whole);
    }
}

#[test]
fn references_into_other_trees_are_refused() {
    let bytes = sample().build();
    let recording = Recording::parse(&bytes).unwrap();
    let foreign = recording.threads().nth(1).unwrap().record().root_ref;
    let chunk = chunks(&bytes, ChunkKind::Nodes)[0];
    let first = chunk + 2 * UNIT;
    for reference in [foreign, 0, 1, u32::MAX] {
        let at = first + offset_of!(Node, parent_ref);
        let damaged = patched(&bytes, at, &reference.to_le_bytes());
        assert_eq!(problems(&damaged), [Problem::Orphans { thread: 0, count: 1 }]);
    }
    let page = recording.threads().next().unwrap().contexts().next().unwrap();
    let used = page.node().page_refs.iter().position(|&page| page != 0).unwrap();
    for reference in [foreign, (first / UNIT) as u32, u32::MAX] {
        let at = first + offset_of!(Node, page_refs) + 4 * used;
        let damaged = patched(&bytes, at, &reference.to_le_bytes());
        assert_eq!(problems(&damaged), [Problem::Pages { thread: 0, count: 1 }]);
        let recording = Recording::parse(&damaged).unwrap();
        let context = recording.threads().next().unwrap().contexts().next().unwrap();
        assert!(context.histogram().count() < context.node().calls);
    }
}

#[test]
fn counts_beyond_the_chunk_are_limited() {
    let bytes = sample().build();
    for (kind, what) in [(ChunkKind::Nodes, "contexts"), (ChunkKind::Object, "slots")] {
        let chunk = chunks(&bytes, kind)[0];
        let at = match kind {
            ChunkKind::Nodes => chunk + offset_of!(ChunkHeader, count),
            _ => chunk + UNIT + offset_of!(chase_recorder::layout::ObjectRecord, slot_count),
        };
        let damaged = patched(&bytes, at, &u32::MAX.to_le_bytes());
        let found = problems(&damaged);
        assert!(
            found.iter().any(|p| matches!(p, Problem::Count { what: w, .. } if *w == what)),
            "{found:?}"
        );
        walk(&damaged);
    }
}

#[test]
fn random_damage_is_survived() {
    let seed = sample().build();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let stop = Instant::now() + Duration::from_secs(3);
    let mut readable = 0;
    while Instant::now() < stop {
        let mut bytes = seed.clone();
        for _ in 0..=random.below(20) {
            // Half of the damage goes to the starts of chunks and records, where numbers are.
            let at = random.below(bytes.len());
            let at = if random.below(2) == 0 { at / UNIT * UNIT + at % 64 } else { at };
            bytes[at] = match random.below(4) {
                0 => 0,
                1 => 0xff,
                2 => bytes[at] ^ (1 << random.below(8)),
                _ => random.below(256) as u8,
            };
        }
        bytes.truncate(bytes.len() - random.below(2) * random.below(bytes.len()));
        readable += u32::from(walk(&bytes).is_some());
    }
    assert!(readable > 100, "the damage must not hit the first bytes only: {readable}");
}

#[test]
fn a_sampled_context_without_samples_is_named() {
    let bytes = sample().build();
    let is_sampled = |at: &usize| {
        let slot = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
        slot & SAMPLED != 0 && slot < SAMPLED << 1
    };
    let in_chunk = |&at: &usize| (at + UNIT..at + PAGE).step_by(UNIT).collect::<Vec<_>>();
    let nodes = chunks(&bytes, ChunkKind::Nodes);
    let at = nodes.iter().flat_map(in_chunk).find(is_sampled).expect("the sample has one");
    let slot = at + UNIT + offset_of!(Samples, slot);
    assert_eq!(bytes[slot..slot + 4], SAMPLES_SLOT.to_le_bytes());
    let damaged = patched(&bytes, slot, &7_u32.to_le_bytes());
    let found = problems(&damaged);
    assert!(matches!(found[..], [.., Problem::Samples { count: 1, .. }]), "{found:?}");
    walk(&damaged).expect("the rest is there");
}
