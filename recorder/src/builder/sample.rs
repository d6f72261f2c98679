//! A recording with some of everything.

use super::Builder;
use crate::layout::{
    ARGUMENT_BYTES, ArgumentPair, ClockPair, END_EXIT, OBJECT_DLOPENED, SkipReason, SlotClass,
    THREAD_FOUND, TIMING_ADAPTIVE, Unseen,
};

/// A small process with some of everything that a recording can hold: versions, all slot classes,
/// several threads (of one, the creation was seen) and chunks, folded recursion, sampled calls, exceptions, open and inherited calls, an unloaded
/// object, events, a mark, counters of what was not seen. Its figures are made up and never change.
#[must_use]
pub fn sample() -> Builder {
    let mut builder = Builder::new();
    builder.header.cost_inside = 20 * 1024;
    builder.header.cost_outside = 30 * 1024 + 512;
    builder.header.parent_start = 90;
    builder.header.timing = TIMING_ADAPTIVE;
    builder.header.cost_counted = 3 * 1024;
    builder.header.cost_sampled = 200 * 1024;
    builder.header.unseen =
        Unseen { calls_too_deep: 7, late_loads: 1, stacks_sliced: 1, ..Unseen::default() };
    builder.header.clock_latest =
        ClockPair { ticks: 1_001_000_000, monotonic_ns: 1_001_000_000, realtime_ns: 1 << 60 };
    builder.depth_limit = 3;
    builder.node_chunk_len = 4096;
    builder.event_limit = Some(2_000);
    builder.meta("command", "app\x1f--level\x1f9").meta("host", "example");

    let app = builder.executable("/usr/bin/app");
    let libc = builder.object("/lib/x86_64-linux-gnu/libc.so.6");
    let libz = builder.object("/usr/lib/libz.so.1");
    let plugin = builder.object("/usr/lib/app/plugin.so");
    builder.object_mut(libz).build_id_len = 4;
    builder.object_mut(libz).build_id[..4].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
    builder.object_mut(libc).skipped[SkipReason::Pointer as usize] = 3;
    builder.object_mut(plugin).flags |= OBJECT_DLOPENED;
    builder.object_mut(plugin).load_ticks += 1_000;
    builder.object_mut(plugin).unload_ticks = 1_000_900_000;

    let timed = SlotClass::Timed;
    let malloc = builder.slot_of(app, Some(libc), "malloc", "GLIBC_2.2.5", timed);
    let qsort = builder.slot_of(app, Some(libc), "qsort", "GLIBC_2.2.5", timed);
    let exit = builder.slot_of(app, Some(libc), "exit", "GLIBC_2.2.5", SlotClass::Counted);
    let dlsym = builder.slot_of(app, Some(libc), "dlsym", "GLIBC_2.34", SlotClass::Sometimes);
    let deflate = builder.slot(app, Some(libz), "deflate");
    let zalloc = builder.slot_of(libz, Some(libc), "malloc", "GLIBC_2.2.5", timed);
    let run = builder.slot(app, Some(plugin), "_ZN6plugin3runEv");
    let back = builder.slot(plugin, Some(app), "app_callback");
    let wait = builder.slot_of(app, Some(libc), "pthread_cond_wait", "GLIBC_2.3.2", timed);
    let lost = builder.slot(app, None, "not_found");

    let main = builder.thread("app");
    let mut thread = builder.timeline(main);
    thread.work(5_000).calls(malloc, 40, 1_000).count(dlsym);
    thread.enter(qsort).work(300).call(malloc, 60).call(malloc, 1 << 20).leave();
    thread.enter(run).work(10).enter(back).work(5).call(lost, 9).unwind().unwind();
    // Recursion, deeper than the limit.
    for _ in 0..6 {
        thread.enter(run).work(100).enter(back).work(50);
    }
    for _ in 0..6 {
        thread.leave().leave();
    }
    for ticks in [0, 31, 32, 1_000, 90_000, 1 << 41] {
        thread.enter(deflate).work(ticks % 1_000_000).call(zalloc, 25).leave();
    }
    thread.work(1_000).mark("packed").count(exit);
    // Of the first of the contexts, and of the third.
    let asked = |value| ArgumentPair { value, ticks: 20 + value / 100 };
    let sizes: Vec<_> = (0..1_000).map(|at| asked(at * 7 % 4_096)).collect();
    builder.arguments(main, 1, ARGUMENT_BYTES, &sizes);
    builder.arguments(main, 3, ARGUMENT_BYTES, &[asked(100), asked(1 << 20)]);
    builder.text(main, 4, "/etc/app.conf", (1, 120_000));
    builder.text(main, 4, &"/deep".repeat(60), (2, 300_000));

    for number in 0..3 {
        let worker = builder.thread("worker");
        builder.thread_mut(worker).start_ticks += 2_000;
        builder.thread_mut(worker).start_routine_avma = 0x7f00_0000_1000 + number * 16;
        if number == 0 {
            let origin = builder.origin_mut(worker);
            (origin.stack_len, origin.word_count, origin.inner_word_count) = (2, 3, 0);
            origin.stack[..2].copy_from_slice(&[0x7f00_0200_1234, 0x7f00_0000_1100]);
            origin.words[..3].copy_from_slice(&[0x7f00_0000_8000, 7, 0x7f00_0000_1040]);
            let text = b"app.work\0Thread-1";
            origin.text[..text.len()].copy_from_slice(text);
            origin.text_len = text.len() as u16;
        }
        let mut thread = builder.timeline(worker);
        thread.work(700).calls(deflate, 20_000, 10 + number).call(wait, 90_000);
        if number == 0 {
            thread.end();
        } else {
            thread.enter(wait).work(50_000);
        }
    }
    let sampler = builder.thread("sampler");
    let mut thread = builder.timeline(sampler);
    thread.work(100).calls(malloc, 40, 512);
    for ticks in [38, 40, 41, 39, 300, 40] {
        thread.block(malloc, ticks, 100);
    }
    thread.rest(malloc, 40, 77).work(900).end();
    let found = builder.thread("");
    builder.thread_mut(found).origin = THREAD_FOUND;
    builder.timeline(found).inherit(run).work(20).call(malloc, 5).leave();
    builder.end(END_EXIT, 0);
    builder
}
