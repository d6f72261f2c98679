//! What a run would save at most without some of its waits and calls.

mod process;
mod waits;

use chase_analyzer::recorder::builder::ThreadId;
use chase_analyzer::recorder::layout::END_EXIT;
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::{
    Analysis, Doing, Groups, Image, Ns, PathWait, Selection, Unnamed, WhatIf, Without,
    critical_path, what_if,
};
use process::Process;
use waits::{MS, Wait};

/// The first thread waits for the end of `last`, which waits for a lock that `first` has from 0 to 10 ms, and then works for
/// another 10.
struct Convoy {
    process: Process,
    first: ThreadId,
    last: ThreadId,
    waits: Vec<Wait>,
}

impl Convoy {
    fn new() -> Self {
        let mut process = Process::new();
        let main = process.main;
        let (_, inner) = process.slots();
        process.builder.timeline(main).work(21 * MS).call(inner, 10).end();
        let first = process.builder.thread("first");
        process.builder.timeline(first).work(10 * MS + MS / 2).end();
        let last = process.builder.thread("last");
        process.builder.timeline(last).work(20 * MS).end();
        for thread in [first, last] {
            process.builder.thread_mut(thread).creator = 0;
        }
        process.builder.end(END_EXIT, 0);
        let waits = vec![
            Wait { of: last, from: 1, to: 10, ended_by: Some(first), is_lock: true },
            Wait { of: main, from: 1, to: 20, ended_by: Some(last), is_lock: false },
        ];
        Self { process, first, last, waits }
    }

    fn image(&self) -> Image {
        let seen = waits::seen(self.process.builder.header.pid, &self.waits, |_| 0);
        let file = SyscallsFile::parse(seen.build()).unwrap();
        self.process.image().with_syscalls(Some(file))
    }

    fn without(&self, wait: &dyn Fn(&PathWait) -> bool, time: &dyn Fn(u32) -> Ns) -> WhatIf {
        let images = [self.image()];
        let analysis = Analysis::new(&images, Selection::All);
        let groups = Groups::new(&analysis, &Unnamed);
        let without = Without { wait, time, thread: &|_| false };
        let found = what_if(&images, &analysis, &groups, &Unnamed, &without).expect("waits");
        // It adds up, and the path has no gaps.
        assert_eq!(found.wall_ns, analysis.wall_ns);
        assert_eq!(found.at_least_ns.0 + found.saves_at_most_ns.0, found.wall_ns.0);
        let mut at = Ns(found.at_least_ns.0 + found.running_ns.0);
        let parts: u64 = found.parts.iter().map(|part| part.ns.0).sum();
        assert_eq!(parts, at.0);
        for step in &found.steps {
            assert!(step.end_ns == at && step.begin_ns < at, "{step:?} does not end at {at:?}");
            at = step.begin_ns;
        }
        assert_eq!(at, Ns(0));
        found
    }
}

/// Within what the last call and clocks add.
fn is_about(found: Ns, ms: f64) -> bool {
    (found.as_f64() - ms * MS as f64).abs() < MS as f64 / 10.0
}

const NOTHING: &dyn Fn(u32) -> Ns = &|_| Ns(0);

#[test]
fn without_nothing_the_run_is_as_it_was() {
    let found = Convoy::new().without(&|_| false, NOTHING);
    assert_eq!((found.at_least_ns, found.saves_at_most_ns), (found.wall_ns, Ns(0)));
    assert_eq!((found.waits, found.waits_ns, found.running_ns), (0, Ns(0), Ns(0)));
}

#[test]
fn without_a_lock_threads_run_beside_each_other() {
    let found = Convoy::new().without(&|wait| wait.purpose.is_lock(), NOTHING);
    // The last one has worked for 11 ms then, and the first thread goes on for another.
    assert!(is_about(found.at_least_ns, 12.0), "{found:#?}");
    assert_eq!((found.waits, found.waits_ns), (1, Ns(9 * MS)));
    // It is no longer waited for the first worker, which is done before the other.
    assert!(found.steps.iter().all(|step| step.doing == Doing::Running), "{:#?}", found.steps);
}

#[test]
fn another_path_that_is_hardly_shorter_bounds_what_is_saved() {
    let mut convoy = Convoy::new();
    // The first worker ends at 19 ms.
    let process = &mut convoy.process.builder;
    process.timeline(convoy.first).work(8 * MS + MS / 2).end();
    let found = convoy.without(&|wait| wait.purpose.is_lock(), NOTHING);
    // It is not waited for, but it is part of the run.
    assert!(is_about(found.at_least_ns, 19.0), "{found:#?}");
}

#[test]
fn time_of_calls_is_taken_from_the_path_once_and_not_from_other_threads() {
    let convoy = Convoy::new();
    let (first, last) = (convoy.first.0, convoy.last.0);
    let found = convoy.without(&|_| false, &|thread| Ns(if thread == last { 4 * MS } else { 0 }));
    assert!(is_about(found.at_least_ns, 17.0) && found.running_ns == Ns(4 * MS), "{found:#?}");
    // At most as much as the thread runs on the path.
    let found = convoy.without(&|_| false, &|thread| Ns(if thread == first { 15 * MS } else { 0 }));
    assert!(is_about(found.running_ns, 10.0), "{found:#?}");
    // Of the time in the lock's calls, the long wait is gone already.
    let lock = |wait: &PathWait| wait.purpose.is_lock();
    let time = |thread: u32| Ns(if thread == last { 9 * MS } else { 0 });
    assert_eq!(convoy.without(&lock, &time).running_ns, Ns(0));
}

#[test]
fn what_no_thread_ends_takes_as_long_as_it_did() {
    let mut convoy = Convoy::new();
    let (of, ended_by, is_lock) = (convoy.last, None, false);
    convoy.waits.insert(1, Wait { of, from: 12, to: 15, ended_by, is_lock });
    let found = convoy.without(&|wait| wait.purpose.is_lock(), NOTHING);
    assert!(is_about(found.at_least_ns, 12.0), "{found:#?}");
    let is_sleep = |step: &&chase_analyzer::PathStep| matches!(step.doing, Doing::Waiting(_));
    let sleeps: Vec<_> = found.steps.iter().filter(is_sleep).collect();
    assert!(sleeps.len() == 1 && sleeps[0].end_ns.0 - sleeps[0].begin_ns.0 == 3 * MS);
    // Without any wait, what remains is the thread that works longest.
    let found = convoy.without(&|_| true, NOTHING);
    assert!(is_about(found.at_least_ns, 10.5), "{found:#?}");
    assert_eq!((found.waits, found.waits_ns), (3, Ns((9 + 3 + 19) * MS)));
}

#[test]
fn of_waits_that_overlap_only_the_part_is_gone_that_was_not_before() {
    let mut convoy = Convoy::new();
    let (of, ended_by, is_lock) = (convoy.last, Some(convoy.first), true);
    convoy.waits.insert(1, Wait { of, from: 8, to: 12, ended_by, is_lock });
    let found = convoy.without(&|wait| wait.purpose.is_lock(), NOTHING);
    assert_eq!((found.waits, found.waits_ns), (2, Ns((9 + 2) * MS)));
}

/// A convoy, and another thread of the first one that ends half a millisecond after the last one, which the first one has waited for.
fn with_ticker() -> (Convoy, ThreadId) {
    let mut convoy = Convoy::new();
    let process = &mut convoy.process.builder;
    let ticker = process.thread("ticker");
    process.timeline(ticker).work(20 * MS + MS / 2).end();
    process.thread_mut(ticker).creator = 0;
    (convoy, ticker)
}

#[test]
fn what_is_done_until_all_is_done_bounds_nothing() {
    let lock = |wait: &PathWait| wait.purpose.is_lock();
    let (convoy, ticker) = with_ticker();
    let found = convoy.without(&|_| false, NOTHING);
    assert_eq!(found.saves_at_most_ns, Ns(0));
    let found = convoy.without(&lock, NOTHING);
    assert!(is_about(found.at_least_ns, 12.0), "{found:#?}");
    // If it ends last, the path goes on with who told it to.
    let (mut convoy, ticker_of_two) = with_ticker();
    assert_eq!(ticker, ticker_of_two);
    convoy.process.builder.timeline(ticker).work(MS).end();
    let found = convoy.without(&lock, NOTHING);
    assert!(is_about(found.at_least_ns, 12.5), "{found:#?}");
    assert_eq!(found.steps[0].thread, ticker.0, "{:#?}", found.steps);
}

#[test]
fn who_gets_something_from_the_others_or_ends_long_after_them_has_its_own_to_do() {
    let lock = |wait: &PathWait| wait.purpose.is_lock();
    let (mut convoy, ticker) = with_ticker();
    let ended_by = Some(convoy.last);
    convoy.waits.push(Wait { of: ticker, from: 12, to: 13, ended_by, is_lock: false });
    // It need not wait for that without the lock, but does the rest.
    assert!(is_about(convoy.without(&lock, NOTHING).at_least_ns, 19.5));
    let (mut convoy, ticker) = with_ticker();
    convoy.process.builder.timeline(ticker).work(4 * MS).end();
    assert!(is_about(convoy.without(&lock, NOTHING).at_least_ns, 24.5));
}

const ROUNDS: u64 = 30;

/// The first thread waits for a lock that another one has for 5 of each 10 ms until 300 ms, works for as long, and waits for the other one's end then,
/// which comes after so many more of its rounds.
fn stopped_after(rounds: u64) -> WhatIf {
    let images = [stopping(rounds, true)];
    let analysis = Analysis::new(&images, Selection::All);
    let groups = Groups::new(&analysis, &Unnamed);
    let lock = |wait: &PathWait| wait.purpose.is_lock();
    let without = Without { wait: &lock, time: NOTHING, thread: &|_| false };
    what_if(&images, &analysis, &groups, &Unnamed, &without).expect("waits")
}

/// Its image, also without the lock.
fn stopping(rounds: u64, has_lock: bool) -> Image {
    let mut process = Process::new();
    let main = process.main;
    let end = 10 * (ROUNDS + rounds);
    let join = process.builder.slot(process.app, None, "pthread_join");
    process.builder.timeline(main).work(10 * ROUNDS * MS).call(join, (end - 10 * ROUNDS) * MS);
    process.builder.timeline(main).work(MS / 2).end();
    let other = process.builder.thread("other");
    process.builder.timeline(other).work(end * MS).end();
    process.builder.thread_mut(other).creator = 0;
    process.builder.end(END_EXIT, 0);
    let mut waits = Vec::new();
    for from in (0..ROUNDS + rounds).map(|round| 10 * round) {
        waits.push(Wait { of: other, from, to: from + 5, ended_by: None, is_lock: false });
        if has_lock && from < 10 * ROUNDS {
            let ended_by = Some(other);
            waits.push(Wait { of: main, from, to: from + 5, ended_by, is_lock: true });
        }
    }
    let (of, ended_by) = (main, Some(other));
    waits.push(Wait { of, from: 10 * ROUNDS, to: end, ended_by, is_lock: false });
    let refs = process.builder.context_refs();
    let last = *refs[main.0 as usize].last().expect("a context");
    let is_join = |wait: &Wait| wait.of == main && !wait.is_lock;
    let seen =
        waits::seen(
            process.builder.header.pid,
            &waits,
            |wait| if is_join(wait) { last } else { 0 },
        );
    let file = SyscallsFile::parse(seen.build()).unwrap();
    process.image().with_syscalls(Some(file))
}

/// Which thread runs or waits for how many ms on the critical path, from its end back; but for less than one.
fn path_of(image: Image) -> Vec<(u32, bool, u64)> {
    let images = [image];
    let analysis = Analysis::new(&images, Selection::All);
    let groups = Groups::new(&analysis, &Unnamed);
    let path = critical_path(&images, &analysis, &groups, &Unnamed, None).expect("a path");
    let steps = path.steps.iter();
    let steps = steps.map(|step| {
        let waits = matches!(step.doing, Doing::Waiting(_));
        (step.thread, waits, (step.end_ns.0 - step.begin_ns.0 + MS / 4) / MS)
    });
    steps.filter(|&(.., ms)| ms > 0).collect()
}

#[test]
fn a_thread_that_is_told_to_end_is_on_the_path_only_after_that() {
    let ticks = [(1, false, 5), (1, true, 5)];
    let expected = [&ticks[..], &ticks, &[(0, false, 10 * ROUNDS)]].concat();
    assert_eq!(path_of(stopping(2, false)), expected);
    // It does more than that on its own.
    assert_eq!(path_of(stopping(3, false)).len() as u64, 2 * (ROUNDS + 3));
}

#[test]
fn a_wait_is_on_the_path_only_after_its_thread_was_told_to_end() {
    let (mut convoy, ticker) = with_ticker();
    convoy.process.builder.timeline(ticker).work(MS).end();
    convoy.waits.push(Wait { of: ticker, from: 19, to: 21, ended_by: None, is_lock: false });
    let path = path_of(convoy.image());
    assert_eq!(path[..2], [(ticker.0, true, 1), (convoy.last.0, false, 10)], "{path:?}");
}

#[test]
fn who_is_told_to_end_by_who_works_itself_bounds_nothing() {
    // Half of 300 ms, and what is left of its last rounds.
    assert!(is_about(stopped_after(2).at_least_ns, 170.5));
    // It does more than that on its own.
    assert!(is_about(stopped_after(3).at_least_ns, 330.5));
}

#[test]
fn a_thread_that_waits_until_its_process_ends_bounds_nothing() {
    let mut convoy = Convoy::new();
    let helper = convoy.process.builder.thread("helper");
    convoy.process.builder.timeline(helper).work(21 * MS).end();
    convoy.waits.push(Wait { of: helper, from: 1, to: 21, ended_by: None, is_lock: false });
    let found = convoy.without(&|wait| wait.purpose.is_lock(), NOTHING);
    assert!(is_about(found.at_least_ns, 12.0), "{found:#?}");
}
