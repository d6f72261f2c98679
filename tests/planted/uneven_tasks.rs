// A pool of workers that park when there is nothing to do; of each round of tasks, one takes much longer than all others.
// cause: uneven-work
// group: worker
// says: the 3 others wait for more to do
// says: Condvar
// says: sleep
// size: told
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

const WORKERS: usize = 4;
const SHORT: usize = 9;
const ROUNDS: u64 = 2;
const LONG_NS: u64 = 150_000_000;

static TASKS: Mutex<VecDeque<bool>> = Mutex::new(VecDeque::new());
static MORE: Condvar = Condvar::new();
static DONE: Mutex<usize> = Mutex::new(0);
static ALL_DONE: Condvar = Condvar::new();
static PARKED: Mutex<usize> = Mutex::new(0);

/// Takes its time, once all others have nothing to do.
#[inline(never)]
fn long_task() {
    while *DONE.lock().unwrap() < SHORT || *PARKED.lock().unwrap() < WORKERS - 1 {
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_nanos(LONG_NS));
}

fn worker() {
    loop {
        let mut tasks = TASKS.lock().unwrap();
        let is_long = loop {
            if let Some(task) = tasks.pop_front() {
                break task;
            }
            *PARKED.lock().unwrap() += 1;
            tasks = MORE.wait(tasks).unwrap();
            *PARKED.lock().unwrap() -= 1;
        };
        drop(tasks);
        if is_long {
            long_task();
        } else {
            thread::sleep(Duration::from_millis(15));
        }
        *DONE.lock().unwrap() += 1;
        ALL_DONE.notify_one();
    }
}

fn main() {
    for _ in 0..WORKERS {
        thread::spawn(worker);
    }
    for _ in 0..ROUNDS {
        *DONE.lock().unwrap() = 0;
        let mut tasks = TASKS.lock().unwrap();
        tasks.push_back(true);
        tasks.extend([false; SHORT]);
        drop(tasks);
        MORE.notify_all();
        let done = DONE.lock().unwrap();
        drop(ALL_DONE.wait_while(done, |done| *done <= SHORT).unwrap());
    }
    let parts = thread::available_parallelism().unwrap().get().min(WORKERS) as u64;
    let mut truth = std::fs::File::create("truth").unwrap();
    writeln!(truth, "size_ns {}", ROUNDS * LONG_NS * (parts - 1) / parts).unwrap();
}
