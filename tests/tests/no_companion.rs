//! Where the companion may not or can't watch, and what it leaves behind.
//!
//! Each test needs root and BTF; it says so and passes where they are missing.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Duration;

use chase_tests::compile::Build;
use chase_tests::launcher::chase;
use chase_tests::need;
use chase_tests::recorded::Recording;
use chase_tests::tagged::{Tagged, alone, companion};
use chase_tests::trial::{Trial, libchase};
use tempfile::TempDir;

fn program() -> PathBuf {
    Build::program("syscalls.c").flags("-fno-builtin").without_libtrap().build()
}

/// Checks that with `auto` the program runs, with `require` it does not, and that one line says why. With `auto`, nobody
/// waits long for a companion: while it starts, the line says that, and the next process is told more.
fn assert_tells(why: &str, command: impl Fn() -> Command) {
    const STARTS: usize = 20;
    let output = open_scratch();
    for (wish, status) in [("auto", 0), ("require", 1)] {
        let run = || {
            let mut command = command();
            command.env("CHASE_OUTPUT", output.path()).env("CHASE_SYSCALLS", wish);
            command.env("CHASE_VERBOSE", "1").output().expect("runs")
        };
        let is_starting = |outcome: &Output| {
            String::from_utf8_lossy(&outcome.stderr).contains("was still starting")
        };
        let mut outcome = run();
        for _ in 1..STARTS {
            if wish != "auto" || !is_starting(&outcome) {
                break;
            }
            sleep(Duration::from_millis(100));
            outcome = run();
        }
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        let lines = said.lines().filter(|line| line.starts_with("chase: syscalls"));
        let lines: Vec<_> = lines.collect();
        assert!(lines.len() == 1 && lines[0].contains(why), "{said}");
        assert_eq!(outcome.status.code(), Some(status), "{said}");
    }
}

fn open_scratch() -> TempDir {
    let scratch = TempDir::new().expect("a scratch directory");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(scratch.path(), mode).expect("opened");
    scratch
}

/// An ordinary user's command.
fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("errors").uid(65534).gid(65534);
    command
}

/// A directory that everybody can read, with the library, the companion and the program.
fn installed() -> (TempDir, PathBuf) {
    let scratch = open_scratch();
    for file in [libchase(), libchase().with_file_name("chase-companion"), program()] {
        let to = scratch.path().join(file.file_name().expect("a name"));
        fs::copy(&file, to).expect("copied");
    }
    let program = scratch.path().join("syscalls");
    (scratch, program)
}

#[test]
fn without_privilege() {
    let _alone = alone();
    if companion("without_privilege").is_none() {
        return;
    }
    let (installed, program) = installed();
    assert_tells("no privilege for bpf(2)", || {
        let mut command = as_nobody(&program);
        command.env("LD_PRELOAD", installed.path().join("libchase.so"));
        command
    });
}

/// What is required and can't be had is said once.
#[test]
fn the_launcher_leaves_it_to_the_library() {
    let _alone = alone();
    if companion("the_launcher_leaves_it_to_the_library").is_none() {
        return;
    }
    let (installed, program) = installed();
    let own = installed.path().join("chase");
    fs::copy(chase(), &own).expect("copied");
    let mut command = Command::new(own);
    command.args(["record", "--syscalls", "require", "-o"]).arg(installed.path().join("out"));
    command.arg(program).arg("errors").uid(65534).gid(65534);
    let outcome = command.env_remove("LD_PRELOAD").output().expect("runs");
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!(outcome.status.code(), Some(1), "{said}");
    assert!(said.contains("no privilege for bpf(2)") && said.lines().count() == 1, "{said}");
}

/// Who asks for a narration and can't have one is told at once, and by the report: the program runs and is recorded without.
#[test]
fn no_narration_says_why() {
    let _alone = alone();
    if companion("no_narration_says_why").is_none() {
        return;
    }
    let (installed, program) = installed();
    let place = |name: &str| installed.path().join(name);
    fs::copy(chase(), place("chase")).expect("copied");
    fs::copy(libchase().with_file_name("chase-report"), place("chase-report")).expect("copied");
    let said = |name: &str, options: &[&str]| {
        let mut command = Command::new(place("chase"));
        command.args(["record", "--narrate"]).args(options).arg("-o").arg(place(name));
        command.arg(&program).arg("errors").uid(65534).gid(65534);
        let outcome = command.env_remove("LD_PRELOAD").output().expect("runs");
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(outcome.status.success(), "{said}");
        let lines = said.lines().filter(|line| line.contains("no narration"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let assert_says = |name: &str, options: &[&str], why: &str| {
        let lines = said(name, options);
        assert!(lines.len() == 1 && lines[0].contains(why), "{lines:?}");
        let mut report = Command::new(place("chase-report"));
        let outcome = report.arg("narrate").arg(place(name)).output().expect("runs");
        let reported = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(reported.contains("not told one by one") && reported.contains(why), "{reported}");
    };
    assert_says("unprivileged", &[], "no privilege for bpf(2)");
    // The companion of the first run may be there still.
    assert_says("unprivileged", &[], "no privilege for bpf(2)");
    assert_says("off", &["--syscalls", "off"], "CHASE_SYSCALLS=off");
    assert!(said("quiet", &["-q"]).is_empty());
    fs::remove_file(place("chase-companion")).expect("removed");
    assert_says("alone", &[], "no chase-companion");
}

#[test]
fn with_two_capabilities() {
    let _alone = alone();
    if companion("with_two_capabilities").is_none() {
        return;
    }
    let (installed, program) = installed();
    let companion = installed.path().join("chase-companion");
    let set = Command::new("setcap").arg("cap_bpf,cap_perfmon+ep").arg(&companion).status();
    if !set.is_ok_and(|status| status.success()) {
        return need::skip("with_two_capabilities", "setcap is not installed");
    }
    let output = open_scratch();
    let mut command = as_nobody(&program);
    command.env("LD_PRELOAD", installed.path().join("libchase.so"));
    command.env("CHASE_OUTPUT", output.path()).env("CHASE_SYSCALLS", "require");
    let outcome = command.output().expect("runs");
    assert!(outcome.status.success(), "{outcome:?}");
    assert_eq!(Tagged::finished(output.path()).calls("access", "access"), 7);
}

#[test]
fn without_types_of_the_kernel() {
    let _alone = alone();
    if companion("without_types_of_the_kernel").is_none() {
        return;
    }
    let script = "mount -t tmpfs none /sys/kernel/btf && exec env LD_PRELOAD=$0 $1 errors";
    assert_tells("has no BTF", || {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script]).arg(libchase()).arg(program());
        command
    });
}

#[test]
fn where_bpf_is_forbidden() {
    let _alone = alone();
    if companion("where_bpf_is_forbidden").is_none() {
        return;
    }
    let forbidding = Build::program("without_bpf.c").without_libtrap().build();
    assert_tells("seccomp filter", || {
        let mut command = Command::new(&forbidding);
        command.args(["sh", "-c", "LD_PRELOAD=$0 exec $1 errors"]).arg(libchase()).arg(program());
        command
    });
}

#[test]
fn where_there_is_no_companion() {
    let _alone = alone();
    let (installed, program) = installed();
    fs::remove_file(installed.path().join("chase-companion")).expect("removed");
    let preloaded = || {
        let mut command = Command::new(&program);
        command.arg("errors").env("LD_PRELOAD", installed.path().join("libchase.so"));
        command
    };
    assert_tells("no chase-companion", preloaded);
    let output = open_scratch();
    let mut command = preloaded();
    command.env("CHASE_OUTPUT", output.path()).env("CHASE_SYSCALLS", "nonsense");
    let outcome = command.env("CHASE_VERBOSE", "1").output().expect("runs");
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(outcome.status.success() && said.contains("off, auto or require"), "{said}");
}

#[test]
fn the_companion_dies() {
    let _alone = alone();
    let Some(companion) = companion("the_companion_dies") else { return };
    let trial = Trial::new(program()).arg("lasting").hooked_env("CHASE_SYSCALLS", "require");
    let output = trial.output();
    let name = companion.file_name().expect("a name").display().to_string();
    let pattern = format!("{name} --output {}", output.display());
    let killer = std::thread::spawn(move || {
        let found = |tool: &str, signal: &str| {
            let status = Command::new(tool).args([signal, "-f", &pattern]).output().expect(tool);
            status.status.success()
        };
        // The bare run takes two seconds too.
        while !found("pgrep", "-c") {
            sleep(Duration::from_millis(50));
        }
        sleep(Duration::from_millis(900));
        assert!(found("pkill", "-KILL"), "there is a companion to kill");
    });
    trial.compare_outcomes();
    killer.join().expect("no panic");
    let tagged = Tagged::read(&trial.output());
    assert_ne!(tagged.headers[0].state, chase_recorder::syscalls::STATE_COMPLETE);
    let drained = tagged.calls("getppid", "getppid");
    assert!((50..3000).contains(&drained), "{drained}");
    assert!(Recording::load(&trial.output()).calls("libc.so", "getppid") > drained);
}

#[test]
fn nothing_is_left_behind() {
    let _alone = alone();
    if companion("nothing_is_left_behind").is_none() {
        return;
    }
    // Neither a child, nor a descriptor, nor a session, nor another name.
    let program = Build::program("surroundings.c").without_libtrap().build();
    let trial = Trial::new(program).hooked_env("CHASE_SYSCALLS", "require");
    trial.compare_outcomes();
    let _ = Tagged::finished(&trial.output());
}
