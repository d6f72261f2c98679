// A thread for each word, two at a time.
// cause: short-threads
// group: short_threads::check
// says: 4000 threads
use std::hint::black_box;
use std::thread;

#[inline(never)]
fn hash(word: u64) -> u64 {
    (0..2000).fold(word, |sum, letter| black_box(sum.wrapping_mul(31).wrapping_add(letter)))
}

#[inline(never)]
fn check(line: u64) -> u64 {
    let start = |word| thread::spawn(move || hash(line + word));
    let words: Vec<_> = (0..2).map(start).collect();
    words.into_iter().map(|word| word.join().unwrap()).fold(0, |sum, hash| sum ^ hash)
}

fn main() {
    let sum = (0..2000).fold(0, |sum, line| sum ^ check(line));
    assert_ne!(sum, 1);
}
