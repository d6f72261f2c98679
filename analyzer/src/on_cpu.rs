//! Where the processor was: samples of what each thread ran, by the clock of its CPU.
//!
//! Let a thread have *n* samples and *T* time on the CPU, from switch to switch. *k* of them stand for a time of
//! *T·k/n*: what the clock finds is proportional to the time that is spent there. Threads with few samples are taken
//! together, by process, so that what many short ones did is there in the sum. The confidence interval is Wilson's, of
//! *k* in all *n*.
//!
//! Samples that were taken without privilege are of user space alone. Each stands for the time between two strokes of the
//! clock, which runs while the thread does; what a thread lacks then it was in the kernel, nobody knows on whose behalf.
//!
//! What it takes to watch a system call is time in the kernel that the application would not spend. The companion has
//! measured it, and the system calls are counted: so much is taken off each thread's time in the kernel, off every sample
//! there alike, and told as a part of its own.

mod collect;
mod tables;

use serde::Serialize;

use crate::address::CodeAddress;
use crate::clock::Ns;
use crate::sampled::SampledTime;

pub(crate) use collect::Collected;
pub(crate) use tables::tables_of;

/// Time on the CPU, by samples; what chase itself takes in the process is in it, as an object of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OnCpu {
    /// Samples per second and CPU; 0 where none were taken.
    pub sample_hz: u64,
    /// Samples of what was selected.
    pub samples: u64,
    /// Whether samples are of time in user space alone, in some process at least: taken without privilege.
    pub user_only: bool,
    /// Samples of the run for which there was no room.
    pub lost_samples: u64,
    /// Time on the CPU of all threads that were watched, measured.
    pub on_cpu_ns: Ns,
    /// The part of it that no sample tells of: threads of processes without a single one, and time in the kernel where
    /// samples are of user space alone.
    pub not_sampled_ns: Ns,
    /// The part of it that watching system calls took, in the kernel.
    pub watching_ns: Ns,
    /// By object, longest first. With `not_sampled_ns` and `watching_ns`, they add up to `on_cpu_ns`.
    pub objects: Vec<OnCpuObject>,
    /// By address, longest first. Not in JSON, where functions are.
    #[serde(skip)]
    pub addresses: Vec<OnCpuAddress>,
    /// What ran in no library call, by the object that it was in, by number in
    /// [`Analysis::objects`](crate::Analysis::objects). Not in JSON.
    #[serde(skip)]
    pub outside: Vec<(u32, Ns)>,
}

/// What was in one object.
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

/// What was at one address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnCpuAddress {
    /// The address.
    pub address: CodeAddress,
    /// The object, by number in [`Analysis::objects`](crate::Analysis::objects).
    pub object: u32,
    /// A process that it is of, by number in [`Analysis::processes`](crate::Analysis::processes).
    pub process: usize,
    /// Its time.
    pub time: SampledTime,
}

impl OnCpu {
    /// What shares are of: all time on the CPU but what watching system calls took.
    #[must_use]
    pub fn whole_ns(&self) -> Ns {
        Ns(self.on_cpu_ns.0.saturating_sub(self.watching_ns.0))
    }

    /// Half the width of the 95 % confidence interval of the time of so many of the samples.
    #[must_use]
    pub fn ci95_ns(&self, samples: u64) -> Ns {
        let others = self.not_sampled_ns.0.saturating_add(self.watching_ns.0);
        let sampled = self.on_cpu_ns.0.saturating_sub(others);
        Ns::from_f64(tables::wilson(samples, self.samples) * sampled as f64)
    }
}
