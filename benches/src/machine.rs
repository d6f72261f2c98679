//! The machine that was measured on, in general terms.

use std::fmt;
use std::fs::read_to_string;
use std::process::Command;

use serde::Serialize;

use crate::bench::installed;

/// Tools whose version matters to a comparison, and how they tell it.
const TOOLS: [(&str, &str); 12] = [
    ("uftrace", "--version"),
    ("ltrace", "--version"),
    ("strace", "--version"),
    ("perf", "--version"),
    ("bpftrace", "--version"),
    ("gcc", "--version"),
    ("python3", "--version"),
    ("perl", "--version"),
    ("node", "--version"),
    ("java", "-version"),
    ("redis-server", "--version"),
    ("ldd", "--version"),
];

/// What one must know to compare figures with others.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Machine {
    cpu: String,
    /// How many the benchmark may use.
    processors: usize,
    /// There is a hypervisor.
    is_virtual: bool,
    /// First two numbers of its version.
    kernel: String,
    /// How many programs ran on average, in the minute before the first measurement.
    load_before: f64,
    /// Share of processor time that the hypervisor gave to others meanwhile, percent; `None` where
    /// it does not say.
    stolen: Option<f64>,
    /// Name and version.
    tools: Vec<(String, String)>,
}

/// Processor time of the machine so far, in ticks.
#[derive(Clone, Copy)]
struct Ticks {
    all: f64,
    stolen: f64,
}

/// Looks at the machine while it is measured on.
pub(crate) struct Watch {
    load_before: f64,
    ticks: Option<Ticks>,
}

impl Watch {
    pub(crate) fn start() -> Self {
        let load = read_to_string("/proc/loadavg").unwrap_or_default();
        let load_before = load.split_whitespace().next().and_then(|n| n.parse().ok());
        Self { load_before: load_before.unwrap_or(0.0), ticks: Ticks::now() }
    }

    pub(crate) fn end(self) -> Machine {
        let info = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name| {
            let line = info.lines().find_map(|line| line.strip_prefix(name));
            line.map_or("", |rest| rest.trim_start_matches([' ', '\t', ':']))
        };
        let release = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let kernel: Vec<&str> = release.trim().split('.').take(2).collect();
        let passed = self.ticks.zip(Ticks::now());
        Machine {
            cpu: field("model name").to_owned(),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            is_virtual: field("flags").split(' ').any(|flag| flag == "hypervisor"),
            kernel: kernel.join("."),
            load_before: self.load_before,
            stolen: passed
                .map(|(from, to)| 100.0 * (to.stolen - from.stolen) / (to.all - from.all).max(1.0)),
            tools: TOOLS.iter().filter_map(|(tool, option)| version(tool, option)).collect(),
        }
    }
}

impl Ticks {
    fn now() -> Option<Self> {
        let stat = read_to_string("/proc/stat").ok()?;
        let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are among them already.
        let ticks: Vec<f64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        Some(Self { all: ticks.iter().sum(), stolen: *ticks.get(7)? })
    }
}

/// The last number with a point in the first line that it says of itself.
fn version(tool: &str, option: &str) -> Option<(String, String)> {
    installed(tool)?;
    let output = Command::new(tool).arg(option).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let said = said.lines().find(|line| !line.trim().is_empty())?;
    let is_version =
        |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    let words = said.split([' ', '(', ')', '"', '=', ',']);
    let mut words = words.map(|word| word.trim_start_matches('v').trim_end_matches('.'));
    let name = if tool == "ldd" { "glibc" } else { tool };
    // Before it may be that of a distribution's package.
    Some((name.to_owned(), words.rfind(is_version)?.to_owned()))
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_virtual { "Virtual machine" } else { "Machine" };
        write!(f, "{kind}, {}, {} processors, ", self.cpu, self.processors)?;
        write!(f, "Linux {}; load average {:.1} before", self.kernel, self.load_before)?;
        if let Some(stolen) = self.stolen {
            write!(f, ", {stolen:.1} % of processor time taken by other machines meanwhile")?;
        }
        let tools: Vec<_> = self.tools.iter().map(|(name, at)| format!("{name} {at}")).collect();
        write!(f, ".\n{}.", tools.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_told_without_names() {
        let machine = Watch::start().end();
        assert!(machine.processors > 0 && !machine.cpu.is_empty());
        let text = machine.to_string();
        assert!(text.contains(&format!(", {} processors, Linux ", machine.processors)), "{text}");
        assert!(!text.contains('/'), "{text}");
        let (name, at) = version("gcc", "--version").unwrap();
        assert!(name == "gcc" && at.split('.').count() > 1, "{name} {at}");
    }
}
