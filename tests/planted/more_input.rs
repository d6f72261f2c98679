// One of five threads has four times as much to do.
// cause: slow-threads
// also: too-many-threads
// also: last-to-end
use std::thread;

fn work(items: u64) -> u64 {
    (0..items * 400_000).fold(1, |value: u64, step| std::hint::black_box(value.wrapping_mul(31).wrapping_add(step)))
}

fn main() {
    let threads: Vec<_> = (0..5).map(|number| thread::spawn(move || work(if number == 3 { 80 } else { 20 }))).collect();
    for thread in threads {
        std::hint::black_box(thread.join().unwrap());
    }
}
