//! Other tools that trace calls, to be compared with.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::bench::{Bench, Run, Running, TooLong, Under, installed};
use crate::report::{Beyond, Report};

/// What chase takes, times all that uftrace takes to record the same calls.
pub(crate) const BAR: f64 = 1.0;

/// What a tool is stopped after: so many times the bare run, but within these.
const PATIENCE: f64 = 100.0;
const PATIENCE_LEAST: Duration = Duration::from_secs(10);
const PATIENCE_MOST: Duration = Duration::from_secs(60);

/// Stands for a path at which a tool writes what it has found.
const OUTPUT: &str = "OUTPUT";

/// What bpftrace adds to its program's output at the end, even where it writes to a file.
const OWN_OUTPUT: &[u8] = b"\n\n";

/// One way to use one tool.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    tool: &'static str,
    options: Vec<String>,
    /// The command to trace is one argument.
    quoted: bool,
    /// Whether what it wrote says that it has seen a call.
    saw: fn(&Path) -> bool,
}

/// Of libraries by libraries too, as chase does.
const NESTED: &str = "uftrace record -l";

/// What traces library calls.
pub(crate) fn library_calls() -> Vec<Peer> {
    let options = ["-f", "-c", "-o", OUTPUT].map(str::to_owned).to_vec();
    let ltrace = Peer { name: "ltrace -c", tool: "ltrace", options, quoted: false, saw: total };
    vec![uftrace("uftrace record", &[]), uftrace(NESTED, &["-l"]), ltrace]
}

/// What traces system calls.
pub(crate) fn system_calls() -> Vec<Peer> {
    let owned = |options: &[&str]| options.iter().map(|&option| option.to_owned()).collect();
    let script = "tracepoint:raw_syscalls:sys_enter { @s[tid] = nsecs; } \
        tracepoint:raw_syscalls:sys_exit /@s[tid]/ { @n[args->id] = count(); \
        @t[args->id] = sum(nsecs - @s[tid]); delete(@s[tid]); }";
    vec![
        Peer {
            name: "strace -c",
            tool: "strace",
            options: owned(&["-f", "-qq", "-c", "-o", OUTPUT]),
            quoted: false,
            saw: total,
        },
        Peer {
            name: "perf trace -s",
            tool: "perf",
            options: owned(&["trace", "-s", "-o", OUTPUT, "--"]),
            quoted: false,
            saw: |output| text(output).contains(" events, "),
        },
        bpftrace("bpftrace, raw_syscalls", script.to_owned()),
    ]
}

/// bpftrace, which times calls of these `functions` of `library`.
pub(crate) fn uprobes(name: &'static str, library: &Path, functions: &[&str]) -> Peer {
    let probes = |kind: &str| {
        let probe = |function: &&str| format!("{kind}:{}:{function}", library.display());
        functions.iter().map(probe).collect::<Vec<_>>().join(", ")
    };
    let (entries, returns) = (probes("uprobe"), probes("uretprobe"));
    bpftrace(
        name,
        format!(
            "{entries} {{ @s[tid] = nsecs; }} {returns} /@s[tid]/ {{ @n[probe] = count(); \
             @t[probe] = sum(nsecs - @s[tid]); delete(@s[tid]); }}"
        ),
    )
}

fn uftrace(name: &'static str, more: &[&str]) -> Peer {
    // Programs need not be compiled for it.
    let mut options = ["record", "--force", "-d", OUTPUT].map(str::to_owned).to_vec();
    options.extend(more.iter().map(|&option| option.to_owned()));
    Peer { name, tool: "uftrace", options, quoted: false, saw: records }
}

fn bpftrace(name: &'static str, script: String) -> Peer {
    let mut options = ["-o", OUTPUT, "-e"].map(str::to_owned).to_vec();
    options.extend([script, "-c".to_owned()]);
    Peer {
        name,
        tool: "bpftrace",
        options,
        quoted: true,
        saw: |output| text(output).contains("@n"),
    }
}

impl Peer {
    /// Whether calls are recorded by the process that makes them.
    pub(crate) fn is_in_process(&self) -> bool {
        self.tool == "uftrace"
    }

    /// Whether it records what chase records when every call is timed.
    pub(crate) fn records_the_same(&self) -> bool {
        self.name == NESTED
    }

    /// Starts `command` under it; the path is where it writes.
    pub(crate) fn start(
        &self,
        bench: &Bench,
        directory: &Path,
        command: &[String],
    ) -> Result<(Running, Output)> {
        let output = Output(bench.fresh());
        let place = output.0.display().to_string();
        let mut wrapped = vec![self.tool.to_owned()];
        wrapped.extend(self.options.iter().map(|option| match option.as_str() {
            OUTPUT => place.clone(),
            other => other.to_owned(),
        }));
        let mut command = command.to_vec();
        if let Some(program) = command.first_mut()
            && let Some(path) = installed(program)
        {
            // bpftrace does not take what is in two places of the path.
            *program = path.display().to_string();
        }
        if self.quoted {
            if command.iter().any(|word| word.contains(' ')) {
                bail!("{} can't be given an argument with a space", self.name);
            }
            wrapped.push(command.join(" "));
        } else {
            wrapped.append(&mut command);
        }
        Ok((bench.start(directory, Under::Nothing, &wrapped)?, output))
    }

    /// Runs `command` under it; fails when it has seen nothing.
    pub(crate) fn run(
        &self,
        bench: &Bench,
        directory: &Path,
        command: &[String],
        limit: Duration,
    ) -> Result<Run> {
        let (running, output) = self.start(bench, directory, command)?;
        let mut run = running.finish(limit)?;
        self.must_have_seen(&output)?;
        if self.quoted && run.stdout.ends_with(OWN_OUTPUT) {
            run.stdout.truncate(run.stdout.len() - OWN_OUTPUT.len());
        }
        Ok(run)
    }

    /// Fails when it has seen no call, which costs nothing and is worth nothing.
    pub(crate) fn must_have_seen(&self, output: &Output) -> Result<()> {
        if !(self.saw)(&output.0) {
            bail!("{} has seen no call", self.name);
        }
        Ok(())
    }

    /// Why it can't be used here.
    pub(crate) fn unusable(&self, bench: &Bench) -> Option<String> {
        if installed(self.tool).is_none() {
            return Some("not installed".to_owned());
        }
        let run = || {
            let directory = bench.directory("peers")?;
            let (running, _output) = self.start(bench, &directory, &["true".to_owned()])?;
            running.finish(PATIENCE_LEAST)
        };
        run().err().map(|why| format!("{why:#}"))
    }
}

/// Where a tool has written something, which is removed when this is dropped.
pub(crate) struct Output(PathBuf);

impl Drop for Output {
    fn drop(&mut self) {
        // A file or a directory; what can't be removed goes with the directory it is in.
        let _ = std::fs::remove_file(&self.0).or_else(|_| std::fs::remove_dir_all(&self.0));
    }
}

/// How long to wait for a tool when the bare run takes `bare`.
pub(crate) fn patience(bare: Duration) -> Duration {
    bare.mul_f64(PATIENCE).clamp(PATIENCE_LEAST, PATIENCE_MOST)
}

/// Those of `peers` that can be used here, and a row of `part` for each that can't.
pub(crate) fn usable(
    bench: &Bench,
    report: &mut Report,
    part: &'static str,
    mut peers: Vec<Peer>,
) -> Vec<Peer> {
    peers.retain(|peer| match peer.unusable(bench) {
        None => true,
        Some(why) => {
            report.skipped(part, peer.name, &why);
            false
        }
    });
    peers
}

/// A row for a tool that gave no figure, with no verdict: it is not chase that is judged.
/// `bare` is what the bare run takes.
pub(crate) fn gave_none(
    report: &mut Report,
    part: &'static str,
    what: &str,
    why: &anyhow::Error,
    bare: Option<Duration>,
) {
    match (why.downcast_ref::<TooLong>(), bare) {
        (Some(TooLong(limit)), Some(bare)) => {
            let times = limit.as_secs_f64() / bare.as_secs_f64();
            report.beyond(part, what, "×", Beyond::Above(times), &why.root_cause().to_string());
        }
        _ => report.without_verdict(part, what, &format!("{why:#}")),
    }
}

fn text(output: &Path) -> String {
    std::fs::read(output).map_or_else(|_| String::new(), |b| String::from_utf8_lossy(&b).into())
}

/// The last line of a table by strace or ltrace: share, seconds, microseconds per call, calls, ...
fn total(output: &Path) -> bool {
    let text = text(output);
    let total = text.lines().rfind(|line| line.ends_with(" total"));
    total.is_some_and(|line| {
        // ltrace has no microseconds there.
        let calls = line.split_whitespace().skip(2).filter_map(|n| n.parse::<u64>().ok()).max();
        calls.is_some_and(|calls| calls > 0)
    })
}

/// A thread's records by uftrace, in a directory.
fn records(output: &Path) -> bool {
    let Ok(files) = std::fs::read_dir(output) else { return false };
    files.filter_map(Result::ok).any(|file| {
        let path = file.path();
        let thread = path.file_stem().is_some_and(|s| s.to_string_lossy().parse::<u32>().is_ok());
        let data = path.extension().is_some_and(|extension| extension == "dat");
        thread && data && file.metadata().is_ok_and(|metadata| metadata.len() > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_no_calls_is_evidence_of_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let table = directory.path().join("table");
        let saw = |text: &str| {
            std::fs::write(&table, text).unwrap();
            total(&table)
        };
        assert!(saw("100.00    0.060049                  1000 total\n"));
        assert!(saw("100.00    0.000000           0        75        38 total\n"));
        assert!(!saw("100.00    0.000000                     0 total\n"));
        assert!(!saw(""));
    }

    #[test]
    fn patience_is_a_multiple_within_bounds() {
        assert_eq!(patience(Duration::from_millis(1)), PATIENCE_LEAST);
        assert_eq!(patience(Duration::from_millis(300)), Duration::from_secs(30));
        assert_eq!(patience(Duration::from_secs(3)), PATIENCE_MOST);
    }
}
