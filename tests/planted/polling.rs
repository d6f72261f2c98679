// A thread looks each half millisecond whether another one is done.
// cause: polling
// group: main of polling
// waker: nobody: time was over
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

static READY: AtomicBool = AtomicBool::new(false);

fn main() {
    let worker = thread::spawn(|| {
        thread::sleep(Duration::from_millis(350));
        READY.store(true, Ordering::SeqCst);
    });
    while !READY.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_micros(500));
    }
    worker.join().unwrap();
}
