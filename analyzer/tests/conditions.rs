//! A condition has several words that threads wait for: who waits for it, who signals it, and who destroys it.

mod pool;
mod process;

use std::collections::BTreeSet;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::syscalls::CauseRow;
use pool::{MS, Pool};

const AT: u64 = 0x1000;

/// As in `__pthread_cond_s`: `__g_signals`, `__g_refs`, `__wrefs`.
#[test]
fn each_of_its_words_is_the_condition() {
    let words = [(0, 0x28), (0, 0x2c), (1, 0x10), (2, 0x14), (3, 0x24)];
    hold(0, &words);
    hold(0x28, &words);
}

/// Newer ones have no `__g_refs`, and the others in its place.
#[test]
fn each_of_the_words_of_a_newer_one_is_the_condition() {
    hold(0x20, &[(0, 0x20), (0, 0x24), (3, 0x1c)]);
}

/// `in_condition`: what the recording says; `words`: which function waits for which.
fn hold(in_condition: u64, words: &[(usize, u64)]) {
    let mut pool = Pool::new();
    pool.process.builder.header.condition_words = in_condition;
    let (app, libb) = (pool.process.app, pool.process.libb);
    let thread = pool.thread("worker", 0x100);
    let names = [
        "pthread_cond_wait",
        "pthread_cond_signal",
        "pthread_cond_broadcast",
        "pthread_cond_destroy",
    ];
    let slots = names.map(|name| pool.process.builder.slot(app, Some(libb), name));
    for slot in slots {
        pool.call(thread, slot, 50 * MS, 1);
    }
    pool.process.builder.timeline(thread).end();
    let pid = pool.process.builder.header.pid;
    let outcome = pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        for &(function, offset) in words {
            seen.cause(CauseRow {
                context_ref: refs[thread.0 as usize][1 + function],
                tid: pid + thread.0,
                number: 202,
                object: AT + offset,
                waits: 1,
                total_ns: 10 * MS,
                max_ns: 10 * MS,
                ..bytemuck::Zeroable::zeroed()
            });
        }
        seen
    });
    let rows = &outcome.watched.causes;
    let objects: BTreeSet<_> = rows.iter().map(|row| format!("{:?}", row.object)).collect();
    assert_eq!(objects.len(), 1, "{rows:#?}");
    let functions: BTreeSet<_> = words.iter().map(|word| word.0).collect();
    assert!(rows.len() >= functions.len(), "{rows:#?}");
    assert!(objects.iter().all(|object| object.contains(&format!("{AT}"))), "{objects:?}");
}
