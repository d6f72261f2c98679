//! Processes that live for a short time: which are counted, and how long they live together.

mod pool;
mod process;

use chase_analyzer::recorder::builder::Builder;
use chase_analyzer::recorder::layout::{END_EXEC, END_EXIT, ORIGIN_EXEC, ORIGIN_FORK};
use chase_analyzer::recorder::reader::Recording;
use chase_analyzer::{FindingKind, Image, Ns};
use pool::{MS, outcome};

/// A process that begins `start` ns after the first one.
fn image(parent: Option<usize>, program: &str, (origin, end): (u32, u32), at: (u64, u64)) -> Image {
    let mut builder = Builder::new();
    let header = &mut builder.header;
    header.pid += at.0 as u32 / 1_000;
    header.origin = origin;
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
    let FindingKind::ShortProcesses { processes, program, of_program, forks, median_ns, all_ns } =
        kind
    else {
        panic!("{kind:#?}")
    };
    assert_eq!((*processes, &**program, *of_program, *forks), (100, "tr", 100, 100));
    assert_eq!((*median_ns, *all_ns, saves_ns), (Ns(3 * MS), Ns(1000 * MS), Ns(1000 * MS)));
}
