//! Who may have the companion watch what, and what it may do itself.
//!
//! Mostly needs root (or the capabilities) and BTF; says so and passes where they are missing.

mod target;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chase_format::syscalls::STATE_COMPLETE;
use chase_tests::need;

use target::{ALONE, COMPANION, Run, Seen, possible};

/// The companion as an ordinary user, with these capabilities; `None` where that can't be done.
fn as_nobody(run: &Run, capabilities: &str) -> Option<Command> {
    let copy = run.directory.path().join("companion");
    fs::copy(COMPANION, &copy).expect("copied");
    let setcap = Command::new("setcap").arg(capabilities).arg(&copy).status();
    if !setcap.is_ok_and(|status| status.success()) {
        need::skip("the companion of an ordinary user", "setcap is not installed, or not root");
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
    assert_eq!(files[0].calls(libc::SYS_execve), 1);
    assert_eq!(files[0].calls(libc::SYS_exit_group), 1);
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
        return need::skip("a process of another user", "only root can start one");
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
    let what = "the companion without privilege";
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
        return need::skip(what, "setpriv is not installed");
    };
    if String::from_utf8_lossy(&output.stderr).contains("setresuid") {
        return need::skip(what, "only root can become another user");
    }
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("no privilege for bpf(2)"), "{text}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

/// The capabilities in this line of a process's status.
fn capabilities(pid: u32, line: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let set = status.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(':'));
    u64::from_str_radix(set.expect("a set").trim(), 16).expect("a number")
}

/// What the companion may do while it watches. Its other rights are gone once it says that it is ready; it still counts all calls of
/// many short processes, and finds their mappings, as the other tests see.
#[test]
fn the_companion_gives_its_rights_up_when_it_is_ready() {
    let _alone = ALONE.lock();
    if !possible() {
        return;
    }
    let run = Run::new();
    let mut command = Command::new(COMPANION);
    command.arg("--output").arg(run.directory.path()).args(["--session", "7"]);
    let mut companion = command.stderr(Stdio::piped()).spawn().expect("starts");
    let mut said = String::new();
    let stderr = companion.stderr.take().expect("a pipe");
    BufReader::new(stderr).read_line(&mut said).expect("it says that it is ready");
    assert_eq!(said, "ready\n");
    let pid = companion.id();
    let [permitted, effective, inheritable, bounding] =
        ["CapPrm", "CapEff", "CapInh", "CapBnd"].map(|line| capabilities(pid, line));
    let own = capabilities(std::process::id(), "CapBnd");
    companion.kill().expect("it runs");
    companion.wait().expect("it ends");
    // CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE; and CAP_BPF, where an older kernel wants it for each change.
    let kept = 1 << 1 | 1 << 2 | 1 << 19 | u64::from(is_before_5_19()) << 39;
    assert_eq!(permitted & !kept, 0, "{permitted:x}");
    assert_eq!((effective & !permitted, inheritable, bounding), (0, 0, own));
}

fn is_before_5_19() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("readable");
    let mut numbers = release.split(['.', '-']).map(|number| number.trim().parse::<u32>());
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (next(), next()) < (5, 19)
}

/// Lies of a process of the same user: what of its hello is not true, how many of its 100 calls are told nevertheless, and how many
/// hellos the companion turns away.
const LIES: [(&str, u64, u64); 11] = [
    ("nothing", 100, 0),
    ("base", 100, 0),
    ("mapped", 100, 0),
    ("word", 100, 0),
    ("thread", 100, 0),
    ("path", 100, 0),
    // As if it had asked that nothing is written.
    ("nowhere", 0, 0),
    ("long", 100, 0),
    // As if it had said nothing.
    ("address", 0, 0),
    ("version", 0, 1),
    ("length", 0, 1),
];

/// They spoil at most what is told of the liar: no file but its own is written, the companion goes on, and what it says of
/// another process is exact.
#[test]
fn lies_of_a_process_of_the_same_user_reach_no_further_than_itself() {
    let _alone = ALONE.lock();
    if !possible() {
        return;
    }
    let run = Run::new();
    let place = |name: &str| run.directory.path().join(name);
    let (precious, pipe) = (place("precious"), place("piped.chase.syscalls"));
    fs::write(&precious, "precious").expect("written");
    std::os::unix::fs::symlink(&precious, place("linked.chase.syscalls")).expect("a link");
    let made = Command::new("mkfifo").arg(&pipe).arg(place("pipe")).status().expect("mkfifo");
    assert!(made.success());
    // Files that are no recordings: a text, a device that has no end, a pipe that nobody writes to.
    let paths = [precious.clone(), "/dev/zero".into(), place("pipe"), place("honest.chase")];
    let mut script = String::new();
    let mut add = |recording: &str, lie: &str, path: &Path| {
        let (target, recording) = (run.target.display(), place(recording));
        script +=
            &format!("{target} {} lie {lie} {} || exit 9\n", recording.display(), path.display());
    };
    add("honest.chase", "nothing", &precious);
    let (mut told, mut refused) = (400, 0);
    for (number, (lie, calls, turned_away)) in LIES.into_iter().enumerate() {
        for (which, path) in
            paths.iter().enumerate().filter(|(which, _)| *which == 0 || lie == "path")
        {
            add(&format!("liar-{number}-{which}.chase"), lie, path);
            (told, refused) = (told + calls, refused + turned_away);
        }
    }
    // What waits where the file of a recording is to be is replaced, and nothing is written through it.
    for name in ["piped", "linked", "last"] {
        add(&format!("{name}.chase"), "nothing", &precious);
    }
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "300", COMPANION, "--output"]).arg(run.directory.path());
    let output = command.args(["--", "sh", "-c", &script]).output().expect("runs");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("left out: {refused} processes")), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(fs::read_to_string(&precious).expect("there"), "precious");
    for name in ["honest", "piped", "linked", "last"] {
        let file = place(&format!("{name}.chase.syscalls"));
        assert!(file.symlink_metadata().expect("there").is_file(), "{name}");
        let seen = Seen::read(&file);
        assert_eq!(seen.header.state, STATE_COMPLETE, "{name}");
        assert_eq!(seen.row(5, libc::SYS_getppid).calls, 100, "{name}");
    }
    // In whatever contexts those of the liars are.
    let all: u64 = run.all_files().iter().map(|file| file.calls(libc::SYS_getppid)).sum();
    assert_eq!(all, told);
}
