//! Every command in README, in docs/ and in the help of every command is tried, in a directory like that of a reader, who has a program
//! called `app` and recordings of it. Those that can't be are listed here, each with a reason.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use chase_tests::compile::Build;
use chase_tests::launcher::chase;
use chase_tests::need;
use chase_tests::trial::libchase;
use tempfile::TempDir;

/// Beginnings of commands that are not tried, and why.
const NOT_TRIED: &[(&str, &str)] = &[
    ("cargo ", "it builds this project, or tests it"),
    ("CHASE_", "a setting, without a command"),
    ("setcap ", "it changes a file of the system"),
    ("apt", "it installs packages"),
    ("dpkg", "it installs packages"),
    ("git clone", "it needs a network"),
    ("chase top 4711#", "it needs a terminal (tests/tests/top.rs)"),
    ("chase top#", "it needs a terminal (tests/tests/top.rs)"),
    ("chase attach", "it changes a process that is not recorded (tests/tests/attach.rs)"),
    ("tar -xf", "it needs an archive of a run of very many processes (chase-report fold is tried)"),
    ("chase-report export --format folded | inferno-flamegraph", "inferno is another project's"),
    ("chase-report export [RECORDING]", "a pattern of commands"),
    ("... ", "a pattern of commands"),
    ("chase itself", "a line of a table"),
    ("chase-report syscalls slow", "a finding's, of a recording that a script makes"),
    ("chase-report reads both", "a part of a drawing"),
    ("chase-report out --run all", "it needs what containers have recorded"),
    ("chase record -o before -- make", "it needs a project (the same with ./app is tried)"),
    ("chase record --follow 'cc1*,ld' -- make", "it needs a project"),
];

/// What stands for something of the reader's.
const MEANT: &[(&str, &str)] = &[
    ("A", "old.data"),
    ("B", "new.data"),
    ("F", "speedscope"),
    ("FILE", "file.html"),
    ("DIR", "charts"),
    ("NAME", "worker"),
    ("lock:NAME", "lock:mutex"),
    ("je_malloc", "calloc"),
    ("--its-option", "--its-option"),
];

/// What scripts need, by a word in them.
const TOOLS: &[(&str, &str)] = &[
    ("sqlite3", "/usr/bin/sqlite3"),
    ("jemalloc", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"),
    ("python3", "/usr/bin/python3"),
];

/// What may be missing without a companion, which needs privilege and a kernel with BTF.
const NEEDS_COMPANION: &[&str] = &[
    "syscalls",
    "narrate",
    "components",
    "graph",
    "--narrate",
    "syscall:",
    "on_cpu",
    "hot",
    "chase-companion",
];

/// A reader's directory.
struct Reader {
    directory: TempDir,
    /// A recorded process that runs.
    running: Child,
    pid: u32,
}

impl Reader {
    fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let built = Build::program("documented.c").without_libtrap().flags("-pthread -lz").build();
        fs::copy(&built, at("app")).expect("the program");
        fs::copy(&built, at("server")).expect("the same under another name");
        for build in ["old-build", "new-build"] {
            fs::create_dir(at(build)).expect("a directory");
            fs::copy(&built, at(build).join("bench")).expect("the same");
        }
        fs::write(at("test.sh"), "#!/bin/sh\n./app\n").expect("a script");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(at("test.sh"), mode).expect("its mode");
        // One recording of it is what all are copies of, so that each run of the tests does the same.
        let record = |output: &str| {
            let words = ["record", "-q", "-o", output, "./app"];
            let output = command(directory.path(), &chase()).args(words).output().expect("runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        for name in ["chase.data", "old.data", "new.data", "fleet.data"] {
            record(name);
        }
        let recording = the_recording(&at("old.data"));
        fs::copy(recording, at("old.data").join("app.4711.chase")).expect("a copy");
        let others = [
            "reference.data",
            "before.data",
            "after.data",
            "glibc.data",
            "jemalloc.data",
            "a1.data",
            "a2.data",
            "b.data",
        ];
        for name in others {
            fs::create_dir(at(name)).expect("a directory");
            fs::copy(the_recording(&at("new.data")), at(name).join("app-1.chase")).expect("a copy");
        }
        let mut command = command(directory.path(), &at("app"));
        command.arg("wait").env("LD_PRELOAD", libchase()).env("CHASE_OUTPUT", at("live.data"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = command.spawn().expect("starts");
        let mut line = String::new();
        BufReader::new(running.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let pid = running.id();
        Self { directory, running, pid }
    }

    /// The command as it is meant, in a shell.
    fn tries(&self, command: &str) -> Output {
        let programs = chase().parent().expect("a directory").display().to_string();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        let words: Vec<String> = command.split(' ').map(|word| self.meant(word)).collect();
        let mut shell = self::command(self.directory.path(), Path::new("sh"));
        shell.args(["-c", &words.join(" ")]).env("PATH", path);
        // What an earlier command has written is overwritten.
        for name in ["report.html", "file.html"] {
            let _ = fs::remove_file(self.directory.path().join(name));
        }
        shell.output().expect("a shell")
    }

    fn meant(&self, word: &str) -> String {
        // As built, or as installed.
        let word = word.strip_prefix("target/release/").unwrap_or(word);
        if word == "4711" {
            return self.pid.to_string();
        }
        let found = MEANT.iter().find(|(shown, _)| *shown == word);
        found.map_or_else(|| word.to_owned(), |(_, meant)| (*meant).to_owned())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // (Its input ends with it.)
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}

fn command(directory: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).env_remove("LD_PRELOAD").env("XDG_CONFIG_HOME", directory);
    for name in ["CHASE_OUTPUT", "CHASE_TIMING", "CHASE_SYSCALLS", "COLUMNS", "PAGER"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

fn the_recording(directory: &Path) -> PathBuf {
    let files =
        fs::read_dir(directory).expect("recordings").map(|entry| entry.expect("one").path());
    files.into_iter().find(|path| path.extension().is_some_and(|it| it == "chase")).expect("one")
}

/// The commands of a text: lines of its indented blocks that begin as commands do, without what is explained beside them.
fn commands(text: &str) -> Vec<String> {
    // Lines that go on are one.
    let text: Vec<&str> = text.split("\\\n").map(|part| part.trim_start_matches(' ')).collect();
    let text = text.concat();
    let mut found = Vec::new();
    let (mut is_fenced, mut is_block, mut before) = (false, false, "");
    for line in text.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            is_block = line.starts_with("    ") && (is_block || before.trim().is_empty());
            found.extend(is_block.then(|| line.trim()));
        }
        before = line;
    }
    found.into_iter().flat_map(of_line).collect()
}

/// The scripts of a text: blocks that are fenced as `sh`.
fn scripts(text: &str) -> Vec<String> {
    let parts = text.split("\n```sh\n").skip(1);
    parts.filter_map(|part| part.split_once("\n```")).map(|(script, _)| script.to_owned()).collect()
}

/// The examples of a help text.
fn examples(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| !line.starts_with("Examples:")).skip(1);
    let lines = lines.take_while(|line| !line.trim().is_empty());
    lines.flat_map(|line| of_line(line.trim())).collect()
}

/// The commands in a line, if it is one; `libs | apis` are two.
fn of_line(line: &str) -> Vec<String> {
    const BEGINNINGS: &[&str] = &[
        "chase",
        "cargo",
        "setcap",
        "apt",
        "dpkg",
        "git",
        "target/",
        "CHASE_",
        "LD_PRELOAD=",
        "tar",
        "... ",
    ];
    if !BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)) {
        return Vec::new();
    }
    // (A colour or a mark in C is no command, nor is a name of the library.)
    if line.starts_with("chase_") || line.starts_with("chase.") {
        return Vec::new();
    }
    let command = line.split("   ").next().unwrap_or(line);
    let command = command.split(" # ").next().unwrap_or(command);
    let command = command.split("  ").next().unwrap_or(command).trim();
    match command.split_once(" | ") {
        // Another view, and no other program.
        Some((one, other)) if !other.contains(' ') => {
            let program = one.split(' ').next().unwrap_or_default();
            vec![one.to_owned(), format!("{program} {other}")]
        }
        _ => vec![command.to_owned()],
    }
}

/// Why a command is not tried.
fn why_not(command: &str) -> Option<&'static str> {
    let whole = format!("{command}#");
    NOT_TRIED.iter().find(|(beginning, _)| whole.starts_with(beginning)).map(|(_, why)| *why)
}

/// README and what is in docs/.
fn texts() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = fs::read_dir(root.join("docs")).expect("docs");
    let docs = docs.map(|entry| entry.expect("a file").path());
    let mut files: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    files.sort();
    files.insert(0, root.join("README.md"));
    let named = |file: PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, fs::read_to_string(&file).expect("text"))
    };
    files.into_iter().map(named).collect()
}

/// All commands, with where they stand, each once.
fn documented() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (name, text) in texts() {
        all.extend(commands(&text).into_iter().map(|command| (name.clone(), command)));
    }
    let of = |program| helps(program).into_iter().map(move |words| (program, words));
    let programs = of("chase").chain(of("chase-report"));
    for (program, words) in programs.chain([("chase-companion", Vec::new())]) {
        let help = help(program, &words);
        let name = format!("{program} {} --help", words.join(" "));
        let found = examples(&help);
        assert!(!found.is_empty(), "{name} has no examples: {help}");
        all.extend(found.into_iter().map(|command| (name.clone(), command)));
    }
    let mut known = BTreeSet::new();
    all.retain(|(_, command)| known.insert(command.clone()));
    all
}

fn help(program: &str, words: &[String]) -> String {
    let output = Command::new(chase().with_file_name(program)).args(words).arg("--help").output();
    String::from_utf8(output.expect("it runs").stdout).expect("UTF-8")
}

/// The commands of a program, as its help lists them, and itself.
fn helps(program: &str) -> Vec<Vec<String>> {
    let text = help(program, &[]);
    let lines = text.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let lines = lines.take_while(|line| !line.trim().is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    // `report` has its own help in the other program, and that of help is clap's.
    let names = names.filter(|name| !["help", "report"].contains(name));
    let mut all: Vec<Vec<String>> = names.map(|name| vec![name.to_owned()]).collect();
    assert!(all.len() > 3, "{text}");
    all.push(Vec::new());
    all
}

#[test]
fn commands_do_what_they_say() {
    let reader = Reader::new();
    let (mut tried, mut left) = (0, BTreeSet::new());
    let mut failures = Vec::new();
    for (place, command) in documented() {
        if why_not(&command).is_some() {
            left.insert(command);
            continue;
        }
        let output = reader.tries(&command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        tried += 1;
        let is_right = match output.status.code() {
            Some(0) => true,
            // Whether a limit is kept is not known here; that it can be told is.
            Some(3) => command.contains("--fail-if"),
            Some(1 | 2 | 125) if NEEDS_COMPANION.iter().any(|word| command.contains(word)) => {
                let is_lacking = ["system call", "syscalls", "samples", "companion", "--narrate"];
                let is_lacking = is_lacking.iter().any(|word| said.contains(word));
                if is_lacking {
                    need::skip(&command, "there is no companion here");
                }
                is_lacking
            }
            _ => false,
        };
        if !is_right {
            failures.push(format!("{place}: {command}: {}\n{said}", output.status));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(tried > 60, "only {tried} commands were found; left out: {left:#?}");
}

/// The scripts of a text are tried in one directory, one after the other, as a reader would.
#[test]
fn scripts_do_what_they_say() {
    let reader = Reader::new();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", chase().parent().expect("a directory").display());
    let mut failures = Vec::new();
    let mut tried = 0;
    for (name, text) in texts() {
        let directory = reader.directory.path().join(&name);
        fs::create_dir(&directory).expect("a directory");
        fs::copy(reader.directory.path().join("app"), directory.join("app")).expect("the program");
        for script in scripts(&text) {
            let lacks =
                |(word, file): &&(&str, &str)| script.contains(word) && !Path::new(file).exists();
            if let Some((_, file)) = TOOLS.iter().find(lacks) {
                need::skip(&name, &format!("{file} is not installed"));
                continue;
            }
            // Fewer rows tell as much, in less time.
            let script = script.replace("seq 1000", "seq 20");
            let mut shell = command(&directory, Path::new("sh"));
            let output = shell.args(["-e", "-c", &script]).env("PATH", &path).output();
            let output = output.expect("a shell");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            tried += 1;
            let is_right = match output.status.code() {
                Some(0) => true,
                Some(3) => script.contains("--fail-if"),
                Some(1) => script.contains("syscalls") && said.contains("system call"),
                _ => false,
            };
            if !is_right {
                failures.push(format!("{name}: {script}: {}\n{said}", output.status));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(tried > 0, "there are no scripts");
}

#[test]
fn commands_are_found_in_texts() {
    let text = "\
Text with chase record in it.

    chase record ./app   # a comment
    chase-report libs | apis     two of them
    chase-report export --format folded | inferno-flamegraph --countname ns > app.svg
    it prints this

```sh
chase doctor
```
";
    let found = commands(text);
    let expected = [
        "chase record ./app",
        "chase-report libs",
        "chase-report apis",
        "chase-report export --format folded | inferno-flamegraph --countname ns > app.svg",
    ];
    assert_eq!(found, expected);
    assert_eq!(scripts(text), ["chase doctor"]);
}
