//! The companion of an ordinary user. Needs root, to become one; says so and passes where that is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use chase_format::syscalls::STATE_COMPLETE;
use chase_recorder::reader::SyscallsFile;
use chase_tests::need;
use tempfile::TempDir;

const COMPANION: &str = env!("CARGO_BIN_EXE_chase-companion");

/// A program from `tests/NAME.c`.
fn compile(directory: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{name}.c"));
    let program = directory.join(name);
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-Wall", "-Werror"]).args(flags).arg("-o").arg(&program).arg(source);
    assert!(compile.status().expect("cc").success());
    program
}

/// The companion as an ordinary user, without any capability; `None` where that can't be done.
fn as_ordinary_user(directory: &Path, before: &[&Path]) -> Option<Command> {
    if !need::root("the companion of an ordinary user") {
        return None;
    }
    let copy = directory.join("companion");
    fs::copy(COMPANION, &copy).expect("copied");
    let given = Command::new("chown").arg("-R").arg("65534").arg(directory).status();
    assert!(given.expect("chown").success());
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).args(before);
    command.arg(&copy).arg("--output").arg(directory);
    Some(command)
}

#[test]
fn without_privilege_there_are_samples() {
    let scratch = TempDir::new().expect("a directory");
    let directory = scratch.path();
    let target = compile(directory, "target", &["-pthread"]);
    let Some(mut command) = as_ordinary_user(directory, &[]) else { return };
    command
        .args(["--sample", "499", "--"])
        .arg(&target)
        .arg(directory.join("target.chase"))
        .arg("samples");
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no privilege for bpf(2)") && said.lines().count() == 1, "{said}");
    let text = String::from_utf8(output.stdout).expect("text");
    let (cpu_ns, address) = text.trim().split_once(' ').expect("two words");
    let cpu_ns: f64 = cpu_ns.parse().expect("a number");
    let address = u64::from_str_radix(address, 16).expect("an address");
    let entries = fs::read_dir(directory).expect("readable");
    let mut paths = entries.map(|entry| entry.expect("readable").path());
    let path = paths.find(|path| path.extension().is_some_and(|e| e == "syscalls"));
    let file =
        SyscallsFile::parse(fs::read(path.expect("a file")).expect("read")).expect("well-formed");
    let header = file.header();
    assert_eq!((file.problems(), header.sample_hz, header.user_only), (&[][..], 499, 1));
    assert_eq!((header.state, header.lost_samples), (STATE_COMPLETE, 0));
    assert_eq!((file.syscalls().count(), file.waits().count()), (0, 0));
    // The target's contexts are not known, and the kernel's part is not seen.
    assert!(file.samples().all(|row| row.context_ref == 0 && row.kernel == 0));
    let samples: f64 = file.samples().map(|row| f64::from(row.user)).sum();
    let expected = cpu_ns / 1e9 * 499.0;
    // Nothing is seen of the kernel, where it reads its clock, nor of what comes before it is followed.
    assert!((0.93..1.05).contains(&(samples / expected)), "{samples} instead of {expected}");
    let on_cpu_ns: u64 = file.on_cpu().map(|row| row.on_cpu_ns).sum();
    assert!((on_cpu_ns as f64 / cpu_ns - 1.0).abs() < 0.1, "{on_cpu_ns} of {cpu_ns}");
    let mapping = file.mappings().find(|row| (row.start..row.end).contains(&address));
    let path = mapping.map(|row| chase_recorder::reader::mapping_path(&row).into_owned());
    assert_eq!(path.as_deref(), target.to_str());
}

/// Where the kernel refuses that too, one line says what would permit it.
#[test]
fn without_events_one_line_says_what_permits_them() {
    let scratch = TempDir::new().expect("a directory");
    let directory = scratch.path();
    let refuse = compile(directory, "refuse", &[]);
    let Some(mut command) = as_ordinary_user(directory, &[&refuse]) else { return };
    let output = command.output().expect("runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("sysctl kernel.perf_event_paranoid=2"), "{said}");
    assert!(said.contains("setcap cap_bpf,cap_perfmon+ep") && said.lines().count() == 1, "{said}");
}
