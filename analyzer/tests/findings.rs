//! Known answers: synthetic runs with one thing wrong, or nothing, and all that may be said of
//! them.

mod process;

use chase_analyzer::recorder::builder::{SlotId, ThreadId};
use chase_analyzer::{
    Analysis, Finding, FindingKind, GroupKind, Groups, Image, Ns, PartLevel, Selection, Tails,
    Unnamed, findings, group_tree, waits,
};
use process::Process;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A process whose threads call `work` and wait.
struct Pool {
    process: Process,
    work: SlotId,
    other: SlotId,
    lock: SlotId,
    barrier: SlotId,
    condition: SlotId,
    signal: SlotId,
    join: SlotId,
}

/// What came out.
struct Outcome {
    analysis: Analysis,
    groups: Groups,
    tails: Tails,
    findings: Vec<Finding>,
}

impl Pool {
    fn new() -> Self {
        let mut process = Process::new();
        let (app, liba) = (process.app, process.liba);
        let mut slot = |name| process.builder.slot(app, Some(liba), name);
        let (work, other) = (slot("work"), slot("other"));
        let (lock, barrier) = (slot("pthread_mutex_lock"), slot("pthread_barrier_wait"));
        let (condition, signal) = (slot("pthread_cond_wait"), slot("pthread_cond_signal"));
        let join = slot("pthread_join");
        Self { process, work, other, lock, barrier, condition, signal, join }
    }

    /// A thread with the start routine `routine`.
    fn thread(&mut self, name: &str, routine: u64) -> ThreadId {
        let avma = self.process.builder.object_mut(self.process.app).bias + 0x1000 + routine;
        let thread = self.process.builder.thread(name);
        self.process.builder.thread_mut(thread).start_routine_avma = avma;
        thread
    }

    fn workers(&mut self, count: usize, mut live: impl FnMut(&mut Self, usize, ThreadId)) {
        for number in 0..count {
            let thread = self.thread(&format!("worker-{number}"), 0x100);
            live(self, number, thread);
            self.process.builder.timeline(thread).end();
        }
    }

    fn call(&mut self, thread: ThreadId, slot: SlotId, ticks: u64, times: u64) {
        self.process.builder.timeline(thread).calls(slot, ticks, times);
    }

    /// The main thread waits for all others.
    fn finish(mut self) -> Outcome {
        let start = self.process.builder.header.clock_start.ticks;
        let now = self.process.builder.now_ticks();
        let (main, join) = (self.process.main, self.join);
        self.process.builder.timeline(main).call(join, now - start).end();
        outcome(vec![self.process.image()])
    }
}

fn outcome(images: Vec<Image>) -> Outcome {
    let analysis = Analysis::new(&images, Selection::All);
    let groups = Groups::new(&analysis, &Unnamed);
    let tails = Tails::new(&images, &analysis, &groups);
    let findings = findings(&analysis, &groups, &tails);
    Outcome { analysis, groups, tails, findings }
}

impl Outcome {
    /// The only finding: its kind, and API, threads and saving, which is right within 1 %.
    fn only(&self, api: Option<&str>, threads: &[u32], saves_ns: u64) -> &FindingKind {
        let [finding] = &*self.findings else { panic!("{:#?}", self.findings) };
        assert_eq!(self.api(finding.api), api);
        assert_eq!(finding.threads, threads);
        let error = finding.saves_ns.as_f64() / saves_ns as f64 - 1.0;
        assert!(error.abs() < 0.01, "{:?}, not {saves_ns}", finding.saves_ns);
        &finding.kind
    }

    fn api(&self, number: Option<u32>) -> Option<&str> {
        number.map(|number| self.analysis.apis[number as usize].symbol.as_str())
    }

    fn group(&self, threads: usize) -> &chase_analyzer::GroupRow {
        let mut rows = self.groups.rows.iter().filter(|row| row.threads == threads);
        let row = rows.next().expect("a group of that size");
        assert!(rows.next().is_none());
        row
    }
}

#[test]
fn one_slow_thread_of_many() {
    for threads in [3, 4, 8, 64, 1_000] {
        let mut pool = Pool::new();
        pool.workers(threads, |pool, number, thread| {
            let each = if number == 2 { 30 * US } else { 10 * US + number as u64 % 5 };
            pool.call(thread, pool.work, each, 1_000);
            pool.call(thread, pool.other, 5 * US, 100);
        });
        let outcome = pool.finish();
        let kind = outcome.only(Some("work"), &[3], 20 * MS);
        let FindingKind::SlowThreads { of_threads, useful_ns, .. } = kind else {
            panic!("{kind:?}")
        };
        assert_eq!((*of_threads, *useful_ns), (threads, Ns(30 * MS)));
        let group = outcome.group(threads);
        assert_eq!(group.kind, GroupKind::Created);
        assert_eq!(group.label, "app+0x1100");
        assert_eq!(group.useful.max_thread, 3);
    }
}

#[test]
fn balanced_threads_are_no_news() {
    for threads in [1, 2, 8, 300] {
        let mut pool = Pool::new();
        pool.workers(threads, |pool, number, thread| {
            let number = number as u64;
            pool.call(thread, pool.work, 20 * US + number * 7919 % 3_000, 1_000);
            pool.call(thread, pool.other, 5 * US + number * 104_729 % 500, 100);
            pool.call(thread, pool.barrier, 1_000, 10);
        });
        let outcome = pool.finish();
        assert!(outcome.findings.is_empty(), "{:#?}", outcome.findings);
    }
}

#[test]
fn a_slow_thread_that_others_wait_for_is_a_straggler() {
    let mut pool = Pool::new();
    pool.workers(4, |pool, number, thread| {
        for _ in 0..20 {
            let work = if number == 1 { 15 * MS } else { 5 * MS };
            pool.call(thread, pool.work, work, 1);
            pool.call(thread, pool.barrier, 15 * MS - work + 1_000, 1);
        }
    });
    let outcome = pool.finish();
    let kind = outcome.only(Some("work"), &[2], 200 * MS);
    let FindingKind::BarrierStraggler { median_wait_ns, own_wait_ns, .. } = kind else {
        panic!("{kind:?}")
    };
    assert_eq!((*median_wait_ns, *own_wait_ns), (Ns(200 * MS + 20_000), Ns(20_000)));
}

#[test]
fn a_slow_first_call() {
    let mut pool = Pool::new();
    let main = pool.process.main;
    pool.call(main, pool.work, 80 * MS, 1);
    pool.call(main, pool.work, 100 * US, 1_000);
    let outcome = pool.finish();
    let kind = outcome.only(Some("work"), &[0], 79_900 * US);
    let FindingKind::SlowFirstCall { first_ns, calls, .. } = kind else { panic!("{kind:?}") };
    assert_eq!((*first_ns, *calls), (Ns(80 * MS), 1_001));
}

/// What is slow inside is called once, so that it has no usual time to be slow by. Times are net of the hook's cost, as those
/// of the tails are.
#[test]
fn a_slow_first_call_is_that_of_the_slow_call_inside() {
    let mut pool = Pool::new();
    (pool.process.builder.header.cost_inside, pool.process.builder.header.cost_outside) =
        (300 * 1024, 200 * 1024);
    let main = pool.process.main;
    let (app, liba, libb) = (pool.process.app, pool.process.liba, pool.process.libb);
    let load = pool.process.builder.slot(liba, Some(libb), "load");
    let step = pool.process.builder.slot(libb, Some(app), "step");
    let mut timeline = pool.process.builder.timeline(main);
    timeline.enter(pool.work).work(MS).enter(load).calls(step, 10, 50_000).work(80 * MS).leave();
    timeline.leave();
    for _ in 0..1_000 {
        timeline.enter(pool.work).work(100 * US).leave();
    }
    let outcome = pool.finish();
    let [finding] = &*outcome.findings else { panic!("{:#?}", outcome.findings) };
    assert_eq!(outcome.api(finding.api), Some("work"));
    let FindingKind::SlowFirstCall { first_ns, inside, .. } = &finding.kind else {
        panic!("{finding:?}")
    };
    let inside = inside.expect("a call inside");
    assert_eq!((outcome.api(Some(inside.api)), inside.calls), (Some("load"), 1));
    assert!(inside.total_ns <= *first_ns, "{inside:?} of {first_ns:?}");
    let mut tails = outcome.tails.rows.iter();
    let tail = tails.find(|row| outcome.api(Some(row.api)) == Some("work")).expect("a tail");
    assert!(first_ns.0.abs_diff(tail.max_ns.0) <= 1, "{first_ns:?} and {:?}", tail.max_ns);
}

#[test]
fn a_slow_first_call_of_one_thread_makes_it_no_slow_thread() {
    let mut pool = Pool::new();
    pool.workers(8, |pool, number, thread| {
        if number == 0 {
            pool.call(thread, pool.work, 80 * MS, 1);
        }
        pool.call(thread, pool.work, 100 * US, 500);
    });
    let outcome = pool.finish();
    let kind = outcome.only(Some("work"), &[1], 79_900 * US);
    assert!(matches!(kind, FindingKind::SlowFirstCall { .. }), "{kind:?}");
}

#[test]
fn a_slow_call_in_the_middle_is_rare_and_not_first() {
    let mut pool = Pool::new();
    let main = pool.process.main;
    pool.call(main, pool.work, 100 * US, 500);
    pool.call(main, pool.work, 80 * MS, 1);
    pool.call(main, pool.work, 100 * US, 500);
    let outcome = pool.finish();
    let kind = outcome.only(Some("work"), &[0], 79_900 * US);
    let FindingKind::RareSlowCalls { slow_calls: 1, max_ns: Ns(max_ns), .. } = kind else {
        panic!("{kind:?}")
    };
    assert_eq!(*max_ns, 80 * MS);
}

#[test]
fn one_call_in_a_thousand() {
    let mut pool = Pool::new();
    // Called inside `other`, which is as slow for that reason only.
    let inner = pool.process.builder.slot(pool.process.liba, Some(pool.process.libb), "inner");
    pool.workers(4, |pool, _, thread| {
        let mut timeline = pool.process.builder.timeline(thread);
        for call in 1..=5_000_u64 {
            let ticks = if call % 1_000 == 7 { 2 * MS } else { 20 * US };
            timeline.enter(pool.other).work(2 * US).call(inner, ticks).leave();
        }
    });
    let outcome = pool.finish();
    let kind = outcome.only(Some("inner"), &[1, 2, 3, 4], 5 * 1_980 * US);
    let FindingKind::RareSlowCalls { calls, slow_calls, .. } = kind else { panic!("{kind:?}") };
    assert_eq!((*calls, *slow_calls), (20_000, 20));
    let row = outcome.tails.rows.iter().find(|row| outcome.api(Some(row.api)) == Some("inner"));
    let row = row.expect("a row");
    assert_eq!((row.max_ns, row.calls_above_p99, row.threads_above_p99), (Ns(2 * MS), 20, 4));
    assert!((row.tail_ratio.unwrap() - 1.0).abs() < 0.1, "exactly 1 in 1000 is above p99.9");
    assert!((row.p9999_ns.unwrap().as_f64() / (2 * MS) as f64 - 1.0).abs() < 0.07);
    let share = 20.0 * 2e6 / (20.0 * 2e6 + 19_980.0 * 20e3);
    let found = row.above_p99.unwrap();
    assert!((found - share).abs() < 0.01, "{found} and {share}");
    assert!(!row.sampled);
}

#[test]
fn one_thread_that_is_slow_in_all_calls_has_no_tail() {
    let mut pool = Pool::new();
    pool.workers(1_000, |pool, number, thread| {
        pool.call(thread, pool.work, if number == 500 { 2 * MS } else { 10 * US }, 100);
    });
    let outcome = pool.finish();
    let kind = outcome.only(Some("work"), &[501], 199 * MS);
    assert!(matches!(kind, FindingKind::SlowThreads { .. }), "{kind:?}");
}

#[test]
fn a_lock_that_serialises() {
    let mut pool = Pool::new();
    pool.workers(4, |pool, number, thread| {
        pool.call(thread, pool.lock, (15 + number as u64) * MS, 10);
        pool.call(thread, pool.work, 5 * MS, 10);
    });
    let outcome = pool.finish();
    let kind = outcome.only(Some("pthread_mutex_lock"), &[4, 3, 2, 1], 180 * MS);
    let FindingKind::SerialisingLock { all_wait_ns, inside, .. } = kind else { panic!("{kind:?}") };
    assert_eq!((*all_wait_ns, *inside), (Ns(660 * MS), None));
}

#[test]
fn consumers_that_starve() {
    let mut pool = Pool::new();
    let producer = pool.thread("producer", 0x200);
    let (work, signal) = (pool.work, pool.signal);
    let mut timeline = pool.process.builder.timeline(producer);
    for _ in 0..100 {
        timeline.call(work, 5 * MS).call(signal, 1_000);
    }
    timeline.end();
    pool.workers(3, |pool, _, thread| {
        pool.call(thread, pool.condition, 12 * MS, 33);
        pool.call(thread, pool.other, 3 * MS, 33);
    });
    let outcome = pool.finish();
    let kind = outcome.only(Some("pthread_cond_wait"), &[2, 3, 4], 396 * MS);
    let FindingKind::StarvedConsumers { producer, signals, .. } = kind else { panic!("{kind:?}") };
    assert_eq!((*producer, *signals), (1, 100));
}

#[test]
fn idle_threads_do_not_starve() {
    let mut pool = Pool::new();
    // Busy, but it wakes nobody.
    let busy = pool.thread("busy", 0x200);
    pool.call(busy, pool.work, 5 * MS, 100);
    pool.process.builder.timeline(busy).end();
    pool.workers(3, |pool, _, thread| {
        pool.call(thread, pool.condition, 12 * MS, 33);
        pool.call(thread, pool.other, 3 * MS, 33);
    });
    let findings = pool.finish().findings;
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn many_tiny_calls() {
    let mut pool = Pool::new();
    let main = pool.process.main;
    pool.call(main, pool.other, 100 * US, 1_000);
    pool.call(main, pool.work, 200, 1_000_000);
    let outcome = pool.finish();
    let kind = outcome.only(Some("work"), &[0], 200 * MS);
    assert!(matches!(kind, FindingKind::ManyTinyCalls { calls: 1_000_000, .. }), "{kind:?}");
}

#[test]
fn two_behaviours_behind_one_start_routine() {
    let mut pool = Pool::new();
    pool.workers(10, |pool, number, thread| {
        let (slot, ticks) =
            if number % 2 == 0 { (pool.work, 10 * US) } else { (pool.other, 30 * US) };
        pool.call(thread, slot, ticks + number as u64, 1_000);
    });
    let outcome = pool.finish();
    let [finding] = &*outcome.findings else { panic!("{:#?}", outcome.findings) };
    let FindingKind::SubGroups { parts, silhouette } = &finding.kind else { panic!("{finding:?}") };
    assert!(*silhouette > 0.9);
    let parts: Vec<_> =
        parts.iter().map(|part| (part.threads, outcome.api(part.api).unwrap())).collect();
    assert_eq!(parts, [(5, "work"), (5, "other")]);
    assert_eq!((finding.saves_ns, finding.threads.len()), (Ns(0), 10));
}

#[test]
fn a_slow_thread_is_compared_with_those_that_do_the_same() {
    let mut pool = Pool::new();
    pool.workers(16, |pool, number, thread| {
        let (slot, ticks) =
            if number % 2 == 0 { (pool.work, 10 * US) } else { (pool.other, 50 * US) };
        let ticks = if number == 4 { 3 * ticks } else { ticks };
        pool.call(thread, slot, ticks + number as u64, 1_000);
    });
    let outcome = pool.finish();
    let [slow, parts] = &*outcome.findings else { panic!("{:#?}", outcome.findings) };
    assert!(matches!(parts.kind, FindingKind::SubGroups { .. }));
    assert!(matches!(slow.kind, FindingKind::SlowThreads { .. }));
    assert_eq!((&*slow.threads, slow.saves_ns.0 / MS), (&[5][..], 19));
}

/// Ten thousand threads, fifty at a time.
#[test]
fn short_lived_threads_fold_into_one_group_with_their_extremes() {
    let mut pool = Pool::new();
    let start = pool.process.builder.header.clock_start.ticks;
    for number in 0..10_000_u64 {
        let thread = pool.thread("task", 0x100);
        pool.process.builder.thread_mut(thread).start_ticks = start + number / 50 * MS;
        let ticks = match number {
            7_777 => 40 * MS,
            3_333 => 10 * US,
            _ => 900 * US,
        };
        pool.process.builder.timeline(thread).call(pool.work, ticks).end();
    }
    let outcome = pool.finish();
    assert_eq!(outcome.groups.rows.len(), 2);
    let group = outcome.group(10_000);
    assert_eq!(group.concurrency, 51, "one lives on while later ones come and go");
    let lifetime = group.lifetime;
    assert_eq!((lifetime.min_ns, lifetime.min_thread), (Ns(10 * US), 3_334));
    assert_eq!((lifetime.max_ns, lifetime.max_thread), (Ns(40 * MS), 7_778));
    assert_eq!(lifetime.median_ns, Ns(900 * US));
    assert!(group.unlike_lifetimes && !group.as_rates);
    let kind = outcome.only(Some("work"), &[7_778], 39_100 * US);
    assert!(matches!(kind, FindingKind::SlowThreads { .. }), "{kind:?}");
}

/// A pool that grows: later threads did less because they had less time.
#[test]
fn threads_that_end_together_are_compared_by_rate() {
    let mut pool = Pool::new();
    let start = pool.process.builder.header.clock_start.ticks;
    pool.workers(8, |pool, number, thread| {
        let late = number as u64 * 100;
        pool.process.builder.thread_mut(thread).start_ticks = start + late * MS;
        pool.call(thread, pool.work, MS, 1_000 - late);
    });
    let outcome = pool.finish();
    assert!(outcome.findings.is_empty(), "{:#?}", outcome.findings);
    let group = outcome.group(8);
    assert!(group.as_rates && group.unlike_lifetimes && group.outliers.is_empty());
    assert!(group.comparison.imbalance < 0.001 && group.comparison.load_balance > 0.999);
}

#[test]
fn groups_keep_apart_what_runs_different_code() {
    let mut pool = Pool::new();
    for (name, routine) in [("io-1", 0x100), ("io-2", 0x100), ("cpu-1", 0x100), ("io-1", 0x200)] {
        let thread = pool.thread(name, routine);
        pool.process.builder.timeline(thread).work(MS).end();
    }
    let outcome = pool.finish();
    let mut labels: Vec<_> =
        outcome.groups.rows.iter().map(|row| (row.label.as_str(), row.threads)).collect();
    labels.sort_unstable();
    assert_eq!(labels, [("app+0x1100", 3), ("app+0x1200", 1), ("main of app", 1)]);
    // They all do the same, whatever they are called.
    assert!(outcome.groups.rows.iter().all(|row| row.parts.is_empty()));
}

/// Names and creation sites open a level below the start routine where they go with what threads do.
#[test]
fn levels_of_a_group_are_opened_where_they_tell_something() {
    let parts = |of: &dyn Fn(usize) -> (&'static str, u64), does: &dyn Fn(usize) -> u64| {
        let mut pool = Pool::new();
        for number in 0..6 {
            let (name, site) = of(number);
            let thread = pool.thread(&format!("{name}-{number}"), 0x100);
            let object = pool.process.builder.object_mut(pool.process.app).bias;
            pool.process.builder.thread_mut(thread).creation_site_avma = object + 0x1000 + site;
            pool.call(thread, pool.work, MS, does(number));
            pool.call(thread, pool.lock, MS, 100 - does(number));
            pool.process.builder.timeline(thread).end();
        }
        let outcome = pool.finish();
        let group = outcome.groups.rows.iter().find(|row| row.threads == 6).unwrap();
        let parts = group.parts.iter().map(|part| (part.level, part.name.clone(), part.threads));
        let all: usize = group.parts.iter().map(|part| part.members.len()).sum();
        assert!(all == 0 || all == 6);
        (parts.collect::<Vec<_>>(), group.outliers.len())
    };
    let two_kinds = |number: usize| if number < 2 { 90 } else { 40 };
    let alike = |_: usize| 60;
    let by_name = |number: usize| (if number < 2 { "cpu" } else { "io" }, 0x10);
    let by_site = |number: usize| ("worker", if number < 2 { 0x10 } else { 0x900 });
    let near = |number: usize| ("worker", if number < 2 { 0x10 } else { 0x30 });
    let name = |name: &str, threads| (PartLevel::Name, format!("{name}-*"), threads);
    assert_eq!(parts(&by_name, &two_kinds), (vec![name("cpu", 2), name("io", 4)], 0));
    let site = |threads| (PartLevel::CreationSite, "worker-*".to_owned(), threads);
    assert_eq!(parts(&by_site, &two_kinds), (vec![site(2), site(4)], 0));
    for of in [&by_name as &dyn Fn(usize) -> (&'static str, u64), &by_site] {
        assert_eq!(parts(of, &alike).0, []);
    }
    assert_eq!(parts(&near, &two_kinds).0, [], "an unrolled loop");
}

#[test]
fn waits_by_cause_and_group() {
    let mut pool = Pool::new();
    pool.workers(2, |pool, _, thread| {
        pool.call(thread, pool.barrier, 10 * MS, 2);
        pool.call(thread, pool.lock, 5 * MS, 2);
        pool.call(thread, pool.work, 10 * MS, 1);
    });
    let outcome = pool.finish();
    let group = outcome.group(2);
    let found: Vec<_> = group.waits.iter().map(|w| (format!("{:?}", w.cause), w.wait_ns)).collect();
    assert_eq!(found, [("Barrier".to_owned(), Ns(40 * MS)), ("Lock".to_owned(), Ns(20 * MS))]);
    assert_eq!(group.wait_ns, Ns(60 * MS));
    assert_eq!((group.useful.median_ns, group.comparison.load_balance), (Ns(10 * MS), 1.0));
    assert!((group.comparison.parallel_efficiency - 0.25).abs() < 1e-9);
    let rows = waits(&outcome.analysis, &outcome.groups);
    let rows: Vec<_> =
        rows.iter().map(|row| (outcome.api(row.api).unwrap(), row.wait_ns.0 / MS)).collect();
    let expected = [("pthread_barrier_wait", 40), ("pthread_join", 40), ("pthread_mutex_lock", 20)];
    assert_eq!(rows, expected);
}

#[test]
fn the_branch_in_which_a_thread_differs_stands_out() {
    let mut pool = Pool::new();
    let inner = pool.process.builder.slot(pool.process.liba, Some(pool.process.libb), "inner");
    pool.workers(5, |pool, number, thread| {
        let ticks = if number == 3 { 9 * MS } else { MS };
        let mut timeline = pool.process.builder.timeline(thread);
        timeline.enter(pool.other).work(MS).call(inner, ticks).leave().call(pool.work, MS);
    });
    let outcome = pool.finish();
    let tree = group_tree(&outcome.analysis, outcome.group(5));
    let rows: Vec<_> = tree
        .iter()
        .map(|row| {
            let spread = [row.spread.min_ns, row.spread.median_ns, row.spread.max_ns];
            (
                row.depth,
                outcome.api(Some(row.api)).unwrap(),
                spread.map(|ns| ns.0 / MS),
                row.threads,
            )
        })
        .collect();
    let expected =
        [(0, "other", [2, 2, 10], 5), (1, "inner", [1, 1, 9], 5), (0, "work", [1, 1, 1], 5)];
    assert_eq!(rows, expected);
    assert_eq!(tree[1].spread.max_thread, 4);
}

#[test]
fn findings_serialize() {
    let mut pool = Pool::new();
    let main = pool.process.main;
    pool.call(main, pool.work, 80 * MS, 1);
    pool.call(main, pool.work, 100 * US, 1_000);
    let json = serde_json::to_value(&pool.finish().findings).unwrap();
    assert_eq!(json[0]["kind"], "slow-first-call");
    assert_eq!(json[0]["evidence"]["calls"], 1_001);
    let saves_ns = json[0]["saves_ns"].as_u64().unwrap();
    assert!(saves_ns.abs_diff(79_900 * US) < 10 * US, "{saves_ns}");
}

/// Times and counts of a damaged recording may be anything.
#[test]
fn nonsense_gives_no_panic() {
    use chase_analyzer::recorder::{builder::sample, reader::Recording};
    let whole = sample().build();
    let mut random = 1_u64;
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..40 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (random >> 20) as usize % bytes.len();
            bytes[at] = (random >> 12) as u8;
        }
        let Ok(recording) = Recording::parse(bytes) else { continue };
        let outcome = outcome(vec![Image::of("damaged.chase".into(), recording)]);
        for row in &outcome.groups.rows {
            assert!(group_tree(&outcome.analysis, row).len() <= outcome.analysis.contexts.len());
        }
        let _ = waits(&outcome.analysis, &outcome.groups);
    }
}
