//! Who has the Python interpreter while others wait for it at a condition, which names nobody.

mod pool;
mod process;

use chase_analyzer::recorder::builder::{SyscallsBuilder, ThreadId};
use chase_analyzer::recorder::reader::SyscallsFile;
use chase_analyzer::recorder::syscalls::{BlockedRow, CauseRow, WAKER_THREAD, WAKER_TIME};
use chase_analyzer::{
    Analysis, CodeAddress, FindingKind, Groups, NamingPlaces, Party, Selection, Tails, Unnamed,
    Watched, findings,
};
use pool::{MS, Pool};

const FUTEX: u32 = 202;
const ROUNDS: u64 = 5;
const ROUND_MS: u64 = 110;
const INTERVAL_MS: u64 = 5;

/// All words are of the interpreter.
struct Python;

impl NamingPlaces for Python {
    fn functions(&self, _: usize, _: &CodeAddress) -> Vec<String> {
        Vec::new()
    }

    fn variable(&self, _: usize, _: &CodeAddress) -> Option<String> {
        Some("_PyRuntime+0x188".to_owned())
    }
}

/// Waits of a client: at the condition, or for its mutex.
struct Wait {
    of: ThreadId,
    ended_by: Option<ThreadId>,
    is_mutex: bool,
    from_ms: u64,
    to_ms: u64,
}

/// Who is said to have the interpreter, by the start of its group's label, if another thread has it for 100 ms again and again while two
/// clients wait for intervals of 5 ms, and then each of them for a moment; `is_told`: whether who lets go of it ends a wait.
fn holder(is_told: bool) -> Option<Party> {
    let mut pool = Pool::new();
    let indexer = pool.thread("indexer", 0x100);
    pool.call(indexer, pool.work, 100 * MS, ROUNDS);
    pool.process.builder.timeline(indexer).end();
    let clients = [0, 1].map(|number| {
        let client = pool.thread(&format!("client{number}"), 0x200);
        pool.call(client, pool.condition, INTERVAL_MS * MS, ROUNDS * ROUND_MS / INTERVAL_MS);
        pool.call(client, pool.lock, 2 * MS, ROUNDS);
        pool.process.builder.timeline(client).end();
        client
    });
    let mut waits = Vec::new();
    for begin in (0..ROUNDS).map(|round| round * ROUND_MS) {
        for of in clients {
            for from_ms in (begin..begin + 100).step_by(INTERVAL_MS as usize) {
                let to_ms = from_ms + INTERVAL_MS;
                let is_last = of == clients[0] && to_ms == begin + 100;
                let ended_by = (is_told && is_last).then_some(indexer);
                waits.push(Wait { of, ended_by, is_mutex: false, from_ms, to_ms });
            }
        }
        let (of, ended_by) = (clients[1], is_told.then_some(clients[0]));
        let (from_ms, to_ms) = (begin + 100, begin + 104);
        waits.push(Wait { of, ended_by, is_mutex: false, from_ms, to_ms });
        let (of, ended_by) = (clients[0], Some(clients[1]));
        let (from_ms, to_ms) = (begin + 104, begin + 106);
        waits.push(Wait { of, ended_by, is_mutex: true, from_ms, to_ms });
    }
    let builder = &mut pool.process.builder;
    let now = builder.now_ticks() - builder.header.clock_start.ticks;
    builder.timeline(pool.process.main).call(pool.join, now).end();
    let (pid, refs) = (builder.header.pid, builder.context_refs());
    let mut seen = SyscallsBuilder::new(pid);
    let began_ns = seen.header.began_ns;
    for (cause, wait) in (0..).zip(&waits) {
        let waker = wait.ended_by.map_or(0, |by| pid + by.0);
        let ns = (wait.to_ms - wait.from_ms) * MS;
        seen.cause(CauseRow {
            context_ref: refs[wait.of.0 as usize][1 + usize::from(wait.is_mutex)],
            tid: pid + wait.of.0,
            number: FUTEX,
            object: if wait.is_mutex { 0x1030 } else { 0x1000 },
            holder: if wait.is_mutex { waker } else { 0 },
            waker_kind: if wait.ended_by.is_some() { WAKER_THREAD } else { WAKER_TIME },
            waker,
            waker_pid: pid,
            waker_began_ns: began_ns,
            waits: 1,
            total_ns: ns,
            max_ns: ns,
            ..bytemuck::Zeroable::zeroed()
        });
        let (begin_ns, end_ns) = (began_ns + wait.from_ms * MS, began_ns + wait.to_ms * MS);
        let woken_ns = if wait.ended_by.is_some() { end_ns } else { 0 };
        seen.blocked(BlockedRow { cause, tid: pid + wait.of.0, begin_ns, woken_ns, end_ns });
    }
    let seen = SyscallsFile::parse(seen.build()).expect("a file");
    let images = [pool.process.image().with_syscalls(Some(seen))];
    let analysis = Analysis::new(&images, Selection::All);
    let groups = Groups::new(&analysis, &Unnamed);
    let tails = Tails::new(&images, &analysis, &groups);
    let watched = Watched::new(&images, &analysis, &groups, &Python);
    let found = findings(&analysis, &groups, &tails, &watched);
    let is_it = |kind: &FindingKind| matches!(kind, FindingKind::InterpreterLock { .. });
    let finding = found.iter().find(|finding| is_it(&finding.kind));
    let finding = finding.unwrap_or_else(|| panic!("{found:#?}"));
    let holder = finding.blame.as_ref().and_then(|blame| blame.holder.clone());
    let members = |group: u32| &*groups.rows[group as usize].members;
    if let Some(group) = holder.as_ref().and_then(|holder| holder.group) {
        assert_eq!(members(group), [indexer.0]);
    }
    holder
}

#[test]
fn who_lets_go_of_the_interpreter_had_it() {
    let holder = holder(true).expect("a holder");
    // Both have waited for it for 100 ms each time.
    assert_eq!(holder.wait_ns.0, 2 * ROUNDS * 100 * MS);
}

#[test]
fn who_has_its_mutex_for_a_moment_is_not_who_has_the_interpreter() {
    assert!(holder(false).is_none());
}
