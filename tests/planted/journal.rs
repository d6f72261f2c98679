// Each record is written for good, by File::sync_data.
// cause: syncing
// object: segment.log
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

fn main() {
    let mut log = File::create("segment.log").unwrap();
    let mut synced = Duration::ZERO;
    for _ in 0..150_000 {
        log.write_all(&[7; 100]).unwrap();
        let start = Instant::now();
        log.sync_data().unwrap();
        synced += start.elapsed();
        if synced > Duration::from_millis(300) {
            break;
        }
    }
    std::fs::write("truth", format!("size_ns {}\n", synced.as_nanos())).unwrap();
}
