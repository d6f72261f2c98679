//! The same programs, built in every way that changes how calls reach a library.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use chase_recorder::layout::SkipReason;
use chase_tests::compile::Build;
use chase_tests::need;
use chase_tests::release;
use chase_tests::trial::{Trial, libchase};

const TRAP: &str = "libtrap.so";

/// Values, exceptions and function pointers, with exact counts.
fn built_with(flags: &str) {
    built_and_run_with(flags, Trial::new);
}

fn built_and_run_with(flags: &str, trial: fn(PathBuf) -> Trial) {
    built_by(Build::program, flags, trial);
}

fn built_by(program: fn(&str) -> Build, flags: &str, trial: fn(PathBuf) -> Trial) {
    let build = |source| program(source).flags(flags).build();
    values(trial(build("values.c")), flags);

    let program = build("exception.cpp");
    let recording = trial(program).args(["4", "250"]).compare();
    let process = recording.only();
    process.expect(&[(TRAP, "trap_call", 2_000), (TRAP, "trap_empty", 4_000)]);
    process.expect_unwound(&[(TRAP, "trap_call", 2_000)]);

    let recording = trial(build("pointers.c")).compare();
    recording.only().expect(&[(TRAP, "trap_add", 100)]);
}

fn values(trial: Trial, flags: &str) {
    let recording = trial.arg("200").compare();
    let process = recording.only();
    let found = ["trap_swap", "trap_mulc", "trap_many"].map(|api| process.calls(TRAP, api));
    assert_eq!(found, [200; 3], "built with {flags:?}");
    assert_eq!(process.calls_from("values", "libc.so", "snprintf"), 1, "built with {flags:?}");
}

#[test]
fn without_plt() {
    built_with("-fno-plt");
    built_with("-fno-plt -O2 -Wl,-z,now");
}

/// Where calls go through jump slots, much code is not searched for others.
#[test]
fn with_much_code() {
    let wanted = [("", 100), ("-DLARGE", 0), ("-DLARGE -fno-plt", 100)];
    let pointers = wanted.map(|(flags, seen)| {
        let recording = Trial::new(Build::program("large.c").flags(flags).build()).compare();
        let process = recording.only();
        process.expect(&[(TRAP, "trap_empty", 100), (TRAP, "trap_call", 100)]);
        assert_eq!(process.calls(TRAP, "trap_add"), seen, "built with {flags:?}");
        let (_, skipped) = process.skipped.iter().find(|(name, _)| name == "large").expect("there");
        skipped[SkipReason::Pointer as usize]
    });
    assert_eq!(pointers[1], pointers[0] + 1, "{pointers:?}");
    assert_eq!(pointers[2], pointers[0], "{pointers:?}");
}

#[test]
fn with_ibt_plt() {
    built_with("-fcf-protection -Wl,-z,ibtplt");
    built_with("-fcf-protection=full -Wl,-z,ibtplt -Wl,-z,now");
}

#[test]
fn lazily_and_eagerly_bound() {
    built_with("-Wl,-z,lazy");
    built_with("-Wl,-z,lazy -Wl,-z,norelro");
    built_with("-Wl,-z,now -Wl,-z,relro");
}

/// With `LD_BIND_NOT`, the dynamic linker looks a function up at each call, and leaves the entry as it was.
#[test]
fn bound_anew_at_each_call() {
    for flags in ["-Wl,-z,lazy", "-fno-plt"] {
        built_and_run_with(flags, |program| Trial::new(program).env("LD_BIND_NOT", "1"));
    }
}

#[test]
fn at_a_fixed_address() {
    built_with("-no-pie");
    built_with("-no-pie -fno-pic -Wl,-z,now");
    built_with("-no-pie -fno-plt");
}

#[test]
fn by_clang() {
    let what = "programs built by clang";
    if need::tool(what, "clang++").is_none() {
        return;
    }
    let clang = |source: &str| {
        Build::program(source).tool(if source.ends_with(".cpp") { "clang++" } else { "clang" })
    };
    for flags in [
        "-O2",
        "-no-pie -fno-pic -Wl,-z,lazy",
        "-O2 -fPIE -pie -Wl,-z,relro,-z,now,-z,separate-code",
        "-Wl,-z,norelro,-z,noseparate-code,-z,lazy",
    ] {
        built_by(clang, flags, Trial::new);
    }
    // Without a PLT, it loads addresses of functions before loops, and what is called is a pointer then, which is said.
    for (source, arguments, api, calls) in [
        ("values.c", &["200"][..], "trap_many", 200),
        ("exception.cpp", &["4", "250"], "trap_call", 2_000),
        ("pointers.c", &[], "trap_add", 100),
    ] {
        let program = clang(source).flags("-fno-plt -Wl,-z,now").build();
        let recording = Trial::new(program).args(arguments).compare();
        let process = recording.only();
        let own = source.split('.').next();
        let (_, skipped) =
            process.skipped.iter().find(|(name, _)| Some(&**name) == own).expect("it");
        let found = process.calls(TRAP, api);
        let is_said = found == 0 && skipped[SkipReason::Pointer as usize] > 0;
        assert!(found == calls || is_said, "{source}: {found} calls, {skipped:?}");
    }
    if need::tool(what, "ld.lld").is_some() {
        built_by(clang, "-flto=thin -fuse-ld=lld -Wl,-z,now", Trial::new);
    }
}

#[test]
fn stripped() {
    built_with("-s");
    built_with("-s -no-pie");
}

#[test]
fn with_other_linkers() {
    for (linker, program) in [("gold", "ld.gold"), ("lld", "ld.lld"), ("mold", "mold")] {
        if need::tool(&format!("programs linked by {linker}"), program).is_some() {
            built_with(&format!("-fuse-ld={linker}"));
            built_with(&format!("-fuse-ld={linker} -fno-plt -Wl,-z,now"));
            built_with(&format!("-fuse-ld={linker} -no-pie"));
        }
    }
}

#[test]
fn with_one_kind_of_hash_table() {
    built_with("-Wl,--hash-style=sysv");
    built_with("-Wl,--hash-style=gnu");
}

#[test]
fn with_packed_relative_relocations() {
    let what = "programs with DT_RELR";
    if !release::reads_packed_relocations() {
        return need::skip(what, "the C library does not read them");
    }
    if need::tool(what, "ld.lld").is_some() {
        built_with("-fuse-ld=lld -Wl,-z,pack-relative-relocs");
    }
}

#[test]
fn static_programs_are_left_alone() {
    for flags in ["-static", "-static-pie"] {
        let program = Build::program("plain.c").flags(flags).without_libtrap().build();
        let trial = Trial::new(program);
        trial.compare_outcomes();
        let recordings = fs::read_dir(trial.output()).expect("read the directory of recordings");
        assert_eq!(recordings.count(), 0, "a {flags} program has no loader to hook it");
    }
}

/// Without a PLT, a function's address is loaded for several calls of it, and compared with zero where it may be missing.
#[test]
fn calls_by_registers_are_seen_in_rust() {
    const ROUNDS: u64 = 300;
    let program = Build::program("reads.rs").flags("-O").without_libtrap().build();
    let recording = Trial::new(program).arg(ROUNDS.to_string()).compare();
    let process = recording.only();
    let calls = |name| process.calls("libc.so", name);
    assert_eq!((calls("write"), calls("read")), (ROUNDS + 1, ROUNDS + 1));
    assert_eq!((calls("open64"), calls("unlink")), (2, 1));
}

/// Lets a program's imports of these names look like data, as Go's linker does, in its dynamic symbols.
fn make_data(program: &Path, names: &[&[u8]]) {
    const SECTION: usize = 64;
    const SYMBOL: usize = 24;
    const DYNSYM: usize = 11;
    const OBJECT: u8 = 1;
    let mut bytes = fs::read(program).expect("read the program");
    let word = |bytes: &[u8], at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte))
    };
    let sections = word(&bytes, 40, 8);
    let field = |bytes: &[u8], section: usize, at: usize, len: usize| {
        word(bytes, sections + section * SECTION + at, len)
    };
    let number = word(&bytes, 60, 2);
    let symbols = (0..number).find(|&section| field(&bytes, section, 4, 4) == DYNSYM);
    let symbols = symbols.expect("dynamic symbols");
    let (start, len) = (field(&bytes, symbols, 24, 8), field(&bytes, symbols, 32, 8));
    let texts = field(&bytes, field(&bytes, symbols, 40, 4), 24, 8);
    let mut changed = 0;
    for symbol in (start..start + len).step_by(SYMBOL) {
        let name = texts + word(&bytes, symbol, 4);
        if names.iter().any(|wanted| bytes[name..].starts_with(&[wanted, &b"\0"[..]].concat())) {
            bytes[symbol + 4] = bytes[symbol + 4] & 0xf0 | OBJECT;
            changed += 1;
        }
    }
    assert_eq!(changed, names.len());
    fs::write(program, bytes).expect("write the program");
}

/// Go's linker says of functions that they are data; they are called through the PLT all the same.
#[test]
fn imports_that_look_like_data_are_called() {
    let program = Build::program("plain.c").without_libtrap().build();
    let trial = Trial::new("./like-data").setup(move |work| {
        let copy = work.join("like-data");
        fs::copy(&program, &copy).expect("copy the program");
        make_data(&copy, &[b"qsort", b"printf", b"geteuid"]);
    });
    let recording = trial.compare();
    recording.only().expect(&[
        ("libc.so", "qsort", 1),
        ("libc.so", "printf", 1),
        ("libc.so", "geteuid", 1),
    ]);
}

#[test]
fn setuid_programs_are_left_alone() {
    let what = "setuid programs";
    if !need::root(what) || need::tool(what, "setpriv").is_none() {
        return;
    }
    let program = Build::program("plain.c").without_libtrap().build();
    let trial = Trial::new("./setuid")
        .inside(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        .setup(move |work| {
            let copy = work.join("setuid");
            fs::copy(&program, &copy).expect("copy the program");
            let done = Command::new("chmod").arg("4755").arg(copy).status();
            assert!(done.expect("run chmod").success());
        });
    let outcome = trial.compare_outcomes();
    assert_eq!(String::from_utf8_lossy(&outcome.stdout), "123 0\n", "not run as root");
    // `env`, by which the program is started, is not setuid but is not hooked either.
    let recordings = fs::read_dir(trial.output()).expect("read the directory of recordings");
    assert_eq!(recordings.count(), 0);
}

/// A program is started with another user's rights, and with the environment of who started it (as by `sudo` that keeps it): it runs,
/// and leaves nothing where its user may not write; where root is told to record into somebody's directory, nobody else can read it.
#[test]
fn a_kept_environment_gives_another_user_nothing() {
    let what = "another user's program";
    if !need::root(what) || need::tool(what, "setpriv").is_none() {
        return;
    }
    let program = Build::program("plain.c").without_libtrap().build();
    let owned_by = |owner: u32| {
        move |work: &Path| {
            let directory = work.join("private");
            fs::create_dir(&directory).expect("create a directory");
            fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).expect("set it");
            std::os::unix::fs::chown(&directory, Some(owner), Some(owner)).expect("give it away");
        }
    };
    // Root's environment, and a directory that is root's alone.
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let trial = Trial::new(&program).inside(&nobody).setup(owned_by(0));
    let trial = trial.hooked_env("CHASE_OUTPUT", "private");
    let outcome = trial.compare_outcomes();
    assert_eq!(String::from_utf8_lossy(&outcome.stdout), "123 65534\n");
    for directory in [trial.work().join("private"), trial.output()] {
        assert_eq!(fs::read_dir(directory).expect("there").count(), 0);
    }
    let said = trial.hooked_env("CHASE_VERBOSE", "1").hooked();
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("nothing is recorded: can't create"), "{said}");
    // An ordinary user's environment and directory, and root.
    let trial = Trial::new(&program).setup(owned_by(65534)).hooked_env("CHASE_OUTPUT", "private");
    let recording = trial.compare_at("private");
    let _ = recording.only();
    for entry in fs::read_dir(trial.work().join("private")).expect("there") {
        let metadata = entry.expect("an entry").metadata().expect("there");
        assert_eq!((metadata.uid(), metadata.mode() & 0o777), (0, 0o600));
    }
}

/// A set-id program loads what is preloaded by name from a directory of the system's, if that is set-id as well. The library is put
/// there for this program alone.
#[test]
fn a_set_id_program_that_loads_it_is_left_alone() {
    let what = "a set-id program that loads the library";
    if !need::root(what) || need::tool(what, "setpriv").is_none() {
        return;
    }
    const PLACE: &str = "/lib/x86_64-linux-gnu/libBrokenLocale.so.1";
    if need::file(what, &[PLACE]).is_none() || need::tool(what, "unshare").is_none() {
        return;
    }
    let program = Build::program("plain.c").without_libtrap().build();
    let run = |mode: &str, library: &Path| {
        let scratch = tempfile::TempDir::new().expect("a directory");
        let path = scratch.path();
        let set = |mode: &str, path: &Path| {
            let done = Command::new("chmod").arg(mode).arg(path).status();
            assert!(done.expect("run chmod").success());
        };
        set("777", path);
        let (copy, its) = (path.join("plain"), path.join("library.so"));
        fs::copy(&program, &copy).expect("copy the program");
        fs::copy(library, &its).expect("copy the library");
        set(mode, &copy);
        set("4755", &its);
        let script = r#"mount --bind "$1" "$2" || exit 77
            exec setpriv --reuid=65534 --regid=65534 --clear-groups env \
                LD_PRELOAD="${2##*/}" CHASE_OUTPUT="$3" CHASE_SYSCALLS=off "$4""#;
        let output = Command::new("unshare")
            .args(["-m", "sh", "-c", script, "sh"])
            .args([&its, Path::new(PLACE), &path.join("recordings"), &copy])
            .current_dir(path)
            .output()
            .expect("runs");
        let recordings = fs::read_dir(path.join("recordings")).map_or(0, Iterator::count);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), said, recordings)
    };
    let tells = Build::library("libtells.c").build();
    let (status, said, _) = run("4755", &tells);
    if status == Some(77) {
        return need::skip(what, "nothing can be mounted here");
    }
    assert_eq!(said, "loaded\n123 0\n", "a library by that name is loaded into set-id programs");
    let nobody = (Some(21), "123 65534\n".to_owned(), 1);
    assert_eq!(run("755", &libchase()), nobody, "an ordinary program is recorded");
    assert_eq!(run("4755", &libchase()), (Some(21), "123 0\n".to_owned(), 0));
}
