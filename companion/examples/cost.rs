//! What the program adds to a syscall, in ns: `cargo run --release --example cost [ROUNDS]`, as root.
//!
//! Compares, in turns, `getppid` with nothing attached, with an empty pair of programs, with ours
//! in a process that is not traced, and with ours in a traced one. Prints the
//! least of all rounds, since what else the machine does only adds.
#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::time::Instant;

use anyhow::{Context, Result};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, include_bytes_aligned};
use chase_companion::greeter::Greeter;
use chase_companion::program::Program;
use chase_companion::shared::{CONTEXT_FRAMES, CONTEXT_WORD};

const CALLS: u32 = 500_000;
const SESSION: u64 = 0xc057;

fn main() -> Result<()> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(9), |rounds| rounds.parse())?;
    let names =
        ["bare", "empty pair", "ours, not traced", "ours, traced, word", "ours, traced, frames"];
    let mut samples: [Vec<f64>; 5] = Default::default();
    for _ in 0..rounds {
        samples[0].push(getppid_ns());
        let empty = attach_empty()?;
        samples[1].push(getppid_ns());
        drop(empty);
        // SAFETY: it only asks for a number.
        let program = Program::start(SESSION, unsafe { libc::getuid() })?;
        samples[2].push(getppid_ns());
        for (samples, kind) in samples[3..].iter_mut().zip([CONTEXT_WORD, CONTEXT_FRAMES]) {
            let greeter = Greeter::new(SESSION, kind, 7);
            samples.push(getppid_ns());
            drop(greeter);
        }
        drop(program);
    }
    let least = samples.map(|of| of.into_iter().fold(f64::INFINITY, f64::min));
    let floor = least[1] - least[0];
    for (name, ns) in names.iter().zip(least) {
        let added = ns - least[0];
        println!(
            "{name:20} {ns:7.1} ns  added {added:7.1}  of the empty pair {:5.2}",
            added / floor
        );
    }
    Ok(())
}

fn getppid_ns() -> f64 {
    let run = |calls: u32| {
        let start = Instant::now();
        for _ in 0..calls {
            // SAFETY: it only asks for a number.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        start.elapsed().as_nanos() as f64 / f64::from(calls)
    };
    run(CALLS / 10);
    // What else the machine does only adds.
    (0..5).map(|_| run(CALLS / 5)).fold(f64::INFINITY, f64::min)
}

fn attach_empty() -> Result<Ebpf> {
    let btf = Btf::from_sys_fs()?;
    let mut loaded = Ebpf::load(include_bytes_aligned!("../bpf/empty.bpf.o"))?;
    for name in ["sys_exit", "sys_enter"] {
        let program: &mut BtfTracePoint =
            loaded.program_mut(name).context("no such program")?.try_into()?;
        program.load(name, &btf)?;
        program.attach()?;
    }
    Ok(loaded)
}
