//! Small programs, each with one thing wrong that it says in its head, or with nothing wrong; and what chase finds. What each of
//! these loses is certain. Others are in `planted_slow.rs`.

use std::fs;
use std::path::Path;

use chase_tests::compile::planted;
use chase_tests::planted;
use chase_tests::planted::{Answer, trial};
use chase_tests::report::{document, json, text};
use chase_tests::tagged::{Tagged, companion};
use serde_json::Value;

planted! {
    a_convoy: "convoy.c",
    a_convoy_in_cpp: "convoy.cpp",
    a_convoy_in_rust: "convoy.rs",
    a_lock_that_each_takes_once: "convoy_once.c",
    a_convoy_on_the_heap: "convoy_heap.c",
    a_convoy_on_the_heap_in_rust: "convoy_heap.rs",
    a_convoy_in_python: "convoy.py",
    a_slow_consumer: "slow_consumer.c",
    a_slow_producer: "slow_producer.c",
    a_slow_producer_of_small_things: "short_hand_overs.c",
    a_slow_producer_of_many: "slow_source.c",
    a_slow_middle_stage: "middle_stage.c",
    a_slow_writer_to_a_pipe: "slow_pipe.c",
    a_slow_filter_of_a_script: "slow_filter.sh",
    a_journal_that_syncs: "journal.c",
    a_journal_beside_the_work: "journal_beside.c",
    writes_that_wait_for_the_disk: "synchronous_writes.c",
    unbuffered_writes_to_one_file: "small_writes.c",
    a_starved_writer: "starved_writer.c",
    readers_that_wait_for_a_writer: "convoy_rwlock.cpp",
    the_last_at_a_barrier: "barrier_sleeper.c",
    the_last_to_end: "last_to_end.c",
    the_last_to_end_in_cpp: "last_to_end.cpp",
    the_last_to_end_in_rust: "last_to_end.rs",
    the_last_of_different_threads: "join_different.c",
    the_last_of_futures: "join_future.cpp",
    a_poll_loop: "polling.c",
    a_lock_that_spins: "spinning.c",
    exceptions_as_a_rule: "exceptions.cpp",
    a_poll_loop_in_python: "polling.py",
    a_script_of_short_processes: "short_processes.sh",
    a_thread_for_each_task: "short_threads.c",
    a_thread_for_each_task_in_cpp: "short_threads.cpp",
    a_thread_for_each_task_by_futures: "short_threads_async.cpp",
    a_thread_for_each_task_in_rust: "short_threads.rs",
    a_thread_for_each_task_in_python: "short_threads.py",
    a_slow_peer: "peer.c",
    a_slow_peer_that_is_the_same_program: "peer_itself.c",
    a_slow_name_server: "names.c",
    a_convoy_with_a_limit_of_time: "convoy_timed.c",
    a_convoy_on_a_robust_mutex: "convoy_robust.c",
    a_convoy_on_a_mutex_that_lends_priority: "convoy_inherit.c",
    writers_that_wait_for_writers: "convoy_writers.c",
    a_convoy_on_a_semaphore: "convoy_semaphore.c",
    a_convoy_on_a_stream: "convoy_stream.c",
    a_convoy_on_a_locked_file: "convoy_flock.c",
    a_convoy_on_a_record_of_a_file: "convoy_fcntl.c",
    a_convoy_on_a_recursive_mutex: "convoy_recursive.cpp",
    readers_that_wait_for_a_writer_in_rust: "convoy_rwlock.rs",
    a_slow_consumer_in_rust: "slow_consumer.rs",
    a_slow_consumer_in_python: "slow_consumer.py",
    a_slow_producer_in_python: "slow_producer.py",
    a_slow_middle_stage_in_cpp: "slow_middle.cpp",
    a_slow_reader_of_a_socket: "slow_socket.c",
    the_last_at_a_barrier_in_rust: "barrier_late.rs",
    the_last_at_a_barrier_of_openmp: "barrier_openmp.c",
    more_work_before_a_barrier: "barrier_work.c",
    small_reads_of_one_file: "small_reads.c",
    lines_that_are_flushed: "small_flushed.cpp",
    small_reads_of_a_connection: "small_receives.c",
    small_writes_in_python: "small_writes.py",
    a_journal_in_python: "journal.py",
    a_journal_in_rust: "journal.rs",
    a_poll_loop_in_rust: "polling.rs",
    a_poll_loop_by_a_condition: "polling_condition.cpp",
    short_processes_in_python: "short_processes.py",
    short_processes_whose_output_is_read: "short_processes_output.py",
    the_last_to_end_in_python: "last_to_end.py",
    the_last_process_to_end: "last_process.c",
    the_last_process_to_end_in_python: "last_process.py",
    a_long_chunk_in_a_pool_of_processes: "uneven_processes.py",
    a_long_task_in_an_executor_of_processes: "uneven_executor.py",
    a_slow_peer_in_python: "peer.py",
    a_slow_upstream: "slow_upstream.c",
    a_long_task_in_a_pool: "uneven_tasks.rs",
    an_event_loop_held_up: "held_up.c",
    threads_that_take_turns_at_monitors: "monitor.c",
    a_slow_callback: "slow_callback.c",
    a_pool_of_connections_in_cpp: "condition_pool.cpp",
    a_library_that_is_slow_to_start: "slow_loading.c",
    a_linked_library_that_is_slow_to_start: "slow_constructor.c",
    a_linked_library_that_computes_its_tables: "slow_constructor.cpp",
    an_event_loop_of_io_uring_held_up: "held_up_ring.c",
    an_event_loop_held_up_in_python: "held_up.py",
    settings_that_are_read_again: "reread_settings.c",
    settings_that_are_read_again_in_python: "reread_settings.py",
    the_local_time_is_asked_about: "local_time.c",
    a_file_that_is_not_there: "missing_file.c",
    a_pattern_that_is_compiled_again: "recompiled.c",
    owners_that_are_looked_up_again: "owners.py",
    a_consumer_that_sleeps: "sleepy_consumer.c",
    a_consumer_that_sleeps_in_cpp: "sleepy_backlog.cpp",
    a_consumer_that_sleeps_in_rust: "sleepy_consumer.rs",
    a_consumer_that_sleeps_in_a_server_that_is_ended: "sleepy_server.c",
    a_late_thread_at_a_barrier_in_python: "uneven_barrier.py",
    a_long_task_of_each_round_of_processes: "uneven_days.py",
    a_larger_part_of_parallel_regions: "uneven_region.c",
    fields_that_are_written_by_two_functions: "small_fields.c",
    calm: "calm.c",
    calm_queue: "calm_queue.c",
    calm_server: "calm_server.c",
    calm_cosines: "calm_cosines.c",
    calm_timer: "calm_timer.py",
    calm_files: "calm_files.c",
    calm_workers: "calm_workers.rs",
    calm_broadcast: "calm_broadcast.c",
    calm_barrier: "calm_barrier.c",
    calm_readers: "calm_readers.c",
    calm_copy: "calm_copy.c",
    calm_once: "calm_once.cpp",
    calm_futures: "calm_futures.cpp",
    calm_channel: "calm_channel.rs",
    calm_lines: "calm_lines.py",
    calm_pool: "calm_pool.py",
    calm_child: "calm_child.sh",
    calm_clock: "calm_clock.c",
    calm_main_loop: "calm_main_loop.c",
    calm_save: "calm_save.c",
    calm_signal: "calm_signal.c",
    calm_memory: "calm_memory.rs",
    calm_news: "calm_news.c",
    calm_clients: "calm_clients.c",
    calm_messages: "calm_messages.c",
    calm_turns: "calm_turns.c",
    calm_tasks: "calm_tasks.rs",
    calm_log: "calm_log.c",
    calm_frames: "calm_frames.c",
    calm_think: "calm_think.c",
    calm_many_files: "calm_many_files.c",
    calm_ticks: "calm_ticks.c",
    calm_zone: "calm_zone.c",
    calm_patterns: "calm_patterns.c",
    calm_patterns_in_python: "calm_patterns.py",
    calm_threads: "calm_threads.c",
    calm_processes: "calm_processes.c",
    calm_process_pool: "calm_process_pool.py",
    calm_executor: "calm_executor.py",
    calm_task_pool: "calm_task_pool.py",
    calm_engine: "calm_engine.cpp",
    calm_hashes: "calm_hashes.py",
    calm_no_delay: "calm_no_delay.c",
    calm_passes: "calm_passes.c",
    calm_steps: "calm_steps.sh",
    calm_prefork: "calm_prefork.c",
    a_message_in_pieces: "message_in_pieces.c",
    threads_of_each_pass_of_which_one_has_more_to_do: "uneven_passes.cpp",
    sleeps_that_a_run_is_made_of: "settle.cpp",
    answers_that_come_by_the_clock: "late_answers.cpp",
    calm_joins: "calm_joins.py",
}

/// What `chase report findings` says of a program; `None` where it can't be watched here.
fn findings_of(source: &str) -> Option<String> {
    companion(source)?;
    let trial = trial(source, &Answer::of(source))?.hooked_env("CHASE_SYSCALLS", "require");
    assert!(trial.hooked().status.success());
    let _ = Tagged::finished(&trial.output());
    Some(text(&trial.output(), &["findings"]))
}

/// A run that consists of sleeps has no finding, since a program may have to sleep; but what it consists of is said.
#[test]
fn what_a_run_is_made_of_is_said_where_nothing_is_wrong() {
    let Some(said) = findings_of("settle.cpp") else { return };
    let expected = "Most of the run's length is a wait: main of settle waits in nanosleep at Supervisor::launch settle.cpp:";
    assert!(said.contains(expected) && said.contains(", 4 times, "), "{said}");
}

/// So is a wait for others that lasts until its limit of time, and who waits for that.
#[test]
fn that_nobody_ends_a_wait_before_its_limit_is_said() {
    let Some(said) = findings_of("late_answers.cpp") else { return };
    let waits = "Server::serve waits in pthread_cond_clockwait";
    let late = "until its limit of time, since nobody ends it earlier, while main of late_answers waits for it ";
    assert!(said.contains(waits) && said.contains(late), "{said}");
}

/// Whether programs could run at once that a script starts one after the other, nobody can see; but that they don't is said.
#[test]
fn that_a_run_is_made_of_programs_one_after_the_other_is_said() {
    let Some(said) = findings_of("calm_steps.sh") else { return };
    assert!(
        said.contains(" is 24 processes of ") && said.contains(", one after the other; "),
        "{said}"
    );
}

/// Threads of OpenMP wait for each other, in calls of its runtime and, those of its pool, in their own code.
#[test]
fn a_team_waits_for_no_lock() {
    for source in ["uneven_region.c", "barrier_openmp.c"] {
        let Some(_) = companion(source) else { return };
        let Some(trial) = trial(source, &Answer::of(source)) else { return };
        let trial = trial.hooked_env("CHASE_SYSCALLS", "require");
        assert!(trial.hooked().status.success());
        let _ = Tagged::finished(&trial.output());
        let found = document(&trial.output(), "waits");
        let rows = found["waits"].as_array().expect("waits");
        assert!(rows.iter().any(|row| row["cause"] == "barrier"), "{rows:#?}");
        // (Who makes a thread may have to wait for the memory map.)
        let mut locks = rows.iter().filter(|row| row["cause"] == "lock");
        assert!(locks.all(|row| row["function"] == "pthread_create"), "{rows:#?}");
    }
}

#[test]
fn the_critical_path_is_as_long_as_the_run() {
    for source in ["convoy.c", "barrier_sleeper.c"] {
        let Some(_) = companion(source) else { return };
        let Some(trial) = trial(source, &Answer::of(source)) else { return };
        let trial = trial.hooked_env("CHASE_SYSCALLS", "require");
        assert!(trial.hooked().status.success());
        let _ = Tagged::finished(&trial.output());
        let found = document(&trial.output(), "path");
        let number = |value: &Value| value.as_u64().expect("a time");
        let steps = found["steps"].as_array().expect("steps");
        let ends = |step: &Value| (number(&step["begin_ns"]), number(&step["end_ns"]));
        // From the end of the run to its start, without gaps.
        let mut at = number(&found["wall_ns"]);
        for (begin, end) in steps.iter().map(ends) {
            assert!(end == at && begin < end, "{begin} to {end} does not end at {at}");
            at = begin;
        }
        assert_eq!(at, 0);
        let parts = found["parts"].as_array().expect("parts").iter();
        let sum: u64 = parts.map(|part| number(&part["ns"])).sum();
        assert_eq!(sum, number(&found["wall_ns"]));
        // What runs has a library, and a function but for own code.
        let parts = found["parts"].as_array().expect("parts").iter();
        for part in parts.filter(|part| part["doing"] == "running") {
            assert!(part["library"].is_string(), "{part:#}");
        }
        a_window_has_its_part_of_the_path(&trial.output(), number(&found["wall_ns"]));
        // What holds the run up is asleep.
        let first = &found["parts"][0];
        assert_eq!(first["doing"], "waiting", "{first:#}");
        assert_eq!(first["function"], "nanosleep", "{first:#}");
        if source == "convoy.c" {
            a_finding_saves_no_more_of_the_run_than_without_its_lock(&trial.output());
        }
    }
}

fn a_window_has_its_part_of_the_path(output: &Path, wall_ns: u64) {
    let (from, to) = (wall_ns / 3, wall_ns / 2);
    let [first, last] = [from, to].map(|ns| format!("{ns}ns"));
    let found = json(output, &["path", "--from", &first, "--to", &last]);
    let number = |value: &Value| value.as_u64().expect("a time");
    let parts = found["parts"].as_array().expect("parts").iter();
    assert_eq!(parts.map(|part| number(&part["ns"])).sum::<u64>(), to - from);
    assert_eq!(number(&found["window"][0]["ns"]), to - from);
    let steps = found["steps"].as_array().expect("steps");
    assert_eq!(number(&steps[0]["end_ns"]), to);
    assert_eq!(number(&steps[steps.len() - 1]["begin_ns"]), from);
}

fn a_finding_saves_no_more_of_the_run_than_without_its_lock(output: &Path) {
    let without = json(output, &["path", "--without", "lock:*stats_mu*"]);
    let bound = without["what_if"][0]["saves_at_most_ns"].as_u64().expect("a time");
    let found = document(output, "findings");
    let finding = &found["findings"][0];
    assert_eq!(finding["kind"], "serialising-lock", "{found:#}");
    let saves = finding["saves_ns"].as_u64().expect("a time");
    assert_eq!(finding["run_saves_ns"], bound.min(saves), "{finding:#}, at most {bound}");
}

#[test]
fn each_program_has_a_test() {
    let slow = include_str!("planted_slow.rs");
    for entry in fs::read_dir(planted()).expect("the programs") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        let is_program = !name.ends_with(".h") && !name.ends_with(".md");
        let has_test = SOURCES.contains(&&*name) || slow.contains(&format!("\"{name}\""));
        assert!(!is_program || has_test, "{name} has no test");
    }
}
