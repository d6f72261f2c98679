//! Counts words on several threads, and prints the most frequent ones.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;
use std::thread;

fn main() {
    let text = std::fs::read_to_string("more-lines").expect("the text");
    let lines: Vec<&str> = text.lines().collect();
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for part in lines.chunks(lines.len().div_ceil(4)) {
            let sender = sender.clone();
            scope.spawn(move || {
                let mut counts: HashMap<String, usize> = HashMap::new();
                for line in part {
                    for at in 0..line.len() - 4 {
                        *counts.entry(line[at..at + 3].to_owned()).or_default() += 1;
                    }
                }
                sender.send(counts).expect("a receiver");
            });
        }
        drop(sender);
    });
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    for counts in receiver {
        for (word, count) in counts {
            *all.entry(word).or_default() += count;
        }
    }
    let mut sorted: Vec<_> = all.into_iter().collect();
    sorted.sort_by_key(|(word, count)| (std::cmp::Reverse(*count), word.clone()));
    for (word, count) in sorted.iter().take(20) {
        println!("{word} {count}");
    }
}
