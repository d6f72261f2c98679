//! Rings of events: what was overwritten, half written, damaged.

use bytemuck::{Zeroable, bytes_of, cast_slice};
use chase_recorder::builder::Builder;
use chase_recorder::layout::{
    CHUNK_MAGIC, COMMITTED, ChunkHeader, ChunkKind, EVENT_CALL, EventRecord, EventsHead, PAGE, UNIT,
};
use chase_recorder::reader::{Events, Recording};

fn event(number: u64) -> EventRecord {
    let event = EventRecord {
        start_ticks: 1_000 * number,
        ticks: 100,
        subject: 40,
        kind: EVENT_CALL,
        number,
        ..EventRecord::zeroed()
    };
    EventRecord { check: event.check_of(), ..event }
}

/// What is read of a thread with these chunks of events.
fn read(chunks: &[(u64, &[EventRecord])]) -> Events {
    let mut builder = Builder::new();
    builder.executable("/usr/bin/app");
    builder.thread("app");
    let mut bytes = builder.build();
    for (lost, events) in chunks {
        let start = bytes.len();
        let len = (UNIT + 32 * (events.len() + 1)).next_multiple_of(PAGE);
        let header = ChunkHeader {
            magic: CHUNK_MAGIC,
            kind: ChunkKind::Events as u32,
            len: len as u64,
            state: COMMITTED,
            ..ChunkHeader::zeroed()
        };
        bytes.extend_from_slice(bytes_of(&header));
        bytes.extend_from_slice(bytes_of(&EventsHead { lost: *lost, ..EventsHead::default() }));
        bytes.extend_from_slice(cast_slice(events));
        bytes.resize(start + len, 0);
    }
    // `committed`.
    let at = std::mem::offset_of!(chase_recorder::layout::Header, committed);
    let len = (bytes.len() as u64).to_le_bytes();
    bytes[at..at + 8].copy_from_slice(&len);
    let recording = Recording::parse(&bytes).unwrap();
    assert_eq!(recording.problems(), []);
    recording.threads().next().unwrap().events()
}

fn numbers(events: &Events) -> Vec<u64> {
    events.events.iter().map(|event| event.number).collect()
}

#[test]
fn a_ring_that_went_round_is_in_order() {
    let events =
        read(&[(0, &[event(7), event(8), event(3)]), (0, &[event(4), event(5), event(6)])]);
    assert_eq!(numbers(&events), [3, 4, 5, 6, 7, 8]);
    assert_eq!((events.overwritten, events.torn, events.lost), (2, 0, 0));
}

#[test]
fn an_event_that_was_being_written_is_not_shown() {
    let mut begun = event(3);
    begun.number = 0;
    begun.start_ticks += 1;
    let events = read(&[(5, &[event(4), begun, event(2)])]);
    assert_eq!(numbers(&events), [2, 4]);
    // Numbers 1 and 3 are missing; one of them is the torn one.
    assert_eq!((events.overwritten, events.torn, events.lost), (1, 1, 5));
}

#[test]
fn an_event_of_two_halves_is_not_shown() {
    let mut mixed = event(2);
    mixed.ticks = 700;
    let events = read(&[(0, &[event(1), mixed])]);
    assert_eq!(numbers(&events), [1]);
    assert_eq!((events.overwritten, events.torn), (0, 1));
}

#[test]
fn places_that_are_empty_are_no_events() {
    assert_eq!(read(&[(0, &[])]), Events::default());
    assert_eq!(read(&[]), Events::default());
}

/// Reads the words of a place one after the other, in this order, while an event is written there; so many of the stores have been
/// made before each of the reads.
fn read_meanwhile(
    old: &EventRecord,
    new: &EventRecord,
    order: [usize; 4],
    made: [usize; 4],
) -> EventRecord {
    let mut seen = [0_u64; 4];
    for (word, stores) in order.into_iter().zip(made) {
        let mut place: [u64; 4] = bytemuck::cast(*old);
        for (at, value) in &new.stores()[..stores] {
            place[*at] = *value;
        }
        seen[word] = place[word];
    }
    bytemuck::cast(seen)
}

#[test]
fn an_event_is_read_whole_or_not_at_all_while_another_one_takes_its_place() {
    let [old, new] = [event(3), event(11)];
    let mut last: [u64; 4] = bytemuck::cast(old);
    for (at, value) in new.stores() {
        last[at] = value;
    }
    assert_eq!(bytemuck::cast::<_, EventRecord>(last), new, "all of it is stored");
    let all = new.stores().len() + 1;
    let [mut olds, mut news, mut tried] = [0; 3];
    for orders in 0..4_usize.pow(4) {
        let order: [usize; 4] = std::array::from_fn(|at| orders / 4_usize.pow(at as u32) % 4);
        if (0..4).any(|word| !order.contains(&word)) {
            continue;
        }
        for moments in 0..all.pow(4) {
            let made: [usize; 4] = std::array::from_fn(|at| moments / all.pow(at as u32) % all);
            if !made.is_sorted() {
                continue;
            }
            let events = read(&[(0, &[read_meanwhile(&old, &new, order, made)])]);
            let found = events.events.first();
            assert!(
                found.is_none_or(|it| *it == old || *it == new),
                "{order:?} {made:?}: {found:?}"
            );
            assert!(found.is_some() || events.torn == 1, "{order:?} {made:?}");
            tried += 1;
            olds += u32::from(found == Some(&old));
            news += u32::from(found == Some(&new));
        }
    }
    assert!(olds >= 24 && news >= 24 && olds + news < tried, "{olds} and {news} of {tried}");
}
