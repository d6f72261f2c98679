//! What the start of a program costs: wall time from exec to exit.

mod large;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::bench::{Bench, Under};
use crate::programs::gcc;
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired};

const PART: &str = "startup";
const OBJECTS: usize = 100;
/// Functions that each object exports; it imports as many.
const FUNCTIONS: usize = 10;
/// Milliseconds added, to this program and to one as large as a browser.
const BAR: f64 = 30.0;
const LARGE_BAR: f64 = 100.0;

const LIMIT: Limit = Limit { least: 5, most: 41, time: Duration::from_secs(6) };

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = bench.directory(PART)?;
    let many = build(&directory, OBJECTS)?;
    added(bench, report, &many, format!("{OBJECTS} objects, {FUNCTIONS} imports each"), Some(BAR));
    let none = build(&directory, 0)?;
    added(bench, report, &none, "C library only".to_owned(), None);
    let large =
        format!("{} objects, {} imports", large::OBJECTS, large::OBJECTS * large::FUNCTIONS);
    for (binding, bound) in [("lazy", "bound when called"), ("now", "bound at the start")] {
        let program = large::build(&directory, large::OBJECTS, binding)?;
        added(bench, report, &program, format!("{large}, {bound}"), Some(LARGE_BAR));
    }
    Ok(())
}

fn added(bench: &Bench, report: &mut Report, program: &Path, what: String, bar: Option<f64>) {
    let wall = |under| Ok(bench.run(under, &[program])?.wall.as_secs_f64() * 1e3);
    let measured = in_turns(
        bench.limit(LIMIT),
        [Turn::new(|| wall(Under::Nothing)), Turn::new(|| wall(Under::Chase))],
    );
    match measured {
        [Ok(bare), Ok(chase)] => report.measured(Figure {
            part: PART,
            what,
            unit: "ms",
            bar,
            values: paired(&chase, &bare, |chase, bare| chase - bare),
            details: vec![("bare", "ms", bare), ("chase", "ms", chase)],
        }),
        [Err(why), _] | [_, Err(why)] => report.failed(PART, &what, bar, &format!("{why:#}")),
    }
}

/// A program that calls `objects` libraries, each of which imports from its two neighbours.
fn build(directory: &Path, objects: usize) -> Result<PathBuf> {
    // As they import from each other, they find their neighbours at run time.
    let parts: Vec<usize> = (0..objects).collect();
    in_parallel(&parts, |&object| {
        let (source, output) = (format!("part{object}.c"), format!("libpart{object}.so"));
        write(directory, &source, &library(object, objects))?;
        gcc(directory, &["-fPIC", "-shared", &source, "-o", &output])
    })?;

    let source = format!("main{objects}.c");
    write(directory, &source, &program(objects))?;
    let output = directory.join(format!("start{objects}"));
    let mut arguments = vec![source, "-o".to_owned(), output.display().to_string()];
    arguments.extend(["-L.".to_owned(), "-Wl,-rpath,$ORIGIN".to_owned()]);
    arguments.extend((0..objects).map(|i| format!("-lpart{i}")));
    gcc(directory, &arguments)?;
    Ok(output)
}

fn write(directory: &Path, name: &str, text: &str) -> Result<()> {
    let path = directory.join(name);
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}

/// Does something with each of them, a few at a time, as many as there are processors.
fn in_parallel<T: Sync>(items: &[T], each: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let per_worker = items.len().div_ceil(workers).max(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = items
            .chunks(per_worker)
            .map(|items| scope.spawn(|| items.iter().try_for_each(&each)))
            .collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

fn library(object: usize, objects: usize) -> String {
    let (next, last) = ((object + 1) % objects, (object + objects - 1) % objects);
    let mut text = String::new();
    for function in 0..FUNCTIONS {
        // Half of the imports from either neighbour; none of them is called, as the argument is 0.
        let other = if function % 2 == 0 { next } else { last };
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "int part{other}_{function}(int);\n\
             int part{object}_{function}(int n) {{ return n ? 1 + part{other}_{function}(n - 1) : 0; }}"
        );
    }
    text
}

fn program(objects: usize) -> String {
    let mut text = String::new();
    for object in 0..objects {
        let _ = writeln!(text, "int part{object}_0(int);");
    }
    // It must not end without a library call of its own.
    text.push_str("#include <stdlib.h>\nint main(void) {\n\tint sum = atoi(\"0\");\n");
    for object in 0..objects {
        let _ = writeln!(text, "\tsum += part{object}_0(0);");
    }
    text.push_str("\treturn sum;\n}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_with_and_without_objects_of_their_own_end_well() {
        let bench = Bench::new(PathBuf::new(), 1.0).unwrap();
        let directory = bench.directory(PART).unwrap();
        for objects in [0, 3] {
            let program = build(&directory, objects).unwrap();
            bench.run(Under::Nothing, &[&program]).unwrap();
        }
    }
}
