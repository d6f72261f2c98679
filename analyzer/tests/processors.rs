//! More threads than processors, or than they may use.

mod pool;
mod process;

use chase_analyzer::FindingKind;
use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::syscalls::WAIT_PREEMPTED;
use pool::{MS, Outcome, Pool};

/// Four threads want processors for a second each, of a machine with so many, and have none for half of it, in this function; `more`
/// says more of each thread's time on the CPU.
fn wanting_in(
    function: &str,
    processors: u64,
    more: impl Fn(&mut SyscallsBuilder, u32),
) -> Outcome {
    wanting(function, processors, 500 * MS, more)
}

/// The same, with one for so long.
fn wanting(
    function: &str,
    processors: u64,
    on_ns: u64,
    more: impl Fn(&mut SyscallsBuilder, u32),
) -> Outcome {
    let mut pool = Pool::new();
    let (app, libb) = (pool.process.app, pool.process.libb);
    let slot = pool.process.builder.slot(app, Some(libb), function);
    pool.workers(4, |pool, _, thread| {
        pool.call(thread, slot, 1000 * MS - on_ns, 1);
        pool.call(thread, pool.work, on_ns, 1);
    });
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|refs| {
        let mut seen = SyscallsBuilder::new(pid);
        seen.header.processors = processors;
        for number in 1..=4_u32 {
            let (tid, context) = (pid + number, refs[number as usize][1]);
            more(seen.on_cpu(tid, on_ns), number);
            if seen.header.user_only == 0 {
                seen.wait(context, tid, WAIT_PREEMPTED, 1, 1000 * MS - on_ns);
            }
        }
        seen
    })
}

/// Of how many processors there are too many threads, and of which machine.
fn too_many(outcome: &Outcome) -> Option<(u64, u64)> {
    outcome.findings.iter().find_map(|finding| match finding.kind {
        FindingKind::TooManyThreads { processors, of_machine, .. } => {
            Some((processors, of_machine))
        }
        _ => None,
    })
}

#[test]
fn who_gives_the_processor_up_does_not_want_it() {
    assert_eq!(too_many(&wanting_in("compute", 2, |_, _| ())), Some((2, 2)));
    assert_eq!(too_many(&wanting_in("sched_yield", 2, |_, _| ())), None);
}

/// What others have of the processors, fewer threads would not have either.
#[test]
fn processors_that_others_have_are_not_for_fewer_threads() {
    let on = |on_ns| too_many(&wanting("compute", 2, on_ns * MS, |_, _| ()));
    assert_eq!([on(450), on(350), on(100)], [Some((2, 2)), None, None]);
}

#[test]
fn processors_that_threads_may_not_run_on_are_none() {
    assert_eq!(too_many(&wanting_in("compute", 8, |_, _| ())), None);
    // All of them on the same two.
    let all = wanting_in("compute", 8, |seen, _| {
        seen.confined_to(2, 4);
    });
    assert_eq!(too_many(&all), Some((2, 8)));
    // Each on one of its own, where it waits for others.
    let own = wanting_in("compute", 8, |seen, number| {
        seen.confined_to(1, number as u16);
    });
    assert_eq!(too_many(&own), None);
    // Some on one, others on any.
    let some = wanting_in("compute", 8, |seen, number| {
        seen.confined_to(if number < 4 { 1 } else { 8 }, 0);
    });
    assert_eq!(too_many(&some), Some((1, 8)));
}

/// The same with a control group that may use two processors, and had to wait in so many of 20 periods; perhaps seen without privilege.
fn limited(used_up_in: u64, user_only: bool) -> Outcome {
    wanting_in("compute", 8, |seen, _| {
        let header = &mut seen.header;
        header.user_only = u64::from(user_only);
        (header.quota, header.quota_periods) = (2000, 20);
        (header.quota_spent_periods, header.quota_waited_ns) = (used_up_in, 400 * MS);
        header.quota_group[..4].copy_from_slice(b"/app");
    })
}

#[test]
fn a_limit_that_is_used_up_is_the_cause() {
    for user_only in [false, true] {
        let outcome = limited(18, user_only);
        let [finding] = &outcome.findings[..] else { panic!("{:?}", outcome.findings) };
        let FindingKind::UsedUpQuota {
            processors,
            control_group,
            periods,
            used_up_in,
            waiting_ns,
            ..
        } = &finding.kind
        else {
            panic!("{finding:?}")
        };
        assert!((processors - 2.0).abs() < 1e-9);
        assert_eq!((&**control_group, *periods, *used_up_in), ("/app", 20, 18));
        assert_eq!(waiting_ns.map(|ns| ns.0), (!user_only).then_some(2000 * MS));
        // No more than the group waited.
        assert_eq!(finding.saves_ns.0, 400 * MS);
    }
    // A limit that is reached once in a while is none.
    assert!(limited(1, false).findings.is_empty());
}
