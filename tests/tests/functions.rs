//! Which function of the program each thread runs, whatever runtime starts it.

use std::fs;
use std::process::Command;

use chase_tests::compile::{Build, programs, target};
use chase_tests::need;
use chase_tests::release;
use chase_tests::report::{Function, document, thread_functions};
use chase_tests::trial::Trial;

/// Runs it bare and hooked, and says what its threads run.
fn functions(trial: &Trial) -> Vec<Function> {
    drop(trial.compare());
    thread_functions(&trial.output())
}

fn names(functions: &[Function]) -> Vec<&str> {
    functions.iter().map(|function| &*function.name).collect()
}

/// The line of the source file that `text` is in.
fn line_of(source: &str, text: &str) -> Option<u64> {
    let source = fs::read_to_string(programs().join(source)).expect("read a source file");
    let at = source.lines().position(|line| line.contains(text))?;
    Some(at as u64 + 1)
}

/// What `functions.cpp` starts, in order; `{0}` and `{1}` are the closures' names.
fn cpp_names(lambda: impl Fn(u32, &str) -> String, string: &str) -> Vec<String> {
    let with_arguments = format!("app::with_arguments(int, {string} const&, double)");
    let with_function = |library: &str| format!("app::with_function({library}function<void ()>)");
    let library = if string.contains("__1") { "std::__1::" } else { "std::" };
    vec![
        "app::plain()".to_owned(),
        with_arguments.clone(),
        "app::by_reference(long&)".to_owned(),
        "app::Worker::step(int)".to_owned(),
        "app::Special::turn()".to_owned(),
        "app::Counter::operator()".to_owned(),
        lambda(2, ""),
        lambda(3, "int"),
        "app::with_callback(void (*)())".to_owned(),
        "c_function".to_owned(),
        "app::plain()".to_owned(),
        lambda(1, ""),
        with_function(library),
        with_arguments,
        "app::with_big(app::Big, int)".to_owned(),
        "app::plain()".to_owned(),
        lambda(4, ""),
    ]
}

const STRING: &str =
    "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";

fn gcc_lambda(number: u32, parameters: &str) -> String {
    // Version 12 numbers them in order; version 14 those of each signature on their own, as the ABI has it.
    let number = match (number, parameters) {
        (number, _) if release::gcc_major() < 13 => number,
        (3, "int") => 1,
        (4, "") => 3,
        (number, _) => number,
    };
    format!("main::{{lambda({parameters})#{number}}}")
}

#[test]
fn cpp_callables_of_libstdcxx() {
    for flags in ["", "-O2", "-no-pie", "-fno-rtti", "-static-libstdc++", "-Wl,-z,now -fno-plt"] {
        let program = Build::program("functions.cpp").flags(flags).without_libtrap().build();
        let found = functions(&Trial::new(program));
        assert_eq!(names(&found), cpp_names(gcc_lambda, STRING), "{flags}");
        let kinds: Vec<_> = found.iter().map(|function| &*function.kind).collect();
        assert_eq!((kinds[0], kinds[14]), ("std::thread", "std::thread"));
        assert_eq!((kinds[15], kinds[16]), ("std::async", "std::async"));
        let line = line_of("functions.cpp", "void plain()");
        assert_eq!((found[0].line, found[10].line), (line, line), "{flags}");
        if flags == "-O2" {
            // The library's constructor is inlined.
            assert_eq!(found[3].created_in.as_deref(), Some("main"));
        }
    }
}

#[test]
fn cpp_callables_without_symbols() {
    for flags in ["-s", "-s -no-pie", "-s -O2 -fuse-ld=lld -Wl,-z,pack-relative-relocs"] {
        let what = "stripped programs of lld";
        if flags.contains("lld") && need::tool(what, "ld.lld").is_none() {
            continue;
        }
        if flags.contains("relocs") && !release::reads_packed_relocations() {
            need::skip(what, "the C library does not read packed relocations");
            continue;
        }
        let program = Build::program("functions.cpp").flags(flags).without_libtrap().build();
        let found = functions(&Trial::new(program));
        let names = names(&found);
        // Types have names all the same; functions have addresses.
        for (place, name) in [
            (5, "app::Counter::operator()".to_owned()),
            (6, gcc_lambda(2, "")),
            (7, gcc_lambda(3, "int")),
            (16, gcc_lambda(4, "")),
        ] {
            assert_eq!(names[place], name, "{flags}");
        }
        assert!(names[0].starts_with("functions+0x"), "{flags}: {}", names[0]);
        assert_eq!((names[15], names[13]), (names[0], names[1]), "{flags}");
        let mut different = vec![names[0], names[1], names[2], names[3], names[4], names[8]];
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 6, "{flags}: {names:?}");
    }
}

#[test]
fn cpp_callables_of_libcxx() {
    if need::tool("libc++", "clang++").is_none()
        || need::file("libc++", &["/usr/lib/llvm-14/lib/libc++.so"]).is_none()
    {
        return;
    }
    let build = || Build::program("functions.cpp").tool("clang++").without_libtrap();
    let program = build().flags("-stdlib=libc++").build();
    let found = functions(&Trial::new(program));
    let string =
        "std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >";
    let closure = |number: u32, _: &str| match number {
        1 => "main::$_0".to_owned(),
        number => format!("main::$_{}", number - 1),
    };
    let mut expected = cpp_names(closure, string);
    // Not a lambda by its name, so a class with an operator.
    for place in [6, 7, 11, 16] {
        expected[place].push_str("::operator()");
    }
    // A table of virtual functions is out of reach, as is what is kept behind a lock.
    expected[4] = "void (app::Worker::*)()".to_owned();
    expected[15] = "void (*)()".to_owned();
    assert_eq!(names(&found), expected);

    let stripped = functions(&Trial::new(build().flags("-stdlib=libc++ -s").build()));
    assert!(stripped.iter().all(|function| function.name.starts_with("functions+0x")));
}

#[test]
fn rust_callables() {
    if !need::rust("rust_callables") {
        return;
    }
    for (flags, has_lines) in [
        ("", true),
        ("-O", true),
        ("-O -Cdebuginfo=0", false),
        ("-Csymbol-mangling-version=v0 -O -Cdebuginfo=0", false),
    ] {
        let program = Build::program("functions.rs").flags(flags).without_libtrap().build();
        let trial = Trial::new(program);
        let found = functions(&trial);
        assert!(found.iter().all(|function| function.kind == "Rust"), "{flags}: {found:?}");
        // Functions of the same name are different groups, if their code is different.
        let groups = document(&trial.output(), "threads");
        let groups = groups["groups"].as_array().expect("a list").iter();
        let groups: Vec<_> = groups.filter(|group| group["kind"] == "created").collect();
        assert_eq!(groups.len(), 4, "{flags}: {groups:#?}");
        let names = names(&found);
        assert_eq!(names[0], "functions::worker", "{flags}: {names:?}");
        // Without lines, what an inlined closure calls stands for it.
        let is_closure = |name: &str, calls: &str| {
            name.starts_with("functions::main::{") && name.contains("closure")
                || name == format!("functions::{calls}")
        };
        assert!(is_closure(names[1], "add"), "{flags}: {names:?}");
        assert!(is_closure(names[2], "double"), "{flags}: {names:?}");
        assert!(names[3].starts_with("functions::main::{"), "{flags}: {names:?}");
        if has_lines {
            let lines = [found[1].line, found[2].line];
            let expected = ["move || add", "move || double"].map(|t| line_of("functions.rs", t));
            assert_eq!(lines, expected, "{flags}");
            let of_line = |line: Option<u64>| {
                let place = format!(" at functions.rs:{}", line.expect("a line"));
                groups
                    .iter()
                    .filter(|group| group["label"].as_str().unwrap_or_default().ends_with(&place))
                    .count()
            };
            let are_alike = names[1] == names[2];
            assert!(!are_alike || lines.map(of_line) == [1, 1], "{flags}: {groups:#?}");
        }
    }
    let program = Build::program("functions.rs").flags("-Cstrip=symbols").without_libtrap();
    let found = functions(&Trial::new(program.build()));
    let mut names = names(&found);
    assert!(names.iter().all(|name| name.starts_with("functions+0x")), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 4, "each closure has code of its own");
}

#[test]
fn rayon() {
    if !need::rust("rayon") {
        return;
    }
    // Built with the tests, beside them.
    let program = target().join("debug/examples/rayon_pool");
    assert!(program.is_file(), "no {}: run `cargo test -p chase-tests`", program.display());
    let found = functions(&Trial::new(program));
    assert_eq!(found.len(), 2);
    for function in found {
        assert_eq!(function.kind, "Rust");
        assert!(function.name.contains("rayon_core::registry"), "{function:?}");
    }
}

/// What `functions.py` starts, in order.
const PYTHON_NAMES: [&str; 15] = [
    "plain",
    "Sub.run",
    "Sub.run",
    "Owner.method",
    "Owner.__call__",
    "<lambda>",
    "inner.<locals>.nested",
    "plain",
    "time.sleep",
    "plain",
    "threading.Timer.run",
    "threading.Thread.run",
    "concurrent.futures.thread._worker",
    "concurrent.futures.thread._worker",
    "release",
];

#[test]
fn python_callables() {
    let Some(installed) = need::tool("python3", "python3") else { return };
    // Other versions lay their objects out in other ways.
    let versions = std::env::var_os("HOME").map(|home| {
        let versions = fs::read_dir(std::path::Path::new(&home).join(".pyenv/versions"));
        versions.into_iter().flatten().flatten().map(|entry| entry.path().join("bin/python3"))
    });
    let known = ["/3.8.", "/3.9.", "/3.10.", "/3.11.", "/3.12.", "/3.13."];
    let is_known = |path: &std::path::PathBuf| {
        release::inside(path.clone()).is_file()
            && known.iter().any(|version| path.to_string_lossy().contains(version))
    };
    let others = versions.into_iter().flatten().filter(is_known);
    for python in std::iter::once(installed).chain(others) {
        let name = python.display().to_string();
        let found = functions(&Trial::new(python).arg(programs().join("functions.py")));
        assert!(found.iter().all(|function| function.kind == "Python"), "{name}: {found:?}");
        assert_eq!(names(&found), PYTHON_NAMES, "{name}");
    }
}

#[test]
fn openmp_teams() {
    let team = |build: Build| {
        let program = build.without_libtrap().build();
        functions(&Trial::new(program).env("OMP_NUM_THREADS", "3"))
    };
    let found = team(Build::program("team.c").flags("-fopenmp"));
    // What is called once is inlined, but for what the team runs.
    assert_eq!(names(&found), ["total._omp_fn.0"; 2]);
    assert!(found.iter().all(|function| function.kind == "OpenMP"));
    assert!(found.iter().all(|function| function.created_in.as_deref() == Some("main")));
    let stripped = team(Build::program("team.c").flags("-fopenmp -s"));
    assert!(stripped.iter().all(|f| f.name.starts_with("team+0x") && f.kind == "OpenMP"));

    let library = "/usr/lib/llvm-14/lib/libomp.so";
    if need::file("LLVM's OpenMP", &[library]).is_some() {
        let flags = "-fopenmp -L/usr/lib/llvm-14/lib -Wl,-rpath,/usr/lib/llvm-14/lib";
        let found = team(Build::program("team.c").tool("clang").flags(flags));
        assert_eq!(names(&found), ["main"; 2]);
        assert!(found.iter().all(|function| function.kind == "OpenMP"));
    }
}

#[test]
fn glib_threads() {
    if need::file("GLib", &["/usr/include/glib-2.0/glib.h"]).is_none() {
        return;
    }
    let output = Command::new("pkg-config").args(["--cflags", "--libs", "glib-2.0"]).output();
    let flags = String::from_utf8(output.expect("run pkg-config").stdout).expect("flags");
    let program = Build::program("glib.c").flags(&flags).without_libtrap().build();
    let found = functions(&Trial::new(program));
    let found: Vec<_> = found.iter().map(|f| (&*f.name, &*f.kind)).collect();
    assert_eq!(found, [("alone", "GLib"), ("pooled", "GLib")]);
}

/// A routine of the program's own is called with what it was given, where that differs.
#[test]
fn routines_that_run_what_they_are_given() {
    let program = Build::program("given.cpp").without_libtrap().build();
    let mut found = functions(&Trial::new(program));
    // Callbacks of threads that all have the same are not told.
    let expected = [
        "Task::entry()(Compress)",
        "Task::entry()(Send)",
        "enter(Compress)",
        "enter(Send)",
        "same",
        "same",
        "start(reader)",
        "start(reader)",
        "start(writer)",
    ];
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let bare = |name: &str| name.replace("(void*)", "").replace("(char const*)", "");
    let found: Vec<_> = found.iter().map(|function| bare(&function.name)).collect();
    assert_eq!(found, expected);
}

/// The same of a routine that a runtime starts: its data begins with the function.
#[test]
fn routines_that_apr_starts_and_that_run_what_they_are_given() {
    if need::file("APR", &["/usr/include/apr-1.0/apr.h"]).is_none() {
        return;
    }
    let output = Command::new("pkg-config").args(["--cflags", "--libs", "apr-1"]).output();
    let flags = String::from_utf8(output.expect("run pkg-config").stdout).expect("flags");
    let flags = format!("-DWRAPS {flags}");
    let program = Build::program("apr.c").flags(&flags).without_libtrap().build();
    let mut found = functions(&Trial::new(program));
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(names(&found), ["start(listener)", "start(worker)"]);
}

/// Runtimes that C programs use, each with the names of its package and of its file.
#[test]
fn threads_of_portable_runtimes() {
    for (package, header, source, kind) in [
        ("apr-1", "/usr/include/apr-1.0/apr.h", "apr.c", "APR"),
        ("nspr", "/usr/include/nspr/nspr.h", "nspr.c", "NSPR"),
    ] {
        if need::file(kind, &[header]).is_none() {
            continue;
        }
        let output = Command::new("pkg-config").args(["--cflags", "--libs", package]).output();
        let flags = String::from_utf8(output.expect("run pkg-config").stdout).expect("flags");
        let program = Build::program(source).flags(&flags).without_libtrap().build();
        let trial = Trial::new(program);
        let found = functions(&trial);
        let mut found: Vec<_> = found.iter().map(|f| (&*f.name, &*f.kind)).collect();
        found.sort_unstable();
        assert_eq!(found, [("listener", kind), ("worker", kind)]);
        // The runtime may call `pthread_create` in the place of its own function, which then returns to the program by chase.
        let threads = document(&trial.output(), "threads");
        let sites = threads["threads"].as_array().expect("threads").iter();
        let sites: Vec<_> = sites.map(|thread| &thread["creation_site"]["function"]).collect();
        assert_eq!(sites.iter().filter(|&&site| site == "run").count(), 2, "{sites:?}");
    }
}

#[test]
fn java_threads() {
    let (Some(javac), Some(java)) = (need::tool("java", "javac"), need::tool("java", "java"))
    else {
        return;
    };
    let source = programs().join("Kinds.java");
    let trial = Trial::new(java).arg("Kinds").setup(move |work| {
        let done = Command::new(&javac).arg("-d").arg(work).arg(&source).status();
        assert!(done.expect("run javac").success());
    });
    let found = functions(&trial);
    let threads = |name: &str| found.iter().filter(|f| f.name == name && f.kind == "JVM").count();
    assert_eq!(threads("my-loader"), 1, "{found:#?}");
    assert_eq!(threads("pool-*-thread-*"), 2, "{found:#?}");
    // Those of the machine itself: still running at the end, and named then.
    assert_eq!(threads("VM Thread"), 1, "{found:#?}");
    assert!(threads("C2 CompilerThre") >= 1, "{found:#?}");
}

#[test]
fn plain_start_routines() {
    let Some(sort) = need::tool("sort", "sort") else { return };
    let trial = Trial::new(sort).args(["--parallel=2", "-S", "64M", "input"]).setup(|work| {
        let lines: String = (0..300_000_u64).map(|n| format!("{}\n", n * 7919 % 300_007)).collect();
        fs::write(work.join("input"), lines).expect("write the input");
    });
    let found = functions(&trial);
    assert!(!found.is_empty());
    assert!(found.iter().all(|f| f.name.starts_with("sort+0x") && f.kind == "pthread"));

    let program = Build::program("threads.c").build();
    let found = functions(&Trial::new(program).args(["2", "1", "1"]));
    assert!(!found.is_empty());
    assert!(found.iter().all(|f| f.kind == "pthread" && f.line.is_some()), "{found:?}");
}

#[test]
fn arguments_that_are_no_addresses() {
    let program = Build::program("arguments.c").without_libtrap().build();
    let found = functions(&Trial::new(program));
    assert_eq!(names(&found), ["echo"; 21]);
}
