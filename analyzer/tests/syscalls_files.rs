//! Files of the companion: which recording each belongs to, and those of processes without a recording.

mod process;

use std::path::Path;

use chase_analyzer::recorder::builder::{Builder, SyscallsBuilder};
use chase_analyzer::recorder::layout::{END_EXIT, Header};
use chase_analyzer::{Analysis, Ending, Ns, Selection, SyscallsState, WaitSource, load, scan};
use process::Process;
use tempfile::TempDir;

const READ: u32 = 0;
const CLOSE: u32 = 3;

fn write(dir: &Path, name: &str, bytes: &[u8]) {
    std::fs::write(dir.join(name), bytes).unwrap();
}

/// A recording of process 1000, and a builder of what a process without one did.
fn run_in(dir: &Path) -> (Builder, SyscallsBuilder) {
    let mut process = Process::new();
    process.builder.timeline(process.main).work(1_000_000).end();
    process.builder.end(END_EXIT, 0);
    write(dir, "app.1000.chase", &process.builder.build());
    let mut alone = SyscallsBuilder::new(1_500);
    alone.header.parent_pid = 1_000;
    alone.header.began_ns += 2_000_000;
    alone.header.began_realtime_ns += 2_000_000;
    alone.header.ended_ns = alone.header.began_ns + 1_000_000;
    // The companion looks now and then.
    alone.header.written_ns = alone.header.began_ns + 99_000_000;
    alone.name("static");
    alone.syscall(0, 1_500, READ, 7, 100);
    (process.builder, alone)
}

#[test]
fn files_are_found_beside_their_recordings() {
    let dir = TempDir::new().unwrap();
    let (_, alone) = run_in(dir.path());
    let mut seen = SyscallsBuilder::new(1_000);
    seen.header.ended_ns = seen.header.began_ns + 9;
    seen.syscall(0, 1_000, CLOSE, 4, 100);
    write(dir.path(), "app.1000.chase.syscalls", &seen.build());
    write(dir.path(), "static.1500.1002000000.syscalls", &alone.build());
    let loaded = load(dir.path()).unwrap();
    assert!(loaded.failures.is_empty(), "{:?}", loaded.failures);
    assert_eq!((loaded.images.len(), loaded.other_runs), (2, 0));
    let analysis = Analysis::new(&loaded.images, Selection::All);
    let [app, alone] = &*analysis.processes else { panic!("two processes") };
    assert!(app.is_recorded && !alone.is_recorded);
    assert_eq!((app.syscalls, alone.syscalls), (SyscallsState::Complete, SyscallsState::Complete));
    assert_eq!((&*alone.executable, alone.pid, alone.parent), ("static", 1_500, Some(0)));
    assert_eq!((alone.ending, alone.wall_ns), (Ending::Unknown, Ns(1_000_000)));
    assert_eq!((alone.start_ns, alone.totals.calls), (Ns(2_000_000), 0));
    let row = analysis.syscalls.by_thread.iter().find(|row| row.of.process == 1).unwrap();
    assert_eq!((row.measures.calls, &*row.of.name), (7, "static"));
    assert_eq!(analysis.wait_source(), WaitSource::Scheduler);
    // The recording alone finds its file too.
    assert!(load(&dir.path().join("app.1000.chase")).unwrap().images[0].syscalls.is_some());
}

#[test]
fn a_run_of_processes_without_recordings() {
    let dir = TempDir::new().unwrap();
    let (_, mut first) = run_in(dir.path());
    std::fs::remove_file(dir.path().join("app.1000.chase")).unwrap();
    first.header.parent_pid = 0;
    // It goes on as another image, and has a child that nobody saw the parent of.
    let mut second = first.clone();
    second.header.parent_pid = 1_500;
    second.header.began_ns += 500_000;
    let mut child = SyscallsBuilder::new(1_600);
    child.header.parent_pid = 0;
    child.header.began_ns = first.header.began_ns + 300_000;
    for (name, file) in [("a", first), ("b", second), ("c", child)] {
        write(dir.path(), &format!("{name}.1.syscalls"), &file.build());
    }
    let catalog = scan(dir.path()).unwrap();
    assert_eq!(catalog.runs.len(), 1, "{:?}", catalog.runs);
    let loaded = load(dir.path()).unwrap();
    let analysis = Analysis::new(&loaded.images, Selection::All);
    assert_eq!(analysis.processes.len(), 3);
    assert_eq!(analysis.processes[2].parent, Some(0));
    assert_eq!(analysis.syscalls.totals.calls, 14);
    assert!(analysis.threads.is_empty());
}

#[test]
fn a_file_of_another_process_is_left_out() {
    let dir = TempDir::new().unwrap();
    let (builder, _) = run_in(dir.path());
    let path = "app.1000.chase.syscalls";
    let mut stale = SyscallsBuilder::new(1_000);
    let Header { clock_start, .. } = builder.header;
    stale.header.began_ns = 5;
    stale.header.written_ns = 6;
    // The recording began much later.
    let mut later = builder.clone();
    later.header.clock_start.monotonic_ns = clock_start.monotonic_ns + 5_000_000_000;
    write(dir.path(), "app.1000.chase", &later.build());
    for file in [stale, SyscallsBuilder::new(1_001)] {
        write(dir.path(), path, &file.build());
        let loaded = load(dir.path()).unwrap();
        assert!(loaded.images[0].syscalls.is_none());
        let cause = loaded.failures[0].cause.to_string();
        assert!(cause.contains("another, earlier process"), "{cause}");
    }
    write(dir.path(), path, b"no such thing");
    let loaded = load(dir.path()).unwrap();
    assert!(loaded.failures[0].cause.to_string().contains("begins with \"no such"), "{loaded:?}");
}
