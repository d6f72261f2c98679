//! `libchase.so` as a file: what it needs of a process before a line of it has run, and what it leaves.

use std::process::Command;

use chase_tests::compile::Build;
use chase_tests::need;
use chase_tests::trial::{Trial, libchase};

fn readelf(option: &str) -> Option<String> {
    let readelf = need::tool("the library's own tables", "readelf")?;
    let output = Command::new(readelf).args(["-W", option]).arg(libchase()).output();
    Some(String::from_utf8(output.expect("run readelf").stdout).expect("readelf prints text"))
}

#[test]
fn needs_no_other_library() {
    let Some(dynamic) = readelf("-d") else { return };
    let needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    assert_eq!(needed.count(), 0, "{dynamic}");
    assert!(!dynamic.contains("TEXTREL"));
}

/// All that the library needs of others it finds by itself, so that no name of it can be bound to something else.
#[test]
fn leaves_no_symbol_to_be_bound() {
    let Some(symbols) = readelf("--dyn-syms") else { return };
    let undefined: Vec<&str> = symbols
        .lines()
        .filter(|line| line.split_whitespace().nth(6) == Some("UND"))
        .filter_map(|line| line.split_whitespace().nth(7))
        .collect();
    assert!(undefined.is_empty(), "{undefined:?}");
}

/// A panic would have no way out, in the middle of a program that knows of none.
#[test]
fn has_no_code_that_panics() {
    let Some(symbols) = readelf("--symbols") else { return };
    assert!(symbols.contains("chase_enter_near"), "the library has no symbols to look at");
    let panics: Vec<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(7))
        .filter(|name| {
            ["panicking", "panic_", "unwrap_failed", "expect_failed", "slice_index_fail"]
                .iter()
                .any(|part| name.contains(part))
        })
        .collect();
    assert!(panics.is_empty(), "{panics:#?}");
}

#[test]
fn has_no_memory_that_is_writable_and_executable() {
    let Some(segments) = readelf("-l") else { return };
    let writable_code = segments.lines().filter(|line| line.contains(" RWE "));
    assert_eq!(writable_code.count(), 0, "{segments}");
    assert!(segments.contains("GNU_STACK"));
}

#[test]
fn takes_little_static_tls() {
    let Some(segments) = readelf("-l") else { return };
    // Type Offset VirtAddr PhysAddr FileSiz MemSiz ...
    let tls = segments.lines().find(|line| line.trim_start().starts_with("TLS "));
    let tls = tls.expect("it has words of its own in each thread");
    let size = tls.split_whitespace().nth(5).expect("a size in memory");
    let size = u64::from_str_radix(size.trim_start_matches("0x"), 16).expect("a number");
    // Of each thread's stack. What it means for others: `leaves_room_for_thread_local_storage` and
    // `leaves_room_on_small_stacks`.
    assert!(size <= 1088, "{size} bytes");
}

#[test]
fn leaves_room_for_thread_local_storage() {
    let program = Build::program("tls_room.c").without_libtrap().build();
    // The C library keeps 1664 bytes for libraries that want to have theirs there.
    for size in [512, 1024, 1600] {
        let flags = format!("-DSIZE={size} -ftls-model=initial-exec");
        let name = format!("libtls-{size}.so");
        let library = Build::library("libtls.c").named(&name).flags(&flags).build();
        let recording = Trial::new(&program).arg(library).compare();
        recording.only().expect(&[("libc.so", "dlopen", 1)]);
    }
}

#[test]
fn leaves_room_on_small_stacks() {
    let (bytes, calls) = (7 << 10, 2_000);
    let program = Build::program("small_stack.c").flags("-Wl,-z,lazy").build();
    let arguments = [bytes, calls].map(|n: u64| n.to_string());
    let recording = Trial::new(program).args(arguments).compare();
    recording.only().expect(&[("libtrap.so", "trap_add", calls), ("libc.so", "getppid", calls)]);
}

/// Run as a program, it says what it is, with no dynamic linker to help it.
#[test]
fn says_what_it_is() {
    let output = Command::new(libchase()).output().expect("can be run");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{:?}", output.status);
    assert!(said.starts_with("libchase.so of chase ") && said.contains("chase record"), "{said}");
}

#[test]
fn hides_what_is_its_own() {
    let Some(symbols) = readelf("--dyn-syms") else { return };
    // Num: Value Size Type Bind Vis Ndx Name
    let exported: Vec<&str> = symbols
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.len() == 8 && fields[4] == "GLOBAL" && fields[6] != "UND")
        .filter(|fields| fields[6].parse::<u32>().is_ok())
        .map(|fields| fields[7])
        .collect();
    // Who calls `clone` by its address makes tasks that must be known of; the others are for `chase attach`, for programs that
    // set marks, and for a dynamic linker that takes the library for an auditor.
    let known = ["__clone", "chase_attachment", "chase_mark_named", "clone", "la_version"];
    assert_eq!(exported, known, "programs would bind to others");
}

/// An unwinder comes by at any instruction, in a signal handler.
#[test]
fn says_where_its_callers_are() {
    let Some(frames) = readelf("--debug-dump=frames-interp") else { return };
    // LOC CFA rbx ... ra
    let cfas: Vec<(&str, &str)> = frames
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.len() > 2 && fields[0].len() == 16)
        .filter(|fields| fields[1].starts_with("rsp"))
        .map(|fields| (fields[0], &fields[1]["rsp".len()..]))
        .collect();
    assert!(!cfas.is_empty(), "{frames}");
    // The return address, at least, is between.
    let wrong: Vec<_> =
        cfas.iter().filter(|(_, at)| at.parse::<i64>().is_ok_and(|at| at < 8)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
