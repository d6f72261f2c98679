//! Analyses whatever the reader accepts.
#![no_main]

use chase_analyzer::{
    Analysis, Groups, Image, Selection, Tails, Unnamed, Watched, findings, group_tree, waits,
};
use chase_fuzz::{LIMITED, Limited};
use chase_recorder::reader::Recording;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: Limited = LIMITED;

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
    let groups = Groups::new(&analysis, &Unnamed);
    for row in &groups.rows {
        assert!(group_tree(&analysis, row).len() <= analysis.contexts.len());
    }
    let members: usize = groups.rows.iter().map(|row| row.members.len()).sum();
    assert_eq!(members, analysis.threads.len());
    let tails = Tails::new(&images, &analysis, &groups);
    assert!(findings(&analysis, &groups, &tails, &Watched::default()).len() <= 7);
    let _ = waits(&analysis, &groups);
    let _ = Analysis::new(&images, Selection::Thread(0, 1));
});
