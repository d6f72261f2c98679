//! What ran on the processors: samples of what each thread ran, taken by a timer of its CPU.
//!
//! Let a thread have *n* samples, and *T* time on the CPU, measured from switch to switch. *k* of the samples stand
//! for a time of *T·k/n*, since their number is proportional to the time spent. Threads with few samples are pooled
//! by process, so that the sum over many short threads is right. The confidence interval is Wilson's, for *k* of all
//! *n*.
//!
//! Samples taken without privilege are of user space only. Each stands for the period of the timer, which runs while
//! the thread runs; the rest of a thread's time was in the kernel, and it is unknown on whose behalf.
//!
//! Observing system calls takes time in the kernel that the application would not spend. The companion has measured
//! it per call, and system calls are counted: so it is subtracted from each thread's time in the kernel, evenly from
//! all samples there, and shown separately.

mod collect;
mod tables;

use serde::Serialize;

use crate::address::CodeAddress;
use crate::clock::Ns;
use crate::sampled::SampledTime;

pub(crate) use collect::{Collected, name_outside};
pub(crate) use tables::tables_of;

/// Time on the CPU by samples; what chase itself takes in the process is included, as a separate object.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OnCpu {
    /// Samples per second and CPU; 0 if none were taken.
    pub sample_hz: u64,
    /// The number of samples in the selection.
    pub samples: u64,
    /// Whether samples of some process are of user space only, because they were taken without privilege.
    pub user_only: bool,
    /// Samples of the run that were lost for lack of room.
    pub lost_samples: u64,
    /// Time on the CPU of all threads that were observed, as measured.
    pub on_cpu_ns: Ns,
    /// The part of it without samples: of threads of processes without any sample, and time in the kernel if samples
    /// are of user space only.
    pub not_sampled_ns: Ns,
    /// The part of it in the kernel that observing system calls took.
    pub watching_ns: Ns,
    /// By object, longest first. Together with `not_sampled_ns` and `watching_ns`, they add up to `on_cpu_ns`.
    pub objects: Vec<OnCpuObject>,
    /// By address, longest first. Not in JSON, which has functions instead.
    #[serde(skip)]
    pub addresses: Vec<OnCpuAddress>,
    /// Time outside of library calls, by the object whose code ran, as its number in
    /// [`Analysis::objects`](crate::Analysis::objects). Not in JSON.
    #[serde(skip)]
    pub outside: Vec<(u32, Ns)>,
    /// By thread, object and innermost library call. Not in JSON.
    #[serde(skip)]
    pub of_threads: Vec<OnCpuOfThread>,
}

/// The samples of one thread in one object, while it was in one library call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnCpuOfThread {
    /// The process, by number in [`Analysis::processes`](crate::Analysis::processes).
    pub process: u32,
    /// The thread's number in the process.
    pub thread: u32,
    /// The object whose code ran, by number in [`Analysis::objects`](crate::Analysis::objects).
    pub object: u32,
    /// The innermost API that the thread had called, by number in [`Analysis::apis`](crate::Analysis::apis); `None`: it was in no
    /// library call.
    pub api: Option<u32>,
    /// Its time.
    pub ns: Ns,
    /// The part of it in the kernel; 0 where samples are of user space alone.
    pub kernel_ns: Ns,
    /// The number of samples.
    pub samples: u64,
    /// Those of them in the kernel.
    pub kernel_samples: u64,
}

/// The samples in one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnCpuObject {
    /// The object, by number in [`Analysis::objects`](crate::Analysis::objects).
    pub object: u32,
    /// Its name.
    pub name: String,
    /// Its path.
    pub path: String,
    /// Its time.
    #[serde(flatten)]
    pub time: SampledTime,
}

/// The samples at one address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnCpuAddress {
    /// The address.
    pub address: CodeAddress,
    /// The object, by number in [`Analysis::objects`](crate::Analysis::objects).
    pub object: u32,
    /// A process in which the address is valid, by number in [`Analysis::processes`](crate::Analysis::processes).
    pub process: usize,
    /// Its time.
    pub time: SampledTime,
}

impl OnCpu {
    /// Returns what shares refer to: all time on the CPU except that of observing system calls.
    #[must_use]
    pub fn whole_ns(&self) -> Ns {
        Ns(self.on_cpu_ns.0.saturating_sub(self.watching_ns.0))
    }

    /// Returns half the width of the 95 % confidence interval of the time of so many samples.
    #[must_use]
    pub fn ci95_ns(&self, samples: u64) -> Ns {
        let others = self.not_sampled_ns.0.saturating_add(self.watching_ns.0);
        let sampled = self.on_cpu_ns.0.saturating_sub(others);
        Ns::from_f64(tables::wilson(samples, self.samples) * sampled as f64)
    }
}
