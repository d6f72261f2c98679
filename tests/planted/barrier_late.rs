// One of four threads comes last to each std::sync::Barrier.
// cause: late-at-barrier
// group: barrier_late::main
// site: barrier.rs
// waker: barrier_late::main
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

fn main() {
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for number in 0..4 {
            let barrier = &barrier;
            scope.spawn(move || {
                for _ in 0..12 {
                    if number == 1 {
                        thread::sleep(Duration::from_millis(20));
                    }
                    barrier.wait();
                }
            });
        }
    });
}
