//! The rows of the tables. Names in JSON are those of the fields.

mod threads;

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::address::CodeAddress;
use crate::arguments::ArgumentRow;
use crate::blocking::Cause;
use crate::clock::Ns;
use crate::image::{Ending, SyscallsState, started_as};
pub use crate::off_cpu::{MeasuredOffCpu, WaitSource};
use crate::packed::Packed;
pub use crate::packed::{ThreadApi, ThreadContext};
use crate::sampled::{OnCpuOfApi, SampledTime};
use crate::texts::TextRow;

/// Figures of a set of calls. Times don't include the hook's overhead; see the crate's documentation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measures {
    /// Calls begun; exact, unless `calls_estimated`.
    pub calls: u64,
    /// Whether calls may be missing or too many: the latest ones were not credited
    /// ([`NotSeen::latest_calls`](crate::NotSeen::latest_calls)), a fork's child made calls before it was noticed
    /// ([`NotSeen::calls_since_fork`](crate::NotSeen::calls_since_fork)), or an older version saw a function only in
    /// windows ([`NotSeen::processes_in_windows`](crate::NotSeen::processes_in_windows)).
    pub calls_estimated: bool,
    /// How many of the latest calls `calls` may lack, or have too many; 0 if it is exact. Other missing calls are not
    /// included.
    pub calls_ci95: u64,
    /// Those that were counted and not timed.
    pub untimed: u64,
    /// Calls that were timed. If they are fewer than `calls` minus `untimed` and `open`, each stands for several.
    pub timed: u64,
    /// Whether `self_ns`, and what depends on it, is based on calls that stand for others.
    pub estimated: bool,
    /// Half the width of the 95 % confidence interval of `self_ns`, as far as it is an estimate; 0 if nothing is.
    pub ci95_ns: Ns,
    /// How far off `self_ns` may be because reading the clock takes longer in some places than in others, with 95 %
    /// confidence: a few nanoseconds for each timed call, the same in each run.
    pub clock_ci95_ns: Ns,
    /// Calls abandoned by an exception, a `longjmp` or a cancellation, or suspended when their thread continued on
    /// another stack.
    pub unwound: u64,
    /// Calls that had not returned at the end; the time of the latest chain of them is included.
    pub open: u64,
    /// Time including the library calls made inside. Of nested calls in the same set, only the outermost count.
    pub total_ns: Ns,
    /// Time without the library calls made inside.
    pub self_ns: Ns,
    /// The part of `self_ns` in which the thread waited, off the CPU: measured by the scheduler, or, by name, the
    /// self time of APIs that are known to wait. [`WaitSource`] tells which.
    pub wait_ns: Ns,
    /// The part of `self_ns` in which the thread was ready to run and another ran; the rest is running. `None` if the
    /// scheduler was not observed. (An estimate of `self_ns` contains it, too: see the crate's documentation.)
    pub preempted_ns: Option<Ns>,
    /// `self_ns` as a fraction of application time and all self times together.
    pub share: f64,
    /// Mean duration of the timed calls.
    pub mean_ns: Option<Ns>,
    /// Median duration, within 6.25 %; open calls count as longer than all others. `None` if none was completed, or many were unwound.
    pub p50_ns: Option<Ns>,
    /// 90th percentile of the duration. Quantiles of estimates are `None` if fewer than ten timed calls took longer,
    /// or if their confidence interval is wider than a bucket to either side.
    pub p90_ns: Option<Ns>,
    /// 99th percentile of the duration.
    pub p99_ns: Option<Ns>,
    /// 99.9th percentile of the duration.
    pub p999_ns: Option<Ns>,
    /// The longest timed call, exact except for the hook's cost; of one that was open at the end, what it had taken. Of calls that were
    /// not timed, with 95 % confidence at most 3 in `timed` took longer (the rule of three).
    pub max_ns: Option<Ns>,
}

impl Measures {
    /// Whether some of these calls were not timed, but are represented in the figures by others.
    #[must_use]
    pub fn samples_only(&self) -> bool {
        self.estimated && self.timed < self.calls.saturating_sub(self.untimed + self.open)
    }

    /// Returns `calls_ci95` as a fraction of `calls`, if they are estimated.
    #[must_use]
    pub fn calls_ci95_share(&self) -> Option<f64> {
        (self.calls_estimated && self.calls > 0).then(|| self.calls_ci95 as f64 / self.calls as f64)
    }

    /// Returns how far off `self_ns` may be in all, with 95 % confidence, in ns; `None` if that is nothing to speak of:
    /// of a time that is not estimated, less than a twentieth.
    #[must_use]
    pub fn self_error_ns(&self) -> Option<Ns> {
        let error = self.ci95_ns.as_f64().hypot(self.clock_ci95_ns.as_f64());
        let is_worth_telling = self.estimated || error >= 0.05 * self.self_ns.as_f64();
        (error > 0.0 && is_worth_telling).then(|| Ns::from_f64(error))
    }
}

/// A file that was loaded in any process of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectRow {
    /// Its path as the dynamic linker knew it; empty if the object is unknown.
    pub path: String,
    /// Its soname, or the name of the file.
    pub name: String,
    /// GNU build id in hexadecimal digits, or empty.
    pub build_id: String,
    /// Whether it is an executable.
    pub executable: bool,
}

impl ObjectRow {
    /// Whether it is the library of C++, whose functions stand for what the program does.
    pub(crate) fn is_library_of_cpp(&self) -> bool {
        ["libstdc++.", "libc++."].iter().any(|name| self.name.starts_with(name))
    }
}

/// The kind of a row in the table of libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LibraryKind {
    /// The application's own time: lifetime of the threads that run its code minus their library calls.
    Application,
    /// Calls into a library, and the own code of threads that run it.
    Library,
    /// Time that can't be attributed ([`ThreadRow::unattributed_ns`]).
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
    /// The part of `self_ns` outside of library calls: what threads spent in their own code
    /// ([`ThreadRow::own_object`]).
    pub own_code_ns: Ns,
    /// Time on the CPU in the object, by samples, whoever called it. If an object has rows of both kinds, it is in
    /// that of the application. Missing if no samples were taken, as in [`ApiRow`].
    #[serde(flatten)]
    pub on_cpu: Option<SampledTime>,
    /// Time off the CPU in calls of it, without library calls made inside; for an application, in own code.
    #[serde(flatten)]
    pub off_cpu: MeasuredOffCpu,
    /// Its figures. For an application, `self_ns` is application time, and `total_ns` is lifetime.
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
    /// Time on the CPU during its calls, by samples.
    #[serde(flatten)]
    pub on_cpu: Option<OnCpuOfApi>,
    /// Time off the CPU during its calls, without library calls made inside.
    #[serde(flatten)]
    pub off_cpu: MeasuredOffCpu,
    /// The argument of its calls, if there is one that says how much work a call does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<ArgumentRow>,
    /// The texts that its long calls were passed, those with the longest totals first: paths, names of hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<TextRow>,
    /// The places that it is called from, by samples, those with the most calls first.
    #[serde(skip)]
    pub places: Vec<CallPlace>,
    /// Its figures.
    #[serde(flatten)]
    pub measures: Measures,
}

impl ApiRow {
    /// Returns the text that most of the time of the long calls went to, if there is one.
    #[must_use]
    pub fn main_text(&self) -> Option<&str> {
        let first = self.texts.first()?;
        let all = self.texts.iter().fold(0, |sum: u64, row| sum.saturating_add(row.total_ns.0));
        first.text.as_deref().filter(|_| first.total_ns.0 >= all / 2)
    }
}

/// Calls of one API by one object.
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

/// A context: a chain of library calls. Rows are in depth-first order, longest first.
#[derive(Clone, Debug, Serialize)]
pub struct ContextRow {
    /// Its depth: the number of calls around it; 0 for calls by the thread's own code.
    pub depth: u32,
    /// The row of its caller's context.
    pub parent: Option<u32>,
    /// The calling object, by number in [`Analysis::objects`](crate::Analysis::objects).
    pub caller: u32,
    /// The API called, by number in [`Analysis::apis`](crate::Analysis::apis).
    pub api: u32,
    /// The return address of the calls, where contexts are told apart by the places of calls (`CHASE_SITES`).
    #[serde(skip)]
    pub site: Option<CodeAddress>,
    /// A process in which that is valid, by number in [`Analysis::processes`](crate::Analysis::processes).
    #[serde(skip)]
    pub process: usize,
    /// Like [`ApiRow::argument`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<ArgumentRow>,
    /// Like [`ApiRow::texts`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<TextRow>,
    /// Like [`ApiRow::places`].
    #[serde(skip)]
    pub places: Vec<CallPlace>,
    /// The places of long calls that are timed, with their shares of the time of all its calls, longest first.
    #[serde(skip)]
    pub long_places: Vec<CallPlace>,
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
    /// How it was created.
    pub origin: ThreadOrigin,
    /// Start, relative to the start of the run.
    pub start_ns: Ns,
    /// End, relative to the start of the run.
    pub end_ns: Ns,
    /// End minus start.
    pub lifetime_ns: Ns,
    /// Whether `end_ns` is only the time of the latest trace.
    pub end_is_estimate: bool,
    /// Lifetime minus the outermost library calls: the thread's own code.
    pub application_ns: Ns,
    /// The object that this code belongs to, by number in [`Analysis::objects`](crate::Analysis::objects): that of
    /// the start routine, or, if that is a runtime's, of what the thread was made to run; otherwise the executable.
    pub own_object: u32,
    /// Time neither in `application_ns` nor in any call: how long other threads had the processor during calls that were not timed,
    /// as far as nobody measured in which, an estimate; or, where calls were only counted, what is outside of the calls that were timed.
    pub unattributed_ns: Ns,
    /// The part of that in which the thread waited, off the CPU.
    pub unattributed_wait_ns: Ns,
    /// The part of it in which others had the processor.
    pub unattributed_preempted_ns: Ns,
    /// The part of `application_ns` in which the thread waited, off the CPU; `None` if the scheduler was not observed.
    pub application_wait_ns: Option<Ns>,
    /// The part of it in which the thread was ready to run and another ran.
    pub application_preempted_ns: Option<Ns>,
    /// The part of that, and of the calls' [`Measures::preempted_ns`], after waits: from being woken to running again.
    #[serde(skip)]
    pub woken_ns: Ns,
    /// Time on the CPU in its lifetime, what the hook and the kernel did for it included: as a companion measured it, or by its clock.
    pub on_cpu_ns: Option<Ns>,
    /// The same with what it ran before it was recorded: a program until the hook was loaded.
    #[serde(skip)]
    pub(crate) ran_ns: Option<Ns>,
    /// Time off the CPU. Together with `on_cpu_ns`, it is the lifetime.
    #[serde(flatten)]
    pub off_cpu: MeasuredOffCpu,
    /// The hook's overhead in this thread; it is in no other figure.
    pub own_cost_ns: Ns,
    #[serde(skip)] // The part of it in which the hook waited.
    pub(crate) own_wait_ns: Ns,
    /// What the hook did in it for new contexts. It is in the time of what makes their calls.
    #[serde(skip)]
    pub(crate) slow_ns: Ns,
    /// By how much the parts exceed the lifetime, which only happens with contradictory data.
    pub overlap_ns: Ns,
    /// Start routine.
    pub start_routine: Option<CodeAddress>,
    /// Argument of the start routine.
    pub start_argument: u64,
    /// Where it was created: the return address of the call.
    pub creation_site: Option<CodeAddress>,
    /// Number of the thread that created it.
    pub creator: Option<u32>,
    /// What else was seen of its creation, to find out which function it runs.
    #[serde(skip)]
    pub creation: ThreadCreation,
    /// Calls that were made but not recorded.
    pub lost_calls: u64,
    /// Figures of all its library calls; `total_ns` and `self_ns` are equal.
    #[serde(flatten)]
    pub measures: Measures,
    /// Its APIs, by number of the API.
    pub apis: Packed<ThreadApi>,
    /// Its contexts, in the order of its recording; several may belong to one row. Not in JSON.
    #[serde(skip)]
    pub contexts: Packed<ThreadContext>,
}

/// How a thread was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadOrigin {
    /// The process's first thread.
    Main,
    /// Another thread created it.
    Created,
    /// First seen after its start.
    Found,
}

/// What was seen of a thread's creation, uninterpreted: symbols give it a meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadCreation {
    /// Return addresses, innermost first: of the call that created the thread, then of the library calls around it.
    /// Calls within an object are not included.
    pub stack: Vec<CodeAddress>,
    /// What the start routine's argument pointed to, as addresses; 0 for words that are not addresses in a file.
    pub words: Vec<CodeAddress>,
    /// What the second of these words pointed to.
    pub inner_words: Vec<CodeAddress>,
    /// What the Python interpreter runs in it: `module.qualname`.
    pub python_function: Option<String>,
    /// Name of the interpreter's `Thread` object.
    pub python_thread_name: Option<String>,
}

/// A process image.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessRow {
    /// The path of its recording. In JSON, bytes that are not UTF-8 are U+FFFD.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Process id.
    pub pid: u32,
    /// The parent's process id.
    pub parent_pid: u32,
    /// The image that it was forked from or replaced, by number in
    /// [`Analysis::processes`](crate::Analysis::processes).
    pub parent: Option<usize>,
    /// Whether it was made by a fork that no exec followed.
    pub forked: bool,
    /// The name of the script, if an interpreter runs one; else that it was started as, by the executable or a link to it.
    pub program: String,
    /// Its role among processes of the program, by the title that it has set: `postgres: checkpointer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Path of the executable.
    pub executable: String,
    /// The arguments, beginning with the program's name.
    pub command: Vec<String>,
    /// Start, relative to the start of the run.
    pub start_ns: Ns,
    /// Time from start to end.
    pub wall_ns: Ns,
    /// How it ended.
    pub ending: Ending,
    /// Whether the end is only the time of the latest trace.
    pub end_is_estimate: bool,
    /// Whether a rate of its clock was measured; if not, times are in ticks.
    pub clock_is_calibrated: bool,
    /// Whether there is a recording; if not, only its system calls are known.
    pub is_recorded: bool,
    /// Whether its calls were only counted, but for those of special functions ([`NotSeen::processes_counted`](crate::NotSeen::processes_counted)).
    pub only_counts: bool,
    /// What is known of its system calls.
    pub syscalls: SyscallsState,
    /// How its waits were measured.
    pub wait_source: WaitSource,
    /// Its figures.
    #[serde(flatten)]
    pub totals: Totals,
}

impl ProcessRow {
    /// The display name: its role, or its program.
    #[must_use]
    pub fn name(&self) -> &str {
        self.role.as_deref().unwrap_or(&self.program)
    }

    /// What the executable was started as: of a script, its interpreter.
    #[must_use]
    pub fn started_as(&self) -> String {
        started_as(&self.executable, &self.command)
    }
}

/// Figures of a process, or of the whole selection.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// The number of threads.
    pub threads: usize,
    /// Library calls begun.
    pub calls: u64,
    /// Whether `calls` is an estimate; see [`Measures::calls_estimated`].
    pub calls_estimated: bool,
    /// Sum of the lifetimes of all threads.
    pub lifetime_ns: Ns,
    /// Sum of their application times.
    pub application_ns: Ns,
    /// Time that is neither in those nor in library calls; see [`ThreadRow::unattributed_ns`].
    pub unattributed_ns: Ns,
    /// The part of it spent waiting.
    pub unattributed_wait_ns: Ns,
    /// The part of it in which others had the processor.
    pub unattributed_preempted_ns: Ns,
    /// Sum of the self times of all their library calls.
    pub library_ns: Ns,
    /// The part of it spent waiting; see [`Measures::wait_ns`].
    pub wait_ns: Ns,
    /// The part of it spent preempted; see [`Measures::preempted_ns`].
    pub preempted_ns: Option<Ns>,
    /// The part of the application times spent waiting.
    pub application_wait_ns: Option<Ns>,
    /// The part of the application times spent preempted.
    pub application_preempted_ns: Option<Ns>,
    /// Time off the CPU, as measured.
    #[serde(flatten)]
    pub off_cpu: MeasuredOffCpu,
    /// The hook's overhead in them.
    pub own_cost_ns: Ns,
    /// By how much the parts exceed the lifetimes.
    pub overlap_ns: Ns,
}

impl Totals {
    /// Returns what shares refer to: application time, library calls, and time that can't be attributed.
    #[must_use]
    pub fn whole_ns(&self) -> Ns {
        let parts = [self.application_ns, self.unattributed_ns, self.library_ns];
        Ns(parts.iter().fold(0, |sum, part| sum.saturating_add(part.0)))
    }
}

/// Serializes a path lossily: serde rejects paths that are not UTF-8, and with them the whole document.
pub(crate) fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// A place that a function is called from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallPlace {
    /// The return address; `None` for calls by a jump from a function that had ended then (tail calls), for code that is in no
    /// file, and for what all further places have.
    pub address: Option<CodeAddress>,
    /// A process in which that is valid, by number in [`Analysis::processes`](crate::Analysis::processes).
    pub process: usize,
    /// The number of samples, or of long calls.
    pub samples: u64,
    /// The share of the calls, by what the samples stand for; or of the time, of long calls.
    pub share: f64,
}

impl ContextRow {
    /// The places of most of its time: of long calls, if these take half of it, or else by samples.
    #[must_use]
    pub fn places_by_time(&self) -> &[CallPlace] {
        let known: f64 = self.long_places.iter().map(|place| place.share).sum();
        if known >= 0.5 { &self.long_places } else { &self.places }
    }
}
