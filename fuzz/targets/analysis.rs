//! Analyses whatever the reader accepts.
#![no_main]

use chase_analyzer::{Analysis, Image, Selection};
use chase_recorder::reader::Recording;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = Recording::parse(bytes.to_vec()) else { return };
    let images = [Image::of("fuzz.chase".into(), recording)];
    let analysis = Analysis::new(&images, Selection::All);
    for row in &analysis.contexts {
        assert!((row.api as usize) < analysis.apis.len());
        assert!((row.caller as usize) < analysis.objects.len());
    }
    for thread in &analysis.threads {
        assert!(thread.apis.iter().all(|api| (api.api as usize) < analysis.apis.len()));
    }
    let _ = Analysis::new(&images, Selection::Thread(0, 1));
});
