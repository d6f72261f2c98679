// Reads a file as often as it is told, a byte each time, in a loop: compilers call `read` by a register then.
use std::fs::{self, File};
use std::io::{Read, Write};

fn main() {
    let rounds: usize = std::env::args().nth(1).expect("rounds").parse().expect("a number");
    let mut file = File::create("read-here").expect("made");
    for _ in 0..rounds {
        file.write_all(b"x").expect("written");
    }
    let mut file = File::open("read-here").expect("opened");
    let (mut byte, mut sum) = ([0], 0_usize);
    while file.read(&mut byte).expect("read") == 1 {
        sum += usize::from(byte[0] == b'x');
    }
    let len = fs::metadata("read-here").expect("there").len();
    fs::remove_file("read-here").expect("removed");
    println!("{sum} of {len}");
}
