//! Writes recordings into the directory named on the command line, as seeds for the fuzzers.

use std::path::PathBuf;
use std::{env, fs, io};

use chase_recorder::builder::{Builder, sample};

fn main() -> io::Result<()> {
    let directory = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "corpus".into()));
    fs::create_dir_all(&directory)?;
    let whole = sample().build();
    fs::write(directory.join("sample"), &whole)?;
    fs::write(directory.join("cut"), &whole[..whole.len() * 2 / 3])?;
    fs::write(directory.join("empty"), Builder::new().build())?;

    let mut small = Builder::new();
    small.node_chunk_len = 4096;
    let app = small.executable("app");
    let slot = small.slot(app, None, "f");
    let main = small.thread("t");
    small.timeline(main).enter(slot).call(slot, 40).leave();
    fs::write(directory.join("small"), small.build())
}
