//! Runs a stand-in for a recorded program under the companion and checks what was seen of it.
//!
//! Mostly needs root (or the capabilities) and BTF; says so and passes where they are missing.

mod target;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use chase_analyzer::syscall;
use chase_format::session::FILE_NAME;
use chase_format::syscalls::{COMPAT, STATE_COMPLETE, STATE_OPEN, WAIT_PREEMPTED, WAIT_VOLUNTARY};
use chase_recorder::reader::SyscallsFile;
use chase_tests::{need, steal};

use target::{ALONE, COMPANION, Run, Seen, possible};

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
    // (What the host takes may be in the time from switch to switch, and not in a thread's own clock.)
    let failures = steal::attempts_within(0.0, 1, compare_samples);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs a program that computes for a known time, and gives what differs.
fn compare_samples() -> Result<(), String> {
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
    if (on_cpu_ns as f64 / cpu_ns - 1.0).abs() >= 0.02 {
        return Err(format!("{on_cpu_ns} of {cpu_ns}"));
    }

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
    Ok(())
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
            return need::skip("counts beside those of strace", "strace is not installed");
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

/// The other threads are over then, and the one that goes on has the first one's number.
#[test]
fn an_exec_of_another_thread_than_the_first() {
    let _alone = ALONE.lock();
    if !possible() {
        return;
    }
    let run = Run::new();
    let second = run.directory.path().join("second.chase");
    run.run(&["replace", second.to_str().expect("text")]);
    let (first, second) = (run.main_file(), Seen::read(&second.with_extension("chase.syscalls")));
    let pid = first.header.pid;
    assert_eq!((second.header.pid, second.header.parent_pid), (pid, pid));
    for file in [&first, &second] {
        assert_eq!(file.header.state, STATE_COMPLETE);
        assert_eq!((file.header.lost_processes, file.header.lost_threads), (0, 0));
    }
    assert_eq!(first.row(5, libc::SYS_getppid).calls, 10);
    let getppid = first.row(50, libc::SYS_getppid);
    assert_eq!((getppid.calls, getppid.tid == pid), (100, false));
    assert_eq!(first.calls(libc::SYS_execve), 1);
    // It is watched from its first instruction, before its hello.
    assert!(second.calls(libc::SYS_mmap) > 2, "{}", second.calls(libc::SYS_mmap));
    assert!(second.syscalls.iter().all(|row| row.tid == pid));
    assert_eq!(second.row(5, libc::SYS_getppid).calls, 100);
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
