// A pool of workers that park when there is nothing to do; all tasks take the same time.
// cause: none
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

const WORKERS: usize = 4;
const TASKS_EACH: usize = 3;

static TASKS: Mutex<VecDeque<u64>> = Mutex::new(VecDeque::new());
static MORE: Condvar = Condvar::new();
static DONE: Mutex<usize> = Mutex::new(0);
static ALL_DONE: Condvar = Condvar::new();

fn worker() {
    loop {
        let mut tasks = TASKS.lock().unwrap();
        let ms = loop {
            if let Some(ms) = tasks.pop_front() {
                break ms;
            }
            tasks = MORE.wait(tasks).unwrap();
        };
        drop(tasks);
        thread::sleep(Duration::from_millis(ms));
        *DONE.lock().unwrap() += 1;
        ALL_DONE.notify_one();
    }
}

fn main() {
    for _ in 0..WORKERS {
        thread::spawn(worker);
    }
    for _ in 0..2 {
        *DONE.lock().unwrap() = 0;
        TASKS.lock().unwrap().extend([50; WORKERS * TASKS_EACH]);
        MORE.notify_all();
        let done = DONE.lock().unwrap();
        drop(ALL_DONE.wait_while(done, |done| *done < WORKERS * TASKS_EACH).unwrap());
    }
}
