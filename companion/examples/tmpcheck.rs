//! t
#![allow(clippy::print_stdout, reason = "x")]
use std::time::Instant;
use chase_companion::greeter::Greeter;
use chase_companion::program::Program;
use chase_companion::shared::*;
fn main() {
    for round in 0..12 {
        let program = Program::start(1, 0).unwrap();
        for kind in [CONTEXT_WORD, CONTEXT_FRAMES] {
            let g = Greeter::new(1, kind, 7);
            let mut t = vec![];
            for _ in 0..5 {
                let s = Instant::now();
                for _ in 0..100_000 { unsafe { libc::syscall(libc::SYS_getppid) }; }
                t.push(s.elapsed().as_nanos() / 100_000);
            }
            drop(g);
            print!("{round} kind {kind} {t:?} ");
            for i in 0..program.totals().rows {
                let r = program.rows.read(i as usize);
                if r.process == kind - 1 && r.syscall != 157 && r.syscall != 228 { print!(" [p{} ctx{} nr{:x} n{} avg{} h{:?}]", r.process, r.context, r.syscall, r.count, r.total_ns / r.count.max(1), &r.histogram[..4]); }
            }
            println!();
        }
    }
}
