//! What the companion adds to a system call, in units of what an empty pair of programs adds.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use chase_companion::empty::EmptyPair;

use crate::bench::{Bench, Under, unwatchable};
use crate::companion::Listening;
use crate::peers;
use crate::programs::{gcc, source};
use crate::report::{Figure, Report};
use crate::turns::{Limit, Turn, in_turns, paired};

const PART: &str = "syscalls";
const TRACED: &str = "the traced process";
const OTHERS: &str = "other processes";
/// Times what an empty pair of programs adds, in the process that is traced.
const BAR_TRACED: f64 = 2.7;
/// The same in others.
const BAR_OTHERS: f64 = 1.2;

const LIMIT: Limit = Limit { least: 3, most: 15, time: Duration::from_secs(20) };
/// Short rounds: one of them is undisturbed.
const ROUNDS: [&str; 2] = ["200", "5000"];
/// Peers that stop the process at each call.
const FEW: [&str; 2] = ["3", "5000"];
const PEER_LIMIT: Limit = Limit { least: 3, most: 3, time: Duration::ZERO };
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    if let Some(why) = unwatchable() {
        for what in [TRACED, OTHERS] {
            report.skipped(PART, what, &why);
        }
        return Ok(());
    }
    let directory = bench.directory(PART)?;
    let program = directory.join("syscalls");
    let source = source("syscalls.c").display().to_string();
    gcc(&directory, &["-O1", &source, "-o", &program.display().to_string()])?;
    let companion = bench.lib.with_file_name("chase-companion");
    let others = directory.join("others");
    let [bare, empty, others, traced] = in_turns(
        bench.limit(LIMIT),
        [
            Turn::new(|| run(bench, Under::Nothing, &program, ROUNDS)),
            Turn::new(|| {
                let _empty = EmptyPair::attach()?;
                run(bench, Under::Nothing, &program, ROUNDS)
            }),
            Turn::new(|| {
                // The process to watch never comes.
                let _listening = Listening::start(&companion, &others)?;
                run(bench, Under::Nothing, &program, ROUNDS)
            }),
            Turn::new(|| run(bench, Under::ChaseWithSyscalls, &program, ROUNDS)),
        ],
    );
    let all = || Ok::<_, anyhow::Error>((bare?, empty?, others?, traced?));
    let (bare, empty, others, traced) = match all() {
        Ok(all) => all,
        Err(why) => {
            report.failed(PART, TRACED, Some(BAR_TRACED), &format!("{why:#}"));
            return Ok(());
        }
    };
    let added = |with: &[f64]| paired(with, &bare, |with, bare| with - bare);
    let floor = added(&empty);
    for (what, with, bar) in [(TRACED, &traced, BAR_TRACED), (OTHERS, &others, BAR_OTHERS)] {
        report.measured(Figure {
            part: PART,
            what: what.to_owned(),
            unit: "× empty pair",
            bar: Some(bar),
            values: paired(&added(with), &floor, |with, floor| with / floor),
            details: vec![
                ("bare", "ns", bare.clone()),
                ("empty pair adds", "ns", floor.clone()),
                ("chase adds", "ns", added(with)),
            ],
        });
    }
    if bench.peers {
        against_peers(bench, report, &directory, &program, &added(&traced));
    }
    Ok(())
}

/// ns per call.
fn run(bench: &Bench, under: Under, program: &Path, rounds: [&str; 2]) -> Result<f64> {
    let command = [program.as_os_str(), rounds[0].as_ref(), rounds[1].as_ref()];
    bench.run(under, &command)?.number(0)
}

/// What others add, as a multiple of what chase adds.
fn against_peers(
    bench: &Bench,
    report: &mut Report,
    directory: &Path,
    program: &Path,
    chase: &[f64],
) {
    let command = [program.display().to_string(), FEW[0].to_owned(), FEW[1].to_owned()];
    for peer in peers::usable(bench, report, PART, peers::system_calls()) {
        let what = format!("{} ÷ chase", peer.name);
        let [bare, with] = in_turns(
            bench.limit(PEER_LIMIT),
            [
                Turn::new(|| run(bench, Under::Nothing, program, FEW)),
                Turn::new(|| peer.run(bench, directory, &command, PATIENCE)?.number(0)),
            ],
        );
        match (bare, with) {
            (Ok(bare), Ok(with)) => {
                let added = paired(&with, &bare, |with, bare| with - bare);
                report.measured(Figure {
                    part: PART,
                    what,
                    unit: "×",
                    bar: None,
                    values: paired(&added, chase, |peer, chase| peer / chase),
                    details: vec![("adds", "ns", added.clone())],
                });
            }
            (Err(why), _) => report.failed(PART, &what, None, &format!("{why:#}")),
            (_, Err(why)) => peers::gave_none(report, PART, &what, &why, None),
        }
    }
}
