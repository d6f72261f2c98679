//! Files of every format version stay readable.
//!
//! `fixtures/v1.chase` was written by version 1, and so on. When the format gets a new version,
//! those files stay as they are, and a new one joins them: `CHASE_BLESS=1 cargo test -p chase-recorder` writes the
//! fixture of the current version.

use std::path::{Path, PathBuf};
use std::sync::Once;

use chase_recorder::builder::sample;
use chase_recorder::layout::{EVENT_CALL, VERSION};
use chase_recorder::reader::{Context, Events, Recording};

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
fn version_1_knows_nothing_of_creations() {
    let bytes = fixture(1);
    let recording = Recording::parse(&bytes).unwrap();
    assert!(recording.threads().all(|thread| thread.origin().is_none()));
}

#[test]
fn version_2_says_how_a_thread_was_created() {
    let bytes = fixture(2);
    let recording = Recording::parse(&bytes).unwrap();
    assert_eq!(recording.problems(), []);
    assert_eq!(recording.header().version, 2);
    let origins: Vec<_> = recording.threads().map(|thread| thread.origin()).collect();
    let known = |origin: &Option<_>| Option::is_some(origin);
    assert_eq!(origins.iter().map(known).collect::<Vec<_>>(), [false, true, false, false, false]);
    let origin = origins[1].unwrap();
    assert_eq!(origin.stack(), [0x7f00_0200_1234, 0x7f00_0000_1100]);
    assert_eq!(origin.words(), [0x7f00_0000_8000, 7, 0x7f00_0000_1040]);
    assert_eq!(origin.inner_words(), [] as [u64; 0]);
    assert_eq!(origin.python_function().unwrap(), "app.work");
    assert_eq!(origin.python_thread_name().unwrap(), "Thread-1");
}

#[test]
fn version_3_has_sampled_calls() {
    let bytes = fixture(3);
    let recording = Recording::parse(&bytes).unwrap();
    assert_eq!(recording.problems(), []);
    assert_eq!(recording.header().cost_sampled, 200 * 1024);
    let contexts: Vec<_> =
        recording.threads().flat_map(|t| t.contexts().collect::<Vec<_>>()).collect();
    let mut sampled = contexts.iter().filter(|context| context.is_sampled());
    let malloc = sampled.next().unwrap();
    assert_eq!(recording.slot(malloc.slot()).unwrap().name(), "malloc");
    assert_eq!((malloc.node().calls, malloc.calls()), (600, 677));
    let samples = malloc.samples().unwrap();
    assert_eq!((samples.begun, samples.ended, samples.weight), (6, 6, 600));
    assert_eq!((samples.pairs, malloc.histogram().count()), (6 * 100 * 99, 600));
    assert!(sampled.next().is_none());
}

#[test]
fn the_fixture_is_what_this_version_writes() {
    assert!(
        fixture(VERSION) == sample().build(),
        "the builder writes other bytes than the fixture of version {VERSION} holds: a change of \
         the format needs a new version, any other one CHASE_BLESS=1"
    );
}

/// What was counted in windows are calls of the import as well.
#[test]
fn versions_4_to_6_saw_calls_in_windows() {
    for version in 4..=6 {
        let bytes = fixture(version);
        let recording = Recording::parse(&bytes).unwrap();
        assert_eq!(recording.problems(), []);
        assert!(recording.has_windows());
        let thread = recording.threads().find(|thread| thread.name() == "windowed").unwrap();
        let seen = |context: &Context<'_>| {
            let name = recording.slot(context.slot()).unwrap().name().into_owned();
            (name, context.calls())
        };
        let seen: Vec<_> = thread.contexts().map(|context| seen(&context)).collect();
        assert_eq!(seen, [12, 4, 26].map(|calls| ("malloc".to_owned(), calls)));
        assert!(thread.contexts().all(|context| context.is_incomplete()));
    }
    for version in [3, VERSION] {
        assert!(!Recording::parse(fixture(version)).unwrap().has_windows());
    }
}

#[test]
fn version_9_knows_what_calls_were_asked_to_do() {
    let bytes = fixture(9);
    let recording = Recording::parse(&bytes).unwrap();
    let calls: Vec<_> =
        recording.threads().flat_map(|thread| thread.arguments()).map(|row| row.calls).collect();
    assert_eq!(calls, [1_000, 2]);
    let bytes = fixture(8);
    let recording = Recording::parse(&bytes).unwrap();
    assert!(recording.threads().all(|thread| thread.arguments().next().is_none()));
}

#[test]
fn version_11_knows_paths() {
    let bytes = fixture(11);
    let recording = Recording::parse(&bytes).unwrap();
    assert_eq!(recording.problems(), []);
    let texts: Vec<_> = recording.threads().next().unwrap().texts().collect();
    let text = |at: usize| texts[at].text.as_deref();
    assert_eq!((texts.len(), text(0), texts[0].calls), (3, Some("/etc/app.conf"), 1));
    assert!(text(1).unwrap().starts_with('…') && text(1).unwrap().ends_with("/deep/deep"));
    assert_eq!((text(2), texts[2].calls, texts[2].ticks), (None, 1, 7));
    let arguments = recording.threads().flat_map(|thread| thread.arguments());
    assert_eq!(arguments.map(|row| row.calls).collect::<Vec<_>>(), [1_000, 2]);
    let bytes = fixture(10);
    let recording = Recording::parse(&bytes).unwrap();
    assert!(!recording.has_sites());
    assert!(recording.threads().all(|thread| thread.texts().next().is_none()));
}

#[test]
fn version_6_knows_the_parent_in_another_pid_namespace() {
    let header = |version| *Recording::parse(fixture(version)).unwrap().header();
    assert_eq!((header(5).parent_pid, header(5).parent_start), (1, 0));
    assert_eq!((header(6).parent_pid, header(6).parent_start), (1, 90));
}

#[test]
fn version_10_keeps_long_calls_and_marks() {
    let bytes = fixture(10);
    let recording = Recording::parse(&bytes).unwrap();
    assert_eq!(recording.problems(), []);
    let main = recording.threads().next().unwrap().events();
    assert_eq!((main.overwritten, main.torn, main.lost), (0, 0, 0));
    let mark = main.events.last().unwrap();
    assert_eq!(recording.mark(mark.subject).unwrap(), "packed");
    let calls = main.events.iter().filter(|event| event.kind == EVENT_CALL);
    assert!(calls.clone().count() > 0 && calls.clone().all(|event| event.ticks >= 2_000));
    assert_eq!(
        Recording::parse(fixture(9)).unwrap().threads().next().unwrap().events(),
        Events::default()
    );
}
