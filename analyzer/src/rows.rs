//! The rows of the tables. Names in JSON are those of the fields.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::address::CodeAddress;
use crate::blocking::Cause;
use crate::clock::Ns;
use crate::image::Ending;

/// Figures of a set of calls. Times are free of the hook's own cost; see the crate's documentation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measures {
    /// Calls begun; exact.
    pub calls: u64,
    /// Those among them that were counted and not timed.
    pub untimed: u64,
    /// Calls left by an exception, a `longjmp` or a cancellation.
    pub unwound: u64,
    /// Calls that had not returned at the end; the time of the latest chain of them is included.
    pub open: u64,
    /// Time with the library calls made inside. Of nested calls in the same set, only the
    /// outermost counts.
    pub total_ns: Ns,
    /// Time without the library calls made inside.
    pub self_ns: Ns,
    /// Self time of APIs that are known to wait: an estimate by name.
    pub wait_ns: Ns,
    /// `self_ns` as a fraction of application time and all self times together.
    pub share: f64,
    /// Mean duration of a call that was timed.
    pub mean_ns: Option<Ns>,
    /// Median of the durations of completed calls, within 6.25 %. `None` if there are none.
    pub p50_ns: Option<Ns>,
    /// 90 % of the calls took no longer.
    pub p90_ns: Option<Ns>,
    /// 99 % of the calls took no longer.
    pub p99_ns: Option<Ns>,
    /// 99.9 % of the calls took no longer.
    pub p999_ns: Option<Ns>,
    /// The longest call, exact but for the hook's cost.
    pub max_ns: Option<Ns>,
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
    /// The application's own time: lifetime of its threads less their library calls.
    Application,
    /// Calls into a library.
    Library,
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
    /// Start, since the start of the run.
    pub start_ns: Ns,
    /// End, since the start of the run.
    pub end_ns: Ns,
    /// End minus start.
    pub lifetime_ns: Ns,
    /// Whether `end_ns` is only the latest moment that left a trace.
    pub end_is_estimate: bool,
    /// Lifetime less the outermost library calls.
    pub application_ns: Ns,
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
    /// Calls that were made and not recorded.
    pub lost_calls: u64,
    /// Figures of all its library calls; `total_ns` and `self_ns` are equal.
    #[serde(flatten)]
    pub measures: Measures,
    /// Its APIs, by number of the API.
    pub apis: Vec<ThreadApi>,
}

impl ThreadRow {
    /// By how much application time, self times and own cost together miss the lifetime, as a
    /// fraction of it.
    #[must_use]
    pub fn conservation_error(&self) -> f64 {
        let parts = [self.application_ns, self.measures.self_ns, self.own_cost_ns];
        let lifetime = self.lifetime_ns.as_f64();
        let missed = (parts.iter().map(|part| part.as_f64()).sum::<f64>() - lifetime).abs();
        if missed == 0.0 { 0.0 } else { missed / lifetime }
    }
}

/// What a thread spent in an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadApi {
    /// The API, by number in [`Analysis::apis`](crate::Analysis::apis).
    pub api: u32,
    /// Calls begun.
    pub calls: u64,
    /// Time with the library calls made inside, of the outermost calls.
    pub total_ns: Ns,
    /// Time without the library calls made inside.
    pub self_ns: Ns,
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
    /// Lifetimes of all threads.
    pub lifetime_ns: Ns,
    /// Their application times.
    pub application_ns: Ns,
    /// Self times of all their library calls.
    pub library_ns: Ns,
    /// The part of it in APIs that are known to wait.
    pub wait_ns: Ns,
    /// What the hook cost them.
    pub own_cost_ns: Ns,
    /// By how much the parts exceed the lifetimes.
    pub overlap_ns: Ns,
}

/// serde refuses paths that are not UTF-8, and with them the whole document.
pub(crate) fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}
