//! The companion with the hook: every system call in the context of its library call.
//!
//! Each test needs root and BTF; it says so and passes where they are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use chase_tests::compile::{Build, programs};
use chase_tests::need;
use chase_tests::recorded::Recording;
use chase_tests::tagged::{Tagged, Where, alone, companion};
use chase_tests::trial::{Trial, libchase};
use tempfile::TempDir;

fn program() -> PathBuf {
    Build::program("syscalls.c").flags("-fno-builtin").without_libtrap().build()
}

/// Runs one part of `syscalls.c` bare and with everything on.
fn run(what: &str) -> Option<(Tagged, Trial)> {
    companion(what)?;
    let trial = Trial::new(program()).arg(what).hooked_env("CHASE_SYSCALLS", "require");
    trial.compare_outcomes();
    Some((Tagged::finished(&trial.output()), trial))
}

#[test]
fn each_call_has_its_api_and_its_thread() {
    let _alone = alone();
    let Some((tagged, trial)) = run("tagged") else { return };
    let main = tagged.headers[0].pid;
    for api in ["getppid", "write"] {
        let rows: Vec<_> = tagged.of(api, api).collect();
        assert_eq!(rows.len(), 2, "{rows:?}");
        for row in rows {
            assert_eq!(row.calls, if row.tid == main { 700_000 } else { 300_000 }, "{row:?}");
        }
    }
    let elsewhere = tagged.rows.iter().filter(|row| row.name == "getppid" || row.name == "write");
    assert_eq!(elsewhere.map(|row| row.calls).sum::<u64>(), 2_000_000);
    tagged.assert_nothing_lost();
    // The library calls are those that the hook counted.
    assert_eq!(Recording::load(&trial.output()).calls("libc.so", "getppid"), 1_000_000);
}

#[test]
fn buffered_calls_make_few() {
    let _alone = alone();
    let Some((tagged, _)) = run("stdio") else { return };
    // The last block is written by the rewind; the end of the file takes another read.
    assert_eq!(tagged.calls("fwrite", "write"), 1_000_000 / 4096);
    assert_eq!(tagged.calls("rewind", "write"), 1);
    assert_eq!(tagged.calls("fread", "read"), 1_000_000 / 4096 + 2);
}

#[test]
fn memory_comes_from_mmap_and_brk() {
    let _alone = alone();
    let Some((tagged, _)) = run("memory") else { return };
    assert_eq!(tagged.calls("malloc", "mmap"), 10);
    assert_eq!(tagged.calls("free", "munmap"), 10);
    assert!((10..40).contains(&tagged.calls("malloc", "brk")), "{:?}", tagged.rows);
}

#[test]
fn names_are_resolved_over_sockets() {
    let _alone = alone();
    let Some((tagged, _)) = run("resolve") else { return };
    let sockets = tagged.calls("getaddrinfo", "socket");
    assert!(sockets >= 1, "{:?}", tagged.rows);
}

#[test]
fn an_uncontended_mutex_makes_none() {
    let _alone = alone();
    let Some((tagged, _)) = run("uncontended") else { return };
    for api in ["pthread_mutex_lock", "pthread_mutex_unlock"] {
        let rows = tagged.rows.iter().filter(|row| row.place == Where::Api(api.to_owned()));
        assert_eq!(rows.filter(|row| row.name != "preempted").count(), 0, "{:?}", tagged.rows);
    }
}

#[test]
fn waits_are_as_long_as_they_were() {
    let _alone = alone();
    let Some((tagged, trial)) = run_told("waits") else { return };
    let told = trial;
    for api in ["read", "pthread_cond_wait", "pthread_mutex_lock", "nanosleep"] {
        let waited: u64 =
            tagged.of(api, "wait").filter(|row| row.tid == row.pid).map(|row| row.total_ns).sum();
        let expected = told[api] as f64;
        let ratio = waited as f64 / expected;
        assert!((0.97..1.03).contains(&ratio), "{api}: {waited} of {expected}");
    }
    assert!(tagged.calls("pthread_mutex_lock", "futex") >= 1);
    assert_eq!(tagged.calls("nanosleep", "clock_nanosleep"), 4);
}

/// As [`run`], for a part that prints a name and a number on each line.
fn run_told(what: &str) -> Option<(Tagged, BTreeMap<String, u64>)> {
    companion(what)?;
    let trial = Trial::new(program()).arg(what).hooked_env("CHASE_SYSCALLS", "require");
    let outcome = trial.hooked();
    assert!(outcome.status.success());
    let text = String::from_utf8(outcome.stdout).expect("text");
    let told = text.lines().map(|line| {
        let (name, number) = line.split_once(' ').expect("a name and a number");
        (name.to_owned(), number.parse().expect("a number"))
    });
    Some((Tagged::finished(&trial.output()), told.collect()))
}

#[test]
fn a_busy_loop_waits_for_nothing() {
    let _alone = alone();
    let Some((tagged, _)) = run("busy") else { return };
    let waited: u64 =
        tagged.rows.iter().filter(|row| row.name == "wait").map(|row| row.total_ns).sum();
    // Reading the program's own pages from the disk may have taken some.
    assert!(waited < 5_000_000, "{waited}");
}

#[test]
fn errors_and_restarts() {
    let _alone = alone();
    let Some((tagged, _)) = run("errors") else { return };
    let errors = |api, name| tagged.of(api, name).map(|row| row.errors).sum::<u64>();
    assert_eq!((tagged.calls("access", "access"), errors("access", "access")), (7, 7));
    assert_eq!((tagged.calls("close", "close"), errors("close", "close")), (3, 3));
    let Some((tagged, _)) = run("restarts") else { return };
    let restarts = tagged.of("read", "read").map(|row| row.restarts).sum::<u64>();
    assert_eq!((tagged.calls("read", "read"), restarts), (11, 10));
}

#[test]
fn handlers_are_contexts_of_their_own() {
    let _alone = alone();
    let Some((tagged, _)) = run("handlers") else { return };
    assert_eq!(tagged.calls("getppid", "getppid"), 100);
    assert_eq!(tagged.calls("getpgid", "getpgid"), 100);
    assert_eq!(tagged.calls("raise", "tgkill"), 100);
}

/// System calls of the program's own code belong to the library call that it was called from.
#[test]
fn inlined_calls_belong_where_they_are_made() {
    let _alone = alone();
    let Some((tagged, _)) = run("inlined") else { return };
    assert_eq!(tagged.calls("qsort", "getppid"), 3, "{:?}", tagged.rows);
    let outside = tagged.by_name(|row| row.place == Where::Outside);
    for (name, calls) in [("getpgid", 5), ("getsid", 10), ("getuid", 10)] {
        assert_eq!(outside.get(name), Some(&calls), "{name}: {outside:?}");
    }
    assert_eq!(tagged.calls("getegid", "getegid"), 10);
}

#[test]
fn vfork_children_share_the_context() {
    let _alone = alone();
    let Some((tagged, _)) = run("vforks") else { return };
    let pid = tagged.rows.iter().find(|row| row.name == "vfork").expect("the parent").pid;
    assert_eq!(tagged.by_name(|row| row.pid == pid)["vfork"], 20);
    assert_eq!(tagged.calls("getsid", "getsid"), 20);
    assert_eq!(tagged.headers.len(), 21, "each image has a file");
    // The children are in their parent's context, to which they give it back.
    let outside = tagged.by_name(|row| row.place == Where::Outside);
    assert_eq!(outside.get("execve"), Some(&20), "{outside:?}");
}

#[test]
fn five_hundred_threads() {
    let _alone = alone();
    let Some((tagged, _)) = run("threads") else { return };
    let rows: Vec<_> = tagged.of("getppid", "getppid").collect();
    assert_eq!(rows.len(), 500);
    assert!(rows.iter().all(|row| row.calls == 100));
    tagged.assert_nothing_lost();
}

// ---- everything, against strace -----------------------------------------------------------------

/// Runs a command under the hook, the companion and strace at once, and compares.
fn compare_with_strace(what: &str, command: &[&str]) -> Option<Tagged> {
    let companion = companion(what)?;
    let strace = need::tool(what, "strace")?;
    let scratch = TempDir::new().expect("a scratch directory");
    let (output, log) = (scratch.path().join("data"), scratch.path().join("strace"));
    fs::create_dir(&output).expect("created");
    let mut run = Command::new(companion);
    run.arg("--output").arg(&output).arg("--").arg(strace).args(["-f", "-qq", "-o"]).arg(&log);
    for variable in [
        format!("LD_PRELOAD={}", libchase().display()),
        format!("CHASE_OUTPUT={}", output.display()),
        "CHASE_SYSCALLS=require".to_owned(),
        "LC_ALL=C.UTF-8".to_owned(),
    ] {
        run.arg("-E").arg(variable);
    }
    let run = run.args(command).current_dir(scratch.path()).output().expect("runs");
    assert!(run.status.success(), "{what}: {}", String::from_utf8_lossy(&run.stderr));
    let tagged = Tagged::finished(&output);
    tagged.assert_nothing_lost();
    let text = fs::read_to_string(log).expect("a log");
    assert_eq!(tagged.by_name(|_| true), after_hello(&text), "{what}");
    Some(tagged)
}

/// What a log of strace counts after the first hello, but for further ones, which are signs to the
/// companion and nothing that a program does.
fn after_hello(log: &str) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    for line in log.lines().skip_while(|line| !line.contains("0x53414843")).skip(1) {
        let (_, line) = line.split_once(' ').expect("a process id");
        let line = line.trim_start();
        let begun = !line.starts_with(['+', '-', '<']);
        let begun = begun && !line.starts_with("prctl(0x53414843");
        if let (true, Some((name, _))) = (begun, line.split_once('(')) {
            *calls.entry(name.to_owned()).or_insert(0) += 1;
        }
    }
    calls
}

#[test]
fn counts_equal_those_of_strace() {
    let _alone = alone();
    let source = programs().join("syscalls.c");
    let source = source.to_str().expect("a path of text");
    let script = "import json,subprocess,threading;print(len(json.dumps(list(range(9999)))));\
        subprocess.run(['ls','/usr']);t=threading.Thread(target=print);t.start();t.join()";
    let git = "git init -q . && echo x >f && git add f && git -c user.name=a -c user.email=b \
        commit -qm m && git log -p && git gc -q";
    let redis = "redis-server --port 0 --unixsocket ./socket --save '' --io-threads 2 >log & \
        for i in $(seq 100); do test -S socket && break; sleep 0.1; done; \
        redis-benchmark -s ./socket -q -n 2000 -c 10 -t set,get >rates; \
        redis-cli -s ./socket shutdown nosave; wait";
    let threads = program();
    let tree = Build::program("fork_tree.c").build();
    let commands: [(&str, &str, &[&str]); 8] = [
        ("python3", "python3", &["-c", script]),
        ("gcc", "gcc", &["-O1", "-pthread", "-o", "program", source]),
        ("sort", "sort", &["--parallel=4", "-R", source]),
        ("tar", "tar", &["cf", "archive", "/usr/include/linux"]),
        ("git", "sh", &["-c", git]),
        ("redis-server", "sh", &["-c", redis]),
        ("threads", threads.to_str().expect("text"), &["threads"]),
        ("fork_tree", tree.to_str().expect("text"), &["4"]),
    ];
    for (what, command, arguments) in commands {
        if command == "sh" && need::tool(what, what).is_none() {
            continue;
        }
        let all: Vec<&str> = [command].into_iter().chain(arguments.iter().copied()).collect();
        let Some(tagged) = compare_with_strace(what, &all) else { return };
        if what == "fork_tree" {
            assert_eq!(tagged.headers.len(), 121);
        }
    }
}

/// Programs that are not to be recorded are known until they say so. What was counted of one was once taken for that of the next
/// process, which got its number.
#[test]
fn programs_that_decline_leave_no_rows_to_others() {
    let _alone = alone();
    let Some(companion) = companion("programs_that_decline_leave_no_rows_to_others") else {
        return;
    };
    const ROUNDS: usize = 12;
    let scratch = TempDir::new().expect("a scratch directory");
    let output = scratch.path().join("data");
    fs::create_dir(&output).expect("created");
    // Each shell is recorded, and nothing that it starts.
    let script = format!(
        "for i in $(seq {ROUNDS}); do LD_PRELOAD={} CHASE_OUTPUT={} CHASE_SYSCALLS=require CHASE_FOLLOW=none \
         sh -c 'ls / >/dev/null; ls / >/dev/null; :'; sleep 0.1; done",
        libchase().display(),
        output.display()
    );
    let run = Command::new(companion)
        .arg("--output")
        .arg(&output)
        .args(["--", "sh", "-c", &script])
        .output()
        .expect("runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let tagged = Tagged::finished(&output);
    let shells = tagged.rows.iter().filter(|row| row.name == "wait4");
    assert_eq!(shells.map(|row| row.pid).collect::<BTreeSet<_>>().len(), ROUNDS);
    // A program makes this call when it starts: a shell before it is known, what it starts before it declines.
    let others: Vec<_> = tagged.rows.iter().filter(|row| row.name == "set_tid_address").collect();
    assert!(others.is_empty(), "rows of other processes: {others:?}");
}

/// What is tagged as the application's is what it does without chase.
#[test]
fn chase_is_kept_apart() {
    let _alone = alone();
    let Some(companion) = companion("chase_is_kept_apart") else { return };
    let Some(strace) = need::tool("chase_is_kept_apart", "strace") else { return };
    drop(companion);
    let trial = Trial::new(program()).arg("stdio").hooked_env("CHASE_SYSCALLS", "require");
    trial.compare_outcomes();
    let tagged = Tagged::finished(&trial.output());
    let scratch = TempDir::new().expect("a scratch directory");
    let log = scratch.path().join("strace");
    let mut bare = Command::new(strace);
    bare.args(["-qq", "-o"]).arg(&log).arg(program()).arg("stdio").current_dir(scratch.path());
    assert!(bare.output().expect("runs").status.success());
    let text = fs::read_to_string(log).expect("a log");
    // From the first call of `main` on: the dynamic linker is done.
    let of_main = text.split_once("\"zeros\"").expect("the file").1;
    let mut expected: BTreeMap<String, u64> = BTreeMap::from([("openat".to_owned(), 1)]);
    for line in of_main.lines().skip(1) {
        let name = line.split_once('(').expect("a call").0;
        *expected.entry(name.to_owned()).or_insert(0) += 1;
    }
    let found = tagged.by_name(|row| !matches!(row.place, Where::Own | Where::Before));
    // The heap begins before the file is opened.
    let without_heap = |mut calls: BTreeMap<String, u64>| {
        calls.retain(|name, _| !["brk", "getrandom"].contains(&name.as_str()));
        calls
    };
    assert_eq!(without_heap(found), without_heap(expected));
}
