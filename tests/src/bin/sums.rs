//! `cargo xtask sums`: real programs, recorded in each way, and every table of their reports held against every other.
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use chase_tests::check::{contradictions, of_clocks, of_views};
use chase_tests::need;
use chase_tests::trial::libchase;

/// An ordinary user.
const NOBODY: u32 = 65534;
/// A program takes no longer, or it is killed.
const LIMIT: Duration = Duration::from_secs(120);
/// Sentences that are shown of one run.
const SHOWN: usize = 6;

/// Names and commands; the first word is the program that must be there.
const PROGRAMS: [(&str, &[&str]); 13] = [
    ("gcc", &["gcc", "-O1", "-c", "functions.c", "-o", "functions.o"]),
    ("python3, 4 threads", &["/usr/bin/python3", "threads.py"]),
    ("numpy", &["/usr/bin/python3", "arrays.py"]),
    (
        "sqlite3",
        &[
            "sqlite3",
            ":memory:",
            "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 200000) insert into t select x, x * 7 % 1000 from c; select b, count(*) from t group by b order by 2 limit 5;",
        ],
    ),
    (
        "git",
        &[
            "sh",
            "-c",
            "rm -rf repository; git init -q repository && cd repository && cp ../functions.c . && git add . && git -c user.name=a -c user.email=a@b commit -qm first && git log --stat && git gc -q",
        ],
    ),
    (
        "redis",
        &[
            "sh",
            "-c",
            "redis-server --port 0 --unixsocket ./redis.socket --save '' & n=0; until redis-cli -s ./redis.socket ping || [ $n = 100 ]; do n=$((n + 1)); sleep 0.1; done; redis-benchmark -s ./redis.socket -q -n 5000 -t get,set,lpush; redis-cli -s ./redis.socket shutdown nosave; wait",
        ],
    ),
    ("node", &["node", "work.js"]),
    ("java", &["java", "-Xint", "Work.java"]),
    ("php", &["php", "-r", "for ($i = 0; $i < 300000; $i++) $a[$i % 1000] = md5((string)$i);"]),
    ("rustc", &["rustc", "--crate-type", "lib", "work.rs", "--emit", "obj"]),
    ("perl", &["perl", "-e", "for (1 .. 500000) { $h{$_ % 1000} .= chr(65 + $_ % 26) if $_ % 3 }"]),
    (
        "bash, a tree",
        &[
            "bash",
            "-c",
            "for i in {1..20}; do ls / > list; x=$(echo $i | tr 1 2); (cat list | sort | wc -l); done",
        ],
    ),
    ("xz, 2 threads", &["sh", "-c", "xz -2 -T2 -c --block-size=400KiB numbers > packed"]),
];

/// What the programs work on.
const FILES: [(&str, &str); 5] = [
    (
        "threads.py",
        "import threading, json, time\ndef work(n):\n    for i in range(3000):\n        json.loads(json.dumps({'a': [i] * 9, 'b': n}))\n    time.sleep(0.05)\nall = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n[t.start() for t in all]\n[t.join() for t in all]\n",
    ),
    (
        "arrays.py",
        "import numpy\na = numpy.random.rand(500, 500)\nfor _ in range(8):\n    a = a @ a\n    a /= numpy.abs(a).max()\nnumpy.fft.fft2(a)\nnumpy.sort(a.ravel())\nprint(a.shape)\n",
    ),
    (
        "work.js",
        "const fs = require('fs');\nlet all = {};\nfor (let i = 0; i < 300000; i++) all[i % 1000] = JSON.stringify({i, text: 'x'.repeat(i % 30)});\nfs.writeFileSync('all.json', JSON.stringify(all));\nsetTimeout(() => console.log(Object.keys(all).length), 20);\n",
    ),
    (
        "Work.java",
        "public class Work { public static void main(String[] a) throws Exception { Thread[] all = new Thread[3]; for (int t = 0; t < 3; t++) { all[t] = new Thread(() -> { long s = 0; for (int i = 0; i < 2000000; i++) s += i % 7; System.out.println(s); }, \"worker\"); all[t].start(); } for (Thread t : all) t.join(); } }\n",
    ),
    (
        "work.rs",
        "use std::collections::HashMap;\npub fn count(text: &str) -> HashMap<String, usize> {\n    let mut all = HashMap::new();\n    for word in text.split_whitespace() { *all.entry(word.to_owned()).or_default() += 1; }\n    all\n}\n#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]\npub struct A { pub a: Vec<Option<String>>, pub b: HashMapKey }\n#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]\npub enum HashMapKey { A(String), B { c: u32 }, C }\n",
    ),
];

/// How a program is recorded.
#[derive(Clone, Copy)]
struct Way {
    timing: &'static str,
    companion: bool,
    is_root: bool,
}

fn main() -> ExitCode {
    let only = std::env::args().nth(1);
    let is_root = need::root("what root's companion sees");
    let scratch = tempfile::TempDir::new().expect("a directory");
    let lib = prepare(scratch.path());
    let (mut is_well, mut runs) = (true, 0);
    println!("| program | way | processes | threads | calls | differences |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (name, command) in PROGRAMS {
        if only.as_deref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let program = command[0].rsplit('/').next().unwrap_or_default();
        if need::tool(name, program).is_none() {
            continue;
        }
        for way in ways(is_root) {
            if !way.is_root && is_root && !is_open_to_all(program) {
                println!("| {name} | {}, user | | | | only root may run it here |", way.timing);
                continue;
            }
            runs += 1;
            is_well &= hold(scratch.path(), &lib, name, command, way);
        }
    }
    println!("{runs} runs");
    if is_well && runs > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether an ordinary user can start it: a toolchain may be in root's home.
fn is_open_to_all(program: &str) -> bool {
    let mut which = Command::new("which");
    which.arg(program).uid(NOBODY).gid(NOBODY).stdout(Stdio::null()).stderr(Stdio::null());
    which.status().is_ok_and(|status| status.success())
}

/// All that this user can try.
fn ways(is_root: bool) -> Vec<Way> {
    let mut ways = Vec::new();
    for is_root in [true, false].into_iter().filter(|root| is_root || !root) {
        for companion in [true, false] {
            for timing in ["adaptive", "all", "count"] {
                ways.push(Way { timing, companion, is_root });
            }
        }
    }
    ways
}

/// Writes what the programs need, in a directory that everybody can use; gives the library there.
fn prepare(directory: &Path) -> PathBuf {
    let open = |path: &Path| {
        fs::set_permissions(path, Permissions::from_mode(0o777)).expect("opened to all");
    };
    open(directory);
    let lib = libchase();
    for name in ["libchase.so", "chase-companion"] {
        fs::copy(lib.with_file_name(name), directory.join(name)).expect("copied");
    }
    for (name, text) in FILES {
        fs::write(directory.join(name), text).expect("written");
    }
    let numbers: String = (0..100_000_u64).map(|n| format!("{}\n", n * 7_919 % 999_983)).collect();
    fs::write(directory.join("numbers"), numbers).expect("written");
    let function = |n| {
        format!(
            "int f{n}(int a) {{ int s = {n}; for (int i = 0; i < a; i++) s += i % 7; return s; }}\n"
        )
    };
    fs::write(directory.join("functions.c"), (0..200).map(function).collect::<String>())
        .expect("written");
    directory.join("libchase.so")
}

/// Records one run and prints its row; whether all is as it should be.
fn hold(directory: &Path, lib: &Path, name: &str, command: &[&str], way: Way) -> bool {
    let who = if way.is_root { "root" } else { "user" };
    let with = if way.companion { ", companion" } else { "" };
    let how = format!("{}, {who}{with}", way.timing);
    match look(directory, lib, command, way) {
        Ok((head, found)) => {
            println!("| {name} | {how} | {head} | {} |", found.len());
            for sentence in found.iter().take(SHOWN) {
                println!("  {sentence}");
            }
            found.is_empty()
        }
        Err(why) => {
            println!("| {name} | {how} | | | | {why} |");
            false
        }
    }
}

fn look(
    directory: &Path,
    lib: &Path,
    command: &[&str],
    way: Way,
) -> Result<(String, Vec<String>), String> {
    let work = directory.join(if way.is_root { "root" } else { "user" });
    let _ = fs::remove_dir_all(&work);
    fs::create_dir(&work).map_err(|why| why.to_string())?;
    for (name, _) in FILES.iter().chain(&[("numbers", ""), ("functions.c", "")]) {
        fs::copy(directory.join(name), work.join(name)).map_err(|why| why.to_string())?;
    }
    let output = work.join("out");
    let mut program = Command::new(command[0]);
    program.args(&command[1..]).current_dir(&work).process_group(0);
    program.env("HOME", &work).env("LC_ALL", "C").env("LD_PRELOAD", lib);
    program.env("CHASE_OUTPUT", &output).env("CHASE_TIMING", way.timing);
    program.env("CHASE_SYSCALLS", if way.companion { "auto" } else { "off" });
    program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !way.is_root {
        std::os::unix::fs::chown(&work, Some(NOBODY), Some(NOBODY))
            .map_err(|why| why.to_string())?;
        program.uid(NOBODY).gid(NOBODY);
    }
    let mut child = program.spawn().map_err(|why| why.to_string())?;
    let since = Instant::now();
    while child.try_wait().map_err(|why| why.to_string())?.is_none() {
        if since.elapsed() > LIMIT {
            // SAFETY: kill touches no memory; the group is our own child's, which was not waited for.
            unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
            let _ = child.wait();
            return Err(format!("not done after {LIMIT:?}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // The companion is done when it has let go of its lock.
    if let Ok(session) = fs::File::open(output.join("companion.session")) {
        session.lock().map_err(|why| why.to_string())?;
    }
    let (document, mut found) = of_views(&libchase().with_file_name("chase-report"), &output)?;
    found.extend(contradictions(&document, true));
    found.extend(of_clocks(&document));
    let processes = document["processes"].as_array().map_or(0, Vec::len);
    let totals = &document["totals"];
    Ok((format!("{processes} | {} | {}", totals["threads"], totals["calls"]), found))
}
