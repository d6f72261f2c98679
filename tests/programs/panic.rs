//! A Rust panic through a library's frame, by an `extern "C-unwind"` callback, and `catch_unwind`.
//! usage: panic THREADS ROUNDS

use std::ffi::c_void;
use std::panic;

unsafe extern "C-unwind" {
    fn trap_call(callback: extern "C-unwind" fn(*mut c_void), argument: *mut c_void);
    fn trap_empty();
}

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: the function takes nothing and does nothing.
        unsafe { trap_empty() };
    }
}

extern "C-unwind" fn callback(argument: *mut c_void) {
    let _guard = Guard;
    // SAFETY: `run` passes a pointer to its round.
    let round = unsafe { *argument.cast::<u64>() };
    if round % 3 == 0 {
        panic::panic_any(round);
    }
    if round % 3 == 1 {
        let empty: Vec<u64> = Vec::with_capacity(1);
        let _ = empty[round as usize];
    }
}

fn run(rounds: u64) -> String {
    let (mut typed, mut plain, mut quiet) = (0, 0, 0);
    for mut round in 0..rounds {
        let argument = (&raw mut round).cast();
        // SAFETY: the function calls back with the argument, which lives until it returns.
        match panic::catch_unwind(|| unsafe { trap_call(callback, argument) }) {
            Ok(()) => quiet += 1,
            Err(payload) => match payload.downcast_ref::<u64>() {
                Some(&number) => typed += u64::from(number == round),
                None => plain += 1,
            },
        }
    }
    format!("typed {typed} plain {plain} quiet {quiet}")
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let (threads, rounds) = (numbers[0], numbers[1]);
    panic::set_hook(Box::new(|_| ()));
    let running: Vec<_> =
        (0..threads).map(|_| std::thread::spawn(move || run(rounds))).collect();
    for thread in running {
        println!("{}", thread.join().unwrap());
    }
}
