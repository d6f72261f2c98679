//! Waits for many connections.

mod pool;
mod process;

use chase_analyzer::recorder::builder::SyscallsBuilder;
use chase_analyzer::recorder::syscalls::{CauseRow, OBJECT_NAME, WAKER_PROCESS};
use chase_analyzer::{CauseRow as Told, Ns, WaitObject};
use pool::{MS, Outcome, Pool};

const EPOLL_WAIT: u32 = 232;

/// A thread that waits for these, so many milliseconds each.
fn waits_for(objects: &[(String, u64)]) -> Outcome {
    let mut pool = Pool::new();
    let thread = pool.thread("serve", 0x100);
    pool.call(thread, pool.other, 10, 1);
    let pid = pool.process.builder.header.pid;
    pool.finish_seen(|_| {
        let mut file = SyscallsBuilder::new(pid);
        for (object, (of, ms)) in (1..).zip(objects) {
            let mut name = [0; OBJECT_NAME];
            name[..of.len()].copy_from_slice(of.as_bytes());
            file.cause(CauseRow {
                tid: pid + thread.0,
                number: EPOLL_WAIT,
                object,
                name,
                waker_kind: WAKER_PROCESS,
                waker_pid: 1,
                waits: 2,
                total_ns: ms * MS,
                max_ns: (ms - 1) * MS,
                ready_ns: MS,
                ..bytemuck::Zeroable::zeroed()
            });
        }
        file
    })
}

fn name(row: &Told) -> String {
    match &row.object {
        WaitObject::File { name } => name.clone(),
        WaitObject::Connections(of) => {
            format!("{} {} {}", of.number, if of.accepted { "at" } else { "to" }, of.address)
        }
        other => panic!("{other:?}"),
    }
}

/// nginx with 50 clients had 50 rows that differed in a port.
#[test]
fn a_servers_connections_are_one_row_and_those_to_one_address() {
    let accepted = |n: u64| (format!("socket 10.0.0.1:80 to 10.0.0.{}:{}", n, 40_000 + n), 10 + n);
    let made = |n: u64| (format!("socket 10.0.0.1:{} to [::2]:5432", 50_000 + n), 40 + n);
    let mut objects: Vec<(String, u64)> = (1..=12).map(accepted).chain((1..=2).map(made)).collect();
    let alone = "socket 10.0.0.1:60000 to 10.0.0.9:443";
    objects.extend([("socket 10.0.0.1:80".to_owned(), 9), (alone.to_owned(), 8)]);
    let rows = waits_for(&objects).watched.causes;
    let told: Vec<_> = rows.iter().map(|row| (name(row), row.wait_ns, row.waits)).collect();
    let expected = [
        ("12 at 10.0.0.1:80", 12 * 10 + 78, 24),
        ("2 to [::2]:5432", 83, 4),
        ("socket 10.0.0.1:80", 9, 2),
        (alone, 8, 2),
    ];
    assert_eq!(told, expected.map(|(name, ms, waits)| (name.to_owned(), Ns(ms * MS), waits)));
    let server = &rows[0];
    assert_eq!((server.max_ns, server.ready_ns), (Ns(21 * MS), Ns(12 * MS)));
    let [waker] = &*server.wakers else { panic!("{:?}", server.wakers) };
    assert_eq!((waker.waits, waker.wait_ns), (24, Ns(198 * MS)));
    let WaitObject::Connections(of) = &server.object else { panic!("{server:?}") };
    let longest: Vec<_> = of.longest.iter().map(|one| (one.wait_ns.0 / MS, one.waits)).collect();
    assert_eq!(longest, [22, 21, 20, 19, 18, 17, 16, 15].map(|ms| (ms, 2)));
    assert_eq!(of.longest[0].name, accepted(12).0);
}

/// The order of rows, and of what is in them, is not that of a hash table.
#[test]
fn connections_that_are_waited_for_equally_long_are_in_the_order_of_their_names() {
    let objects: Vec<(String, u64)> =
        (1..=20).map(|n| (format!("socket 10.0.0.1:80 to 10.0.0.2:{}", 40_000 + n), 5)).collect();
    let rows = waits_for(&objects).watched.causes;
    let WaitObject::Connections(of) = &rows[0].object else { panic!("{rows:?}") };
    assert!(of.longest.is_sorted_by_key(|one| &one.name), "{:?}", of.longest);
}
