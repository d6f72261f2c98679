//! Threads by every kind of callable that Rust has, one after the other. Two closures capture the
//! same types, so that what drops them is the same code.

use std::sync::{Arc, Mutex};
use std::thread;

fn worker() {
    println!("worker");
}

#[inline(never)]
fn add(total: &Mutex<u32>) {
    *total.lock().unwrap() += 1;
}

#[inline(never)]
fn double(total: &Mutex<u32>) {
    *total.lock().unwrap() *= 2;
}

fn main() {
    let total = Arc::new(Mutex::new(1));
    thread::spawn(worker).join().unwrap();
    let (one, two) = (Arc::clone(&total), Arc::clone(&total));
    thread::spawn(move || add(&one)).join().unwrap();
    let builder = thread::Builder::new().name("doubling".into());
    builder.spawn(move || double(&two)).unwrap().join().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| println!("total {}", total.lock().unwrap()));
    });
}
