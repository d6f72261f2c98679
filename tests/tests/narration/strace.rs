//! What strace writes, and what of it is compared.

use std::collections::{BTreeMap, HashMap};

/// How a process says hello to the companion.
const HELLO: &str = "prctl(0x53414843";

/// What strace has written, by thread: each call in a line, as it began.
pub(crate) fn traced(file: &str) -> BTreeMap<u32, Vec<String>> {
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

pub(crate) fn name(call: &str) -> &str {
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
pub(crate) fn compared(whole: &str) -> Option<String> {
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
