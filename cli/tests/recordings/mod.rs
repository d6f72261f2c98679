//! Recordings whose numbers are known, for the goldens.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};

use chase_recorder::builder::Builder;
use chase_recorder::layout::{
    END_EXEC, END_EXIT, END_IMMEDIATE, ORIGIN_EXEC, ORIGIN_FORK, SkipReason, SlotClass,
};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Writes `builder`'s recording as `name` in `dir`.
pub(crate) fn write(dir: &Path, name: &str, builder: &Builder) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, builder.build()).expect("recording written");
    path
}

/// Two worker threads compress what a main thread reads; names are hostile.
pub(crate) fn compressor() -> Builder {
    let mut builder = Builder::new();
    builder.header.pid = 4711;
    builder.header.cost_inside = 1024 * 5;
    builder.header.cost_outside = 1024 * 15;
    builder.meta("command", "/opt/app/bin/compressor\x1f--level\x1f9\x1fin put");
    builder.meta("directory", "/home/user");
    builder.meta("host", "box");
    let app = builder.executable("/opt/app/bin/compressor");
    let libc = builder.object("/lib/x86_64-linux-gnu/libc.so.6");
    let libz = builder.object("/opt/app/lib/libz.so.1");
    let cpp = builder.object("/opt/app/lib/libqueue-\x1b[31mred.so");
    builder.object_mut(app).skipped[SkipReason::Pointer as usize] = 3;
    builder.object_mut(libz).skipped[SkipReason::NoStub as usize] = 1;
    builder.header.unseen.calls_without_thread = 12;

    let read = builder.slot_of(app, Some(libc), "read", "GLIBC_2.2.5", SlotClass::Timed);
    let create = builder.slot(app, Some(libc), "pthread_create");
    let join = builder.slot(app, Some(libc), "pthread_join");
    let deflate = builder.slot(app, Some(libz), "deflate");
    let copy = builder.slot(libz, Some(libc), "memcpy");
    let grow = builder.slot(libz, Some(libc), "malloc");
    let pop_name = "_ZN5queue4Lane3popISt6vectorIiSaIiEEEET_RKS4_";
    let pop = builder.slot(app, Some(cpp), pop_name);
    let wait = builder.slot(cpp, Some(libc), "pthread_cond_wait");
    let leave = builder.slot_of(app, Some(libc), "longjmp", "", SlotClass::Counted);

    let main = builder.thread("compressor");
    let workers = [builder.thread("worker 1"), builder.thread("worker\x1b[2J2")];
    let start = builder.object_mut(app).bias + 0x1a40;
    for worker in workers {
        let record = builder.thread_mut(worker);
        record.start_routine_avma = start;
        record.creation_site_avma = start + 0x200;
        record.start_ticks += 2 * MS;
    }
    builder
        .timeline(main)
        .work(MS)
        .calls(create, 40 * US, 2)
        .work(MS)
        .calls(read, 3 * US, 2_000)
        .count(leave)
        .call(join, 190 * MS)
        .work(500 * US)
        .end();
    for (worker, blocks) in workers.into_iter().zip([400, 900]) {
        let mut timeline = builder.timeline(worker);
        timeline.enter(pop).work(20 * US).call(wait, 30 * MS).leave();
        for block in 0..blocks {
            timeline.enter(deflate).work(100 * US);
            timeline.calls(copy, 200, 40).calls(grow, 1_500, 3);
            timeline.work(block % 7 * 10 * US).leave();
            timeline.work(20 * US);
        }
        timeline.end();
    }
    builder.end(END_EXIT, 0);
    builder
}

/// A shell's child of the compressor, which ends badly.
pub(crate) fn child() -> Builder {
    let mut builder = Builder::new();
    builder.header.pid = 4712;
    builder.header.parent_pid = 4711;
    builder.header.clock_start.ticks += 10 * MS;
    builder.header.clock_start.monotonic_ns += 10 * MS;
    builder.header.clock_start.realtime_ns += 10 * MS;
    builder.meta("command", "helper");
    let app = builder.executable("/opt/app/bin/helper");
    let libc = builder.object("/lib/x86_64-linux-gnu/libc.so.6");
    let write = builder.slot(app, Some(libc), "write");
    let main = builder.thread("helper");
    builder.timeline(main).work(MS).calls(write, 10 * US, 100).end();
    builder.end(END_IMMEDIATE, 3);
    builder
}

/// Child number `number` of the compressor, with next to no time of its own; every second one goes
/// on as another program, which `next` is.
pub(crate) fn small_child(number: u32, next: bool) -> Builder {
    let start = MS * u64::from(number) + u64::from(next) * 20 * US;
    let mut builder = Builder::new();
    builder.header.pid = 5000 + number;
    builder.header.parent_pid = 4711;
    builder.header.process_start = 100;
    builder.header.origin = if next { ORIGIN_EXEC } else { ORIGIN_FORK };
    builder.header.clock_start.ticks += start;
    builder.header.clock_start.monotonic_ns += start;
    builder.header.clock_start.realtime_ns += start;
    let program = if next { "step" } else { "shell" };
    let app = builder.executable(&format!("/opt/app/bin/{program}{}", number % 3));
    let libc = builder.object("/lib/x86_64-linux-gnu/libc.so.6");
    let write = builder.slot(app, Some(libc), "write");
    let main = builder.thread(program);
    builder.timeline(main).work(US * u64::from(number % 7)).calls(write, US, 2).end();
    let ending = if !next && number.is_multiple_of(2) { END_EXEC } else { END_EXIT };
    builder.end(ending, 0);
    builder
}
