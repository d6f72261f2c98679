// Two threads that get work by a channel, evenly, and a lock that is free nearly always.
// cause: none
use std::sync::Mutex;
use std::thread;

static SUM: Mutex<u64> = Mutex::new(0);

fn main() {
    let threads: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(|| {
                for _ in 0..20 {
                    let part = (0..400_000_u64).fold(1, |a: u64, b| a.wrapping_mul(31).wrapping_add(b));
                    let mut sum = SUM.lock().unwrap();
                    *sum = sum.wrapping_add(part);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    println!("{}", *SUM.lock().unwrap());
}
