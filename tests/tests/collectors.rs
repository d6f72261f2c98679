//! Programs that look at their stacks, or move them, as conservative garbage collectors and greenlets do.

use std::path::Path;

use chase_tests::compile::{Build, programs};
use chase_tests::need;
use chase_tests::recorded::Recording;
use chase_tests::trial::Trial;

const PYTHON: &str = "/usr/bin/python3";

/// What a script does bare, it does with every timing.
fn script(interpreter: impl AsRef<Path>, name: &str) -> Vec<Recording> {
    let run = |timing| {
        let trial = Trial::new(interpreter.as_ref()).arg(programs().join("real").join(name));
        trial.hooked_env("CHASE_TIMING", timing).compare()
    };
    ["adaptive", "all"].map(run).into()
}

#[test]
fn blocks_that_only_a_register_holds() {
    let header = ["/usr/include/gc/gc.h", "/usr/include/gc.h"];
    if need::file("a conservative garbage collector", &header).is_none() {
        return;
    }
    let program = Build::program("collected.c").flags("-O2 -lgc").without_libtrap().build();
    for timing in ["adaptive", "all", "count"] {
        let recording = Trial::new(&program).hooked_env("CHASE_TIMING", timing).compare();
        assert_eq!(recording.calls("libgc.so", "GC_gcollect"), 100, "{timing}");
    }
}

#[test]
fn ruby_that_collects_at_each_allocation() {
    let Some(ruby) = need::tool("ruby", "ruby") else { return };
    for recording in script(ruby, "all.rb") {
        assert!(recording.calls("libruby", "rb_str_new") > 0, "its parser is an object of its own");
    }
}

#[test]
fn greenlets() {
    let module = ["/usr/lib/python3/dist-packages/greenlet"];
    if need::file("greenlets", &module).is_none() {
        return;
    }
    for recording in script(PYTHON, "greenlets.py") {
        // Each asks for 2 to the power of its depth, in the first thread and in three others.
        assert_eq!(recording.calls("libz.so", "crc32"), (3 * 63 + 1 + 2) * 4);
    }
}

#[test]
fn very_many_greenlets() {
    let module = ["/usr/lib/python3/dist-packages/greenlet"];
    if need::file("greenlets", &module).is_some() {
        Trial::new(PYTHON).arg(programs().join("real/many_greenlets.py")).compare_outcomes();
    }
}

#[test]
fn greenlets_with_an_event_loop() {
    let module = ["/usr/lib/python3/dist-packages/gevent"];
    if need::file("gevent", &module).is_none() {
        return;
    }
    for recording in script(PYTHON, "gevents.py") {
        assert!(recording.calls("libev.so", "ev_run") > 0);
    }
}
