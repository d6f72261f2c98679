//! The page as a browser shows it, and what it is made of without one.
//!
//! Chromium, node and the packages in `tests/browser` (`npm ci` there) are wanted; without them the
//! tests that need them say so and pass. Pages stay in the target directory, to be looked at.

mod recordings;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use chase_recorder::builder::{Builder, sample};
use chase_recorder::layout::TIMING_ADAPTIVE;

const BROWSER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser");

fn report(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chase-report"));
    command.current_dir(directory).args(arguments).env_remove("CHASE_OUTPUT");
    command.output().expect("chase-report runs")
}

/// A directory of this test alone, which stays.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("html").join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("directory made");
    directory
}

/// Writes `builder`'s recording and its page; gives the page.
fn page(directory: &Path, name: &str, builder: &Builder) -> String {
    recordings::write(directory, &format!("{name}.chase"), builder);
    let (recording, page) = (format!("{name}.chase"), format!("{name}.html"));
    let output = report(directory, &["html", &recording, "--force", "-o", &page]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{name}: {errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{page}\n"));
    fs::read_to_string(directory.join(page)).expect("UTF-8")
}

/// Runs a script of `tests/browser`, or says why not.
fn node(script: &str, arguments: &[&Path]) {
    let chromium = std::env::var_os("CHASE_CHROMIUM").unwrap_or("/usr/bin/chromium".into());
    let needs_chromium = script == "check.mjs";
    let missing = if Command::new("node").arg("--version").output().is_err() {
        Some("node is not installed")
    } else if !Path::new(BROWSER).join("node_modules").exists() {
        Some("its packages are not installed: npm ci in cli/tests/browser")
    } else if needs_chromium && !Path::new(&chromium).exists() {
        Some("Chromium is not installed")
    } else {
        None
    };
    if let Some(missing) = missing {
        skip(script, missing);
        return;
    }
    let output = Command::new("node").arg(script).args(arguments).current_dir(BROWSER).output();
    let output = output.expect("node runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    eprint!("{text}");
}

/// Not by `eprintln`, which is heard only where a test fails.
fn skip(what: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {what}: {reason}");
}

/// What a page does is tried in two tests at a time, since it mostly waits.
#[test]
fn in_a_browser() {
    let directory = directory("browser");
    // What the companion saw of it stands beside.
    let seen = recordings::compressor_syscalls();
    recordings::write_syscalls(&directory, "compressor.chase.syscalls", &seen);
    let mut pages = pages(
        &directory,
        [
            ("hostile", recordings::hostile(), 2 << 20),
            ("compressor", recordings::compressor(), 2 << 20),
            ("pool", recordings::pool(), 2 << 20),
        ],
    );
    pages.push(measured_and_compared(&directory));
    node("check.mjs", &pages.iter().map(PathBuf::as_path).collect::<Vec<_>>());
}

#[test]
fn in_a_browser_with_many_rows() {
    let pages = pages(
        &directory("browser-rows"),
        [
            ("estimates", sample(), 2 << 20),
            ("apis-300", recordings::many_apis(300), 2 << 20),
            ("threads-10000", recordings::many_threads(10_000), 10 << 20),
        ],
    );
    node("check.mjs", &pages.iter().map(PathBuf::as_path).collect::<Vec<_>>());
}

/// The pages of recordings, each with the bytes that it may have.
fn pages(directory: &Path, all: [(&str, Builder, usize); 3]) -> Vec<PathBuf> {
    let written = all.into_iter().map(|(name, builder, most)| {
        let page = page(directory, name, &builder);
        assert!(page.len() < most, "{name}: {} bytes", page.len());
        directory.join(name).with_extension("html")
    });
    written.collect()
}

/// A page of four runs compared with four others, system calls and all.
fn measured_and_compared(directory: &Path) -> PathBuf {
    for (side, factor) in [("old.data", 20), ("new.data", 30)] {
        let side = directory.join(side);
        fs::create_dir_all(&side).expect("directory made");
        for run in 0..4 {
            let (recording, seen) = recordings::measured(run, factor);
            recordings::write(&side, &format!("app-{run}.chase"), &recording);
            recordings::write_syscalls(&side, &format!("app-{run}.chase.syscalls"), &seen);
        }
    }
    let output = report(directory, &["html", "old.data", "new.data", "-o", "compared.html"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    directory.join("compared.html")
}

/// The text of a section, without markup.
fn section(page: &str, id: &str) -> String {
    let start = page.split_once(&format!("<section id=\"{id}\"")).expect("the section is there").1;
    let body = start.split_once("</section>").expect("its end").0;
    let mut text = String::new();
    for part in body.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
        text.push('\n');
    }
    text.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

/// Time that belongs to no library is time in which others had the processor, and explained.
#[test]
fn what_is_not_attributed_is_waiting_for_a_processor() {
    let mut builder = Builder::new();
    builder.header.timing = TIMING_ADAPTIVE;
    let app = builder.executable("/bin/app");
    let library = builder.object("/lib/liba.so");
    let main = builder.thread("app");
    let slot = builder.slot(app, Some(library), "inner");
    let mut thread = builder.timeline(main);
    thread.work(1_000);
    for _ in 0..100 {
        thread.block(slot, 40, 100);
    }
    thread.work(400_000 + 1_000).end();
    builder.thread_mut(main).cpu_ns = 401_000;
    builder.thread_mut(main).cpu_is_final = 1;
    let page = page(&directory("not-attributed"), "app", &builder);
    let shown = section(&page, "libraries");
    assert!(shown.contains("[not attributed], an estimate"), "{shown}");
    let rows = shown.rsplit_once("calls to others").expect("the table").1;
    let row = rows.split_once("[not attributed]\n").expect("its row").1;
    let cells: Vec<&str> = row.lines().take(2).collect();
    assert_eq!(cells, ["~0 ns", "400 µs"], "running, and waiting for a processor");
}

/// The page says what the other views say.
#[test]
fn sections_have_what_the_analyzer_found() {
    let directory = directory("sections");
    let pool = page(&directory, "pool", &recordings::pool());
    let output = report(&directory, &["pool.chase", "--json"]);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = summary["findings"].as_array().expect("findings");
    assert!(!findings.is_empty());
    for finding in findings {
        let text = finding["text"].as_str().expect("a sentence");
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        // Its parts are emphasised, so it is in pieces; and numbers stay with their units.
        let shown = section(&pool, "findings").replace('\n', "").replace('\u{a0}', " ");
        assert!(shown.contains(&escaped), "{text}");
    }
    for group in summary["groups"].as_array().into_iter().flatten() {
        let label = group["label"].as_str().expect("a label");
        assert!(section(&pool, "threads").contains(label), "{label}");
    }
    assert!(section(&pool, "threads").contains("in memcpy, the median thread"), "outliers");
    assert!(section(&pool, "tail").contains("store_parse"));
    // Links of findings lead somewhere.
    for link in pool.split("href=\"#").skip(1) {
        let id = link.split_once('"').expect("its end").0;
        assert!(pool.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(!pool.contains("id=\"syscalls\"") && pool.contains("a guess, not measured"));

    recordings::write_syscalls(
        &directory,
        "compressor.chase.syscalls",
        &recordings::compressor_syscalls(),
    );
    let compressor = page(&directory, "compressor", &recordings::compressor());
    let syscalls = section(&compressor, "syscalls");
    for shown in ["read", "futex", "synchronisation", "EINTR 2", "131M", "(outside library calls)"]
    {
        assert!(syscalls.contains(shown), "{shown}: {syscalls}");
    }
    let waiting = section(&compressor, "libraries");
    assert!(waiting.contains("measured by the scheduler") && waiting.contains("for a processor"));

    for (recording, chart) in [("pool", "threads-1.svg"), ("compressor", "syscalls.svg")] {
        let output = report(&directory, &["charts", &format!("{recording}.chase"), "-o", "charts"]);
        let files = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(files.contains(chart), "{files}");
    }

    let compared = fs::read_to_string(measured_and_compared(&directory)).expect("UTF-8");
    let changes = section(&compared, "compare");
    for shown in ["4 runs of app --fast", "rank test", "deflate", "slower", "0.029", "+50.0 %"] {
        assert!(changes.contains(shown), "{shown}: {changes}");
    }
}

#[test]
fn names_are_text() {
    let directory = directory("names");
    let page = page(&directory, "hostile", &recordings::hostile());
    assert!(page.contains("&lt;img src=x"), "the name is there, as text");
    assert!(!page.contains(recordings::HOSTILE), "a name is markup");
    assert!(!page.contains("</script><script>globalThis"), "a name ends a script");
    assert!(!page.contains('\u{202e}'), "a name turns the direction of text");
    assert!(!page.contains(&"W".repeat(2000)), "a name is endless");
}

#[test]
fn the_same_recording_gives_the_same_bytes() {
    let directory = directory("bytes");
    let pages = ["a", "a"].map(|name| page(&directory, name, &recordings::many_apis(40)));
    assert!(pages[0] == pages[1]);
    let draw = |to: &str| {
        let output = report(&directory, &["charts", "a.chase", "-o", to]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let files = String::from_utf8(output.stdout).expect("UTF-8");
        let read = |file: &str| fs::read(directory.join(file)).expect("a chart");
        files.lines().map(|file| (file.replace(to, ""), read(file))).collect::<Vec<_>>()
    };
    let (first, second) = (draw("one"), draw("two"));
    assert!(first.len() > 10 && first == second);
}

/// Two recordings: tails of both, and where the time differs.
#[test]
fn compared_with_another_recording() {
    let directory = directory("compared");
    page(&directory, "before", &recordings::many_apis(30));
    page(&directory, "now", &recordings::many_apis(60));
    let output = report(&directory, &["html", "before.chase", "now.chase", "-o", "both.html"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(directory.join("both.html")).expect("UTF-8");
    assert!(page.contains("Difference from before.chase") && page.contains(", before"));
    let third = report(&directory, &["html", "before.chase", "now.chase", "now.chase"]);
    assert_eq!(third.status.code(), Some(2));
}

/// A process that ended before it called anything has a page too.
#[test]
fn a_recording_of_nothing() {
    let directory = directory("nothing");
    let mut builder = Builder::new();
    builder.executable("/bin/true");
    let page = page(&directory, "true", &builder);
    assert!(page.contains("<h1>true</h1>") && !page.contains("NaN"), "{page}");
}

#[test]
fn where_no_file_can_be_written() {
    let directory = directory("unwritable");
    recordings::write(&directory, "a.chase", &recordings::compressor());
    for arguments in [
        &["html", "a.chase", "-o", "none/report.html"][..],
        &["export", "a.chase", "--format", "folded", "-o", "none/x"],
    ] {
        let output = report(&directory, arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(errors.contains("cannot write none/"), "{errors}");
    }
}

#[test]
fn exports_are_read_by_the_tools_they_are_for() {
    let directory = directory("exports");
    for (name, builder) in
        [("hostile", recordings::hostile()), ("wide", recordings::many_apis(100))]
    {
        recordings::write(&directory, &format!("{name}.chase"), &builder);
        let export = |format: &str| {
            let file = directory.join(format!("{name}.{format}"));
            let recording = format!("{name}.chase");
            let path = file.to_str().expect("UTF-8");
            let output =
                report(&directory, &["export", &recording, "--format", format, "-o", path]);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.stdout, b"");
            file
        };
        node("speedscope.mjs", &[&export("speedscope")]);
        pprof(&export("pprof"));
        let folded = fs::read_to_string(export("folded")).expect("UTF-8");
        for line in folded.lines() {
            let (stack, value) = line.rsplit_once(' ').expect("a value");
            assert!(!stack.is_empty() && value.parse::<u64>().is_ok(), "{line}");
        }
        let json = fs::read_to_string(export("json")).expect("UTF-8");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let contexts = json["contexts"].as_array().expect("contexts").len();
        assert!(json["apis"].is_array() && json["threads"].is_array());
        let csv = fs::read(export("csv")).expect("read");
        let rows: Result<Vec<_>, _> = csv::Reader::from_reader(&*csv).records().collect();
        assert_eq!(rows.expect("rows").len(), contexts);
        // Self times add up to what the analysis says.
        let sum: u64 =
            folded.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
        let totals = &json["totals"];
        let whole =
            ["application_ns", "library_ns"].map(|part| totals[part].as_u64().expect("a number"));
        assert!(sum.abs_diff(whole[0] + whole[1]) <= contexts as u64, "{sum} {whole:?}");
    }
}

/// What Go's own pprof makes of it.
fn pprof(profile: &Path) {
    let mut command = Command::new("go");
    command
        .args(["tool", "pprof", "-top", "-nodecount=1000"])
        .arg(profile)
        .env("HOME", std::env::temp_dir());
    let Ok(output) = command.output() else {
        skip("pprof", "Go is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("Type: self") && text.contains("flat%"), "{text}");
    // As many functions as there are, and none without a name.
    assert!(text.lines().count() > 6 && !text.contains("<unknown>"), "{text}");
}
