//! System calls one by one, beside what strace sees of the same processes.
//!
//! Each test needs root and BTF; it says so and passes where they are missing.

mod strace;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use chase_analyzer::syscall_name;
use chase_recorder::reader::SyscallsFile;
use chase_recorder::syscalls::SingleSyscallRow;
use chase_tests::compile::{Build, programs};
use chase_tests::need;
use chase_tests::report;
use chase_tests::tagged::{Tagged, companion};
use chase_tests::trial::Trial;
use serde_json::Value;
use strace::{compared, name, traced};

/// Runs a trial with a companion.
fn finished(what: &str, trial: Trial) -> Option<Trial> {
    companion(what)?;
    let trial = trial.hooked_env("CHASE_SYSCALLS", "require");
    let outcome = trial.hooked();
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
    Tagged::finished(&trial.output()).assert_nothing_lost();
    Some(trial)
}

/// All that was told, by thread, in the order of the beginnings.
fn single_syscalls(directory: &Path) -> BTreeMap<u32, Vec<SingleSyscallRow>> {
    let mut all: BTreeMap<u32, Vec<SingleSyscallRow>> = BTreeMap::new();
    let files =
        fs::read_dir(directory).expect("the recordings").map(|file| file.expect("one").path());
    let files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|of| of == "syscalls")).collect();
    for file in files {
        let bytes = fs::read(&file).expect("a file");
        let file = SyscallsFile::parse(bytes).expect("rows");
        assert_eq!(file.header().lost_single_syscalls, 0);
        for row in file.single_syscalls() {
            all.entry(row.tid).or_default().push(row);
        }
    }
    for rows in all.values_mut() {
        rows.sort_by_key(|row| (row.entered_ns, row.left_ns));
        // The beginnings of calls that have returned.
        let returned: Vec<u64> =
            rows.iter().filter(|row| row.left_ns > 0).map(|row| row.entered_ns).collect();
        rows.retain(|row| row.left_ns > 0 || returned.binary_search(&row.entered_ns).is_err());
    }
    all
}

/// Runs a command under strace and chase: both see the same system calls in the same order, and write those that are compared alike.
/// (Strace itself is not told of: it makes ten times as many calls, for which there may be no room on a busy machine. The command is
/// run by a shell under it: the first process is told of from its hello on only, others from their beginning.)
/// Calls with each of `expected` are told, and compared.
fn beside_strace(what: &str, command: &str, before: &str, expected: &[&str]) {
    if need::tool(what, "strace").is_none() {
        return;
    }
    let script = format!(
        "{before}; strace -f -s 95 -E CHASE_NARRATE=1 -o ../trace sh -c \"$1; true\" > /dev/null; true"
    );
    let trial = Trial::new("/bin/sh").args(["-c", &script, "sh", command]);
    let Some(trial) = finished(what, trial) else { return };
    let trace =
        fs::read_to_string(trial.output().with_file_name("trace")).expect("strace's output");
    let mut traced = traced(&trace);
    let shell = trace.split(' ').next().and_then(|pid| pid.parse().ok()).expect("a number");
    traced.remove(&shell);
    let told = compare(&trial, &trace, &traced);
    for call in expected {
        assert!(told.iter().any(|line| line.contains(call)), "{call}, in:\n{}", told.join("\n"));
    }
}

/// Compares what was told in a trial with what strace says of each thread. Returns what was compared.
fn compare(trial: &Trial, trace: &str, traced: &BTreeMap<u32, Vec<String>>) -> Vec<String> {
    assert!(!traced.is_empty(), "{trace}");
    let single_syscalls = single_syscalls(&trial.output());
    let narration = report::document(&trial.output(), "narrate");
    let narration = narration["calls"].as_array().expect("calls");
    let mut told = Vec::new();
    for (pid, lines) in traced {
        let rows = &single_syscalls[pid];
        let seen: Vec<_> = rows.iter().map(|row| syscall_name(row.number)).collect();
        let expected: Vec<&str> = lines.iter().map(|line| name(line)).collect();
        let first = seen.iter().zip(&expected).position(|(seen, expected)| seen != expected);
        assert_eq!(seen.len(), expected.len(), "{pid}: as many as strace has");
        if let Some(at) = first {
            let about = at.saturating_sub(5)..(at + 5).min(seen.len());
            panic!("{pid}: {:?} instead of {:?}", &seen[about.clone()], &expected[about]);
        }
        let mut expected = lines.iter().filter_map(|line| compared(line));
        // Without chase's own calls, of which strace knows nothing: what is left is in its order.
        let own = narration.iter().filter(|call| call["tid"].as_u64() == Some(u64::from(*pid)));
        let own: Vec<String> = own.filter_map(|call| compared(&line(call))).collect();
        assert!(!own.is_empty(), "{pid}");
        for line in own {
            assert!(expected.any(|other| other == line), "{pid}: {line}, in:\n{trace}");
            told.push(line);
        }
    }
    told
}

fn line(call: &Value) -> String {
    let text = |key: &str| call[key].as_str().expect("a text").to_owned();
    format!("{} = {}", text("call"), text("result"))
}

#[test]
fn ls_makes_the_calls_that_strace_shows() {
    let expected = ["statx(AT_FDCWD, \"/usr\"", "{st_mode=S_IFREG|"];
    beside_strace("narration beside strace", "ls -l /usr", ":", &expected);
}

#[test]
fn git_status_makes_the_calls_that_strace_shows() {
    if need::tool("the narration of git", "git").is_none() {
        return;
    }
    let before = "git init -q . && echo x > a && git add a";
    beside_strace(
        "narration beside strace",
        "git -c core.fsmonitor=false status",
        before,
        &["openat(AT_FDCWD, \".git/index\"", "newfstatat("],
    );
}

#[test]
fn sqlite3_makes_the_calls_that_strace_shows() {
    if need::tool("the narration of sqlite3", "sqlite3").is_none() {
        return;
    }
    let statements =
        "create table t(a, b); insert into t values(1, 'x'), (2, 'y'); select sum(a) from t;";
    let command = format!("sqlite3 t.db \"{statements}\"");
    beside_strace("narration beside strace", &command, ":", &["openat("]);
}

/// With threads, child programs, and calls whose flags have names.
#[test]
fn python3_makes_the_calls_that_strace_shows() {
    let what = "narration beside strace";
    let Some(python) = need::tool(what, "python3") else { return };
    let program = r#"
import fcntl, mmap, os, resource, select, signal, subprocess, threading, time

def read():
    for _ in range(3):
        with open("/etc/passwd", "rb") as file:
            file.read()

here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
os.fchdir(here)
with open("locked", "wb") as file:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(file, fcntl.LOCK_UN)
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_WRONLY | os.O_APPEND)
resource.getrusage(resource.RUSAGE_CHILDREN)
limits = resource.getrlimit(resource.RLIMIT_CORE)
resource.setrlimit(resource.RLIMIT_CORE, (0, limits[1]))
signal.signal(signal.SIGUSR1, lambda *of: None)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
select.select([], [], [], 0.000001)
time.clock_getres(time.CLOCK_PROCESS_CPUTIME_ID)
os.stat("/dev/null")
os.lstat("/")
mapped = mmap.mmap(-1, 8192)
mapped.resize(16384)
mapped.close()
threads = [threading.Thread(target=read) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
subprocess.run(["/bin/false"])
"#;
    let expected = [
        "fchdir(",
        "flock(",
        "fcntl(",
        "mremap(",
        "prlimit64(0, RLIMIT_CORE, NULL, {rlim_cur=",
        "prlimit64(0, RLIMIT_CORE, {rlim_cur=0, ",
        "rt_sigaction(SIGUSR1, {sa_handler=0x",
        "rt_sigaction(SIGUSR1, {sa_handler=SIG_IGN, sa_mask=[], sa_flags=",
        "\"/dev/null\", {st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...}",
        "\"/\", {st_mode=S_IFDIR|",
    ];
    // Without what it imports by itself, which makes more calls than all of this.
    beside_strace(what, &format!("{} -I -S -c '{program}'", python.display()), ":", &expected);
}

/// With options of sockets, what the system is called, and programs with several arguments.
#[test]
fn options_and_arguments_are_told_as_strace_shows_them() {
    let what = "narration beside strace";
    let Some(python) = need::tool(what, "python3") else { return };
    let program = r#"
import os, socket, struct, subprocess

one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 5))
one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
one.setsockopt(socket.SOL_IP, socket.IP_TOS, 16)
one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR, 8)
one.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
left, right = socket.socketpair()
left.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
os.uname()
subprocess.run(["/bin/echo", "one two", "three"], env={"A": "1"})
"#;
    let expected = [
        "setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4)",
        "SO_LINGER, {l_onoff=1, l_linger=5}, 8)",
        "TCP_NODELAY, [1], 4)",
        "SO_ERROR, [0], [8 => 4])",
        "SO_LINGER, {l_onoff=1, l_linger=5}, [8])",
        "SO_PEERCRED, {pid=",
        "uname({sysname=\"Linux\", nodename=\"",
        "execve(\"/bin/echo\", [\"/bin/echo\", \"one two\", \"three\"], 0x",
        " /* 1 var */)",
    ];
    beside_strace(what, &format!("{} -I -S -c '{program}'", python.display()), ":", &expected);
}

/// What programs are started with may be secret.
#[test]
fn arguments_of_programs_are_not_told_if_none_are_to_be_noted() {
    let what = "narration without arguments";
    for (setting, told) in [("on", "[\"/bin/true\", \"hidden\"]"), ("off", "/* 2 arguments */")] {
        let trial = Trial::new("/bin/sh").args(["-c", "/bin/true hidden; true"]);
        let trial = trial.hooked_env("CHASE_NARRATE", "1").hooked_env("CHASE_ARGUMENTS", setting);
        let Some(trial) = finished(what, trial) else { return };
        let narration = report::document(&trial.output(), "narrate");
        let calls = narration["calls"].as_array().expect("calls");
        let calls = calls.iter().map(|call| call["call"].as_str().expect("a call"));
        let started: Vec<&str> =
            calls.filter(|call| call.starts_with("execve(\"/bin/true\"")).collect();
        assert!(
            !started.is_empty() && started.iter().all(|call| call.contains(told)),
            "{started:?}"
        );
        assert!(
            setting == "on" || started.iter().all(|call| !call.contains("hidden")),
            "{started:?}"
        );
    }
}

/// Of a server in this process, which answers as long as it is asked.
#[test]
fn curl_makes_the_calls_that_strace_shows() {
    if need::tool("the narration of curl", "curl").is_none() {
        return;
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for client in server.incoming().flatten() {
            answer(client);
        }
    });
    let command = format!("curl -s http://127.0.0.1:{port}/");
    beside_strace(
        "narration beside strace",
        &command,
        ":",
        &["{sa_family=AF_INET, sin_port=htons("],
    );
}

/// Reads a request up to its empty line, and says hello.
fn answer(mut client: std::net::TcpStream) {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match client.read(&mut piece) {
            Ok(len) if len > 0 => request.extend_from_slice(&piece[..len]),
            _ => return,
        }
    }
    let _ = client
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n");
}

#[test]
fn nothing_is_told_that_was_not_asked_for() {
    if companion("narration").is_none() {
        return;
    }
    let trial = Trial::new("/bin/sh").args(["-c", "true"]).hooked_env("CHASE_SYSCALLS", "require");
    assert!(trial.hooked().status.success());
    Tagged::finished(&trial.output()).assert_nothing_lost();
    assert!(single_syscalls(&trial.output()).is_empty());
}

/// Threads in pairs: one waits for a lock that the other one has.
#[test]
fn waits_and_calls_have_the_lines_that_they_are_in() {
    let source = fs::read_to_string(programs().join("pairs.c")).expect("the source");
    let line = |of: &str, call: &str| {
        let lines = source.lines().enumerate().skip_while(|(_, line)| !line.contains(of));
        let found = lines.into_iter().find(|(_, line)| line.contains(call));
        found.expect("the line").0 + 1
    };
    let waits = line("static void *waiter", "pthread_mutex_lock");
    let ends = line("static void *holder", "pthread_mutex_unlock");
    let program = Build::program("pairs.c").without_libtrap().flags("-g -pthread").build();
    let trial = Trial::new(program).hooked_env("CHASE_NARRATE", "1").hooked_env("CHASE_SITES", "1");
    let Some(trial) = finished("lines in a narration", trial) else { return };
    let text = report::text(&trial.output(), &["narrate"]);
    let called = format!("pthread_mutex_lock (libc.so.6) at waiter pairs.c:{waits}");
    assert!(text.contains(&called), "{called}, in:\n{text}");
    let (waited, ended) = (
        format!(" at waiter pairs.c:{waits}, "),
        format!(" in pthread_mutex_unlock at holder pairs.c:{ends}"),
    );
    let told = text
        .lines()
        .any(|line| line.contains("waited ") && line.contains(&waited) && line.contains(&ended));
    assert!(told, "{waited}{ended}, in:\n{text}");
    let document = report::document(&trial.output(), "narrate");
    let site = format!("waiter pairs.c:{waits}");
    let calls = document["calls"].as_array().expect("calls");
    assert!(calls.iter().any(|call| call["site"] == *site), "{site}");
}
