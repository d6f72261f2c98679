//! Calls that do not end by an ordinary return, and callers that are not what they seem.

use std::fs;
use std::path::Path;

use chase_tests::compile::Build;
use chase_tests::need;
use chase_tests::recorded::{Process, Recording};
use chase_tests::release;
use chase_tests::steal;
use chase_tests::trial::Trial;

const TRAP: &str = "libtrap.so";

/// Each round throws through `trap_call` twice and through `qsort` once.
fn check_exceptions(recording: &Recording, program: &str, threads: u64, rounds: u64) {
    let all = threads * rounds;
    let process = recording.only();
    process.expect(&[
        (TRAP, "trap_call", 2 * all),
        (TRAP, "trap_empty", 4 * all),
        (TRAP, "trap_add", 3 * all),
    ]);
    process.expect_unwound(&[(TRAP, "trap_call", 2 * all), (TRAP, "trap_empty", 0)]);
    assert_eq!(process.calls_from(program, "libc.so", "qsort"), all);
    assert_eq!(process.unwound("libc.so", "qsort"), all);
    process.expect_nothing_open(TRAP);
}

fn exceptions(build: Build) {
    let program = build.build();
    for (threads, rounds) in [(1, 5_000), (4, 2_000)] {
        let trial = Trial::new(&program).args([threads.to_string(), rounds.to_string()]);
        check_exceptions(&trial.compare(), "exception", threads, rounds);
    }
}

#[test]
fn exceptions_with_shared_libgcc() {
    exceptions(Build::program("exception.cpp"));
}

#[test]
fn exceptions_with_static_libgcc() {
    exceptions(Build::program("exception.cpp").flags("-static-libgcc -static-libstdc++"));
}

#[test]
fn exceptions_with_libunwind_of_llvm() {
    let what = "exceptions with LLVM's libunwind";
    if need::tool(what, "clang++").is_none() {
        return;
    }
    let versions = (14..30).rev().map(|version| format!("/usr/lib/llvm-{version}/lib"));
    let found = versions.into_iter().find(|directory| {
        let there = |name| release::inside(Path::new(directory).join(name)).exists();
        ["libunwind.so", "libc++.so"].into_iter().all(there)
    });
    let Some(directory) = found else {
        return need::skip(what, "libunwind and libc++ of LLVM are not installed");
    };
    let flags = format!(
        "-stdlib=libc++ -unwindlib=libunwind -rtlib=compiler-rt -L{directory} -Wl,-rpath,{directory}"
    );
    exceptions(Build::program("exception.cpp").tool("clang++").flags(&flags));
}

#[test]
fn rust_panics_through_a_callback() {
    if !need::rust("panics of Rust") {
        return;
    }
    let program = Build::program("panic.rs").build();
    for (threads, rounds) in [(1, 3_000), (4, 3_000)] {
        let trial = Trial::new(&program).args([threads.to_string(), rounds.to_string()]);
        let recording = trial.compare();
        let all = threads * rounds;
        let process = recording.only();
        process.expect(&[(TRAP, "trap_call", all), (TRAP, "trap_empty", all)]);
        process.expect_unwound(&[(TRAP, "trap_call", all * 2 / 3)]);
        process.expect_nothing_open(TRAP);
    }
}

#[test]
fn longjmp_out_of_callbacks() {
    let rounds = 100_000;
    let program = Build::program("longjmp.c").build();
    let recording = Trial::new(program).arg(rounds.to_string()).compare();
    // Round i nests i % 3 + 1 calls that are abandoned; each odd round is in one that returns.
    let abandoned: u64 = (0..rounds).map(|i| i % 3 + 1).sum();
    let process = recording.only();
    process.expect(&[
        (TRAP, "trap_call", abandoned + rounds / 2),
        (TRAP, "trap_empty", rounds),
        (TRAP, "trap_add", rounds),
        ("libc.so", "_setjmp", rounds),
        ("libc.so", "longjmp", rounds),
    ]);
    process.expect_nothing_open(TRAP);
    process.expect_unwound(&[(TRAP, "trap_call", abandoned), (TRAP, "trap_add", 0)]);
}

#[test]
fn callbacks_nested_a_hundred_thousand_deep() {
    let depth = 100_000;
    let program = Build::program("deep.c").build();
    let recording = Trial::new(program).arg(depth.to_string()).compare();
    let process = recording.only();
    // What is too deep may run untimed, but not uncounted.
    let counted = process.calls(TRAP, "trap_nest") + process.unseen.calls_too_deep;
    assert_eq!(counted, 2 * depth);
    let empty = process.calls(TRAP, "trap_empty");
    assert!((1000..=1002).contains(&empty), "{empty}");
    assert_eq!(process.calls("libc.so", "_setjmp"), 1);
}

#[test]
fn short_calls_at_every_depth() {
    let (depth, rounds) = (140, 400);
    let program = Build::program("nested.c").build();
    for timing in ["adaptive", "all"] {
        let trial = Trial::new(&program).arg(depth.to_string()).arg(rounds.to_string());
        let trial = trial.hooked_env("CHASE_TIMING", timing);
        let recording = trial.compare();
        let all = depth * rounds;
        let jumped: u64 = (0..rounds).step_by(8).map(|i| i % 3 + 1).sum::<u64>() * depth;
        let nested = depth * (depth + 1) / 2 + jumped + trial.told("told")["handled"];
        let process = recording.only();
        process.expect(&[
            (TRAP, "trap_nest", nested),
            (TRAP, "trap_empty", all),
            (TRAP, "trap_call", all),
        ]);
        process.expect_unwound(&[(TRAP, "trap_nest", jumped)]);
        process.expect_nothing_open(TRAP);
    }
}

#[test]
fn recursion_through_the_plt() {
    let odd = Build::library("libodd.c").build();
    let even = Build::library("libeven.c").with(&odd).build();
    let program = Build::program("recursion.c").flags("-rdynamic").with(&even).with(&odd).build();
    let recording = Trial::new(&program).compare();
    recording.only().expect(&[
        ("libeven.so", "trap_even", 501),
        ("libodd.so", "trap_odd", 500),
        // A library's calls of itself cross no border.
        ("libeven.so", "trap_ping", 1),
        ("libeven.so", "trap_pong", 0),
        ("libeven.so", "trap_use_interposed", 501),
        ("recursion", "trap_interposed", 501),
    ]);
    // A function that is called inside of itself goes on in the context of the first call.
    let recording = Trial::new(program).hooked_env("CHASE_TIMING", "all").compare();
    let callers = |api| recording.only().callers(api);
    assert_eq!(callers("trap_even"), [("", 1), ("trap_odd", 500)]);
    assert_eq!(callers("trap_odd"), [("trap_even", 500)]);
    assert_eq!(callers("trap_use_interposed"), [("", 1), ("trap_interposed", 500)]);
    assert_eq!(callers("trap_interposed"), [("trap_use_interposed", 501)]);
}

#[test]
fn contexts_swapped_between_threads() {
    let program = Build::program("swapcontext.c").build();
    for (coroutines, rounds, threads) in [(1, 30, 1), (100, 30, 4), (1000, 9, 4)] {
        let arguments: [u64; 3] = [coroutines, rounds, threads];
        let trial = Trial::new(&program).args(arguments.map(|n| n.to_string()));
        let suspensions = rounds + rounds / 3;
        let recording = trial.compare();
        let process = recording.only();
        process.expect(&[
            (TRAP, "trap_add", coroutines * suspensions),
            (TRAP, "trap_empty", coroutines * suspensions),
            (TRAP, "trap_call", coroutines * (rounds + rounds / 3 * 2)),
            // There, and back; once more at the end of each coroutine.
            ("libc.so", "swapcontext", coroutines * (2 * suspensions + 2)),
        ]);
        // Those that are suspended are timed until then, and not to their ends.
        process.expect_unwound(&[(TRAP, "trap_call", process.calls(TRAP, "trap_call"))]);
        process.expect_nothing_open(TRAP);
        expect_times_once(process);
    }
}

/// Holds that no time is given twice, but for what estimates are too long: a sample may have taken longer than
/// all the calls that it stands for.
fn expect_times_once(process: &Process) {
    for thread in &process.threads {
        let doubt = thread.lifetime_ns / 1000.0 + thread.ci95_ns;
        assert!(thread.overlap_ns < doubt, "{thread:?}");
    }
}

#[test]
fn coroutines_that_are_suspended_inside_calls() {
    let program = Build::program("coroutine_in_call.c").build();
    for timing in ["adaptive", "all"] {
        let recording = Trial::new(&program).hooked_env("CHASE_TIMING", timing).compare();
        let process = recording.only();
        process.expect(&[("libc.so", "qsort", 2), ("libc.so", "usleep", 2)]);
        expect_times_once(process);
        let in_qsort = process.self_ns("libc.so", "qsort");
        assert!(in_qsort < 20e6, "{in_qsort}");
    }
}

#[test]
fn calls_left_on_other_stacks_exhaust_frames() {
    let coroutines = 150_000;
    let program = Build::program("left_calls.c").without_libtrap().build();
    let trial = Trial::new(program).arg(coroutines.to_string());
    let recording = trial.hooked_env("CHASE_TIMING", "all").compare();
    let process = recording.only();
    // None is nested: what they ran out of is room for calls that may yet return. They are counted for all that.
    let untimed = process.unseen.calls_too_deep;
    assert!(untimed > 0, "frames for all of them");
    process.expect(&[("libc.so", "qsort", coroutines), ("libc.so", "getcontext", coroutines)]);
}

#[test]
fn boost_fibers_between_threads() {
    let what = "fibers of boost.context";
    if need::file(what, &["/usr/include/boost/context/fiber.hpp"]).is_none() {
        return;
    }
    let program = Build::program("fibers.cpp").flags("-std=c++20 -lboost_context").build();
    for (threads, timing) in [(1, "adaptive"), (4, "adaptive"), (1, "all"), (4, "all")] {
        let (fibers, rounds) = (40, 12);
        let arguments: [u64; 3] = [fibers, rounds, threads];
        let trial = Trial::new(&program).args(arguments.map(|n| n.to_string()));
        let recording = trial.hooked_env("CHASE_TIMING", timing).compare();
        let process = recording.only();
        // Every fourth fiber is destroyed in its sixth suspension.
        let suspensions = fibers * 3 / 4 * rounds + fibers / 4 * (rounds / 2);
        process.expect(&[
            (TRAP, "trap_add", suspensions),
            (TRAP, "trap_call", suspensions),
            (TRAP, "trap_empty", suspensions),
        ]);
        // A fiber may be destroyed after the end of the thread that it was suspended in, whose
        // calls then stay open.
        let open: u64 = process.of(TRAP, "trap_call").map(|api| api.open).sum();
        let left = process.unwound(TRAP, "trap_call") + open;
        // All are suspended inside, and timed until then.
        assert_eq!(left, suspensions);
        expect_times_once(process);
        assert!(threads > 1 || open == 0, "{open} calls open");
    }
}

#[test]
fn tail_calls_into_the_plt() {
    let rounds = 100_000;
    let program = Build::program("tail_call.c").build();
    let recording = Trial::new(program).arg(rounds.to_string()).compare();
    recording.only().expect(&[
        (TRAP, "trap_add", rounds),
        (TRAP, "trap_call", rounds / 10),
        (TRAP, "trap_empty", rounds / 100),
    ]);
}

#[test]
fn signal_handlers_at_ten_kilohertz() {
    let program = Build::program("signals.c").build();
    let trial = Trial::new(program).args(["20000", "counts"]);
    let recording = trial.compare();
    let told = trial.told("counts");
    let process = recording.only();
    process.expect(&[
        (TRAP, "trap_empty", told["handled"]),
        (TRAP, "trap_call", told["handled"] + told["rounds"]),
        (TRAP, "trap_leaf", told["handled"] + told["rounds"]),
        (TRAP, "trap_add", told["rounds"]),
    ]);
    process.expect_nothing_open(TRAP);
}

#[test]
fn interrupted_at_every_instruction() {
    for flags in ["-Wl,-z,now", "-Wl,-z,now -no-pie", "-Wl,-z,now -fno-plt"] {
        interrupted_at_every_instruction_at(flags, 0, true);
    }
}

/// As deep as the first segment of a shadow stack reaches, so that the path crosses to the next and back.
#[test]
fn interrupted_at_every_instruction_between_segments() {
    for depth in 60..=64 {
        interrupted_at_every_instruction_at("-Wl,-z,now", depth, true);
        interrupted_at_every_instruction_at("-Wl,-z,now", depth, false);
    }
}

fn interrupted_at_every_instruction_at(flags: &str, depth: u64, looks: bool) {
    let program = Build::program("single_step.cpp").flags(flags).build();
    // When a duration first falls where none did before, and no page can be made for it, is chance.
    let failures = steal::attempts(3, || {
        let (unwound, leaves) = stepped_through(&program, depth, looks);
        if unwound * 1000 <= leaves { Ok(()) } else { Err(format!("{unwound} of {leaves}")) }
    });
    assert!(failures.is_empty(), "{failures:?}");
}

/// Returns how many of the handler's calls have no duration, and how many there were.
fn stepped_through(program: &Path, depth: u64, looks: bool) -> (u64, u64) {
    let rounds = 3;
    let numbers = [rounds, depth, u64::from(looks)].map(|number| number.to_string());
    let trial = Trial::new(program).args(numbers).arg("counts");
    let (recording, steps) = (trial.compare(), trial.told("counts")["steps"]);
    let process = recording.only();
    process.expect(&[
        (TRAP, "trap_empty", rounds),
        (TRAP, "trap_call", 3 * rounds),
        (TRAP, "trap_add", rounds),
        (TRAP, "trap_swap", rounds),
        (TRAP, "trap_nest", depth),
    ]);
    // The trap comes in the hook's own slow path too. What the handler calls while that changes the recording is in a
    // sum, with what `backtrace` calls then, or can be counted, but no page be made for its duration.
    let (leaves, lost) = (process.calls(TRAP, "trap_leaf"), process.threads[0].lost_calls);
    if looks {
        assert!(leaves <= steps && steps <= leaves + lost, "{steps}: {leaves} and {lost}");
    } else {
        assert_eq!(leaves + lost, steps, "{lost} in the sum");
    }
    assert!((steps - leaves) * 100 <= steps, "{leaves} of {steps}");
    process.expect_unwound(&[(TRAP, "trap_call", 2 * rounds)]);
    process.expect_nothing_open(TRAP);
    (process.unwound(TRAP, "trap_leaf"), leaves)
}

#[test]
fn handlers_that_call_the_same_function_at_every_instruction() {
    let program = Build::program("same_in_handler.cpp").build();
    for timing in ["count", "adaptive", "all"] {
        let trial = Trial::new(&program).args(["100", "counts"]);
        let trial = trial.hooked_env("CHASE_TIMING", timing);
        let recording = trial.compare();
        let (told, process) = (trial.told("counts"), recording.only());
        let lost: u64 = process.threads.iter().map(|thread| thread.lost_calls).sum();
        if lost == 0 {
            process
                .expect(&["trap_leaf", "trap_add", "trap_call"].map(|api| (TRAP, api, told[api])));
        }
        // While the recording grows, a handler can come only by a trap, as here; what it calls then is in a sum.
        let apis = ["trap_leaf", "trap_add", "trap_call"];
        let made: u64 = apis.iter().map(|&api| told[api]).sum();
        let found: u64 = apis.iter().map(|api| process.calls(TRAP, api)).sum();
        assert_eq!(found + lost, made, "{timing}: {lost} in the sum");
        assert!(timing != "count" || lost == 0, "{lost} where nothing grows");
        assert!(lost * 100 < made, "{timing}: {lost} of {made}");
        process.expect_nothing_open(TRAP);
        assert_eq!(process.unseen.calls_without_thread, 0, "{timing}");
    }
}

#[test]
fn siglongjmp_out_of_handlers() {
    let rounds = 10_000;
    let program = Build::program("siglongjmp.c").build();
    let recording = Trial::new(program).arg(rounds.to_string()).compare();
    let process = recording.only();
    process.expect(&[
        (TRAP, "trap_call", 4 * rounds),
        (TRAP, "trap_empty", 2 * rounds),
        (TRAP, "trap_add", 2 * rounds),
        ("libc.so", "raise", rounds),
        ("libc.so", "siglongjmp", 2 * rounds),
        ("libc.so", "__sigsetjmp", 2 * rounds),
    ]);
    process.expect_nothing_open(TRAP);
}

#[test]
fn siglongjmp_from_any_instruction() {
    let program = Build::program("escape.c").build();
    let trial = Trial::new(program).args(["5000", "counts"]);
    let recording = trial.compare();
    let (told, process) = (trial.told("counts"), recording.only());
    let jumps = told["jumps"];
    process.expect(&[
        (TRAP, "trap_empty", jumps),
        (TRAP, "trap_add", 1000),
        ("libc.so", "siglongjmp", jumps),
    ]);
    process.expect_unwound(&[(TRAP, "trap_empty", 0), (TRAP, "trap_add", 0)]);
    // Each jump may have prevented the call that the program had just announced.
    for (api, announced) in [("trap_call", told["rounds"]), ("trap_leaf", told["begun"])] {
        let made = process.calls(TRAP, api);
        assert!((announced - jumps..=announced).contains(&made), "{api}: {made} of {announced}");
        assert!(process.unwound(TRAP, api) <= jumps, "{api}");
    }
}

#[test]
fn handlers_on_an_alternate_stack() {
    let rounds = 1_000;
    let program = Build::program("altstack.c").build();
    let recording = Trial::new(program).arg(rounds.to_string()).compare();
    let process = recording.only();
    let each = 2 * rounds * 4;
    process.expect(&[
        (TRAP, "trap_call", each),
        (TRAP, "trap_add", each),
        (TRAP, "trap_empty", each),
        ("libc.so", "raise", 2 * rounds * 3),
    ]);
    process.expect_nothing_open(TRAP);
    process.expect_unwound(&[(TRAP, "trap_call", 0)]);
}

#[test]
fn backtrace_shows_all_frames() {
    for flags in ["-rdynamic", "-rdynamic -no-pie", "-rdynamic -fno-plt", "-rdynamic -O2"] {
        let program = Build::program("backtrace.c").flags(flags).build();
        // The program leaves out the hook's own frames: the rest must be as it is without.
        let recording = Trial::new(program).compare();
        recording.only().expect(&[(TRAP, "trap_call", 1), ("libc.so", "qsort", 1)]);
    }
}

#[test]
fn gdb_shows_all_frames() {
    let Some(gdb) = need::tool("gdb in a callback", "gdb") else { return };
    let program = Build::program("backtrace.c").flags("-rdynamic").build();
    let script = "set confirm off\nset debuginfod enabled off\nset startup-with-shell off\n\
                  break show_stack\nrun\nbt\nfinish\ncontinue\n";
    let trial = Trial::new(gdb)
        .args(["-nx", "-batch", "-x", "script", "--args"])
        .arg(program)
        .setup(move |work| fs::write(work.join("script"), script).expect("write gdb's script"));
    let expected = ["show_stack", "in_sort", "in_callback", "trap_call", "outer", "main"];
    for outcome in [trial.bare(), trial.hooked()] {
        let text = String::from_utf8_lossy(&outcome.stdout);
        let mut found = frames(&text);
        found.retain(|name| expected.contains(&name.as_str()));
        assert_eq!(found, expected, "the program's frames in\n{text}");
        assert!(text.contains("result 2"), "the program does not run to its end:\n{text}");
    }
}

/// The function names in gdb's `bt`, whose lines are `#4  0x00005555 in name (...)` or
/// `#4  name (...)`.
fn frames(text: &str) -> Vec<String> {
    let stack = text.lines().skip_while(|line| !line.starts_with("#0"));
    let stack = stack.take_while(|line| line.starts_with('#'));
    let name = |line: &str| {
        let rest = line.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
        let (first, after) = rest.split_once(" in ").unwrap_or(("", rest));
        let rest = if first.starts_with("0x") { after } else { rest };
        rest.split_whitespace().next().unwrap_or_default().to_owned()
    };
    stack.map(name).collect()
}

#[test]
fn a_coroutine_in_the_mapping_of_its_threads_stack() {
    let program = Build::program("slab.c").without_libtrap().build();
    let recording = Trial::new(program).compare();
    let calls = recording.calls("libc.so", "qsort");
    assert!(calls >= 50 + 49, "{calls}");
}

/// Frames look left that come back alive.
#[test]
fn slices_of_the_stack_that_are_copied_away_and_back() {
    let program = Build::program("stack_slice.c").flags("-O1 -fno-builtin").build();
    for timing in ["adaptive", "all", "count"] {
        let recording = Trial::new(program.clone()).hooked_env("CHASE_TIMING", timing).compare();
        assert_eq!(recording.calls("libc.so", "qsort"), 2, "{timing}");
    }
}

/// The same, in any order. What is counted does not depend on what is timed.
#[test]
fn slices_of_the_stack_that_change_in_any_order() {
    let program = Build::program("slices.c").build();
    for seed in 1..=3 {
        let record = |timing| {
            let trial = Trial::new(&program).args(["20", &seed.to_string()]);
            trial.hooked_env("CHASE_TIMING", timing).compare()
        };
        let all = record("all");
        let calls = [
            ("libtrap.so", "trap_add"),
            ("libtrap.so", "trap_empty"),
            ("libtrap.so", "trap_call"),
            ("libtrap.so", "trap_nest"),
            ("libc.so", "qsort"),
            ("libc.so", "longjmp"),
        ]
        .map(|(provider, api)| (provider, api, all.calls(provider, api)));
        assert!(calls.iter().all(|(.., calls)| *calls > 100), "{calls:?}");
        record("adaptive").only().expect(&calls);
        record("count").only().expect(&calls);
    }
}
