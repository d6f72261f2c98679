//! What a page shows.

mod blocked;
mod comparison;
mod diagrams;
mod figures;
mod from_analysis;
mod groups;
mod lanes;
mod single_waits;
mod syscalls;
mod tables;
mod tails;
mod timeline;

use chase_export::Stacks;
use serde::{Deserialize, Serialize};

use crate::Label;
use crate::section_id::SectionId;

pub use chase_analyzer::{Verdict, WaitCause, WaitSource};

pub use blocked::{Blocked, BlockedIn, CauseOfWait};
pub use diagrams::{Diagram, DiagramArrow, DiagramNode, GroupWaits, PartUse, Parts, WaitsForWhom};
pub use figures::{Facts, Figures, Names, Sentence};
pub use tables::{Column, ColumnKind, Mark, RawTable, Value};
pub use tails::{Tail, TailCurve};
pub use timeline::{Does, Lane, RanAt, RanPlace, Span, Timeline};

/// A page's worth of a run, or of two.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Of what run this is.
    pub header: Header,
    /// What stands out, most important first.
    pub findings: Vec<Finding>,
    /// Where the processor was, where samples were taken.
    pub processor: Option<Ran>,
    /// What threads waited for and who ended that, longest first.
    #[serde(default)]
    pub causes: Vec<CauseOfWait>,
    /// What threads that have work are blocked by.
    #[serde(default)]
    pub blocked: Blocked,
    /// Which threads wait for which, where a companion saw it.
    #[serde(default)]
    pub waits_for_whom: Option<WaitsForWhom>,
    /// What the run is made of, where single system calls were kept.
    #[serde(default)]
    pub parts: Option<Parts>,
    /// Libraries and applications by self time, longest first, with their functions.
    pub libraries: Vec<Library>,
    /// Where waits are from.
    pub waits: WaitSource,
    /// Thread groups, the one with most time first.
    pub groups: Vec<ThreadGroup>,
    /// Functions whose tails are of interest, by thread group; most time in the tail first.
    pub tails: Vec<Tail>,
    /// Functions that make system calls, most time in them first.
    pub syscalls: Vec<ApiSyscalls>,
    /// How many more such functions there are.
    pub more_syscalls: usize,
    /// Calls between libraries, most time first.
    pub edges: Vec<Edge>,
    /// Flame graphs: of all threads first, then of groups.
    pub flames: Vec<Flame>,
    /// Threads by time, where events were recorded.
    #[serde(default)]
    pub timeline: Option<Timeline>,
    /// What changed since another run.
    pub comparison: Option<Comparison>,
    /// Everything, to be searched.
    pub tables: Vec<RawTable>,
}

/// What ran on the processor, by samples.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ran {
    /// Samples.
    pub samples: u64,
    /// Time on the CPU of all threads that were watched, without what watching took, nanoseconds.
    pub on_cpu_ns: f64,
    /// The part of it that no sample tells of, nanoseconds.
    pub not_sampled_ns: f64,
    /// Whether samples are of user space alone: then that has the time in the kernel.
    #[serde(default)]
    pub user_only: bool,
    /// How many processes were not watched, so that nothing is known of what they ran.
    #[serde(default)]
    pub unwatched: usize,
    /// By object, longest first.
    pub objects: Vec<RanObject>,
}

/// What ran of one object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RanObject {
    /// Name.
    pub name: Label,
    /// Whether it is an executable.
    pub is_application: bool,
    /// Its time, nanoseconds.
    pub ns: f64,
    /// Half the width of the 95 % confidence interval, nanoseconds.
    pub error_ns: f64,
    /// The part of it in the kernel, nanoseconds; `None` if nobody knows.
    pub kernel_ns: Option<f64>,
    /// Its functions, longest first.
    pub functions: Vec<RanFunction>,
}

/// What ran of one function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RanFunction {
    /// Name.
    pub name: Label,
    /// Its time, nanoseconds.
    pub ns: f64,
    /// The line with most samples; empty if it is not known.
    pub line: Label,
}

/// Of what run a page is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Header {
    /// Name of the program, for the title.
    pub program: Label,
    /// Its command line.
    pub command: Label,
    /// What to know of it before anything else, in one line: a value, and what it is of.
    #[serde(default)]
    pub lead: Vec<(Label, String)>,
    /// Facts in the order in which they are shown: a term, and what is to be said about it.
    pub facts: Vec<(String, Label)>,
    /// Why this may not be the whole run; empty if it is.
    #[serde(default)]
    pub incomplete: Vec<Label>,
    /// How many of the lines of [`not_seen`](Self::not_seen) are gaps: the others are left alone by design.
    #[serde(default)]
    pub gaps: usize,
    /// What else was not seen; empty if everything was.
    pub not_seen: Vec<Label>,
    /// The processes, where there are several.
    pub processes: Vec<Process>,
    /// How many more there are.
    pub more_processes: usize,
    /// Processors of the machine, if that is known.
    #[serde(default)]
    pub processors: Option<u64>,
    /// Threads that the figures are about.
    pub threads: usize,
    /// Application time and all self times, nanoseconds.
    pub whole_ns: f64,
    /// What rests on samples.
    pub estimates: Estimates,
}

/// Which figures are estimates, of some functions. Errors are half the widths of 95 % confidence intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Estimates {
    /// None.
    #[default]
    None,
    /// Times: only some calls were timed.
    Times,
    /// Times and numbers of calls: some were not even seen.
    Calls,
}

/// A process of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Name of its executable.
    pub program: Label,
    /// From start to end, nanoseconds.
    pub wall_ns: f64,
    /// Threads.
    pub threads: usize,
    /// Library calls.
    pub calls: u64,
    /// Whether that is an estimate.
    pub calls_estimated: bool,
    /// How it ended.
    pub ended: Label,
}

/// A sentence that is worth knowing: its parts one after the other, without the full stop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// What is the matter.
    pub claim: Label,
    /// What that rests on, with the punctuation before it; may be empty.
    pub evidence: Label,
    /// What would be saved without it; empty if that is not known.
    pub gain: Label,
    /// The section that shows it.
    pub shown_in: Option<SectionId>,
}

/// A library, or an application's own time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Library {
    /// Name.
    pub name: Label,
    /// Path.
    pub path: Label,
    /// Whether this is the application's own time.
    pub is_application: bool,
    /// Time without the library calls made inside, nanoseconds.
    pub self_ns: f64,
    /// Its error, if it is an estimate, nanoseconds.
    pub self_error_ns: Option<f64>,
    /// The part of it that was waiting, by cause.
    pub waiting: Vec<Waiting>,
    /// The part of it in which a thread could have run and another did, where the scheduler was
    /// asked; nanoseconds.
    pub preempted_ns: Option<f64>,
    /// Time on the processor during its calls, without the library calls made inside; of an application, in no call:
    /// by samples, nanoseconds.
    #[serde(default)]
    pub on_cpu_ns: f64,
    /// Time in the library calls made inside, nanoseconds.
    pub callees_ns: f64,
    /// Calls.
    pub calls: u64,
    /// Their error, if they are an estimate.
    pub calls_error: Option<f64>,
    /// Its functions, longest self time first.
    pub functions: Vec<Function>,
}

/// Time spent waiting.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// What for.
    pub cause: WaitCause,
    /// How long, nanoseconds.
    pub ns: f64,
}

/// A function of a library.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: Label,
    /// Calls.
    pub calls: u64,
    /// Their error, if they are an estimate.
    pub calls_error: Option<f64>,
    /// Time without the library calls made inside, nanoseconds.
    pub self_ns: f64,
    /// Its error, if it is an estimate, nanoseconds.
    pub self_error_ns: Option<f64>,
    /// With them.
    pub total_ns: f64,
    /// Time on the processor during its calls, without the library calls made inside, by samples, nanoseconds.
    #[serde(default)]
    pub on_cpu_ns: f64,
    /// Median, nanoseconds.
    pub p50_ns: Option<f64>,
    /// 99.9 % took no longer, nanoseconds.
    pub p999_ns: Option<f64>,
}

/// Threads that do the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadGroup {
    /// Its name: the start routine, or what a runtime runs there.
    pub name: Label,
    /// Its threads, in the order of their start.
    pub members: Vec<Member>,
    /// Libraries that columns are about, by position in [`Report::libraries`].
    pub libraries: Vec<usize>,
    /// Its time without waits, of all threads, nanoseconds.
    pub useful_ns: f64,
    /// Its waits, of all threads, nanoseconds.
    pub wait_ns: f64,
    /// How evenly its work is spread, where it has several threads.
    pub balance: Option<Balance>,
    /// Members that are unlike the others, most unlike first.
    pub outliers: Vec<Outlier>,
    /// Kinds of behaviour found within the group, if it is more than one.
    pub sub_groups: Vec<SubGroup>,
    /// What to know of how its threads were compared.
    pub note: Option<Label>,
}

/// A thread of a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Its name and number.
    pub name: Label,
    /// Lifetime, nanoseconds.
    pub lifetime_ns: f64,
    /// What it was made of.
    #[serde(default)]
    pub life: Life,
    /// Library calls.
    #[serde(default)]
    pub calls: u64,
    /// Time in each of [`ThreadGroup::libraries`], nanoseconds.
    pub in_libraries_ns: Vec<f32>,
    /// Time on the processor in each of the first of [`Ran::objects`], by samples, nanoseconds; empty if it has none.
    #[serde(default)]
    pub on_cpu_ns: Vec<f32>,
}

/// What the life of a thread was made of, nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Life {
    /// On a processor.
    pub running_ns: f64,
    /// Ready to run while others did.
    pub runnable_ns: f64,
    /// Blocked, whatever by.
    pub blocked_ns: f64,
    /// Whether the scheduler has measured all of it. Otherwise it is what is known of the thread's calls.
    pub is_measured: bool,
}

/// How evenly work is spread over a group.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Balance {
    /// Load balance: mean / max of useful time.
    pub load_balance: f64,
    /// Imbalance as a fraction: (max − mean) / max · N / (N − 1).
    pub imbalance: f64,
    /// What the slowest thread has beyond the mean, nanoseconds.
    pub imbalance_ns: f64,
    /// Parallel efficiency: mean useful time / wall time of the group.
    pub parallel_efficiency: f64,
}

/// A member that is unlike the others of its group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outlier {
    /// Position in [`ThreadGroup::members`].
    pub member: usize,
    /// Why it is one, in words.
    pub reason: Label,
}

/// A kind of behaviour within a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SubGroup {
    /// What its threads do, in words.
    pub name: Label,
    /// How many threads it has.
    pub threads: usize,
}

/// The system calls that a function makes itself, outside of the library calls inside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApiSyscalls {
    /// The function, or what stands for none.
    pub function: Label,
    /// Its library; empty where no library call made them.
    pub library: Label,
    /// Its calls, if it is a function.
    pub calls: Option<u64>,
    /// Its system calls, longest first.
    pub syscalls: Vec<Syscall>,
}

/// A system call, as made by a function.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Syscall {
    /// Its name.
    pub name: Label,
    /// Its category, such as "network".
    pub category: Label,
    /// How often it was made.
    pub count: u64,
    /// Errors: name of the error, and how often.
    pub errors: Vec<(Label, u64)>,
    /// Time in it, nanoseconds.
    pub total_ns: f64,
    /// Longest, nanoseconds.
    pub max_ns: f64,
    /// Bytes that it returned, for those that return bytes.
    pub bytes: Option<u64>,
}

/// Calls of one library to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Edge {
    /// Name of the calling file.
    pub caller: Label,
    /// Name of the library called.
    pub callee: Label,
    /// Calls.
    pub calls: u64,
    /// Their error, if they are an estimate.
    pub calls_error: Option<f64>,
    /// Self time of the functions called so, nanoseconds.
    pub self_ns: f64,
    /// Its error, if it is an estimate, nanoseconds.
    pub self_error_ns: Option<f64>,
}

/// A flame graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Flame {
    /// Of which threads.
    pub name: Label,
    /// Whether its time is that of the processor, by samples; otherwise that of calls.
    #[serde(default)]
    pub on_cpu: bool,
    /// What is drawn.
    pub kind: FlameKind,
}

/// What a flame graph shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FlameKind {
    /// Where the time went.
    Time(Stacks),
    /// Where it went now, coloured by how much that is more or less than before.
    Difference {
        /// Of the other run.
        before: Stacks,
        /// Of this run.
        now: Stacks,
    },
}

/// Two sides, each a run or several of the same program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// What the other side is called.
    pub before: Label,
    /// What this one is called.
    pub now: Label,
    /// What to know about how sure this is.
    pub notes: Vec<Label>,
    /// The runs as wholes.
    pub totals: Vec<Change>,
    /// Functions, largest change of self time first.
    pub functions: Vec<FunctionChange>,
    /// How many more functions there are.
    pub more_functions: usize,
}

/// A figure of both sides: the median over the runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Change {
    /// What it is, such as "wall time".
    pub measure: Label,
    /// Value before, nanoseconds where `is_time`.
    pub before: Option<f64>,
    /// Value now.
    pub now: Option<f64>,
    /// Whether the values are nanoseconds; otherwise they are numbers of something.
    pub is_time: bool,
    /// How probable so large a difference is by chance, with several runs on both sides.
    pub p: Option<f64>,
}

/// A function of both sides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FunctionChange {
    /// Its name; of both sides where they differ.
    pub function: Label,
    /// Its library; of both sides where they differ.
    pub library: Label,
    /// What became of its time per call.
    pub verdict: Verdict,
    /// Mean time of a call, its self time, calls, and the like; as many for each function.
    pub figures: Vec<Change>,
    /// What its self time was spent on, before and now.
    pub parts: [Option<SelfParts>; 2],
}

/// What the self time of a function was spent on: of all calls, nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct SelfParts {
    /// Its own code, on the CPU.
    pub code_ns: f64,
    /// System calls that it made itself, on the CPU.
    pub syscalls_ns: f64,
    /// Waiting.
    pub wait_ns: f64,
    /// Ready to run while another thread did.
    pub preempted_ns: f64,
}
