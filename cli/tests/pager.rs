//! On a terminal, and only there: a pager, colours, and the terminal's width.

mod recordings;

use std::path::Path;
use std::process::Command;

use chase_tests::need;
use tempfile::TempDir;

/// What a person sees who types `chase-report` and `arguments` into a terminal of 100 columns,
/// after `setup` was typed into the shell.
fn on_a_terminal(dir: &Path, setup: &str, arguments: &str) -> Option<String> {
    let report = env!("CARGO_BIN_EXE_chase-report");
    let line = format!(
        "stty cols 100; unset NO_COLOR COLUMNS PAGER; export TERM=xterm; {setup} {report} {arguments}"
    );
    let typed = Command::new("script").args(["-qec", &line, "/dev/null"]).current_dir(dir).output();
    let Ok(output) = typed else {
        need::skip("what a terminal shows", "script (of bsdutils) is not installed");
        return None;
    };
    assert!(output.status.success(), "{arguments}: {output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_pager_on_a_terminal_only() {
    let dir = TempDir::new().expect("a directory for the test");
    recordings::write(dir.path(), "a.chase", &recordings::compressor());
    let pager = "PAGER=\"sed 's/^/paged: /'\"";
    let Some(seen) = on_a_terminal(dir.path(), pager, "libs a.chase") else { return };
    assert!(seen.lines().all(|line| line.starts_with("paged: ")), "{seen}");
    assert!(seen.contains("\x1b[1mLibrary\x1b[0m"), "{seen:?}");

    for (setup, arguments) in [
        (pager, "libs a.chase --no-pager"),
        (pager, "libs a.chase --json"),
        ("PAGER=", "libs a.chase"),
        ("PAGER=cat", "libs a.chase"),
        ("PAGER='no-such-pager -x 2>/dev/null'", "libs a.chase"),
    ] {
        let Some(seen) = on_a_terminal(dir.path(), setup, arguments) else { return };
        assert!(!seen.contains("paged:") && seen.contains("libz.so.1"), "{setup}: {seen}");
    }
    let Some(seen) = on_a_terminal(dir.path(), "NO_COLOR=1 PAGER=cat", "libs a.chase") else {
        return;
    };
    assert!(!seen.contains('\x1b'), "{seen:?}");
    // A pager that is left early is no error.
    let Some(_) = on_a_terminal(dir.path(), "PAGER='head -1'", "tree a.chase") else { return };
}
