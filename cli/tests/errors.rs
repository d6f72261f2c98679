//! What goes wrong is said on standard error, with what to do next; the exit status tells which
//! kind it was: 1 nothing could be read, 2 wrong usage.

mod recordings;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A directory with a good recording in `chase.data`.
fn with_recording() -> TempDir {
    let dir = TempDir::new().expect("a directory for the test");
    fs::create_dir(dir.path().join("chase.data")).expect("directory made");
    recordings::write(&dir.path().join("chase.data"), "a.chase", &recordings::compressor());
    dir
}

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chase-report"));
    command.current_dir(dir).args(arguments).stdin(Stdio::null()).env_remove("CHASE_OUTPUT");
    command
}

/// Status, standard output, standard error.
fn run(dir: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = command(dir, arguments).output().expect("chase-report runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn fails(dir: &Path, arguments: &[&str], status: i32, message: &str) {
    let (found, output, errors) = run(dir, arguments);
    assert_eq!((found, &*output), (status, ""), "{arguments:?}: {errors}");
    assert!(errors.contains(message), "{arguments:?}: {errors}");
}

#[test]
fn nothing_to_read() {
    let dir = TempDir::new().expect("a directory for the test");
    fails(dir.path(), &[], 1, "chase record ./app");
    fails(dir.path(), &["libs", "no/such"], 1, "no/such");
    fs::create_dir(dir.path().join("chase.data")).expect("directory made");
    fails(dir.path(), &[], 1, "no recording (*.chase) in chase.data");
    fs::write(dir.path().join("chase.data/a.chase"), "no recording").expect("written");
    fails(dir.path(), &[], 1, "a.chase");
    fails(dir.path(), &["chase.data/a.chase"], 1, "a.chase");
    fails(dir.path(), &["apis", "bad\x1b[2Jname"], 1, "bad\\x1b[2Jname");
}

#[test]
fn wrong_usage() {
    let dir = with_recording();
    fails(dir.path(), &["--no-such"], 2, "--help");
    fails(dir.path(), &["libs", "--json", "--csv"], 2, "cannot be used with");
    fails(dir.path(), &["--json", "libs", "--csv"], 2, "exclude each other");
    fails(dir.path(), &["--top", "many"], 2, "many");
    fails(dir.path(), &["apis", "--api", "[a"], 2, "[a");
}

#[test]
fn version_and_help_need_no_recording() {
    let dir = TempDir::new().expect("a directory for the test");
    let number = concat!("chase-report ", env!("CARGO_PKG_VERSION"));
    for arguments in [["--version"], ["-V"]] {
        let (status, said, complaint) = run(dir.path(), &arguments);
        // A commit may follow.
        assert!(status == 0 && said.starts_with(number) && said.lines().count() == 1, "{said}");
        assert_eq!(complaint, "");
    }
    let (status, help, _) = run(dir.path(), &["--help"]);
    assert!(status == 0 && help.contains("Examples:") && help.contains("Exit status:"), "{help}");
}

#[test]
fn what_is_not_in_the_run() {
    let dir = with_recording();
    fails(dir.path(), &["--process", "1"], 1, "no process 1 in this run; it has: 4711 compressor");
    fails(
        dir.path(),
        &["libs", "--run", "2"],
        1,
        "--run 2: chase.data has runs 1 (the newest) to 1",
    );
    fails(dir.path(), &["--run", "0"], 1, "--run 0");
    fails(dir.path(), &["--debug-dir", "none"], 1, "--debug-dir none");
    fails(dir.path(), &["charts", "-o", "chase.data/a.chase"], 1, "cannot make the directory");
}

/// Half a page would be taken for the whole.
#[test]
fn what_could_not_be_written_is_not_there() {
    let dir = with_recording();
    let program = env!("CARGO_BIN_EXE_chase-report");
    // Files of at most one block of 512 or 1,024 bytes; without a signal for more.
    let script = format!("trap '' XFSZ; ulimit -f 1; {program} html -o page.html");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(dir.path()).env_remove("CHASE_OUTPUT");
    let output = shell.output().expect("sh runs");
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("cannot write page.html"), "{errors}");
    assert!(!dir.path().join("page.html").exists());
}

#[test]
fn nothing_that_stands_out_says_what_to_do_next() {
    let dir = with_recording();
    let (status, said, _) = run(dir.path(), &["findings"]);
    assert!(status == 0 && said.contains("chase-report libs chase.data, and apis, hot"), "{said}");
}

#[test]
fn no_system_calls_is_explained() {
    let dir = with_recording();
    fails(dir.path(), &["syscalls"], 1, "no .syscalls file beside the recording");
    fails(dir.path(), &["syscalls", "--json"], 1, "CHASE_SYSCALLS=require");
    let path = dir.path().join("chase.data/a.chase.syscalls");
    fs::write(&path, "nonsense").expect("written");
    fails(
        dir.path(),
        &["syscalls"],
        1,
        "a.chase.syscalls can't be used: no system calls: it begins",
    );
    let (status, output, _) = run(dir.path(), &[]);
    assert!(status == 0 && output.contains("a.chase.syscalls: no system calls"), "{output}");
    fails(dir.path(), &["syscalls", "--by", "nothing"], 2, "possible values");
}

#[test]
fn comparisons_of_nothing() {
    let dir = with_recording();
    let data = "chase.data";
    fails(dir.path(), &["compare"], 2, "compare BEFORE AFTER");
    fails(dir.path(), &["compare", data], 2, "compare --api ONE --api OTHER");
    fails(dir.path(), &["compare", data, data, data], 2, "`compare` takes two recordings");
    fails(dir.path(), &["compare", "--before", data], 2, "--before and --after go together");
    fails(dir.path(), &["compare", data, "--before", data, "--after", data], 2, "not both");
    fails(dir.path(), &["compare", data, "no/such"], 1, "no/such");
    let apis = ["--api", "read", "--api", "write"];
    fails(dir.path(), &[&["compare", data][..], &apis].concat(), 1, "--api 'write': nothing");
    fails(dir.path(), &["compare", "--api", "p*", "--api", "read"], 1, "means 3 functions");
    fails(dir.path(), &["compare", data, data, "--api", "nothing"], 1, "no function called");
    let many = ["compare", "--api", "a", "--api", "b", "--api", "c"];
    fails(dir.path(), &many, 2, "two are compared");
    let run = ["compare", data, data, "--run", "3"];
    fails(dir.path(), &run, 1, "--run 3: chase.data has runs 1 (the newest) to 1");
    let chart = ["compare", data, data, "--chart", "chart.gif"];
    fails(dir.path(), &chart, 1, "must end in .svg or .png");
    for (file, begins) in [("chart.svg", &b"<svg"[..]), ("chart.png", b"\x89PNG")] {
        let (status, _, errors) = self::run(dir.path(), &["compare", data, data, "--chart", file]);
        assert_eq!((status, &*errors), (0, ""));
        assert!(fs::read(dir.path().join(file)).expect("drawn").starts_with(begins), "{file}");
    }
}

/// A run of which the companion saw only a static program.
#[test]
fn system_calls_without_a_recording() {
    let dir = TempDir::new().expect("a directory for the test");
    recordings::write_syscalls(dir.path(), "a.4800.1.syscalls", &recordings::static_syscalls());
    for view in [&[][..], &["libs"], &["apis"], &["threads"], &["tree"], &["syscalls"]] {
        for form in [&[][..], &["--json"], &["--csv"]] {
            let arguments = [view, &["."], form].concat();
            let (status, output, errors) = run(dir.path(), &arguments);
            assert_eq!((status, &*errors), (0, ""), "{arguments:?}");
            assert!(!output.contains("NaN"), "{arguments:?}: {output}");
        }
    }
    let (_, output, _) = run(dir.path(), &["syscalls", "."]);
    assert!(output.contains("12 system calls") && output.contains("write"), "{output}");
}

/// One damaged file must not hide the others, nor go unsaid.
#[test]
fn a_bad_file_among_good_ones() {
    let dir = with_recording();
    fs::write(dir.path().join("chase.data/b.chase"), "no recording").expect("written");
    let (status, output, _) = run(dir.path(), &[]);
    assert_eq!(status, 0);
    assert!(output.contains("compressor") && output.contains("b.chase"), "{output}");
}

#[test]
fn older_runs_are_there_to_be_asked_for() {
    let dir = with_recording();
    let mut earlier = recordings::child();
    earlier.header.boot_id = [7; 16];
    earlier.header.clock_start.realtime_ns -= 3_600_000_000_000;
    recordings::write(&dir.path().join("chase.data"), "earlier.chase", &earlier);
    let (status, output, _) = run(dir.path(), &[]);
    assert!(status == 0 && output.starts_with("compressor"), "{output}");
    assert!(
        output.ends_with("1 older run is in chase.data: --run 2 shows the one before this\n"),
        "{output}"
    );
    let (status, output, _) = run(dir.path(), &["--run", "2"]);
    assert!(status == 0 && output.starts_with("helper") && !output.contains("older"), "{output}");
}

/// More recordings than descriptors, one of them damaged.
#[test]
fn a_fleet() {
    let dir = TempDir::new().expect("a directory for the test");
    let mut builder = recordings::compressor();
    for number in 0..40 {
        builder.header.boot_id = [number; 16];
        recordings::write(dir.path(), &format!("{number}.chase"), &builder);
    }
    fs::write(dir.path().join("damaged.chase"), "no recording").expect("written");
    let program = env!("CARGO_BIN_EXE_chase-report");
    for paths in [". --run all", "*.chase", "apis *.chase", "--run all threads ."] {
        let script = format!("ulimit -n 20; exec '{program}' {paths}");
        let mut command = Command::new("sh");
        let output = command.current_dir(dir.path()).args(["-c", &script]).output().expect("runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{paths}: {}", String::from_utf8_lossy(&output.stderr));
        if paths.starts_with(['.', '*']) {
            assert!(text.contains("40 processes"), "{paths}: {text}");
            assert_eq!(
                text.matches("damaged.chase: not a recording").count(),
                1,
                "{paths}: {text}"
            );
        }
    }
    fails(dir.path(), &[".", "--run", "41"], 1, "--run 41: . has runs 1 (the newest) to 40");
    fails(dir.path(), &["--run", "some"], 2, "a number, or all");
    let (_, output, _) = run(dir.path(), &["libs", "1.chase", "2.chase", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!(document["paths"], serde_json::json!(["1.chase", "2.chase"]));
    assert_eq!(document["processes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn paths_that_are_not_utf8() {
    let dir = TempDir::new().expect("a directory for the test");
    let data = dir.path().join(OsStr::from_bytes(b"data\xff"));
    fs::create_dir(&data).expect("directory made");
    recordings::write(&data, "a.chase", &recordings::compressor());
    let output = command(dir.path(), &["--json"]).arg(&data).output().expect("chase-report runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("data\u{fffd}/a.chase"), "{text}");
}

/// A process that ended before it called anything.
#[test]
fn a_recording_of_nothing() {
    let dir = TempDir::new().expect("a directory for the test");
    let mut builder = chase_recorder::builder::Builder::new();
    builder.executable("/bin/true");
    recordings::write(dir.path(), "true.chase", &builder);
    for view in [&[][..], &["libs"], &["apis"], &["threads"], &["tree"], &["charts", "-o", "out"]] {
        for form in [&[][..], &["--json"], &["--csv"]] {
            let arguments = [view, &["true.chase"], form].concat();
            let (status, output, errors) = run(dir.path(), &arguments);
            assert_eq!((status, &*errors), (0, ""), "{arguments:?}");
            assert!(!output.is_empty() && !output.contains("NaN"), "{arguments:?}: {output}");
        }
    }
}

#[test]
fn a_recording_cut_anywhere_is_shown_or_refused() {
    let dir = TempDir::new().expect("a directory for the test");
    let whole = recordings::compressor().build();
    let file = dir.path().join("cut.chase");
    for len in (0..whole.len()).step_by(whole.len() / 40) {
        fs::write(&file, &whole[..len]).expect("written");
        for view in ["libs", "tree", "threads"] {
            let (status, output, errors) = run(dir.path(), &[view, "cut.chase"]);
            assert!(status == 0 || status == 1, "{view}, {len} bytes: {status} {errors}");
            assert_eq!(status == 0, errors.is_empty(), "{view}, {len} bytes: {errors}");
            assert_eq!(status == 0, !output.is_empty(), "{view}, {len} bytes: {output}");
        }
    }
}

/// `chase-report | head` ends without a word.
#[test]
fn a_reader_that_stops_reading() {
    let dir = with_recording();
    for arguments in [&["tree", "--top", "0"][..], &["--json"], &["apis", "--csv"]] {
        let mut child = command(dir.path(), arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("chase-report runs");
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut errors).expect("UTF-8");
        let status = child.wait().expect("it ends");
        assert_eq!((status.code(), &*errors), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let dir = with_recording();
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let output = command(dir.path(), &[]).stdout(full).output().expect("chase-report runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write"));
}

#[test]
fn charts_are_files() {
    let dir = with_recording();
    let (status, output, errors) = run(dir.path(), &["charts", "-o", "out/of/it"]);
    assert_eq!((status, &*errors), (0, ""));
    let files: Vec<&str> = output.lines().collect();
    let names = [
        "libraries",
        "apis",
        "blocked",
        "sunburst",
        "running-and-waiting",
        "groups",
        "threads-1",
        "tail",
        "calls",
        "flame",
        "flame-1",
        "flame-2",
    ];
    let both = |name| ["svg", "png"].map(|kind| format!("out/of/it/{name}.{kind}"));
    assert_eq!(files, names.into_iter().flat_map(both).collect::<Vec<_>>());
    let read = |name: &str| fs::read(dir.path().join("out/of/it").join(name)).expect("a chart");
    assert!(String::from_utf8(read("apis.svg")).expect("UTF-8").contains("pthread_join"));
    for name in names {
        let svg = String::from_utf8(read(&format!("{name}.svg"))).expect("UTF-8");
        assert_eq!(svg.matches("prefers-color-scheme: dark").count(), 1, "{name}");
    }
    assert!(read("libraries.png").starts_with(b"\x89PNG"));
}

#[test]
fn filters_that_match_nothing() {
    let dir = with_recording();
    fails(dir.path(), &["libs", "--lib", "libnone*"], 1, "no library of that name; there are: ");
    fails(dir.path(), &["apis", "--api", "none"], 1, "no function of that name");
    fails(dir.path(), &["threads", "--thread", "none"], 1, "no thread of that name");
    // One of two is enough to be told of.
    fails(dir.path(), &["libs", "--lib", "libz*", "--lib", "libnone*"], 1, "--lib libnone*");
    // A program gets its empty table.
    let (status, output, errors) = run(dir.path(), &["libs", "--lib", "libnone*", "--csv"]);
    assert_eq!((status, output.lines().count()), (0, 1), "{output}");
    assert!(errors.contains("no library of that name"), "{errors}");
}

#[test]
fn tables_are_sorted_as_asked() {
    let dir = with_recording();
    let column = |arguments: &[&str], name: &str| -> Vec<String> {
        let (status, output, errors) = run(dir.path(), arguments);
        assert_eq!(status, 0, "{errors}");
        let mut rows = csv::Reader::from_reader(output.as_bytes());
        let at = rows.headers().expect("headings").iter().position(|heading| heading == name);
        let at = at.expect("the column is there");
        rows.records().map(|row| row.expect("a row")[at].to_owned()).collect()
    };
    let numbers = |sort: &str, name: &str| -> Vec<u64> {
        let all = column(&["apis", "--sort", sort, "--csv"], name);
        all.iter().map(|number| number.parse().unwrap_or_default()).collect()
    };
    for (sort, name) in [("calls", "calls"), ("self", "self_ns"), ("max", "max_ns")] {
        let found = numbers(sort, name);
        assert!(found.len() > 2 && found.is_sorted_by(|a, b| a >= b), "{sort}: {found:?}");
    }
    let names = column(&["libs", "--sort", "name", "--csv"], "name");
    assert!(names.len() > 1);
    assert!(names.is_sorted_by_key(|name| name.to_lowercase()), "{names:?}");
    fails(dir.path(), &["apis", "--sort", "none"], 2, "possible values: self, total");
    fails(dir.path(), &["tree", "--sort", "self"], 2, "unexpected argument");
}

#[test]
fn mistyped_views() {
    let dir = with_recording();
    fails(dir.path(), &["thraeds"], 2, "did you mean `threads`?");
    fails(dir.path(), &["apsi"], 2, "did you mean `apis`?");
    let (_, _, errors) = run(dir.path(), &["other.data"]);
    assert!(errors.contains("no other.data") && !errors.contains("did you mean"), "{errors}");
}

#[test]
fn a_page_is_not_overwritten_unasked() {
    let dir = with_recording();
    let page = dir.path().join("report.html");
    fs::write(&page, "precious").expect("written");
    fails(dir.path(), &["html"], 1, "--force");
    assert_eq!(fs::read_to_string(&page).expect("there"), "precious");
    assert_eq!(run(dir.path(), &["html", "--force"]).0, 0);
    assert_ne!(fs::read_to_string(&page).expect("there"), "precious");
}

/// What is missing comes before all figures.
#[test]
fn a_cut_recording_says_so_first() {
    let dir = with_recording();
    let path = dir.path().join("chase.data/a.chase");
    let bytes = fs::read(&path).expect("there");
    fs::write(&path, &bytes[..bytes.len() - 200]).expect("written");
    let (status, output, errors) = run(dir.path(), &[]);
    assert_eq!(status, 0, "{errors}");
    assert!(output.starts_with("Incomplete\n  part of chase.data/a.chase"), "{output}");
}

/// Where there is no room for the archive, the recordings stay, and nothing else does.
#[test]
fn a_fold_without_room_loses_nothing() {
    let what = "a fold on a full disk";
    if !chase_tests::need::root(what) || chase_tests::need::tool(what, "unshare").is_none() {
        return;
    }
    let dir = TempDir::new().expect("a directory for the test");
    fs::create_dir(dir.path().join("chase.data")).expect("directory made");
    for number in 1..=9 {
        let builder = recordings::small_child(number, false);
        recordings::write(&dir.path().join("chase.data"), &format!("{number}.chase"), &builder);
    }
    let script = "mkdir small && mount -t tmpfs -o size=8m tmpfs small || exit 77; \
        cp chase.data/*.chase small; cat /dev/zero >small/full 2>/dev/null; \
        \"$1\" fold small; status=$?; ls small; exit $status";
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_chase-report")])
        .current_dir(dir.path())
        .output()
        .expect("runs");
    if output.status.code() == Some(77) {
        return chase_tests::need::skip(what, "nothing can be mounted here");
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.starts_with("unshare:") {
        return chase_tests::need::skip(what, errors.trim());
    }
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("No space left"), "{errors}");
    let left = String::from_utf8_lossy(&output.stdout);
    let expected: Vec<String> = (1..=9).map(|number| format!("{number}.chase")).collect();
    assert_eq!(left.lines().collect::<Vec<_>>(), [expected, vec!["full".into()]].concat());
}

/// What kept a companion from watching is in the recording.
#[test]
fn no_narration_says_why() {
    let dir = with_recording();
    for view in ["narrate", "components"] {
        fails(dir.path(), &[view], 1, "none had been asked for: chase record --narrate");
    }
    let mut recording = chase_recorder::builder::Builder::new();
    recording.meta("syscalls", "no privilege for bpf(2): be root");
    recording.executable("/usr/bin/app");
    recording.thread("main");
    fs::write(dir.path().join("chase.data/a.chase"), recording.build()).expect("written");
    for view in ["narrate", "components"] {
        fails(dir.path(), &[view], 1, "one by one: no privilege for bpf(2): be root; where");
    }
}
