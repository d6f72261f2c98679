//! Recordings whose numbers are known, for the goldens.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};

use chase_recorder::builder::{Builder, SyscallsBuilder, errnos};
use chase_recorder::layout::{
    END_EXEC, END_EXIT, END_IMMEDIATE, ORIGIN_EXEC, ORIGIN_FORK, SkipReason, SlotClass,
};
use chase_recorder::syscalls::{
    BlockedRow, CauseRow, NO_SYSCALL, OBJECT_NAME, SampleRow, TurnsRow, WAIT_PREEMPTED,
    WAIT_VOLUNTARY, WAKER_THREAD,
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
    builder.header.cpu_ns = 220_960_000;
    builder.end(END_EXIT, 0);
    builder
}

/// Six workers, one of which is slow in a function called inside another, share a lock; calls of
/// one function are rarely slow.
pub(crate) fn pool() -> Builder {
    let mut builder = Builder::new();
    builder.header.pid = 4711;
    builder.meta("command", "/opt/pool/bin/pool");
    let app = builder.executable("/opt/pool/bin/pool");
    let libc = builder.object("/lib/x86_64-linux-gnu/libc.so.6");
    let store = builder.object("/opt/pool/lib/libstore.so");
    let put = builder.slot(app, Some(store), "store_put");
    let copy = builder.slot(store, Some(libc), "memcpy");
    let lock = builder.slot(app, Some(libc), "pthread_mutex_lock");
    let parse = builder.slot(app, Some(store), "store_parse");
    let join = builder.slot(app, Some(libc), "pthread_join");
    let main = builder.thread("pool");
    let start = builder.object_mut(app).bias + 0x1a40;
    for number in 0..6_u64 {
        let worker = builder.thread(&format!("worker-{number}"));
        let record = builder.thread_mut(worker);
        record.start_routine_avma = start;
        // Two calls of an unrolled loop.
        record.creation_site_avma = start + 0x200 + number % 2 * 40;
        let mut timeline = builder.timeline(worker);
        for call in 0..1_000 {
            let each = if number == 4 { 300 * US } else { 100 * US };
            timeline.enter(put).work(2 * US).call(copy, each).leave();
            timeline.call(parse, if call % 500 == 77 { 20 * MS } else { 50 * US });
            timeline.call(lock, 90 * US);
        }
        timeline.end();
    }
    let now = builder.now_ticks() - builder.header.clock_start.ticks;
    builder.timeline(main).call(join, now).end();
    builder.header.cpu_ns = 1_351_400_000;
    builder.end(END_EXIT, 0);
    builder
}

/// Writes [`measured`]'s recording, and its `.syscalls` file, into the directory `side` in `dir`.
pub(crate) fn write_measured(dir: &Path, side: &str, run: u64, factor: u64) {
    let data = dir.join(side);
    std::fs::create_dir_all(&data).expect("directory made");
    let (recording, seen) = measured(run, factor);
    let name = format!("app-{}.chase", recording.header.pid);
    write(&data, &name, &recording);
    write_syscalls(&data, &format!("{name}.syscalls"), &seen);
}

/// Writes `.syscalls` bytes as `name` in `dir`.
pub(crate) fn write_syscalls(dir: &Path, name: &str, builder: &SyscallsBuilder) {
    std::fs::write(dir.join(name), builder.build()).expect("system calls written");
}

/// What the companion saw of the compressor.
pub(crate) fn compressor_syscalls() -> SyscallsBuilder {
    const READ: u32 = 0;
    const FUTEX: u32 = 202;
    let refs = compressor().context_refs();
    // As they were entered first: the root is before them.
    let [create, read, join] = [refs[0][1], refs[0][2], refs[0][4]];
    let [wait, deflate, grow] = [refs[1][2], refs[1][3], refs[1][5]];
    let mut seen = SyscallsBuilder::new(4711);
    seen.name("compressor");
    seen.header.cost_inside_ns = 70;
    seen.header.cost_outside_ns = 90;
    seen.header.ended_ns = seen.header.began_ns + 199 * MS;
    let row = seen.syscall(read, 4711, READ, 2_000, 2_500);
    row.returned = 131_072_000;
    (row.errors, row.errnos) = (3, errnos(&[(4, 2), (11, 1)]));
    row.restarts = 1;
    row.off_cpu_ns = 800 * US;
    seen.syscall(create, 4711, 9, 2, 20 * US);
    seen.syscall(create, 4711, 435, 2, 15 * US);
    seen.syscall(join, 4711, FUTEX, 2, 94 * MS).off_cpu_ns = 187 * MS;
    seen.syscall(refs[0][0], 4711, 231, 1, 10 * US).unfinished = 1;
    seen.wait(join, 4711, WAIT_VOLUNTARY, 2, 93_500 * US);
    seen.wait(read, 4711, WAIT_VOLUNTARY, 400, 2 * US);
    seen.wait(refs[0][0], 4711, WAIT_PREEMPTED, 3, 100 * US);
    seen.syscall(wait, 4712, FUTEX, 1, 29 * MS).off_cpu_ns = 28 * MS;
    seen.wait(wait, 4712, WAIT_VOLUNTARY, 1, 28 * MS);
    seen.syscall(grow, 4712, 12, 3, 900);
    seen.syscall(grow, 4712, 999, 1, 900).unfinished = 1;
    seen.wait(deflate, 4712, WAIT_PREEMPTED, 40, 150 * US);
    seen.syscall(refs[2][2], 4713, FUTEX, 1, 29 * MS).off_cpu_ns = 28 * MS;
    seen.wait(refs[2][2], 4713, WAIT_VOLUNTARY, 1, 28 * MS);
    seen
}

/// A static program that the compressor started: it has no recording.
pub(crate) fn static_syscalls() -> SyscallsBuilder {
    let mut seen = SyscallsBuilder::new(4800);
    seen.header.parent_pid = 4711;
    seen.header.began_ns += 50 * MS;
    seen.header.ended_ns = seen.header.began_ns + 7 * MS;
    seen.name("busy\x1b[2Jbox");
    seen.syscall(0, 4800, 1, 12, 3 * US).returned = 480;
    seen
}

/// A main thread waits for `last`, which waits 9 ms for a mutex that `first` has, then works for 10 ms.
pub(crate) fn convoy() -> (Builder, SyscallsBuilder) {
    const FUTEX: u32 = 202;
    let mut builder = Builder::new();
    builder.header.pid = 4711;
    builder.meta("command", "/opt/app/bin/convoy");
    let app = builder.executable("/opt/app/bin/convoy");
    let libc = builder.object("/lib/x86_64-linux-gnu/libc.so.6");
    let lock = builder.slot(app, Some(libc), "pthread_mutex_lock");
    let join = builder.slot(app, Some(libc), "pthread_join");
    let main = builder.thread("convoy");
    let [first, last] = [builder.thread("first"), builder.thread("last")];
    let bias = builder.object_mut(app).bias;
    for (thread, start) in [(first, 0x1a40), (last, 0x1b40)] {
        builder.thread_mut(thread).start_routine_avma = bias + start;
        builder.thread_mut(thread).creator = 0;
    }
    builder.timeline(main).work(MS).call(join, 19 * MS).work(MS).end();
    builder.timeline(first).call(lock, 100).work(10 * MS + MS / 2).end();
    builder.timeline(last).work(MS).call(lock, 9 * MS).work(10 * MS).end();
    builder.end(END_EXIT, 0);

    let refs = builder.context_refs();
    let mut seen = SyscallsBuilder::new(4711);
    let began_ns = seen.header.began_ns;
    seen.header.ended_ns = began_ns + 21 * MS;
    // Who waits in which call from when to when, for what, and who ends that.
    let waits = [
        (4713, refs[2][1], 1, 10, bias + 0x4080, 4712, refs[1][0]),
        (4711, refs[0][1], 1, 20, 0, 4713, refs[2][0]),
    ];
    for (cause, (tid, context_ref, from, to, object, waker, waker_context_ref)) in (0..).zip(waits)
    {
        let total_ns = (to - from) * MS;
        seen.cause(CauseRow {
            tid,
            context_ref,
            number: FUTEX,
            object,
            holder: if object == 0 { 0 } else { waker },
            waker_kind: WAKER_THREAD,
            waker,
            waker_pid: 4711,
            waker_began_ns: began_ns,
            waker_context_ref,
            waits: 1,
            total_ns,
            max_ns: total_ns,
            ..bytemuck::Zeroable::zeroed()
        });
        let (begin_ns, end_ns) = (began_ns + from * MS, began_ns + to * MS);
        seen.blocked(BlockedRow { cause, tid, begin_ns, woken_ns: end_ns, end_ns });
        seen.wait(context_ref, tid, WAIT_VOLUNTARY, 1, total_ns);
    }
    // What ran, but for the main thread, which has too few samples.
    seen.header.sample_hz = 997;
    for (tid, on_cpu_ns) in [(4711, 2 * MS), (4712, 10 * MS + MS / 2), (4713, 11 * MS)] {
        seen.on_cpu(tid, on_cpu_ns);
    }
    seen.samples(refs[1][0], 4712, bias + 0x1a60, 8, 0);
    seen.samples(refs[1][0], 4712, bias + 0x2010, 2, 0);
    seen.samples(refs[2][0], 4713, bias + 0x1b80, 9, 1);
    let libc_at = builder.object_mut(libc).bias;
    seen.samples(refs[2][1], 4713, libc_at + 0x9000, 1, 1);
    (builder, seen)
}

/// A server's event loop of 1,002 turns, in two of which it computes and sleeps while others are ready.
pub(crate) fn event_loop() -> (Builder, SyscallsBuilder) {
    let mut builder = Builder::new();
    builder.header.pid = 4711;
    builder.meta("command", "/opt/app/bin/server");
    let app = builder.executable("/opt/app/bin/server");
    let libc = builder.object("/lib/x86_64-linux-gnu/libc.so.6");
    let wait = builder.slot(app, Some(libc), "epoll_wait");
    let sleep = builder.slot(app, Some(libc), "usleep");
    let main = builder.thread("server");
    let mut timeline = builder.timeline(main);
    timeline.work(MS).call(wait, 700 * MS).work(100 * MS).call(sleep, 30 * MS).work(170 * MS).end();
    builder.header.cpu_ns = 1_001_000_000;
    builder.end(END_EXIT, 0);

    let refs = builder.context_refs();
    let mut seen = SyscallsBuilder::new(4711);
    seen.header.sample_hz = 997;
    seen.header.ended_ns = seen.header.began_ns + 1_001 * MS;
    let (tid, descriptor) = (4711, 5);
    let mut turns = TurnsRow { context_ref: refs[0][1], tid, descriptor, ..TurnsRow::default() };
    (turns.waits, turns.waited_ns, turns.turns) = (1_003, 700 * MS, 1_002);
    (turns.total_ns, turns.max_ns) = (220 * MS, 130 * MS);
    (turns.long_turns, turns.long_ns) = (2, 210 * MS);
    (turns.blocked_ns, turns.preempted_ns) = (30 * MS, 5 * MS);
    (turns.histogram[8], turns.histogram[20], turns.histogram[21]) = (1_000, 1, 1);
    seen.turns.push(turns);
    seen.long_turn(tid, descriptor, 200 * MS, 80 * MS, 3);
    let turn = seen.long_turn(tid, descriptor, 500 * MS, 130 * MS, 1);
    (turn.blocked_ns, turn.preempted_ns) = (30 * MS, 5 * MS);
    let base = builder.object_mut(app).bias;
    for (at, user) in [(0x1a40, 150), (0x1b40, 25)] {
        let row = SampleRow { tid, address: base + at, user, ..bytemuck::Zeroable::zeroed() };
        seen.late_samples.push(row);
    }
    let (waits, total_ns) = (1, 30 * MS);
    let cause = CauseRow { tid, number: 230, waits, total_ns, ..bytemuck::Zeroable::zeroed() };
    seen.cause(CauseRow { context_ref: refs[0][2], max_ns: total_ns, ..cause });
    for client in 1..=3 {
        let mut name = [0; OBJECT_NAME];
        let ends = format!("socket 10.0.0.1:80 to 10.0.0.9:{}", 40_000 + client);
        name[..ends.len()].copy_from_slice(ends.as_bytes());
        let (number, total_ns) = (232, client * 10 * MS);
        let of_client = CauseRow { number, object: client, name, total_ns, ..cause };
        seen.cause(CauseRow { context_ref: refs[0][1], max_ns: MS, ..of_client });
    }
    seen.cause(CauseRow { number: NO_SYSCALL, total_ns: 2 * MS, max_ns: MS, ..cause });
    let begin_ns = seen.header.began_ns + 550 * MS;
    let (woken_ns, end_ns) = (begin_ns + 30 * MS, begin_ns + 33 * MS);
    seen.blocked(BlockedRow { cause: 0, tid, begin_ns, woken_ns, end_ns });
    (builder, seen)
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

/// What a symbol must never do to a page.
pub(crate) const HOSTILE: &str = "<img src=x onerror=globalThis.broken=1>";

/// The compressor with names that are markup, wherever a name may come from.
pub(crate) fn hostile() -> Builder {
    let mut builder = Builder::new();
    builder.meta(
        "command",
        &format!("/opt/{HOSTILE}\x1f</script><script>globalThis.broken=2</script>"),
    );
    builder.meta("host", HOSTILE);
    let app = builder.executable(&format!("/opt/app/bin/{HOSTILE}"));
    let lib = builder.object("/opt/lib</script><script>globalThis.broken=3</script>.so");
    let quotes = builder.object("/opt/lib\"'&quot;&amp;--><!--]]>;.so");
    let first = builder.slot(app, Some(lib), HOSTILE);
    let second =
        builder.slot_of(lib, Some(quotes), "</title><b>\u{202e}x;y", "\"V'1", SlotClass::Timed);
    let long = builder.slot(app, Some(quotes), &"W".repeat(300_000));
    let threads = [builder.thread(HOSTILE), builder.thread("</td>")];
    for thread in threads {
        let mut timeline = builder.timeline(thread);
        timeline.work(MS);
        for call in 0..200 {
            timeline.enter(first).work(10 * US).call(second, (1 + call) * US).leave();
        }
        timeline.calls(long, 5 * US, 50).end();
    }
    builder.end(END_EXIT, 0);
    builder
}

/// A program that calls `apis` functions of twenty libraries.
pub(crate) fn many_apis(apis: u64) -> Builder {
    let mut builder = Builder::new();
    builder.meta("command", "/opt/app/bin/wide");
    let app = builder.executable("/opt/app/bin/wide");
    let libraries: Vec<_> = (0..20)
        .map(|number| builder.object(&format!("/usr/lib/libpart{number:02}.so.{number}")))
        .collect();
    let main = builder.thread("wide");
    for number in 0..apis {
        let library = libraries[(number * 7 % 20) as usize];
        let name = format!("_ZN4part{}function_{number:03}EiRKSs", "12");
        let slot = builder.slot(app, Some(library), &name);
        let inner = builder.slot(
            library,
            Some(libraries[(number * 3 % 20) as usize]),
            &format!("inner_{number}"),
        );
        let mut timeline = builder.timeline(main);
        for call in 0..5 + 400 / (1 + number) {
            timeline
                .enter(slot)
                .work((1 + number % 13) * US + call * 90)
                .call(inner, 3 * US)
                .leave();
        }
        timeline.work(40 * US);
    }
    builder.timeline(main).end();
    builder.end(END_EXIT, 0);
    builder
}

/// A pool of `threads`, one of which does what no other does.
pub(crate) fn many_threads(threads: u32) -> Builder {
    let mut builder = Builder::new();
    builder.node_chunk_len = 4 << 10;
    builder.meta("command", "/opt/app/bin/pool");
    let app = builder.executable("/opt/app/bin/pool");
    let libc = builder.object("/lib/x86_64-linux-gnu/libc.so.6");
    let libz = builder.object("/opt/app/lib/libz.so.1");
    let deflate = builder.slot(app, Some(libz), "deflate");
    let copy = builder.slot(libz, Some(libc), "memcpy");
    let wait = builder.slot(app, Some(libc), "pthread_cond_wait");
    let main = builder.thread("pool");
    builder.timeline(main).work(500 * MS).end();
    let start = builder.object_mut(app).bias + 0x1a40;
    for number in 1..=threads {
        let thread = builder.thread("worker");
        builder.thread_mut(thread).start_routine_avma = start;
        let odd = number == threads / 2;
        let blocks = if odd { 400 } else { 20 + u64::from(number * 7 % 41) };
        let mut timeline = builder.timeline(thread);
        timeline.work(2 * MS).call(wait, if odd { 50 * US } else { 30 * MS });
        timeline.enter(deflate).work(blocks * 100 * US).calls(copy, 2 * US, blocks).leave();
        timeline.end();
    }
    builder.end(END_EXIT, 0);
    builder
}

/// Run number `run` of a program whose `deflate` takes `factor` µs and waits a tenth of it, and
/// what the companion saw of it. It reads by `fread`, every eighth of which makes a system call,
/// and by `read`, each of which makes one.
pub(crate) fn measured(run: u64, factor: u64) -> (Builder, SyscallsBuilder) {
    let mut builder = Builder::new();
    builder.header.pid = 600 + run as u32;
    builder.header.boot_id = [run as u8 + 1; 16];
    builder.meta("command", "app\x1f--fast");
    let app = builder.executable("/opt/app/bin/app");
    let libc = builder.object("/lib/x86_64-linux-gnu/libc.so.6");
    let libz = builder.object(&format!("/opt/{factor}/lib/libz.so.1"));
    let read = builder.slot(app, Some(libc), "read");
    let fread = builder.slot(app, Some(libc), "fread");
    let deflate = builder.slot(app, Some(libz), "deflate");
    let main = builder.thread("app");
    let mut timeline = builder.timeline(main);
    for call in 0..400 {
        timeline.work(300).call(deflate, factor * US + run * 40 + call % 10 * 20);
        timeline.call(fread, 200 + call % 8 * 30).call(read, 1_100 + call % 5 * 40);
    }
    timeline.end();
    builder.end(END_EXIT, 0);
    let refs = builder.context_refs();
    let tid = builder.header.pid;
    let mut seen = SyscallsBuilder::new(tid);
    seen.header.boot_id = builder.header.boot_id;
    seen.syscall(refs[0][2], tid, 0, 50, 800).returned = 204_800;
    seen.syscall(refs[0][3], tid, 0, 400, 900).returned = 204_800;
    let row = seen.syscall(refs[0][1], tid, 202, 20, factor * 100);
    (row.errors, row.errnos) = (5, errnos(&[(11, 5)]));
    seen.wait(refs[0][1], tid, WAIT_VOLUNTARY, 400, factor * 100);
    (builder, seen)
}
