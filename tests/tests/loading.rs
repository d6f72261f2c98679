//! Libraries that come and go, and callers whose identity matters.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use chase_tests::compile::{Build, libtrap};
use chase_tests::need;
use chase_tests::recorded::Process;
use chase_tests::release;
use chase_tests::trial::Trial;

const TRAP: &str = "libtrap.so";

fn plugin(number: u32) -> PathBuf {
    let flags = format!("-DNUMBER={number}");
    let library = Build::library("libplugin.c").named(&format!("libplugin{number}.so"));
    library.flags(&flags).with(&libtrap()).build()
}

#[test]
fn load_call_unload_and_load_again() {
    let rounds = 60;
    let program = Build::program("reload.c").build();
    let plugins = [plugin(1), plugin(2)];
    let recording = Trial::new(program).arg(rounds.to_string()).args(&plugins).compare();
    let process = recording.only();
    // Both plugins are used in every other round, and once more at the end.
    for name in ["libplugin1.so", "libplugin2.so"] {
        let uses = rounds / 2 + 1;
        let from = |provider, api| process.calls_from(name, provider, api);
        assert_eq!(from(TRAP, "trap_call"), 10 * uses, "{name}");
        assert_eq!(from("libc.so", "strlen"), 10 * uses, "{name}");
        assert_eq!(from(TRAP, "trap_errno"), uses, "the destructor of {name}");
        // A constructor runs inside dlopen, before anybody can know of the library.
        assert!(from(TRAP, "trap_add") <= uses, "the constructor of {name}");
    }
    process.expect(&[
        (TRAP, "trap_empty", rounds),
        ("libc.so", "dlopen", rounds + 4),
        ("libc.so", "dlclose", rounds),
        ("libc.so", "dlsym", 3 * (rounds + 2)),
    ]);
}

#[test]
fn loading_in_many_threads() {
    let rounds = 100;
    let program = Build::program("load_threads.c").build();
    let spawning = Build::library("libspawning.c").with(&libtrap()).build();
    let libraries = [plugin(1), plugin(2), spawning];
    let recording = Trial::new(program).arg(rounds.to_string()).args(libraries).compare();
    let process = recording.only();
    for name in ["libplugin1.so", "libplugin2.so"] {
        assert_eq!(process.calls_from(name, TRAP, "trap_call"), 2 * 10 * rounds, "{name}");
    }
    process.expect(&[("libc.so", "dlopen", 6 * rounds), ("libc.so", "dlclose", 6 * rounds)]);
    // The constructor of this one runs inside dlopen: it needs no more than to get to its end.
    assert!(process.calls_from("libspawning.so", TRAP, "trap_empty") <= 20 * rounds);
}

/// One of the locks is that of the dynamic linker's list, without which nobody may look what is loaded, and for which the thread's
/// own handler would wait for ever.
#[test]
fn handlers_call_libraries_while_a_load_takes_locks() {
    let loaded = Build::library("libstepped.c").named("libstepped.so").without_libtrap().build();
    let program = Build::program("stepped_load.c").flags("-rdynamic").build();
    let trial = Trial::new(program).arg(&loaded).arg("told").limit(Duration::from_secs(60));
    let recording = trial.compare();
    recording.only().expect(&[(TRAP, "trap_leaf", trial.told("told")["calls"])]);
}

#[test]
fn namespaces_of_dlmopen() {
    let program = Build::program("namespaces.c").build();
    let recording = Trial::new(program).arg(plugin(3)).compare();
    let process = recording.only();
    process.expect(&[("libc.so", "dlmopen", 2), ("libc.so", "dlinfo", 2)]);
    let from = |provider, api| process.calls_from("libplugin3.so", provider, api);
    let found = (from(TRAP, "trap_call"), from("libc.so", "strlen"), process.unseen.objects);
    // What the C library tells nobody of is said to be missing.
    let wanted = if release::lists_namespaces() { (200, 200, 0) } else { (0, 0, 2) };
    assert_eq!(found, wanted);
}

/// `dl_iterate_phdr` tells of the objects in the namespace of its caller, which it knows by its return address.
#[test]
fn a_library_in_a_namespace_sees_what_is_loaded_there() {
    let objects = Build::library("libobjects.c").named("libobjects.so").without_libtrap().build();
    let program = Build::program("namespaces.c").build();
    let trial = Trial::new(program).arg(&objects);
    let recording = trial.compare();
    let calls = if release::lists_namespaces() { 2 } else { 0 };
    assert_eq!(recording.only().calls_from("libobjects.so", "libc.so", "dl_iterate_phdr"), calls);
}

/// A directory with libraries that only certain RUNPATHs find.
fn search_program() -> PathBuf {
    let build = |name: &str, number: u32| {
        let flags = format!("-DNUMBER={number}");
        let library = Build::library("libplugin.c").named(name).flags(&flags);
        library.with(&libtrap()).build()
    };
    let of_program = build("libonly_program.so", 4);
    let of_library = build("libonly_library.so", 5);
    let searching = Build::library("libsearch.c")
        .flags("-Wl,--enable-new-dtags -Wl,-rpath,$ORIGIN/deeper")
        .build();
    let deeper = searching.with_file_name("deeper");
    fs::create_dir_all(&deeper).expect("create a directory beside the library");
    // Each test process may do this; the copy must appear whole.
    let copy = deeper.join(format!("copy-{}", std::process::id()));
    fs::copy(of_library, &copy).expect("copy a library");
    fs::rename(copy, deeper.join("libonly_library.so")).expect("rename a library");
    let directory = of_program.parent().expect("a library is in a directory").display().to_string();
    let flags = format!("-Wl,--enable-new-dtags -Wl,-rpath,{directory}");
    Build::program("search.c").flags(&flags).with(&searching).build()
}

#[test]
fn dlopen_searches_where_its_caller_says() {
    let trial = Trial::new(search_program());
    let bare = String::from_utf8(trial.bare().stdout).expect("text");
    let wanted = ["program: 4", "library: 5", "library's origin: 5", "callback: 4"];
    assert!(wanted.iter().all(|line| bare.contains(line)), "the test itself is wrong:\n{bare}");
    let recording = trial.compare();
    let process = recording.only();
    assert_eq!(process.calls_from("search", "libc.so", "dlopen"), 3);
    assert_eq!(process.calls_from("libsearch.so", "libc.so", "dlopen"), 2);
    // What was loaded is hooked, whoever loaded it.
    assert_eq!(process.calls_from("libonly_program.so", TRAP, "trap_call"), 20);
    assert_eq!(process.calls_from("libonly_library.so", TRAP, "trap_call"), 20);
}

fn check_wrapped(process: &Process) {
    assert_eq!(process.calls_from("wrapped", "libwrapper.so", "trap_add"), 100);
    assert_eq!(process.calls_from("wrapped", "libwrapper.so", "getppid"), 1);
    process.expect(&[(TRAP, "trap_add", 0), ("libc.so", "dlsym", 2)]);
}

#[test]
fn preloaded_wrappers_find_the_next() {
    let wrapper = Build::library("libwrapper.c").build();
    let program = Build::program("wrapped.c").build();
    let recording = Trial::new(&program).preload_before(&wrapper).compare();
    check_wrapped(recording.only());
    let recording = Trial::new(&program).preload_after(&wrapper).compare();
    check_wrapped(recording.only());
}

#[test]
fn jemalloc_is_preloaded_too() {
    let what = "jemalloc preloaded";
    let places = ["/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib64/libjemalloc.so.2"];
    let Some(jemalloc) = need::file(what, &places) else { return };
    let program = Build::program("exception.cpp").build();
    let threads = Build::program("threads.c").build();
    for first in [true, false] {
        let with_jemalloc = |trial: Trial| {
            if first { trial.preload_before(&jemalloc) } else { trial.preload_after(&jemalloc) }
        };
        let recording = with_jemalloc(Trial::new(&program).args(["4", "500"])).compare();
        let process = recording.only();
        process.expect(&[(TRAP, "trap_call", 4000), (TRAP, "trap_empty", 8000)]);
        assert!(process.calls("libjemalloc.so", "malloc") > 0);
        let recording = with_jemalloc(Trial::new(&threads).args(["100", "100", "100"])).compare();
        recording.only().expect(&[(TRAP, "trap_add", 10_000), (TRAP, "trap_leaf", 10_000)]);
    }
}

fn built(source: &str, name: &str, flags: &str) -> PathBuf {
    Build::library(source).named(name).flags(flags).without_libtrap().build()
}

#[test]
fn a_library_that_comes_back_larger() {
    let variant = |number: u32| {
        built("libregrown.c", &format!("libregrown{number}.so"), &format!("-DNUMBER={number}"))
    };
    let program = Build::program("regrown.c").without_libtrap().build();
    let arguments = [variant(1), variant(2), variant(3)];
    let trial = Trial::new(program).arg("./regrown.so").args(arguments);
    let recording = trial.compare();
    let processes = recording.of("regrown");
    let process = processes.first().expect("the program's recording");
    let from_neighbour = process.calls_from("libregrown3.so", "libc.so", "realloc");
    assert_eq!(from_neighbour, 2, "its slots were taken for others");
    process.expect(&[("libc.so", "dlopen", 3), ("libc.so", "dlclose", 1)]);
}

#[test]
fn a_library_that_comes_back_while_its_provider_moves() {
    let calls = 100_000;
    let caller = built("libmoved.c", "libcaller.so", "-DCALLER=1");
    let provider = built("libmoved.c", "libmoved.so", "-DCALLER=0");
    let program = Build::program("moved.c").build();
    let trial = Trial::new(program).args([&caller, &provider]).args([&calls.to_string(), "places"]);
    let recording = trial.compare();
    let places = trial.told("places");
    assert_eq!(
        (places["stayed"], places["moved"]),
        (1, 1),
        "the place of the caller, and of the other"
    );
    let process = recording.only();
    assert_eq!(process.calls_from("libcaller.so", "libmoved.so", "of_another"), 2 * calls);
}

#[test]
fn libraries_come_while_threads_call() {
    let libraries = 100;
    let caller = built("libmoved.c", "libcaller.so", "-DCALLER=1");
    let provider = built("libmoved.c", "libmoved.so", "-DCALLER=0");
    let program = Build::program("growing.c").build();
    let trial = Trial::new(program).arg(provider).args([&libraries.to_string(), "calls"]);
    let trial = trial.setup(move |work| {
        for number in 0..libraries {
            let place = work.join(format!("caller{number}.so"));
            fs::copy(&caller, place).expect("copy a library");
        }
    });
    let recording = trial.compare();
    let told = trial.told("calls");
    let process = recording.only();
    process.expect(&[
        (TRAP, "trap_leaf", told["leaves"]),
        ("libmoved.so", "of_another", told["called"]),
    ]);
}

#[test]
fn deep_binding_keeps_its_own_functions() {
    let program = Build::program("deep_binding.c").flags("-rdynamic").without_libtrap().build();
    let libraries = [
        built("libdeep.c", "libdeeplazy.so", "-Wl,-z,lazy"),
        built("libdeep.c", "libdeepnow.so", "-Wl,-z,now"),
    ];
    drop(Trial::new(program).args(libraries).compare());
}

#[test]
fn keys_of_a_second_c_library_are_empty() {
    let program = Build::program("second_libc.c").without_libtrap().build();
    drop(Trial::new(program).arg(built("libkeys.c", "libkeys.so", "")).compare());
}
