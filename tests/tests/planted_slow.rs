//! Planted programs whose loss depends on what else the machine does: which want processors, or memory of the system's. To be run
//! on a machine that has little else to do: `cargo test -p chase-tests --test planted_slow`.

use chase_tests::planted;

planted! {
    tiny_calls: "tiny_calls.c",
    one_worker_with_more_input: "more_input.c",
    more_threads_than_processors: "too_many.c",
    more_threads_than_processors_for_tiles: "too_many_tiles.cpp",
    a_contended_arena: "allocator.c",
    memory_mapped_again_and_again: "mapping_churn.c",
    threads_that_change_the_memory_map: "memory_map.c",
    the_interpreter_lock: "gil.py",
    memory_mapped_again_and_again_in_cpp: "mapping_churn.cpp",
    large_memory_mapped_again: "mapping_large.c",
    one_thread_with_more_input_in_rust: "more_input.rs",
    one_worker_with_more_calls: "more_calls.c",
    one_worker_with_slower_calls: "slower_calls.c",
    one_worker_with_larger_arguments: "larger_arguments.c",
}

#[test]
fn they_are_in_one_list_only() {
    let certain = include_str!("planted.rs");
    for source in SOURCES {
        assert!(!certain.contains(&format!("\"{source}\"")), "{source} is in both");
    }
}
