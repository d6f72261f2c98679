//! What is seen of a run whose figures are known, word for word. `CHASE_BLESS=1 cargo test -p chase-cli` writes the
//! goldens anew.

use std::fs;
use std::path::{Path, PathBuf};

use chase_recorder::builder::{Builder, SyscallsBuilder};
use chase_recorder::syscalls::WAIT_VOLUNTARY;
use ratatui::Terminal as Drawn;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::once;
use super::screen::{Screen, Wish};
use super::watch::{Look, look, recent};
use crate::args::TopTable;
use crate::places::Places;
use crate::terminal::Terminal;

const US: u64 = 1_000;
const LINES: u16 = 20;

/// A server after so many rounds of 200 µs: three workers compress and wait for a lock, one thread waits for work, and
/// the main thread for all of them.
fn server(rounds: u64) -> (Builder, SyscallsBuilder) {
    let mut builder = Builder::new();
    builder.header.pid = 4711;
    builder.meta("command", "/opt/app/bin/server\x1f--fast");
    let app = builder.executable("/opt/app/bin/server");
    let libc = builder.object("/lib/x86_64-linux-gnu/libc.so.6");
    let libz = builder.object("/opt/app/lib/libz.so.1");
    let deflate = builder.slot(app, Some(libz), "deflate");
    let copy = builder.slot(libz, Some(libc), "memcpy");
    let lock = builder.slot(app, Some(libc), "pthread_mutex_lock");
    let wait = builder.slot(app, Some(libc), "pthread_cond_wait");
    let join = builder.slot(app, Some(libc), "pthread_join");
    let start = builder.object_mut(app).bias + 0x1a40;
    let main = builder.thread("server");
    for number in 0..3 {
        let worker = builder.thread(&format!("worker {number}"));
        builder.thread_mut(worker).start_routine_avma = start;
        let mut timeline = builder.timeline(worker);
        for _ in 0..rounds {
            timeline.enter(deflate).work(80 * US).call(copy, 20 * US).leave();
            timeline.call(lock, 60 * US).work(40 * US);
        }
    }
    let idle = builder.thread("idle \x1b[2J");
    builder.thread_mut(idle).start_routine_avma = start + 0x100;
    builder.timeline(idle).call(wait, rounds * 200 * US);
    builder.timeline(main).enter(join).work(rounds * 200 * US);
    let mut seen = SyscallsBuilder::new(4711);
    let refs = builder.context_refs();
    seen.name("server");
    for (tid, refs) in (4712..).zip(&refs[1..4]) {
        let lock = refs[3];
        seen.syscall(lock, tid, 202, rounds / 2, 60 * US).off_cpu_ns = rounds / 2 * 50 * US;
        seen.wait(lock, tid, WAIT_VOLUNTARY, rounds / 2, 50 * US);
    }
    seen.wait(refs[4][1], 4715, WAIT_VOLUNTARY, rounds, 199 * US);
    seen.wait(refs[0][1], 4711, WAIT_VOLUNTARY, rounds, 200 * US);
    (builder, seen)
}

/// The server when it has run for 0.6 s, and what it did in the last 0.4 s of that.
fn seen(is_running: bool, with_syscalls: bool) -> Look {
    let dir = tempfile::TempDir::new().expect("a directory");
    let at = |rounds| {
        let (recording, syscalls) = server(rounds);
        let path = dir.path().join("server.4711.chase");
        fs::write(&path, recording.build()).expect("written");
        if with_syscalls {
            fs::write(dir.path().join("server.4711.chase.syscalls"), syscalls.build())
                .expect("written");
        }
        look(chase_analyzer::load(dir.path()).expect("it can be read"), Places::new(Vec::new()))
    };
    let then = at(1_000).all.analysis.moment();
    let mut now = at(3_000);
    now.recent = recent(&now.all, &then);
    (now.is_running, now.processors) = (is_running, 8);
    now
}

/// The screen after some keys.
fn screen(keys: &str, look: &Look) -> String {
    screen_of(80, keys, look)
}

fn screen_of(columns: u16, keys: &str, look: &Look) -> String {
    let mut screen = Screen::new(TopTable::Libraries);
    let mut terminal = Drawn::new(TestBackend::new(columns, LINES)).expect("a terminal");
    let mut draw = |screen: &mut Screen| {
        terminal.draw(|frame| screen.draw(frame, look)).expect("drawn");
        let buffer = terminal.backend().buffer();
        let line = |row: u16| {
            let cells = (0..columns).map(|column| buffer[(column, row)].symbol().to_owned());
            format!("{}\n", cells.collect::<String>().trim_end())
        };
        (0..LINES).map(line).collect::<String>()
    };
    draw(&mut screen);
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\t' => KeyCode::Tab,
            '↓' => KeyCode::Down,
            other => KeyCode::Char(other),
        };
        screen.key(KeyEvent::new(code, KeyModifiers::NONE), look);
        draw(&mut screen);
    }
    draw(&mut screen)
}

fn accept(name: &str, found: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
    if std::env::var_os("CHASE_BLESS").is_some() {
        fs::write(&path, found).expect("golden written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{name}: CHASE_BLESS=1 if it is better now");
}

#[test]
fn tables_of_the_last_seconds() {
    let look = seen(true, false);
    let shown = ["", "2", "3", "4", "5", "6"].map(|keys| screen(keys, &look));
    accept("top-tables.txt", &shown.join("\n"));
}

#[test]
fn what_keys_do() {
    let look = seen(true, true);
    let shown = [
        // All since the start.
        "t",
        // Sorted by calls, the other way round.
        "2sssr",
        // Only names with a text in them, while it is typed and then.
        "2/mem",
        "2/mem\n",
        "2/nothing\n",
        // Into a library, and into a function of it: who calls it.
        "\n",
        "\n\n",
        "\n\n\n\n",
        "\n\n\x1b\x1b",
        "5\n",
        "p",
        "?",
    ];
    let shown = shown.map(|keys| format!("keys {keys:?}\n{}", screen(keys, &look)));
    accept("top-keys.txt", &shown.join("\n"));
}

#[test]
fn the_end_is_said() {
    let shown = screen("", &seen(false, false));
    assert!(shown.contains("killed after 600 ms"), "{shown}");
    assert!(shown.contains("this is the last picture"), "{shown}");
}

#[test]
fn keys_that_the_screen_leaves_to_others() {
    let look = seen(true, false);
    let mut screen = Screen::new(TopTable::Processes);
    let mut press = |code, modifiers| screen.key(KeyEvent::new(code, modifiers), &look);
    assert_eq!(press(KeyCode::Char('q'), KeyModifiers::NONE), Wish::Quit);
    assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Wish::Quit);
    assert_eq!(press(KeyCode::Char('z'), KeyModifiers::CONTROL), Wish::Stop);
    assert_eq!(press(KeyCode::Char('+'), KeyModifiers::NONE), Wish::Faster);
    assert_eq!(press(KeyCode::Char('-'), KeyModifiers::NONE), Wish::Slower);
    assert_eq!(press(KeyCode::Enter, KeyModifiers::NONE), Wish::Choose(Some(4711)));
    assert_eq!(press(KeyCode::Esc, KeyModifiers::NONE), Wish::Choose(None));
    assert_eq!(press(KeyCode::Esc, KeyModifiers::NONE), Wish::Nothing);
    // While a text is typed, keys are letters.
    press(KeyCode::Char('/'), KeyModifiers::NONE);
    assert_eq!(press(KeyCode::Char('q'), KeyModifiers::NONE), Wish::Nothing);
}

/// A terminal of any size can be drawn on.
#[test]
fn small_terminals() {
    let look = seen(true, true);
    for (columns, lines) in [(1, 1), (10, 3), (20, 5), (40, 8), (200, 60)] {
        let mut terminal = Drawn::new(TestBackend::new(columns, lines)).expect("a terminal");
        for keys in ["", "4", "?", "/x"] {
            let mut screen = Screen::new(TopTable::Functions);
            for key in keys.chars() {
                screen.key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE), &look);
            }
            terminal.draw(|frame| screen.draw(frame, &look)).expect("drawn");
        }
    }
}

/// A number that is cut would read as another.
#[test]
fn numbers_are_whole_or_not_there() {
    let look = seen(true, true);
    for keys in ["1", "2", "3", "4", "5", "6", "2p", "2t"] {
        let wide = screen_of(200, keys, &look);
        let known: Vec<&str> = wide.split_whitespace().collect();
        for columns in 20..80 {
            let narrow = screen_of(columns, keys, &look);
            // (The last line has the keys, the third the tables.)
            let lines = narrow.lines().enumerate().filter(|(at, _)| ![2, 19].contains(at));
            let words = lines.flat_map(|(_, line)| line.split_whitespace());
            for word in words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
                assert!(known.contains(&word), "{word} at {columns}:\n{narrow}");
            }
        }
    }
    let narrow = screen_of(30, "2", &look);
    assert!(narrow.contains("pthread…ex_lock  52.5 %   0.37\n"), "{narrow}");
    assert!(narrow.contains("(no room for: calls/s, Library"), "{narrow}");
}

#[test]
fn one_picture() {
    let terminal = Terminal { width: Some(80), colour: false };
    accept("top-once.txt", &once::text(&seen(true, true), None, terminal, None));
    accept("top-ended.txt", &once::text(&seen(false, true), None, terminal, Some(2)));
}

/// What the last seconds have is what there is now less what there was, and no part exceeds the whole.
#[test]
fn the_last_seconds_are_a_difference() {
    let look = seen(true, true);
    let document: serde_json::Value =
        serde_json::from_str(&once::json(&look).expect("JSON")).expect("JSON");
    let recent = &document["recent"];
    assert_eq!(recent["wall_ns"], 400_000_000);
    let deflate = |part: &serde_json::Value| {
        let rows = part["apis"].as_array().expect("a list").clone();
        rows.into_iter().find(|row| row["symbol"] == "deflate").expect("it is there")
    };
    assert_eq!(deflate(&document)["calls"], 9_000);
    assert_eq!(deflate(recent)["calls"], 6_000);
    let near = |found: &serde_json::Value, expected: f64| {
        let found = found.as_f64().expect("a number");
        assert!((found / expected - 1.0).abs() < 0.01, "{found}, not {expected}");
    };
    near(&deflate(recent)["self_ns"], 6_000.0 * 80e3);
    assert!(deflate(recent)["p50_ns"].is_null());
    let totals = &recent["totals"];
    let parts = ["application_ns", "library_ns", "own_cost_ns", "unattributed_ns"];
    let sum: f64 = parts.iter().map(|part| totals[part].as_f64().expect("a number")).sum();
    near(&totals["lifetime_ns"], sum);
    near(&totals["lifetime_ns"], 5.0 * 400e6);
    let group = |threads: u64| {
        let rows = recent["groups"].as_array().expect("a list").clone();
        rows.into_iter().find(|row| row["threads"] == threads)
    };
    let workers = group(3).expect("the three workers");
    assert_eq!(workers["calls"], 18_000);
    assert_eq!(workers["members"], serde_json::json!([4712, 4713, 4714]));
    assert_eq!(recent["idle"].as_array().map(Vec::len), Some(2));
    assert_eq!(recent["syscalls"][0]["calls"], 3_000);
    assert_eq!(document["is_running"], true);
}
