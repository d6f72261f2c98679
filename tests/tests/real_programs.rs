//! Programs that people use: output, exit status and standard error as without the hook; and no finding that can't be right.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use chase_tests::compile::{Build, programs};
use chase_tests::need;
use chase_tests::recorded::Recording;
use chase_tests::report::summary;
use chase_tests::tagged::{Tagged, companion};
use chase_tests::trial::Trial;

/// A shell script, with all that it starts under the hook; its other programs must be installed.
fn script(needs: &[&str], script: &str) -> Option<Trial> {
    let installed = needs.iter().all(|name| need::tool(needs[0], name).is_some());
    installed.then(|| Trial::new("/bin/sh").arg("-ec").arg(script))
}

/// Each of these was called in a process of that executable.
fn expect_called(recording: &Recording, executable: &str, apis: &[(&str, &str)]) {
    let processes = recording.of(executable);
    let others: Vec<_> = recording.processes.iter().map(|p| &p.executable).collect();
    assert!(!processes.is_empty(), "no recording of {executable}, but of {others:?}");
    for (provider, api) in apis {
        let calls: u64 = processes.iter().map(|process| process.calls(provider, api)).sum();
        assert!(calls > 0, "{executable} made no call to {api} of {provider}");
    }
}

/// What can't be found of a program, whatever else runs on the machine, and why.
struct Never {
    why: &'static str,
    kinds: &'static [&'static str],
}

/// Kinds that are about what threads share.
const SHARES_NOTHING: Never = Never {
    why: "no process of it has a second thread, or shares memory with another",
    kinds: &[
        "serialising-lock",
        "starved-writer",
        "allocator-contention",
        "interpreter-lock",
        "barrier-straggler",
    ],
};
/// Kinds that compare threads, or processes that do the same.
const ONE_THREAD: Never = Never {
    why: "it is one thread",
    kinds: &[
        "slow-threads",
        "late-at-barrier",
        "last-to-end",
        "mutual-waits",
        "uneven-work",
        "sub-groups",
        "limiting-stage",
        "starved-consumers",
        "short-processes",
    ],
};
/// Kinds that are about other machines, or about those that are served.
const NO_NETWORK: Never = Never {
    why: "it has no connection, and asks for no host",
    kinds: &["slow-peer", "name-resolution", "event-loop-held-up"],
};
/// What chase says of the latest run.
fn finds_nothing_of(trial: &Trial, never: &[Never]) {
    let found = summary(&trial.output());
    for finding in found["findings"].as_array().expect("findings") {
        let kind = finding["kind"].as_str().expect("a kind");
        let wrong = never.iter().find(|never| never.kinds.contains(&kind));
        let why = wrong.map_or("", |never| never.why);
        assert!(wrong.is_none(), "{kind}, but {why}: {}", finding["text"]);
    }
}

/// The same of another run, watched by a companion, where that is possible.
fn watched_finds_nothing_of(what: &str, trial: Trial, never: &[Never]) {
    if companion(what).is_none() {
        return;
    }
    let trial = trial.hooked_env("CHASE_SYSCALLS", "require");
    let _ = trial.hooked();
    let _ = Tagged::finished(&trial.output());
    finds_nothing_of(&trial, never);
}

/// Numbers as `#`: for programs that print times and thread ids.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' | '.' => {
                if !out.ends_with('#') {
                    out.push('#');
                }
            }
            // Columns are as wide as the numbers in them.
            ' ' if out.ends_with(' ') => {}
            other => out.push(other),
        }
    }
    out
}

/// Lines of text that any run makes the same.
fn write_lines(path: &Path, count: u64) {
    let mut text = String::new();
    let mut state = 1_u64;
    for number in 0..count {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        writeln!(text, "{:x} line {number}", state >> 40).expect("write to a string");
    }
    fs::write(path, text).expect("write the input");
}

#[test]
fn python() {
    let Some(python) = need::tool("python3", "python3") else { return };
    let trial = Trial::new(python).arg(programs().join("real/all.py"));
    let recording = trial.compare();
    assert!(recording.processes.len() >= 3, "sub-processes have recordings");
    let main = recording.processes.iter().max_by_key(|p| p.threads.len()).expect("some");
    assert!(main.created_threads() >= 4, "{:?}", main.threads);
    assert!(main.calls("libc.so", "qsort") >= 1, "a call by ctypes goes through libffi");
}

#[test]
fn perl() {
    let Some(perl) = need::tool("perl", "perl") else { return };
    let trial = Trial::new(perl).arg(programs().join("real/all.pl"));
    let recording = trial.compare();
    finds_nothing_of(&trial, &[SHARES_NOTHING, NO_NETWORK]);
    expect_called(&recording, "perl", &[("libc.so", "memcpy"), ("libc.so", "fork")]);
}

#[test]
fn gcc() {
    let source = programs().join("libtrap.c");
    let line = format!(
        "gcc -O2 -g -c {} -o a.o; sha256sum a.o; gcc -O2 -shared a.o -o a.so; sha256sum a.so; \
         ! gcc -c /dev/null -x c -DX= missing.c",
        source.display()
    );
    let Some(trial) = script(&["gcc"], &line) else { return };
    let recording = trial.compare();
    finds_nothing_of(&trial, &[SHARES_NOTHING, NO_NETWORK]);
    expect_called(&recording, "cc1", &[("libgmp.so", "__gmpz_init")]);
    // The compiler's parts have names with their target and version.
    for part in ["gcc", "as", "collect2", "ld"] {
        assert!(recording.processes.iter().any(|p| p.executable.contains(part)), "no {part}");
    }
}

#[test]
fn gxx_and_its_result() {
    let source = programs().join("workers.cpp");
    let line = format!("g++ -O1 -std=c++20 {} -o workers; ./workers || echo $?", source.display());
    let Some(trial) = script(&["g++"], &line) else { return };
    let recording = trial.compare();
    expect_called(&recording, "cc1plus", &[]);
    expect_called(&recording, "workers", &[("libstdc++.so", "__cxa_throw")]);
}

#[test]
fn sqlite() {
    let Some(sqlite) = need::tool("sqlite3", "sqlite3") else { return };
    let trial = || Trial::new(&sqlite).arg("file.db").stdin(&programs().join("real/rows.sql"));
    let unwatched = trial();
    let recording = unwatched.compare();
    expect_called(&recording, "sqlite3", &[("libsqlite3.so", "sqlite3_step")]);
    let never = [SHARES_NOTHING, ONE_THREAD, NO_NETWORK];
    finds_nothing_of(&unwatched, &never);
    watched_finds_nothing_of("sqlite3 with a companion", trial(), &never);
}

#[test]
fn sort() {
    let Some(sort) = need::tool("sort", "sort") else { return };
    let trial = Trial::new(sort)
        .args(["--parallel=4", "-S", "64M", "input"])
        .setup(|work| write_lines(&work.join("input"), 1_000_000));
    let recording = trial.compare();
    finds_nothing_of(&trial, &[NO_NETWORK]);
    let process = recording.only();
    // n log2 n is 20 million; presorted runs and equal keys only take some off.
    let compared = process.calls_from("sort", "libc.so", "strcoll");
    assert!((15_000_000..25_000_000).contains(&compared), "{compared}");
    assert!(process.created_threads() >= 1, "{:?}", process.threads.len());
}

#[test]
fn git_log() {
    let Some(git) = need::tool("git log", "git") else { return };
    let line = format!(
        "git init -q -b main .; git fast-import --quiet <history; git -c core.pager=cat log -p --stat; \
         git log --format=%h --graph; git -c gc.auto=0 fsck 2>&1; {} status -s",
        git.display()
    );
    let Some(trial) = script(&["git"], &line) else { return };
    let trial = trial.env("HOME", "/nowhere").env("GIT_CONFIG_NOSYSTEM", "1").setup(write_history);
    let recording = trial.compare();
    finds_nothing_of(&trial, &[NO_NETWORK]);
    expect_called(&recording, "git", &[("libz.so", "inflate"), ("libc.so", "mmap64")]);
}

/// Thirty commits for `git fast-import`.
fn write_history(work: &Path) {
    let mut history = String::new();
    for number in 0..30 {
        let text = format!("text of commit {number}\n").repeat(number + 1);
        write!(
            history,
            "commit refs/heads/main\nmark :{}\ncommitter A <a@b> {} +0000\ndata 5\nmade\n{}\
             M 100644 inline file{}\ndata {}\n{text}\n",
            number + 1,
            1_700_000_000 + number * 60,
            if number > 0 { format!("from :{number}\n") } else { String::new() },
            number % 4,
            text.len(),
        )
        .expect("write to a string");
    }
    fs::write(work.join("history"), history).expect("write the history");
}

#[test]
fn xz() {
    let line = "xz -T3 -2 --block-size=200KiB -kc input >input.xz; sha256sum input.xz; \
                xz -T2 -dc input.xz | cmp - input; xz -l input.xz; ! xz -dc input 2>&1";
    let Some(trial) = script(&["xz"], line) else { return };
    let recording = trial.setup(|work| write_lines(&work.join("input"), 40_000)).compare();
    expect_called(&recording, "xz", &[("liblzma.so", "lzma_code")]);
}

#[test]
fn pigz() {
    let line =
        "pigz -n -p 4 -kc input >input.gz; sha256sum input.gz; pigz -dc input.gz | cmp - input";
    let Some(trial) = script(&["pigz"], line) else { return };
    let recording = trial.setup(|work| write_lines(&work.join("input"), 100_000)).compare();
    expect_called(&recording, "pigz", &[("libz.so", "deflate"), ("libc.so", "pthread_create")]);
}

#[test]
fn node() {
    let Some(node) = need::tool("node", "node") else { return };
    let recording = Trial::new(node).arg(programs().join("real/all.js")).compare();
    expect_called(&recording, "node", &[("libc.so", "pthread_create")]);
}

#[test]
fn java() {
    let source = programs().join("real/Hello.java");
    let line = format!("javac -d . {}; java -Xshare:auto Hello one two", source.display());
    let Some(trial) = script(&["javac", "java"], &line) else { return };
    let recording = trial.compare();
    expect_called(&recording, "java", &[("libjli.so", "JLI_Launch")]);
    assert!(recording.processes.iter().any(|process| process.created_threads() > 8));
}

#[test]
fn openssl() {
    let line = "openssl dgst -sha256 -sha3-512 input; \
                openssl enc -aes-256-cbc -K 00 -iv 01 -in input 2>&1 | openssl dgst -md5; \
                openssl prime 1000003; openssl rand 16 | wc -c; \
                openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -subj /CN=test -batch 2>&1 | tail -c 6; \
                openssl verify -CAfile cert cert; ! openssl x509 -in key";
    let Some(trial) = script(&["openssl"], line) else { return };
    // Errors begin with the id of the thread.
    let trial = trial.normalise(|text| {
        let line =
            |line: &str| line.split_once(":error:").map_or(line.to_owned(), |(_, e)| e.to_owned());
        text.lines().map(|l| line(l) + "\n").collect()
    });
    let trial = trial.setup(|work| write_lines(&work.join("input"), 100_000));
    let recording = trial.compare();
    finds_nothing_of(&trial, &[SHARES_NOTHING, NO_NETWORK]);
    expect_called(&recording, "openssl", &[("libcrypto.so", "BIO_read")]);
}

#[test]
fn openssl_speed() {
    let line = "openssl speed -seconds 1 -bytes 1024 -evp sha256";
    let Some(trial) = script(&["openssl"], line) else { return };
    let recording = trial.normalise(without_numbers).compare();
    let updates = recording.calls("libcrypto.so", "EVP_Digest");
    assert!(updates > 10_000, "{updates}");
}

#[test]
fn bash_scripts() {
    let Some(bash) = need::tool("bash", "bash") else { return };
    let trial = Trial::new(bash).arg(programs().join("real/all.sh"));
    let recording = trial.compare();
    finds_nothing_of(&trial, &[SHARES_NOTHING, NO_NETWORK]);
    assert!(recording.of("bash").len() > 10, "subshells have recordings");
    expect_called(&recording, "bash", &[("libc.so", "fork")]);
}

#[test]
fn redis() {
    let line = "redis-server --port 0 --unixsocket ./socket --save '' --appendonly no \
                --io-threads 2 >log & \
                for i in $(seq 100); do test -S socket && break; sleep 0.1; done; \
                redis-cli -s ./socket set key value; redis-cli -s ./socket get key; \
                redis-benchmark -s ./socket -q -n 20000 -c 20 -t set,get,lpush,zadd >rates; \
                tr '\\r' '\\n' <rates | grep -c 'requests per second, p50'; \
                redis-cli -s ./socket eval 'return redis.call(\"incr\", KEYS[1])' 1 n; \
                redis-cli -s ./socket shutdown nosave; wait; grep -c 'bye bye' log";
    let Some(trial) = script(&["redis-server", "redis-benchmark", "redis-cli"], line) else {
        return;
    };
    let recording = trial.compare();
    let server = |api| {
        let servers = recording.processes.iter().filter(|p| p.executable.starts_with("redis-"));
        servers.map(|process| process.calls("libc.so", api)).sum::<u64>()
    };
    assert!(server("epoll_wait") > 1000, "{}", server("epoll_wait"));
    assert!(server("write") > 1000, "{}", server("write"));
}

#[test]
fn rust_threads_and_panics() {
    let program = Build::program("workers.rs").without_libtrap().build();
    // A message about a panic holds the id of the thread.
    let trial = Trial::new(program).normalise(without_numbers);
    let recording = trial.compare();
    let process = recording.of("workers")[0];
    assert_eq!(process.created_threads(), 10);
    assert_eq!(process.calls_from("workers", "libc.so", "pthread_create"), 10);
    // Two threads die; eight panics are caught.
    assert_eq!(process.calls_from("workers", "libgcc_s.so", "_Unwind_RaiseException"), 10);
}

#[test]
fn cpp_threads_and_exceptions() {
    let program = Build::program("workers.cpp").flags("-std=c++20").without_libtrap().build();
    let recording = Trial::new(program).compare();
    let process = recording.only();
    assert_eq!(process.created_threads(), 5);
    // Of 1000 numbers, 143 leave a rest of 3; one is the future's. libstdc++ throws its own.
    assert_eq!(process.calls_from("workers", "libstdc++.so", "__cxa_throw"), 144);
}

#[test]
fn filters() {
    let input = |work: &Path| write_lines(&work.join("input"), 20_000);
    let line = "sed 's/line/zeile/' input | awk '{ n[length($1)] += $3 } END { for (i in n) print i, n[i] }' \
                | sort | uniq -c; tar cf - input --mtime=@0 --owner=0 --group=0 | sha256sum; \
                grep -c 'f.*7$' input; find . -name input | xargs wc -l; dd if=input bs=1k count=10 2>/dev/null \
                | od -c | tail -3; seq 5 | tee copy | rev; diff input copy | tail -1; env -i sh -c 'echo $-'";
    let trial = || script(&["sed", "awk", "tar", "grep"], line).map(|trial| trial.setup(input));
    let Some(unwatched) = trial() else { return };
    let recording = unwatched.compare();
    assert!(recording.processes.len() > 15);
    let never = [SHARES_NOTHING, NO_NETWORK];
    finds_nothing_of(&unwatched, &never);
    watched_finds_nothing_of("filters with a companion", trial().expect("the same"), &never);
}
