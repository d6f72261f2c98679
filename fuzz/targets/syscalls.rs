//! Reads any bytes as a `.syscalls` file, and analyses them beside a recording that is whole.
#![no_main]

use chase_analyzer::{
    Analysis, Groups, Image, Selection, Tails, Unnamed, Watched, findings, waits,
};
use chase_fuzz::{LIMITED, Limited};
use chase_recorder::builder::sample;
use chase_recorder::reader::{Recording, SyscallsFile, mapping_path};
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static ALLOCATOR: Limited = LIMITED;

fuzz_target!(|bytes: &[u8]| {
    let parse = || SyscallsFile::parse(bytes.to_vec());
    let (Ok(file), Ok(again)) = (parse(), parse()) else { return };
    let rows = file.syscalls().count() + file.waits().count();
    assert!(rows * 384 <= bytes.len());
    assert!(file.samples().count() * 24 <= bytes.len());
    assert!(file.on_cpu().count() * 16 <= bytes.len());
    let paths = file.mappings().map(|row| mapping_path(&row).len());
    assert!(paths.sum::<usize>() <= 3 * bytes.len());
    // One for how long the file is, two for each chunk.
    assert!(file.problems().len() <= 1 + bytes.len() / 64);
    let recording = Recording::parse(sample().build()).expect("whole");
    let images = [
        Image::of("fuzz.chase".into(), recording).with_syscalls(Some(again)),
        Image::unrecorded("static.1.syscalls".into(), file),
    ];
    let analysis = Analysis::new(&images, Selection::All);
    for row in &analysis.syscalls.by_api {
        assert!(row.of.api.is_none_or(|api| (api as usize) < analysis.apis.len()));
    }
    for row in &analysis.on_cpu.objects {
        assert!((row.object as usize) < analysis.objects.len());
        assert!(row.time.on_cpu_kernel_ns.is_none_or(|kernel_ns| kernel_ns <= row.time.on_cpu_ns));
    }
    // Groups compare the waits that the file has, and tails name its system calls.
    let groups = Groups::new(&analysis, &Unnamed);
    let tails = Tails::new(&images, &analysis, &groups);
    let watched = Watched::new(&images, &analysis, &groups, &Unnamed);
    assert!(findings(&analysis, &groups, &tails, &watched).len() <= 7);
    let _ = waits(&analysis, &groups);
});
