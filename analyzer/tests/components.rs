//! Programs and what they exchange, from single system calls that each test describes.

use chase_analyzer::recorder::builder::{Builder, SyscallsBuilder};
use chase_analyzer::recorder::layout::{THREAD_FREE, THREAD_LEFT_OUT};
use chase_analyzer::recorder::reader::{Recording, SyscallsFile};
use chase_analyzer::{Analysis, Image, Selection, ThingKind, components, narration};

const READ: u32 = 0;
const WRITE: u32 = 1;
const SOCKET: u32 = 0o140_777;

/// A process with one thread.
fn process(pid: u32) -> (Builder, SyscallsBuilder) {
    let mut builder = Builder::new();
    builder.header.pid = pid;
    builder.executable(&format!("/bin/app-{pid}"));
    let main = builder.thread("app");
    builder.timeline(main).work(100_000).end();
    (builder, SyscallsBuilder::new(pid))
}

fn image((builder, seen): &(Builder, SyscallsBuilder)) -> Image {
    let recording = Recording::parse(builder.build()).expect("a recording");
    let file = SyscallsFile::parse(seen.build()).expect("a file");
    let path = format!("app.{}.chase", builder.header.pid);
    Image::of(path.into(), recording).with_syscalls(Some(file))
}

/// A transfer of 100 bytes by one end of a connection within the machine, whose other end is `peer` if that is open.
fn transfer(seen: &mut SyscallsBuilder, number: u32, own: u64, peer: u64) {
    let tid = seen.header.pid;
    seen.single_syscall(tid, number, b"", 10_000 * (1 + seen.single_syscalls.len() as u64));
    let row = seen.single_syscalls.last_mut().expect("just added");
    (row.object, row.mode, row.result) = (own, SOCKET, 100);
    row.name = [0; 48];
    row.name[..2].copy_from_slice(&1_u16.to_le_bytes());
    row.name[24..32].copy_from_slice(&peer.to_le_bytes());
}

/// The same on an internet connection between two ports of this machine.
fn transfer_between(seen: &mut SyscallsBuilder, number: u32, own: u64, ports: [u16; 2]) {
    transfer(seen, number, own, 0);
    let row = seen.single_syscalls.last_mut().expect("just added");
    row.name = [0; 48];
    row.name[..2].copy_from_slice(&2_u16.to_le_bytes());
    row.name[2..4].copy_from_slice(&ports[0].to_le_bytes());
    row.name[4..6].copy_from_slice(&ports[1].to_be_bytes());
    for address in [8, 24] {
        row.name[address..address + 4].copy_from_slice(&[127, 0, 0, 1]);
    }
}

/// What goes through each thing: its kind, bytes read, bytes written.
fn things(processes: &[(Builder, SyscallsBuilder)]) -> Vec<(ThingKind, u64, u64)> {
    let images: Vec<Image> = processes.iter().map(image).collect();
    let found = components(&images).expect("system calls");
    found.things.iter().map(|thing| (thing.kind, thing.read, thing.written)).collect()
}

#[test]
fn what_is_read_after_the_other_end_was_closed_came_through_the_same_connection() {
    let (mut reader, mut writer) = (process(1000), process(1001));
    transfer(&mut writer.1, WRITE, 11, 12);
    transfer(&mut writer.1, WRITE, 11, 12);
    // It wrote and closed its end before anything was read.
    transfer(&mut reader.1, READ, 12, 0);
    transfer(&mut reader.1, READ, 12, 0);
    assert_eq!(things(&[reader, writer]), [(ThingKind::Socket, 200, 200)]);
}

#[test]
fn an_end_that_many_write_to_is_a_thing_of_its_own() {
    let (mut log, mut writer) = (process(1000), process(1001));
    transfer(&mut writer.1, WRITE, 11, 10);
    transfer(&mut writer.1, WRITE, 12, 10);
    transfer(&mut log.1, READ, 10, 0);
    let expected =
        [(ThingKind::Socket, 100, 0), (ThingKind::Socket, 0, 100), (ThingKind::Socket, 0, 100)];
    let mut found = things(&[log, writer]);
    found.sort_by_key(|&(_, read, _)| std::cmp::Reverse(read));
    assert_eq!(found, expected);
}

/// A client's port is free again after a while: two workers of a server, each with one connection of that port, were said to send each
/// other something.
#[test]
fn connections_of_a_port_that_was_free_again_are_different_ones() {
    let (mut one, mut another, mut client) = (process(1000), process(1001), process(1002));
    transfer_between(&mut one.1, WRITE, 11, [80, 5001]);
    transfer_between(&mut another.1, WRITE, 12, [80, 5001]);
    // Both ends of one connection are one thing.
    transfer_between(&mut one.1, WRITE, 13, [80, 5002]);
    transfer_between(&mut client.1, READ, 14, [5002, 80]);
    let (socket, read) = (ThingKind::Socket, [100, 0, 0]);
    let expected = read.map(|read| (socket, read, 100));
    assert_eq!(things(&[one, another, client]), expected);
}

#[test]
fn threads_that_were_not_to_be_recorded_transfer_nothing() {
    let (mut builder, mut seen) = process(1000);
    let other = builder.thread("other");
    let record = builder.thread_mut(other);
    (record.state, record.origin) = (THREAD_FREE, THREAD_LEFT_OUT);
    transfer(&mut seen, WRITE, 11, 12);
    for row in [(WRITE, 11, 12), (READ, 12, 11)] {
        transfer(&mut seen, row.0, row.1, row.2);
        seen.single_syscalls.last_mut().expect("just added").tid = 1001;
    }
    let images = [image(&(builder, seen))];
    let found = components(&images).expect("system calls");
    let told: Vec<_> = found.things.iter().map(|thing| (thing.read, thing.written)).collect();
    assert_eq!(told, [(0, 100)]);
    let analysis = Analysis::new(&images, Selection::All);
    assert_eq!(narration(&images, &analysis).expect("system calls").calls.len(), 1);
}
