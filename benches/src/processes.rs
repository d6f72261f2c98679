//! What a thread, a forked process and a started program take more, from creation to wait.

use std::time::Duration;

use anyhow::Result;

use crate::bench::{Bench, Under};
use crate::programs::{gcc, source};
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired};

const PART: &str = "processes";
const LIMIT: Limit = Limit { least: 3, most: 11, time: Duration::from_secs(12) };

/// What is created, how the program calls that, how many in a run and at least.
const KINDS: [(&str, &str, u32, u32); 3] = [
    ("thread: create, join", "thread", 10_000, 1_000),
    ("process: fork, exit, wait", "fork", 1_000, 100),
    ("program: fork, exec, exit, wait", "exec", 300, 30),
];

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    let program = directory.join("processes").display().to_string();
    let source = source("processes.c").display().to_string();
    gcc(&directory, &["-fno-builtin", "-pthread", &source, "-o", &program])?;
    for (kind, argument, most, least) in KINDS {
        let count = bench.count(most, least).to_string();
        let command = [program.as_str(), argument, &count];
        let run = |under| Ok(bench.run(under, &command)?.number(0)? / 1e3);
        let [bare, adaptive, all] = in_turns(
            bench.limit(LIMIT),
            [
                Turn::new(|| run(Under::Nothing)),
                Turn::new(|| run(Under::Chase)),
                Turn::new(|| run(Under::ChaseAll)),
            ],
        );
        for (timing, chase) in [("adaptive", adaptive), ("all", all)] {
            let what = format!("{kind}, {timing}");
            match (&bare, chase) {
                (Ok(bare), Ok(chase)) => report.measured(Figure {
                    part: PART,
                    what,
                    unit: "µs added",
                    bar: None,
                    values: paired(&chase, bare, |chase, bare| chase - bare),
                    details: vec![("bare", "µs", bare.clone()), ("chase", "µs", chase)],
                }),
                (Err(why), _) => report.failed(PART, &what, None, &format!("{why:#}")),
                (_, Err(why)) => report.failed(PART, &what, None, &format!("{why:#}")),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_program_creates_each_kind() {
        let bench = Bench::new(PathBuf::new(), 1.0).unwrap();
        let directory = bench.directory(PART).unwrap();
        let program = directory.join("processes").display().to_string();
        let source = source("processes.c").display().to_string();
        gcc(&directory, &["-fno-builtin", "-pthread", &source, "-o", &program]).unwrap();
        for (_, argument, ..) in KINDS {
            let run = bench.run(Under::Nothing, &[program.as_str(), argument, "5"]).unwrap();
            assert!(run.number(0).unwrap() > 1e3, "{argument}");
        }
        let unknown = bench.run(Under::Nothing, &[program.as_str(), "other", "5"]);
        assert!(unknown.err().unwrap().to_string().contains("exited with 2: usage:"));
    }
}
