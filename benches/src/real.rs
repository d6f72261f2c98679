//! What real programs cost: wall time under chase, as a multiple of the bare run's.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::bench::{Bench, Under, installed};
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired};

const PART: &str = "real";
const LIMIT: Limit = Limit { least: 3, most: 7, time: Duration::from_secs(7) };

/// Times the bare run, where hot calls are sampled.
const BAR: f64 = 1.15;

/// Programs that are on most machines, each at some tenths of a second of its ordinary work, in
/// the directory that `inputs` fills.
const PROGRAMS: [(&str, &[&str]); 8] = [
    ("sort, 1M lines", &["sort", "-o", "sorted", "lines"]),
    ("sqlite3, 100k rows", &["sqlite3", ":memory:", ".read rows.sql"]),
    ("python3, json and re", &["python3", "work.py"]),
    ("perl, words and hashes", &["perl", "work.pl"]),
    ("xz -1", &["xz", "-1", "--keep", "--stdout", "some-lines"]),
    ("pigz -p 4", &["pigz", "-p", "4", "--keep", "--stdout", "lines"]),
    ("gcc -O2 and its children", &["gcc", "-O2", "-c", "work.c", "-o", "work.o"]),
    ("git log -p", &["git", "-C", "repository", "log", "-p"]),
];

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    inputs(&directory)?;
    for (what, command) in PROGRAMS {
        let (program, arguments) = (command[0], &command[1..]);
        if installed(program).is_none() {
            report.skipped(PART, what, &format!("{program} is not installed"));
            continue;
        }
        let prepared = match program {
            "git" => repository(&directory).map(|()| program.to_owned()),
            "python3" => interpreter(),
            _ => Ok(program.to_owned()),
        };
        match prepared {
            Ok(program) => {
                let mut command = vec![program];
                command.extend(arguments.iter().map(|a| (*a).to_owned()));
                row(bench, report, &directory, what, &command);
            }
            Err(why) => report.skipped(PART, what, &format!("{why:#}")),
        }
    }
    Ok(())
}

fn row(bench: &Bench, report: &mut Report, directory: &Path, what: &str, command: &[String]) {
    let wall = |under| Ok(bench.run_in(directory, under, command)?.wall.as_secs_f64() * 1e3);
    let measured = in_turns(
        bench.limit(LIMIT),
        [
            Turn::new(|| wall(Under::Nothing)),
            Turn::new(|| wall(Under::Chase)),
            Turn::new(|| wall(Under::ChaseAll)),
        ],
    );
    let [bare, adaptive, all] = measured;
    let bare = match bare {
        Ok(bare) => bare,
        Err(why) => return report.skipped(PART, what, &format!("{why:#}")),
    };
    for (timing, bar, chase) in [("adaptive", Some(BAR), adaptive), ("all", None, all)] {
        let what = format!("{what}, {timing}");
        match chase {
            Ok(chase) => report.measured(Figure {
                part: PART,
                what,
                unit: "×",
                bar,
                values: paired(&chase, &bare, |chase, bare| chase / bare),
                details: vec![("bare", "ms", bare.clone()), ("chase", "ms", chase)],
            }),
            Err(why) => report.failed(PART, &what, bar, &format!("{why:#}")),
        }
    }
}

/// What the programs work on; the same each time.
fn inputs(directory: &Path) -> Result<()> {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    };
    let lines = lines(1_000_000);
    write("lines", &lines)?;
    write("some-lines", &lines[..2_000_000])?;
    write(
        "rows.sql",
        "create table t (a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
insert into t select i, printf('row %08d', i * 7919 % 100003), i / 3.0 from n;
create index t_b on t (b);
select count(*), sum(c), max(b) from t where b like 'row 0%5%';
select substr(b, 1, 7) as g, sum(c) from t group by g order by g;
",
    )?;
    write(
        "work.py",
        "import json, re
rows = [{'id': i, 'name': f'item {i}', 'tags': ['a', 'b', str(i % 7)]} for i in range(20000)]
for _ in range(3):
    text = json.dumps(rows)
    rows = json.loads(text)
words = re.findall(r'item (\\d+)', text)
text = re.sub(r'\"name\": \"([^\"]*)\"', lambda m: m.group(1).upper(), text)
print(len(words), len(text))
",
    )?;
    write(
        "work.pl",
        "open my $in, '<', 'some-lines' or die;
my (%seen, $sum);
while (<$in>) {
    chomp;
    my $key = substr($_, 0, 3);
    push @{$seen{$key}}, length $_;
    $sum += hex(substr($_, 8, 4)) if /[0-9a-f]{4}7/;
}
print join(' ', map { $_ . scalar @{$seen{$_}} } (sort keys %seen)[0..9]), \" $sum\n\";
",
    )?;
    let mut functions = String::from("#include <stdio.h>\n#include <string.h>\n");
    for i in 0..150 {
        // Writing to a String can't fail.
        let _ = writeln!(
            functions,
            "int f{i}(const char *s, int n) {{ int x = {i}; char b[64];
 for (int i = 0; i < n; i++) {{ x = x * 31 + s[i]; if (x % 7 == {}) x ^= (int)strlen(s); }}
 snprintf(b, sizeof b, \"%d %s\", x, s); return b[0] + x; }}",
            i % 7
        );
    }
    write("work.c", &functions)
}

/// Lines of 16 hexadecimal digits in no order.
fn lines(count: usize) -> String {
    let mut text = String::with_capacity(17 * count);
    let mut state: u64 = 1;
    for _ in 0..count {
        // Knuth's MMIX generator.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let _ = writeln!(text, "{state:016x}");
    }
    text
}

/// What `python3` stands for: a wrapper script would be measured instead of it.
fn interpreter() -> Result<String> {
    let python = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .context("starting python3")?;
    let path = String::from_utf8(python.stdout).context("reading where python3 is")?;
    match path.trim() {
        "" => bail!("python3 does not say where it is"),
        path => Ok(path.to_owned()),
    }
}

/// A repository with a history of small changes.
fn repository(directory: &Path) -> Result<()> {
    let path = directory.join("repository");
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        git
    };
    let path = path.display().to_string();
    if !git(&["init", "--quiet", "--bare", "--initial-branch=main", &path]).status()?.success() {
        bail!("git init failed");
    }
    let mut import = git(&["-C", &path, "fast-import", "--quiet"]).stdin(Stdio::piped()).spawn()?;
    let mut history = String::new();
    for commit in 0..12_000 {
        let mut file = lines(60);
        let _ = writeln!(file, "changed in {commit}");
        let _ = write!(
            history,
            "commit refs/heads/main\ncommitter A <a@example.org> {} +0000\ndata 6\nchange\n\
             M 644 inline file{}\ndata {}\n{file}\n",
            1_700_000_000 + commit * 60,
            commit % 20,
            file.len()
        );
    }
    let mut stdin = import.stdin.take().context("git fast-import has no input")?;
    stdin.write_all(history.as_bytes()).context("writing a history to git fast-import")?;
    drop(stdin);
    if !import.wait()?.success() {
        bail!("git fast-import failed");
    }
    Ok(())
}
