//! Two behaviours behind one closure, and one of its threads is slower than its like.
//! Expected: slow-threads, known_pack, that thread; and sub-groups.

mod known;
use known::{MS, known_pack, known_parse, tell, tell_slow, tid, total};

fn main() {
    let work = |number: usize| {
        move || {
            for _ in 0..15 {
                // SAFETY: any number of nanoseconds will do.
                match number {
                    4 => unsafe { known_pack(40 * MS) },
                    _ if number % 2 == 0 => unsafe { known_pack(8 * MS) },
                    _ => unsafe { known_parse(20 * MS) },
                }
            }
            if number == 4 {
                tell("thread", tid());
            }
            total(1)
        }
    };
    let threads: Vec<_> = (0..12).map(|number| std::thread::spawn(work(number))).collect();
    let took: Vec<i64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let packers: Vec<i64> = took.iter().copied().step_by(2).collect();
    tell_slow(&packers, 2);
}
