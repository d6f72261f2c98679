//! Known answers: synthetic runs with one thing wrong, or nothing, and all that may be said of
//! them.

mod pool;
mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::layout::{END_EXEC, END_EXIT, ORIGIN_FORK};
use chase_analyzer::recorder::syscalls::{WAIT_PREEMPTED, WAIT_VOLUNTARY};
use chase_analyzer::{Finding, FindingKind, GroupKind, Image, Ns, group_tree, waits};
use pool::{MS, Pool, US, outcome};

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

/// A first call takes 80 ms, so many of them in 20 calls of `dlopen`: what is found.
fn found_of_first_call(loading_ms: u64) -> Vec<&'static str> {
    let mut pool = Pool::new();
    let main = pool.process.main;
    let (liba, libb) = (pool.process.liba, pool.process.libb);
    let load = pool.process.builder.slot(liba, Some(libb), "dlopen");
    let mut timeline = pool.process.builder.timeline(main);
    timeline.enter(pool.work).calls(load, 20, loading_ms * MS / 20);
    timeline.work((80 - loading_ms) * MS).leave();
    for _ in 0..1_000 {
        timeline.enter(pool.work).work(100 * US).leave();
    }
    let found = pool.finish().findings.into_iter().map(|finding| match finding.kind {
        FindingKind::SlowFirstCall { .. } => "first call",
        FindingKind::SlowLoading { .. } => "loading",
        other => panic!("{other:?}"),
    });
    found.collect()
}

#[test]
fn a_first_call_that_is_slow_since_it_loads_libraries_is_told_once() {
    assert_eq!(found_of_first_call(60), ["loading"]);
    assert_eq!(found_of_first_call(20), ["first call", "loading"]);
    // That is too little to be told.
    assert_eq!(found_of_first_call(5), ["first call"]);
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
fn many_tiny_calls_are_a_share_of_the_time_without_waits_for_a_processor() {
    let mut pool = Pool::new();
    let thread = pool.thread("busy", 0x300);
    pool.call(thread, pool.work, 800, 1_000_000);
    pool.process.builder.timeline(thread).end();
    let pid = pool.process.builder.header.pid;
    let outcome = pool.finish_seen(|refs| {
        let (tid, context) = (pid + thread.0, refs[thread.0 as usize][1]);
        let mut seen = SyscallsBuilder::new(pid);
        seen.on_cpu(tid, 400 * MS).wait(context, tid, WAIT_PREEMPTED, 400, MS);
        seen
    });
    let mut kinds = outcome.findings.iter().map(|finding| &finding.kind);
    let is_tiny = |kind: &&FindingKind| matches!(kind, FindingKind::ManyTinyCalls { .. });
    let Some(FindingKind::ManyTinyCalls { of_lifetime, all_ns, runnable_ns, .. }) =
        kinds.find(is_tiny)
    else {
        panic!("{:#?}", outcome.findings)
    };
    assert_eq!((*all_ns, *runnable_ns), (Ns(400 * MS), Ns(400 * MS)));
    assert!((of_lifetime - 1.0).abs() < 0.01, "{of_lifetime}");
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
fn more_and_less_of_the_same_is_one_behaviour() {
    let mut pool = Pool::new();
    pool.workers(10, |pool, number, thread| {
        let other = if number % 2 == 0 { 6 * US } else { US };
        pool.call(thread, pool.work, 10 * US + number as u64, 1_000);
        pool.call(thread, pool.other, other, 1_000);
    });
    let outcome = pool.finish();
    assert_eq!(outcome.group(10).sub_groups.len(), 2, "the clusters are there");
    assert!(outcome.findings.is_empty(), "{:#?}", outcome.findings);
}

/// A server's threads for its clients, some of which only ask something and go: what these do is no behaviour of the group.
#[test]
fn threads_that_are_over_soon_are_no_behaviour_of_their_group() {
    let mut pool = Pool::new();
    pool.workers(10, |pool, number, thread| {
        let few = number % 3 == 0;
        let (slot, times) = if few { (pool.other, 30) } else { (pool.work, 1_000) };
        pool.call(thread, slot, 30 * US + number as u64, times);
    });
    let outcome = pool.finish();
    assert_eq!(outcome.group(10).sub_groups.len(), 2, "the clusters are there");
    assert!(outcome.findings.is_empty(), "{:#?}", outcome.findings);
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

/// Where nobody watched the scheduler, several threads of many that are held up in their own code for longer than they ran in
/// their lives had no processor.
#[test]
fn threads_without_a_processor_are_not_slow() {
    let held_up = [3, 9, 17];
    let found = |ran_ns: u64| {
        let mut pool = Pool::new();
        pool.workers(80, |pool, number, thread| {
            pool.call(thread, pool.work, 5 * MS, 40);
            if held_up.contains(&number) {
                pool.process.builder.timeline(thread).work((70 + number as u64) * MS);
            }
            pool.process.builder.thread_mut(thread).cpu_ns = ran_ns;
            pool.process.builder.thread_mut(thread).cpu_is_final = 1;
        });
        pool.finish()
    };
    assert!(found(2 * MS).findings.is_empty(), "{:#?}", found(2 * MS).findings);
    let ran = found(300 * MS);
    let [slow] = &*ran.findings else { panic!("{:#?}", ran.findings) };
    assert!(matches!(slow.kind, FindingKind::SlowThreads { .. }));
    let mut threads = slow.threads.clone();
    threads.sort_unstable();
    assert_eq!((slow.api, &*threads), (None, &held_up.map(|number| number as u32 + 1)[..]));
}

/// Findings about a shell's forks, one of which runs in its own code for much longer. Every `exec_each`th becomes another program.
fn of_forks(ran_ns: Option<u64>, exec_each: Option<u32>) -> Vec<Finding> {
    let mut images = vec![{
        let mut pool = Pool::new();
        let main = pool.process.main;
        pool.call(main, pool.work, MS, 1);
        pool.process.builder.timeline(main).work(500 * MS).end();
        pool.process.builder.end(END_EXIT, 0);
        pool.process.image()
    }];
    for number in 0..12 {
        let mut pool = Pool::new();
        let main = pool.process.main;
        pool.process.builder.header.pid = 2_000 + number;
        pool.process.builder.header.parent_pid = 1_000;
        pool.process.builder.header.origin = ORIGIN_FORK;
        pool.call(main, pool.work, 5 * MS, 4);
        let own = if number == 3 { 400 * MS } else { 2 * MS };
        pool.process.builder.timeline(main).work(own).end();
        if let Some(ran_ns) = ran_ns {
            pool.process.builder.thread_mut(main).cpu_ns = ran_ns;
            pool.process.builder.thread_mut(main).cpu_is_final = 1;
        }
        let is_replaced = exec_each.is_some_and(|each| number % each == 0);
        pool.process.builder.end(if is_replaced { END_EXEC } else { END_EXIT }, 0);
        let mut image = pool.process.image();
        image.parent = Some(0);
        images.push(image);
    }
    outcome(images).findings
}

/// One of a shell's forks is held up in its own code: alone, too, it is believed only if it has run for that long.
#[test]
fn a_fork_that_has_hardly_run_is_not_slow() {
    let found = |ran_ns: Option<u64>| of_forks(ran_ns, None);
    assert!(found(Some(2 * MS)).is_empty(), "{:#?}", found(Some(2 * MS)));
    assert!(found(None).is_empty(), "{:#?}", found(None));
    let ran = found(Some(420 * MS));
    let [slow] = &*ran else { panic!("{ran:#?}") };
    assert!(matches!(slow.kind, FindingKind::SlowThreads { .. }), "{slow:?}");
}

#[test]
fn forks_that_become_commands_share_no_work() {
    let found = |exec_each: u32| of_forks(Some(420 * MS), Some(exec_each));
    assert!(found(1).is_empty(), "{:#?}", found(1));
    assert!(found(2).is_empty(), "{:#?}", found(2));
    // A server's workers do, though it starts a program now and then.
    assert_eq!(found(6).len(), 1);
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

/// On a crowded machine, one of several threads gets more of the processors, and does more of the work. All end together; that the others
/// waited for memory meanwhile (in their own code, and in no system call), or for a condition, is not the same.
#[test]
fn others_that_wait_for_memory_have_something_to_do() {
    let found = |is_memory: bool| {
        let mut pool = Pool::new();
        pool.workers(6, |pool, number, thread| {
            let ran = if number == 2 { 300 * MS } else { 100 * MS };
            pool.call(thread, pool.work, MS, ran / MS);
            if is_memory {
                pool.process.builder.timeline(thread).work(500 * MS - ran);
            } else {
                pool.call(thread, pool.condition, 500 * MS - ran, 1);
            }
        });
        let pid = pool.process.builder.header.pid;
        let outcome = pool.finish_seen(|refs| {
            let mut seen = SyscallsBuilder::new(pid);
            for number in 0..6_u32 {
                let (tid, refs) = (pid + number + 1, &refs[number as usize + 1]);
                let context = refs[if is_memory { 0 } else { 2 }];
                let ran = if number == 2 { 300 * MS } else { 100 * MS };
                seen.on_cpu(tid, ran).wait(context, tid, WAIT_PREEMPTED, 200, MS);
                if number != 2 {
                    seen.wait(context, tid, WAIT_VOLUNTARY, 1, 200 * MS);
                }
            }
            seen
        });
        let mut kinds = outcome.findings.iter().map(|finding| &finding.kind);
        kinds.any(|kind| matches!(kind, FindingKind::SlowThreads { .. }))
    };
    assert_eq!((found(true), found(false)), (false, true));
}
