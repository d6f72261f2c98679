//! `chase record`: the program is as it would be by itself, and its recording is there.

use std::ffi::{CStr, OsString};
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use chase_tests::launcher::{chase, record};
use chase_tests::need;
use chase_tests::report::summary;
use chase_tests::trial::libchase;
use tempfile::TempDir;

/// Names of programs that were recorded in `directory`.
fn recorded(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let mut names: Vec<String> = names
        .filter_map(|name| Some(name.strip_suffix(".chase")?.split_once('.')?.0.to_owned()))
        .collect();
    names.sort();
    names
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command with `input`.
fn fed(mut command: Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    // Some end without a look at it.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    child.wait_with_output().expect("ends")
}

#[test]
fn output_input_and_status_are_the_programs() {
    let commands: [&[&str]; 20] = [
        &["sh", "-c", "exit 0"],
        &["sh", "-c", "exit 42"],
        &["cat"],
        &["sort", "-r"],
        &["wc", "-c"],
        &["sh", "-c", "read a; echo $a; echo two >&2; exit 7"],
        &["grep", "nothing"],
        &["sed", "s/o/0/g"],
        &["awk", "{ print NF }"],
        &["env", "-i", "sh", "-c", "env | sort"],
        &["sh", "-c", "ulimit -a; umask; pwd"],
        &["sh", "-c", "ls -l /proc/self/fd | wc -l"],
        &["tr", "a-z", "A-Z"],
        &["cut", "-d", " ", "-f", "2"],
        &["head", "-n", "1"],
        &["tail", "-c", "5"],
        &["md5sum"],
        &["od", "-c"],
        &["perl", "-ne", "print scalar reverse; END { exit 3 }"],
        &["xargs", "-n", "1", "echo"],
    ];
    const INPUT: &str = "one two\nthree four five\n";
    for words in commands {
        let scratch = TempDir::new().expect("a directory");
        let mut bare = Command::new(words[0]);
        bare.args(&words[1..]).current_dir(scratch.path());
        let bare = fed(bare, INPUT);
        let mut hooked = record(scratch.path(), &["--"]);
        hooked.args(words);
        let hooked = fed(hooked, INPUT);
        assert_eq!(hooked.status, bare.status, "{words:?}");
        assert_eq!(text(&hooked.stdout), text(&bare.stdout), "{words:?}");
        // What the program says comes first, then the summary.
        let said = text(&hooked.stderr);
        let summary = said.strip_prefix(&*text(&bare.stderr)).expect("the program's own");
        assert!(summary.contains("Recorded in chase.data/"), "{words:?}: {summary}");
        assert!(summary.lines().count() <= 10, "{summary}");
        assert!(!recorded(&scratch.path().join("chase.data")).is_empty(), "{words:?}");
    }
}

#[test]
fn variables_are_in_the_programs_environment_alone() {
    let scratch = TempDir::new().expect("a directory");
    let mut command = record(scratch.path(), &["--timing", "all", "--libs", "libz*"]);
    let said = text(&command.arg("env").output().expect("runs").stdout);
    let library = format!("LD_PRELOAD={}", libchase().canonicalize().expect("there").display());
    assert!(said.lines().any(|line| line == library), "{said}");
    assert!(said.lines().any(|line| line == "CHASE_TIMING=all"), "{said}");
    // Had chase-report been recorded too, it would be there.
    assert_eq!(recorded(&scratch.path().join("chase.data")), ["env"]);
}

#[test]
fn quiet_is_the_program_itself() {
    let scratch = TempDir::new().expect("a directory");
    let mut command = record(scratch.path(), &["-q", "--"]);
    command.args(["sh", "-c", "echo $$; kill -TERM $$"]).stdout(Stdio::piped());
    let child = command.stderr(Stdio::piped()).spawn().expect("starts");
    let pid = child.id().to_string();
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.signal(), Some(libc::SIGTERM));
    assert_eq!((text(&output.stdout).trim(), &*text(&output.stderr)), (&*pid, ""));
    assert_eq!(recorded(&scratch.path().join("chase.data")).len(), 1);
}

#[test]
fn what_cannot_be_started() {
    let scratch = TempDir::new().expect("a directory");
    fs::write(scratch.path().join("data"), "no program").expect("written");
    for (program, status) in [("no-such-program", 127), ("./data", 126), ("/", 126)] {
        for options in [&[][..], &["-q"]] {
            let output = record(scratch.path(), options).arg(program).output().expect("runs");
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(status), "{program}: {said}");
            assert!(said.contains("can't start"), "{said}");
        }
    }
}

#[test]
fn says_why_it_cannot_be_started() {
    let scratch = TempDir::new().expect("a directory");
    let says = |program: &str, wanted: &str| {
        let output = record(scratch.path(), &[]).arg(program).output().expect("runs");
        let said = text(&output.stderr);
        assert!(said.contains(wanted), "{program}: {said}");
    };
    fs::write(scratch.path().join("data"), "no program").expect("written");
    let script = scratch.path().join("script");
    fs::write(&script, "#!/no/such/interpreter -x\n").expect("written");
    fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("set");
    says("./data", "not executable: chmod +x");
    says("/", "it is a directory");
    says("no-such-program", "not in $PATH");
    says("./script", "it is there, but not /no/such/interpreter");
}

#[test]
fn says_that_the_disk_is_full() {
    let what = "a full disk";
    if !need::root(what) || need::tool(what, "unshare").is_none() {
        return;
    }
    let scratch = TempDir::new().expect("a directory");
    let script = "mount -t tmpfs -o size=64k tmpfs . && cd . && \"$0\" record -o \"$PWD/d\" true";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(chase()).current_dir(scratch.path());
    let output = command.output().expect("runs");
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("kB left; free space there"), "{said}");
}

/// `sudo -u` may leave `$HOME` as it was.
#[test]
fn a_home_that_may_not_be_entered_has_no_options() {
    let what = "another user's home";
    if !need::root(what) || need::tool(what, "setpriv").is_none() {
        return;
    }
    let scratch = TempDir::new().expect("a directory");
    fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).expect("set");
    let home = scratch.path().join("home");
    fs::create_dir(&home).expect("made");
    fs::set_permissions(&home, Permissions::from_mode(0o700)).expect("set");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(chase());
    command.args(["record", "--print-env", "true"]).current_dir(scratch.path());
    command.env("HOME", &home).env_remove("XDG_CONFIG_HOME");
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn ends_by_the_signal_that_ends_the_program() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGKILL, libc::SIGSEGV, libc::SIGABRT] {
        let scratch = TempDir::new().expect("a directory");
        let script = format!("ulimit -c unlimited; kill -{signal} $$");
        let mut command = record(scratch.path(), &["--"]);
        let output = command.args(["sh", "-c", &script]).output().expect("runs");
        assert_eq!(output.status.signal(), Some(signal));
        assert!(!output.status.core_dumped(), "{signal}");
        assert!(text(&output.stderr).contains("Recorded in"), "{signal}");
        // Who started it knows; a later program of this number would not be meant.
        let processes = summary(&scratch.path().join("chase.data"));
        let ending = &processes["processes"][0]["ending"];
        let (kind, told) = (&ending["kind"], &ending["signal"]);
        assert!(kind == "killed" && told == signal, "{signal}: {ending}");
    }
}

/// Waits until `path` has this text.
fn await_text(path: &Path, wanted: &str) {
    let start = Instant::now();
    loop {
        let found = fs::read_to_string(path).unwrap_or_default();
        if found == wanted {
            return;
        }
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(20), "{found:?} instead of {wanted:?}");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn signals_that_others_send_reach_the_program_once() {
    let scratch = TempDir::new().expect("a directory");
    let script = "trap 'echo usr1 >>got' USR1; trap 'echo term >>got; exit 3' TERM; echo up >got; \
        while :; do sleep 0.05; done";
    let mut command = record(scratch.path(), &["--"]);
    command.args(["sh", "-c", script]).stderr(Stdio::null());
    let mut child = command.spawn().expect("starts");
    let got = scratch.path().join("got");
    let send = |signal| {
        // SAFETY: it is our child, which has not been waited for.
        unsafe { libc::kill(child.id() as i32, signal) };
    };
    await_text(&got, "up\n");
    send(libc::SIGUSR1);
    await_text(&got, "up\nusr1\n");
    send(libc::SIGTERM);
    await_text(&got, "up\nusr1\nterm\n");
    assert_eq!(child.wait().expect("ends").code(), Some(3));
}

#[test]
fn what_is_ignored_or_closed_stays_so() {
    let scratch = TempDir::new().expect("a directory");
    // SIGPIPE, SIGINT and SIGUSR2 ignored, standard input closed. (The shell itself asks for SIGCHLD.)
    let script = "grep -E 'Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd";
    let ask = |mut command: Command| {
        command.args(["sh", "-c", script]).current_dir(scratch.path());
        // SAFETY: it calls what may be called after a fork.
        unsafe {
            command.pre_exec(|| {
                for signal in [libc::SIGPIPE, libc::SIGINT, libc::SIGUSR2, libc::SIGCHLD] {
                    libc::signal(signal, libc::SIG_IGN);
                }
                libc::close(0);
                Ok(())
            });
        }
        text(&command.output().expect("runs").stdout)
    };
    let bare = ask(Command::new("env"));
    assert!(bare.contains("1802\n"), "{bare}");
    assert_eq!(ask(record(scratch.path(), &["--", "env"])), bare);
}

#[test]
fn follow() {
    const SCRIPT: &str = "cat /etc/hostname; env sort /etc/hostname; :";
    let cases: [(&[&str], &[&str]); 5] = [
        (&["--follow", "all"], &["cat", "dash", "env", "sort"]),
        (&["--follow", "none"], &["dash"]),
        (&["--follow", "cat"], &["cat"]),
        // The process that env was goes on as sort.
        (&["--follow", "env,ca?"], &["cat", "env"]),
        (&["--follow", "*sh *hostname*"], &["cat", "dash", "env", "sort"]),
    ];
    if fs::read_link("/bin/sh").is_ok_and(|shell| shell != Path::new("dash")) {
        return need::skip("follow", "the shell is not dash");
    }
    for (options, wanted) in cases {
        let scratch = TempDir::new().expect("a directory");
        let mut command = record(scratch.path(), options);
        let output = command.args(["--", "/bin/sh", "-c", SCRIPT]).output().expect("runs");
        assert!(output.status.success());
        let directory = scratch.path().join("chase.data");
        let mut found = recorded(&directory);
        found.dedup();
        assert_eq!(found, wanted, "{options:?}");
        let said = text(&output.stderr);
        assert!(said.contains("Recorded in"), "{options:?}: {said}");
        // Nor are there system calls of the others.
        let files = fs::read_dir(&directory).expect("there").flatten();
        let orphans = files.map(|entry| entry.path()).filter(|path| {
            path.extension().is_some_and(|extension| extension == "syscalls")
                && !path.with_extension("").exists()
        });
        assert_eq!(orphans.count(), 0, "{options:?}");
    }
}

#[test]
fn who_follows_nothing_is_told() {
    let scratch = TempDir::new().expect("a directory");
    let mut command = record(scratch.path(), &["--syscalls", "off", "--follow", "nothing"]);
    let said = text(&command.args(["--", "/bin/true"]).output().expect("runs").stderr);
    assert!(said.contains("no program that was started matches --follow nothing"), "{said}");
}

#[test]
fn options_from_the_file_the_environment_and_the_command_line() {
    let scratch = TempDir::new().expect("a directory");
    let config = scratch.path().join("config/chase");
    fs::create_dir_all(&config).expect("made");
    fs::write(config.join("chase.toml"), "timing = \"count\"\n").expect("written");
    let shown = |options: &[&str], variables: &[(&str, &str)]| {
        let mut command = record(scratch.path(), options);
        command.args(["--print-env", "--", "true", "a b"]).envs(variables.iter().copied());
        let output = command.output().expect("runs");
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    assert!(shown(&[], &[]).1.contains("CHASE_TIMING=count"));
    // This directory's file comes first, and alone.
    fs::write(scratch.path().join("chase.toml"), "exclude = [\":free\"]\n").expect("written");
    let (_, said) = shown(&[], &[]);
    assert!(said.contains("CHASE_EXCLUDE=:free") && !said.contains("CHASE_TIMING"), "{said}");
    assert!(said.ends_with("true 'a b'\n"), "{said}");
    let text = "events = [\"all\", \"64MB\"]\nnarrate = true\nsites = true\nexclude = \":free\"\n";
    fs::write(scratch.path().join("chase.toml"), text).expect("written");
    let (_, said) = shown(&[], &[]);
    let wanted = ["CHASE_EVENTS='all,64MB'", "CHASE_NARRATE=1", "CHASE_SITES=1"];
    assert!(wanted.iter().all(|variable| said.contains(variable)), "{said}");
    let variable = [("CHASE_EXCLUDE", ":malloc")];
    assert!(shown(&[], &variable).1.contains("CHASE_EXCLUDE=:malloc"));
    assert!(shown(&["--exclude", ":puts"], &variable).1.contains("CHASE_EXCLUDE=:puts"));
    fs::write(scratch.path().join("chase.toml"), "timings = 1\n").expect("written");
    let (status, said) = shown(&[], &[]);
    assert!(status == Some(125) && said.contains("timings"), "{said}");
}

/// The command that `--print-env` shows records, as it is.
#[test]
fn print_env_is_a_command() {
    let scratch = TempDir::new().expect("a directory");
    let mut command = record(scratch.path(), &["--print-env", "-o", "a b", "--", "/bin/true"]);
    let shown = text(&command.output().expect("runs").stdout);
    let run = Command::new("sh").args(["-c", &shown]).current_dir("/").status().expect("runs");
    assert!(run.success());
    assert_eq!(recorded(&scratch.path().join("a b")), ["true"]);
}

#[test]
fn says_why_nothing_was_recorded() {
    let scratch = TempDir::new().expect("a directory");
    let program = scratch.path().join("static");
    let source = scratch.path().join("static.c");
    fs::write(&source, "int main(void) { return 9; }\n").expect("written");
    let mut gcc = Command::new("gcc");
    let built = gcc.arg("-static").arg(&source).arg("-o").arg(&program).status().expect("gcc");
    assert!(built.success());
    let mut command = record(scratch.path(), &["--syscalls", "off"]);
    let output = command.arg(&program).output().expect("runs");
    assert_eq!(output.status.code(), Some(9));
    let said = text(&output.stderr);
    assert!(said.contains("nothing was recorded") && said.contains("statically linked"), "{said}");
    let check = Command::new(chase()).arg("check").arg(&program).output().expect("runs");
    assert_eq!(check.status.code(), Some(1));
    assert!(text(&check.stdout).contains("statically linked"));
}

#[test]
fn check_tells_what_stands_in_the_way() {
    let scratch = TempDir::new().expect("a directory");
    let check = |program: &Path| {
        let output = Command::new(chase()).arg("check").arg(program).output().expect("runs");
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let build = |name: &str, text: &str| {
        let (source, program) =
            (scratch.path().join(name.to_owned() + ".c"), scratch.path().join(name));
        fs::write(&source, text).expect("written");
        let mut gcc = Command::new("gcc");
        gcc.arg(&source).arg("-o").arg(&program).args(["-Wl,--as-needed", "-ldl"]);
        assert!(gcc.status().expect("gcc").success());
        program
    };
    let plain = "#include <stdio.h>\nint main(void) { return puts(\"plain\") < 0; }\n";
    let (status, said) = check(&build("plain", plain));
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("can be hooked"), "{said}");
    // Neither the program nor the C library calls dlopen.
    assert!(
        said.contains("libraries: libc.so.6") && said.contains("no library calls dlopen"),
        "{said}"
    );
    let opens =
        "#include <dlfcn.h>\nint main(void) { return !dlopen(\"libplugin.so.3\", RTLD_NOW); }\n";
    let (status, said) = check(&build("opens", opens));
    assert!(status == Some(0) && said.contains("by the program; names"), "{said}");
    assert!(said.contains("libplugin.so.3"), "{said}");
    let script = scratch.path().join("script");
    fs::write(&script, "#!/bin/sh\n:\n").expect("written");
    let (status, said) = check(&script);
    assert!(status == Some(1) && said.contains("it is not executable"), "{said}");
    fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("set");
    let (status, said) = check(&script);
    assert!(status == Some(0) && said.contains("what runs is /bin/sh"), "{said}");
    let mut bytes = fs::read("/bin/true").expect("there");
    bytes[4] = 1;
    let narrow = scratch.path().join("narrow");
    fs::write(&narrow, bytes).expect("written");
    let (status, said) = check(&narrow);
    assert!(status == Some(1) && said.contains("32-bit"), "{said}");
    let (status, said) = check(&scratch.path().join("missing"));
    assert!(status == Some(125) && said.contains("missing"), "{said}");
}

#[test]
fn doctor_records_something() {
    let scratch = TempDir::new().expect("a directory");
    let mut command = Command::new(chase());
    let output = command.arg("doctor").current_dir(scratch.path()).output().expect("runs");
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains("libchase.so records"), "{said}");
    // SAFETY: the C library gives a string of its own, which lives for ever.
    let glibc = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy();
    assert!(said.contains(&format!(", glibc {glibc}, ")), "{said}");
    // Where the library is missing, nothing works, and that is said.
    fs::copy(chase(), scratch.path().join("chase")).expect("copied");
    let output = Command::new(scratch.path().join("chase")).arg("doctor").output().expect("runs");
    let said = text(&output.stdout);
    assert!(output.status.code() == Some(1) && said.contains("no libchase.so"), "{said}");
}

#[test]
fn report_is_chase_report() {
    let of = |program: PathBuf, words: &[&str]| {
        let output = Command::new(program).args(words).output().expect("runs");
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let report = libchase().with_file_name("chase-report");
    assert_eq!(of(chase(), &["report", "--help"]), of(report.clone(), &["--help"]));
    assert_eq!(of(chase(), &["report", "/no/such"]), of(report, &["/no/such"]));
}

/// What is typed wrong, and what it may have been.
#[test]
fn says_what_was_meant() {
    for (words, meant) in [
        (&["recrd", "x"][..], "'record'"),
        (&["./app"], "chase record ./app"),
        (&["record", "--libs", "libz*,", "true"], "an item of the list is empty"),
    ] {
        let output = Command::new(chase()).args(words).output().expect("runs");
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(meant), "{}", text(&output.stderr));
    }
}

/// A library whose name the dynamic linker can't take, and one that lies where an installation puts it.
#[test]
fn finds_what_belongs_to_it() {
    let scratch = TempDir::new().expect("a directory");
    for (directory, library) in [("bin", "lib"), ("b", "lib/chase"), ("a b", "a b")] {
        let (programs, libraries) = (scratch.path().join(directory), scratch.path().join(library));
        fs::create_dir_all(&programs).expect("made");
        fs::create_dir_all(&libraries).expect("made");
        fs::copy(chase(), programs.join("chase")).expect("copied");
        fs::copy(libchase(), libraries.join("libchase.so")).expect("copied");
        let mut command = Command::new(programs.join("chase"));
        command.args(["record", "-q", "--syscalls", "off", "true"]).current_dir(&programs);
        let output = command.env_remove("CHASE_OUTPUT").output().expect("runs");
        let said = text(&output.stderr);
        if directory == "a b" {
            assert!(output.status.code() == Some(125) && said.contains("a space"), "{said}");
        } else {
            assert!(output.status.success(), "{said}");
            assert_eq!(recorded(&programs.join("chase.data")), ["true"]);
        }
    }
}

/// Other preloaded libraries stay, behind ours.
#[test]
fn keeps_other_preloads() {
    let scratch = TempDir::new().expect("a directory");
    let mut command = record(scratch.path(), &["--print-env", "true"]);
    let other: OsString = "/lib/x86_64-linux-gnu/libm.so.6".into();
    let output = command.env("LD_PRELOAD", &other).output().expect("runs");
    assert!(text(&output.stdout).contains("libchase.so:/lib/x86_64-linux-gnu/libm.so.6"));
}

/// Recordings of many processes are in one file at the end, and all of them in the report.
#[test]
fn many_recordings_are_folded() {
    const PROCESSES: usize = 60;
    let scratch = TempDir::new().expect("a directory");
    let script = format!("for i in $(seq {PROCESSES}); do /bin/true; done");
    let mut command = record(scratch.path(), &["--syscalls", "off", "-o", "out"]);
    let output = command.args(["--", "sh", "-c", &script]).output().expect("runs");
    assert!(output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("Recorded in out") && said.contains("in one file"), "{said}");
    let out = scratch.path().join("out");
    assert_eq!(recorded(&out), [] as [String; 0]);
    let processes = chase_tests::report::summary(&out);
    let all = processes["processes"].as_array().map_or(0, Vec::len);
    // The shell, its children, and those of `seq`.
    assert!(all > PROCESSES, "{all} of {PROCESSES}");
}
