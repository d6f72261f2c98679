//! Reads any bytes as an archive of recordings: as they are, and as what Zstandard compressed.
#![no_main]

use chase_analyzer::{Run, load_run, scan};
use chase_fuzz::{LIMITED, Limited, file};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: Limited = LIMITED;

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&zstd::encode_all(bytes, 1).expect("compressed"));
});

fn read(bytes: &[u8]) {
    let path = file("folded-1-1.chase.tar.zst", bytes);
    let Ok(catalog) = scan(&path) else { return };
    let members = catalog.runs.iter().map(|run| run.members.len()).sum::<usize>();
    if let Some(run) = Run::together(catalog.runs) {
        assert!(load_run(&run).ok().is_none_or(|loaded| loaded.images.len() <= members));
    }
}
