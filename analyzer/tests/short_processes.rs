//! Processes that live for a short time: which are counted, and how long they live together.

mod pool;
mod process;

use chase_analyzer::recorder::builder::{Builder, SyscallsBuilder};
use chase_analyzer::recorder::layout::{END_EXEC, END_EXIT, ORIGIN_EXEC, ORIGIN_FORK};
use chase_analyzer::recorder::reader::{Recording, SyscallsFile};
use chase_analyzer::recorder::syscalls::{CauseRow, WAKER_TIME};
use chase_analyzer::{FindingKind, Image, Ns};
use pool::{MS, outcome};

const NANOSLEEP: u32 = 35;
const WAIT4: u32 = 61;

/// A process that begins `start` ns after the first one.
fn image(parent: Option<usize>, program: &str, ends: (u32, u32), at: (u64, u64)) -> Image {
    costly(parent, program, ends, at, 0)
}

/// The same, in which chase's start takes so long.
fn costly(
    parent: Option<usize>,
    program: &str,
    (origin, end): (u32, u32),
    at: (u64, u64),
    own_ns: u64,
) -> Image {
    let mut builder = Builder::new();
    let header = &mut builder.header;
    header.pid += at.0 as u32 / 1_000;
    header.origin = origin;
    header.cost_start_ns = own_ns;
    header.clock_start.ticks += at.0;
    header.clock_start.monotonic_ns += at.0;
    header.clock_start.realtime_ns += at.0;
    let app = builder.executable(&format!("/bin/{program}"));
    let slot = builder.slot(app, None, "work");
    let main = builder.thread("main");
    builder.timeline(main).call(slot, at.1).end();
    builder.end(end, 0);
    let recording = Recording::parse(builder.build()).expect("a recording");
    let mut image = Image::of(format!("{program}-{}.chase", at.0).into(), recording);
    image.parent = parent;
    image
}

/// The same, watched; it waits in its own code for so long, in system call `number`.
fn watched(image: Image, (number, ns): (u32, u64)) -> Image {
    let header = image.recording.header();
    let mut seen = SyscallsBuilder::new(header.pid);
    seen.header.began_ns = header.clock_start.monotonic_ns;
    seen.cause(CauseRow {
        tid: header.pid,
        number,
        waker_kind: WAKER_TIME,
        waits: 1,
        total_ns: ns,
        max_ns: ns,
        ..bytemuck::Zeroable::zeroed()
    });
    let seen = SyscallsFile::parse(seen.build()).expect("a file");
    image.with_syscalls(Some(seen))
}

/// What a shell saves that runs 30 programs of 100 ms, which sleep for so long of it.
fn saved(sleep_ms: u64) -> Option<Ns> {
    const PROGRAMS: u64 = 30;
    let shell = image(None, "sh", (ORIGIN_EXEC, END_EXIT), (0, PROGRAMS * 100 * MS));
    let mut images = vec![watched(shell, (WAIT4, PROGRAMS * 100 * MS))];
    for number in 0..PROGRAMS {
        let at = (number * 100 * MS + MS, 99 * MS);
        let program = image(Some(0), "sleep", (ORIGIN_EXEC, END_EXIT), at);
        images.push(watched(program, (NANOSLEEP, sleep_ms * MS)));
    }
    let outcome = outcome(images);
    let is_short = |kind: &FindingKind| matches!(kind, FindingKind::ShortProcesses { .. });
    outcome.findings.iter().find(|found| is_short(&found.kind)).map(|found| found.saves_ns)
}

#[test]
fn what_programs_wait_for_themselves_is_no_start() {
    assert_eq!(saved(0), Some(Ns(3_000 * MS)));
    assert_eq!(saved(40), Some(Ns(1_800 * MS)));
    assert_eq!(saved(95), None);
}

/// A program of 3 s that starts 30 processes of 99 ms; chase's start takes so long of each.
fn starts_30(own_ns: u64) -> pool::Outcome {
    let mut builder = Builder::new();
    let app = builder.executable("/bin/app");
    let libc = builder.object("/lib/libc.so.6");
    let popen = builder.slot(app, Some(libc), "popen");
    let main = builder.thread("main");
    let mut timeline = builder.timeline(main);
    (0..30).for_each(|_| {
        timeline.call(popen, 100 * MS);
    });
    timeline.end();
    builder.end(END_EXIT, 0);
    let app = Recording::parse(builder.build()).expect("a recording");
    let mut images = vec![Image::of("app-0.chase".into(), app)];
    for number in 0..30 {
        let at = (number * 100 * MS + MS, 99 * MS);
        images.push(costly(Some(0), "wc", (ORIGIN_EXEC, END_EXIT), at, own_ns));
    }
    outcome(images)
}

#[test]
fn what_chase_takes_in_them_is_no_saving() {
    let saved = |own_ns: u64| {
        let outcome = starts_30(own_ns);
        let found = outcome.findings.into_iter().find_map(|found| match found.kind {
            FindingKind::ShortProcesses { own, .. } => Some((found.saves_ns, own)),
            _ => None,
        });
        found.expect("a finding")
    };
    assert_eq!(saved(0), (Ns(2_970 * MS), 0.0));
    assert_eq!(saved(33 * MS), (Ns(1_980 * MS), 1.0 / 3.0));
    // The run is shorter without chase, too: they are as much of it.
    assert_eq!(saved(88 * MS), (Ns(330 * MS), 8.0 / 9.0));
}

#[test]
fn who_starts_them_is_named() {
    let outcome = starts_30(0);
    let finding = outcome
        .findings
        .iter()
        .find(|found| matches!(found.kind, FindingKind::ShortProcesses { .. }));
    let finding = finding.expect("a finding");
    let api = finding.api.expect("a function") as usize;
    assert_eq!(outcome.analysis.apis[api].symbol, "popen");
    assert_eq!(outcome.analysis.threads[finding.threads[0] as usize].process, 0);
}

#[test]
fn a_subshell_lives_while_what_it_runs_does() {
    const LOOPS: u64 = 100;

    let mut images = vec![image(None, "sh", (ORIGIN_EXEC, END_EXIT), (0, LOOPS * 20 * MS))];
    for number in 0..LOOPS {
        let at = number * 20 * MS;
        // A subshell of 10 ms, in which a program is started.
        let subshell = images.len();
        images.push(image(Some(0), "sh", (ORIGIN_FORK, END_EXIT), (at, 10 * MS)));
        let fork = (at + 2 * MS, MS);
        images.push(image(Some(subshell), "sh", (ORIGIN_FORK, END_EXEC), fork));
        let program = (at + 4 * MS, 3 * MS);
        images.push(image(Some(subshell + 1), "tr", (ORIGIN_EXEC, END_EXIT), program));
    }
    let outcome = outcome(images);
    let mut kinds = outcome.findings.iter().map(|finding| (&finding.kind, finding.saves_ns));
    let is_short = |kind: &FindingKind| matches!(kind, FindingKind::ShortProcesses { .. });
    let found = kinds.find(|(kind, _)| is_short(kind));
    let (kind, saves_ns) = found.unwrap_or_else(|| panic!("{:#?}", outcome.findings));
    let FindingKind::ShortProcesses {
        processes,
        program,
        of_program,
        forks,
        median_ns,
        all_ns,
        ..
    } = kind
    else {
        panic!("{kind:#?}")
    };
    assert_eq!((*processes, &**program, *of_program, *forks), (100, "tr", 100, 100));
    assert_eq!((*median_ns, *all_ns, saves_ns), (Ns(3 * MS), Ns(1000 * MS), Ns(1000 * MS)));
}
