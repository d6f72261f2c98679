//! What happened when, as trace viewers want it.

/// A run in time. Times are in nanoseconds of `CLOCK_MONOTONIC`, unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// What it is a trace of.
    pub title: String,
    /// When time 0 was, ns since 1970.
    pub realtime_ns: u64,
    /// Functions, by number.
    pub functions: Vec<TraceFunction>,
    /// What samples found, by number: functions, outermost first.
    pub stacks: Vec<Vec<u32>>,
    /// Samples per second and processor.
    pub sample_hz: u64,
    /// Processes, parents before children.
    pub processes: Vec<TraceProcess>,
}

/// A function of a library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFunction {
    /// Its name.
    pub name: String,
    /// The library that it is in.
    pub library: String,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceProcess {
    /// Its id.
    pub pid: u32,
    /// Its program.
    pub name: String,
    /// Arguments, the program's name first.
    pub command: Vec<String>,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Its threads.
    pub threads: Vec<TraceThread>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceThread {
    /// Its id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Whether the process began with it.
    pub is_main: bool,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Its calls by their start, outer ones first. Each ends before the one that it is in, or with it.
    pub calls: Vec<TraceCall>,
    /// Its waits by their start. None overlaps another.
    pub waits: Vec<TraceWait>,
    /// Its system calls by their start, where they were told one by one. None overlaps another.
    pub syscalls: Vec<TraceSyscall>,
    /// Samples of what it ran, by time.
    pub samples: Vec<TraceSample>,
    /// Moments with a name.
    pub marks: Vec<(u64, String)>,
}

/// A system call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceSyscall {
    /// Name and arguments, as in C.
    pub call: String,
    /// What it returned.
    pub result: String,
    /// When it began.
    pub start_ns: u64,
    /// When it returned; `None` if it did not.
    pub end_ns: Option<u64>,
}

/// A sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceSample {
    /// When it was taken.
    pub at_ns: u64,
    /// What it found: the library calls that the thread was in and the function that ran, by number in [`Trace::stacks`].
    pub stack: u32,
    /// How many samples it stands for.
    pub stands_for: u32,
    /// Whether the kernel ran, for that function.
    pub is_in_kernel: bool,
}

/// A call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceCall {
    /// The function, by number.
    pub function: u32,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// In how many others it is.
    pub depth: u16,
    /// It had not returned by then.
    pub is_open: bool,
}

/// A wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceWait {
    /// What for, in few words.
    pub what: String,
    /// When it began.
    pub start_ns: u64,
    /// When the thread was woken; its end, where that is not known.
    pub woken_ns: u64,
    /// When it ran again.
    pub end_ns: u64,
    /// Who has woken it: process and thread, by their places.
    pub waker: Option<(usize, usize)>,
}

impl TraceThread {
    /// Puts calls so that each ends before the one that it is in, which clocks may contradict by a few nanoseconds.
    pub(crate) fn nested(&self) -> Vec<TraceCall> {
        let mut calls = self.calls.clone();
        let mut ends: Vec<u64> = Vec::new();
        for call in &mut calls {
            ends.truncate(usize::from(call.depth));
            let outer = ends.last().copied().unwrap_or(u64::MAX);
            call.end_ns = call.end_ns.min(outer).max(call.start_ns);
            ends.push(call.end_ns);
        }
        calls
    }
}
