//! One of twelve threads of Rust's standard library takes longer.
//! Expected: slow-threads, known_parse, that thread.

mod known;
use known::{MS, known_parse, tell, tell_slow, tid, total};

fn main() {
    let work = |number: usize| {
        move || {
            for _ in 0..10 {
                // SAFETY: any number of nanoseconds will do.
                unsafe { known_parse(if number == 3 { 30 * MS } else { 5 * MS }) };
            }
            if number == 3 {
                tell("thread", tid());
            }
            total(0)
        }
    };
    let threads: Vec<_> = (0..12).map(|number| std::thread::spawn(work(number))).collect();
    let took: Vec<i64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    tell_slow(&took, 3);
}
