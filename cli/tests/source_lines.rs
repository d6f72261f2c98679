//! Start routines and creation sites of threads, down to the line of a program built here.

mod recordings;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use chase_recorder::builder::{Builder, SyscallsBuilder};
use serde_json::Value;
use tempfile::TempDir;

const SOURCE: &str = "\
static void *worker(void *x) { return x; }
void *(*start(void))(void *) {
    return worker;
}
int main(void) { return start() == 0; }
";
const BUILD_ID: [u8; 8] = [1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Builds the program with a build id of our own.
fn build(dir: &Path, build_id: &[u8]) -> PathBuf {
    let (source, program) = (dir.join("pool.c"), dir.join("pool"));
    std::fs::write(&source, SOURCE).expect("source written");
    let id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let id = format!("-Wl,--build-id=0x{id}");
    run(Command::new("gcc").args(["-g", "-O0", &id]).arg(&source).arg("-o").arg(&program));
    program
}

fn svma_of(program: &Path, function: &str) -> u64 {
    let symbols = run(Command::new("nm").arg(program)).stdout;
    let symbols = String::from_utf8(symbols).expect("UTF-8");
    let line = symbols.lines().find(|line| line.ends_with(&format!(" {function}")));
    let address = line.and_then(|line| line.split(' ').next()).expect("a symbol");
    u64::from_str_radix(address, 16).expect("an address")
}

/// A thread that starts at `worker` and was created somewhere in `start`.
fn record(dir: &Path, program: &Path) {
    let mut builder = Builder::new();
    let app = builder.executable(program.to_str().expect("UTF-8"));
    let record = builder.object_mut(app);
    record.build_id[..BUILD_ID.len()].copy_from_slice(&BUILD_ID);
    record.build_id_len = BUILD_ID.len() as u32;
    let bias = record.bias;
    builder.thread("pool");
    let thread = builder.thread("worker");
    builder.thread_mut(thread).start_routine_avma = bias + svma_of(program, "worker");
    builder.thread_mut(thread).creation_site_avma = bias + svma_of(program, "start") + 1;
    builder.timeline(thread).work(1_000_000).end();
    recordings::write(dir, "pool.chase", &builder);
}

fn threads(dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chase-report"));
    command.current_dir(dir).args(["threads", "pool.chase"]).args(arguments).env_remove("COLUMNS");
    String::from_utf8(run(&mut command).stdout).expect("UTF-8")
}

#[test]
fn start_routine_and_creation_site() {
    let dir = TempDir::new().expect("a directory for the test");
    let program = build(dir.path(), &BUILD_ID);
    record(dir.path(), &program);
    let text = threads(dir.path(), &[]);
    assert!(text.contains("worker pool.c:1"), "{text}");
    assert!(text.contains("start pool.c:2"), "{text}");
    assert!(!text.contains("No source lines"), "{text}");
    let csv = threads(dir.path(), &["--csv", "--thread", "worker"]);
    let source = dir.path().join("pool.c").display().to_string();
    assert!(csv.contains(&format!("worker,{source},1,")), "{csv}");
}

/// The program was built again since: its lines are no longer those of the recording.
#[test]
fn another_build_is_refused_and_the_old_one_found() {
    let dir = TempDir::new().expect("a directory for the test");
    let program = build(dir.path(), &BUILD_ID);
    record(dir.path(), &program);
    let kept = dir.path().join("kept");
    std::fs::create_dir(&kept).expect("directory made");
    std::fs::copy(&program, kept.join("pool")).expect("copied");
    build(dir.path(), &[0xff; 8]);
    let text = threads(dir.path(), &[]);
    assert!(!text.contains("pool.c"), "{text}");
    assert!(
        text.contains(
            "another build: its build id is ffffffffffffffff, recorded was 0123456789abcdef"
        ),
        "{text}"
    );
    let text = threads(dir.path(), &["--debug-dir", "kept"]);
    assert!(text.contains("worker pool.c:1"), "{text}");
}

/// The functions by samples, of which `start` has three, at its first line, and `worker` one.
fn hot(dir: &Path, arguments: &[&str]) -> Vec<(String, String, u64)> {
    let program = dir.join("pool");
    let mut builder = Builder::new();
    let app = builder.executable(program.to_str().expect("UTF-8"));
    let bias = builder.object_mut(app).bias;
    let mut seen = SyscallsBuilder::new(builder.header.pid);
    seen.header.sample_hz = 997;
    let tid = builder.header.pid;
    seen.on_cpu(tid, 4_000_000);
    // (The program may have been built anew.)
    let recorded = if dir.join("kept").exists() { dir.join("kept/pool") } else { program };
    for (function, samples) in [("start", 3), ("worker", 1)] {
        seen.samples(0, tid, bias + svma_of(&recorded, function), samples, 0);
    }
    recordings::write_syscalls(dir, "pool.chase.syscalls", &seen);
    let mut command = Command::new(env!("CARGO_BIN_EXE_chase-report"));
    command.current_dir(dir).args(["hot", "pool.chase", "--json"]).args(arguments);
    let document: Value = serde_json::from_slice(&run(&mut command).stdout).expect("JSON");
    let rows = document["functions"].as_array().expect("functions").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rows.map(|row| (text(&row["function"]), text(&row["file"]), row["line"].as_u64().unwrap_or(0)))
        .collect()
}

#[test]
fn hot_functions_have_files_and_lines() {
    let dir = TempDir::new().expect("a directory for the test");
    let program = build(dir.path(), &BUILD_ID);
    record(dir.path(), &program);
    let source = dir.path().join("pool.c").display().to_string();
    let expected = [("start", 2), ("worker", 1)];
    let expected = expected.map(|(name, line)| (name.to_owned(), source.clone(), line));
    assert_eq!(hot(dir.path(), &[]), expected);
    let mut command = Command::new(env!("CARGO_BIN_EXE_chase-report"));
    command.current_dir(dir.path()).args(["hot", "pool.chase"]).env_remove("COLUMNS");
    let text = String::from_utf8(run(&mut command).stdout).expect("UTF-8");
    assert!(text.contains("pool.c:2"), "{text}");

    // Built again since: only the one that was kept tells.
    let kept = dir.path().join("kept");
    std::fs::create_dir(&kept).expect("directory made");
    std::fs::copy(&program, kept.join("pool")).expect("copied");
    build(dir.path(), &[0xff; 8]);
    let found = hot(dir.path(), &[]);
    assert!(found.iter().all(|(_, file, line)| file.is_empty() && *line == 0), "{found:?}");
    assert_eq!(hot(dir.path(), &["--debug-dir", "kept"]), expected);
}
