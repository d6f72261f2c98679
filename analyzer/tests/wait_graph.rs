//! Which thread groups wait for each other, and which one all others wait for.

mod pool;
mod process;
mod waits;

use chase_analyzer::recorder::builder::ThreadId;
use chase_analyzer::{Doing, Ns, PartyKind, PathPart, WaitGraph, wait_graph};
use pool::{MS, Outcome, Pool};
use waits::Wait;

/// A reader, a parser and a writer, one thread each, and what is seen of their waits.
fn graph(waits: impl Fn([ThreadId; 3]) -> Vec<Wait>) -> (WaitGraph, Outcome, [u32; 3]) {
    let mut pool = Pool::new();
    let mut stage = |name, routine| {
        let thread = pool.thread(name, routine);
        pool.call(thread, pool.condition, 60 * MS, 1);
        pool.call(thread, pool.lock, 60 * MS, 1);
        pool.call(thread, pool.work, 40 * MS, 1);
        pool.process.builder.timeline(thread).end();
        thread
    };
    let threads = [stage("read", 0x100), stage("parse", 0x200), stage("write", 0x300)];
    let pid = pool.process.builder.header.pid;
    let waits = waits(threads);
    let outcome = pool.finish_seen(|refs| {
        let place = |wait: &Wait| refs[wait.of.0 as usize][1 + usize::from(wait.is_lock)];
        waits::seen(pid, &waits, place)
    });
    let idle = vec![false; outcome.groups.rows.len()];
    let found = wait_graph(&outcome.watched.causes, &idle);
    let groups = threads.map(|thread| outcome.groups.of_thread[thread.0 as usize]);
    (found, outcome, groups)
}

fn at_condition(of: ThreadId, ended_by: Option<ThreadId>, from: u64, to: u64) -> Wait {
    Wait { of, from, to, ended_by, is_lock: false }
}

#[test]
fn waits_are_added_up_by_who_waits_and_for_whom() {
    let (found, _, [read, parse, write]) = graph(|[read, parse, write]| {
        vec![
            at_condition(read, Some(parse), 0, 30),
            at_condition(read, Some(parse), 40, 50),
            at_condition(write, Some(parse), 0, 20),
            at_condition(write, None, 30, 35),
        ]
    });
    let edges: Vec<_> = found
        .edges
        .iter()
        .map(|edge| (edge.group, edge.kind, edge.of_group, edge.wait_ns, edge.waits))
        .collect();
    assert_eq!(
        edges,
        [
            (read, PartyKind::Thread, Some(parse), Ns(40 * MS), 2),
            (write, PartyKind::Thread, Some(parse), Ns(20 * MS), 1),
            (write, PartyKind::Time, None, Ns(5 * MS), 1),
        ]
    );
    assert_eq!(found.bottleneck, Some(parse));
}

/// Others wait for the parser longest, but it waits for the writer: that one is where all of them wait in the end.
#[test]
fn the_bottleneck_is_who_waits_for_nobody() {
    let (found, _, [_, _, write]) = graph(|[read, parse, write]| {
        vec![at_condition(read, Some(parse), 0, 60), at_condition(parse, Some(write), 0, 50)]
    });
    assert_eq!(found.bottleneck, Some(write));
    // A fifth of what others wait for it may be waited.
    let (found, _, [_, parse, _]) = graph(|[read, parse, write]| {
        vec![at_condition(read, Some(parse), 0, 60), at_condition(parse, Some(write), 0, 12)]
    });
    assert_eq!(found.bottleneck, Some(parse));
}

/// All wait for each other, or for time: nobody limits the others.
#[test]
fn who_waits_for_each_other_has_no_bottleneck() {
    let (found, ..) = graph(|[read, parse, _]| {
        vec![at_condition(read, Some(parse), 0, 30), at_condition(parse, Some(read), 30, 60)]
    });
    assert_eq!((found.edges.len(), found.bottleneck), (2, None));
    let (found, ..) = graph(|[read, ..]| vec![at_condition(read, None, 0, 60)]);
    assert_eq!((found.edges.len(), found.bottleneck), (1, None));
}

/// What is a small part of the waits limits nothing: nginx' master process, which its workers waited for 7.5 ms of 3.9 s.
#[test]
fn who_is_hardly_waited_for_is_no_bottleneck() {
    for (time, is_one) in [(60, true), (95, false)] {
        let (found, _, [_, parse, _]) = graph(|[read, parse, write]| {
            vec![at_condition(read, Some(parse), 0, 10), at_condition(write, None, 0, time)]
        });
        assert_eq!(found.bottleneck, is_one.then_some(parse));
    }
}

#[test]
fn who_waits_for_another_process_is_no_bottleneck() {
    let (found, outcome, [_, parse, _]) = graph(|[read, parse, _]| {
        vec![at_condition(read, Some(parse), 0, 30), at_condition(parse, None, 0, 60)]
    });
    assert_eq!(found.bottleneck, Some(parse));
    let mut causes = outcome.watched.causes.clone();
    let of_parse = causes.iter_mut().filter(|row| row.group == parse);
    of_parse.flat_map(|row| &mut row.wakers).for_each(|waker| waker.kind = PartyKind::Process);
    let idle = vec![false; outcome.groups.rows.len()];
    assert_eq!(wait_graph(&causes, &idle).bottleneck, None);
}

/// Who has nothing to do waits for whoever may give it something, and isn't held up by that.
#[test]
fn waits_of_the_idle_make_no_bottleneck() {
    let (found, outcome, [read, parse, _]) = graph(|[read, parse, write]| {
        vec![
            at_condition(read, Some(parse), 0, 90),
            at_condition(write, Some(parse), 0, 10),
            at_condition(parse, Some(write), 20, 40),
        ]
    });
    assert_eq!(found.bottleneck, Some(parse));
    let idle: Vec<bool> =
        (0..outcome.groups.rows.len() as u32).map(|group| group == read).collect();
    let found = wait_graph(&outcome.watched.causes, &idle);
    assert_eq!((found.edges.len(), found.bottleneck), (3, None));
}

/// A lock is waited for because of who has it, whoever ends the wait.
#[test]
fn a_lock_is_waited_for_because_of_its_holder() {
    let (found, outcome, [read, parse, _]) = graph(|[read, parse, _]| {
        vec![Wait { of: read, from: 0, to: 30, ended_by: Some(parse), is_lock: true }]
    });
    let [edge] = &*found.edges else { panic!("{found:#?}") };
    assert_eq!((edge.group, edge.of_group, edge.wait_ns), (read, Some(parse), Ns(30 * MS)));
    let cause = &outcome.watched.causes[edge.longest];
    assert!(cause.purpose.is_lock() && cause.holders.len() == 1, "{cause:#?}");
    assert_eq!(found.bottleneck, Some(parse));
}

/// What waits for it has time, as a thread that is joined before a slower one.
#[test]
fn what_is_not_on_the_critical_path_is_no_bottleneck() {
    let (found, _, [read, parse, write]) =
        graph(|[read, parse, _]| vec![at_condition(read, Some(parse), 0, 60)]);
    let path = |parts: &[(u32, f64)]| -> Vec<PathPart> {
        let part = |&(group, share): &(u32, f64)| PathPart {
            group,
            doing: Doing::Running,
            runs: None,
            ns: Ns((share * 100.0) as u64 * MS),
            share,
            steps: 1,
        };
        parts.iter().map(part).collect()
    };
    let of = |parts: &[(u32, f64)]| {
        let mut graph = found.clone();
        let off = graph.take_off_path(&path(parts));
        (graph.bottleneck, off)
    };
    assert_eq!(of(&[(write, 1.0)]), (None, Some((parse, 0.0))));
    assert_eq!(of(&[(write, 0.98), (parse, 0.02)]), (None, Some((parse, 0.02))));
    assert_eq!(of(&[(read, 0.5), (parse, 0.3), (parse, 0.2)]), (Some(parse), None));
    // Nothing is known of the path.
    assert_eq!(of(&[]), (Some(parse), None));
}
