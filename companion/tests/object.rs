//! The committed objects are those of the sources, and both sides agree on what they share.

use std::fs;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use chase_companion::shared::{
    Ends, Futex, HELLO, Hello, Interval, PROCESSES, Process, ROWS, Row, Sample, SingleSyscall,
    Totals, Turn, Turns, WAITS, Wait, WaitKey,
};
use chase_format::syscalls::{SyscallRow, WaitRow};
use chase_tests::need;
use tempfile::TempDir;

/// The compiler that the committed objects were built with.
const CLANG: &str = "clang version 14.0.6";

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf")
}

#[test]
fn objects_are_those_of_the_sources() {
    let version = Command::new("clang").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if !version.as_ref().is_ok_and(|version| version.contains(CLANG)) {
        return need::skip(
            "objects compared with their sources",
            &format!("{CLANG} is not installed"),
        );
    }
    let directory = TempDir::new().expect("a directory");
    let built = Command::new(sources().join("build")).arg(directory.path()).status().expect("runs");
    assert!(built.success());
    for name in ["syscalls.bpf.o", "empty.bpf.o"] {
        let fresh = fs::read(directory.path().join(name)).expect("built");
        let committed = fs::read(sources().join(name)).expect("committed");
        assert!(fresh == committed, "{name} is not that of its source: run companion/bpf/build");
    }
}

#[test]
fn both_languages_lay_the_structures_out_alike() {
    let directory = TempDir::new().expect("a directory");
    let program = directory.path().join("sizes");
    let source = directory.path().join("sizes.c");
    let text = "#include <stddef.h>\n#include <stdio.h>\n#include \"shared_user.h\"\n\
        int main(void) { printf(\"%zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %u %d %d %d\", sizeof(struct hello), \
        offsetof(struct hello, path), sizeof(struct row), offsetof(struct row, errnos), \
        offsetof(struct row, unfinished), sizeof(struct process), offsetof(struct process, path), \
        sizeof(struct totals), sizeof(struct sample), sizeof(struct interval), sizeof(struct wait_key), sizeof(struct wait), \
         offsetof(struct wait, mode), sizeof(struct ends), sizeof(struct futex), sizeof(struct told), sizeof(struct turn), offsetof(struct turns, histogram), HELLO, ROWS, PROCESSES, WAITS); }";
    fs::write(&source, text).expect("written");
    let mut compile = Command::new("cc");
    let compiled = compile.arg("-I").arg(sources()).arg("-o").arg(&program).arg(&source).status();
    assert!(compiled.expect("cc").success());
    let output = Command::new(&program).output().expect("runs");
    let here = [
        size_of::<Hello>(),
        offset_of!(Hello, path),
        size_of::<Row>(),
        offset_of!(Row, errnos),
        offset_of!(Row, unfinished),
        size_of::<Process>(),
        offset_of!(Process, path),
        size_of::<Totals>(),
        size_of::<Sample>(),
        size_of::<Interval>(),
        size_of::<WaitKey>(),
        size_of::<Wait>(),
        offset_of!(Wait, mode),
        size_of::<Ends>(),
        size_of::<Futex>(),
        size_of::<SingleSyscall>(),
        size_of::<Turn>(),
        offset_of!(Turns, histogram),
        HELLO as usize,
        ROWS,
        PROCESSES,
        WAITS,
    ];
    let here: Vec<String> = here.iter().map(ToString::to_string).collect();
    assert_eq!(String::from_utf8_lossy(&output.stdout), here.join(" "));
    // In a file, rows of both kinds have the same length.
    assert_eq!(size_of::<SyscallRow>(), size_of::<WaitRow>());
}
