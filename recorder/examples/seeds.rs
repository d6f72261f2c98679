//! Writes the seeds of a fuzz target into a directory: `seeds TARGET DIRECTORY`. Those of targets that read other things than
//! recordings are in `fuzz/seeds`; it runs in `fuzz`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use chase_recorder::builder::{Builder, sample, syscalls_sample};

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let target = arguments.next().unwrap_or_default();
    let directory = PathBuf::from(arguments.next().unwrap_or_else(|| "corpus".into()));
    fs::create_dir_all(&directory)?;
    let kept = PathBuf::from("seeds").join(target);
    if !kept.is_dir() {
        return recordings(&directory);
    }
    for entry in fs::read_dir(kept)? {
        let entry = entry?;
        fs::copy(entry.path(), directory.join(entry.file_name()))?;
    }
    Ok(())
}

fn recordings(directory: &Path) -> io::Result<()> {
    let whole = sample().build();
    fs::write(directory.join("sample"), &whole)?;
    fs::write(directory.join("cut"), &whole[..whole.len() * 2 / 3])?;
    fs::write(directory.join("empty"), Builder::new().build())?;

    fs::write(directory.join("syscalls"), syscalls_sample().build())?;

    let mut small = Builder::new();
    small.node_chunk_len = 4096;
    let app = small.executable("app");
    let slot = small.slot(app, None, "f");
    let main = small.thread("t");
    small.timeline(main).enter(slot).call(slot, 40).leave();
    fs::write(directory.join("small"), small.build())?;
    fs::write(directory.join("group"), group().build())
}

/// Threads of one group, with all that comparing them looks at: two behaviours, a thread that is
/// slower than its like, a slow first call, a rare slow one, and waits.
fn group() -> Builder {
    const MS: u64 = 1_000_000;
    let mut group = Builder::new();
    group.node_chunk_len = 4096;
    let app = group.executable("app");
    let lib = group.object("lib.so");
    let mut slot = |name| group.slot(app, Some(lib), name);
    let [parse, write, lock, barrier] =
        ["parse", "write", "pthread_mutex_lock", "pthread_barrier_wait"].map(&mut slot);
    let main = group.thread("app");
    for number in 0..8 {
        let worker = group.thread("worker");
        let routine = group.object_mut(app).bias + 0x1100;
        group.thread_mut(worker).start_routine_avma = routine;
        let (work, slow) = match number {
            0..4 => (parse, number == 1),
            _ => (write, number == 6),
        };
        let mut thread = group.timeline(worker);
        if number == 0 {
            thread.call(work, 80 * MS);
        }
        thread.calls(work, MS / 10, 500);
        if number == 2 {
            thread.call(work, 40 * MS);
        }
        thread.calls(work, MS / 10, if slow { 1_500 } else { 500 });
        thread.calls(lock, 2 * MS, 20).calls(barrier, 3 * MS, 10).end();
    }
    group.timeline(main).work(MS).end();
    group
}
