//! `cargo xtask servers`: attaches to servers under load and leaves them, again and again, and prints what came of it.
//!
//! Each is measured before and after, its answers are checked, and its entries are compared each time with what they were.
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use chase_tests::attached::{attach, entries};
use chase_tests::servers::{self, Server};

/// How long the load is measured before and after.
const MEASURED: Duration = Duration::from_secs(5);
/// How long a process is recorded each time.
const RECORDED: &str = "50ms";

fn main() -> ExitCode {
    let times = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let only = std::env::args().nth(2);
    println!(
        "| server | threads | attached and left | stood still, ms: median, most | entries as before | answers | before, /s | after, /s |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let (mut is_well, mut are_any) = (true, false);
    for (name, start) in servers::ALL {
        if only.as_deref().is_some_and(|only| !name.starts_with(only)) {
            continue;
        }
        are_any = true;
        let scratch = tempfile::TempDir::new().expect("a directory");
        match start(scratch.path()) {
            Ok(server) => is_well &= try_server(name, server, times, scratch.path()),
            Err(why) => {
                println!("| {name} | | not tried: {why} | | | | | |");
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
    while since.elapsed() < MEASURED {
        done += (server.load)()?;
    }
    Ok(done / since.elapsed().as_secs_f64())
}

/// Attaches so often, under load. False if anything is not as it should be.
fn try_server(name: &str, mut server: Server, times: usize, scratch: &Path) -> bool {
    let directory = scratch.join("out");
    let before = rate(&mut server);
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
    let after = rate(&mut server);
    let answers = load.and_then(|()| (server.finish)());
    still.sort_by(f64::total_cmp);
    let number = |rate: &Result<f64, String>| match rate {
        Ok(rate) => format!("{rate:.0}"),
        Err(why) => why.clone(),
    };
    println!(
        "| {name} | {threads} | {done} of {times} | {:.0}, {:.0} | {same} of {times} | {} | {} | {} |",
        still.get(still.len() / 2).copied().unwrap_or_default(),
        still.last().copied().unwrap_or_default(),
        match &answers {
            Ok(()) => "right",
            Err(why) => why,
        },
        number(&before),
        number(&after)
    );
    for said in failed.iter().take(3) {
        eprintln!("{name}: {said}");
    }
    done == times && same == times && answers.is_ok() && before.is_ok() && after.is_ok()
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
