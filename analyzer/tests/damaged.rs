//! Recordings with figures that no program makes: whatever they say, the analysis comes to an end.

mod process;

use chase_analyzer::recorder::reader::Recording;
use chase_analyzer::{
    Analysis, FindingKind, Groups, Image, Selection, Tails, Unnamed, Watched, findings,
};
use process::Process;

/// Puts `with` in the place of a count that is in the file once.
fn replace_count(bytes: &mut [u8], count: u64, with: u64) {
    let mut places =
        (0..bytes.len()).step_by(8).filter(|&at| bytes[at..at + 8] == count.to_le_bytes());
    let at = places.next().expect("the count");
    assert_eq!(places.next(), None, "{count} is there twice");
    bytes[at..at + 8].copy_from_slice(&with.to_le_bytes());
}

#[test]
fn counts_of_a_page_that_overflow_together_saturate() {
    let mut process = Process::new();
    let (outer, _) = process.slots();
    // Two buckets of one page, and the longest call is in it.
    process.builder.timeline(process.main).calls(outer, 1_100_000, 7_777);
    process.builder.timeline(process.main).calls(outer, 1_300_000, 5_555).end();
    let mut bytes = process.builder.build();
    replace_count(&mut bytes, 7_777, u64::MAX);
    replace_count(&mut bytes, 5_555, 2);
    let images = [Image::of("app-1.chase".into(), Recording::parse(bytes).unwrap())];
    let analysis = Analysis::new(&images, Selection::All);
    let groups = Groups::new(&analysis, &Unnamed);
    let tails = Tails::new(&images, &analysis, &groups);
    assert_eq!(tails.rows[0].calls, u64::MAX);
    assert_eq!(tails.rows[0].contexts[0].calls, u64::MAX);
    let found = findings(&analysis, &groups, &tails, &Watched::default());
    let first = found.iter().find(|f| matches!(f.kind, FindingKind::SlowFirstCall { .. }));
    assert!(first.is_none(), "{first:?} was not alone in its page");
}
