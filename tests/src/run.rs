//! One run of one command, with a time limit.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::need;

/// What a program left behind for its caller.
#[derive(Debug)]
pub struct Outcome {
    /// All of standard output.
    pub stdout: Vec<u8>,
    /// All of standard error.
    pub stderr: Vec<u8>,
    /// Exit status or signal.
    pub status: ExitStatus,
    /// From start to end.
    pub elapsed: Duration,
}

/// Runs a command, with its output in files of `scratch`: unlike a pipe, a file does not keep the
/// test waiting for a grandchild that still holds it.
pub(crate) fn run(mut command: Command, scratch: &Path, limit: Duration) -> Outcome {
    let [stdout, stderr] = ["stdout", "stderr"].map(|name| scratch.join(name));
    command.stdout(File::create(&stdout).expect("create a file for standard output"));
    command.stderr(File::create(&stderr).expect("create a file for standard error"));
    // A group of its own, so that all of it can be killed.
    command.process_group(0);

    let start = Instant::now();
    let mut child =
        command.spawn().unwrap_or_else(|error| panic!("can't run {command:?}: {error}"));
    let Some(status) = wait(&mut child, limit) else {
        let stacks = stacks_of(child.id());
        kill(&mut child);
        panic!("{command:?} hangs: killed after {limit:?}\n{stacks}");
    };
    Outcome {
        stdout: fs::read(stdout).expect("read standard output"),
        stderr: fs::read(stderr).expect("read standard error"),
        status,
        elapsed: start.elapsed(),
    }
}

fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().expect("wait for the program") {
            return Some(status);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
    None
}

fn kill(child: &mut Child) {
    let group = -i32::try_from(child.id()).expect("a process id is an int");
    // SAFETY: kill touches no memory; the group is that of our own child, which was not waited
    // for, so that its number can't have been given to another.
    unsafe { libc::kill(group, libc::SIGKILL) };
    let _ = child.wait();
}

/// Where a hanging program is, if gdb can tell.
fn stacks_of(pid: u32) -> String {
    let Some(gdb) = need::find("gdb") else { return String::new() };
    let mut command = Command::new(gdb);
    command.args(["-batch", "-nx", "-ex", "thread apply all bt 30", "-p", &pid.to_string()]);
    match command.env_remove("LD_LIBRARY_PATH").output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(_) => String::new(),
    }
}
