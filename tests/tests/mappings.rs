//! Where the recording is mapped is where no program wants anything.

use chase_recorder::layout::{STOP_CUT_OFF, STOP_NONE};
use chase_tests::compile::Build;
use chase_tests::recorded::Recording;
use chase_tests::release;
use chase_tests::trial::Trial;

fn fixed_mappings() -> Trial {
    Trial::new(Build::program("fixed_mappings.c").without_libtrap().build())
}

/// What the C library's headers call `strtol` for programs that ask for all of its functions: it takes binary numbers, too.
fn strtol() -> &'static str {
    if release::glibc_minor() >= 38 { "__isoc23_strtol" } else { "strtol" }
}

fn forks_of_forks(processes: u64) -> Recording {
    let program = Build::program("forks_of_forks.c").build();
    Trial::new(program).arg(processes.to_string()).compare()
}

#[test]
fn fixed_places_are_free() {
    let recording = fixed_mappings().compare();
    assert_eq!(recording.processes.len(), 2, "the parent and its child");
    for process in &recording.processes {
        process.expect(&[("libc.so", "strlen", 100_000), ("libc.so", strtol(), 100_000)]);
        assert_eq!(process.stop_reason, STOP_NONE);
    }
}

#[test]
fn a_recording_that_is_mapped_over_says_so() {
    let recording = fixed_mappings().arg("over").compare();
    let (children, parents): (Vec<_>, Vec<_>) =
        recording.processes.iter().partition(|process| process.forked);
    assert_eq!((parents[0].stop_reason, parents[0].end.1), (STOP_CUT_OFF, 3));
    // The child's own is whole.
    assert_eq!((children[0].stop_reason, children[0].end.1), (STOP_NONE, 4));
    children[0].expect(&[("libc.so", strtol(), 100_000)]);
}

#[test]
fn forks_of_forks_find_room() {
    for processes in [1, 80] {
        let recording = forks_of_forks(processes);
        assert_eq!(recording.processes.len() as u64, processes + 2);
        assert_eq!(recording.calls("libtrap.so", "trap_empty"), processes + 1);
        assert!(recording.processes.iter().all(|process| process.stop_reason == STOP_NONE));
    }
}

/// Where the stack may grow without a limit, the kernel goes up from a third of the address space.
#[test]
fn the_kernel_goes_up() {
    let trial = Trial::new(Build::program("steady.c").build()).arg("nothing");
    let recording = trial.inside_shell("ulimit -s unlimited; exec \"$@\"").compare();
    assert!(recording.processes.iter().all(|process| process.stop_reason == STOP_NONE));
    assert_eq!(recording.calls("libtrap.so", "trap_not"), 1);
}
