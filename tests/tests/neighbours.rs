//! Who else is in the process, or around it: another C library, another copy of the hook, valgrind, a root
//! directory that is not the system's.

use std::fs;
use std::process::Command;

use chase_tests::compile::Build;
use chase_tests::need;
use chase_tests::recorded::Recording;
use chase_tests::trial::{Trial, libchase};

fn any_libc() -> Build {
    Build::program("any_libc.c").without_libtrap()
}

#[test]
fn a_program_with_musl_runs() {
    if need::tool("programs with musl", "musl-gcc").is_none() {
        return;
    }
    let program = any_libc().named("any_libc_musl").tool("musl-gcc").build();
    Trial::new(&program).arg("directly").compare_outcomes();
    // The shell is hooked, and hands the library on.
    let script = "\"$0\" below; echo $?; exec \"$0\" at last";
    let trial = Trial::new("/bin/sh").args(["-c".as_ref(), script.as_ref(), program.as_os_str()]);
    let recording = trial.compare();
    assert!(!recording.processes.is_empty(), "the shell's");
    assert!(recording.of("any_libc_musl").is_empty());
    let clones = Build::program("address_of_clone.c").without_libtrap();
    let program = clones.named("address_of_clone_musl").tool("musl-gcc").build();
    Trial::new(&program).compare_outcomes();
}

/// A program of 32 bits can't have the library, and whoever starts it is none the worse for it.
#[test]
fn a_child_of_32_bits_runs() {
    let flags = "-m32 -nostdlib -static -no-pie -ffreestanding -fno-pic -fno-stack-protector";
    let program = Build::program("bits32.c").flags(flags).without_libtrap().build();
    let script = "\"$0\"; echo $?; \"$0\" | cat; exec \"$0\"";
    let trial = Trial::new("/bin/sh").args(["-c".as_ref(), script.as_ref(), program.as_os_str()]);
    let recording = trial.compare();
    assert!(!recording.processes.is_empty(), "the shell's");
    assert!(recording.of("bits32").is_empty());
    assert_eq!(String::from_utf8_lossy(&trial.hooked().stdout), "32 bits\n5\n32 bits\n32 bits\n");
}

/// Bubblewrap makes namespaces by system calls of its own, forks in them, and puts other directories in the root's place. Both it and
/// what it starts are recorded.
#[test]
fn a_program_in_a_sandbox_of_bubblewraps_runs() {
    let what = "bubblewrap";
    let bwrap = need::package("bubblewrap", "/usr/bin/bwrap");
    let program = Build::program("values.c").build();
    let sandbox = ["--bind", "/", "/", "--dev", "/dev", "--unshare-user", "--unshare-pid"];
    let allowed = Command::new(&bwrap).args(sandbox).arg("true").output().expect("bwrap starts");
    if !allowed.status.success() {
        return need::skip(what, String::from_utf8_lossy(&allowed.stderr).trim());
    }
    for more in [&[][..], &["--unshare-ipc", "--unshare-uts", "--new-session", "--die-with-parent"]]
    {
        let trial = Trial::new(&bwrap).args(sandbox).args(more).arg(&program).arg("200");
        let recording = trial.compare();
        let inside = recording.of("values");
        assert_eq!(inside.len(), 1, "{more:?}");
        inside[0].expect(&[("libtrap.so", "trap_swap", 200), ("libtrap.so", "trap_many", 200)]);
    }
}

/// What programs bind to here works where nothing is recorded, too.
#[test]
fn what_is_exported_leads_to_the_c_library() {
    let program = Build::program("address_of_clone.c").without_libtrap().build();
    let recording = Trial::new(&program).compare();
    assert_eq!(recording.processes.len(), 3);
    Trial::new(&program).hooked_env("CHASE_OUTPUT", "/proc/nowhere").compare_outcomes();
    let copy = tempfile::tempdir().expect("create a directory");
    let copied = copy.path().join("libother.so");
    fs::copy(libchase(), &copied).expect("copy the library");
    let preload = format!("{}:{}", copied.display(), libchase().display());
    Trial::new(&program).hooked_env("LD_PRELOAD", &preload).compare_outcomes();
}

#[test]
fn a_second_copy_steps_aside() {
    let program = any_libc().build();
    let copy = tempfile::tempdir().expect("create a directory");
    let copied = copy.path().join("libother.so");
    fs::copy(libchase(), &copied).expect("copy the library");
    let preload = format!("{}:{}", libchase().display(), copied.display());
    for preload in [preload, format!("{}:{}", copied.display(), libchase().display())] {
        let trial = Trial::new(&program).arg("twice").hooked_env("LD_PRELOAD", &preload);
        let recording = trial.compare();
        let process = recording.only();
        process.expect(&[("libc.so", "strtol", 1000), ("libc.so", "printf", 1)]);
        let own = process.apis.iter().filter(|api| {
            [&api.importer, &api.provider].iter().any(|name| name.starts_with("lib"))
                && !api.provider.starts_with("libc.so")
        });
        assert_eq!(own.count(), 0, "{:?}", process.apis);
    }
}

#[test]
fn valgrind_finds_nothing_of_the_hooks() {
    let Some(valgrind) = need::tool("valgrind", "valgrind") else { return };
    let program = Build::program("small_argument.c").without_libtrap().build();
    let trial = Trial::new(&program);
    let _ = trial.hooked();
    let output = Command::new(valgrind)
        .args(["-q", "--error-exitcode=9"])
        .arg(&program)
        .env("LD_PRELOAD", libchase())
        .env("CHASE_OUTPUT", trial.output())
        .env("CHASE_SYSCALLS", "off")
        .output()
        .expect("run valgrind");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((said.as_ref(), output.status.code()), ("", Some(3)));
    // The first one is the run without valgrind.
    let recording = Recording::load(&trial.output());
    assert_eq!(recording.of("small_argument").len(), 2);
}

/// A shell that changes the root directory for its child.
#[test]
fn no_directories_are_made_in_another_root() {
    let what = "chroot";
    if !need::root(what) || need::tool(what, "chroot").is_none() {
        return;
    }
    // All that a program needs: the linker, the C library, and the hook in its place.
    let root = tempfile::tempdir().expect("create a directory");
    let program = any_libc().build();
    let put = |from: &std::path::Path, to: &std::path::Path| {
        let to = root.path().join(to.strip_prefix("/").unwrap_or(to));
        fs::create_dir_all(to.parent().expect("a directory")).expect("create a directory");
        fs::copy(from, to).expect("copy a file");
    };
    for file in ["/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"] {
        let Some(file) = need::file(what, &[file]) else { return };
        put(&file, &file);
    }
    put(&program, "program".as_ref());
    put(&libchase(), &libchase());
    let script = "chroot \"$0\" /program inside; echo $?";
    let trial =
        Trial::new("/bin/sh").args(["-c".as_ref(), script.as_ref(), root.path().as_os_str()]);
    let recording = trial.compare();
    assert!(!recording.of("sh").is_empty() || !recording.of("dash").is_empty());
    let inside = trial.output();
    let inside = root.path().join(inside.strip_prefix("/").unwrap_or(&inside));
    assert!(!inside.exists(), "{} was made", inside.display());
    assert!(recording.of("program").is_empty());
}

/// The dynamic linker has no room then for the hook's words in the threads' own storage.
#[test]
fn a_program_that_is_audited_starts() {
    let program = any_libc().build();
    for flags in ["", "-mtls-dialect=gnu2"] {
        let auditor = Build::library("libaudit.c").named(&format!("libaudit{flags}.so"));
        let auditor = auditor.flags(flags).build();
        let trial = Trial::new(&program).arg("audited").env("LD_AUDIT", &auditor);
        trial.compare_outcomes();
        let said = trial.hooked_env("CHASE_VERBOSE", "1").hooked();
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains("nothing is recorded") && said.contains("LD_AUDIT"), "{said}");
    }
}

/// The library is no auditor, and the dynamic linker, which would unload it then, can't.
#[test]
fn a_program_runs_whose_auditor_is_the_library_itself() {
    let program = any_libc().build();
    let run = |variables: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("audited").env_remove("LD_PRELOAD").env("CHASE_VERBOSE", "1");
        command.envs(variables.iter().map(|name| (name, libchase())));
        command.output().expect("it starts")
    };
    let bare = run(&[]);
    for variables in [&["LD_AUDIT"][..], &["LD_AUDIT", "LD_PRELOAD"]] {
        let audited = run(variables);
        let said = String::from_utf8_lossy(&audited.stderr);
        assert_eq!((audited.status, &audited.stdout), (bare.status, &bare.stdout), "{said}");
        assert!(said.lines().all(|line| line.contains("nothing is recorded")), "{said}");
    }
}
