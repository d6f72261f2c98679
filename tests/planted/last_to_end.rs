// One of four threads ends long after the others.
// cause: last-to-end
// group: last_to_end::main
// waker: last_to_end::main
// says: is waited for by main of last_to_end, while it waits in clock_nanosleep (
use std::thread;
use std::time::Duration;

fn main() {
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let ms = if number == 1 { 300 } else { 50 };
            thread::spawn(move || thread::sleep(Duration::from_millis(ms)))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
