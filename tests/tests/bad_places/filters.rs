//! Filters of system calls.

use chase_recorder::layout::{STOP_CONFINED, STOP_NONE};
use chase_tests::compile::Build;
use chase_tests::report::document;
use chase_tests::trial::Trial;
use serde_json::Value;

use crate::{check_all, steady};

#[test]
fn strict_seccomp_stops_the_recording_and_not_the_program() {
    let program = Build::program("confined.c").without_libtrap().build();
    let recording = Trial::new(&program).compare();
    recording.only().expect(&[("libc.so", "write", 2)]);

    // Also if calls of what forbids it are not to be recorded.
    for (name, list) in [("CHASE_LIBS", "libc.so*:write"), ("CHASE_EXCLUDE", ":prctl,:syscall")] {
        let recording = Trial::new(&program).hooked_env(name, list).compare();
        let process = recording.only();
        process.expect(&[
            ("libc.so", "write", 2),
            ("libc.so", "prctl", 0),
            ("libc.so", "syscall", 0),
        ]);
    }
}

#[test]
fn a_filter_of_system_calls_finds_none_of_the_hooks() {
    for timing in ["adaptive", "all", "count"] {
        let program = Build::program("filtered.c").flags("-pthread").without_libtrap().build();
        let recording = Trial::new(program).hooked_env("CHASE_TIMING", timing).compare();
        let (children, parents): (Vec<_>, Vec<_>) =
            recording.processes.iter().partition(|process| process.forked);
        assert_eq!((parents.len(), children.len()), (1, 1), "none of a process with a filter");
        // Who only asks for filters has none, and nothing is missing.
        assert_eq!((parents[0].stop_reason, children[0].stop_reason), (STOP_NONE, STOP_CONFINED));
        parents[0].expect(&[("libc.so", "qsort", 100_000), ("libc.so", "strpbrk", 1)]);
        // Threads that were there before go on counting.
        children[0].expect(&[("libc.so", "qsort", 200_000), ("libc.so", "strpbrk", 0)]);
    }
}

#[test]
fn filters_that_refuse_what_a_recording_needs() {
    const CALLS: [i64; 31] = [
        libc::SYS_openat,
        libc::SYS_close,
        libc::SYS_read,
        libc::SYS_pread64,
        libc::SYS_pwrite64,
        libc::SYS_pwritev,
        libc::SYS_fstat,
        libc::SYS_ioctl,
        libc::SYS_ftruncate,
        libc::SYS_fallocate,
        libc::SYS_mkdir,
        libc::SYS_unlink,
        libc::SYS_readlink,
        libc::SYS_getcwd,
        libc::SYS_mmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_madvise,
        libc::SYS_mincore,
        libc::SYS_rt_sigprocmask,
        libc::SYS_futex,
        libc::SYS_prctl,
        libc::SYS_prlimit64,
        libc::SYS_clock_gettime,
        libc::SYS_getrusage,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_getppid,
        libc::SYS_getsid,
        libc::SYS_uname,
    ];
    let refused = Build::program("refused.c").without_libtrap().build();
    let refused = refused.to_str().expect("a path of text");
    let mut survived = 0;
    for errno in [libc::EPERM, libc::ENOSYS] {
        for call in CALLS {
            let filter = [refused, &errno.to_string(), &call.to_string()];
            let trial = Trial::new(steady()).arg("nothing").inside(&filter);
            // (Without some, no program begins.)
            if trial.bare().status.success() {
                trial.compare_outcomes();
                survived += 1;
            }
        }
    }
    assert!(survived > CALLS.len(), "{survived}");
}

/// `rt_sigprocmask` is what tells whether an address can be read.
#[test]
fn libraries_are_known_where_the_kernel_is_not_asked_what_is_readable() {
    let refused = Build::program("refused.c").without_libtrap().build();
    let refused = refused.to_str().expect("a path of text");
    let filter = [refused, &libc::EPERM.to_string(), &libc::SYS_rt_sigprocmask.to_string()];
    let trial = Trial::new("/bin/ls").arg("/").inside(&filter);
    trial.compare_outcomes();
    let libraries = document(&trial.output(), "libs")["libraries"].clone();
    let libraries = libraries.as_array().expect("libraries");
    let is_known = |row: &Value| row["name"] == "libc.so.6" && row["calls"].as_u64() > Some(0);
    assert!(libraries.iter().any(is_known), "{libraries:?}");
}

#[test]
fn a_service_whose_filter_ends_it_for_calls_that_services_do_not_need() {
    // What a tool may want of those that systemd's group `@system-service` lacks. A unit with that group is killed for
    // them.
    const CALLS: [i64; 22] = [
        libc::SYS_mincore,
        libc::SYS_ptrace,
        libc::SYS_perf_event_open,
        libc::SYS_seccomp,
        libc::SYS_bpf,
        libc::SYS_pkey_mprotect,
        libc::SYS_pkey_alloc,
        libc::SYS_pkey_free,
        libc::SYS_chroot,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_open_by_handle_at,
        libc::SYS_fanotify_init,
        libc::SYS_fanotify_mark,
        libc::SYS_modify_ldt,
        libc::SYS_landlock_create_ruleset,
        libc::SYS_landlock_add_rule,
        libc::SYS_landlock_restrict_self,
        libc::SYS_memfd_secret,
        libc::SYS_process_mrelease,
        libc::SYS_pidfd_getfd,
    ];
    let ends_for = Build::program("ends_for.c").without_libtrap().build();
    let ends_for = ends_for.to_str().expect("a path of text");
    let calls = CALLS.map(|call| call.to_string()).join(",");
    let service = || Trial::new(steady()).arg("nothing").inside(&[ends_for, &calls]);
    check_all(&service().compare());
}
