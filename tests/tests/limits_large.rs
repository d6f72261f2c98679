//! As `limits.rs`, in numbers that take minutes: `cargo xtask limits`.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chase_tests::compile::{Build, libtrap};
use chase_tests::recorded::Recording;
use chase_tests::trial::{Trial, libchase};
use tempfile::TempDir;

const TRAP: &str = "libtrap.so";
const PATIENCE: Duration = Duration::from_secs(3600);

fn many(of: &str, count: u64, calls: u64) -> Recording {
    let program = Build::program("many.c").build();
    let start = Instant::now();
    let trial = Trial::new(program).args([of, &count.to_string(), &calls.to_string()]);
    let recording = trial.limit(PATIENCE).compare();
    let bytes = recording.disk_bytes;
    eprintln!(
        "{of}: {count} in {:.0?}, bare and hooked; {bytes} bytes on the disk",
        start.elapsed()
    );
    recording
}

#[test]
fn ten_thousand_threads_at_once() {
    let (threads, calls) = (10_000, 3);
    let recording = many("threads", threads, calls);
    let process = recording.only();
    process.expect(&[(TRAP, "trap_add", threads * calls)]);
    assert_eq!((process.unseen.threads, process.threads.len() as u64), (0, threads + 1));
    assert!(recording.disk_bytes < threads * 32 * 1024, "{} bytes", recording.disk_bytes);
}

#[test]
fn a_hundred_thousand_threads_one_after_the_other() {
    let (threads, calls) = (100_000, 3);
    let recording = many("sequence", threads, calls);
    let process = recording.only();
    // Those that find no room are counted, and so are their calls.
    let lost = process.unseen.calls_without_thread;
    assert_eq!(process.calls(TRAP, "trap_add") + lost, threads * calls, "{:?}", process.unseen);
    assert!(recording.disk_bytes < threads * 32 * 1024, "{} bytes", recording.disk_bytes);
    eprintln!("{} threads are in it, {lost} calls in none", process.threads.len());
}

#[test]
fn ten_thousand_forks() {
    let (forks, calls) = (10_000, 3);
    let recording = many("forks", forks, calls);
    assert_eq!(recording.processes.len() as u64, forks + 1);
    let made: u64 = recording.processes.iter().map(|it| it.calls(TRAP, "trap_add")).sum();
    assert_eq!(made, forks * calls);
}

#[test]
fn a_thousand_libraries_in_the_place_of_others() {
    let plugin = |number: u32| {
        let flags = format!("-DNUMBER={number}");
        let library = Build::library("libplugin.c").named(&format!("libplugin{number}.so"));
        library.flags(&flags).with(&libtrap()).build()
    };
    let rounds = 1_000;
    let program = Build::program("reload.c").build();
    let trial = Trial::new(program).arg(rounds.to_string()).args([plugin(1), plugin(2)]);
    let recording = trial.limit(PATIENCE).compare();
    let process = recording.only();
    process.expect(&[
        ("libc.so", "dlopen", rounds + 4),
        ("libc.so", "dlclose", rounds),
        (TRAP, "trap_empty", rounds),
    ]);
    eprintln!("{rounds} libraries; {} bytes on the disk", recording.disk_bytes);
}

/// A process in the midst of its calls is killed from outside; what was recorded can be read, and lacks nothing.
#[test]
fn killed_at_a_thousand_instants() {
    let program = Build::program("killed.c").build();
    let mut recorded = 0;
    for number in 0..1_000_u64 {
        let scratch = TempDir::new().expect("a directory");
        let made = scratch.path().join("made");
        let mut command = Command::new(&program);
        command.args(["kill", "1000000000000"]).arg(&made).env("LD_PRELOAD", libchase());
        command.env("CHASE_OUTPUT", scratch.path().join("out")).env("CHASE_TIMING", "all");
        command.env("CHASE_SYSCALLS", "off").stdout(Stdio::null());
        let mut child = command.spawn().expect("starts");
        // From before its first instruction until it has made many calls; an even spread, whatever the processor does.
        std::thread::sleep(Duration::from_micros(number * 37 % 20_000));
        child.kill().expect("it runs");
        assert_eq!(child.wait().expect("it ends").signal(), Some(libc::SIGKILL));
        let Some(made) = count(&made).expect("its count") else { continue };
        let recording = Recording::load(&scratch.path().join("out"));
        let calls = recording.only().calls(TRAP, "trap_empty");
        assert!((made..=made + 1).contains(&calls), "{number}: {calls} of {made}");
        recorded += 1;
    }
    eprintln!("1000 killed, {recorded} of them while they called");
    assert!(recorded > 0);
}

/// How many calls the program has made; `None` if it did not come that far.
fn count(path: &Path) -> io::Result<Option<u64>> {
    match std::fs::read(path) {
        Ok(bytes) => {
            let made = bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            Ok(Some(made).filter(|&made| made > 0))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
