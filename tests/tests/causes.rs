//! What threads waited for, and who ended that, in programs that know it.
//!
//! Each test needs root and BTF; it says so and passes where they are missing.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chase_tests::compile::Build;
use chase_tests::planted;
use chase_tests::planted::Answer;
use chase_tests::report::{document, json};
use chase_tests::steal::attempts;
use chase_tests::tagged::{Tagged, companion};
use chase_tests::trial::{Trial, libchase};
use serde_json::Value;

/// Part of the waits that have to be right.
const NEARLY_ALL: f64 = 0.99;

/// Rows of causes of one part of `waits.c`; `None` if they can't be seen here.
fn causes(what: &str) -> Option<Vec<Value>> {
    rows(what, "causes")
}

/// The same of another table of what threads wait for.
fn rows(what: &str, table: &str) -> Option<Vec<Value>> {
    companion(what)?;
    let program = Build::program("waits.c").without_libtrap().flags("-pthread -g").build();
    let trial = Trial::new(program).arg(what).hooked_env("CHASE_SYSCALLS", "require");
    trial.compare_outcomes();
    let _ = Tagged::finished(&trial.output());
    Some(document(&trial.output(), "waits")[table].as_array().expect("rows").clone())
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn number(value: &Value) -> f64 {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    number.unwrap_or_else(|| panic!("{value} is no number"))
}

fn in_function<'v>(rows: &'v [Value], function: &str) -> Vec<&'v Value> {
    let rows: Vec<_> = rows.iter().filter(|row| text(row, "function") == function).collect();
    assert!(!rows.is_empty(), "nothing waits in {function}");
    rows
}

/// Of the waits in these rows, the part that threads of the program ended by a call to `function`.
fn woken_by(rows: &[&Value], function: &str) -> f64 {
    let (mut all, mut right) = (0.0, 0.0);
    for row in rows {
        all += number(&row["waits"]);
        for waker in row["wakers"].as_array().expect("wakers") {
            if text(waker, "kind") == "thread" && text(waker, "function") == function {
                right += number(&waker["waits"]);
            }
        }
    }
    right / all
}

#[test]
fn a_convoy_has_a_lock_a_holder_and_lines() {
    let Some(rows) = causes("convoy") else { return };
    let locks = in_function(&rows, "pthread_mutex_lock");
    let longest = locks[0];
    let joins = in_function(&rows, "pthread_join");
    assert!(joins.iter().any(|row| text(row, "object_name") == "the end of holder"), "{joins:#?}");
    assert_eq!(text(longest, "object_name"), "stats_mu");
    assert_eq!(text(&longest["site"], "function"), "update_stats");
    assert_eq!(text(&longest["holders"][0], "function"), "nanosleep");
    assert_eq!(text(&longest["holders"][0]["site"], "function"), "nap");
    assert_eq!(text(&longest["wakers"][0], "function"), "pthread_mutex_unlock");
    assert_eq!(text(&longest["wakers"][0]["site"], "function"), "update_stats");
    let held =
        longest["holders"].as_array().expect("holders").iter().map(|row| number(&row["waits"]));
    assert!(held.sum::<f64>() >= 0.95 * number(&longest["waits"]), "{longest}");
    let other = locks.iter().filter(|row| text(row, "object_name") == "other_mu");
    let ns = other.map(|row| number(&row["wait_ns"])).sum::<f64>();
    assert!(ns < 0.05 * number(&longest["wait_ns"]), "{locks:#?}");
}

/// Each acquisition waits twice, the first time for a wake that doesn't free the lock, and is counted once.
#[test]
fn acquisitions_that_had_to_wait_are_counted_exactly() {
    const CONTENDED: f64 = 25.0;
    let Some(locks) = rows("contended", "locks") else { return };
    let known: Vec<_> = locks.iter().filter(|row| text(row, "name") == "known_mu").collect();
    let [lock] = known[..] else { panic!("{locks:#?}") };
    assert_eq!(number(&lock["contended"]), CONTENDED, "{lock:#}");
    assert_eq!(number(&lock["waits"]), 2.0 * CONTENDED, "{lock:#}");
}

#[test]
fn a_lock_of_several_processes_is_one_at_whatever_addresses() {
    let Some(locks) = rows("processes", "locks") else { return };
    let [lock] = &locks[..] else { panic!("{locks:#?}") };
    assert_eq!(number(&lock["threads"]), 3.0, "{lock:#}");
    let woken = woken_by(&[lock], "pthread_mutex_unlock");
    assert!(woken > NEARLY_ALL, "{woken}: {lock:#}");
}

#[test]
fn two_threads_in_turns_wake_each_other() {
    for (what, waits, wakes, object) in [
        ("condition", "pthread_cond_wait", "pthread_cond_signal", "turn_changed"),
        ("semaphore", "sem_wait", "sem_post", "_turn"),
        ("futex", "syscall", "syscall", "turn_word"),
        ("pipe", "read", "write", "pipe "),
        ("fifo", "read", "write", ".fifo"),
        ("socket", "read", "write", "socket 127.0.0.1:"),
    ] {
        if companion(what).is_none() {
            return;
        }
        // On a busy machine, a thread of the kernel delivers what was sent. One of three must be good: where a run is with a
        // probability of 90 %, none is in 0.1 % (a false alarm). Who is woken by the wrong thread is so in each run: what is wrong
        // would have to be right in 99 of 100 wakes by chance (a false pass).
        let failures = attempts(3, || {
            let rows = causes(what).expect("a companion");
            let mut rows = in_function(&rows, waits);
            // Whoever is woken for a condition may have to wait for its mutex.
            rows.retain(|row| row["holders"].as_array().is_some_and(Vec::is_empty));
            for row in &rows {
                let name = text(row, "object_name");
                assert!(name.contains(object), "{what}: {name}");
            }
            let right = woken_by(&rows, wakes);
            if right >= NEARLY_ALL { Ok(()) } else { Err(format!("{what}: {right}, {rows:#?}")) }
        });
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}

#[test]
fn who_ends_the_process_is_not_who_was_joined() {
    let Some(rows) = causes("in vain") else { return };
    let [join] = in_function(&rows, "pthread_join")[..] else { panic!("{rows:#?}") };
    assert_eq!(text(join, "object_name"), "", "{join:#}");
    let [waker] = &join["wakers"].as_array().expect("wakers")[..] else { panic!("{join:#}") };
    assert_eq!((text(waker, "group"), text(waker, "function")), ("ends_process", "exit"));
}

/// The kernel tells of the wake before it tells that the thread sleeps.
#[test]
fn a_thread_is_woken_while_it_goes_to_sleep() {
    let what = "wakes on another processor";
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return chase_tests::need::skip(what, "there is one processor");
    }
    let Some(rows) = causes("early") else { return };
    let rows = in_function(&rows, "sem_wait");
    let right = woken_by(&rows, "sem_post");
    assert!(right >= NEARLY_ALL, "{right}: {rows:#?}");
}

/// Both ends of connections within the machine are called as the server is. (Nobody can tell once they are closed.)
#[test]
fn sockets_within_the_machine_have_the_servers_name() {
    let what = "names of sockets";
    if companion(what).is_none() {
        return;
    }
    let scratch = tempfile::TempDir::new().expect("a scratch directory");
    let output = scratch.path().join("out");
    let program = Build::program("waits.c").without_libtrap().flags("-pthread -g").build();
    let mut command = Command::new(program);
    command.arg("name").env("LD_PRELOAD", libchase()).env("CHASE_OUTPUT", &output);
    command.env("CHASE_SYSCALLS", "require").current_dir(scratch.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("starts");
    let began = Instant::now();
    let named = "\"object_name\": \"socket turns.sock\"";
    // (Until it is there, there may be nothing that can be read.)
    let is_named = || {
        let report = libchase().with_file_name("chase-report");
        let mut report = Command::new(report);
        report.args(["waits", "--json"]).arg(&output).env_remove("LD_PRELOAD");
        let said = report.output().expect("chase-report runs");
        String::from_utf8_lossy(&said.stdout).contains(named)
    };
    while !is_named() {
        assert!(began.elapsed() < Duration::from_secs(60), "no socket has a name");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(child.stdin.take());
    assert!(child.wait().expect("ends").success());
    let _ = Tagged::finished(&output);
}

#[test]
fn who_writes_is_waited_for() {
    let Some(rows) = causes("rwlock") else { return };
    let rows = in_function(&rows, "pthread_rwlock_wrlock");
    assert!(rows.iter().all(|row| text(row, "object_name") == "table_lock"), "{rows:#?}");
    assert!(woken_by(&rows, "pthread_rwlock_unlock") >= NEARLY_ALL, "{rows:#?}");
}

#[test]
fn nobody_ends_a_sleep() {
    let Some(rows) = causes("timer") else { return };
    for row in in_function(&rows, "nanosleep") {
        for waker in row["wakers"].as_array().expect("wakers") {
            let kind = text(waker, "kind");
            assert!(kind != "thread" && kind != "process", "{row:#}");
        }
    }
}

#[test]
fn nobody_ends_a_wait_whose_time_is_over() {
    let Some(rows) = causes("timeouts") else { return };
    for function in ["poll", "pthread_cond_timedwait", "sem_timedwait"] {
        for row in in_function(&rows, function) {
            for waker in row["wakers"].as_array().expect("wakers") {
                let kind = text(waker, "kind");
                assert!(kind != "thread" && kind != "process", "{row:#}");
            }
        }
    }
}

/// Python joins by a lock, and its events are locks, too: only the ends of threads are joins.
#[test]
fn who_joins_a_thread_of_python_waits_for_its_end() {
    let source = "calm_joins.py";
    let Some(_) = companion(source) else { return };
    let Some(trial) = planted::trial(source, &Answer::of(source)) else { return };
    let trial = trial.hooked_env("CHASE_SYSCALLS", "require");
    assert!(trial.hooked().status.success());
    let _ = Tagged::finished(&trial.output());
    let truth = std::fs::read_to_string(trial.work().join("truth")).expect("the truth");
    let told = |what: &str| {
        let line = truth.lines().find_map(|line| line.strip_prefix(what));
        line.expect("a time").trim().parse::<f64>().expect("a number")
    };
    let document = document(&trial.output(), "waits");
    let rows = document["causes"].as_array().expect("rows");
    let is_main = |row: &&Value| text(row, "group").starts_with("main");
    let of = |is_join: bool| {
        let semaphores =
            rows.iter().filter(is_main).filter(|row| text(row, "function").starts_with("sem_"));
        let rows = semaphores.filter(|row| (text(row, "purpose") == "join") == is_join);
        rows.map(|row| number(&row["wait_ns"])).sum::<f64>()
    };
    assert!(of(true) <= 1.02 * told("join_ns"), "{rows:#?}");
    assert!(of(true) >= 0.8 * told("join_ns"), "{rows:#?}");
    assert!(of(false) >= 0.8 * told("event_ns"), "{rows:#?}");
    // The table by function says the same, where the function's name says that it is a lock. (It has them until the thread was woken.)
    let by_function = document["waits"].as_array().expect("rows");
    let joined = by_function.iter().filter(|row| is_main(row) && text(row, "cause") == "join");
    let joined: Vec<&Value> =
        joined.filter(|row| text(row, "function").starts_with("sem_")).collect();
    let ns: f64 = joined.iter().map(|row| number(&row["wait_ns"])).sum();
    let parts = 0.8 * of(true)..=1.02 * of(true);
    assert!(parts.contains(&ns), "{ns} of {}: {by_function:#?}", of(true));
}

#[test]
fn a_child_ends_the_wait_for_it() {
    let Some(rows) = causes("child") else { return };
    let rows = in_function(&rows, "wait");
    assert_eq!(text(rows[0], "object_name"), "the end of process waits");
    let wakers = rows[0]["wakers"].as_array().expect("wakers");
    assert_eq!(text(&wakers[0], "kind"), "thread", "{rows:#?}");
}

/// A semaphore is a lock by who ends whose waits: that shows in all of them together. Each thread holds it for 8 ms at a time.
#[test]
fn a_run_is_shorter_without_a_lock_that_is_called_a_semaphore() {
    if companion("a run without a semaphore").is_none() {
        return;
    }
    let program = Build::planted("convoy_semaphore.c").flags("-pthread -g").build();
    let trial = Trial::new(program).hooked_env("CHASE_SYSCALLS", "require");
    trial.compare_outcomes();
    let _ = Tagged::finished(&trial.output());
    let found = json(&trial.output(), &["path", "--without", "lock:slot"]);
    let found = &found["what_if"][0];
    assert!(
        number(&found["waits"]) >= 30.0,
        "of 40 calls, all but the first have to wait: {found}"
    );
    assert!(number(&found["running_ns"]) < 0.1 * number(&found["saves_at_most_ns"]), "{found}");
}

/// The function's name is the same for a semaphore that is a lock and for one by which work is handed over.
#[test]
fn semaphores_are_what_they_are_used_for_in_the_table_by_function() {
    for (source, cause) in [("convoy_semaphore.c", "lock"), ("slow_producer.c", "condition")] {
        if companion(source).is_none() {
            return;
        }
        let program = Build::planted(source).flags("-pthread -g").build();
        let trial = Trial::new(program).hooked_env("CHASE_SYSCALLS", "require");
        assert!(trial.hooked().status.success());
        let _ = Tagged::finished(&trial.output());
        let rows = json(&trial.output(), &["waits"]);
        let rows = rows["waits"].as_array().expect("rows");
        let rows: Vec<&Value> = rows.iter().filter(|row| row["function"] == "sem_wait").collect();
        assert!(!rows.is_empty(), "{source}");
        assert!(rows.iter().all(|row| text(row, "cause") == cause), "{source}: {rows:#?}");
    }
}

/// Of the programs of `planted.rs`, some that lose time whatever else the machine does, and one that has nothing wrong.
#[test]
fn planted_problems_are_found() {
    for source in ["convoy.c", "barrier_sleeper.c", "slow_upstream.c", "calm_news.c"] {
        planted::hold(source);
    }
}
