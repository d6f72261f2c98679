// A bounded channel of std, whose receiver is slow.
// cause: limiting-stage
// waker: slow_consumer::consume, in syscall
// group: consume
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::Mutex;
use std::thread;

static ITEMS: Mutex<Option<Receiver<u64>>> = Mutex::new(None);
static ROOM: Mutex<Option<SyncSender<u64>>> = Mutex::new(None);

fn work(steps: u64) -> u64 {
    (0..steps).fold(1, |value: u64, step| std::hint::black_box(value.wrapping_mul(31).wrapping_add(step)))
}

fn consume() {
    let items = ITEMS.lock().unwrap().take().unwrap();
    std::hint::black_box(items.iter().fold(0, |sum, item| sum ^ item ^ work(500_000)));
}

fn produce() {
    let room = ROOM.lock().unwrap().take().unwrap();
    for item in 0..60 {
        room.send(item ^ work(100_000)).unwrap();
    }
}

fn main() {
    let (sender, receiver) = sync_channel(2);
    *ITEMS.lock().unwrap() = Some(receiver);
    *ROOM.lock().unwrap() = Some(sender);
    // (Closures of one function are one group.)
    let threads = [thread::spawn(consume), thread::spawn(produce)];
    for thread in threads {
        thread.join().unwrap();
    }
}
