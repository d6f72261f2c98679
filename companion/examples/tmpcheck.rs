//! t
#![allow(clippy::print_stdout, reason = "x")]
use chase_companion::greeter::Greeter;
use chase_companion::program::Program;
use chase_companion::shared::*;
fn cpu() -> i32 { unsafe { libc::sched_getcpu() } }
fn main() {
    for round in 0..6 {
        let program = Program::start(1, 0).unwrap();
        for kind in [CONTEXT_WORD, CONTEXT_FRAMES] {
            let g = Greeter::new(1, kind, 7);
            unsafe { libc::syscall(libc::SYS_getppid) };
            let row = (0..program.totals().rows as usize).find(|&i| { let r = program.rows.read(i); r.process == kind - 1 && r.syscall == 110 });
            let Some(row) = row else { println!("{round} {kind} no row at first!"); continue };
            let mut last = program.rows.read(row).count;
            let mut losing = false;
            for i in 0..500_000u64 {
                let c = cpu();
                unsafe { libc::syscall(libc::SYS_getppid) };
                let now = program.rows.read(row).count;
                if (now == last) != losing { losing = !losing; println!("{round} {kind} {i}: losing {losing} cpu {c} -> {} {:?}", cpu(), program.totals()); }
                last = now;
            }
            drop(g);
        }
    }
}
