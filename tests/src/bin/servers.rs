//! `cargo xtask servers`: attaches to servers under load and leaves them, again and again, and prints what came of it.
//!
//! Its answers are checked, and its entries are compared each time with what they were. Afterwards it is measured in turns with a twin
//! that was never attached to: what else the machine does slows down both.
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use chase_tests::attached::{attach, entries};
use chase_tests::servers::{self, Server};

/// How often a server and its twin are measured, and how long each time.
const TURNS: usize = 40;
const TURN: Duration = Duration::from_millis(300);
/// A server is as before if its operations may be this part of its twin's, or more: by the upper end of the 95 % confidence
/// interval of the median.
const LEAST: f64 = 0.95;
/// How long a process is recorded each time.
const RECORDED: &str = "50ms";

fn main() -> ExitCode {
    let times = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let only = std::env::args().nth(2);
    println!(
        "| server | threads | attached and left | stood still, ms: median, most | entries as before | answers | its twin, /s | then, /s | ratio: median, quartiles |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let (mut is_well, mut are_any) = (true, false);
    for (name, start) in servers::ALL {
        if only.as_deref().is_some_and(|only| !name.starts_with(only)) {
            continue;
        }
        are_any = true;
        let scratch = tempfile::TempDir::new().expect("a directory");
        let (own, twin) = (scratch.path().join("server"), scratch.path().join("twin"));
        for directory in [scratch.path(), &own, &twin] {
            std::fs::create_dir_all(directory).expect("a directory");
            // (A server may run as another user.)
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(directory, open).expect("it is ours");
        }
        match start(&own).and_then(|server| Ok((server, start(&twin)?))) {
            Ok((server, twin)) => is_well &= try_server(name, server, twin, times, scratch.path()),
            Err(why) => {
                println!("| {name} | | not tried: {why} | | | | | | |");
                is_well = false;
            }
        }
    }
    if !are_any {
        let names: Vec<&str> = servers::ALL.iter().map(|(name, _)| *name).collect();
        println!("no such server; there are: {}", names.join("; "));
    }
    if is_well && are_any { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Operations in a second.
fn rate(server: &mut Server) -> Result<f64, String> {
    let (since, mut done) = (Instant::now(), 0.0);
    while since.elapsed() < TURN {
        done += (server.load)()?;
    }
    match done > 0.0 {
        true => Ok(done / since.elapsed().as_secs_f64()),
        false => Err("it did nothing in a turn".to_owned()),
    }
}

/// Attaches so often, under load. False if anything is not as it should be.
fn try_server(
    name: &str,
    mut server: Server,
    mut twin: Server,
    times: usize,
    scratch: &Path,
) -> bool {
    let directory = scratch.join("out");
    let pids = server.pids.clone();
    let threads: usize = pids.iter().map(|pid| count(&format!("/proc/{pid}/task"))).sum();
    let first: Vec<_> = pids.iter().map(|&pid| entries(pid)).collect();
    let is_over = AtomicBool::new(false);
    let (mut done, mut same, mut still, mut failed) = (0, 0, Vec::new(), Vec::new());
    let load = scope(|scope| {
        let load = &mut server.load;
        let worker = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                load()?;
            }
            Ok::<(), String>(())
        });
        for at in 0..times {
            let which = at % pids.len();
            let output = attach(pids[which], &directory, &["--duration", RECORDED]).output();
            let output = output.expect("chase starts");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() && said.contains("entries are as they were") {
                done += 1;
                still.extend(said.lines().filter_map(stood_still_ms));
            } else {
                failed.push(said);
            }
            same += usize::from(is_same(&first[which], &entries(pids[which])));
        }
        is_over.store(true, Ordering::Relaxed);
        worker.join().unwrap_or_else(|_| Err("the load failed".to_owned()))
    });
    // Now one first, now the other.
    let turn = |number: usize| {
        let early = number.is_multiple_of(2).then(|| rate(&mut twin)).transpose()?;
        let own = rate(&mut server)?;
        Ok((early.map_or_else(|| rate(&mut twin), Ok)?, own))
    };
    let turns: Result<Vec<(f64, f64)>, String> = (0..TURNS).map(turn).collect();
    let answers = load
        .and_then(|()| (server.finish)())
        .and_then(|()| (twin.finish)())
        .and(turns.clone().map(drop));
    still.sort_by(f64::total_cmp);
    let turns = turns.unwrap_or_default();
    let at = |of: fn(&(f64, f64)) -> f64, place: usize| {
        let mut sorted: Vec<f64> = turns.iter().map(of).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(place).copied().unwrap_or_default()
    };
    let quartile = |of, number| at(of, turns.len() * number / 4);
    let ratio: fn(&(f64, f64)) -> f64 = |(twin, own)| own / twin;
    // The number of turns below the median is binomial.
    let number = turns.len() as f64;
    let highest = at(ratio, (number / 2.0 + 0.98 * number.sqrt()) as usize);
    println!(
        "| {name} | {threads} | {done} of {times} | {:.0}, {:.0} | {same} of {times} | {} | {:.0} | {:.0} | {:.2}, {:.2} to {:.2} |",
        still.get(still.len() / 2).copied().unwrap_or_default(),
        still.last().copied().unwrap_or_default(),
        match &answers {
            Ok(()) => "right",
            Err(why) => why,
        },
        quartile(|turn| turn.0, 2),
        quartile(|turn| turn.1, 2),
        quartile(ratio, 2),
        quartile(ratio, 1),
        quartile(ratio, 3)
    );
    for said in failed.iter().take(3) {
        eprintln!("{name}: {said}");
    }
    done == times && same == times && answers.is_ok() && highest >= LEAST
}

fn count(directory: &str) -> usize {
    std::fs::read_dir(directory).into_iter().flatten().count()
}

fn stood_still_ms(line: &str) -> Option<f64> {
    line.split("stood still for ").nth(1)?.split(' ').next()?.parse().ok()
}

/// Entries of functions that were called for the first time since then have got their addresses; no other may differ.
fn is_same(before: &BTreeMap<(String, u64), u64>, now: &BTreeMap<(String, u64), u64>) -> bool {
    before.iter().all(|(place, value)| now.get(place).is_none_or(|now| now == value))
}
