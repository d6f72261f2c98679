//! What calls cost beyond their system calls: the way into the kernel and back, and what others wait behind them.

mod pool;
mod process;
mod seen;

use chase_analyzer::recorder::syscalls::WAKER_THREAD;
use chase_analyzer::{Finding, FindingKind, Ns};
use pool::{MS, Outcome, US};
use seen::Seen;

const READ: u32 = 0;
const FDATASYNC: u32 = 75;
const FUTEX: u32 = 202;

fn found(outcome: &Outcome, is_one: impl Fn(&FindingKind) -> bool) -> &Finding {
    let found = outcome.findings.iter().find(|finding| is_one(&finding.kind));
    found.unwrap_or_else(|| panic!("{:#?}", outcome.findings))
}

/// Three threads that sync a file for 100 ms each, and wait for a lock, for so long, that another one of them has then.
fn syncing_inside_a_lock(wait_ms: u64) -> Ns {
    let mut seen = Seen::new();
    let fdatasync = seen.function("fdatasync");
    let threads = [(); 3].map(|()| seen.thread(0x100, fdatasync, (FDATASYNC, 250, 400 * US)));
    let (pid, began_ns) = (seen.pid, seen.file.header.began_ns);
    for (of, holder) in [(0, 1), (1, 2), (2, 0)] {
        let row = seen.cause(threads[of], FUTEX, "", wait_ms * MS, 250);
        (row.object, row.holder, row.holder_context_ref) = (0x9000, threads[holder], 1);
        (row.waker_kind, row.waker, row.waker_pid) = (WAKER_THREAD, threads[holder], pid);
        row.waker_began_ns = began_ns;
    }
    let outcome = seen.finish();
    found(&outcome, |kind| matches!(kind, FindingKind::Syncing { .. })).saves_ns
}

#[test]
fn who_syncs_inside_a_lock_has_others_wait() {
    assert_eq!(syncing_inside_a_lock(150), Ns(250 * MS));
    // They wait for something else, too, than for the others' calls.
    assert_eq!(syncing_inside_a_lock(400), Ns(300 * MS));
}

/// 500,000 reads of a byte that take 1 µs each, of which 600 ns are in the system call; and so many calls without one.
fn small_reads(others: u64) -> u64 {
    let mut seen = Seen::new();
    let read = seen.function("read");
    let tid = seen.thread(0x100, read, (READ, 500_000 + others, US));
    let last = seen.file.syscalls.last_mut().expect("a row");
    (last.calls, last.total_ns, last.returned) = (500_000, 300 * MS, 500_000);
    seen.used(tid, READ, 0o010_600, "");
    let outcome = seen.finish();
    found(&outcome, |kind| matches!(kind, FindingKind::SmallTransfers { .. })).saves_ns.0 / MS
}

#[test]
fn small_transfers_cost_their_whole_calls() {
    assert_eq!(small_reads(0), 500);
    // Where calls do something else, their time is no cost of transfers.
    assert_eq!(small_reads(300_000), 300);
}
