//! The rows of the tables. Names in JSON are those of the fields.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::address::CodeAddress;
use crate::arguments::ArgumentRow;
use crate::blocking::Cause;
use crate::clock::Ns;
use crate::image::{Ending, SyscallsState};

pub use crate::off_cpu::{MeasuredOffCpu, WaitSource};
use crate::sampled::{OnCpuOfApi, SampledTime};

/// Figures of a set of calls. Times are free of the hook's own cost; see the crate's documentation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measures {
    /// Calls begun; exact, unless `calls_estimated`.
    pub calls: u64,
    /// Whether some of the calls may be missing: nobody has told the recording of the latest
    /// ([`NotSeen::latest_calls`](crate::NotSeen::latest_calls)), which may also be too many, or of those of a fork's child
    /// ([`NotSeen::calls_since_fork`](crate::NotSeen::calls_since_fork)), or an older version has seen a function in windows
    /// alone ([`NotSeen::processes_in_windows`](crate::NotSeen::processes_in_windows)).
    pub calls_estimated: bool,
    /// The latest calls, at most, by which `calls` is too low or too high; 0 where it is exact. What else is missing is
    /// not in it.
    pub calls_ci95: u64,
    /// Those among them that were counted and not timed.
    pub untimed: u64,
    /// Calls that a clock was read for. Where they are fewer than `calls` less `untimed` and
    /// `open`, each stands for several.
    pub timed: u64,
    /// Whether `self_ns`, and what depends on it, rests on calls that stand for others.
    pub estimated: bool,
    /// Half the width of the 95 % confidence interval of `self_ns`; 0 where nothing is estimated.
    pub ci95_ns: Ns,
    /// Calls left by an exception, a `longjmp` or a cancellation, or suspended when their thread went on on another stack.
    pub unwound: u64,
    /// Calls that had not returned at the end; the time of the latest chain of them is included.
    pub open: u64,
    /// Time with the library calls made inside. Of nested calls in the same set, only the
    /// outermost counts.
    pub total_ns: Ns,
    /// Time without the library calls made inside.
    pub self_ns: Ns,
    /// The part of `self_ns` in which the thread waited, off the CPU: from the scheduler, or, by
    /// name, the self time of APIs that are known to wait. [`WaitSource`] says which.
    pub wait_ns: Ns,
    /// The part of `self_ns` in which the thread could have run and another did; what is left is
    /// running. `None` where the scheduler was not asked.
    pub preempted_ns: Option<Ns>,
    /// `self_ns` as a fraction of application time and all self times together.
    pub share: f64,
    /// Mean duration of a call that was timed.
    pub mean_ns: Option<Ns>,
    /// Median of the durations of completed calls, within 6.25 %. `None` if there are none.
    pub p50_ns: Option<Ns>,
    /// 90 % of the calls took no longer. Quantiles of estimates are `None` where fewer than ten
    /// timed calls took longer, or where their confidence interval is wider than a bucket to each side.
    pub p90_ns: Option<Ns>,
    /// 99 % of the calls took no longer.
    pub p99_ns: Option<Ns>,
    /// 99.9 % of the calls took no longer.
    pub p999_ns: Option<Ns>,
    /// The longest call that was timed, exact but for the hook's cost. Of those that were not, with
    /// a confidence of 95 % at most 3 in `timed` took longer (the rule of three).
    pub max_ns: Option<Ns>,
}

impl Measures {
    /// Whether some of these calls were not timed themselves, and stand in the figures all the same.
    #[must_use]
    pub fn samples_only(&self) -> bool {
        self.estimated && self.timed < self.calls.saturating_sub(self.untimed + self.open)
    }

    /// `calls_ci95` as a fraction of `calls`, where they are estimated.
    #[must_use]
    pub fn calls_ci95_share(&self) -> Option<f64> {
        (self.calls_estimated && self.calls > 0).then(|| self.calls_ci95 as f64 / self.calls as f64)
    }

    /// `ci95_ns` as a fraction of `self_ns`, where that is an estimate.
    #[must_use]
    pub fn ci95_share(&self) -> Option<f64> {
        (self.estimated && self.self_ns.0 > 0)
            .then(|| self.ci95_ns.as_f64() / self.self_ns.as_f64())
    }
}

/// A file that was loaded, in any process of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectRow {
    /// Path as the dynamic linker knew it; empty where the object is not known.
    pub path: String,
    /// Its soname, or the name of the file.
    pub name: String,
    /// GNU build id in hexadecimal digits, or empty.
    pub build_id: String,
    /// Whether it is an executable.
    pub executable: bool,
}

/// What a row of the table of libraries stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LibraryKind {
    /// The application's own time: lifetime of the threads that run its code less their library calls.
    Application,
    /// Calls into a library, and the own code of threads that run it.
    Library,
    /// Time of which nobody knows whose it is ([`ThreadRow::unattributed_ns`]).
    Unattributed,
}

/// A library, or an executable's own time.
#[derive(Clone, Debug, Serialize)]
pub struct LibraryRow {
    /// Library or application.
    pub kind: LibraryKind,
    /// The object, by number in [`Analysis::objects`](crate::Analysis::objects).
    pub object: u32,
    /// Its name.
    pub name: String,
    /// Its path.
    pub path: String,
    /// The part of `self_ns` in no library call: what threads spent in their own code ([`ThreadRow::own_object`]).
    pub own_code_ns: Ns,
    /// Where the processor was, by samples, whoever called what. Of an object with rows of both kinds, in that of the
    /// application. Missing where no samples were taken, as in [`ApiRow`].
    #[serde(flatten)]
    pub on_cpu: Option<SampledTime>,
    /// Time off the CPU in calls of it, without library calls made inside; of an application, in own code.
    #[serde(flatten)]
    pub off_cpu: MeasuredOffCpu,
    /// Its figures. Of an application: `self_ns` is application time, `total_ns` lifetime.
    #[serde(flatten)]
    pub measures: Measures,
}

/// A function called from another object.
#[derive(Clone, Debug, Serialize)]
pub struct ApiRow {
    /// The object that it is in, by number in [`Analysis::objects`](crate::Analysis::objects).
    pub object: u32,
    /// The object's name.
    pub library: String,
    /// Its name in the symbol table.
    pub symbol: String,
    /// Its symbol version, or empty.
    pub version: String,
    /// What it waits for, if it is known to wait.
    pub waits_for: Option<Cause>,
    /// Where the processor was during its calls, by samples.
    #[serde(flatten)]
    pub on_cpu: Option<OnCpuOfApi>,
    /// Time off the CPU during its calls, without library calls made inside.
    #[serde(flatten)]
    pub off_cpu: MeasuredOffCpu,
    /// What an argument of its calls was, where it is one that says how much a call has to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<ArgumentRow>,
    /// Its figures.
    #[serde(flatten)]
    pub measures: Measures,
}

/// Calls of one object to one API.
#[derive(Clone, Debug, Serialize)]
pub struct CallerRow {
    /// The calling object, by number in [`Analysis::objects`](crate::Analysis::objects).
    pub caller: u32,
    /// Its name.
    pub caller_name: String,
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis).
    pub api: u32,
    /// The API's library.
    pub library: String,
    /// The API's name in the symbol table.
    pub symbol: String,
    /// Its figures.
    #[serde(flatten)]
    pub measures: Measures,
}

/// A chain of library calls. Rows are in depth-first order, what took longest first.
#[derive(Clone, Debug, Serialize)]
pub struct ContextRow {
    /// How many calls it is in; 0 for calls of the thread's own code.
    pub depth: u32,
    /// Row of the context that it was called in.
    pub parent: Option<u32>,
    /// The calling object, by number in [`Analysis::objects`](crate::Analysis::objects).
    pub caller: u32,
    /// The API called, by number in [`Analysis::apis`](crate::Analysis::apis).
    pub api: u32,
    /// As [`ApiRow::argument`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<ArgumentRow>,
    /// Time on the CPU during its calls, without library calls made inside, by samples; 0 where none were taken. Not in
    /// JSON, where APIs have it.
    #[serde(skip)]
    pub on_cpu_ns: Ns,
    /// Its figures.
    #[serde(flatten)]
    pub measures: Measures,
}

/// A thread.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadRow {
    /// Its process, by number in [`Analysis::processes`](crate::Analysis::processes).
    pub process: usize,
    /// Its number in the process; 0 is usually the main thread.
    pub thread: u32,
    /// Kernel thread id.
    pub tid: u32,
    /// Name.
    pub name: String,
    /// How it came to be.
    pub origin: ThreadOrigin,
    /// Start, since the start of the run.
    pub start_ns: Ns,
    /// End, since the start of the run.
    pub end_ns: Ns,
    /// End minus start.
    pub lifetime_ns: Ns,
    /// Whether `end_ns` is only the latest moment that left a trace.
    pub end_is_estimate: bool,
    /// Lifetime less the outermost library calls: the thread's own code.
    pub application_ns: Ns,
    /// The object that this code is in, by number in [`Analysis::objects`](crate::Analysis::objects): that of the start
    /// routine, or, where that is a runtime's, of what the thread was made to run; otherwise the executable.
    pub own_object: u32,
    /// Time that is neither in `application_ns` nor in any call: how long others had the processor during calls that
    /// were not timed, where the scheduler was not asked. An estimate.
    pub unattributed_ns: Ns,
    /// The part of `application_ns` in which the thread waited, off the CPU; `None` where the scheduler was not
    /// asked.
    pub application_wait_ns: Option<Ns>,
    /// The part of it in which the thread could have run and another did.
    pub application_preempted_ns: Option<Ns>,
    /// Time on the CPU: from switch to switch, where a companion measured it, or by the thread's clock, if its end was
    /// seen. What the hook and the kernel did for it is included.
    pub on_cpu_ns: Option<Ns>,
    /// Time off the CPU. It and `on_cpu_ns` add up to the lifetime.
    #[serde(flatten)]
    pub off_cpu: MeasuredOffCpu,
    /// What the hook cost this thread; it is in no other figure.
    pub own_cost_ns: Ns,
    /// By how much the parts exceed the lifetime, which only contradictory data do.
    pub overlap_ns: Ns,
    /// Start routine.
    pub start_routine: Option<CodeAddress>,
    /// Argument of the start routine.
    pub start_argument: u64,
    /// Where it was created: return address of the call.
    pub creation_site: Option<CodeAddress>,
    /// Number of the thread that created it.
    pub creator: Option<u32>,
    /// What else was seen of its creation, from which the function that it runs can be told.
    #[serde(skip)]
    pub creation: ThreadCreation,
    /// Calls that were made and not recorded.
    pub lost_calls: u64,
    /// Figures of all its library calls; `total_ns` and `self_ns` are equal.
    #[serde(flatten)]
    pub measures: Measures,
    /// Its APIs, by number of the API.
    pub apis: Vec<ThreadApi>,
    /// Its contexts, in the order of its recording; several may be parts of one row. Not in JSON.
    #[serde(skip)]
    pub contexts: Vec<ThreadContext>,
}

/// How a thread came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadOrigin {
    /// The thread that the process started with.
    Main,
    /// Another thread created it.
    Created,
    /// First seen in mid-life.
    Found,
}

/// What a thread spent in a context.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadContext {
    /// The row, by number in [`Analysis::contexts`](crate::Analysis::contexts).
    pub context: u32,
    /// Calls begun.
    pub calls: u64,
    /// Time with the library calls made inside.
    pub total_ns: Ns,
    /// Time without the library calls made inside.
    pub self_ns: Ns,
    /// The part of `self_ns` in which it waited.
    pub wait_ns: Ns,
}

impl ThreadRow {
    /// By how much application time, self times and own cost together miss the lifetime, as a
    /// fraction of it.
    #[must_use]
    pub fn conservation_error(&self) -> f64 {
        let parts =
            [self.application_ns, self.unattributed_ns, self.measures.self_ns, self.own_cost_ns];
        let lifetime = self.lifetime_ns.as_f64();
        let missed = (parts.iter().map(|part| part.as_f64()).sum::<f64>() - lifetime).abs();
        if missed == 0.0 { 0.0 } else { missed / lifetime }
    }
}

/// What was seen of a thread's creation. All of it is raw: symbols give it a meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadCreation {
    /// Return addresses, innermost first: of the call that created the thread, then of the library
    /// calls that it was made in. Calls within an object are not among them.
    pub stack: Vec<CodeAddress>,
    /// What the start routine's argument pointed to, as addresses; 0 for words that are none in a
    /// file.
    pub words: Vec<CodeAddress>,
    /// What the second of the words pointed to.
    pub inner_words: Vec<CodeAddress>,
    /// What the Python interpreter runs in it: `module.qualname`.
    pub python_function: Option<String>,
    /// Name of the interpreter's `Thread` object.
    pub python_thread_name: Option<String>,
}

/// What a thread spent in an API.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadApi {
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis).
    pub api: u32,
    /// Calls begun.
    pub calls: u64,
    /// Time with the library calls made inside, of the outermost calls.
    pub total_ns: Ns,
    /// Time without the library calls made inside.
    pub self_ns: Ns,
    /// The part of `self_ns` in which it waited, as in [`Measures::wait_ns`].
    pub wait_ns: Ns,
    /// The part of `self_ns` in which it could have run and another thread did; 0 where the
    /// scheduler was not asked.
    pub preempted_ns: Ns,
    /// Mean of the argument that says how much a call has to do, where that is known ([`ApiRow::argument`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_mean: Option<f32>,
}

/// A process image.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessRow {
    /// Its recording. In JSON, bytes that are not UTF-8 are U+FFFD.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Process id.
    pub pid: u32,
    /// The parent's process id.
    pub parent_pid: u32,
    /// The image that it came from, by number in
    /// [`Analysis::processes`](crate::Analysis::processes).
    pub parent: Option<usize>,
    /// Whether a fork made it, and no exec followed.
    pub forked: bool,
    /// What it was started as: the name of the executable, or of the link to it by which it was called.
    pub program: String,
    /// Path of the executable.
    pub executable: String,
    /// Arguments, the program's name first.
    pub command: Vec<String>,
    /// Start, since the start of the run.
    pub start_ns: Ns,
    /// From start to end.
    pub wall_ns: Ns,
    /// How it ended.
    pub ending: Ending,
    /// Whether the end is only the latest moment that left a trace.
    pub end_is_estimate: bool,
    /// Whether a rate of its clock was measured; if not, times are in ticks.
    pub clock_is_calibrated: bool,
    /// Whether there is a recording; if not, only its system calls are known.
    pub is_recorded: bool,
    /// What is known of its system calls.
    pub syscalls: SyscallsState,
    /// Where its waits are from.
    pub wait_source: WaitSource,
    /// Its figures.
    #[serde(flatten)]
    pub totals: Totals,
}

/// Figures of a process or of all that was selected.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// Threads.
    pub threads: usize,
    /// Library calls begun.
    pub calls: u64,
    /// Whether `calls` is an estimate; see [`Measures::calls_estimated`].
    pub calls_estimated: bool,
    /// Lifetimes of all threads.
    pub lifetime_ns: Ns,
    /// Their application times.
    pub application_ns: Ns,
    /// What is neither in those nor in library calls; see [`ThreadRow::unattributed_ns`].
    pub unattributed_ns: Ns,
    /// Self times of all their library calls.
    pub library_ns: Ns,
    /// The part of it spent waiting; see [`Measures::wait_ns`].
    pub wait_ns: Ns,
    /// The part of it spent preempted; see [`Measures::preempted_ns`].
    pub preempted_ns: Option<Ns>,
    /// The part of the application times spent waiting.
    pub application_wait_ns: Option<Ns>,
    /// The part of the application times spent preempted.
    pub application_preempted_ns: Option<Ns>,
    /// Time off the CPU, as it was measured.
    #[serde(flatten)]
    pub off_cpu: MeasuredOffCpu,
    /// What the hook cost them.
    pub own_cost_ns: Ns,
    /// By how much the parts exceed the lifetimes.
    pub overlap_ns: Ns,
}

impl Totals {
    /// What shares are of: application time, library calls, and what nobody knows whose it is.
    #[must_use]
    pub fn whole_ns(&self) -> Ns {
        let parts = [self.application_ns, self.unattributed_ns, self.library_ns];
        Ns(parts.iter().fold(0, |sum, part| sum.saturating_add(part.0)))
    }
}

/// serde refuses paths that are not UTF-8, and with them the whole document.
pub(crate) fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}
