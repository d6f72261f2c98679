// A convoy on a std::sync::Mutex on the heap, which has no name and calls futex itself.
// cause: serialising-lock
// group: convoy_heap::main
// object: (taken in 
// waker: in syscall
// size: told
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let total = Arc::new(Mutex::new(0_u64));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let total = Arc::clone(&total);
            thread::spawn(move || {
                let mut waited = Duration::ZERO;
                for _ in 0..10 {
                    let start = Instant::now();
                    let mut total = total.lock().unwrap();
                    waited += start.elapsed();
                    *total += 1;
                    thread::sleep(Duration::from_millis(8));
                }
                waited
            })
        })
        .collect();
    let waited = threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap();
    let mut truth = std::fs::File::create("truth").unwrap();
    writeln!(truth, "size_ns {}", waited.as_nanos()).unwrap();
}
