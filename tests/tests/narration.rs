//! System calls one by one, beside what strace sees of the same processes.
//!
//! Each test needs root and BTF; it says so and passes where they are missing.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use chase_analyzer::syscall_name;
use chase_recorder::reader::SyscallsFile;
use chase_recorder::syscalls::SingleSyscallRow;
use chase_tests::need;
use chase_tests::report;
use chase_tests::tagged::{Tagged, companion};
use chase_tests::trial::Trial;
use serde_json::Value;

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

/// How a process says hello to the companion.
const HELLO: &str = "prctl(0x53414843";

/// What strace has written, by thread: each call in a line, as it began.
fn traced(file: &str) -> BTreeMap<u32, Vec<String>> {
    let mut all: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let mut unfinished: HashMap<u32, usize> = HashMap::new();
    for line in file.lines() {
        let (pid, call) = line.split_once(' ').expect("a number and a call");
        let pid: u32 = pid.parse().expect("a number");
        let call = call.trim_start();
        let lines = all.entry(pid).or_default();
        // Ends and signals; and the hello, from which on a process is told of.
        if call.starts_with(['+', '-']) || call.starts_with(HELLO) {
            continue;
        }
        if let Some((_, rest)) = call.split_once(" resumed>") {
            if let Some(at) = unfinished.remove(&pid) {
                lines[at].push_str(rest);
            }
        } else if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
            unfinished.insert(pid, lines.len());
            lines.push(begun.to_owned());
        } else {
            lines.push(call.to_owned());
        }
    }
    all
}

fn name(call: &str) -> &str {
    call.split('(').next().unwrap_or(call)
}

/// As strace writes it, without the text of an error.
fn plain(line: &str) -> String {
    let line = line.split(" (").next().unwrap_or(line);
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Calls whose lines are compared as a whole.
const WHOLE: [&str; 30] = [
    "access",
    "brk",
    "chdir",
    "clock_getres",
    "clock_nanosleep",
    "close",
    "connect",
    "dup2",
    "exit_group",
    "fstat",
    "getpid",
    "getrlimit",
    "getsockopt",
    "getuid",
    "ioctl",
    "lseek",
    "lstat",
    "mmap",
    "mprotect",
    "munmap",
    "nanosleep",
    "newfstatat",
    "openat",
    "prlimit64",
    "rt_sigaction",
    "setsockopt",
    "stat",
    "umask",
    "uname",
    "wait4",
];

/// Calls of which all but the result is compared: strace adds what the result means.
const CALLED: [&str; 9] = [
    "execve",
    "fchdir",
    "fcntl",
    "flock",
    "mremap",
    "pselect6",
    "rt_sigprocmask",
    "set_robust_list",
    "statx",
];

/// Calls whose data strace shows in another way, or not at all: all but that is compared.
const WITHOUT_DATA: [&str; 17] = [
    "clone3",
    "futex",
    "getcwd",
    "getdents64",
    "getrandom",
    "pipe2",
    "poll",
    "pread64",
    "pwrite64",
    "read",
    "readlink",
    "recvfrom",
    "sendto",
    "socket",
    "socketpair",
    "unlink",
    "write",
];

/// A call without its data: descriptors, sizes, flags and the result stay; texts, addresses, structures and comments don't, but for
/// flags in a structure.
fn without_data(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.chars().peekable();
    let (mut depth, mut inside) = (0_usize, String::new());
    while let Some(c) = rest.next() {
        match c {
            '"' => {
                while let Some(c) = rest.next().filter(|&c| c != '"') {
                    if c == '\\' {
                        rest.next();
                    }
                }
                // Of a text that is cut off.
                while rest.next_if_eq(&'.').is_some() {}
                inside.push('_');
                if depth == 0 {
                    out.push('_');
                }
            }
            '{' | '[' => {
                depth += 1;
                inside.clear();
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    let member =
                        |part: &&str| part.trim_start_matches(['{', '[']).starts_with("flags=");
                    let flags = inside.split(", ").find(member).unwrap_or("");
                    out.push_str(&format!("{{{flags}}}"));
                }
            }
            c if depth > 0 => inside.push(c),
            c => out.push(c),
        }
    }
    // What a structure is afterwards, and what a result means.
    let out = out.replace(" => {}", "");
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let (call, result) = out.rsplit_once(") = ").unwrap_or((&out, ""));
    let (name, arguments) = call.split_once('(').unwrap_or((call, ""));
    let argument = |argument: &str| {
        let argument = argument.split(" /*").next().unwrap_or_default().trim();
        let is_data = argument.starts_with("0x") || matches!(argument, "_" | "{}");
        if is_data { "…".to_owned() } else { argument.to_owned() }
    };
    let arguments: Vec<String> = arguments.split(',').map(argument).collect();
    let result = result.split(" (").next().unwrap_or_default().trim();
    let result = if result.starts_with('?') { "?" } else { result };
    format!("{name}({}) = {result}", arguments.join(", "))
}

/// What is compared of a call, if anything; `whole` is its line with all of its data.
fn compared(whole: &str) -> Option<String> {
    if WITHOUT_DATA.contains(&name(whole)) {
        return Some(without_data(whole));
    }
    let line = plain(whole);
    compared_plainly(&line).map(str::to_owned)
}

/// The same of a call that is compared with its data.
fn compared_plainly(line: &str) -> Option<&str> {
    match name(line) {
        name if WHOLE.contains(&name) => Some(line),
        // What a lock's address leads to.
        "fcntl" if line.contains("LK") => None,
        // Named and shown in another way by some versions of strace.
        "setsockopt" | "getsockopt" if line.contains("TIMEO") => None,
        // Of arguments less is kept than is asked of strace.
        "execve" if line.contains("...") => None,
        name if CALLED.contains(&name) => line.split(" = ").next(),
        _ => None,
    }
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
fn what_is_compared_without_data_keeps_the_rest() {
    for (line, expected) in [
        ("read(3, \"a (b\\\", {\"..., 832)  = 832", "read(3, …, 832) = 832"),
        (
            "read(3, 0x7f00, 832) = -1 EAGAIN (Resource temporarily unavailable)",
            "read(3, …, 832) = -1 EAGAIN",
        ),
        (
            "clone3({flags=CLONE_VM|CLONE_FS, child_tid=0x7, exit_signal=0} => {parent_tid=[7]}, 88) = 7",
            "clone3({flags=CLONE_VM|CLONE_FS}, 88) = 7",
        ),
        ("poll([{fd=3, events=POLLIN}], 1, 0) = 1 ([{fd=3, revents=POLLIN}])", "poll(…, 1, 0) = 1"),
        ("getdents64(3, 0x55 /* 9 entries */, 32768) = 264", "getdents64(3, …, 32768) = 264"),
        (
            "futex(0x7f, FUTEX_WAIT_PRIVATE, 2, NULL) = ? ERESTARTSYS (To be)",
            "futex(…, FUTEX_WAIT_PRIVATE, 2, NULL) = ?",
        ),
    ] {
        assert_eq!(without_data(line), expected);
    }
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
