//! Single calls and marks, kept with their times.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use chase_analyzer::{Analysis, Groups, Loaded, Selection, Timeline, Unnamed, load, timeline};
use chase_recorder::layout::{EVENT_CALL, EVENT_MARK, EventRecord};
use chase_recorder::reader::Recording;
use chase_tests::compile::Build;
use chase_tests::tagged::pairs_with_all_events;
use chase_tests::trial::{Trial, libchase};
use chase_tests::{need, report};

/// The program sleeps at least so long in each slow call, ns.
const SLEEP_NS: f64 = 20e6;

fn run(trial: &Trial) -> (Loaded, Analysis) {
    let outcome = trial.compare_outcomes();
    assert!(outcome.status.success());
    read(trial)
}

fn read(trial: &Trial) -> (Loaded, Analysis) {
    let loaded = load(&trial.output()).expect("a recording");
    let analysis = Analysis::new(&loaded.images, Selection::All);
    (loaded, analysis)
}

fn events(recording: &Recording<'_>, thread: usize) -> Vec<EventRecord> {
    let thread = recording.threads().nth(thread).expect("the thread");
    let events = thread.events();
    assert_eq!((events.overwritten, events.torn, events.lost), (0, 0, 0));
    events.events
}

fn name(recording: &Recording<'_>, thread: usize, event: &EventRecord) -> String {
    if event.kind == EVENT_MARK {
        return recording.mark(event.subject).expect("a name").into_owned();
    }
    let thread = recording.threads().nth(thread).expect("the thread");
    let context = thread.contexts().find(|context| context.reference == event.subject);
    let slot = recording.slot(context.expect("a context").slot()).expect("an import");
    slot.name().into_owned()
}

fn names(recording: &Recording<'_>, thread: usize) -> Vec<String> {
    events(recording, thread).iter().map(|event| name(recording, thread, event)).collect()
}

/// A limit of 10 ms lets calls of 20 ms be seen, and what else takes so long only if the machine stands still; of that nothing is
/// said here.
#[test]
fn slow_calls_and_marks_are_kept_in_order() {
    let trial = Trial::new(Build::program("events.c").build())
        .arg("3")
        .hooked_env("CHASE_EVENTS", "slow:10ms");
    let (loaded, analysis) = run(&trial);
    let recording = &loaded.images[0].recording;
    let planted = ["usleep", "pthread_join", "begin", "round", "end"];
    let mut seen = names(recording, 0);
    seen.retain(|name| planted.contains(&&**name));
    let expected =
        ["begin", "usleep", "round", "usleep", "round", "usleep", "round", "pthread_join", "end"];
    // The other thread may have ended its sleep before it is joined.
    seen.retain(|name| name != "pthread_join");
    assert_eq!(
        seen,
        expected.map(str::to_owned).into_iter().filter(|n| n != "pthread_join").collect::<Vec<_>>()
    );
    assert_eq!(names(recording, 1), ["usleep"]);
    let timeline = timeline(&loaded.images, &analysis, &Groups::new(&analysis, &Unnamed));
    check(&timeline, &analysis);
    let slept = |lane: usize| {
        let lane = &timeline.lanes[lane];
        let calls = lane.calls.iter().filter(|call| !call.is_open);
        let usleep = calls.filter(|call| analysis.apis[call.api as usize].symbol == "usleep");
        usleep.map(|call| call.ns.0).collect::<Vec<_>>()
    };
    assert_eq!((slept(0).len(), slept(1).len()), (3, 1));
    // The clock's rate is measured over the run: within a percent.
    assert!(slept(0).iter().all(|&ns| ns as f64 >= 0.99 * SLEEP_NS), "{:?}", slept(0));
    assert_eq!(timeline.marks, ["begin", "round", "end"]);
}

/// Calls lie within their thread's life, and in the calls that they are in.
fn check(timeline: &Timeline, analysis: &Analysis) {
    assert_eq!(timeline.lanes.len(), analysis.threads.len());
    for lane in &timeline.lanes {
        assert!(lane.start_ns <= lane.end_ns && lane.end_ns <= timeline.end_ns);
        let mut ends: Vec<u64> = Vec::new();
        for call in &lane.calls {
            let end = call.start_ns.0 + call.ns.0;
            assert!(usize::from(call.depth) <= ends.len(), "{call:?}");
            ends.truncate(call.depth.into());
            assert!(ends.last().is_none_or(|&outer| end <= outer + 2), "{call:?} in {ends:?}");
            ends.push(end);
        }
    }
}

/// With all calls, what the timeline has of a function adds up to what the report has.
#[test]
fn all_calls_add_up_to_the_totals() {
    let rounds = 50;
    let trial = Trial::new(Build::program("events.c").build())
        .arg(rounds.to_string())
        .hooked_env("CHASE_EVENTS", "all,64MB");
    let (loaded, analysis) = run(&trial);
    let timeline = timeline(&loaded.images, &analysis, &Groups::new(&analysis, &Unnamed));
    check(&timeline, &analysis);
    let of = |symbol: &str| {
        let is_it = |api: &u32| analysis.apis[*api as usize].symbol == symbol;
        let calls = timeline.lanes.iter().flat_map(|lane| &lane.calls);
        let own: Vec<_> = calls.filter(|call| is_it(&call.api)).collect();
        (own.len(), own.iter().map(|call| call.ns.0).sum::<u64>())
    };
    assert_eq!(of("trap_leaf").0, rounds);
    assert_eq!(of("usleep").0, rounds + 1);
    let row = analysis.apis.iter().find(|api| api.symbol == "usleep").expect("usleep");
    let (total, kept) = (row.measures.total_ns.as_f64(), of("usleep").1 as f64);
    assert!((kept / total - 1.0).abs() < 0.01, "{kept} of {total}");
}

#[test]
fn all_calls_of_chosen_functions_are_kept() {
    let rounds = 20;
    let trial = Trial::new(Build::program("events.c").build())
        .arg(rounds.to_string())
        .hooked_env("CHASE_EVENTS", "slow:10s,all=libtrap.so:trap_leaf");
    let (loaded, _) = run(&trial);
    let recording = &loaded.images[0].recording;
    let calls: Vec<EventRecord> =
        events(recording, 0).into_iter().filter(|event| event.kind == EVENT_CALL).collect();
    assert_eq!(calls.len(), rounds);
    assert!(calls.iter().all(|event| name(recording, 0, event) == "trap_leaf"));
}

#[test]
fn nothing_is_kept_that_is_not_wanted() {
    let trial =
        Trial::new(Build::program("events.c").build()).arg("1").hooked_env("CHASE_EVENTS", "off");
    let (loaded, _) = run(&trial);
    let recording = &loaded.images[0].recording;
    assert!(recording.threads().all(|thread| thread.events().events.is_empty()));
}

/// Room for 126 + 254 events: a thread takes a half, and a half of what is left then.
#[test]
fn the_first_or_the_last_are_kept_where_room_is_scarce() {
    let calls = 3_000;
    for (wish, keeps_first) in [("all=:trap_leaf,16K,first", true), ("all=:trap_leaf,16K", false)] {
        let trial = Trial::new(Build::program("events.c").build())
            .args([&calls.to_string(), "forever"])
            .hooked_env("CHASE_EVENTS", wish);
        killed(&trial);
        let (loaded, _) = read(&trial);
        let thread = loaded.images[0].recording.threads().next().expect("the thread");
        let found = thread.events();
        assert!(found.torn <= 1, "{found:?}");
        let numbers: Vec<u64> = found.events.iter().map(|event| event.number).collect();
        assert!((100..1_000).contains(&numbers.len()), "{}", numbers.len());
        assert!(found.events.iter().is_sorted_by_key(|event| event.start_ticks));
        if keeps_first {
            assert_eq!((numbers[0], found.overwritten), (1, 0));
            assert!(found.lost as usize + numbers.len() >= calls, "{}", found.lost);
        } else {
            let last = *numbers.last().expect("some");
            assert!(last as usize >= calls, "{last}");
            assert_eq!(last, numbers.len() as u64 + found.torn + found.overwritten);
            // The last calls are there: one of them began last.
            let context = thread.contexts().find(|c| c.reference == found.events[0].subject);
            let latest = context.expect("the context").node().last_start_ticks;
            let kept = found.events.last().expect("some").start_ticks;
            assert!(kept <= latest && found.events[0].start_ticks < kept);
        }
    }
}

/// Runs a program until it has said that it has made its calls, and kills it.
fn killed(trial: &Trial) {
    let mut child =
        trial.hooked_command().stdout(Stdio::piped()).spawn().expect("start the program");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("its standard output");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert_eq!(line, "begun\n");
    child.kill().expect("kill the program");
    child.wait().expect("wait for the program");
}

/// There is room for 16 threads at a time. The later ones have that of those that ended first, whose events are counted, also where
/// nobody saw the end of the process.
#[test]
fn later_threads_have_the_room_of_those_that_have_ended() {
    let (threads, each, at_a_time) = (100, 3, 16);
    for is_killed in [false, true] {
        let wish = "slow:1000s,all=:trap_leaf,64K";
        let trial = Trial::new(Build::program("event_rooms.c").build())
            .arg(threads.to_string())
            .hooked_env("CHASE_EVENTS", wish);
        let (loaded, analysis) = if is_killed {
            let trial = trial.arg("forever");
            killed(&trial);
            read(&trial)
        } else {
            run(&trial)
        };
        let recording = &loaded.images[0].recording;
        let own = recording.threads().skip(1).map(|thread| thread.events());
        let own: Vec<_> = own.collect();
        assert_eq!(own.len(), threads);
        assert!(
            own.iter().all(|events| (events.torn, events.lost, events.overwritten) == (0, 0, 0))
        );
        let kept: Vec<usize> = own.iter().map(|events| events.events.len()).collect();
        assert_eq!(
            kept[threads - at_a_time..],
            [each].repeat(at_a_time),
            "the last ones are there"
        );
        assert_eq!(kept.iter().sum::<usize>(), each * at_a_time);
        let gone = each * (threads - at_a_time);
        assert_eq!(analysis.not_seen.events_of_ended, gone as u64, "and the others are counted");
    }
}

/// Those that are to be kept first leave no room, and what is lost for want of it is counted too.
#[test]
fn the_first_threads_keep_their_room_where_the_first_events_are_wanted() {
    let (threads, each, at_a_time) = (40, 3, 16);
    let trial = Trial::new(Build::program("event_rooms.c").build())
        .arg(threads.to_string())
        .hooked_env("CHASE_EVENTS", "slow:1000s,all=:trap_leaf,64K,first");
    let (loaded, analysis) = run(&trial);
    let own =
        loaded.images[0].recording.threads().skip(1).map(|thread| thread.events().events.len());
    let kept: Vec<usize> = own.collect();
    assert_eq!(kept[..at_a_time], [each].repeat(at_a_time));
    assert_eq!(kept[at_a_time..], [0].repeat(threads - at_a_time));
    let lost = each * (threads - at_a_time);
    let not_seen = &analysis.not_seen;
    assert_eq!((not_seen.events_without_space, not_seen.events_of_ended), (lost as u64, 0));
}

/// What is hard to hook is hard to write events for: the call path writes them itself where all calls are events, here in rings so small
/// that it goes round in them.
#[test]
fn programs_behave_alike_while_all_their_calls_are_events() {
    for (program, arguments) in [
        ("values.c", &["200"][..]),
        ("longjmp.c", &["300"]),
        ("exception.cpp", &["2", "300"]),
        ("fork_tree.c", &["2"]),
        ("cancel.c", &["20"]),
        ("many.c", &["threads", "100", "3"]),
    ] {
        let trial = Trial::new(Build::program(program).build())
            .args(arguments.iter().copied())
            .hooked_env("CHASE_EVENTS", "all,256K");
        let (loaded, _) = run(&trial);
        for image in &loaded.images {
            for thread in image.recording.threads() {
                let events = thread.events();
                // An asynchronous cancellation may come in the middle of an event.
                assert!(events.torn == 0 || program == "cancel.c", "{program}: {events:?}");
                // As many as there were, or the latest of them.
                let numbers: Vec<u64> = events.events.iter().map(|event| event.number).collect();
                let last = numbers.last().copied().unwrap_or_default();
                let known = numbers.len() as u64 + events.overwritten + events.torn;
                assert!(last <= known, "{program}: {last}, {known}");
                let calls = events.events.iter().filter(|event| event.kind == EVENT_CALL);
                assert!(
                    calls.clone().all(|event| event.start_ticks > 0 && event.subject > 0),
                    "{program}"
                );
            }
        }
    }
}

/// Killed at random moments: each call that had ended has its event, up to the last; of one that was just being written no more is
/// said than that. `cargo xtask kills` does it more often.
#[test]
fn a_program_that_is_killed_leaves_its_latest_events() {
    let kills: u32 =
        std::env::var("CHASE_KILLS").map_or(10, |kills| kills.parse().expect("a number"));
    let program = Build::program("events_told.c").build();
    let directory = tempfile::tempdir().expect("a directory");
    let (told, output) = (directory.path().join("told"), directory.path().join("recording"));
    let mut random = 0x9e37_79b9_u32;
    for kill in 0..kills {
        let wish = if kill % 2 == 0 { "all,64K" } else { "slow:1000s,all=:trap_leaf,64K" };
        let _ = std::fs::remove_dir_all(&output);
        std::fs::create_dir(&output).expect("create the directory of recordings");
        std::fs::write(&told, [0; 8]).expect("write the number of calls");
        let number = || {
            let bytes = std::fs::read(&told).expect("read the number of calls");
            u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
        };
        let mut child = Command::new(&program)
            .arg(&told)
            .env("LD_PRELOAD", libchase())
            .env("CHASE_OUTPUT", &output)
            .env("CHASE_SYSCALLS", "off")
            .env("CHASE_EVENTS", wish)
            .spawn()
            .expect("start the program");
        while number() < 1_000 {
            assert!(child.try_wait().expect("ask for its end").is_none(), "it goes on for ever");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        std::thread::sleep(std::time::Duration::from_micros(u64::from(random >> 20)));
        child.kill().expect("kill the program");
        child.wait().expect("wait for the program");
        let ended = number();
        let loaded = load(&output).expect("a recording");
        let recording = &loaded.images[0].recording;
        let thread = recording.threads().next().expect("the thread");
        let is_leaf = |reference: u32| {
            let context = thread.contexts().find(|context| context.reference == reference);
            let slot = recording.slot(context.expect("a context").slot()).expect("an import");
            slot.name() == "trap_leaf"
        };
        // With all calls, those before are events too.
        let calls = thread.contexts().map(|context| (context.reference, context.node().calls));
        let before: u64 = calls.filter(|&(of, _)| !is_leaf(of)).map(|(_, calls)| calls).sum();
        let before = if kill % 2 == 0 { before } else { 0 };
        let found = thread.events();
        let numbers: Vec<u64> = found.events.iter().map(|event| event.number).collect();
        let last = *numbers.last().expect("the latest events");
        assert!(found.torn <= 1 && numbers.len() > 100, "{wish}: {} whole", numbers.len());
        let known = ended + before..=ended + before + 1;
        assert!(known.contains(&last), "{wish}: {last} of {known:?}");
        // None of them is missing but for the one whose place was just being written.
        let missing = last - numbers[0] + 1 - numbers.len() as u64;
        assert!(missing <= 1, "{wish}: {missing} missing");
        assert!(is_leaf(found.events.last().expect("the last one").subject), "{wish}");
    }
}

/// 64 threads and more of them: what Perfetto's own definitions find in the export is whole, and is what the report says.
#[test]
fn a_trace_of_many_threads_is_what_perfetto_reads() {
    let what = "traces by Perfetto's definitions";
    let Some(packages) = std::env::var_os("CHASE_PERFETTO") else {
        return need::skip(what, "CHASE_PERFETTO is not set: `cargo xtask perfetto` does");
    };
    let (trial, has_companion) = pairs_with_all_events(what);
    let trace = trial.work().join("trace");
    let trace_path = trace.to_str().expect("UTF-8");
    let _ = report::text(&trial.output(), &["export", "--format", "perfetto", "-o", trace_path]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/perfetto/decode.py");
    let output = Command::new("/usr/bin/python3")
        .args([script, trace_path])
        .env("PYTHONPATH", packages)
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["problems"], serde_json::json!([]));
    assert_eq!(found["threads"].as_array().expect("threads").len(), 65);

    // As many as the report has, since so few have their times all; less those before and after their threads' recording.
    let taken = report::document(&trial.output(), "libs")["on_cpu"]["samples"].as_u64();
    let exported = found["samples"].as_u64().expect("a number");
    if let Some(taken) = taken.filter(|&taken| taken >= 16) {
        assert!(exported <= taken && exported * 10 >= taken * 9, "{exported} of {taken}");
    }

    // Who held a lock is who ended the other's wait for it.
    let flows = found["flows"].as_array().expect("flows");
    let pair = |name: &serde_json::Value, role: &str| {
        let name = name.as_str().expect("a thread");
        name.strip_prefix(role).map(str::to_owned)
    };
    let of_pairs: Vec<_> =
        flows.iter().filter_map(|flow| Some((flow, pair(&flow[1], "waiter ")?))).collect();
    for (flow, waiter) in &of_pairs {
        assert_eq!(pair(&flow[0], "holder ").as_ref(), Some(waiter), "{flow}");
    }
    // Not all of them need have come to the lock while it was held.
    assert!(!has_companion || of_pairs.len() >= 16, "{flows:?}");

    let document = report::document(&trial.output(), "apis");
    let mut compared = (0.0, 0.0);
    for row in document["apis"].as_array().expect("functions") {
        let text = |key: &str| row[key].as_str().expect("a text");
        let (calls, total) = (row["calls"].as_u64().expect("calls"), row["total_ns"].as_f64());
        let total = total.expect("a time");
        // What recording itself costs is not in the report, but in the trace: seen where calls are short.
        if calls == 0 || total / (calls as f64) < 100e3 {
            continue;
        }
        let own = &found["totals"][format!("{}:{}", text("library"), text("symbol"))];
        assert_eq!(own[0].as_u64(), Some(calls), "{row}");
        let own = own[1].as_f64().expect("a time");
        assert!((own / total - 1.0).abs() < 0.01, "{}: {own} of {total}", text("symbol"));
        compared = (compared.0 + own, compared.1 + total);
    }
    assert!(compared.1 > 64.0 * 2e6, "{compared:?}");
}
