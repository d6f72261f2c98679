//! Files of every format version stay readable.
//!
//! `fixtures/v1.chase` was written by version 1. When the format gets a new version, that file
//! stays as it is, and a new one joins it: `CHASE_BLESS=1 cargo test -p chase-recorder` writes the
//! fixture of the current version.

use std::path::{Path, PathBuf};
use std::sync::Once;

use chase_recorder::builder::sample;
use chase_recorder::layout::VERSION;
use chase_recorder::reader::Recording;

fn path(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{version}.chase"))
}

fn fixture(version: u32) -> Vec<u8> {
    static BLESS: Once = Once::new();
    BLESS.call_once(|| {
        if std::env::var_os("CHASE_BLESS").is_some() {
            std::fs::write(path(VERSION), sample().build()).unwrap();
        }
    });
    std::fs::read(path(version)).unwrap()
}

#[test]
fn version_1_is_readable() {
    let bytes = fixture(1);
    let recording = Recording::parse(&bytes).unwrap();
    assert_eq!(recording.problems(), []);
    assert_eq!(recording.header().pid, 1000);
    assert_eq!(recording.header().unseen.calls_too_deep, 7);
    assert_eq!(recording.meta_value("host").unwrap(), "example");
    let paths: Vec<_> = recording.objects().map(|object| object.path().into_owned()).collect();
    let expected = [
        "/usr/bin/app",
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/usr/lib/libz.so.1",
        "/usr/lib/app/plugin.so",
    ];
    assert_eq!(paths, expected);
    let mut inherited = 0;
    let mut calls = std::collections::BTreeMap::new();
    for thread in recording.threads() {
        for context in thread.contexts() {
            let name = recording.slot(context.slot()).unwrap().name().into_owned();
            inherited += u32::from(context.is_inherited());
            *calls.entry(name).or_insert(0) += context.node().calls;
        }
    }
    let calls: Vec<_> = calls.iter().map(|(name, calls)| (name.as_str(), *calls)).collect();
    let expected = [
        ("_ZN6plugin3runEv", 7),
        ("app_callback", 7),
        ("deflate", 39),
        ("dlsym", 1),
        ("exit", 1),
        ("malloc", 1_009),
        ("not_found", 1),
        ("pthread_cond_wait", 5),
        ("qsort", 1),
    ];
    assert_eq!(calls, expected);
    assert_eq!(inherited, 1);
}

#[test]
fn the_fixture_is_what_this_version_writes() {
    assert!(
        fixture(VERSION) == sample().build(),
        "the builder writes other bytes than the fixture of version {VERSION} holds: a change of \
         the format needs a new version, any other one CHASE_BLESS=1"
    );
}
