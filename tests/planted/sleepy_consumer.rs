// A consumer sleeps for each message that it receives: the channel is full, and the producer waits for room.
// cause: sleeping-stage
// group: sleepy_consumer
// says: sleeps for each thing
use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

fn parse(message: u64) -> u64 {
    (0..30_000).fold(message, |sum, step| black_box(sum ^ step))
}

fn main() {
    let (send, receive) = sync_channel(8);
    let producer = thread::spawn(move || {
        for message in 0..300 {
            send.send(parse(message)).expect("a receiver");
        }
    });
    let consumer = thread::spawn(move || {
        for message in receive {
            thread::sleep(Duration::from_millis(1));
            parse(message);
        }
    });
    producer.join().expect("the producer");
    consumer.join().expect("the consumer");
}
