//! Five threads do the same, under a lock for a moment only.
//! Expected: nothing.

mod known;
use std::sync::Mutex;

use known::{MS, known_pack, known_parse};

fn main() {
    let sum = Mutex::new(0);
    std::thread::scope(|scope| {
        for number in 0..5 {
            let sum = &sum;
            scope.spawn(move || {
                for _ in 0..20 {
                    // SAFETY: any number of nanoseconds will do.
                    unsafe { known_parse(8 * MS) };
                    // SAFETY: as above.
                    unsafe { known_pack(4 * MS) };
                    *sum.lock().unwrap() += number;
                }
            });
        }
    });
}
