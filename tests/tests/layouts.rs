//! What linkers make of one program: how it finds functions, where tables are, what of them is writable.

use chase_tests::compile::Build;
use chase_tests::need;
use chase_tests::trial::Trial;

/// Runs the program in all layouts of a linker, bare and hooked. `others` are what this linker alone can do.
fn layouts(package: &str, linker: &str, others: &[&str]) {
    need::package(package, &format!("/usr/bin/ld.{linker}"));
    let others = ["", "-fno-plt"].iter().chain(others);
    for other in others {
        for pie in ["-fPIE -pie", "-fno-pie -no-pie"] {
            for binding in ["lazy", "now"] {
                for relro in ["relro", "norelro"] {
                    for hash in ["gnu", "sysv"] {
                        let flags = format!(
                            "-fuse-ld={linker} {pie} -Wl,-z,{binding} -Wl,-z,{relro} -Wl,--hash-style={hash} {other}"
                        );
                        runs(&flags);
                    }
                }
            }
        }
    }
}

fn runs(flags: &str) {
    eprintln!("linked with {flags}"); // shown if it fails
    let program = Build::program("layout.c").flags(flags).without_libtrap().build();
    let recording = Trial::new(program).compare();
    let process = recording.only();
    for (api, calls) in [("strtol", 1000), ("snprintf", 200), ("qsort", 1), ("printf", 1)] {
        assert_eq!(process.calls_from("layout", "libc.so", api), calls, "{api}");
    }
    let compared = process.calls_from("layout", "libc.so", "strcmp");
    assert!(
        (600..1600).contains(&compared),
        "n log2 n is 1500, and some come in order: {compared}"
    );
}

#[test]
fn by_bfd() {
    layouts("binutils", "bfd", &["-Wl,-z,pack-relative-relocs", "-Wl,-z,noseparate-code"]);
}

#[test]
fn by_gold() {
    layouts("binutils", "gold", &["-Wl,--rosegment"]);
}

// (The packed relocations of these two want a newer version of them: the C library refuses what they make.)
#[test]
fn by_lld() {
    layouts("lld", "lld", &["-Wl,-z,separate-code", "-Wl,-z,separate-loadable-segments"]);
}

#[test]
fn by_mold() {
    layouts("mold", "mold", &["-Wl,-z,noseparate-code", "-Wl,-z,separate-code"]);
}
