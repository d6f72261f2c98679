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
use std::time::{Duration, Instant};

const WORKERS: usize = 4;
const SHORT: usize = 9;
const ROUNDS: u64 = 2;
const LONG: Duration = Duration::from_millis(150);

static TASKS: Mutex<VecDeque<bool>> = Mutex::new(VecDeque::new());
static MORE: Condvar = Condvar::new();
static DONE: Mutex<usize> = Mutex::new(0);
static ALL_DONE: Condvar = Condvar::new();
/// How many have nothing to do, and since when the last one of them.
static PARKED: Mutex<(usize, Option<Instant>)> = Mutex::new((0, None));
/// How long one has worked while all others had nothing to do.
static ALONE: Mutex<Duration> = Mutex::new(Duration::ZERO);

/// Takes its time, once all others have nothing to do.
#[inline(never)]
fn long_task() {
    while *DONE.lock().unwrap() < SHORT || PARKED.lock().unwrap().0 < WORKERS - 1 {
        thread::sleep(Duration::from_millis(20));
    }
    let since = PARKED.lock().unwrap().1.unwrap();
    thread::sleep(LONG);
    *ALONE.lock().unwrap() += since.elapsed();
}

fn worker() {
    loop {
        let mut tasks = TASKS.lock().unwrap();
        let is_long = loop {
            if let Some(task) = tasks.pop_front() {
                break task;
            }
            let parked = PARKED.lock().unwrap().0 + 1;
            *PARKED.lock().unwrap() = (parked, Some(Instant::now()));
            tasks = MORE.wait(tasks).unwrap();
            PARKED.lock().unwrap().0 -= 1;
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
    // (Tasks that sleep need no processor: all workers could have had a part.)
    let parts = WORKERS as u128;
    let alone = ALONE.lock().unwrap().as_nanos();
    let mut truth = std::fs::File::create("truth").unwrap();
    writeln!(truth, "size_ns {}", alone * (parts - 1) / parts).unwrap();
}
