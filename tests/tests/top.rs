//! `chase top`: a process that runs, seen from outside, and the terminal that it is shown on.

use std::fs;
use std::num::NonZeroU16;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use chase_tests::attached::Rounds;
use chase_tests::check::contradictions;
use chase_tests::compile::Build;
use chase_tests::launcher::chase;
use chase_tests::session::Session;
use chase_tests::trial::libchase;
use serde_json::Value;
use tempfile::TempDir;

/// A program that does a round for each line, recorded into `output`; every call is timed, so that counts are exact at any time.
fn recorded(output: &Path) -> Rounds {
    let program = Build::program("rounds.cpp").without_libtrap().flags("-pthread -lz").build();
    let mut command = Command::new(program);
    command.env("CHASE_OUTPUT", output).env("CHASE_TIMING", "all").env("CHASE_SYSCALLS", "off");
    Rounds::start_with(command, Some(&libchase()))
}

/// `chase top` in a directory where nothing is recorded.
fn top(arguments: &[&str]) -> Output {
    let elsewhere = TempDir::new().expect("a directory");
    let mut command = Command::new(chase());
    command.arg("top").args(arguments).current_dir(elsewhere.path());
    command.env_remove("LD_PRELOAD").env_remove("CHASE_OUTPUT").output().expect("chase runs")
}

fn json(pid: &str) -> Value {
    let output = top(&[pid, "--json", "--window", "100ms"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = contradictions(&document, false);
    assert!(found.is_empty(), "figures contradict each other: {found:#?}");
    document
}

fn calls(document: &Value, symbol: &str) -> u64 {
    let rows = document["apis"].as_array().expect("a list");
    let row = rows.iter().find(|row| row["symbol"] == symbol);
    row.and_then(|row| row["calls"].as_u64()).unwrap_or(0)
}

#[test]
fn a_process_is_seen_while_it_runs() {
    let scratch = TempDir::new().expect("a directory");
    let mut program = recorded(&scratch.path().join("out"));
    let pid = program.pid().to_string();
    program.round();
    let first = json(&pid);
    assert_eq!(first["is_running"], true);
    assert_eq!(first["processes"][0]["pid"], program.pid());
    assert!(first["recent"]["wall_ns"].as_u64() >= Some(100_000_000), "{}", first["recent"]);
    let seen = calls(&first, "crc32");
    assert!(seen > 0, "{first}");
    // Nothing happens between two looks at a program that waits for a line.
    assert_eq!(calls(&first["recent"], "crc32"), 0);
    program.round();
    assert_eq!(calls(&json(&pid), "crc32"), 2 * seen);
    let text = top(&[&pid, "--once", "--window", "100ms"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("Last ") && text.contains("Library") && text.contains("main of"),
        "{text}"
    );
    assert!(text.lines().all(|line| !line.contains('\x1b')), "{text}");
    program.end();
}

#[test]
fn what_is_not_recorded_is_said() {
    let own = std::process::id().to_string();
    let output = top(&[&own, "--once"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("chase attach {own}")), "{said}");
    let output = top(&["999999999", "--once"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("there is no process 999999999"), "{said}");
    // Its output is no terminal here.
    let output = top(&["."]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--once"), "{said}");
}

/// A shell, and what its terminal of 80 columns shows.
struct Shown {
    session: Session,
    terminal: vt100::Parser,
    directory: TempDir,
}

impl Shown {
    fn new(directory: TempDir) -> Self {
        let session = Session::new(directory.path());
        let size = |cells| NonZeroU16::new(cells).expect("some");
        let terminal = vt100::Parser::new(size(24), size(80), 0);
        let mut this = Self { session, terminal, directory };
        this.session.send("stty cols 80 rows 24; stty -g > before; echo re\"\"ady\n");
        this.until("ready");
        this
    }

    /// Waits until a text is there; all that is there then.
    fn until(&mut self, wanted: &str) -> String {
        let start = Instant::now();
        loop {
            self.terminal.process(&self.session.output());
            let contents = self.terminal.screen().contents();
            if contents.contains(wanted) {
                return contents;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "no {wanted:?} in {contents}");
        }
    }

    /// Shows a process, until the first picture is there; says the exit status after `word`.
    fn top(&mut self, pid: u32, word: &str) -> String {
        self.session.send(&format!("TERM=xterm $CHASE top {pid}; echo {word}=$?\n"));
        let picture = self.until("? help");
        assert!(self.terminal.screen().alternate_screen());
        picture
    }

    /// `top` has ended with this status, and the terminal is as it was before.
    fn is_over(&mut self, word: &str, status: i32) {
        self.until(&format!("{word}={status}"));
        assert!(!self.terminal.screen().alternate_screen());
        assert!(!self.terminal.screen().hide_cursor());
        self.session.send(&format!("stty -g > after; echo {word}\"\"-done\n"));
        self.until(&format!("{word}-done"));
        let read = |name| fs::read_to_string(self.directory.path().join(name)).expect("settings");
        assert_eq!(read("after"), read("before"));
    }
}

#[test]
fn keys_choose_what_is_shown() {
    let scratch = TempDir::new().expect("a directory");
    let mut program = recorded(&scratch.path().join("out"));
    program.round();
    let mut shown = Shown::new(TempDir::new().expect("a directory"));
    let first = shown.top(program.pid(), "keys");
    assert!(first.contains("Library") && first.contains("runs for"), "{first}");
    shown.session.send("2t");
    let functions = shown.until("crc32");
    assert!(functions.contains("In all: ") && functions.contains("libz.so.1"), "{functions}");
    shown.session.send("?");
    shown.until("Any key closes this");
    shown.session.send("x/nothing of that name");
    shown.until("no name has that text");
    shown.session.send("\x1b");
    shown.until("crc32");
    shown.session.send("/crc\r\r");
    shown.until("Called by");
    shown.session.send("p");
    shown.until("[paused]");
    shown.session.send("q");
    shown.is_over("keys", 0);
    program.end();
}

#[test]
fn the_terminal_is_given_back() {
    let scratch = TempDir::new().expect("a directory");
    let mut program = recorded(&scratch.path().join("out"));
    program.round();
    let mut shown = Shown::new(TempDir::new().expect("a directory"));
    shown.top(program.pid(), "ctrl-c");
    shown.session.send("\x03");
    shown.is_over("ctrl-c", 0);

    shown.top(program.pid(), "signal");
    let pid = i32::try_from(shown.session.job()).expect("a process id is an int");
    // SAFETY: it touches no memory; the process is the shell's, which has not waited for it.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGTERM) }, 0);
    shown.is_over("signal", 143);

    // To the background, and back.
    shown.top(program.pid(), "job");
    shown.session.send("\x1a");
    shown.until("Stopped");
    assert!(!shown.terminal.screen().alternate_screen());
    shown.session.send("fg\n");
    shown.until("? help");
    shown.session.send("q");
    // (What the shell has said of the stop is seen again when the picture is gone.)
    shown.until("job=147");
    shown.session.send("echo after=$?\n");
    shown.is_over("after", 0);

    // When the program ends, that is said, and the last picture stays.
    shown.top(program.pid(), "end");
    program.end();
    let last = shown.until("this is the last picture");
    assert!(last.contains("ended (0) after"), "{last}");
    shown.session.send("q");
    shown.is_over("end", 0);
}

#[test]
fn it_ends_with_its_terminal() {
    let scratch = TempDir::new().expect("a directory");
    let mut program = recorded(&scratch.path().join("out"));
    program.round();
    let mut shown = Shown::new(TempDir::new().expect("a directory"));
    // As in a terminal of its own, it is no shell's.
    shown.session.send(&format!("TERM=xterm exec $CHASE top {}\n", program.pid()));
    shown.until("? help");
    assert!(shown.session.hang_up(), "it goes on");
    program.end();
}
