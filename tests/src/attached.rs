//! Processes that run already, and `chase attach`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::launcher::chase;

/// A program that does a round of work for each line that it gets, and then says something.
pub struct Rounds {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Rounds {
    /// Starts it, and waits until it says that it is ready.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(command: Command) -> Self {
        Self::start_with(command, None)
    }

    /// The same with a library that is preloaded.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start_with(mut command: Command, preload: Option<&Path>) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).env_remove("LD_PRELOAD");
        command.envs(preload.map(|library| ("LD_PRELOAD", library)));
        let mut child = command.spawn().expect("starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        let mut this = Self { child, input, output: BufReader::new(output) };
        assert_eq!(this.line(), "ready");
        this
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it says next.
    ///
    /// # Panics
    /// If it says nothing.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("its output");
        line.trim_end().to_owned()
    }

    /// One round; what it says of that.
    ///
    /// # Panics
    /// If it has ended.
    pub fn round(&mut self) -> String {
        self.input.as_mut().expect("it runs").write_all(b"next\n").expect("it listens");
        self.line()
    }

    /// Lets it end; what it says then.
    ///
    /// # Panics
    /// If it does not end well.
    pub fn end(mut self) -> String {
        self.input = None;
        let line = self.line();
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
        line
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        // (It has ended, unless a test fails.)
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `chase attach` at work.
pub struct Attached {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
    first: String,
}

/// The command.
#[must_use]
pub fn attach(pid: u32, directory: &Path, options: &[&str]) -> Command {
    attach_with("off", pid, directory, options)
}

fn attach_with(syscalls: &str, pid: u32, directory: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(chase());
    command
        .args(["attach", "--syscalls", syscalls, "-o"])
        .arg(directory)
        .args(options)
        .arg(pid.to_string());
    command.env("XDG_CONFIG_HOME", directory.join("config")).env_remove("LD_PRELOAD");
    command
}

impl Attached {
    /// Attaches, and waits until it records.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn begin(pid: u32, directory: &Path) -> Self {
        Self::start(attach(pid, directory, &[]))
    }

    /// The same, with a companion that watches its system calls.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn begin_watched(pid: u32, directory: &Path) -> Self {
        Self::start(attach_with("require", pid, directory, &[]))
    }

    /// The same, by this command.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("chase starts");
        let mut said = BufReader::new(child.stderr.take().expect("piped"));
        let mut first = String::new();
        said.read_line(&mut first).expect("it says something");
        assert!(first.contains("recording process"), "{first}");
        Self { child, said, first }
    }

    /// Leaves; all that it said.
    ///
    /// # Panics
    /// If that fails.
    pub fn end(mut self) -> String {
        // SAFETY: it is our child, which runs.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGINT) };
        let mut text = std::mem::take(&mut self.first);
        std::io::Read::read_to_string(&mut self.said, &mut text).expect("its words");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{text}");
        assert!(text.contains("entries are as they were"), "{text}");
        text
    }
}

/// What the GOT entries of a process hold, by file and place. Those of the C library that lead to the loader are left out: what is called
/// for the first time gets its address.
///
/// # Panics
/// If the process is not there.
#[must_use]
pub fn entries(pid: u32) -> BTreeMap<(String, u64), u64> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
    let memory = File::open(format!("/proc/{pid}/mem")).expect("memory");
    let mut found = BTreeMap::new();
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [range, _, offset, _, _, path] = fields[..] else { continue };
        if !path.starts_with('/')
            || u64::from_str_radix(offset, 16) != Ok(0)
            || path.contains("/libc.so.6")
        {
            continue;
        }
        let base =
            u64::from_str_radix(range.split('-').next().expect("a range"), 16).expect("an address");
        let listed = Command::new("readelf").args(["-rhW", path]).output().expect("readelf");
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let is_moved = listed
            .lines()
            .any(|line| line.trim_start().starts_with("Type:") && line.contains("DYN"));
        for line in listed
            .lines()
            .filter(|line| line.contains("R_X86_64_JUMP_SLO") || line.contains("R_X86_64_GLOB_DAT"))
        {
            let place =
                line.split_whitespace().next().and_then(|word| u64::from_str_radix(word, 16).ok());
            let place = place.expect("an offset");
            let mut word = [0; 8];
            if memory.read_exact_at(&mut word, place + if is_moved { base } else { 0 }).is_ok() {
                found.insert((path.to_owned(), place), u64::from_le_bytes(word));
            }
        }
    }
    assert!(!found.is_empty());
    found
}
