//! Runs a stand-in for a recorded program under the companion and checks what was seen of it.
//!
//! Mostly needs root (or the capabilities) and BTF; says so and passes where they are missing.
#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use chase_analyzer::syscall;
use chase_companion::program::{Error, Program};
use chase_format::session::FILE_NAME;
use chase_format::syscalls::{
    COMPAT, STATE_COMPLETE, STATE_OPEN, SyscallRow, SyscallsHeader, WAIT_PREEMPTED, WAIT_VOLUNTARY,
    WaitRow,
};
use chase_recorder::reader::SyscallsFile;
use chase_tests::steal;
use tempfile::TempDir;

const COMPANION: &str = env!("CARGO_BIN_EXE_chase-companion");

/// One test at a time: what they measure would disturb each other.
static ALONE: Mutex<()> = Mutex::new(());

/// Whether the programs can be loaded here; says so if not.
fn possible() -> bool {
    // SAFETY: it only asks for a number.
    match Program::start(0, unsafe { libc::getuid() }) {
        Ok(_) => true,
        Err(error @ (Error::NoBtf | Error::NotPermitted)) => {
            eprintln!("skipped: {error}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

struct Run {
    directory: TempDir,
    target: PathBuf,
}

impl Run {
    fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        let target = directory.path().join("target");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/target.c");
        let mut compile = Command::new("cc");
        compile.args(["-O1", "-Wall", "-Werror", "-pthread", "-o"]).arg(&target).arg(source);
        assert!(compile.status().expect("cc").success());
        Self { directory, target }
    }

    fn recording(&self) -> PathBuf {
        self.directory.path().join("target.chase")
    }

    fn companion(&self, mode: &[&str]) -> Command {
        let mut command = Command::new(COMPANION);
        command.arg("--output").arg(self.directory.path()).arg("--");
        command.arg(&self.target).arg(self.recording()).args(mode);
        command
    }

    fn run(&self, mode: &[&str]) -> Output {
        let output = self.companion(mode).output().expect("runs");
        assert!(output.status.success(), "{output:?}");
        output
    }

    fn main_file(&self) -> Seen {
        Seen::read(&self.directory.path().join("target.chase.syscalls"))
    }

    fn all_files(&self) -> Vec<Seen> {
        let entries = fs::read_dir(self.directory.path()).expect("readable");
        let paths = entries.map(|entry| entry.expect("readable").path());
        let files =
            paths.filter(|path| path.extension().is_some_and(|extension| extension == "syscalls"));
        files.map(|path| Seen::read(&path)).collect()
    }
}

struct Seen {
    header: SyscallsHeader,
    syscalls: Vec<SyscallRow>,
    waits: Vec<WaitRow>,
}

impl Seen {
    fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = SyscallsFile::parse(bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(file.problems(), []);
        let (syscalls, waits) = (file.syscalls().collect(), file.waits().collect());
        Self { header: *file.header(), syscalls, waits }
    }

    fn rows(&self, context: u32, number: i64) -> Vec<&SyscallRow> {
        let fits =
            |row: &&SyscallRow| row.context_ref == context && i64::from(row.number) == number;
        self.syscalls.iter().filter(fits).collect()
    }

    fn row(&self, context: u32, number: i64) -> &SyscallRow {
        let rows = self.rows(context, number);
        assert_eq!(rows.len(), 1, "rows of syscall {number} in context {context}");
        rows[0]
    }

    fn waited_ns(&self, context: u32, kind: u32) -> u64 {
        let fits = |row: &&WaitRow| row.context_ref == context && row.kind == kind;
        self.waits.iter().filter(fits).map(|row| row.total_ns).sum()
    }
}

#[test]
fn each_call_is_counted_in_its_context() {
    let _alone = ALONE.lock();
    if !possible() {
        return;
    }
    let run = Run::new();
    run.run(&["counts"]);
    let seen = run.main_file();
    assert_eq!(seen.header.state, STATE_COMPLETE);
    assert_eq!((seen.header.lost_calls, seen.header.lost_waits), (0, 0));
    let getppid = seen.row(5, libc::SYS_getppid);
    assert_eq!((getppid.calls, getppid.errors), (1_000_000, 0));
    assert_eq!(getppid.histogram.iter().sum::<u64>(), 1_000_000);
    assert_eq!(getppid.tid, seen.header.pid);
    let write = seen.row(6, libc::SYS_write);
    assert_eq!((write.calls, write.returned), (1_000_000, 10_000_000));
    let access = seen.row(7, libc::SYS_access);
    assert_eq!((access.calls, access.errors), (7, 7));
    assert_eq!(access.errnos[..2], [(libc::ENOENT as u64) << 48 | 7, 0]);
    assert_eq!(seen.row(7, libc::SYS_close).errnos[0], (libc::EBADF as u64) << 48 | 3);
    // The root's node, where no call is open.
    assert_eq!(seen.row(1, libc::SYS_getpgid).calls, 11);
    assert_eq!(seen.row(11, 64 | i64::from(COMPAT)).calls, 5);
    assert_eq!(seen.row(9, libc::SYS_getsid).calls, 13);
    assert_eq!(seen.row(8, libc::SYS_getsid).calls, 17);
    for context in 20..24 {
        let row = seen.row(context, libc::SYS_getppid);
        assert_eq!(row.calls, 10_000);
        assert_ne!(row.tid, seen.header.pid);
    }
    assert_eq!(seen.row(1, libc::SYS_exit_group).calls, 1);
}

/// What the host takes of a thread that has been woken is no wait: only then it is tried again.
#[test]
fn waits_are_as_long_as_they_were() {
    let _alone = ALONE.lock();
    if !possible() {
        return;
    }
    let failures = steal::attempts_within(0.0, 1, compare_waits);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs a program that waits for known times, and gives what differs.
fn compare_waits() -> Result<(), String> {
    let run = Run::new();
    let output = run.run(&["waits"]);
    let seen = run.main_file();
    let text = String::from_utf8(output.stdout).expect("text");
    for line in text.lines() {
        let (context, ns) = line.split_once(' ').expect("two words");
        let waited = seen.waited_ns(context.parse().expect("a number"), WAIT_VOLUNTARY);
        let truth: f64 = ns.parse().expect("a number");
        if (waited as f64 - truth).abs() >= 0.03 * truth {
            return Err(format!("context {context}: {waited} instead of {ns}"));
        }
    }
    assert_eq!(seen.waited_ns(33, WAIT_VOLUNTARY), 0, "a busy loop");
    // Whoever else runs on this machine may have preempted it.
    assert!(seen.waited_ns(33, WAIT_PREEMPTED) < 400_000_000);
    Ok(())
}

#[test]
fn samples_are_where_the_time_is() {
    let _alone = ALONE.lock();
    if !possible() {
        return;
    }
    let run = Run::new();
    let output = run.companion(&["samples"]).env("CHASE_SAMPLE", "997").output().expect("runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let (cpu_ns, address) = text.trim().split_once(' ').expect("two words");
    let cpu_ns: f64 = cpu_ns.parse().expect("a number");
    let address = u64::from_str_radix(address, 16).expect("an address");
    let bytes = fs::read(run.directory.path().join("target.chase.syscalls")).expect("written");
    let file = SyscallsFile::parse(bytes).expect("well-formed");
    assert_eq!((file.problems(), file.header().sample_hz), (&[][..], 997));
    assert_eq!(file.header().lost_samples, 0);

    // From switch to switch, it is what the thread's own clock says; that was asked before the end.
    let on_cpu_ns: u64 = file.on_cpu().map(|row| row.on_cpu_ns).sum();
    assert!((on_cpu_ns as f64 / cpu_ns - 1.0).abs() < 0.02, "{on_cpu_ns} of {cpu_ns}");

    let in_context = |context: u32| -> f64 {
        let of_context = file.samples().filter(|row| row.context_ref == context);
        of_context.map(|row| f64::from(row.user + row.kernel)).sum()
    };
    let (first, second) = (in_context(41), in_context(42));
    // 997 a second of 1.12 s: within five standard deviations.
    let all = first + second;
    assert!((all / (1.12 * 997.0) - 1.0).abs() < 0.1, "{all}");
    assert!((first - all / 4.0).abs() < 5.0 * (all * 3.0 / 16.0).sqrt(), "{first} and {second}");

    // The program is where they are, and the mapping says so.
    let mapping = file.mappings().find(|row| (row.start..row.end).contains(&address));
    let path = mapping.map(|row| chase_recorder::reader::mapping_path(&row).into_owned());
    assert_eq!(path.as_deref(), run.target.to_str());
}

/// Calls by name, of all processes.
fn by_name(files: &[Seen]) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    for row in files.iter().flat_map(|file| &file.syscalls) {
        let name =
            syscall(row.number).map_or_else(|| row.number.to_string(), |call| call.name.to_owned());
        *calls.entry(name).or_insert(0) += row.calls;
    }
    calls
}

/// The rows of system calls of which the numbers differ, with all that may tell why.
fn told_apart(
    files: &[Seen],
    found: &BTreeMap<String, u64>,
    expected: &BTreeMap<String, u64>,
) -> String {
    let mut text = String::new();
    for file in files {
        let header = &file.header;
        let lost =
            (header.lost_calls, header.lost_waits, header.lost_processes, header.lost_threads);
        text += &format!("process {}, state {}, lost {lost:?}:\n", header.pid, header.state);
        for row in &file.syscalls {
            let name = syscall(row.number).map_or("", |call| call.name);
            if found.get(name) != expected.get(name) {
                text += &format!(
                    "  {name}: {} of thread {} in context {}, in buckets {}\n",
                    row.calls,
                    row.tid,
                    row.context_ref,
                    row.histogram.iter().sum::<u64>()
                );
            }
        }
    }
    text
}

/// Runs the target under both at once, and gives what `strace -f` counts after the hello.
fn run_under_strace(run: &Run, mode: &[&str]) -> Option<BTreeMap<String, u64>> {
    let log = run.directory.path().join("strace");
    let mut command = Command::new(COMPANION);
    command.arg("--output").arg(run.directory.path()).args(["--", "strace", "-f", "-qq", "-o"]);
    let output =
        command.arg(&log).arg(&run.target).arg(run.recording()).args(mode).output().expect("runs");
    if output.status.code() == Some(1) && !log.exists() {
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(log).expect("a log");
    let mut calls = BTreeMap::new();
    for line in text.lines().skip_while(|line| !line.contains("0x53414843")).skip(1) {
        let (_, line) = line.split_once(' ').expect("a process id");
        let line = line.trim_start();
        let begun = !line.starts_with(['+', '-', '<']);
        if let (true, Some((name, _))) = (begun, line.split_once('(')) {
            *calls.entry(name.to_owned()).or_insert(0) += 1;
        }
    }
    Some(calls)
}

#[test]
fn counts_equal_those_of_strace() {
    let _alone = ALONE.lock();
    if !possible() {
        return;
    }
    let script = "import json,subprocess,threading;print(len(json.dumps(list(range(9999)))));\
        subprocess.run(['ls','/usr']);t=threading.Thread(target=print);t.start();t.join()";
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/target.c");
    let programs: [&[&str]; 6] = [
        &["tree"],
        &["spawn", "sh", "-c", "ls /usr | sort | uniq -c"],
        &["spawn", "tar", "cf", "/dev/null", "/usr/include/linux"],
        &["spawn", "python3", "-c", script],
        &["spawn", "cc", "-O1", "-pthread", "-o", "/dev/null", source],
        &["spawn", "sort", "--parallel=4", "-R", source],
    ];
    for program in programs {
        let run = Run::new();
        let Some(expected) = run_under_strace(&run, program) else {
            return eprintln!("skipped: strace is not installed");
        };
        let files = run.all_files();
        let found = by_name(&files);
        assert_eq!(found, expected, "{program:?}:\n{}", told_apart(&files, &found, &expected));
        if program == ["tree"] {
            assert_eq!(files.len(), 121);
        }
    }
}

#[test]
fn a_killed_companion_leaves_the_program_alone() {
    let _alone = ALONE.lock();
    if !possible() {
        return;
    }
    let run = Run::new();
    let session = "77";
    let mut companion = Command::new(COMPANION);
    companion
        .args(["--session", session, "--output"])
        .arg(run.directory.path())
        .stderr(Stdio::null());
    let mut companion = companion.spawn().expect("starts");
    let announced = run.directory.path().join(FILE_NAME);
    while !fs::read_to_string(&announced).is_ok_and(|text| text.contains("session ")) {
        sleep(Duration::from_millis(10));
    }
    let mut target = Command::new(&run.target);
    target.arg(run.recording()).arg("long").env("CHASE_SESSION", session);
    let mut target = target.spawn().expect("starts");
    sleep(Duration::from_millis(900));
    companion.kill().expect("killed");
    companion.wait().expect("ended");
    assert!(target.wait().expect("ended").success());
    let seen = run.main_file();
    assert_eq!(seen.header.state, STATE_OPEN);
    let calls = seen.row(5, libc::SYS_getppid).calls;
    assert!((100..20_000).contains(&calls), "{calls}");
}

#[test]
fn many_threads_and_many_short_processes_lose_nothing() {
    let _alone = ALONE.lock();
    if !possible() {
        return;
    }
    let run = Run::new();
    run.run(&["threads"]);
    let seen = run.main_file();
    assert_eq!(seen.rows(40, libc::SYS_getppid).len(), 500);
    assert!(seen.rows(40, libc::SYS_getppid).iter().all(|row| row.calls == 100));
    run.run(&["spawn", "sh", "-c", "i=0; while [ $i -lt 5000 ]; do (:); i=$((i+1)); done"]);
    let files = run.all_files();
    assert!(files.len() > 5000, "{}", files.len());
    for file in &files {
        assert_eq!(file.header.state, STATE_COMPLETE);
        assert_eq!(
            (file.header.lost_calls, file.header.lost_processes, file.header.lost_threads),
            (0, 0, 0)
        );
    }
}

/// The companion as an ordinary user, with these capabilities; `None` where that can't be done.
fn as_nobody(run: &Run, capabilities: &str) -> Option<Command> {
    let copy = run.directory.path().join("companion");
    fs::copy(COMPANION, &copy).expect("copied");
    let setcap = Command::new("setcap").arg(capabilities).arg(&copy).status();
    if !setcap.is_ok_and(|status| status.success()) {
        eprintln!("skipped: setcap is not installed, or not root");
        return None;
    }
    let given = Command::new("chown").arg("-R").arg("65534").arg(run.directory.path()).status();
    assert!(given.expect("chown").success());
    // chown takes the capabilities away.
    assert!(
        Command::new("setcap").arg(capabilities).arg(&copy).status().expect("setcap").success()
    );
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy);
    command
        .arg("--output")
        .arg(run.directory.path())
        .arg("--")
        .arg(&run.target)
        .arg(run.recording());
    Some(command)
}

#[test]
fn two_capabilities_are_enough_and_one_is_not() {
    let _alone = ALONE.lock();
    if !possible() {
        return;
    }
    let run = Run::new();
    for missing in ["cap_bpf+ep", "cap_perfmon+ep"] {
        let Some(mut command) = as_nobody(&run, missing) else { return };
        command.env("CHASE_SAMPLE", "off").arg("tree");
        let output = command.output().expect("runs");
        assert_eq!(output.status.code(), Some(1), "{missing}: {output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("no privilege for bpf(2)") && text.lines().count() == 1, "{text}");
    }
    let Some(mut command) = as_nobody(&run, "cap_bpf,cap_perfmon+ep") else { return };
    let output = command.arg("tree").output().expect("runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(run.all_files().len(), 121);
}

#[test]
fn a_set_id_image_is_not_traced() {
    let _alone = ALONE.lock();
    if !possible() {
        return;
    }
    let run = Run::new();
    let set_id = run.directory.path().join("true");
    fs::copy("/bin/true", &set_id).expect("copied");
    let Some(mut command) = as_nobody(&run, "cap_bpf,cap_perfmon+ep") else { return };
    let owned = Command::new("chown").arg("0").arg(&set_id).status().expect("chown");
    let marked = Command::new("chmod").arg("4755").arg(&set_id).status().expect("chmod");
    assert!(owned.success() && marked.success());
    let output = command.arg("spawn").arg(&set_id).output().expect("runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("1 set-id"), "{text}");
    let files = run.all_files();
    assert_eq!(files.len(), 1);
    assert_eq!(by_name(&files).get("execve"), Some(&1));
    assert_eq!(by_name(&files).get("exit_group"), Some(&1));
}

#[test]
fn a_process_of_another_user_is_refused() {
    let _alone = ALONE.lock();
    if !possible() {
        return;
    }
    let run = Run::new();
    let given = Command::new("chown").arg("-R").arg("65534").arg(run.directory.path()).status();
    if !given.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: not root");
    }
    let mut command = Command::new(COMPANION);
    command.arg("--output").arg(run.directory.path());
    command.args(["--", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    let output = command.arg(&run.target).arg(run.recording()).arg("tree").output().expect("runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("1 processes") && text.contains("another user"), "{text}");
    assert_eq!(run.all_files().len(), 0);
}

#[test]
fn without_privilege_one_line_says_so() {
    let _alone = ALONE.lock();
    let run = Run::new();
    let copy = run.directory.path().join("companion");
    fs::copy(COMPANION, &copy).expect("copied");
    let mode = |path: &Path| {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
    };
    mode(run.directory.path()).expect("changed");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy);
    command.env("CHASE_SAMPLE", "off");
    let started = Instant::now();
    let Ok(output) = command.output() else {
        return eprintln!("skipped: setpriv is not installed");
    };
    if String::from_utf8_lossy(&output.stderr).contains("setresuid") {
        return eprintln!("skipped: not root");
    }
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("no privilege for bpf(2)"), "{text}");
    assert!(started.elapsed() < Duration::from_secs(5));
}
