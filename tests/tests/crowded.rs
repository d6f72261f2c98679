//! Programs with very many imports. What they are bound to is looked up in an index.

use chase_recorder::layout::SkipReason;
use chase_tests::compile::{Build, libcrowd, libtrap, programs};
use chase_tests::recorded::Process;
use chase_tests::trial::Trial;

const CROWD: &str = "libcrowd.so";
/// Enough for an index, whatever else is loaded.
const FEW: u32 = 10_000;

/// The recording of a program that calls the first and the last function of so many.
fn crowd(functions: u32) -> Process {
    let library = libcrowd(functions);
    let program = Build::program("crowd.c").without_libtrap().with(&library).build();
    // Calls inside the library are asked for, so that one library is enough.
    let recording = Trial::new(program).hooked_env("CHASE_INTERNAL", CROWD).compare();
    recording.processes.into_iter().next().expect("a recording")
}

fn hooked(process: &Process) -> u32 {
    let of_crowd = process.bindings.iter().filter(|binding| {
        binding.symbol.strip_prefix("crowd_").is_some_and(|number| number.parse::<u32>().is_ok())
    });
    of_crowd.count() as u32
}

/// Imports for which no stub was left, of objects whose names end so.
fn without_stub(process: &Process, importer: &str) -> u32 {
    let of_importer = process.skipped.iter().filter(|(name, _)| name.ends_with(importer));
    of_importer.map(|(_, counts)| counts[SkipReason::NoStub as usize]).sum()
}

#[test]
fn a_hundred_thousand_imports_are_hooked() {
    let process = crowd(100_000);
    assert_eq!(hooked(&process), 100_000);
    process.expect(&[(CROWD, "crowd_0", 1), (CROWD, "crowd_99999", 1)]);
    assert_eq!((without_stub(&process, ""), process.unseen.slots_without_stub), (0, 0));
}

#[test]
fn imports_for_which_no_stub_is_left_are_left_alone() {
    let process = crowd(140_000);
    let hooked = hooked(&process);
    assert!(hooked > 130_000, "{hooked}");
    assert_eq!(hooked + without_stub(&process, CROWD), 140_000);
    assert_eq!(process.unseen.slots_without_stub, u64::from(without_stub(&process, "")));
    // Which imports come last is the linker's choice.
    for name in ["crowd_0", "crowd_139999"] {
        let is_hooked = process.bindings.iter().any(|binding| binding.symbol == name);
        process.expect(&[(CROWD, name, u64::from(is_hooked))]);
    }
}

#[test]
fn versions_are_told_apart() {
    let script = format!("-Wl,--version-script={}", programs().join("versions.map").display());
    let library = Build::library("libversions.c").flags(&script).build();
    let program = Build::program("versions.c").with(&library).build();
    let recording = Trial::new(program).preload_after(&libcrowd(FEW)).compare();
    let of_version = |version: &str| {
        let both = recording.only().of("libversions.so", "trap_versioned");
        both.filter(|api| api.version == version).map(|api| api.calls).sum::<u64>()
    };
    assert_eq!((of_version("TRAP_1"), of_version("TRAP_2")), (30, 50));
}

#[test]
fn what_is_preloaded_comes_first() {
    let wrapper = Build::library("libwrapper.c").build();
    let program = Build::program("wrapped.c").build();
    let trial = Trial::new(program).preload_before(&wrapper).preload_after(&libcrowd(FEW));
    let recording = trial.compare();
    let process = recording.only();
    assert_eq!(process.calls_from("wrapped", "libwrapper.so", "trap_add"), 100);
    process.expect(&[("libtrap.so", "trap_add", 0)]);
}

#[test]
fn libraries_come_and_go() {
    let plugin = |number: u32| {
        let library = Build::library("libplugin.c").named(&format!("libplugin{number}.so"));
        library.flags(&format!("-DNUMBER={number}")).with(&libtrap()).build()
    };
    let program = Build::program("reload.c").build();
    let trial = Trial::new(program).arg("20").args([plugin(1), plugin(2)]);
    let recording = trial.preload_after(&libcrowd(FEW)).compare();
    for name in ["libplugin1.so", "libplugin2.so"] {
        let process = recording.only();
        assert_eq!(process.calls_from(name, "libtrap.so", "trap_call"), 110, "{name}");
        assert_eq!(process.calls_from(name, "libc.so", "strlen"), 110, "{name}");
    }
}

#[test]
fn a_library_comes_back_as_another_one() {
    let built = |source: &str, name: &str, flags: &str| {
        Build::library(source).named(name).flags(flags).without_libtrap().build()
    };
    let variant = |number: u32| {
        let flags = format!("-Wl,-z,lazy -DNUMBER={number}");
        built("libregrown.c", &format!("libregrown{number}.so"), &flags)
    };
    let program = Build::program("regrown.c").without_libtrap().build();
    let trial = Trial::new(program).arg("./regrown.so").args([variant(1), variant(2), variant(3)]);
    let recording = trial.preload_after(&libcrowd(FEW)).compare();
    let processes = recording.of("regrown");
    let process = processes.first().expect("the program's recording");
    assert_eq!(process.calls_from("libregrown3.so", "libc.so", "realloc"), 2);
}

#[test]
fn deep_binding_keeps_its_own_functions() {
    let program = Build::program("deep_binding.c").flags("-rdynamic").without_libtrap().build();
    let library = |name: &str, flags: &str| {
        Build::library("libdeep.c").named(name).flags(flags).without_libtrap().build()
    };
    let trial = Trial::new(program)
        .arg(library("libdeeplazy.so", "-Wl,-z,lazy"))
        .arg(library("libdeepnow.so", "-Wl,-z,now"));
    drop(trial.preload_after(&libcrowd(FEW)).compare());
}

#[test]
fn objects_with_the_older_hash_table() {
    let flags = "-Wl,--hash-style=sysv -Wl,-z,lazy";
    let library = Build::library("libifunc.c").flags(flags).build();
    let program = Build::program("ifunc.c").flags(flags).with(&library).build();
    let recording = Trial::new(program).arg("100").preload_after(&libcrowd(FEW)).compare();
    let process = recording.only();
    process.expect(&[("libifunc.so", "trap_ifunc", 100), ("libifunc.so", "trap_length", 100)]);
    assert_eq!(process.calls_from("ifunc", "libc.so", "strlen"), 100);
}
