//! Finding recordings, and which of them belong together.

use std::error::Error as _;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use chase_analyzer::recorder::builder::Builder;
use chase_analyzer::recorder::layout::{
    CLOCK_TSC, END_EXEC, END_EXIT, Header, ORIGIN_EXEC, ORIGIN_FORK,
};
use chase_analyzer::recorder::reader::Recording;
use chase_analyzer::{
    Analysis, Ending, Error, Groups, Image, Link, Ns, Run, Selection, Unnamed, load, load_run, scan,
};

const SECOND: u64 = 1_000_000_000;

/// A process that starts `start` ns after a moment, and lives for `lifetime` ns.
fn process(pid: u32, parent_pid: u32, start: u64, lifetime: u64) -> Builder {
    let mut builder = Builder::new();
    let header = &mut builder.header;
    (header.pid, header.parent_pid) = (pid, parent_pid);
    // Groups of their own, unless a test says otherwise.
    (header.process_group, header.session) = (pid, pid);
    header.process_start = start / 10_000_000 + 100;
    header.clock_start.ticks += start;
    header.clock_start.monotonic_ns += start;
    header.clock_start.realtime_ns += start;
    let app = builder.executable(&format!("/bin/p{pid}"));
    let slot = builder.slot(app, None, "work");
    let main = builder.thread("main");
    builder.timeline(main).call(slot, lifetime).end();
    builder.end(END_EXIT, 0);
    builder
}

fn changed(mut builder: Builder, change: impl FnOnce(&mut Header)) -> Builder {
    change(&mut builder.header);
    builder
}

fn write(directory: &Path, name: &str, builder: &Builder) {
    fs::write(directory.join(name), builder.build()).unwrap();
}

/// Members of a run, as (pid, parent's place and link).
type Shape = Vec<(u32, Option<(usize, Link)>)>;

fn shapes(runs: &[Run]) -> Vec<Shape> {
    runs.iter().map(|run| run.members.iter().map(|m| (m.header.pid, m.parent)).collect()).collect()
}

fn shapes_of(builders: &[Builder]) -> Vec<Shape> {
    let directory = tempfile::tempdir().unwrap();
    for (number, builder) in builders.iter().enumerate() {
        // File names say nothing about the order.
        write(directory.path(), &format!("{}.chase", 99 - number), builder);
    }
    shapes(&scan(directory.path()).unwrap().runs)
}

#[test]
fn children_belong_to_the_run_of_their_parent() {
    let runs = shapes_of(&[
        process(10, 1, 0, 9 * SECOND),
        changed(process(11, 10, SECOND, SECOND), |h| h.origin = ORIGIN_FORK),
        process(12, 11, SECOND + 1, 5 * SECOND),
        process(13, 10, 3 * SECOND, SECOND),
    ]);
    let child_of = |parent| Some((parent, Link::Child));
    assert_eq!(runs, [vec![(10, None), (11, child_of(0)), (12, child_of(1)), (13, child_of(0))]]);
}

#[test]
fn pid_namespaces_have_their_own_numbers() {
    let child_of = |pid, parent: &Builder, parent_pid, start| {
        let parent_start = parent.header.process_start;
        changed(process(pid, parent_pid, start, 5 * SECOND), |h| {
            h.origin = ORIGIN_FORK;
            h.parent_start = parent_start;
        })
    };
    let first = process(10, 1, 0, 9 * SECOND);
    // Two sandboxes, each with a process 1 that makes a process 2.
    let init = child_of(1, &first, 10, SECOND);
    let other_init = child_of(1, &first, 10, 2 * SECOND);
    let image = changed(process(1, 0, SECOND + 9, SECOND), |h| h.origin = ORIGIN_EXEC);
    let worker = child_of(2, &init, 1, 3 * SECOND);
    let other_worker = child_of(2, &other_init, 1, 3 * SECOND + 1);
    let runs = shapes_of(&[first, init, image, other_init, worker, other_worker]);
    let child_of = |parent| Some((parent, Link::Child));
    let expected = vec![
        (10, None),
        (1, child_of(0)),
        (1, Some((1, Link::Exec))),
        (1, child_of(0)),
        (2, child_of(2)),
        (2, child_of(3)),
    ];
    assert_eq!(runs, [expected]);
}

#[test]
fn commands_given_one_after_the_other_are_runs_of_their_own() {
    let runs = shapes_of(&[process(10, 1, 0, SECOND), process(20, 1, 2 * SECOND, SECOND)]);
    assert_eq!(runs, [[(20, None)], [(10, None)]], "the newest first");
    // A process that got the number of one that was long gone.
    let runs = shapes_of(&[process(10, 1, 0, SECOND), process(20, 10, 2 * SECOND, SECOND)]);
    assert_eq!(runs.len(), 2);
}

/// Within a boot only the monotonic clock counts: that of the wall may be set back at any time.
#[test]
fn a_clock_that_is_set_back_changes_no_order_and_no_time() {
    let hour = 3_600 * SECOND;
    let set_back = |builder| changed(builder, |h| h.clock_start.realtime_ns -= hour);
    let first = process(10, 1, 0, 9 * SECOND);
    // Meanwhile the clock is set back; then there is another run.
    let child = set_back(process(11, 10, SECOND, 2 * SECOND));
    let next = set_back(process(20, 1, 20 * SECOND, SECOND));
    let directory = tempfile::tempdir().unwrap();
    for (builder, name) in [(&next, "a"), (&child, "b"), (&first, "c")] {
        write(directory.path(), &format!("{name}.chase"), builder);
    }
    let runs = scan(directory.path()).unwrap().runs;
    let of_first = vec![(10, None), (11, Some((0, Link::Child)))];
    assert_eq!(shapes(&runs), [vec![(20, None)], of_first], "the newest first");
    let loaded = load_run(&runs[1]).unwrap();
    let analysis = Analysis::new(&loaded.images, Selection::All);
    assert_eq!(analysis.wall_ns, Ns(9 * SECOND));
    let lives: Vec<_> = analysis
        .threads
        .iter()
        .map(|row| (row.start_ns.0 / SECOND, row.end_ns.0 / SECOND))
        .collect();
    assert_eq!(lives, [(0, 9), (1, 3)]);
    assert_eq!(load(directory.path()).unwrap().images.len(), 1, "the newest run alone");
}

#[test]
fn exec_goes_on_with_the_process() {
    let same_process = |h: &mut Header| {
        h.origin = ORIGIN_EXEC;
        h.process_start = 777;
    };
    let runs = shapes_of(&[
        changed(process(10, 1, 0, SECOND), same_process),
        changed(process(10, 1, 5 * SECOND, SECOND), same_process),
        process(11, 10, 5 * SECOND + 9, SECOND),
    ]);
    assert_eq!(
        runs,
        [[(10, None), (10, Some((0, Link::Exec))), (11, Some((1, Link::Child)))]],
        "a child of the second image"
    );
    let reused = shapes_of(&[
        changed(process(10, 1, 0, SECOND), same_process),
        process(10, 1, 5 * SECOND, SECOND),
    ]);
    assert_eq!(reused.len(), 2, "the same number, another process");
}

#[test]
fn a_pipeline_is_one_run_though_its_shell_is_not_seen() {
    let in_group = |h: &mut Header| (h.process_group, h.session) = (50, 5);
    let runs = shapes_of(&[
        changed(process(51, 50, 0, 2 * SECOND), in_group),
        changed(process(52, 50, SECOND, SECOND), in_group),
        changed(process(53, 50, 9 * SECOND, SECOND), in_group),
    ]);
    assert_eq!(runs, [vec![(53, None)], vec![(51, None), (52, Some((0, Link::Group)))]]);
}

#[test]
fn boots_do_not_mix() {
    let other_boot = |h: &mut Header| {
        h.boot_id = [7; 16];
        h.clock_start.realtime_ns += 86_400 * SECOND;
    };
    let runs = shapes_of(&[
        process(10, 1, 5 * SECOND, 9 * SECOND),
        changed(process(11, 10, 0, SECOND), other_boot),
    ]);
    assert_eq!(runs, [[(11, None)], [(10, None)]]);
}

#[test]
fn the_newest_run_is_loaded_with_all_its_processes() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "a.chase", &process(10, 1, 0, SECOND));
    write(directory.path(), "b.chase", &process(20, 1, 5 * SECOND, 4 * SECOND));
    write(directory.path(), "c.chase", &process(21, 20, 6 * SECOND, SECOND));
    fs::write(directory.path().join("notes.txt"), "no recording").unwrap();
    let loaded = load(directory.path()).unwrap();
    assert_eq!((loaded.images.len(), loaded.other_runs, loaded.failures.len()), (2, 1, 0));
    assert_eq!(loaded.images[1].parent, Some(0));

    let analysis = Analysis::new(&loaded.images, Selection::All);
    assert_eq!(analysis.wall_ns, Ns(4 * SECOND));
    assert_eq!(analysis.processes[1].start_ns, Ns(SECOND));
    assert_eq!(analysis.processes[1].parent, Some(0));

    let one = load(&directory.path().join("a.chase")).unwrap();
    assert_eq!((one.images.len(), one.images[0].executable().as_str()), (1, "/bin/p10"));
}

#[test]
fn damaged_files_among_good_ones_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "a.chase", &process(10, 1, 0, SECOND));
    fs::write(directory.path().join("b.chase"), "garbage").unwrap();
    fs::write(directory.path().join("c.chase"), "").unwrap();
    // Good enough to be listed, cut in the middle.
    let bytes = process(11, 10, 1, SECOND).build();
    fs::write(directory.path().join("d.chase"), &bytes[..bytes.len() - 4096]).unwrap();
    let loaded = load(directory.path()).unwrap();
    assert_eq!(loaded.images.len(), 2);
    let failures: Vec<_> = loaded
        .failures
        .iter()
        .map(|f| (f.path.file_name().unwrap().to_str().unwrap(), f.source().unwrap().to_string()))
        .collect();
    assert_eq!(failures.len(), 2);
    assert!(failures[0].0 == "b.chase" && failures[0].1.starts_with("not a recording"));
    assert!(failures[1].0 == "c.chase" && failures[1].1.starts_with("it is empty"));
    let not_seen = Analysis::new(&loaded.images, Selection::All).not_seen;
    assert!(not_seen.unreadable[0].problem.contains("cut off at byte"));
}

#[test]
fn nothing_to_read_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let error = load(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Empty { .. }));
    assert!(error.to_string().contains("chase record"), "{error}");
    let error = load(&directory.path().join("none")).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }));
    assert!(error.to_string().contains("chase record"), "{error}");
    fs::write(directory.path().join("x.chase"), "garbage").unwrap();
    let error = load(directory.path()).unwrap_err();
    assert!(matches!(&error, Error::AllFailed { failures, .. } if failures.len() == 1));
    assert!(error.to_string().contains("not a recording"), "{error}");
}

#[test]
fn what_was_reserved_and_never_written_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.chase");
    fs::write(&path, process(10, 1, 0, SECOND).build()).unwrap();
    // A terabyte of nothing behind the recording.
    fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let loaded = load(&path).unwrap();
    assert_eq!(loaded.images[0].recording.problems(), []);
}

#[test]
fn a_process_replaced_without_a_word_lasted_until_then() {
    let directory = tempfile::tempdir().unwrap();
    let same_process = |h: &mut Header| {
        h.process_start = 777;
        h.end_kind = 0;
        h.end_ticks = 0;
    };
    write(directory.path(), "a.chase", &changed(process(10, 1, 0, SECOND), same_process));
    write(directory.path(), "b.chase", &changed(process(10, 1, 3 * SECOND, SECOND), same_process));
    let images = load(directory.path()).unwrap().images;
    assert_eq!(
        (images[0].ending, images[1].ending),
        (Ending::Exec, Ending::Killed { signal: None })
    );
    assert_eq!(images[0].end.0, images[1].start().0);
}

#[test]
fn a_running_process_is_told_from_a_killed_one() {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let digits: Vec<char> = boot_id.chars().filter(char::is_ascii_hexdigit).collect();
    let pair =
        |at: usize| digits[at].to_digit(16).unwrap() * 16 + digits[at + 1].to_digit(16).unwrap();
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().parse().unwrap();
    let of_this_process = |h: &mut Header| {
        h.boot_id = std::array::from_fn(|at| pair(2 * at) as u8);
        h.pid = std::process::id();
        h.process_start = start;
        h.end_kind = 0;
        h.end_ticks = 0;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.chase");
    let running = changed(process(10, 1, 0, 1_000), of_this_process);
    fs::write(&path, running.build()).unwrap();
    let image = &load(&path).unwrap().images[0];
    assert_eq!(image.ending, Ending::Running);
    assert!(image.end_is_estimate && image.end.0 > running.now_ticks() + 1_000_000_000);

    fs::write(&path, changed(running, |h| h.process_start += 1).build()).unwrap();
    assert_eq!(load(&path).unwrap().images[0].ending, Ending::Killed { signal: None });
}

#[test]
fn short_processes_borrow_the_clock_rate_of_long_ones() {
    let tsc = |mut builder: Builder| {
        builder.ticks_per_ns = 2.0;
        builder.header.clock_kind = CLOCK_TSC;
        builder
    };
    let directory = tempfile::tempdir().unwrap();
    let long = tsc(process(10, 1, 0, 4 * SECOND));
    let short = changed(tsc(process(11, 10, 1, 1_000)), |h| {
        // The pairs lie too close together to tell the rate.
        h.clock_latest = h.clock_start;
        h.clock_latest.ticks += 1_000;
        h.clock_latest.monotonic_ns += 900;
        h.end_kind = END_EXEC;
    });
    write(directory.path(), "a.chase", &long);
    write(directory.path(), "b.chase", &short);
    let catalog = scan(directory.path()).unwrap();
    let loaded = load_run(&catalog.runs[0]).unwrap();
    let analysis = Analysis::new(&loaded.images, Selection::Process(1));
    assert_eq!(analysis.apis[0].measures.self_ns, Ns(500));
}

/// serde itself refuses such paths.
#[test]
fn paths_that_are_not_utf8_become_json() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join(OsStr::from_bytes(b"data\xff"));
    fs::create_dir(&directory).unwrap();
    let mut bytes = process(7, 1, 0, SECOND).build();
    bytes.truncate(bytes.len() - 100);
    fs::write(directory.join("a.chase"), bytes).unwrap();
    let loaded = load(&directory).unwrap();
    let analysis = Analysis::new(&loaded.images, Selection::All);
    let processes = serde_json::to_string(&analysis.processes).unwrap();
    assert!(processes.contains("data\u{fffd}/a.chase"), "{processes}");
    assert!(!analysis.not_seen.unreadable.is_empty(), "the cut is noticed");
    let not_seen = serde_json::to_string(&analysis.not_seen).unwrap();
    assert!(not_seen.contains("data\u{fffd}/a.chase"), "{not_seen}");
}

#[test]
fn programs_are_called_as_they_were_started() {
    for (executable, command, program) in [
        ("/usr/bin/redis-check-rdb", "redis-server\x1f*:6379", "redis-server"),
        ("/usr/bin/busybox", "/bin/ls\x1f-l", "ls"),
        ("/usr/bin/dash", "-sh", "sh"),
        // A title, a name that was taken away, and none that is known.
        ("/usr/sbin/nginx", "nginx: worker process", "nginx"),
        // Scripts are programs; code that was given with the command has no name.
        ("/usr/bin/python3.11", "/usr/bin/python3\x1f/usr/bin/hg\x1flog", "hg"),
        ("/usr/bin/dash", "/bin/sh\x1f-c\x1fexit 1", "sh"),
        ("/usr/bin/env", "/x/\x1fy", "env"),
        ("/usr/bin/env", "", "env"),
    ] {
        let mut builder = Builder::new();
        builder.meta("executable", executable);
        builder.meta("command", command);
        let main = builder.thread("main");
        builder.timeline(main).work(1_000).end();
        let image = Image::of("a.chase".into(), Recording::parse(builder.build()).unwrap());
        assert_eq!(image.program(), program, "{command:?}");
        let analysis = Analysis::new(&[image], Selection::All);
        assert_eq!(analysis.processes[0].program, program);
        let label = match program {
            "nginx" => "nginx: worker process".to_owned(),
            _ => format!("main of {program}"),
        };
        assert_eq!(Groups::new(&analysis, &Unnamed).rows[0].label, label);
    }
}

/// Servers write into the titles of their processes what these are for. What a title says last, it says at the end.
#[test]
fn processes_that_have_titles_are_grouped_by_role() {
    let image = |pid: u32, title: Option<&str>| {
        let mut builder = Builder::new();
        (builder.header.pid, builder.header.parent_pid) = (pid, 1);
        builder.executable("/usr/sbin/server");
        builder.meta("command", "/usr/sbin/server\x1f-d");
        let main = builder.thread("server");
        builder.timeline(main).work(1_000).end();
        if let Some(title) = title {
            builder.meta("title", title);
        }
        Image::of(format!("{pid}.chase").into(), Recording::parse(builder.build()).unwrap())
    };
    let images = [
        image(7, Some("server: main process /usr/sbin/server -d")),
        image(8, Some("server: worker process")),
        image(9, Some("server: worker process is shutting down")),
        image(10, Some("server: cleaner")),
        image(11, None),
    ];
    let analysis = Analysis::new(&images, Selection::All);
    let roles: Vec<_> = analysis.processes.iter().map(|row| row.role.as_deref()).collect();
    let worker = Some("server: worker process");
    assert_eq!(
        roles,
        [Some("server: main process"), worker, worker, Some("server: cleaner"), None]
    );
    assert_eq!(analysis.processes[3].name(), "server: cleaner");
    assert_eq!(analysis.processes[4].name(), "server");
    let groups = Groups::new(&analysis, &Unnamed);
    let workers = groups.rows.iter().find(|group| group.label == "server: worker process");
    let labels: Vec<&str> = groups.rows.iter().map(|group| &*group.label).collect();
    assert_eq!(workers.map(|group| group.members.len()), Some(2), "{labels:?}");
    assert!(groups.rows.iter().any(|group| group.label == "main of server"));
}
