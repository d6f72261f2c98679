// A convoy on a std::sync::Mutex, which calls futex itself.
// cause: serialising-lock
// group: convoy::main
// object: TOTAL
// waker: in syscall
// size: told
use std::io::Write;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

static TOTAL: Mutex<u64> = Mutex::new(0);

fn main() {
    let threads: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(|| {
                let mut waited = Duration::ZERO;
                for _ in 0..10 {
                    let start = Instant::now();
                    let mut total = TOTAL.lock().unwrap();
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
