//! What is said of system calls, and whose calls they are.

mod pool;
mod process;
mod seen;

use chase_analyzer::recorder::layout::{ARGUMENT_BYTES, ArgumentPair};
use chase_analyzer::recorder::syscalls::{WAKER_INTERRUPT, WAKER_THREAD, WAKER_TIME};
use chase_analyzer::{FileKind, FindingKind, HeldLocks, LockKey, Ns, WaitObject, lock_key, locks};
use pool::{MS, Outcome, US};
use seen::Seen;

const WRITE: u32 = 1;
const MUNMAP: u32 = 11;
const SCHED_YIELD: u32 = 24;
const SENDTO: u32 = 44;
const RECVFROM: u32 = 45;
const CLOCK: u32 = 228;
const FCNTL: u32 = 72;
const FLOCK: u32 = 73;
const FDATASYNC: u32 = 75;

fn syncing(outcome: &Outcome) -> &chase_analyzer::Finding {
    let mut found = outcome.findings.iter();
    let found = found.find(|finding| matches!(finding.kind, FindingKind::Syncing { .. }));
    found.unwrap_or_else(|| panic!("{:#?}", outcome.findings))
}

#[test]
fn calls_and_their_time_are_those_of_all_threads_of_the_group() {
    let mut seen = Seen::new();
    let fdatasync = seen.function("fdatasync");
    for _ in 0..4 {
        seen.thread(0x100, fdatasync, (FDATASYNC, 250, 400 * US));
    }
    // Another group calls it, too, and is none of their business.
    seen.thread(0x900, fdatasync, (FDATASYNC, 50, 100 * US));
    let outcome = seen.finish();
    let finding = syncing(&outcome);
    let FindingKind::Syncing { syscall, calls, all_ns, files, of_file, .. } = &finding.kind else {
        panic!("{finding:#?}")
    };
    assert_eq!((&**syscall, *calls, *all_ns), ("fdatasync", 1000, Ns(400 * MS)));
    assert_eq!((*files, *of_file), (0, None));
    assert_eq!((finding.saves_ns, outcome.api(finding.api)), (Ns(100 * MS), Some("fdatasync")));
}

#[test]
fn one_file_of_several_has_a_part_of_the_waits() {
    let mut seen = Seen::new();
    let fdatasync = seen.function("fdatasync");
    let tid = seen.thread(0x100, fdatasync, (FDATASYNC, 800, 500 * US));
    // Once its path could be read, once it could not.
    seen.cause(tid, FDATASYNC, "/srv/visits.db-journal", 90 * MS, 200);
    seen.cause(tid, FDATASYNC, "visits.db-journal", 110 * MS, 200);
    seen.cause(tid, FDATASYNC, "/srv/visits.db", 120 * MS, 200);
    seen.cause(tid, FDATASYNC, "/srv", 80 * MS, 200);
    let outcome = seen.finish();
    let finding = syncing(&outcome);
    let FindingKind::Syncing { calls, files, of_file, .. } = finding.kind else {
        panic!("{finding:#?}")
    };
    assert_eq!((calls, files, of_file), (800, 3, Some(0.5)));
    let object = finding.blame.as_ref().and_then(|blame| blame.object.as_ref());
    assert!(format!("{object:?}").contains("/srv/visits.db-journal"), "{object:?}");
}

#[test]
fn small_transfers_are_of_the_group_that_makes_them() {
    let mut seen = Seen::new();
    let write = seen.function("write");
    // One waits long in few large writes, the other one makes very many small ones.
    let large = seen.thread(0x100, write, (WRITE, 10, 80 * MS));
    let last = seen.file.syscalls.last_mut().expect("a row");
    (last.off_cpu_ns, last.returned) = (790 * MS, 10 << 20);
    let small = seen.thread(0x900, write, (WRITE, 500_000, US));
    seen.file.syscalls.last_mut().expect("a row").returned = 1_500_000;
    seen.used(large, WRITE, 0o010_600, "");
    seen.used(small, WRITE, 0o010_600, "");
    let outcome = seen.finish();
    let mut found = outcome.findings.iter();
    let found = found.find(|finding| matches!(finding.kind, FindingKind::SmallTransfers { .. }));
    let found = found.unwrap_or_else(|| panic!("{:#?}", outcome.findings));
    let FindingKind::SmallTransfers { calls, mean_bytes, all_ns, of, .. } = &found.kind else {
        panic!("{found:#?}")
    };
    assert_eq!((*calls, *mean_bytes, *of), (500_000, 3.0, FileKind::Pipe));
    assert_eq!((*all_ns, found.saves_ns), (Ns(500 * MS), Ns(500 * MS)));
    assert_eq!(outcome.analysis.threads[found.threads[0] as usize].tid, small);
}

/// Whether 200,000 writes of 100 bytes are small, to so many files that are opened.
fn in_pieces(opened: u64) -> bool {
    const OPENAT: u32 = 257;
    let mut seen = Seen::new();
    let write = seen.function("write");
    let tid = seen.thread(0x100, write, (WRITE, 200_000, US));
    seen.file.syscalls.last_mut().expect("a row").returned = 20_000_000;
    seen.used(tid, WRITE, 0o100_600, "");
    seen.file.syscall(1, tid, OPENAT, opened, US);
    let outcome = seen.finish();
    let mut kinds = outcome.findings.iter().map(|finding| &finding.kind);
    kinds.any(|kind| matches!(kind, FindingKind::SmallTransfers { .. }))
}

#[test]
fn files_that_are_small_are_not_transferred_in_pieces() {
    assert!(in_pieces(0) && in_pieces(1_000));
    assert!(!in_pieces(200_000));
}

/// The small writes that are found of two threads of a group which make 400,000 of 100 bytes each in one function, on files with these
/// modes and inode numbers: what on, how many, whether on several, and the file's name.
fn two_writers(files: [(u32, u64); 2]) -> Option<(FileKind, u64, bool, Option<String>)> {
    let mut seen = Seen::new();
    let write = seen.function("write");
    for (mode, inode) in files {
        let tid = seen.thread(0x100, write, (WRITE, 400_000, US));
        seen.file.syscalls.last_mut().expect("a row").returned = 40_000_000;
        if inode > 0 {
            seen.used(tid, WRITE, mode, "");
            seen.file.files.last_mut().expect("a row").inode = inode;
        }
    }
    let tid = seen.pid + seen.threads[0].0;
    seen.cause(tid, WRITE, "pipe 7", 10 * MS, 10);
    let outcome = seen.finish();
    let mut found = outcome.findings.iter();
    found.find_map(|finding| match finding.kind {
        FindingKind::SmallTransfers { of, calls, several, .. } => {
            let object = finding.blame.as_ref().and_then(|blame| blame.object.clone());
            let name = object.and_then(|object| match object {
                WaitObject::File { name } => Some(name),
                _ => None,
            });
            Some((of, calls, several, name))
        }
        _ => None,
    })
}

#[test]
fn calls_on_other_files_are_not_counted() {
    const PIPE: u32 = 0o010_600;
    const DEVICE: u32 = 0o020_666;
    let name = || Some("pipe 7".to_owned());
    // The other one writes to a device, or to what is not known.
    let one = Some((FileKind::Pipe, 400_000, false, name()));
    assert_eq!(two_writers([(PIPE, 7), (DEVICE, 3)]), one);
    assert_eq!(two_writers([(PIPE, 7), (PIPE, 0)]), one);
    // Both to one pipe; each to one of its own, which is not the other's.
    assert_eq!(two_writers([(PIPE, 7); 2]), Some((FileKind::Pipe, 800_000, false, name())));
    assert_eq!(two_writers([(PIPE, 7), (PIPE, 8)]), Some((FileKind::Pipe, 800_000, true, None)));
    // What it was sampled on is not what threads wait for.
    assert_eq!(two_writers([(PIPE, 8), (DEVICE, 3)]), Some((FileKind::Pipe, 400_000, false, None)));
    assert_eq!(two_writers([(DEVICE, 3); 2]), None);
}

/// 400 writes of 200 bytes each, with as many waits for a file, which the disk ends or not.
fn writes(name: &str, waits: u64, waker_kind: u32) -> Outcome {
    let mut seen = Seen::new();
    let write = seen.function("write");
    let tid = seen.thread(0x100, write, (WRITE, 400, MS));
    seen.file.syscalls.last_mut().expect("a row").returned = 80_000;
    seen.cause(tid, WRITE, name, 300 * MS, waits).waker_kind = waker_kind;
    seen.finish()
}

#[test]
fn writes_that_wait_for_the_disk_each_time() {
    let outcome = writes("/srv/ledger", 1200, WAKER_INTERRUPT);
    let finding = syncing(&outcome);
    let FindingKind::Syncing { syscall, calls, all_ns, by_writes, .. } = &finding.kind else {
        panic!("{finding:#?}")
    };
    assert_eq!((&**syscall, *calls, *all_ns, *by_writes), ("write", 400, Ns(300 * MS), true));
    assert_eq!((finding.saves_ns, outcome.api(finding.api)), (Ns(300 * MS), Some("write")));
    // Now and then the kernel has to catch up; pipes and terminals wait for somebody else; a writer may be slowed down.
    for outcome in [
        writes("/srv/ledger", 20, WAKER_INTERRUPT),
        writes("pipe 17", 1200, WAKER_INTERRUPT),
        writes("/dev/pts/0", 1200, WAKER_INTERRUPT),
        writes("/srv/ledger", 1200, WAKER_TIME),
    ] {
        let mut kinds = outcome.findings.iter().map(|finding| &finding.kind);
        assert!(!kinds.any(|kind| matches!(kind, FindingKind::Syncing { .. })));
    }
}

/// Two threads that wait for each other to unlock a file, by a system call with this number.
fn locked(number: u32, name: &str) -> Outcome {
    let mut seen = Seen::new();
    let function = seen.function(if number == FLOCK { "flock" } else { "fcntl" });
    let tids = [(); 2].map(|()| seen.thread(0x100, function, (number, 100, 4 * MS)));
    let (pid, began_ns) = (seen.pid, seen.file.header.began_ns);
    for (tid, waker) in [(tids[0], tids[1]), (tids[1], tids[0])] {
        let row = seen.cause(tid, number, name, 390 * MS, 100);
        (row.waker_kind, row.waker, row.waker_pid) = (WAKER_THREAD, waker, pid);
        row.waker_began_ns = began_ns;
    }
    seen.finish()
}

#[test]
fn files_that_are_locked_are_locks() {
    for number in [FLOCK, FCNTL] {
        let outcome = locked(number, "/srv/counter");
        let mut found = outcome.findings.iter();
        let found =
            found.find(|finding| matches!(finding.kind, FindingKind::SerialisingLock { .. }));
        let found = found.unwrap_or_else(|| panic!("{:#?}", outcome.findings));
        let blame = found.blame.as_ref().expect("what it is about");
        let name = "/srv/counter".to_owned();
        assert_eq!(blame.object, Some(WaitObject::File { name: name.clone() }));
        assert_eq!((found.saves_ns, blame.wait_ns), (Ns(390 * MS), Ns(780 * MS)));
        let waker = blame.waker.as_ref().expect("who unlocks it");
        assert_eq!(waker.group, Some(found.group));
        let locks = locks(&outcome.watched.causes, &outcome.analysis, &HeldLocks::default());
        let [lock] = &*locks else { panic!("{locks:#?}") };
        assert_eq!((lock.waits, lock.threads), (200, 2));
        assert_eq!(lock_key(&lock.object, lock.process), Some(LockKey::File(name)));
    }
    // What has no name any more may be several files.
    let outcome = locked(FLOCK, "");
    assert!(locks(&outcome.watched.causes, &outcome.analysis, &HeldLocks::default()).is_empty());
}

/// So many calls of `sched_yield` by each of two threads, of `each_ns`.
fn yields(calls: u64, each_ns: u64) -> Option<FindingKind> {
    let mut seen = Seen::new();
    let function = seen.function("sched_yield");
    for _ in 0..2 {
        seen.thread(0x100, function, (SCHED_YIELD, calls, each_ns));
    }
    let outcome = seen.finish();
    let mut found = outcome.findings.iter();
    let found = found.find(|finding| matches!(finding.kind, FindingKind::Spinning { .. }))?;
    assert_eq!((found.saves_ns, outcome.api(found.api)), (Ns(0), Some("sched_yield")));
    Some(found.kind.clone())
}

#[test]
fn threads_that_yield_all_the_time_spin() {
    let Some(FindingKind::Spinning { calls, per_second, cpu_ns, of_cpu }) = yields(50_000, 4 * US)
    else {
        panic!("not found")
    };
    assert_eq!((calls, cpu_ns, of_cpu), (100_000, Ns(400 * MS), 0.2));
    assert!((49_000.0..51_000.0).contains(&per_second), "{per_second}");
    // Few, or little of their time.
    assert!(yields(4_000, 40 * US).is_none());
    assert!(yields(50_000, US).is_none());
}

/// 100,000 transfers of so many bytes on a connection, by a thread that waits for what arrives, or receives, so often; they ask for
/// `asked` bytes.
fn on_a_connection((number, bytes, asked): (u32, u64, u64), messages: u64) -> bool {
    const CALLS: u64 = 100_000;
    let mut seen = Seen::new();
    let function = seen.function(if number == RECVFROM { "recv" } else { "send" });
    let tid = seen.thread(0x100, function, (number, CALLS, 4 * US));
    seen.file.syscalls.last_mut().expect("a row").returned = CALLS * bytes;
    let pairs = vec![ArgumentPair { value: asked, ticks: 4 * US }; 1_000];
    let thread = seen.threads[0];
    seen.pool.process.builder.arguments(thread, 1, ARGUMENT_BYTES, &pairs);
    seen.cause(tid, RECVFROM, "socket 127.0.0.1:1 to 127.0.0.1:2", 10 * MS, messages);
    if number == SENDTO {
        // It receives as often, which makes no time to speak of.
        let row = seen.file.syscall(1, tid, RECVFROM, messages, 10);
        row.returned = messages * 8_000;
    }
    let outcome = seen.finish();
    outcome.findings.iter().any(|finding| {
        matches!(finding.kind, FindingKind::SmallTransfers { of: FileKind::Socket, .. })
    })
}

#[test]
fn messages_in_many_parts() {
    assert!(on_a_connection((RECVFROM, 1, 1), 100));
    assert!(on_a_connection((SENDTO, 1, 1), 100));
    // As many messages as transfers: they are as short as they are.
    assert!(!on_a_connection((RECVFROM, 1, 1), 50_000));
    assert!(!on_a_connection((SENDTO, 1, 1), 50_000));
    // It would have taken more, had there been more; messages of 200 bytes are no parts of some.
    assert!(!on_a_connection((RECVFROM, 100, 4_096), 100));
    assert!(!on_a_connection((SENDTO, 200, 200), 100));
}

#[test]
fn calls_of_all_threads_of_a_group_and_their_time() {
    let mut seen = Seen::new();
    let (resolve, load) = (seen.function("getaddrinfo"), seen.function("dlopen"));
    let unmap = seen.function("munmap");
    for _ in 0..3 {
        seen.thread(0x100, resolve, (CLOCK, 20, 10 * MS));
        seen.thread(0x200, load, (CLOCK, 1, 300 * MS));
        seen.thread(0x300, unmap, (MUNMAP, 1_000, 100 * US));
    }
    let outcome = seen.finish();
    let mut right = 0;
    for finding in &outcome.findings {
        let (told, ms, saves_ms) = match finding.kind {
            FindingKind::NameResolution { calls, all_ns } => ((calls, all_ns), (60, 600), 200),
            FindingKind::SlowLoading { calls, all_ns, .. } => ((calls, all_ns), (3, 900), 300),
            FindingKind::MappingChurn { calls, all_ns, .. } => ((calls, all_ns), (3_000, 300), 100),
            _ => continue,
        };
        assert_eq!((told, finding.saves_ns), ((ms.0, Ns(ms.1 * MS)), Ns(saves_ms * MS)));
        right += 1;
    }
    assert_eq!(right, 3, "{:#?}", outcome.findings);
}

/// What the kernel does beside system calls is for the pages of memory that is given back again and again.
#[test]
fn pages_that_are_given_back_are_given_anew() {
    let faults = |gives_back: u64, in_file: u64| {
        let mut seen = Seen::new();
        let unmap = seen.function("munmap");
        let tid = seen.thread(0x300, unmap, (MUNMAP, gives_back, 100 * US));
        seen.file.syscalls.last_mut().expect("a row").calls = in_file;
        seen.file.header.sample_hz = 1_000;
        let code = seen.pool.process.builder.code_address(seen.pool.process.app, 0x40);
        // 700 ms in the kernel, of a second.
        seen.file.samples(0, tid, code, 300, 700);
        let outcome = seen.finish();
        outcome.findings.iter().find_map(|finding| match finding.kind {
            FindingKind::MappingChurn { faults_ns, .. } => Some((faults_ns, finding.saves_ns)),
            _ => None,
        })
    };
    assert_eq!(faults(1_000, 1_000), Some((Ns(600 * MS), Ns(700 * MS))));
    // Memory that is rarely given back needs its pages once.
    assert_eq!(faults(200, 200), None);
    // A damaged file has any number.
    assert_eq!(faults(1_000, u64::MAX), Some((Ns(600 * MS), Ns(700 * MS))));
}

/// Few calls that take much memory back each time are no less, and the pages that they had are given anew: those, and no others.
#[test]
fn large_memory_is_mapped_again_and_again() {
    let churn = |gives_back: u64, each_ns: u64| {
        let mut seen = Seen::new();
        let unmap = seen.function("munmap");
        let tid = seen.thread(0x300, unmap, (MUNMAP, gives_back, each_ns));
        seen.file.header.sample_hz = 1_000;
        let code = seen.pool.process.builder.code_address(seen.pool.process.app, 0x40);
        seen.file.samples(0, tid, code, 300, 700);
        let outcome = seen.finish();
        outcome.findings.iter().find_map(|finding| match finding.kind {
            FindingKind::MappingChurn { faults_ns, .. } => Some(faults_ns),
            _ => None,
        })
    };
    // 700 ms in the kernel, of which 100 ms, or 60 ms, are in the calls.
    assert_eq!(churn(40, 2_500 * US), Some(Ns(600 * MS)));
    assert_eq!(churn(30, 2 * MS), Some(Ns(600 * MS)));
    assert_eq!(churn(10, 5 * MS), None);
    assert_eq!(churn(90, 50 * US), None);
}

/// On a crowded machine, others have the processor within a call that maps memory as anywhere else.
#[test]
fn what_others_had_of_the_processor_is_no_time_of_the_memory() {
    let found = |off_cpu_ms: u64| {
        let mut seen = Seen::new();
        let free = seen.function("free");
        seen.thread(0x300, free, (MUNMAP, 1_000, 100 * US));
        seen.file.syscalls.last_mut().expect("a row").off_cpu_ns = off_cpu_ms * MS;
        let outcome = seen.finish();
        outcome.findings.iter().find_map(|finding| match finding.kind {
            FindingKind::MappingChurn { all_ns, .. } => Some(all_ns),
            _ => None,
        })
    };
    assert_eq!(found(0), Some(Ns(100 * MS)));
    assert_eq!(found(99), None);
}

/// The pages that chase touches itself are none of the program's.
#[test]
fn page_faults_of_chase_are_not_the_programs() {
    let faults = |library: &str| {
        let mut seen = Seen::new();
        let unmap = seen.function("munmap");
        let tid = seen.thread(0x300, unmap, (MUNMAP, 1_000, 100 * US));
        seen.file.header.sample_hz = 1_000;
        let builder = &mut seen.pool.process.builder;
        let object = builder.object(library);
        let code = builder.code_address(object, 0x40);
        seen.file.samples(0, tid, code, 300, 700);
        let outcome = seen.finish();
        outcome.findings.iter().find_map(|finding| match finding.kind {
            FindingKind::MappingChurn { faults_ns, .. } => Some((faults_ns, finding.saves_ns)),
            _ => None,
        })
    };
    assert_eq!(faults("/opt/libother.so"), Some((Ns(600 * MS), Ns(700 * MS))));
    assert_eq!(faults("/opt/libchase.so"), Some((Ns(0), Ns(100 * MS))));
}

/// What most of the time of loading goes to is named, if it is known.
#[test]
fn the_library_that_is_slow_to_start_takes_most_of_the_loading() {
    let named = |inside_ms: u64| {
        let mut seen = Seen::new();
        let load = seen.function("dlopen");
        let libb = seen.pool.process.libb;
        let liba = seen.pool.process.liba;
        let register = seen.pool.process.builder.slot(libb, Some(liba), "register");
        let thread = seen.pool.thread("worker", 0x200);
        let mut timeline = seen.pool.process.builder.timeline(thread);
        timeline.enter(load).call(register, inside_ms * MS).work((300 - inside_ms) * MS).leave();
        timeline.end();
        seen.threads.push(thread);
        let outcome = seen.finish();
        let library = outcome.findings.iter().find_map(|finding| match finding.kind {
            FindingKind::SlowLoading { library, .. } => Some(library),
            _ => None,
        });
        let name = |at: u32| outcome.analysis.objects[at as usize].name.clone();
        library.expect("a finding").map(name)
    };
    assert_eq!(named(200).as_deref(), Some("libb.so"));
    assert_eq!(named(3), None);
}

/// Where a function is called, that maps memory in one of a hundred calls or in all, and whether it is the allocator.
fn mapped_at(function: &str, calls: u64) -> (bool, bool) {
    let mut seen = Seen::new();
    let slot = seen.function(function);
    seen.thread(0x300, slot, (MUNMAP, calls, 1_000_000 * US / (2 * calls)));
    seen.file.syscalls.last_mut().expect("a row").calls = 1_000;
    let app = seen.pool.process.app;
    let builder = &mut seen.pool.process.builder;
    let at = builder.code_address(app, 0x40);
    builder.caller(seen.threads[0], 1, at, (10, 10));
    let outcome = seen.finish();
    let mut found = outcome.findings.iter();
    let found = found.find_map(|finding| match finding.kind {
        FindingKind::MappingChurn { by_allocator, .. } => {
            let is_placed = finding.blame.as_ref().is_some_and(|blame| blame.site.is_some());
            Some((by_allocator, is_placed))
        }
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{:#?}", outcome.findings))
}

#[test]
fn where_an_allocator_is_called_is_not_where_it_asks_for_memory() {
    assert_eq!(mapped_at("realloc", 100_000), (true, false));
    // Unless that is what it does, and all in one place.
    assert_eq!(mapped_at("realloc", 1_500), (true, true));
    assert_eq!(mapped_at("munmap", 1_000), (false, true));
}
