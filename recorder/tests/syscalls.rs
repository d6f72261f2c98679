//! `.syscalls` files: what was described is read, and any bytes give an error or what can be saved.

use std::mem::offset_of;
use std::path::Path;
use std::time::{Duration, Instant};

use chase_damage::Random;
use chase_recorder::builder::{SyscallsBuilder, errnos, sample, syscalls_sample};
use chase_recorder::layout::{ChunkHeader, PAGE, UNIT};
use chase_recorder::reader::{Error, Problem, Recording, SyscallsFile};
use chase_recorder::syscalls::{
    BUCKETS, BlockedRow, FILE_NAME, FileRow, LONG_TURN_NS, LONG_WAIT_NS, SampleRow, SyscallsHeader,
    TurnsRow, WAIT_PREEMPTED, bucket_end_ns,
};

fn patched(bytes: &[u8], at: usize, with: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes
}

/// Reads all there is.
fn walk(bytes: &[u8]) -> Option<usize> {
    let file = SyscallsFile::parse(bytes).ok()?;
    let rows = file.syscalls().count() + file.waits().count();
    assert!(rows * 384 <= bytes.len());
    assert!(file.problems().iter().all(|problem| !problem.to_string().is_empty()));
    Some(rows + file.name().len())
}

#[test]
fn what_is_described_is_read() {
    let mut builder = SyscallsBuilder::new(77);
    builder.name("a name longer than fifteen bytes");
    builder.header.cost_inside_ns = 10;
    let row = builder.syscall(33, 78, 0, 5, 1_000);
    row.returned = 4096;
    row.errors = 2;
    row.errnos = errnos(&[(4, 2)]);
    for tid in 0..20 {
        builder.wait(0, tid, WAIT_PREEMPTED, 3, 1 << 45);
    }
    let bytes = builder.build();
    let file = SyscallsFile::parse(&bytes).unwrap();
    assert_eq!(file.problems(), []);
    assert_eq!(file.name(), "a name longer t");
    assert_eq!(file.header().pid, 77);
    let rows: Vec<_> = file.syscalls().collect();
    assert_eq!(rows, builder.syscalls);
    assert_eq!((rows[0].total_ns, rows[0].errnos[0]), (5_050, 4 << 48 | 2));
    let bucket = rows[0].histogram.iter().position(|&count| count == 5).unwrap();
    assert_eq!(bucket_end_ns(bucket), Some(1 << 10));
    let waits: Vec<_> = file.waits().collect();
    assert_eq!(waits, builder.waits);
    assert_eq!(waits[0].histogram[BUCKETS - 1], 3);
}

#[test]
fn long_waits_files_and_turns_are_read() {
    let mut builder = SyscallsBuilder::new(77);
    for number in 0..300 {
        let begin_ns = number * 5_000_000;
        let row =
            BlockedRow { cause: number as u32 % 7, tid: 78, begin_ns, ..BlockedRow::default() };
        builder.blocked(BlockedRow {
            woken_ns: begin_ns + 1,
            end_ns: begin_ns + LONG_WAIT_NS,
            ..row
        });
        let mut name = [0; FILE_NAME];
        name[..3].copy_from_slice(b"log");
        let (context_ref, mode, inode) = (3, 0o100_600, number);
        builder.file(FileRow { context_ref, tid: 78, number: 1, mode, inode, samples: 9, name });
    }
    for number in 0..300 {
        let (tid, descriptor, turns) = (78, number as u32, number);
        builder.turns.push(TurnsRow { tid, descriptor, turns, ..TurnsRow::default() });
        builder.long_turn(78, descriptor, number * LONG_TURN_NS, LONG_TURN_NS, 2);
        let (context_ref, address) = (3, number);
        builder.late_samples.push(SampleRow { context_ref, tid, address, user: 1, kernel: 2 });
        builder.timed_sample(number);
    }
    let bytes = builder.build();
    let file = SyscallsFile::parse(&bytes).unwrap();
    assert_eq!(file.problems(), []);
    assert_eq!(file.turns().collect::<Vec<_>>(), builder.turns);
    assert_eq!(file.long_turns().collect::<Vec<_>>(), builder.long_turns);
    assert_eq!(file.late_samples().collect::<Vec<_>>(), builder.late_samples);
    assert_eq!(file.timed_samples().collect::<Vec<_>>(), builder.timed_samples);
    assert_eq!(file.blocked().collect::<Vec<_>>(), builder.blocked);
    assert_eq!(file.files().collect::<Vec<_>>(), builder.files);
}

/// The references that the builder gives are those of the nodes.
#[test]
fn contexts_are_found_by_reference() {
    let builder = sample();
    let refs = builder.context_refs();
    let bytes = builder.build();
    let recording = Recording::parse(&bytes).unwrap();
    for (thread, refs) in recording.threads().zip(refs) {
        assert_eq!(thread.record().root_ref, refs[0]);
        let found: Vec<u32> = thread.contexts().map(|context| context.reference).collect();
        assert_eq!(found, refs[1..]);
    }
}

#[test]
fn foreign_bytes_and_later_versions_are_named() {
    let bytes = syscalls_sample().build();
    let recording = SyscallsFile::parse(sample().build()).unwrap_err();
    assert!(recording.to_string().contains("begins with \"CHASEREC\""), "{recording}");
    assert_eq!(SyscallsFile::parse([0; 4096].as_slice()).unwrap_err(), Error::NeverBegun);
    let cut = SyscallsFile::parse(&bytes[..100]).unwrap_err();
    assert_eq!(cut, Error::TooShort { len: 100, expected: size_of::<SyscallsHeader>() });
    let at = offset_of!(SyscallsHeader, reader_min);
    let later = SyscallsFile::parse(patched(&bytes, at, &4_u32.to_le_bytes())).unwrap_err();
    assert_eq!(later, Error::LaterSyscalls { version: 3, reader_min: 4 });
    assert!(later.to_string().contains("update chase"), "{later}");
    let at = offset_of!(SyscallsHeader, version);
    let newer = SyscallsFile::parse(patched(&bytes, at, &9_u32.to_le_bytes())).unwrap();
    assert_eq!(newer.problems(), []);
    // Neither reader takes the other's file.
    assert!(Recording::parse(&bytes).is_err());
}

#[test]
fn a_cut_file_gives_what_is_left() {
    let bytes = syscalls_sample().build();
    let whole = walk(&bytes).unwrap();
    for len in (size_of::<SyscallsHeader>()..bytes.len()).step_by(97) {
        assert!(walk(&bytes[..len]).expect("the header is there") <= whole);
        let problems = SyscallsFile::parse(&bytes[..len]).unwrap().problems().to_vec();
        let committed = bytes.len() as u64;
        assert_eq!(problems[0], Problem::Truncated { len: len as u64, committed }, "{len}");
    }
}

#[test]
fn counts_beyond_the_chunk_are_limited() {
    let bytes = syscalls_sample().build();
    let at = PAGE + offset_of!(ChunkHeader, count);
    let damaged = patched(&bytes, at, &u32::MAX.to_le_bytes());
    let file = SyscallsFile::parse(&damaged).unwrap();
    let room = ((PAGE - UNIT) / 384) as u64;
    let expected = Problem::Count {
        offset: PAGE as u64,
        what: "rows of syscalls",
        found: u32::MAX.into(),
        room,
    };
    assert_eq!(file.problems(), [expected]);
    assert_eq!(walk(&damaged), walk(&bytes));
}

#[test]
fn chunks_of_later_kinds_are_passed_over() {
    let bytes = syscalls_sample().build();
    let newer = patched(&bytes, PAGE + offset_of!(ChunkHeader, kind), &99_u32.to_le_bytes());
    let file = SyscallsFile::parse(&newer).unwrap();
    assert_eq!(file.problems(), []);
    assert!(walk(&newer) < walk(&bytes));
}

#[test]
fn random_damage_is_survived() {
    let seed = syscalls_sample().build();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let stop = Instant::now() + Duration::from_secs(1);
    let mut readable = 0;
    while Instant::now() < stop {
        let mut bytes = seed.clone();
        for _ in 0..=random.below(20) {
            let at = random.below(bytes.len());
            let at = if random.below(2) == 0 { at / UNIT * UNIT + at % 64 } else { at };
            bytes[at] = random.below(256) as u8;
        }
        bytes.truncate(bytes.len() - random.below(2) * random.below(bytes.len()));
        readable += u32::from(walk(&bytes).is_some());
    }
    assert!(readable > 100, "{readable}");
}

/// `fixtures/v1.syscalls` was written by version 1; see `versions.rs`.
#[test]
fn version_1_is_readable() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1.syscalls");
    let bytes = std::fs::read(&path).unwrap();
    let file = SyscallsFile::parse(&bytes).unwrap();
    assert_eq!(file.problems(), []);
    // Samples came later.
    assert_eq!((file.header().sample_hz, file.samples().count(), file.on_cpu().count()), (0, 0, 0));
    assert_eq!((file.header().pid, file.header().cost_inside_ns), (1000, 70));
    assert_eq!((file.syscalls().count(), file.waits().count()), (201, 200));
    assert_eq!(file.syscalls().map(|row| row.errors).sum::<u64>(), 400);
    let mut builder = syscalls_sample();
    (builder.header.header_len, builder.header.sample_hz) = (160, 0);
    builder.header.version = 1;
    (builder.samples, builder.on_cpu, builder.mappings) = Default::default();
    (builder.causes, builder.blocked, builder.files) = Default::default();
    (builder.turns, builder.long_turns, builder.late_samples) = Default::default();
    builder.timed_samples.clear();
    assert!(bytes == builder.build(), "the builder writes other bytes than version 1");
}

#[test]
fn samples_are_read_back() {
    let builder = syscalls_sample();
    let bytes = builder.build();
    let file = SyscallsFile::parse(&bytes).unwrap();
    assert_eq!(file.header().sample_hz, 997);
    assert_eq!(file.samples().collect::<Vec<_>>(), builder.samples);
    assert_eq!(file.on_cpu().collect::<Vec<_>>(), builder.on_cpu);
    assert_eq!(file.mappings().collect::<Vec<_>>(), builder.mappings);
}
