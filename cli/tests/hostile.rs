//! Names out of recordings are other people's: whatever they are, no output is steered, torn or blown up by them.

mod recordings;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use chase_recorder::builder::{Builder, SyscallsBuilder};
use chase_recorder::syscalls::{CauseRow, FileRow};
use tempfile::TempDir;

/// Control characters, escapes for terminals, marks that turn the direction of what follows, HTML, ends of JSON and of scripts,
/// separators of folded stacks and of CSV; `\u{f8ff}` is put in the place of bytes that are no text.
const HOSTILE: &str = "\x1b]0;owned\x07\x1b[2J\u{9b}31m\r\n\t\u{202e}\u{2028}\u{f8ff}\";,\\<hostile x='\
    </script><!--]]><svg onload=hostile()>&lt;`${hostile}`%s{}";

/// A name of this kind that begins with this.
fn name(begin: &str) -> String {
    format!("{begin}{HOSTILE}")
}

/// The bytes of a file, with what can't be written as text.
fn raw(mut bytes: Vec<u8>) -> Vec<u8> {
    let mark = "\u{f8ff}".as_bytes();
    while let Some(at) = bytes.windows(mark.len()).position(|part| part == mark) {
        bytes[at..at + mark.len()].copy_from_slice(&[0xff, 0xc0, 0x80]);
    }
    bytes
}

/// All that has a name has a hostile one; the first characters are those of formulas.
fn recording() -> Builder {
    const MS: u64 = 1_000_000;
    let mut builder = Builder::new();
    builder.event_limit = Some(10);
    let command = [name("/bin/app"), name("=1+"), name("-")].join("\x1f");
    builder.meta("command", &command);
    builder.meta("directory", &name("/")).meta("host", &name("h")).meta("kernel", &name("k"));
    builder.meta("writer", &name("w")).meta(&name("key"), &name("value"));
    let app = builder.executable(&name("/bin/app"));
    let library = builder.object(&name("/lib/=lib"));
    let other = builder.object(&name("@lib"));
    let slots = [
        name("=cmd"),
        name("+cmd"),
        name("-cmd"),
        name("@cmd"),
        name("_Z3fooI"),
        "f".repeat(1 << 20),
    ]
    .map(|name| builder.slot(app, Some(library), &name));
    let version = name("@V");
    let inner = builder.slot_of(
        library,
        Some(other),
        &name("inner"),
        &version,
        chase_recorder::layout::SlotClass::Timed,
    );
    let lock = builder.slot(app, Some(other), "pthread_mutex_lock");
    let main = builder.thread(&name(""));
    let workers = [builder.thread("=worker\x1b[2J"), builder.thread("=w\u{9b}<hostile>")];
    for worker in workers {
        let routine = builder.object_mut(app).bias + 0x1100;
        builder.thread_mut(worker).start_routine_avma = routine;
        let origin = builder.origin_mut(worker);
        let text = "=<hostile>\x1b[2J.run\0@\x1b[2J<hostile>";
        origin.text[..text.len()].copy_from_slice(text.as_bytes());
        origin.text_len = text.len() as u16;
        let mut thread = builder.timeline(worker);
        thread
            .work(MS)
            .call(lock, 20 * MS)
            .enter(slots[0])
            .call(inner, MS)
            .leave()
            .mark(&name("=m"));
    }
    let mut thread = builder.timeline(main);
    for slot in slots {
        thread.enter(slot).work(MS).call(inner, MS / 2).leave().mark(&name(""));
    }
    builder
}

/// What a companion saw.
fn syscalls() -> SyscallsBuilder {
    let mut builder = SyscallsBuilder::new(1000);
    builder.name(&name("=")).header.sample_hz = 100;
    builder.mapping(0x40_0000, 0x42_0000, &name("/bin/app")).mapping(0x50_0000, 0x52_0000, "=x");
    for tid in 1000..1003 {
        builder.syscall(0, tid, 0, 3, 100);
        builder.wait(0, tid, 0, 2, 5_000_000);
        builder.on_cpu(tid, 1_000_000);
        builder.samples(0, tid, 0x40_1000, 5, 0);
        builder.samples(0, tid, 0x51_0000, 5, 0);
        builder.single_syscall(tid, 257, name("/").as_bytes(), 1_000).single_syscall(
            tid,
            0,
            HOSTILE.as_bytes(),
            9_000,
        );
        builder.single_syscall(tid, 59, name("/bin/").as_bytes(), 20_000);
        let mut file = FileRow { tid, mode: 0o100_644, inode: 7, samples: 5, ..zeroed() };
        let bytes = name("=").into_bytes();
        file.name[..40].copy_from_slice(&bytes[..40]);
        let mut cause = CauseRow { tid, number: 202, waits: 9, total_ns: 5_000_000, ..zeroed() };
        cause.waker_name[..14].copy_from_slice(b"=\x1b[2J<hostile>");
        (cause.max_ns, cause.waker, cause.waker_pid, cause.waker_kind) = (1_000_000, 4, 9, 3);
        builder.file(file).cause(cause);
    }
    builder
}

fn zeroed<T: bytemuck::Zeroable>() -> T {
    T::zeroed()
}

fn report(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chase-report"));
    command.current_dir(directory).args(arguments);
    for name in ["CHASE_OUTPUT", "COLUMNS", "NO_COLOR", "PAGER", "LESS"] {
        command.env_remove(name);
    }
    command.output().expect("chase-report runs")
}

/// Nothing steers a terminal, nor goes on in the wrong direction.
fn is_clean(text: &str) -> bool {
    let steers = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    !text.contains(steers)
}

fn check_text(what: &str, text: &str) {
    assert!(is_clean(text), "{what}: {:?}", text.lines().find(|line| !is_clean(line)));
    // The name of a megabyte is in few lines, and makes no others as long.
    assert!(text.len() < 40 << 20, "{what}: {} bytes", text.len());
    assert!(!text.is_empty(), "{what}");
}

fn check_json(what: &str, text: &str) {
    check_text(what, text);
    serde_json::from_str::<serde_json::Value>(text)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
}

/// Each row has as many fields as the heading, and none is a formula.
fn check_csv(what: &str, text: &str) {
    check_text(what, text);
    let mut rows = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    for row in rows.records() {
        let row = row.unwrap_or_else(|error| panic!("{what}: {error}"));
        for field in &row {
            let is_number = field.parse::<f64>().is_ok();
            assert!(is_number || !field.starts_with(['=', '+', '-', '@']), "{what}: {field:?}");
        }
    }
}

/// Names are text there: no element, no script.
fn check_markup(what: &str, text: &str) {
    for part in ["<hostile", "<svg onload", "</script><!--"] {
        assert!(!text.contains(part), "{what}: {part}");
    }
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(
        !text.contains(steers),
        "{what}: {:?}",
        text.lines().find(|line| line.contains(steers))
    );
}

/// A stack and a number in each line.
fn check_folded(what: &str, text: &str) {
    check_text(what, text);
    for line in text.lines() {
        let number = line.rsplit_once(' ').map(|(_, number)| number.parse::<u64>());
        assert!(matches!(number, Some(Ok(_))), "{what}: {line:?}");
    }
}

/// What of the command line is looked at, and how.
type Check = fn(&str, &str);
const OUTPUTS: &[(&[&str], Check)] = &[
    (&["export", "--format", "folded"], check_folded),
    (&["export", "--format", "speedscope"], check_json),
    (&["export", "--format", "firefox"], check_json),
    (&["export", "--format", "csv"], check_csv),
    (&["export", "--format", "json"], check_json),
    (&["graph", "--format", "svg"], check_markup),
    (&["graph", "--format", "dot"], check_text),
    (&["components", "--graph", "svg"], check_markup),
    (&["components", "--graph", "dot"], check_text),
    (&["compare", "chase.data", "chase.data"], check_text),
    (&["compare", "chase.data", "chase.data", "--json"], check_json),
    (&["compare", "chase.data", "chase.data", "--csv"], check_csv),
    (&["--json"], check_json),
    (&["--csv"], check_csv),
    (&[], check_text),
];
/// Views that are no tables of a recording, or need more than a name; they are in [`OUTPUTS`], below, or make nothing of names.
const OTHER_VIEWS: [&str; 7] = ["charts", "compare", "export", "fold", "html", "help", "top"];

/// The views that there are, as the program itself lists them.
fn views(directory: &Path) -> BTreeSet<String> {
    let help = String::from_utf8(report(directory, &["--help"]).stdout).expect("text");
    let commands = help.split("\nCommands:\n").nth(1).expect("a list of views");
    let lines = commands.lines().take_while(|line| !line.is_empty());
    let named = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn names_steer_no_output() {
    let directory = TempDir::new().expect("a directory");
    let data = directory.path().join("chase.data");
    fs::create_dir(&data).expect("a directory");
    let file = data.join("app\x1b[2J<hostile>.1000.chase");
    fs::write(&file, raw(recording().build())).expect("written");
    let mut beside = file.into_os_string();
    beside.push(".syscalls");
    fs::write(&beside, raw(syscalls().build())).expect("written");
    // One that can't be read is named, too.
    fs::write(data.join("=bad\x1b[2J<hostile>.chase"), "no recording").expect("written");

    let shown = |arguments: &[&str], check: Check| {
        let what = arguments.join(" ");
        let output = report(directory.path(), arguments);
        let errors = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(output.status.success(), "{what}: {errors}");
        assert!(is_clean(&errors), "{what}: {errors:?}");
        let text = String::from_utf8(output.stdout).unwrap_or_else(|_| panic!("{what}: no UTF-8"));
        check(&what, &text);
    };
    let mut views = views(directory.path());
    for view in OTHER_VIEWS {
        assert!(view == "help" || views.contains(view), "{view} is there");
        views.remove(view);
    }
    for needed in ["libs", "apis", "threads", "narrate", "findings", "not-seen"] {
        assert!(views.contains(needed), "{needed} is a view: {views:?}");
    }
    for view in &views {
        shown(&[view], check_text);
        shown(&[view, "--json"], check_json);
        shown(&[view, "--csv"], check_csv);
    }
    shown(&["brief"], check_text);
    shown(&["top", "--once"], check_text);
    shown(&["top", "--json"], check_json);
    for (arguments, check) in OUTPUTS {
        shown(arguments, *check);
    }

    shown(&["html", "-o", "page.html"], check_text);
    check_markup(
        "the page",
        &fs::read_to_string(directory.path().join("page.html")).expect("text"),
    );
    shown(&["charts", "-o", "charts"], check_text);
    let mut charts = 0;
    for entry in fs::read_dir(directory.path().join("charts")).expect("charts") {
        let path = entry.expect("a chart").path();
        if path.extension().is_some_and(|extension| extension == "svg") {
            let text = fs::read_to_string(&path).expect("text");
            check_markup(&path.display().to_string(), &text);
            charts += 1;
        }
    }
    assert!(charts > 0);
    // These are not text, and whoever opens them draws names as text.
    for (format, name) in [("perfetto", "trace"), ("pprof", "profile")] {
        let output = report(directory.path(), &["export", "--format", format, "-o", name]);
        assert!(output.status.success(), "{format}");
        let len = fs::metadata(directory.path().join(name)).expect("written").len();
        assert!((1..20 << 20).contains(&len), "{format}: {len} bytes");
    }
}
