//! Recordings of older versions in which calls were seen in windows alone.

use std::path::Path;

use chase_analyzer::recorder::reader::Recording;
use chase_analyzer::{Analysis, Image, Measures, Selection};

fn analysis(version: u32) -> Analysis {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recorder/tests/fixtures");
    let path = fixtures.join(format!("v{version}.chase"));
    let recording = Recording::parse(std::fs::read(&path).unwrap()).unwrap();
    Analysis::new(&[Image::of(path, recording)], Selection::All)
}

fn measures<'a>(analysis: &'a Analysis, symbol: &str) -> &'a Measures {
    &analysis.apis.iter().find(|row| row.symbol == symbol).unwrap().measures
}

/// What was counted is counted; nothing is made up for the rest, and the report says so.
#[test]
fn calls_between_windows_are_not_seen() {
    let without = analysis(3);
    assert_eq!(without.not_seen.processes_in_windows, 0);
    assert!(!without.totals.calls_estimated);
    for version in 4..=6 {
        let analysis = analysis(version);
        assert_eq!(analysis.not_seen.processes_in_windows, 1, "version {version}");
        let seen = measures(&analysis, "malloc");
        assert_eq!(seen.calls, measures(&without, "malloc").calls + 12 + 4 + 26);
        assert!(seen.calls_estimated && analysis.totals.calls_estimated);
        assert_eq!(seen.calls_ci95, 0, "how many are missing is not known");
        assert!(!measures(&analysis, "qsort").calls_estimated);
    }
}
