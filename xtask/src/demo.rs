//! `cargo xtask demo`: the whole way, on a program that is there wherever this repository can be
//! built.

use std::fs;
use std::process::Command;

use crate::run::{Outcome, build, launcher, report, root, run, say};

/// Words counted in parallel: something for the compiler to chew on.
const PROGRAM: &str = r#"
use std::collections::HashMap;
fn main() {
    let text = "the quick brown fox jumps over the lazy dog ".repeat(1000);
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let text = text.clone();
            std::thread::spawn(move || {
                let mut count: HashMap<&str, usize> = HashMap::new();
                text.split(' ').for_each(|word| *count.entry(word).or_default() += 1);
                count.values().sum::<usize>()
            })
        })
        .collect();
    let words: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
    println!("{words} words");
}
"#;

pub(crate) fn demo() -> Outcome {
    build()?;
    let directory = root().join("target/demo");
    say("Recording rustc as it compiles and links a small program");
    let failed = |what: &str| {
        let place = directory.display().to_string();
        let what = what.to_owned();
        move |error: std::io::Error| format!("can't {what} in {place}: {error}")
    };
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).map_err(failed("make a directory"))?;
    fs::write(directory.join("words.rs"), PROGRAM).map_err(failed("write the program"))?;
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    run(Command::new(launcher())
        .args(["record", "--"])
        .arg(rustc)
        .args(["-O", "-C", "codegen-units=8", "words.rs"])
        .env_remove("CHASE_OUTPUT")
        .current_dir(&directory))?;
    say("Where its time went");
    let recording = directory.join("chase.data");
    run(Command::new(report()).arg(&recording))?;
    say("All of it, as a page for a browser");
    run(Command::new(report())
        .arg("html")
        .arg(&recording)
        .arg("-o")
        .arg(directory.join("report.html")))?;
    say("Charts");
    run(Command::new(report())
        .arg("charts")
        .arg(&recording)
        .arg("-o")
        .arg(directory.join("charts")))
}
