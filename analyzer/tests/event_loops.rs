//! When the event loop of a thread is held up.

mod pool;
mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::syscalls::{
    BlockedRow, CauseRow, NO_DESCRIPTOR, TurnsRow, WAKER_THREAD,
};
use chase_analyzer::{FindingKind, Ns};
use pool::{MS, Outcome, Pool, US};

/// A thread that serves, for a second, and what was seen of its turns.
fn served(seen: impl Fn(&mut SyscallsBuilder, u32)) -> Outcome {
    let mut pool = Pool::new();
    let thread = pool.thread("serve", 0x100);
    pool.call(thread, pool.other, 10, 1);
    pool.process.builder.timeline(thread).work(1_000 * MS).end();
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|_| {
        let mut file = SyscallsBuilder::new(pid);
        seen(&mut file, pid + thread.0);
        file
    })
}

/// 1,000 turns of 8 to 16 µs, and as many of 64 ms.
fn turns(tid: u32, descriptor: u32, long: u64) -> TurnsRow {
    let (usual, long_ns) = (1_000, long * 64 * MS);
    let mut histogram = [0; 32];
    (histogram[8], histogram[20]) = (usual, long);
    TurnsRow {
        tid,
        descriptor,
        waits: usual + long + 1,
        waited_ns: 500 * MS,
        turns: usual + long,
        total_ns: usual * 10 * US + long_ns,
        max_ns: 64 * MS,
        long_turns: long,
        long_ns,
        histogram,
        ..TurnsRow::default()
    }
}

fn is_calm(outcome: &Outcome) -> bool {
    let is_it = |kind: &FindingKind| matches!(kind, FindingKind::EventLoopHeldUp { .. });
    !outcome.findings.iter().any(|finding| is_it(&finding.kind))
}

#[test]
fn long_turns_hold_up_a_loop_whose_turns_are_short() {
    let found = served(|file, tid| {
        file.turns.push(turns(tid, 5, 3));
        for at in 0..3 {
            let turn = file.long_turn(tid, 5, at * 100 * MS, 64 * MS, at as u32);
            // The first one began with three that were ready: two of them waited.
            turn.begun_with = if at == 0 { 3 } else { 1 };
            turn.blocked_ns = 10 * MS;
            turn.preempted_ns = 4 * MS;
        }
    });
    let [finding] = &*found.findings else { panic!("{:#?}", found.findings) };
    let FindingKind::EventLoopHeldUp {
        turns,
        held_up,
        usual_ns,
        longest_ns,
        all_ns,
        blocked_ns,
        ready,
        ..
    } = finding.kind
    else {
        panic!("{finding:#?}")
    };
    assert_eq!((turns, held_up, ready), (1_003, 3, 2));
    assert_eq!((usual_ns, longest_ns), (Ns(16_384), Ns(60 * MS)));
    assert_eq!((all_ns, blocked_ns), (Ns(180 * MS), Ns(30 * MS)));
}

/// The main thread waits for an answer in the first of two turns, and half of the time before and after.
#[test]
fn who_waits_for_a_loop_meanwhile_is_named() {
    let found = served(|file, tid| {
        file.turns.push(turns(tid, 5, 2));
        file.long_turn(tid, 5, 100 * MS, 64 * MS, 1);
        file.long_turn(tid, 5, 300 * MS, 64 * MS, 1);
        let (main, began_ns) = (file.header.pid, file.header.began_ns);
        file.cause(CauseRow {
            tid: main,
            waker_kind: WAKER_THREAD,
            waker: tid,
            waker_pid: main,
            waker_began_ns: began_ns,
            ..bytemuck::Zeroable::zeroed()
        });
        let (begin_ns, end_ns) = (began_ns + 84 * MS, began_ns + 180 * MS);
        file.blocked(BlockedRow { cause: 0, tid: main, begin_ns, woken_ns: end_ns, end_ns });
    });
    let [one] = &*found.watched.event_loops else { panic!("{:#?}", found.watched.event_loops) };
    let [client] = &*one.clients else { panic!("{:#?}", one.clients) };
    assert_eq!((client.threads, client.wait_ns), (1, Ns(64 * MS)));
    assert_ne!(client.group, one.group);
}

#[test]
fn nobody_is_held_up_where_nobody_waits() {
    assert!(is_calm(&served(|file, tid| {
        file.turns.push(turns(tid, 5, 3));
        for at in 0..3 {
            file.long_turn(tid, 5, at * 100 * MS, 64 * MS, 0).begun_with = 1;
        }
    })));
}

#[test]
fn turns_that_are_all_long_are_usual() {
    let found = served(|file, tid| {
        file.turns.push(TurnsRow { turns: 100, histogram: [0; 32], ..turns(tid, 5, 100) });
        file.turns[0].histogram[20] = 100;
        for at in 0..5 {
            file.long_turn(tid, 5, at * 100 * MS, 64 * MS, 4);
        }
    });
    let [one] = &*found.watched.event_loops else { panic!("{:#?}", found.watched.event_loops) };
    assert!(one.held_up.is_empty() && is_calm(&found), "{one:#?}");
}

/// What comes after the wake is time of others.
#[test]
fn a_wait_in_a_turn_ends_when_the_thread_is_woken() {
    let found = served(|file, tid| {
        file.turns.push(turns(tid, 5, 1));
        let turn = file.long_turn(tid, 5, 100 * MS, 64 * MS, 1);
        (turn.blocked_ns, turn.preempted_ns) = (20 * MS, 9 * MS);
        let began_ns = file.header.began_ns;
        file.cause(CauseRow { tid, number: 35, ..bytemuck::Zeroable::zeroed() });
        let (begin_ns, woken_ns) = (began_ns + 110 * MS, began_ns + 130 * MS);
        file.blocked(BlockedRow { cause: 0, tid, begin_ns, woken_ns, end_ns: woken_ns + 9 * MS });
    });
    let [one] = &*found.watched.event_loops else { panic!("{:#?}", found.watched.event_loops) };
    let [wait] = &*one.waits else { panic!("{:#?}", one.waits) };
    assert_eq!((wait.ns, one.held_up_ns(|turn| turn.blocked_ns)), (Ns(20 * MS), Ns(20 * MS)));
}

#[test]
fn time_of_others_holds_up_no_loop() {
    assert!(is_calm(&served(|file, tid| {
        file.turns.push(turns(tid, 5, 3));
        for at in 0..3 {
            file.long_turn(tid, 5, at * 100 * MS, 64 * MS, 4).preempted_ns = 50 * MS;
        }
    })));
}

/// As while a loop is set up by another thread.
#[test]
fn a_descriptor_that_another_thread_has_waited_with_once_is_hardly_shared() {
    let found = served(|file, tid| {
        file.turns.push(turns(tid, 5, 3));
        file.turns.push(TurnsRow { waits: 1, turns: 0, ..turns(tid + 1, 5, 0) });
        for at in 0..3 {
            file.long_turn(tid, 5, at * 100 * MS, 64 * MS, 4);
        }
    });
    assert!(!is_calm(&found));
}

/// As the threads of a pool do: another one waits as soon as one works.
#[test]
fn threads_that_share_a_descriptor_hold_up_nobody() {
    assert!(is_calm(&served(|file, tid| {
        for tid in [tid, tid + 1] {
            file.turns.push(turns(tid, 5, 3));
        }
        for at in 0..3 {
            file.long_turn(tid, 5, at * 100 * MS, 64 * MS, 4);
        }
    })));
}

#[test]
fn a_loop_inside_another_is_not_taken_for_it() {
    assert!(is_calm(&served(|file, tid| {
        let inner = turns(tid, NO_DESCRIPTOR, 3);
        file.turns.push(TurnsRow { waited_ns: MS, ..inner });
        file.turns.push(turns(tid, 5, 0));
        for at in 0..3 {
            file.long_turn(tid, NO_DESCRIPTOR, at * 100 * MS, 64 * MS, 4);
        }
    })));
}
