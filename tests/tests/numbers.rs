//! Times, held against programs that know how long they took.

use std::sync::Mutex;

use chase_tests::compile::Build;
use chase_tests::trial::Trial;
use chase_tests::{need, steal};

const TRAP: &str = "libtrap.so";

/// One at a time: these tests need an undisturbed CPU.
static ALONE: Mutex<()> = Mutex::new(());

/// Others on the machine make a run worse, so few good ones are enough; one alone could be luck. Twelve bad ones are shown.
fn three_of_fourteen(what: &str, attempt: impl FnMut() -> Result<(), String>) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let failures = steal::good_of(3, 14, attempt);
    assert!(failures.is_empty(), "{what}:\n{}", failures.join("\n"));
}

fn within(what: &str, found: f64, truth: f64, tolerance: f64) -> Result<(), String> {
    let ok = (found - truth).abs() <= tolerance;
    let text = || format!("{what}: {found:.1} ns, in truth {truth:.1} ± {tolerance:.1} ns");
    if ok { Ok(()) } else { Err(text()) }
}

/// Mean durations of calls that spin for `ns` each.
fn known_duration(ns: u64, calls: u64) {
    let program = Build::program("durations.c").build();
    three_of_fourteen(&format!("calls of {ns} ns"), || {
        let trial = Trial::new(&program).args([&ns.to_string(), &calls.to_string(), "told"]);
        let recording = trial.compare();
        let process = recording.only();
        process.expect(&[(TRAP, "trap_spin", calls), (TRAP, "trap_empty", 1_000_000)]);
        let told = trial.told("told");

        let truth = told["spin_ns"] as f64 / calls as f64 + told["around_ps"] as f64 / 1000.0;
        let found = process.self_ns(TRAP, "trap_spin") / calls as f64;
        within("trap_spin", found, truth, truth * 0.02)
    });
}

#[test]
fn calls_of_a_microsecond() {
    known_duration(1_000, 100_000);
}

#[test]
fn calls_of_ten_microseconds() {
    known_duration(10_000, 10_000);
}

#[test]
fn calls_of_a_hundred_microseconds() {
    known_duration(100_000, 1_000);
}

#[test]
fn calls_of_a_millisecond() {
    known_duration(1_000_000, 200);
}

#[test]
fn calls_of_ten_milliseconds() {
    known_duration(10_000_000, 20);
}

#[test]
fn an_empty_function() {
    let program = Build::program("durations.c").build();
    three_of_fourteen("the empty function", || {
        let trial = Trial::new(&program).args(["1000", "10", "told"]);
        let recording = trial.compare();
        let truth = trial.told("told")["empty_ps"] as f64 / 1000.0;
        let found = recording.only().self_ns(TRAP, "trap_empty") / 1e6;
        within("trap_empty", found, truth, 3.0)
    });
}

/// Application time and the self times of all APIs make up each thread's life; and each part is
/// what the program knows it to be.
fn conserved(threads: usize, rounds: usize) {
    conserved_on(&[], threads, rounds);
}

/// The same, with the program started by a command.
fn conserved_on(command: &[&str], threads: usize, rounds: usize) {
    let program = Build::program("conservation.c").build();
    three_of_fourteen("conservation", || {
        let trial = Trial::new(&program).inside(command);
        let trial = trial.args([&threads.to_string(), &rounds.to_string(), "told"]);
        let recording = trial.compare();
        let process = recording.only();
        assert_eq!(process.created_threads(), threads);
        for line in trial.read("told").lines() {
            let told: Vec<f64> = line.split(' ').map(|n| n.parse().expect("a number")).collect();
            let [tid, library, callback, program, life] = told[..] else { panic!("{line}") };
            let thread = process.threads.iter().find(|t| f64::from(t.tid) == tid);
            let thread = thread.unwrap_or_else(|| panic!("thread {tid} has no record"));
            let of = |name: &str| -> f64 {
                let of_api = thread.self_ns.iter().filter(|(api, _)| api == name);
                of_api.map(|(_, ns)| ns).sum()
            };
            let all: f64 = thread.self_ns.iter().map(|(_, ns)| ns).sum();
            let sum = thread.application_ns + all + thread.own_cost_ns - thread.overlap_ns;
            within("the sum of the parts", sum, thread.lifetime_ns, thread.lifetime_ns * 0.01)?;
            within("the thread's life", thread.lifetime_ns, life, life * 0.01)?;
            within("the library's part", of("trap_spin"), library, library * 0.02)?;
            within("the callback's part", of("trap_call"), callback, callback * 0.02)?;
            // 10,000 calls of an empty function: the time of their making is the program's.
            within("the program's part", thread.application_ns, program, life * 0.01)?;
        }
        Ok(())
    });
}

#[test]
fn one_thread_is_conserved() {
    conserved(1, 100);
}

#[test]
fn two_threads_are_conserved() {
    conserved(2, 100);
}

#[test]
fn more_threads_than_processors_are_conserved() {
    // A thread that waits for a processor does so inside whatever it was doing: the sums hold all
    // the same. Between the program's look at the clock and the hook's a thread may wait as well, for as long as the others of
    // its processor run at a time (some 4 ms each): so few others, and long runs, of which that is far less than the 1 % that is
    // allowed.
    let processors = allowed_processors();
    let [first, second, ..] = processors[..] else {
        return need::skip("more threads than processors", "there is one processor");
    };
    conserved_on(&["taskset", "-c", &format!("{first},{second}")], 3, 1_500);
}

/// The numbers of the processors that this process may use.
fn allowed_processors() -> Vec<usize> {
    // SAFETY: the kernel fills in what is zeroed.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &raw mut set), 0);
        set
    };
    // SAFETY: the numbers are within the set.
    (0..libc::CPU_SETSIZE as usize).filter(|&one| unsafe { libc::CPU_ISSET(one, &set) }).collect()
}
