//! Reads any bytes as an object with symbols and debug information, and looks addresses and threads up in it.
#![no_main]

use chase_fuzz::{LIMITED, Limited, file};
use chase_symbols::{DebugDirs, ObjectKey, Symbolizer, ThreadStart, Word};
use libfuzzer_sys::fuzz_target;
use object::Object as _;

#[global_allocator]
static ALLOCATOR: Limited = LIMITED;

fuzz_target!(|bytes: &[u8]| {
    // As the recording has it: any other object is refused.
    let build_id = object::File::parse(bytes).ok().and_then(|file| file.build_id().ok().flatten());
    let build_id = build_id.unwrap_or_default().to_vec();
    let key = ObjectKey { path: file("object.so", bytes), build_id, recorded: None };
    // None of the machine's own files.
    let symbolizer = Symbolizer::new(DebugDirs::default());
    let words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
    let addresses = [0, 1, 0x1000, 0x1139, 0x4010, u64::MAX - 8, u64::MAX];
    let addresses: Vec<u64> = addresses.into_iter().chain(words.take(256).step_by(8)).collect();
    for &svma in &addresses {
        if let Ok(Some(place)) = symbolizer.locate(&key, svma) {
            assert!(!place.frames.is_empty());
        }
        let _ = symbolizer.locate_call(&key, svma);
        let _ = symbolizer.variable(&key, svma);
        let _ = symbolizer.function_start(&key, svma);
    }
    let word = |&svma: &u64| Word { avma: svma, file: Some((&key, svma)) };
    for routine in addresses.iter().take(16) {
        let start = ThreadStart {
            routine: Some(word(routine)),
            words: addresses.iter().map(word).collect(),
            inner_words: addresses.iter().rev().map(word).collect(),
            stack: addresses.iter().map(word).collect(),
            ..ThreadStart::default()
        };
        let _ = symbolizer.thread_function(&start);
    }
    let _ = symbolizer.status(&key);
});
