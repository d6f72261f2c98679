//! Who ended a wait, where the process that is told with it is gone or another one.

mod pool;
mod process;

use chase_analyzer::recorder::builder::{Builder, SyscallsBuilder};
use chase_analyzer::recorder::layout::{END_EXEC, END_EXIT};
use chase_analyzer::recorder::reader::{Recording, SyscallsFile};
use chase_analyzer::recorder::syscalls::{BlockedRow, CauseRow, WAKER_PROCESS, WAKER_THREAD};
use chase_analyzer::{
    Analysis, Doing, Groups, Image, PartyKind, Purpose, Selection, Unnamed, critical_path,
};
use pool::{MS, Outcome, Pool};

const VFORK: u32 = 58;
const READ: u32 = 0;
const WAIT4: u32 = 61;

/// A run of two threads, the first of which is the main thread. The second waits, in this system call, until a thread `waker` ends
/// that, of the process `waker_pid` that began at that time.
fn ended_by(number: u32, waker: u32, process: (u32, u64)) -> Outcome {
    let mut pool = Pool::new();
    let threads = [pool.thread("main", 0x100), pool.thread("worker", 0x200)];
    for thread in threads {
        pool.call(thread, pool.work, 40 * MS, 1);
        pool.process.builder.timeline(thread).end();
    }
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        seen.cause(CauseRow {
            context_ref: refs[1][1],
            tid: pid + threads[1].0,
            number,
            waker_kind: WAKER_THREAD,
            waker: pid + waker,
            waker_pid: process.0,
            waker_began_ns: process.1,
            waits: 1,
            total_ns: 20 * MS,
            max_ns: 20 * MS,
            ..bytemuck::Zeroable::zeroed()
        });
        seen
    })
}

fn waker(outcome: &Outcome) -> (PartyKind, Option<u32>) {
    let waker = &outcome.watched.causes[0].wakers[0];
    (waker.kind, waker.group)
}

fn own(file: &SyscallsBuilder) -> (u32, u64) {
    (file.header.pid, file.header.began_ns)
}

#[test]
fn a_main_thread_whose_process_was_gone_is_known_by_its_number() {
    let outcome = ended_by(READ, 0, (0, 0));
    assert_eq!(waker(&outcome), (PartyKind::Thread, Some(outcome.groups.of_thread[0])));
}

#[test]
fn another_thread_whose_process_was_gone_is_a_process() {
    assert_eq!(waker(&ended_by(READ, 1, (0, 0))), (PartyKind::Process, None));
}

#[test]
fn a_thread_that_is_not_in_the_process_that_is_told_stays_unknown() {
    let pid = Pool::new().process.builder.header.pid;
    let told = own(&SyscallsBuilder::new(pid));
    assert_eq!(waker(&ended_by(READ, 70, told)), (PartyKind::Thread, None));
}

#[test]
fn who_waits_in_vfork_waits_for_a_child() {
    assert_eq!(ended_by(VFORK, 0, (0, 0)).watched.causes[0].purpose, Purpose::Child);
}

/// The main thread waits in `vfork` from 20 ms on, until a thread that is recorded from `began` on ends that, at 40 ms. Where the path
/// is that leads to there: the steps of the main thread in which it waits, in ms.
fn waited_on_the_path(began: u64) -> Vec<(u64, u64)> {
    let mut builder = Builder::new();
    let app = builder.executable("/usr/bin/app");
    let libz = builder.object("/usr/lib/libz.so.1");
    let crc32 = builder.slot(app, Some(libz), "crc32");
    let (main, child) = (builder.thread("app"), builder.thread("child"));
    builder.timeline(main).call(crc32, 100 * MS).end();
    builder.thread_mut(child).start_ticks += began * MS;
    builder.timeline(child).work((60 - began) * MS).end();
    builder.end(END_EXIT, 0);
    let mut seen = SyscallsBuilder::new(1000);
    let (pid, began_ns) = own(&seen);
    seen.cause(CauseRow {
        tid: pid,
        number: VFORK,
        waker_kind: WAKER_THREAD,
        waker: pid + 1,
        waker_pid: pid,
        waker_began_ns: began_ns,
        waits: 1,
        total_ns: 20 * MS,
        ..bytemuck::Zeroable::zeroed()
    });
    let [begin_ns, woken_ns] = [20, 40].map(|at| began_ns + at * MS);
    seen.blocked(BlockedRow { cause: 0, tid: pid, begin_ns, woken_ns, end_ns: woken_ns });
    waits_on_path(&[image(&builder, &seen)])
}

fn image(builder: &Builder, seen: &SyscallsBuilder) -> Image {
    let recording = Recording::parse(builder.build()).expect("a recording");
    let file = SyscallsFile::parse(seen.build()).expect("a file");
    Image::of("app.1000.chase".into(), recording).with_syscalls(Some(file))
}

/// The steps of the critical path in which its thread waits, in ms.
fn waits_on_path(images: &[Image]) -> Vec<(u64, u64)> {
    let analysis = Analysis::new(images, Selection::All);
    let groups = Groups::new(&analysis, &Unnamed);
    let path = critical_path(images, &analysis, &groups, &Unnamed, None).expect("a path");
    let waits = path.steps.iter().filter(|step| matches!(step.doing, Doing::Waiting(_)));
    waits.map(|step| (step.begin_ns.0 / MS, step.end_ns.0 / MS)).collect()
}

#[test]
fn who_ends_a_wait_before_it_is_recorded_is_not_where_the_path_leads() {
    assert_eq!(waited_on_the_path(50), [(20, 40)]);
    assert_eq!(waited_on_the_path(10), []);
}

/// The main thread waits for the end of a child from 5 ms on, until 90 ms. The child's recording ends like this after 10 ms.
fn waited_for_child(ending: u32) -> Vec<(u64, u64)> {
    let process = |pid: u32, lives: u64, ending: u32| {
        let mut builder = Builder::new();
        builder.executable("/usr/bin/app");
        builder.header.pid = pid;
        let main = builder.thread("app");
        builder.thread_mut(main).tid = pid;
        builder.timeline(main).work(lives * MS).end();
        builder.end(ending, 0);
        builder
    };
    let mut seen = SyscallsBuilder::new(1_000);
    seen.cause(CauseRow {
        tid: 1_000,
        number: WAIT4,
        waker_kind: WAKER_PROCESS,
        waker_pid: 1_001,
        waits: 1,
        total_ns: 85 * MS,
        ..bytemuck::Zeroable::zeroed()
    });
    let [begin_ns, woken_ns] = [5, 90].map(|at| seen.header.began_ns + at * MS);
    seen.blocked(BlockedRow { cause: 0, tid: 1_000, begin_ns, woken_ns, end_ns: woken_ns });
    let parent = image(&process(1_000, 100, END_EXIT), &seen);
    let child = image(&process(1_001, 10, ending), &SyscallsBuilder::new(1_001));
    waits_on_path(&[parent, child])
}

/// What a process was before it was replaced by a program that is not recorded had all its time on the path.
#[test]
fn a_program_that_is_not_recorded_is_not_the_one_that_it_replaced() {
    assert_eq!(waited_for_child(END_EXEC), [(5, 90)]);
    assert_eq!(waited_for_child(END_EXIT), []);
}
