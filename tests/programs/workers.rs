//! An ordinary Rust program: threads, channels, locks, panics that are caught and that end their
//! threads, a thread-local with a destructor, a sub-process.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};
use std::{panic, process, thread};

struct Tally(u64);

impl Drop for Tally {
    fn drop(&mut self) {
        assert!(self.0 > 0);
    }
}

thread_local! {
    static TALLY: RefCell<Tally> = const { RefCell::new(Tally(1)) };
}

fn work(number: u64, results: &mpsc::Sender<u64>) {
    TALLY.with_borrow_mut(|tally| tally.0 += number);
    if number % 5 == 4 {
        panic!("worker {number} fails");
    }
    let caught = panic::catch_unwind(|| u64::from_str_radix("xyz", 10).unwrap());
    let text = format!("{number:08}{}", caught.is_err());
    results.send(text.len() as u64 + number).unwrap();
}

fn main() {
    let (sender, receiver) = mpsc::channel();
    let shared = Arc::new(Mutex::new(BTreeMap::new()));
    let mut failed = 0;
    for number in 0..10 {
        let (sender, shared) = (sender.clone(), Arc::clone(&shared));
        let name = format!("worker-{number}");
        let worker = thread::Builder::new().name(name).spawn(move || {
            work(number, &sender);
            shared.lock().unwrap().insert(number, number * number);
        });
        failed += u64::from(worker.unwrap().join().is_err());
    }
    drop(sender);
    println!("sum {} failed {failed}", receiver.iter().sum::<u64>());
    println!("{:?}", shared.lock().unwrap());
    let output = process::Command::new("sh").args(["-c", "echo $0; exit 3", "child"]).output();
    println!("{:?}", output.unwrap());
    process::exit(17);
}
