//! How processes find, start and share a companion.
//!
//! Each test needs root and BTF; it says so and passes where they are missing.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chase_tests::compile::Build;
use chase_tests::launcher::record;
use chase_tests::need;
use chase_tests::tagged::{Tagged, Where, companion};
use chase_tests::trial::libchase;
use tempfile::TempDir;

fn hooked(program: impl AsRef<Path>, output: &Path) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env("LD_PRELOAD", libchase()).env("CHASE_OUTPUT", output);
    command.env("CHASE_SYSCALLS", "require").env("CHASE_VERBOSE", "1").stdout(Stdio::null());
    command
}

/// The same where it may run without.
fn at_will(program: impl AsRef<Path>, output: &Path) -> Command {
    let mut command = hooked(program, output);
    command.env("CHASE_SYSCALLS", "auto");
    command
}

fn true_program() -> &'static Path {
    Path::new("/bin/true")
}

#[test]
fn many_that_start_at_once_share_one() {
    const MANY: usize = 40;
    if companion("many_that_start_at_once_share_one").is_none() {
        return;
    }
    let output = TempDir::new().expect("a scratch directory");
    let start = |_| hooked(true_program(), output.path()).stderr(Stdio::null()).spawn();
    let all: Vec<_> = (0..MANY).map(start).collect();
    for child in all {
        assert!(child.expect("starts").wait().expect("ends").success());
    }
    let tagged = Tagged::finished(output.path());
    assert_eq!(tagged.headers.len(), MANY);
    tagged.assert_nothing_lost();
}

/// The first process does not wait for the companion that it starts, and says so; those that come when it is ready are watched.
#[test]
fn nobody_waits_for_it_to_start() {
    if companion("nobody_waits_for_it_to_start").is_none() {
        return;
    }
    let output = TempDir::new().expect("a scratch directory");
    let first = at_will(true_program(), output.path()).output().expect("runs");
    let said = String::from_utf8_lossy(&first.stderr).into_owned();
    assert!(first.status.success() && said.contains("still starting"), "{said}");
    let start = Instant::now();
    loop {
        let next = at_will(true_program(), output.path()).output().expect("runs");
        let said = String::from_utf8_lossy(&next.stderr).into_owned();
        if !said.contains("syscalls are not recorded") {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{said}");
    }
    let tagged = Tagged::finished(output.path());
    assert_eq!(tagged.headers.len(), 1, "those before were not watched");
    let document = chase_tests::report::text(output.path(), &["not-seen", "--run", "all"]);
    assert!(document.contains("still starting"), "{document}");
}

/// It stays for a while after its last process, and the next run finds it; it goes when its directory does.
#[test]
fn stays_for_the_next_run() {
    if companion("stays_for_the_next_run").is_none() {
        return;
    }
    let session = |output: &Path| {
        let text = fs::read_to_string(output.join("companion.session")).expect("readable");
        text.lines().nth(1).expect("a session").to_owned()
    };
    // (One that starts for another test meanwhile asks it to end.)
    let stays = |_| {
        let output = TempDir::new().expect("a scratch directory");
        assert!(hooked(true_program(), output.path()).output().expect("runs").status.success());
        let first = session(output.path());
        let _ = Tagged::finished(output.path());
        assert!(at_will(true_program(), output.path()).output().expect("runs").status.success());
        (session(output.path()) == first).then_some((output, first))
    };
    let (output, first) = (0..3).find_map(stays).expect("one of three stays");
    // (But not one that is to have other samples.)
    let mut other = record(output.path(), &["-o", ".", "--sample", "off", "--"]);
    assert!(other.args(["true"]).output().expect("runs").status.success());
    assert_ne!(session(output.path()), first);
    let other = fs::read_to_string(output.path().join("companion.session")).expect("readable");
    assert!(other.ends_with(" sampling off\n"), "{other}");
    assert_eq!(Tagged::finished(output.path()).headers.len(), 3);
    let file = fs::File::open(output.path().join("companion.session")).expect("there");
    drop(output);
    let start = Instant::now();
    while file.try_lock_shared().is_err() {
        assert!(start.elapsed() < Duration::from_secs(3), "it stays for nobody");
    }
}

/// Also as root, what is started from here on may neither use eBPF nor take samples.
fn without_privilege() -> std::io::Result<()> {
    const SYS_ADMIN: libc::c_ulong = 21;
    const PERFMON: libc::c_ulong = 38;
    const BPF: libc::c_ulong = 39;
    for capability in [SYS_ADMIN, PERFMON, BPF] {
        // SAFETY: it only takes a number.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Why one can't start is known to the processes that come next, though the first did not wait to hear it.
#[test]
fn a_failure_is_kept() {
    if companion("a_failure_is_kept").is_none() {
        return;
    }
    let output = TempDir::new().expect("a scratch directory");
    let run = || {
        let mut command = at_will(true_program(), output.path());
        // SAFETY: the program gives up what a companion needs before it begins, by system calls alone.
        unsafe { command.pre_exec(without_privilege) };
        let outcome = command.env("CHASE_SAMPLE", "off").output().expect("runs");
        assert!(outcome.status.success());
        String::from_utf8_lossy(&outcome.stderr).into_owned()
    };
    let start = Instant::now();
    while !run().contains("no privilege for bpf(2)") {
        assert!(start.elapsed() < Duration::from_secs(20), "{}", run());
    }
    let text = fs::read_to_string(output.path().join("companion.session")).expect("readable");
    assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("failed ")), "{text}");
    let log = fs::read_to_string(output.path().join("companion.log")).unwrap_or_default();
    assert!(!log.contains("ready"), "{log}");
}

#[test]
fn a_file_of_somebody_else_stays_as_it_is() {
    if companion("a_file_of_somebody_else_stays_as_it_is").is_none() {
        return;
    }
    let output = TempDir::new().expect("a scratch directory");
    let path = output.path().join("companion.session");
    fs::write(&path, "precious\n").expect("written");
    let outcome = at_will(true_program(), output.path()).output().expect("runs");
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(outcome.status.success() && said.contains("a file of another program"), "{said}");
    assert_eq!(fs::read_to_string(&path).expect("readable"), "precious\n");

    // Nor does one that nobody writes to keep the program waiting.
    fs::remove_file(&path).expect("removed");
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    let begin = Instant::now();
    assert!(at_will(true_program(), output.path()).output().expect("runs").status.success());
    assert!(begin.elapsed() < Duration::from_secs(5));
}

/// A part of a run that has an output directory of its own has a companion of its own.
#[test]
fn each_directory_has_its_companion() {
    if companion("each_directory_has_its_companion").is_none() {
        return;
    }
    let program = Build::program("syscalls.c").flags("-fno-builtin").without_libtrap().build();
    let (outer, inner) = (TempDir::new().expect("created"), TempDir::new().expect("created"));
    let script = "cat /etc/hostname; CHASE_OUTPUT=$0 $1 tagged; true";
    let mut shell = hooked("/bin/sh", outer.path());
    shell.args(["-c", script]).arg(inner.path()).arg(program);
    let outcome = shell.stderr(Stdio::null()).status().expect("runs");
    assert!(outcome.success());
    let tagged = Tagged::finished(inner.path());
    assert_eq!(tagged.calls("getppid", "getppid"), 1_000_000);
    let outside = Tagged::finished(outer.path());
    // The shell asks too, once.
    assert!(outside.calls("getppid", "getppid") < 10);
    // A companion is no part of the run.
    let bpf = outside.rows.iter().filter(|row| row.name == "bpf").count();
    assert_eq!(bpf, 0, "{:?}", outside.rows);
}

#[test]
fn a_debugger_does_not_see_it() {
    if companion("a_debugger_does_not_see_it").is_none() {
        return;
    }
    let Some(gdb) = need::tool("a_debugger_does_not_see_it", "gdb") else { return };
    let program = Build::program("syscalls.c").flags("-fno-builtin").without_libtrap().build();
    let output = TempDir::new().expect("a scratch directory");
    let wrapper = format!(
        "set exec-wrapper env LD_PRELOAD={} CHASE_OUTPUT={} CHASE_SYSCALLS=require",
        libchase().display(),
        output.path().display()
    );
    let mut command = Command::new(gdb);
    command.args(["-batch", "-nx", "-ex", &wrapper, "-ex", "break main", "-ex", "run"]);
    command.args(["-ex", "continue", "--args"]).arg(program).arg("errors");
    let outcome = command.output().expect("runs");
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(said.contains("Breakpoint 1") && said.contains("exited normally"), "{said}");
    assert_eq!(Tagged::finished(output.path()).calls("access", "access"), 7);
}

#[test]
fn descriptors_of_the_application_are_no_limit() {
    if companion("descriptors_of_the_application_are_no_limit").is_none() {
        return;
    }
    let output = TempDir::new().expect("a scratch directory");
    let script = "ulimit -Sn 20; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do \
        sleep 0.5 & done; wait";
    let mut shell = hooked("/bin/sh", output.path());
    let outcome = shell.args(["-c", script]).stderr(Stdio::null()).status().expect("runs");
    assert!(outcome.success());
    let tagged = Tagged::finished(output.path());
    let slept = tagged.rows.iter().filter(|row| row.name == "clock_nanosleep").count();
    assert_eq!(slept, 21, "{:?}", tagged.headers);
}

/// A program that another has become is watched before chase has begun there. What chase then does is its own.
#[test]
fn what_chase_does_to_start_is_not_the_programs() {
    if companion("what_chase_does_to_start_is_not_the_programs").is_none() {
        return;
    }
    let output = TempDir::new().expect("a scratch directory");
    let script = "for i in 1 2 3 4 5; do /bin/true; done; exec /bin/true";
    let mut shell = hooked("/bin/sh", output.path());
    assert!(shell.args(["-c", script]).stderr(Stdio::null()).status().expect("runs").success());
    let tagged = Tagged::finished(output.path());
    let calls = |name: &str, own: bool| -> u64 {
        let rows = tagged.rows.iter().filter(|row| row.name == name);
        rows.filter(|row| (row.place == Where::Own) == own).map(|row| row.calls).sum()
    };
    // Neither program asks for the time or for its limits of files, by a system call.
    for name in ["clock_gettime", "uname", "ftruncate", "flock", "prctl"] {
        assert_eq!(calls(name, false), 0, "{name}");
    }
    // Of each program's libraries, the beginning is read: of the C library, but not of the hook.
    assert_eq!(calls("read", false), 6);
    let failed = tagged.rows.iter().filter(|row| row.name == "rt_sigprocmask" && row.errors > 0);
    assert!(failed.clone().all(|row| row.place == Where::Own), "{:?}", failed.collect::<Vec<_>>());
    assert!(calls("clock_gettime", true) > 0);
}

/// Programs that run without the hook are processes all the same, one that goes on as another is one, and what is missing of
/// them is said.
#[test]
fn programs_without_the_hook_are_told() {
    if companion("programs_without_the_hook_are_told").is_none() {
        return;
    }
    let output = TempDir::new().expect("a scratch directory");
    let script = "env -i /bin/sh -c '/bin/true; /bin/true; :'; /bin/true";
    let outcome = hooked("/bin/sh", output.path()).args(["-c", script]).output().expect("runs");
    assert!(outcome.status.success());
    let _ = Tagged::finished(output.path());
    let said = chase_tests::report::text(output.path(), &[]);
    // The shell; `env`, which becomes a shell without the hook; what that starts; and `true`.
    assert!(said.contains("  5 processes (1 exec)  "), "{said}");
    assert!(said.contains(", 3 threads, "), "{said}");
    let missing = chase_tests::report::text(output.path(), &["not-seen"]);
    let line = missing.lines().find(|line| line.contains("library calls of")).unwrap_or("");
    assert!(line.contains("of 3 programs that ran without the hook"), "{missing}");
    assert!(line.ends_with(": true, sh"), "{missing}");
}

/// In a namespace of process ids, the number in a recording is another process's here: who was killed there has ended all the same, and the
/// summary waits for what the companion still writes of it.
#[test]
fn the_summary_has_who_was_killed_in_a_namespace() {
    let what = "the_summary_has_who_was_killed_in_a_namespace";
    if companion(what).is_none() || need::tool(what, "unshare").is_none() {
        return;
    }
    let place = TempDir::new().expect("a scratch directory");
    for number in 0..3 {
        let output = format!("run{number}");
        let mut command = record(place.path(), &["-o", &output]);
        let killed = "(seq 30000 | sort > /dev/null; kill -9 $BASHPID); exit 3";
        command.args(["unshare", "-pf", "--mount-proc", "bash", "-c", killed]);
        let outcome = command.output().expect("runs");
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.status.code(), Some(3), "{said}");
        assert!(said.contains(", companion ") && !said.contains("no samples"), "{said}");
    }
}
