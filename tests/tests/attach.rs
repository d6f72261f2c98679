//! `chase attach`: a process that runs already is recorded, and left as it was.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use chase_recorder::layout::CLOCK_MONOTONIC;
use chase_tests::attached::{Attached, Rounds, attach, entries};
use chase_tests::compile::{Build, programs};
use chase_tests::launcher::chase;
use chase_tests::need;
use chase_tests::recorded::Recording;
use chase_tests::report;
use chase_tests::tagged::{Row, Tagged, Where, companion};
use tempfile::TempDir;

fn said(mut command: Command) -> (Option<i32>, String) {
    let output = command.output().expect("chase starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// What an undisturbed run says in as many rounds.
fn bare(command: Command, rounds: usize) -> Vec<String> {
    let mut program = Rounds::start(command);
    let lines = (0..rounds).map(|_| program.round()).collect();
    program.end();
    lines
}

/// Attaches in every other round: these have `calls_each` of crc32, which is all that is seen; and nothing else changes.
fn every_other_round_is_seen(command: impl Fn() -> Command, calls_each: u64) {
    const SEEN: usize = 3;
    let scratch = TempDir::new().expect("a directory");
    let directory = scratch.path().join("out");
    let expected = bare(command(), 2 * SEEN);
    let mut program = Rounds::start(command());
    let before = entries(program.pid());
    let descriptors =
        || fs::read_dir(format!("/proc/{}/fd", program.pid())).expect("its files").count();
    let files = descriptors();
    let mut lines = Vec::new();
    for _ in 0..SEEN {
        let attached = Attached::begin(program.pid(), &directory);
        assert_ne!(entries(program.pid()), before, "nothing was hooked");
        lines.push(program.round());
        attached.end();
        assert_eq!(changed(&before, &entries(program.pid())), [] as [String; 0]);
        lines.push(program.round());
    }
    assert_eq!(
        fs::read_dir(format!("/proc/{}/fd", program.pid())).expect("its files").count(),
        files
    );
    assert_eq!(lines, expected);
    assert_eq!(program.end(), "");
    assert_eq!(report::calls(&directory, "crc32"), SEEN as u64 * calls_each);
}

/// A process that may not read the time stamp counter is recorded by the kernel's clock, as where that counter can't be trusted.
/// (It sleeps: however busy the machine is, that is no shorter.)
#[test]
fn without_the_time_stamp_counter_the_clock_is_the_kernels() {
    let scratch = TempDir::new().expect("a directory");
    let directory = scratch.path().join("out");
    let build = Build::program("no_time_stamp.c").flags("-Wl,-z,lazy").without_libtrap();
    let mut program = Rounds::start(Command::new(build.build()));
    assert_eq!(program.round(), "1500");
    let attached = Attached::begin(program.pid(), &directory);
    assert_eq!((program.round(), program.round()), ("1500".to_owned(), "1500".to_owned()));
    attached.end();
    assert_eq!(program.round(), "1500");
    assert_eq!(program.end(), "");
    assert_eq!(report::calls(&directory, "strtol"), 1_000);
    let run = chase_analyzer::load(&directory).expect("a recording");
    assert_eq!(run.images[0].recording.header().clock_kind, CLOCK_MONOTONIC);
    let recording = Recording::load(&directory);
    let slept = recording.only().self_ns("libc.so", "clock_nanosleep");
    let slept = slept + recording.only().self_ns("libc.so", "nanosleep");
    assert!(slept >= 39.0e6, "{slept} ns");
}

/// Entries that differ, for people.
fn changed(
    before: &BTreeMap<(String, u64), u64>,
    now: &BTreeMap<(String, u64), u64>,
) -> Vec<String> {
    let differ = before.iter().filter(|(place, value)| now.get(place) != Some(value));
    differ
        .map(|((file, place), value)| {
            format!("{file}+{place:#x}: {value:#x}, now {:?}", now.get(&(file.clone(), *place)))
        })
        .collect()
}

fn rounds() -> std::path::PathBuf {
    Build::program("rounds.cpp").without_libtrap().flags("-pthread -lz").build()
}

#[test]
fn threads_of_cpp_are_seen_while_it_is_attached() {
    let program = rounds();
    every_other_round_is_seen(
        || {
            let mut command = Command::new(&program);
            // What is called for the first time meanwhile would get its address from the loader.
            command.env("LD_BIND_NOW", "1");
            command
        },
        64 * 500,
    );
}

#[test]
fn threads_of_python_are_seen_while_it_is_attached() {
    let command = || {
        let mut command = Command::new("/usr/bin/python3");
        command.arg(programs().join("rounds.py")).env("LD_BIND_NOW", "1");
        command
    };
    every_other_round_is_seen(command, 4 * 200);
}

#[test]
fn children_of_forks_meanwhile_find_no_lock_held() {
    let program = Build::program("forks_meanwhile.c").without_libtrap().flags("-pthread").build();
    let scratch = TempDir::new().expect("a directory");
    let program = Rounds::start(Command::new(program));
    for _ in 0..20 {
        let (status, said) =
            said(attach(program.pid(), scratch.path(), &["--quiet", "--duration", "10ms"]));
        assert_eq!(status, Some(0), "{said}");
    }
    assert_eq!(program.end(), "0 failed, some were made: 1");
}

#[test]
fn what_cannot_be_recorded_is_refused_with_a_reason() {
    let scratch = TempDir::new().expect("a directory");
    let refused = |pid: u32, why: &str| {
        let (status, said) = said(attach(pid, scratch.path(), &["--duration", "10ms"]));
        assert_eq!(status, Some(125), "{said}");
        assert!(said.contains(why), "{why}: {said}");
    };
    let running = |mut command: Command| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Killed(command.spawn().expect("starts"))
    };
    let static_program = Build::program("forks_meanwhile.c")
        .named("forks_static")
        .without_libtrap()
        .flags("-pthread -static")
        .build();
    refused(running(Command::new(static_program)).0.id(), "it is statically linked");
    let mut stopped = Rounds::start({
        let mut command = Command::new("sh");
        command.args(["-c", "echo ready; read line; echo done"]);
        command
    });
    // SAFETY: it is our child, which runs.
    unsafe { libc::kill(stopped.pid() as i32, libc::SIGSTOP) };
    while !fs::read_to_string(format!("/proc/{}/stat", stopped.pid()))
        .expect("it is there")
        .contains(") T ")
    {
        std::thread::yield_now();
    }
    refused(stopped.pid(), "is stopped");
    // SAFETY: as above.
    unsafe { libc::kill(stopped.pid() as i32, libc::SIGCONT) };
    assert_eq!(stopped.round(), "done");
    let mut filtered = Command::new("sh");
    filtered.args(["-c", "echo ready; read line; echo done"]);
    // SAFETY: it makes two system calls, and the kernel only reads the filter.
    unsafe {
        filtered.pre_exec(|| {
            let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
            // One call that nobody makes ends the process; all others are allowed.
            let mut steps = [
                step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
                step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_acct as u32),
                step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
                step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
            ];
            let program = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, 2, &raw const program);
            Ok(())
        });
    }
    refused(Rounds::start(filtered).pid(), "seccomp");
    refused(i32::MAX as u32, "there is no process");
    let mut recorded =
        chase_tests::launcher::record(scratch.path(), &["-q", "--syscalls", "off", "--"]);
    recorded.args(["sh", "-c", "echo ready; read line; echo done"]);
    refused(Rounds::start(recorded).pid(), "records itself");
    let program = rounds();
    let program = Rounds::start(Command::new(program));
    let attached = Attached::begin(program.pid(), scratch.path());
    refused(program.pid(), "is recorded already");
    attached.end();
}

/// A filter that only refuses calls does no harm: what can't be done then is said, and the process goes on.
#[test]
fn what_a_filter_refuses_is_done_without_or_said() {
    const WHAT: &str = "attaching under a filter of system calls";
    const CALLS: [i64; 16] = [
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_openat,
        libc::SYS_memfd_create,
        libc::SYS_clone3,
        libc::SYS_clone,
        libc::SYS_newfstatat,
        libc::SYS_pwritev,
        libc::SYS_ftruncate,
        libc::SYS_prctl,
        libc::SYS_rt_sigprocmask,
        libc::SYS_clock_gettime,
        libc::SYS_readlink,
    ];
    // The kernel shows filters to root, and not to who has one.
    let own = fs::read_to_string("/proc/self/status").expect("this process");
    let sees_filters = need::root(WHAT) && own.contains("Seccomp:\t0");
    let program = Build::program("refuses_itself.c").without_libtrap().build();
    let scratch = TempDir::new().expect("a directory");
    let (mut attached, mut refused) = (0, 0);
    for (turn, call) in CALLS.into_iter().enumerate() {
        let errno = [libc::EPERM, libc::ENOSYS][turn % 2];
        let mut command = Command::new(&program);
        command.args([errno.to_string(), call.to_string()]).env("LD_BIND_NOW", "1");
        let mut program = Rounds::start(command);
        let mut lines = vec![program.round()];
        let before = entries(program.pid());
        let kept = || {
            let maps = fs::read_to_string(format!("/proc/{}/maps", program.pid())).expect("maps");
            let is_made =
                |line: &&str| line.contains(" r-xp 00000000 00:00 0 ") && !line.ends_with(']');
            let files = fs::read_dir(format!("/proc/{}/fd", program.pid())).expect("its files");
            (maps.lines().filter(is_made).count(), files.count())
        };
        let had = kept();
        let (status, said) = said(attach(program.pid(), scratch.path(), &["--duration", "1ms"]));
        match status {
            Some(0) => attached += 1,
            Some(125) => refused += 1,
            other => panic!("{other:?}, call {call}, errno {errno}: {said}"),
        }
        assert!(sees_filters || said.contains("seccomp"), "{said}");
        assert_eq!(changed(&before, &entries(program.pid())), [] as [String; 0], "call {call}");
        // What was put into the process is taken back, unless just that is refused.
        if status == Some(125) && call != libc::SYS_munmap {
            assert_eq!(kept(), had, "call {call}, errno {errno}: {said}");
        }
        lines.push(program.round());
        lines.push(program.end());
        assert_eq!(lines, ["5", "10", "10 in all"], "call {call}, errno {errno}: {said}");
    }
    eprintln!("attached {attached} times, refused {refused} times");
    assert!(refused > 0 && (attached > 0 || !sees_filters));
}

/// Without root's rights, neither a process of another user nor one that has more rights than its user is looked into.
#[test]
fn who_has_other_rights_is_refused_by_an_ordinary_user() {
    const ORDINARY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let what = "attaching as an ordinary user";
    if !need::root(what) || need::tool(what, "setpriv").is_none() {
        return;
    }
    let scratch = TempDir::new().expect("a directory");
    let open = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("changed");
    };
    open(scratch.path(), 0o777);
    // Where everybody may run it.
    let (own_chase, cat) = (scratch.path().join("chase"), scratch.path().join("cat"));
    fs::copy(chase(), &own_chase).expect("copied");
    fs::copy("/bin/cat", &cat).expect("copied");
    open(&own_chase, 0o755);
    let refused = |pid: u32, why: &str| {
        let mut command = Command::new("setpriv");
        command.args(ORDINARY).arg(&own_chase).args(["attach", "--syscalls", "off", "-o"]);
        command.arg(scratch.path().join("out")).args(["--duration", "10ms", &pid.to_string()]);
        let (status, said) = said(command);
        assert_eq!(status, Some(125), "{said}");
        assert!(said.contains(why), "{why}: {said}");
        assert!(!scratch.path().join("out").exists(), "nothing is done before");
    };
    let running = |mode, setpriv: &str| {
        open(&cat, mode);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo ready; exec {setpriv} {}", cat.display())]);
        let mut program = Rounds::start(command);
        // From here on it is that program.
        assert_eq!(program.round(), "next");
        program
    };
    let others = running(0o755, "");
    refused(others.pid(), "belongs to user 0");
    let as_ordinary = format!("setpriv {}", ORDINARY.join(" "));
    let set_user = running(0o4755, &as_ordinary);
    refused(set_user.pid(), "belongs to user 0");
    let set_group = running(0o2755, &as_ordinary);
    refused(set_group.pid(), "it has more privileges");
    for mut program in [others, set_user, set_group] {
        assert_eq!(program.round(), "next", "it runs as before");
        assert_eq!(program.end(), "");
    }
}

/// A process that is killed in the end.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // (It may have ended.)
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_may_end_while_it_is_attached() {
    let program = rounds();
    let scratch = TempDir::new().expect("a directory");
    let mut program = Rounds::start(Command::new(program));
    let mut command = attach(program.pid(), scratch.path(), &[]);
    let mut chase = command.stderr(Stdio::piped()).spawn().expect("chase starts");
    let mut said = std::io::BufReader::new(chase.stderr.take().expect("piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).expect("it says something");
    program.round();
    assert_eq!(program.end(), "");
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut said, &mut rest).expect("its words");
    assert!(chase.wait().expect("it ends").success());
    assert!(rest.contains("has ended") && rest.contains("Recorded in"), "{rest}");
    assert_eq!(report::calls(scratch.path(), "crc32"), 64 * 500);
}

/// How long a process has run, in ns.
fn ran(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("it is there");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}

/// What its stack has left of calls that are long over says nothing of where it is.
#[test]
fn a_program_that_never_waits_is_attached_to() {
    const LOOP: &str = "import time, zlib
end = time.time() + 100
while time.time() < end: zlib.crc32(b'x')";
    let scratch = TempDir::new().expect("a directory");
    let mut program = Command::new("/usr/bin/python3");
    let program = Killed(program.args(["-c", LOOP]).spawn().expect("python3 starts"));
    let is_busy = || ran(program.0.id()) > 200_000_000;
    while !is_busy() {
        std::thread::sleep(Duration::from_millis(10));
    }
    for number in 1..=3 {
        let directory = scratch.path().join(number.to_string());
        let attached = Attached::begin(program.0.id(), &directory);
        std::thread::sleep(Duration::from_millis(50));
        attached.end();
        assert!(report::calls(&directory, "crc32") > 0);
    }
}

#[test]
fn a_server_answers_as_before() {
    let redis = chase_tests::need::package("redis-server", "/usr/bin/redis-server");
    let scratch = TempDir::new().expect("a directory");
    let socket = scratch.path().join("socket");
    let mut server = Command::new(redis);
    server
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(&socket)
        .current_dir(scratch.path());
    server.stdout(Stdio::null()).stderr(Stdio::null());
    let server = Killed(server.spawn().expect("starts"));
    let ask = |words: &[&str]| {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(&socket).args(words);
        let output = command.output().expect("redis-cli starts");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    while ask(&["ping"]) != "PONG" {
        std::thread::yield_now();
    }
    let directory = scratch.path().join("out");
    for number in 1..=3 {
        let attached = Attached::begin(server.0.id(), &directory);
        assert_eq!(ask(&["incr", "counter"]), (2 * number - 1).to_string());
        attached.end();
        assert_eq!(ask(&["incr", "counter"]), (2 * number).to_string());
    }
    assert!(report::calls(&directory, "epoll_wait") > 0);
}

/// Each system call of the threads that were there, in its call, while it is attached, and none before and after.
#[test]
fn system_calls_of_all_threads_are_seen_while_it_is_attached() {
    const WRITES: u64 = 4 * 200;
    let Some(_) = companion("system calls of a process that is attached to") else { return };
    let scratch = TempDir::new().expect("a directory");
    let directory = scratch.path().join("out");
    let mut command = Command::new("/usr/bin/python3");
    command.arg(programs().join("writes.py")).env("LD_BIND_NOW", "1");
    let mut program = Rounds::start(command);
    program.round();
    // (So often, since a thread that ended was traced on now and then, and the companion never finished.)
    for seen in 1..=6 {
        let attached = Attached::begin_watched(program.pid(), &directory);
        assert_eq!(program.round(), "done");
        attached.end();
        assert_eq!(program.round(), "done");
        let tagged = Tagged::finished(&directory);
        tagged.assert_nothing_lost();
        let of_threads = |row: &&Row| row.name == "write" && row.tid != program.pid();
        let rows: Vec<&Row> = tagged.rows.iter().filter(of_threads).collect();
        assert_eq!(rows.iter().map(|row| row.calls).sum::<u64>(), seen * WRITES, "{rows:?}");
        let is_own = |row: &&Row| row.place == Where::Api("write".to_owned());
        assert!(rows.iter().all(is_own), "{rows:?}");
        // Nor are any seen that it is made to make, which no call of the program's does.
        const MADE: [&str; 6] = ["clone3", "rseq", "set_robust_list", "prctl", "exit", "16777215"];
        let is_made = |row: &Row| MADE.iter().any(|made| row.name.ends_with(made));
        let is_its = |row: &Row| row.place != Where::Own && is_made(row);
        assert!(!tagged.rows.iter().any(is_its), "{:?}", tagged.rows);
    }
    assert_eq!(program.end(), "");
}

/// From the moment that chase stops it to leave it, what passes is not its time; nor is what it is made to do then.
#[test]
fn how_long_it_stands_still_is_not_its_time() {
    const WORK: &str = "import threading, time, zlib
def work():
    while True:
        for _ in range(10_000): zlib.crc32(b'x')
        time.sleep(0.002)
for _ in range(2): threading.Thread(target=work, daemon=True).start()
work()";
    const WHAT: &str = "how long a process stands still";
    // Each time that chase writes into the process: at least to say what is wanted, the code for that, and the words of threads.
    const DELAY: &str = "inject=pwrite64:delay_enter=120000";
    let Some(_) = companion(WHAT) else { return };
    let Some(strace) = need::tool(WHAT, "strace") else { return };
    let scratch = TempDir::new().expect("a directory");
    let directory = scratch.path().join("out");
    let program = Command::new("/usr/bin/python3").args(["-c", WORK]).spawn();
    let program = Killed(program.expect("python3 starts"));
    while ran(program.0.id()) < 200_000_000 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let attach = || {
        let _ = fs::remove_dir_all(&directory);
        let mut command = Command::new(&strace);
        command.args(["-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", DELAY]);
        command.args(["-P", &format!("/proc/{}/mem", program.0.id())]);
        command.arg(chase()).args(["attach", "--syscalls", "require", "--duration", "300ms", "-o"]);
        command.arg(&directory).arg(program.0.id().to_string()).env_remove("LD_PRELOAD");
        command.env("XDG_CONFIG_HOME", scratch.path().join("config"));
        said(command)
    };
    // On a busy machine it may give up: each of its waits lasts longer under strace.
    let mut tried = attach();
    for _ in 0..2 {
        if tried.0 != Some(0) {
            tried = attach();
        }
    }
    let (status, text) = tried;
    assert_eq!(status, Some(0), "{text}");
    let stood = text.split("stood still for ").nth(2).and_then(|text| text.split(' ').next());
    let stood: f64 = stood.and_then(|ms| ms.parse().ok()).expect("how long it stood still");
    assert!(stood > 360.0, "{text}");
    let threads = report::json(&directory, &["threads"]);
    let threads = threads["threads"].as_array().expect("threads").clone();
    assert_eq!(threads.len(), 3, "{threads:?}");
    for thread in &threads {
        let ns = |field: &str| thread[field].as_f64().expect(field);
        let lifetime = ns("lifetime_ns");
        let parts = ns("on_cpu_ns") + ns("blocked_ns") + ns("runnable_ns");
        assert!((200e6..300e6 + stood * 0.5e6).contains(&lifetime), "{thread}");
        assert!((parts - lifetime).abs() < stood * 0.2e6, "{parts} of {thread}");
        assert!(ns("on_cpu_ns") > 0.02 * lifetime, "{thread}");
    }
}
