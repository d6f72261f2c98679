//! Groups of threads: who is in which, how they compare, what they wait for.

mod pool;
mod process;

use chase_analyzer::{
    Closure, FindingKind, Groups, Naming, Ns, PartLevel, Reason, ThreadOrigin, ThreadRow, Why,
    group_tree, waits,
};
use pool::{MS, Pool, US};

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

/// Why the only finding says that thread 3 of five is slow, if it makes so many calls of so long.
fn why(calls: u64, ticks: u64) -> Why {
    let mut pool = Pool::new();
    pool.workers(5, |pool, number, thread| {
        let (calls, ticks) = if number == 2 { (calls, ticks) } else { (1_000, 20 * US) };
        pool.call(thread, pool.work, ticks, calls);
    });
    let outcome = pool.finish();
    match outcome.only(Some("work"), &[3], calls * ticks - 20 * MS) {
        FindingKind::SlowThreads { why: Some(why), .. } => *why,
        kind => panic!("{kind:?}"),
    }
}

#[test]
fn a_slow_thread_made_more_calls_or_slower_ones() {
    let more = why(3_000, 20 * US);
    assert_eq!(more.mainly, Some(Reason::MoreCalls));
    assert_eq!((more.calls, more.median_calls, more.calls_ratio), (3_000, 1_000.0, 3.0));
    assert!((more.each_ratio - 1.0).abs() < 1e-6, "{more:?}");
    let slower = why(1_000, 60 * US);
    assert_eq!(slower.mainly, Some(Reason::SlowerCalls));
    assert_eq!((slower.calls, slower.median_calls), (1_000, 1_000.0));
    assert!((slower.each_ratio - 3.0).abs() < 1e-6, "{slower:?}");
    assert!((slower.each_ns - 60e3).abs() < 1.0 && (slower.median_each_ns - 20e3).abs() < 1.0);
    // Twice as many, of four times the time.
    assert_eq!(why(2_000, 80 * US).mainly, Some(Reason::SlowerCalls));
}

/// One of threads that end together does three times as much in its life as they do in as long a one.
#[test]
fn calls_are_compared_by_rate_where_times_are() {
    let mut pool = Pool::new();
    let start = pool.process.builder.header.clock_start.ticks;
    pool.workers(8, |pool, number, thread| {
        let late = number as u64 * 100;
        pool.process.builder.thread_mut(thread).start_ticks = start + late * MS;
        let (calls, ticks) = if number == 4 { (1_800, MS / 3) } else { (1_000 - late, MS / 2) };
        pool.call(thread, pool.work, ticks, calls);
        let idle = (1_000 - late) * MS - calls * ticks;
        pool.call(thread, pool.condition, idle, 1);
    });
    let outcome = pool.finish();
    let group = outcome.group(8);
    let outlier = group.outliers.first().expect("one that did more");
    let why = outlier.apis[0].why.expect("calls");
    assert!(group.as_rates && outlier.thread == 5, "{outlier:?}");
    assert!((why.calls_ratio - 3.0).abs() < 0.01, "{why:?}");
    assert!((why.median_calls - 600.0).abs() < 1.0 && why.calls == 1_800, "{why:?}");
    assert_eq!(why.mainly, Some(Reason::MoreCalls));
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

/// Closures of one function, of which only the first one's own line is known, if any.
struct Closures;

impl Naming for Closures {
    fn runs(&self, _: &ThreadRow) -> Option<String> {
        Some("main::{closure}".to_owned())
    }

    fn closure(&self, thread: &ThreadRow) -> Option<Closure> {
        let svma = thread.start_routine?.svma?;
        let (source, is_in_program) = match svma {
            0x1100 => ("main.rs:10", true),
            _ => ("backtrace.rs:162", false),
        };
        Some(Closure { svma, source: Some(source.to_owned()), is_in_program })
    }

    fn created_in(&self, _: &ThreadRow) -> Option<String> {
        None
    }
}

#[test]
fn closures_whose_lines_are_a_librarys_are_called_by_their_threads_names() {
    let labels = |names: [&str; 4]| {
        let mut pool = Pool::new();
        for (name, routine) in names.into_iter().zip([0x100, 0x200, 0x300, 0x300]) {
            let thread = pool.thread(name, routine);
            pool.process.builder.timeline(thread).work(MS).end();
        }
        let groups = Groups::new(&pool.finish().analysis, &Closures);
        let labels = groups.rows.into_iter().map(|row| row.label);
        let mut labels: Vec<_> = labels.filter(|label| label.contains("closure")).collect();
        labels.sort_unstable();
        labels
    };
    assert_eq!(
        labels(["reader", "parser", "writer-1", "writer-2"]),
        ["main::{closure} at main.rs:10", "main::{closure} “parser”", "main::{closure} “writer-*”"]
    );
    // Threads with several names have none in common.
    assert_eq!(
        labels(["reader", "parser", "writer", "printer"])[0],
        "main::{closure} at backtrace.rs:162"
    );
}

/// Threads that a scheduler has its tasks run by.
struct Scheduled;

impl Naming for Scheduled {
    fn runs(&self, _: &ThreadRow) -> Option<String> {
        Some("goroutines".to_owned())
    }

    fn takes_any_task(&self, _: &ThreadRow) -> bool {
        true
    }

    fn created_in(&self, _: &ThreadRow) -> Option<String> {
        None
    }
}

/// Which of them ran most tasks is chance.
#[test]
fn threads_of_a_scheduler_are_not_compared() {
    let mut pool = Pool::new();
    pool.workers(5, |pool, number, thread| {
        let calls = if number == 2 { 3_000 } else { 1_000 };
        pool.call(thread, pool.work, 20 * US, calls);
    });
    let outcome = pool.finish();
    assert!(outcome.findings.iter().any(|finding| finding.threads == [3]));
    let groups = Groups::new(&outcome.analysis, &Scheduled);
    let group = groups.rows.iter().find(|row| row.threads == 5).expect("their group");
    assert!(group.takes_any_task && group.outliers.is_empty() && group.sub_groups.is_empty());
}

/// What some threads were found to run.
struct Runs(Option<&'static str>);

impl Naming for Runs {
    fn runs(&self, _: &ThreadRow) -> Option<String> {
        self.0.map(str::to_owned)
    }

    fn created_in(&self, _: &ThreadRow) -> Option<String> {
        None
    }
}

/// Threads that were there before the recording are a group by what they run, with those that were created since. If that is not known, nor do they have names,
/// they need not do the same.
#[test]
fn found_threads_are_compared_if_it_is_known_what_they_run() {
    let mut pool = Pool::new();
    pool.workers(5, |pool, number, thread| {
        let calls = if number == 2 { 3_000 } else { 1_000 };
        pool.call(thread, pool.work, 20 * US, calls);
    });
    let mut analysis = pool.finish().analysis;
    let worker = |row: &&mut ThreadRow| row.origin == ThreadOrigin::Created;
    for (row, name) in analysis.threads.iter_mut().filter(worker).zip(["app"; 4]) {
        (row.origin, row.name) = (ThreadOrigin::Found, name.to_owned());
    }
    for process in &mut analysis.processes {
        process.executable = "/bin/app".to_owned();
    }
    let known = Groups::new(&analysis, &Runs(Some("worker")));
    let group = known.rows.iter().find(|row| row.label == "worker").expect("one group");
    assert!(group.threads == 5 && !group.outliers.is_empty());

    let unknown = Groups::new(&analysis, &Runs(None));
    let group = unknown.rows.iter().find(|row| row.threads == 4).expect("those found");
    assert!(group.label.ends_with("not seen to start"), "{}", group.label);
    assert!(group.is_unknown && group.outliers.is_empty() && group.sub_groups.is_empty());

    for row in analysis.threads.iter_mut().filter(|row| row.origin == ThreadOrigin::Found) {
        row.name = "pool-7".to_owned();
    }
    let named = Groups::new(&analysis, &Runs(None));
    let group = named.rows.iter().find(|row| row.threads == 4).expect("those found");
    assert!(!group.is_unknown && !group.outliers.is_empty());
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
