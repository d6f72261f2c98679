// Readers of a std::sync::RwLock wait for a slow writer.
// cause: serialising-lock
// waker: in syscall
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

static TABLE: RwLock<u64> = RwLock::new(0);
static DONE: AtomicBool = AtomicBool::new(false);

fn main() {
    let writer = thread::Builder::new().name("writer".into()).spawn(|| {
        for _ in 0..25 {
            let mut table = TABLE.write().unwrap();
            *table += 1;
            thread::sleep(Duration::from_millis(12));
            drop(table);
            thread::sleep(Duration::from_millis(1));
        }
        DONE.store(true, Ordering::SeqCst);
    });
    let readers: Vec<_> = (0..3)
        .map(|_| {
            thread::spawn(|| {
                while !DONE.load(Ordering::SeqCst) {
                    std::hint::black_box(*TABLE.read().unwrap());
                    thread::sleep(Duration::from_millis(1));
                }
            })
        })
        .collect();
    writer.unwrap().join().unwrap();
    for reader in readers {
        reader.join().unwrap();
    }
}
