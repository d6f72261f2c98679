//! A few calls of the main thread are slow.
//! Expected: rare-slow-calls, known_parse, the main thread.

mod known;
use known::{MS, each, known_parse, median, tell, tid};

fn main() {
    for call in 1..=1_000 {
        // SAFETY: any number of nanoseconds will do.
        unsafe { known_parse(if call % 300 == 0 { 60 * MS } else { MS / 2 }) };
    }
    tell("thread", tid());
    let calls = each(0);
    let normal = median(&calls);
    let slow = calls.iter().filter(|&&ns| ns > 10 * normal);
    tell("saves_ns", slow.map(|ns| ns - normal).sum());
}
