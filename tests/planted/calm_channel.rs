// A few requests by a channel, each of which takes as long as it takes to ask the next one.
// cause: none
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

fn main() {
    let (sender, receiver) = channel();
    let server = thread::spawn(move || {
        receiver.iter().fold(0_u64, |sum, request: u64| {
            thread::sleep(Duration::from_millis(20));
            sum + request
        })
    });
    for request in 0..10 {
        thread::sleep(Duration::from_millis(25));
        sender.send(request).unwrap();
    }
    drop(sender);
    println!("{}", server.join().unwrap());
}
