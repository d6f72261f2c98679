//! Arguments, results and addresses must pass unchanged.

use chase_tests::compile::{Build, programs};
use chase_tests::need;
use chase_tests::release;
use chase_tests::trial::Trial;

const TRAP: &str = "libtrap.so";

/// Functions that `values.c` calls once in each round.
const ONCE: [&str; 15] = [
    "trap_swap",
    "trap_mixed",
    "trap_small",
    "trap_reverse",
    "trap_mul128",
    "trap_addl",
    "trap_sum_longs",
    "trap_many",
    "trap_not",
    "trap_negate",
    "trap_complement",
    "trap_halve",
    "trap_mulc",
    "trap_mulcf",
    "trap_mulcl",
];

fn values(build: Build) {
    let rounds = 1_000;
    let recording = Trial::new(build.build()).arg(rounds.to_string()).compare();
    let process = recording.only();
    process.expect(&ONCE.map(|api| (TRAP, api, rounds)));
    process.expect(&[(TRAP, "trap_sum_doubles", 2 * rounds), (TRAP, "trap_call", rounds / 2)]);
    process.expect_nothing_open(TRAP);
}

#[test]
fn every_kind_of_value() {
    values(Build::program("values.c"));
    values(Build::program("values.c").flags("-O2"));
    if need::tool("values built by clang", "clang").is_some() {
        values(Build::program("values.c").tool("clang").flags("-O2"));
    }
}

#[test]
fn every_register() {
    let rounds = 1_000;
    let library = Build::library("librecord.S").build();
    for flags in ["-Wl,-z,now", "-Wl,-z,now -no-pie"] {
        let program = Build::program("registers.c").flags(flags).with(&library).build();
        let recording = Trial::new(program).arg(rounds.to_string()).compare();
        let process = recording.only();
        process.expect(&[("librecord.so", "record_registers", rounds)]);
        process.expect_nothing_open("librecord.so");
    }
}

/// Of these functions an argument is noted, which is in another register each time, or the product of two.
#[test]
fn every_register_of_functions_whose_argument_is_noted() {
    let rounds = 1_000;
    for name in
        ["cblas_ddot", "SHA256", "__fread_unlocked_chk", "curl_multi_wait", "ZSTD_compressCCtx"]
    {
        let flags = format!("-DRECORD={name}");
        let library = Build::library("librecord.S").flags(&flags).build();
        let program =
            Build::program("registers.c").flags(&flags).flags("-Wl,-z,now").with(&library).build();
        for timing in ["adaptive", "all"] {
            let trial = Trial::new(&program).arg(rounds.to_string());
            let recording = trial.hooked_env("CHASE_TIMING", timing).compare();
            let process = recording.only();
            process.expect(&[("librecord.so", name, rounds)]);
            process.expect_nothing_open("librecord.so");
        }
    }
}

/// A conservative garbage collector's roots may be in these only.
#[test]
fn callees_find_every_register_that_they_must_keep() {
    let rounds = 4_000;
    let library = Build::library("libkept.S").flags("-Wl,-z,lazy").build();
    for flags in ["-Wl,-z,lazy", "-DBY_GOT -Wl,-z,now", "-no-pie -Wl,-z,lazy -DROOM=4096"] {
        let program = Build::program("kept.c").flags(flags).with(&library).build();
        for timing in ["adaptive", "all", "count"] {
            let trial = Trial::new(&program).arg(rounds.to_string());
            // It calls itself, in calls that are open, and by tail calls.
            let trial = trial.hooked_env("CHASE_INTERNAL", "libkept.so");
            let recording = trial.hooked_env("CHASE_TIMING", timing).compare();
            let process = recording.only();
            // One round in four is repeated by a callback.
            let all = 2 * (rounds + rounds / 4);
            process.expect(&[
                ("libkept.so", "kept_outer", all),
                ("libkept.so", "kept_plain", 2 * all),
                ("libkept.so", "kept_tail_again", all),
                ("libkept.so", "kept_again", all),
                ("libkept.so", "kept_once_15", 1),
                (TRAP, "trap_call", 2 * rounds / 4),
            ]);
            let specials = ["co_switch", "_longjmp", "__clone", "dlvsym", "syscall", "prctl"];
            // A libpthread of its own would create threads by this `__clone`.
            for special in
                specials.into_iter().filter(|it| *it != "__clone" || !release::has_libpthread())
            {
                assert!(process.calls("libkept.so", special) > 0, "{special} with {timing}");
            }
        }
    }
}

/// Code in assembly calls with a stack that is not aligned to 16 bytes.
#[test]
fn calls_with_a_misaligned_stack() {
    let rounds = 20_000;
    let program = Build::program("misaligned.c").flags("-O2").build();
    for (timing, events) in
        [("adaptive", "off"), ("all", "off"), ("count", "off"), ("all", "all,64KB")]
    {
        let trial = Trial::new(&program).arg(rounds.to_string());
        let trial = trial.hooked_env("CHASE_TIMING", timing).hooked_env("CHASE_EVENTS", events);
        let recording = trial.compare();
        let process = recording.only();
        process.expect(&[
            (TRAP, "trap_empty", 3 * rounds),
            (TRAP, "trap_add", 6 * rounds),
            (TRAP, "trap_halve", 3 * rounds),
            (TRAP, "trap_call", 3 * rounds),
            ("libc.so", "syscall", 3 * rounds),
        ]);
        process.expect_nothing_open(TRAP);
    }
}

fn vectors(width: u32, flag: &str) {
    let rounds = 1_000;
    let flags = format!("{flag} -DWIDTH={width}");
    let library = Build::library("libvector.c").flags(&flags).build();
    let program = Build::program("vectors.c").flags(&flags).with(&library).build();
    let recording = Trial::new(program).arg(rounds.to_string()).compare();
    let process = recording.only();
    process.expect(&[
        ("libvector.so", "trap_vector", rounds),
        ("libvector.so", "trap_vector_varargs", rounds),
    ]);
}

#[test]
fn avx2_values() {
    if is_x86_feature_detected!("avx2") {
        vectors(32, "-mavx2");
    } else {
        need::skip("AVX2 values", "the CPU has no AVX2");
    }
}

#[test]
fn avx512_values() {
    if is_x86_feature_detected!("avx512f") {
        vectors(64, "-mavx512f");
    } else {
        need::skip("AVX-512 values", "the CPU has no AVX-512");
    }
}

#[test]
fn errno_is_kept() {
    let rounds = 1_000;
    let program = Build::program("errno.c").build();
    let recording = Trial::new(program).arg(rounds.to_string()).compare();
    recording.only().expect(&[
        (TRAP, "trap_errno", 2 * rounds),
        (TRAP, "trap_call", 2 * rounds),
        (TRAP, "trap_empty", 2 * rounds),
    ]);
}

#[test]
fn function_pointers_are_equal_everywhere() {
    let all = ["", "-fno-plt", "-no-pie", "-no-pie -fno-plt", "-Wl,-z,now", "-no-pie -fno-pic -O2"];
    for flags in all {
        let program = Build::program("pointers.c").flags(flags).build();
        let recording = Trial::new(program).compare();
        let process = recording.only();
        process.expect(&[(TRAP, "trap_add", 100), (TRAP, "trap_address_of_empty", 1)]);
    }
}

#[test]
fn ifunc_symbols() {
    let rounds = 1_000;
    let library = Build::library("libifunc.c").build();
    for flags in ["", "-no-pie", "-fno-plt", "-Wl,-z,now"] {
        let program = Build::program("ifunc.c").flags(flags).with(&library).build();
        let recording = Trial::new(program).arg(rounds.to_string()).compare();
        let process = recording.only();
        process.expect(&[
            ("libifunc.so", "trap_ifunc", rounds),
            ("libifunc.so", "trap_length", rounds),
        ]);
        assert_eq!(process.calls_from("ifunc", "libc.so", "strlen"), rounds);
        assert_eq!(process.calls_from("ifunc", "libc.so", "memcmp"), rounds);
        assert_eq!(process.calls_from("libifunc.so", "libc.so", "strlen"), rounds);
    }
}

#[test]
fn symbol_versions_and_missing_weak_symbols() {
    let script = format!("-Wl,--version-script={}", programs().join("versions.map").display());
    let library = Build::library("libversions.c").flags(&script).build();
    for flags in ["-fPIE", "-no-pie"] {
        let program = Build::program("versions.c").flags(flags).with(&library).build();
        let recording = Trial::new(program).compare();
        let process = recording.only();
        let of_version = |version: &str| {
            let both = process.of("libversions.so", "trap_versioned");
            both.filter(|api| api.version == version).map(|api| api.calls).sum::<u64>()
        };
        assert_eq!((of_version("TRAP_1"), of_version("TRAP_2")), (30, 50));
    }
}
