//! Damaged recordings in every view, export and page: what can be saved of them, or an error; never a panic, and never more memory
//! than a recording of that length justifies. `cargo xtask fuzz 3600 views` tries more.

use std::fs;
use std::path::Path;

use chase_damage::{Bounded, Random, STEP, damage, peak_bytes, reset_peak};
use chase_recorder::builder::{sample, syscalls_sample};
use tempfile::TempDir;

/// How often each recording is damaged.
const TURNS: usize = 3;
/// What may be asked for at once: far more than the views of these recordings need.
const MOST_AT_ONCE: usize = 64 << 20;
/// What may be in use: that too, but no more than two such mistakes, where a number of a file could ask for any.
const MOST: usize = 2 * MOST_AT_ONCE;

#[global_allocator]
static ALLOCATOR: Bounded<MOST_AT_ONCE> = Bounded;

/// A recording, what a companion wrote beside it, and a list of generated functions.
type Files = [Vec<u8>; 3];
const NAMES: [&str; 3] = ["app.1000.chase", "app.1000.chase.syscalls", "app.1000.chase.perf-map"];
const GENERATED: &[u8] = b"400000 100 first\n500000 20 second\n";

fn whole() -> Vec<Files> {
    let names = GENERATED.to_vec();
    let mut whole = vec![[sample().build(), syscalls_sample().build(), names]];
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recorder/tests/fixtures/real");
    for name in ["narrated", "threads"] {
        let read = |extension: &str| {
            fs::read(real.join(format!("{name}.chase{extension}"))).expect("a recording")
        };
        whole.push([read(""), read(".syscalls"), GENERATED.to_vec()]);
    }
    whole
}

/// Shows all that can be shown of what these are; how much of it was shown, and how many bytes of memory that took at once.
fn show(directory: &Path, files: &Files) -> (usize, usize) {
    for (name, bytes) in NAMES.iter().zip(files) {
        fs::write(directory.join(name), bytes).expect("written");
    }
    reset_peak();
    let before = peak_bytes();
    let mut shown = 0;
    let path = directory.join(NAMES[0]);
    let _ = chase_report_cli::show_everything(&path, directory, false, |words, text| {
        let Ok(text) = text else { return };
        shown += 1;
        let steers = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(steers), "{words:?} has control characters");
        if words.iter().any(|word| word == "--json") {
            let document = serde_json::from_str::<serde_json::Value>(&text);
            assert!(document.is_ok(), "{words:?}: {:?}", document.err());
        }
    });
    (shown, peak_bytes() - before)
}

#[test]
fn damaged_recordings_in_all_views() {
    let directory = TempDir::new().expect("a directory");
    let wholes = whole();
    for (number, files) in wholes.iter().enumerate() {
        let (shown, memory) = show(directory.path(), files);
        assert!(shown > 40, "whole, {number}: {shown} shown");
        assert!(memory < MOST, "whole, {number}: {memory} bytes");
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut some, mut tried) = (0, 0);
    for turn in 0..TURNS {
        for (number, files) in wholes.iter().enumerate() {
            let script = random.bytes(STEP * (1 + 3 * turn));
            let mut files = files.clone();
            damage(&mut files, &script);
            // The test harness prints this if what follows panics.
            eprintln!("recording {number}, damaged by {script:?}");
            let (shown, memory) = show(directory.path(), &files);
            assert!(memory < MOST, "recording {number}: {memory} bytes");
            tried += 1;
            some += usize::from(shown > 0);
        }
    }
    assert!(some * 2 > tried, "most can be shown in part: {some} of {tried}");
}
