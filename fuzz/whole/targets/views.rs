//! Damages a recording as the bytes say, and shows all that can be shown of it.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use chase_damage::{Bounded, damage};
use chase_recorder::builder::{sample, syscalls_sample};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: Bounded<{ 256 << 20 }> = Bounded;

/// What is beside a recording of this name.
const NAMES: [&str; 3] = ["app.1000.chase", "app.1000.chase.syscalls", "app.1000.chase.perf-map"];

/// Recordings with what belongs to each: one that was put together, and real ones.
static WHOLE: LazyLock<Vec<[Vec<u8>; 3]>> = LazyLock::new(|| {
    let names = b"400000 100 first\n500000 20 second\n".to_vec();
    let mut whole = vec![[sample().build(), syscalls_sample().build(), names]];
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recorder/tests/fixtures/real");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(real).expect("recordings").map(|it| it.expect("a file").path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|it| it == "chase")) {
        let beside = |extension: &str| {
            let mut path = path.as_os_str().to_owned();
            path.push(extension);
            fs::read(path).unwrap_or_default()
        };
        whole.push([beside(""), beside(".syscalls"), beside(".perf-map")]);
    }
    whole
});

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, script)) = bytes.split_first() else { return };
    let mut files = WHOLE[usize::from(which) % WHOLE.len()].clone();
    damage(&mut files, script);
    let directory = std::env::temp_dir();
    for (name, bytes) in NAMES.iter().zip(&files) {
        fs::write(directory.join(name), bytes).expect("written");
    }
    let path = directory.join(NAMES[0]);
    // Pictures for other programs take long, and are made of what the page has.
    let _ = chase_report_cli::show_everything(&path, &directory, false, |words, text| {
        let is_json = words.iter().any(|word| word == "--json");
        if let Ok(text) = text
            && is_json
        {
            let document = serde_json::from_str::<serde_json::Value>(&text);
            assert!(document.is_ok(), "{words:?}: {:?}", document.err());
        }
    });
});
