//! What chase says that it cost, against what it did cost: the processor time of a program and of all that it starts, bare
//! and under chase in turns, the shortest run of each; and that of the companion beside it.
//!
//! What is stated may be off by two points, or by a quarter of what was measured, whichever is more. A row's figure
//! is how far it is off, in parts of that; of the companion, what is stated is compared as it is. Where the rounds of one half
//! measure more than that beside those of the other, the machine has too much other work to say: such a row has no bar.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::{Bench, Under, installed, unwatchable};
use crate::children::cpu_seconds;
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns};

const PART: &str = "stated";
const LIMIT: Limit = Limit { least: 8, most: 16, time: Duration::from_secs(20) };
/// Percent of the bare run's processor time that are always allowed.
const POINTS: f64 = 2.0;
/// The part of what was measured that is.
const PART_OF_IT: f64 = 0.25;

/// Runs a command and adds the processor time of it and of what it starts to a file: user's and system's, in seconds.
const TIMED: [&str; 4] =
    ["bash", "-c", r#"TIMEFORMAT='%3U %3S'; { time "$@" 2>&3; } 3>&2 2>seconds"#, "timed"];
const SECONDS: &str = "seconds";

/// What chase says of a run, and what was measured of it under chase.
struct Stated {
    /// What the processes took longer, in percent of what they would have taken without.
    percent: f64,
    companion_s: f64,
    companion_measured_s: f64,
}

/// A name and a command; the first word is the program that must be there.
pub(crate) const PROGRAMS: [(&str, &[&str]); 10] = [
    ("bash: 200 times true", &["bash", "-c", "for ((i = 0; i < 200; i++)); do /bin/true; done"]),
    (
        "bash: 40 execs and as many subshells",
        &["bash", "-c", "for i in {1..40}; do ls / > list; x=$(echo $i | tr 1 2); done"],
    ),
    (
        "sh, as configure",
        &[
            "sh",
            "-c",
            "for i in 1 2 3 4 5 6 7 8; do echo \"int main(){return $i;}\" > c.c; gcc -c c.c; expr $i + 1 | sed s/1/2/ | grep -c 2 || :; done",
        ],
    ),
    (
        "perl",
        &["perl", "-e", "for (1 .. 1500000) { $h{$_ % 1000} .= chr(65 + $_ % 26) if $_ % 3 }"],
    ),
    ("php", &["php", "-r", "for ($i = 0; $i < 900000; $i++) $a[$i % 1000] = md5((string)$i);"]),
    (
        "python3",
        // (What PATH leads to may be a script that looks for one.)
        &[
            "/usr/bin/python3",
            "-c",
            "import json\nfor i in range(60000): json.loads(json.dumps({'a': i, 'b': [i] * 5}))",
        ],
    ),
    ("xz", &["sh", "-c", "exec xz -2 -c numbers > packed"]),
    ("sort", &["sort", "-R", "numbers", "-o", "sorted"]),
    (
        "sqlite3",
        &[
            "sqlite3",
            ":memory:",
            "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 400000) insert into t select x, x * 7 % 1000 from c; select b, count(*) from t group by b order by 2 limit 5;",
        ],
    ),
    ("gcc", &["gcc", "-O2", "-c", "functions.c"]),
];

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    prepare(&directory)?;
    let unwatchable = unwatchable();
    let deadline = bench.deadline();
    for (at, (what, command)) in PROGRAMS.into_iter().enumerate() {
        if installed(command[0]).is_none() {
            report.skipped(PART, what, &format!("{} is not installed", command[0]));
            continue;
        }
        for with_companion in [false, true] {
            let rows = 2 * (PROGRAMS.len() - at) - usize::from(with_companion);
            let limit = deadline.part(bench.limit(LIMIT), rows);
            let how = if with_companion { "with the companion" } else { "without the companion" };
            let what = format!("{what}, {how}");
            match &unwatchable {
                Some(why) if with_companion => report.skipped(PART, &what, why),
                _ => row(bench, report, (&directory, command), limit, what, with_companion),
            }
        }
    }
    Ok(())
}

/// Writes what the programs work on.
pub(crate) fn prepare(directory: &Path) -> Result<()> {
    let numbers: String = (0..400_000_u64).map(|n| format!("{}\n", n * 7_919 % 999_983)).collect();
    std::fs::write(directory.join("numbers"), numbers)?;
    let function = |n| {
        format!(
            "int f{n}(int a) {{ int s = {n}; for (int i = 0; i < a; i++) s += i % 7; return s; }}\n"
        )
    };
    std::fs::write(directory.join("functions.c"), (0..500).map(function).collect::<String>())?;
    Ok(())
}

fn row(
    bench: &Bench,
    report: &mut Report,
    (directory, command): (&Path, &[&str]),
    limit: Limit,
    what: String,
    with_companion: bool,
) {
    let stated = RefCell::new(Vec::new());
    let measured = in_turns(
        limit,
        [
            Turn::new(|| bare(bench, directory, command)),
            Turn::new(|| {
                let (seconds, found) = under_chase(bench, directory, command, with_companion)?;
                stated.borrow_mut().push(found);
                Ok(seconds)
            }),
        ],
    );
    let (bare, chase) = match measured {
        [Ok(bare), Ok(chase)] => (bare, chase),
        [Err(why), _] | [_, Err(why)] => {
            return report.failed(PART, &what, Some(1.0), &format!("{why:#}"));
        }
    };
    let every_second = |from| measured_percent(&bare, &chase, from, 2);
    let halves = vec![every_second(0), every_second(1)];
    let measured = measured_percent(&bare, &chase, 0, 1);
    let all = stated.into_inner();
    let stated: Vec<f64> = all.iter().map(|run| run.percent).collect();
    let values = stated.iter().map(|&stated| off_by(stated, measured)).collect();
    let mut details = vec![
        ("stated", "%", stated),
        ("measured", "%", vec![measured]),
        ("by half of the rounds", "%", halves.clone()),
        ("bare", "s", bare),
        ("under chase", "s", chase),
    ];
    if with_companion {
        details.push(("companion stated", "s", all.iter().map(|r| r.companion_s).collect()));
        let measured = all.iter().map(|run| run.companion_measured_s).collect();
        details.push(("companion measured", "s", measured));
    }
    let unit = "of what is allowed";
    let is_settled = (halves[0] - halves[1]).abs() <= allowed(measured);
    let bar = (all.len() >= LIMIT.least && is_settled).then_some(1.0);
    report.measured(Figure { part: PART, what, unit, bar, values, details });
}

/// How much longer the shortest run under chase took than the shortest bare one, in percent, of every `step`th round. (Whatever
/// else a machine does only adds to a run.)
fn measured_percent(bare: &[f64], chase: &[f64], from: usize, step: usize) -> f64 {
    let shortest =
        |runs: &[f64]| runs.iter().skip(from).step_by(step).copied().fold(f64::INFINITY, f64::min);
    100.0 * (shortest(chase) / shortest(bare) - 1.0)
}

/// By how many percent what is stated may be off.
fn allowed(measured: f64) -> f64 {
    POINTS.max(PART_OF_IT * measured)
}

/// How far what is stated is off, in parts of what is allowed.
fn off_by(stated: f64, measured: f64) -> f64 {
    (stated - measured).abs() / allowed(measured)
}

fn bare(bench: &Bench, directory: &Path, command: &[&str]) -> Result<f64> {
    let words: Vec<&str> = TIMED.into_iter().chain(command.iter().copied()).collect();
    bench.run_in(directory, Under::Nothing, &words)?;
    seconds(directory)
}

/// What the last command took there.
fn seconds(directory: &Path) -> Result<f64> {
    let text = std::fs::read_to_string(directory.join(SECONDS)).context("reading a time")?;
    let parts =
        text.split_whitespace().map(|part| part.parse::<f64>().context("a time in seconds"));
    parts.sum()
}

/// Processor time, and what chase says of it. A companion starts the program here, and ends after it, so that its own time
/// is the rest of what this process's children took.
fn under_chase(
    bench: &Bench,
    directory: &Path,
    command: &[&str],
    with_companion: bool,
) -> Result<(f64, Stated)> {
    let output = bench.fresh();
    let path = output.display().to_string();
    let companion = bench.lib.with_file_name("chase-companion").display().to_string();
    let preload = format!("LD_PRELOAD={}", bench.lib.display());
    let to = format!("CHASE_OUTPUT={path}");
    let syscalls = format!("CHASE_SYSCALLS={}", if with_companion { "require" } else { "off" });
    let mut words = match with_companion {
        true => vec![&*companion, "--output", &path, "--"],
        false => Vec::new(),
    };
    words.extend(TIMED);
    words.extend(["env", &preload, &to, &syscalls]);
    words.extend(command);
    let before = cpu_seconds();
    bench.run_in(directory, Under::Nothing, &words)?;
    let all = cpu_seconds() - before;
    let seconds = seconds(directory)?;
    let stated = stated(bench, &output, all - seconds);
    let _ = std::fs::remove_dir_all(&output);
    Ok((seconds, stated?))
}

fn stated(bench: &Bench, output: &Path, companion_measured_s: f64) -> Result<Stated> {
    let mut reporter = Command::new(bench.lib.with_file_name("chase-report"));
    let shown =
        reporter.args(["libs", "--json"]).arg(output).output().context("starting chase-report")?;
    let document: Value = serde_json::from_slice(&shown.stdout).context("reading the report")?;
    let part = |name: &str| -> Result<f64> {
        let value = &document["overhead"][name];
        let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
        number.with_context(|| format!("a report without overhead.{name}"))
    };
    let inside = ["calls_ns", "beside_calls_ns", "watching_ns"];
    let inside: f64 = inside.into_iter().map(part).sum::<Result<f64>>()?;
    let without = part("without_ns")?;
    ensure!(without > 0.0, "the report knows nothing of processor time");
    let companion_s = part("companion_ns")? / 1e9;
    Ok(Stated { percent: 100.0 * inside / without, companion_s, companion_measured_s })
}

#[cfg(test)]
mod tests {
    use super::off_by;

    #[test]
    fn two_points_or_a_quarter_are_allowed() {
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        near(off_by(3.0, 1.0), 1.0);
        near(off_by(0.0, 1.0), 0.5);
        near(off_by(150.0, 200.0), 1.0);
        near(off_by(200.0, 200.0), 0.0);
    }
}
