//! What chase says that it cost, against what it did cost: the processor time of a program and of all that it starts, bare
//! and under chase in turns, the companion's included.
//!
//! What is stated may be off by two points, or by a quarter of what was measured, whichever is more. A row's figure
//! is how far it is off, in parts of that.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::{Bench, Under, installed, unwatchable};
use crate::children::cpu_seconds;
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired};

const PART: &str = "stated";
const LIMIT: Limit = Limit { least: 3, most: 7, time: Duration::from_secs(15) };
/// Percent of the bare run's processor time that are always allowed.
const POINTS: f64 = 2.0;
/// The part of what was measured that is.
const PART_OF_IT: f64 = 0.25;

/// A name and a command; the first word is the program that must be there.
const PROGRAMS: [(&str, &[&str]); 10] = [
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
        &[
            "python3",
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
    let numbers: String = (0..400_000_u64).map(|n| format!("{}\n", n * 7_919 % 999_983)).collect();
    std::fs::write(directory.join("numbers"), numbers)?;
    let function = |n| {
        format!(
            "int f{n}(int a) {{ int s = {n}; for (int i = 0; i < a; i++) s += i % 7; return s; }}\n"
        )
    };
    std::fs::write(directory.join("functions.c"), (0..500).map(function).collect::<String>())?;
    let unwatchable = unwatchable();
    for (what, command) in PROGRAMS {
        if installed(command[0]).is_none() {
            report.skipped(PART, what, &format!("{} is not installed", command[0]));
            continue;
        }
        for with_companion in [false, true] {
            let how = if with_companion { "with the companion" } else { "without the companion" };
            let what = format!("{what}, {how}");
            match &unwatchable {
                Some(why) if with_companion => report.skipped(PART, &what, why),
                _ => row(bench, report, &directory, what, command, with_companion),
            }
        }
    }
    Ok(())
}

fn row(
    bench: &Bench,
    report: &mut Report,
    directory: &Path,
    what: String,
    command: &[&str],
    with_companion: bool,
) {
    let stated = RefCell::new(Vec::new());
    let measured = in_turns(
        bench.limit(LIMIT),
        [
            Turn::new(|| bare(bench, directory, command)),
            Turn::new(|| {
                let (seconds, percent) = under_chase(bench, directory, command, with_companion)?;
                stated.borrow_mut().push(percent);
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
    let measured = paired(&chase, &bare, |chase, bare| 100.0 * (chase / bare - 1.0));
    let stated = stated.into_inner();
    report.measured(Figure {
        part: PART,
        what,
        unit: "of what is allowed",
        bar: Some(1.0),
        values: paired(&stated, &measured, off_by),
        details: vec![
            ("stated", "%", stated.clone()),
            ("measured", "%", measured.clone()),
            ("bare", "s", bare),
            ("under chase", "s", chase),
        ],
    });
}

/// How far what is stated is off, in parts of what is allowed.
fn off_by(stated: f64, measured: f64) -> f64 {
    (stated - measured).abs() / POINTS.max(PART_OF_IT * measured)
}

fn bare(bench: &Bench, directory: &Path, command: &[&str]) -> Result<f64> {
    let before = cpu_seconds();
    bench.run_in(directory, Under::Nothing, command)?;
    Ok(cpu_seconds() - before)
}

/// Processor time, and what chase says that it took more, in percent. A companion starts the program here, and ends after
/// it, so that its own time is in that of this process's children.
fn under_chase(
    bench: &Bench,
    directory: &Path,
    command: &[&str],
    with_companion: bool,
) -> Result<(f64, f64)> {
    let output = bench.fresh();
    let path = output.display().to_string();
    let companion = bench.lib.with_file_name("chase-companion").display().to_string();
    let preload = format!("LD_PRELOAD={}", bench.lib.display());
    let to = format!("CHASE_OUTPUT={path}");
    let syscalls = format!("CHASE_SYSCALLS={}", if with_companion { "require" } else { "off" });
    let mut words = vec!["env", &preload, &to, &syscalls];
    if with_companion {
        words.splice(0..0, [&*companion, "--output", &path, "--"]);
    }
    words.extend(command);
    let before = cpu_seconds();
    bench.run_in(directory, Under::Nothing, &words)?;
    let seconds = cpu_seconds() - before;
    let stated = stated_percent(bench, &output);
    let _ = std::fs::remove_dir_all(&output);
    Ok((seconds, stated?))
}

fn stated_percent(bench: &Bench, output: &Path) -> Result<f64> {
    let mut reporter = Command::new(bench.lib.with_file_name("chase-report"));
    let shown =
        reporter.args(["libs", "--json"]).arg(output).output().context("starting chase-report")?;
    let document: Value = serde_json::from_slice(&shown.stdout).context("reading the report")?;
    let part = |name: &str| -> Result<f64> {
        let value = &document["overhead"][name];
        let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
        number.with_context(|| format!("a report without overhead.{name}"))
    };
    let parts = ["calls_ns", "beside_calls_ns", "watching_ns", "companion_ns"];
    let all: f64 = parts.into_iter().map(part).sum::<Result<f64>>()?;
    let without = part("without_ns")?;
    ensure!(without > 0.0, "the report knows nothing of processor time");
    Ok(100.0 * all / without)
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
